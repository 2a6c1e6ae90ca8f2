//! The packed words and what each value of them means. Pure: no atomics, no I/O.
//!
//! Each field states its width and the field below it; shift, mask and maximum follow, so fields cannot overlap, and
//! the sum of the widths is checked to be 64 where the word is declared.
//!
//! | word | fields, high to low | meaning |
//! |---|---|---|
//! | [`NodeWord`] open | `generation 36, guard 24, delayed 1, status 3` | nobody holds it; the guard moves when its readiness may have gone |
//! | [`NodeWord`] claimed | `generation 36, guard 13, holder 12, status 3` | `holder` has it; the generation is the fence |
//! | [`NodeWord`] ended | `generation 36, text 25, status 3` | done, failed, cancelled, archived or not; `text` overrides the record |
//! | [`HolderWord`] | `node 12, generation 36, epoch 15, called off 1` | "this holder may hold `node` at `generation`": read through the node's word |
//! | [`LeaseWord`] | `tag 24, deadline 40` | the lease of the claim with this generation tag; deadline 0 is *closed* |
//! | [`LengthWord`] | `generation 36, length 28` | the length of that claim's lease, when it is not the table's |
//! | [`EndWord`] | `tag 24, time 40` | when the generation with this tag ended |
//! | [`RootWord`] | `number 46, current 8, next 8, phase 2` | which version of the graph is in force, and the change under way |
//! | [`OwnerWord`] | `pid 22, start 42` | the process that writes into a buffer or block; 0 is nobody |
//! | [`ProcessWord`] | `tag 26, pid 22, start 16` | the process that the claim with this generation tag stands and falls with |
//! | [`GroupWord`] | `epoch 16, holder 12, node 12, tag 24` | the claim in a group that is on its way, or was the last |
//! | [`PolicyWord`] | `gated 1, group 8, attempts 16, delay 32` | how a node is tried again, its group, whether it names a surface |
//! | [`TextRef`] | `kind 2, index 12, head 16, stamp 34` | whose text it is, where it begins, and which writing of it |
//! | [`ChangeWord`] | `kind 3, index 12` | one step of a change of the graph |

/// A bit field of a 64-bit word.
#[derive(Clone, Copy)]
struct Field {
    shift: u32,
    width: u32,
}

impl Field {
    /// The lowest field of a word.
    const fn lowest(width: u32) -> Field {
        Field { shift: 0, width }
    }

    /// The field directly above `below`.
    const fn above(below: Field, width: u32) -> Field {
        Field { shift: below.shift + below.width, width }
    }

    const fn max(self) -> u64 {
        (1 << self.width) - 1
    }

    const fn end(self) -> u32 {
        self.shift + self.width
    }

    const fn get(self, word: u64) -> u64 {
        (word >> self.shift) & self.max()
    }

    /// The field's bits for `value`; bits that do not fit are dropped, so callers check limits where they can be exceeded.
    const fn put(self, value: u64) -> u64 {
        (value & self.max()) << self.shift
    }
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::NoUninit, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub(crate) struct $name(u64);

        impl Bits for $name {
            fn bits(self) -> u64 {
                self.0
            }
            fn from_bits(bits: u64) -> Self {
                $name(bits)
            }
        }
    };
}

mod claim;
mod graph;
mod lease;

pub(crate) use claim::{
    GENERATION_CLAIMABLE_MAX, GENERATION_MAX, GroupWord, HolderWord, NodeWord, Phase, ProcessWord, State,
};
pub(crate) use graph::{ChangeWord, OwnerWord, PolicyWord, RootWord, Step, TextOf, TextRef};
pub(crate) use lease::{EndWord, LEASE_MS_MAX, LeaseWord, LengthWord};

#[cfg(all(test, not(tenure_loom)))]
mod tests;
