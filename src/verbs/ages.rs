//! For `stats`: how long what is ready has waited, and how long leases still run.

use crate::clock;
use crate::error::Refusal;
use crate::node::Seen;
use crate::sync::Ordering;
use crate::verbs::Table;
use crate::verbs::cut::Cut;
use crate::word::NodeWord;

/// Times of one cut; the fields of [`Stats`](crate::Stats) with the same names.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    pub(crate) oldest_ready_ms: Option<u64>,
    pub(crate) shortest_lease_ms: Option<i64>,
    pub(crate) leases_ending_soon: u32,
    pub(crate) leases_run_out: u32,
    pub(crate) holders_busy: u32,
}

impl Table {
    pub(crate) fn ages(&self, cut: &Cut) -> Result<Ages, Refusal> {
        let mut ages = Ages::default();
        for (slot, node) in cut.graph.iter() {
            let Some(&word) = cut.words.get(usize::from(slot)) else { continue };
            if cut.seen(slot) == Seen::Ready {
                let age = self.ready_for_ms(cut, slot, word, node.created_ms)?;
                ages.oldest_ready_ms = ages.oldest_ready_ms.max(Some(age));
            }
            if word.holder().is_none() {
                continue;
            }
            // A holder has one claim at a time, in a cut too.
            ages.holders_busy += 1;
            let left = self.lease_left_ms(slot, word)?;
            ages.shortest_lease_ms = Some(ages.shortest_lease_ms.map_or(left, |shortest| shortest.min(left)));
            let third = (self.core().length_ms(slot, word.generation())? / 3) as i64;
            if left <= 0 || self.core().is_process_gone(slot, word.generation())? {
                ages.leases_run_out += 1;
            } else if left < third {
                ages.leases_ending_soon += 1;
            }
        }
        Ok(ages)
    }

    /// How long a ready node could have been claimed: since it was made, the last of its dependencies ended, or the
    /// delay after its last attempt was over.
    fn ready_for_ms(&self, cut: &Cut, slot: u16, word: NodeWord, created_ms: u64) -> Result<u64, Refusal> {
        let mut age = clock::wall_now_ms().saturating_sub(created_ms);
        let now = clock::lease_now_ms();
        if let Some(until_ms) = self.core().node(slot)?.left_alone_until_ms(word) {
            age = age.min(now.saturating_sub(until_ms));
        }
        for edge in cut.graph.deps(slot) {
            let end = self.core().node(edge.parent)?.end.load(Ordering::Relaxed);
            age = age.min(now.saturating_sub(end.time_ms()));
        }
        Ok(age)
    }
}
