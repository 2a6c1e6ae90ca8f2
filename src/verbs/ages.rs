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

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use super::*;
    use crate::table::hints::AGE_MS;
    use crate::table::lease::Lease;
    use crate::table::next::{Next, Offer};
    use crate::{CreateOptions, NodeId, NodeSpec};

    /// Claims the next node and hands it back. The lease clock stands still for the claim, so that it does not look
    /// through the leases and find out how old the nodes really are.
    fn first(table: &Table) -> String {
        let worker = table.worker("w").unwrap();
        let core = table.core_mut().unwrap();
        let next = core
            .claim_next(worker.who(), Offer { roles: &[], gate: None }, Lease { lease_ms: 60_000, now_ms: 0 })
            .unwrap();
        let Next::Won { slot, .. } = next else { panic!("{next:?}") };
        let label = table.label(slot);
        table.release(NodeId::of_name(&label), "w", None).unwrap();
        label
    }

    #[test]
    fn what_has_been_ready_for_long_goes_before_what_has_more_below_it() {
        let dir = tempfile::tempdir().unwrap();
        let (table, _) = Table::open_or_create(dir.path().join("t"), &CreateOptions::default()).unwrap();
        assert!(table.worker("w").unwrap().claim_next().is_err(), "the first look through the leases");
        let add = |name: &str, needs: &[&str], cost| {
            let needs = needs.iter().map(|need| NodeId::of_name(need).into()).collect();
            let name = Some(name.to_owned());
            table.upsert(&NodeSpec { name, needs, cost: Some(cost), ..NodeSpec::default() }, false).unwrap();
        };
        add("leaf", &[], 1);
        let made_ms = clock::lease_now_ms();
        add("heavy", &[], 100);
        add("late", &["heavy"], 1_000_000);
        let core = table.core_mut().unwrap();
        let look = |at_ms: u64| core.refresh_hints_at(at_ms).unwrap();
        look(made_ms);
        assert_eq!(first(&table), "heavy");
        look(made_ms.saturating_sub(10_000) + AGE_MS);
        assert_eq!(first(&table), "heavy", "nothing is old yet");
        look(made_ms + 60_000 + AGE_MS);
        assert_eq!(first(&table), "leaf", "both are old, and it is older");
        assert_eq!(first(&table), "leaf", "handing it back does not make it young");
        look(made_ms);
        assert_eq!(first(&table), "heavy");
    }
}
