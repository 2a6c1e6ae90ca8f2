//! SIGKILL at any moment of a snapshot: the last one is whole, and what is left over goes with the next (G3, case 18).

use std::time::{Duration, Instant};

use tenure::NodeSpec;

use super::crew::{Crew, Dice, depth, fresh_table, until};
use super::help::{id, names, node, read, take};

#[test]
fn a_snapshotter_killed_at_any_moment_leaves_a_whole_snapshot() {
    let (dir, table) = fresh_table();
    let text = "s".repeat(1_000);
    let many: Vec<NodeSpec> =
        (0..1_000).map(|n| NodeSpec { summary: Some(text.clone()), ..node(&format!("n{n}")) }).collect();
    table.import(&many).expect("room");
    table.upsert(&node("mine s"), false).expect("room");
    let begun = Instant::now();
    take(&table);
    let one_takes = begun.elapsed().as_micros() as usize;
    let mut dice = Dice::new(5);
    let (mut left_over, mut replaced) = (0, 0);
    for round in 0..depth(60) {
        let before = read(dir.path());
        let mut crew = Crew::new();
        crew.add("snapshot_again_and_again", dir.path(), &[&"s", &1_000_000]);
        crew.start();
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_micros(dice.below(3 * one_takes) as u64));
        } else {
            // Between the first byte and the rename.
            until("a snapshot is being written", || names(dir.path()).iter().any(|n| n.starts_with(".new-snapshot-")));
            std::thread::sleep(Duration::from_micros(dice.below(one_takes / 8) as u64));
        }
        crew.hands[0].kill();
        let after = read(dir.path());
        replaced += u32::from(after != before);
        left_over += names(dir.path()).iter().filter(|name| name.starts_with(".new-snapshot-")).count();
        take(&table);
        assert_eq!(names(dir.path()), ["snapshot", "snapshot.lock"], "round {round}");
        assert!(table.get(id("mine s")).is_ok());
        let stats = table.stats().expect("counts");
        assert_eq!((stats.text_blocks_reserved, stats.versions_reserved), (0, 0));
        // Whatever it held is open again, for the next one.
        table.restore(None, true).expect("by force");
    }
    assert!(
        left_over > 5 && replaced > 5,
        "hardly one was killed on the way: {left_over} left over, {replaced} replaced"
    );
}
