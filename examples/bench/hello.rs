//! The smallest program to start and end: what a verb of the program is measured beside.

fn main() {
    println!("hello");
}
