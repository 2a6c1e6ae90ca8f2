//! A live claim in the hands of a library user: carries its fence, so every use of it is fenced.

use crate::clock;
use crate::error::{Damaged, Refusal};
use crate::id::NodeId;
use crate::node::{Ended, Granted, Outcome, Task};
use crate::record::Record;
use crate::sync::Ordering;
use crate::table::TRIES;
use crate::table::finish::{Back, By, End};
use crate::table::lease::Lease;
use crate::verbs::Worker;
use crate::word::{NodeWord, Phase, State};

/// A node that this worker holds, at the generation it was given.
///
/// Dropping it does nothing: the node stays claimed until its lease runs out. Every method that answers with a refusal
/// has changed nothing; after [`Refusal::GenerationMismatch`] or [`Refusal::NotHolder`] the claim is lost, and what was
/// done under it must not be used.
#[must_use = "a claim that is dropped keeps its node until the lease runs out"]
pub struct Claim<'w> {
    worker: &'w Worker,
    slot: u16,
    generation: u64,
    resumed: bool,
}

impl std::fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("node", &self.id()).field("generation", &self.generation).finish_non_exhaustive()
    }
}

impl<'w> Claim<'w> {
    #[inline]
    pub(crate) fn new(worker: &'w Worker, slot: u16, generation: u64, resumed: bool) -> Claim<'w> {
        Claim { worker, slot, generation, resumed }
    }

    /// The node's id. Zero when the claim is over and the node has been pruned since.
    pub fn id(&self) -> NodeId {
        let core = self.worker.table().core();
        for _ in 0..TRIES {
            let Ok(seen) = core.in_force() else { break };
            let id = seen.id(self.slot);
            if seen.is_whole() {
                return id;
            }
        }
        NodeId(0)
    }

    /// The fencing token.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// True when the holder had it already and was answered with it again.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// The claim as plain data, to renew and complete it by later or elsewhere.
    ///
    /// # Errors
    /// The claim is lost.
    pub fn granted(&self) -> Result<Granted, Refusal> {
        self.worker.table().granted(self.slot, self.word(), self.resumed)
    }

    /// What the node asks for, as it is now. Costs as much as the node's texts are long, where [`Table::get`](crate::Table::get) looks at the
    /// whole graph.
    ///
    /// # Errors
    /// The claim is lost.
    pub fn task(&self) -> Result<Task, Refusal> {
        let table = self.worker.table();
        let core = table.core();
        for _ in 0..TRIES {
            let seen = core.in_force().map_err(|stop| table.refusal(stop))?;
            let node = seen.node(self.slot);
            let record = match &node {
                Some(node) => core.read_text(node.text)?.and_then(|bytes| Record::decode(&bytes)),
                None => None,
            };
            // The guard of the word may have moved; that is no matter of the holder's.
            let now = core.node(self.slot)?.word.load(Ordering::Acquire);
            if now.generation() != self.generation || now.holder() != self.word().holder() {
                return Err(table.lost(self.slot, self.generation));
            }
            // What was read while the version changed is neither an answer nor damage.
            if !seen.is_whole() || core.fixed.header.root.load(Ordering::Acquire) != seen.root {
                continue;
            }
            let node = node.ok_or(Damaged { what: "a claimed slot is free in the version in force" })?;
            let record = record.ok_or(Damaged { what: "a node's record does not decode" })?;
            let filled = |text: String| (!text.is_empty()).then_some(text);
            return Ok(Task {
                id: node.id,
                name: filled(record.name),
                cost: node.cost,
                run: filled(record.run),
                surface: filled(record.surface),
            });
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    fn word(&self) -> NodeWord {
        NodeWord::new(State { generation: self.generation, phase: Phase::Claimed { holder: self.worker.who().slot } })
    }

    /// The holder is alive: the lease runs from now. Answers with its length in milliseconds.
    ///
    /// # Errors
    /// The claim is lost.
    pub fn renew(&self) -> Result<u64, Refusal> {
        let core = self.worker.table().core_mut()?;
        let lease_ms = core.length_ms(self.slot, self.generation)?;
        let lease = Lease { lease_ms, now_ms: clock::lease_now_ms() };
        let stopped = |stop| self.worker.table().refusal(stop);
        if core.renew_lease(self.slot, self.word(), lease).map_err(stopped)? {
            return Ok(lease_ms);
        }
        // Somebody may have closed the lease and stopped there: the reclaim is finished, so that the answer can say by whom
        // the node is held now.
        core.reclaim(self.slot, lease.now_ms, None).map_err(stopped)?;
        Err(self.worker.table().lost(self.slot, self.generation))
    }

    /// Ends the node.
    ///
    /// # Errors
    /// The claim is lost; or [`Refusal::NotReady`] for `Done` when a dependency was added or reopened meanwhile.
    pub fn complete(&self, outcome: Outcome) -> Result<Ended, Refusal> {
        self.end(outcome, None)
    }

    /// Ends the node and replaces its summary, at most 1,024 bytes, in the same step.
    ///
    /// # Errors
    /// As [`complete`](Claim::complete), and [`Refusal::Name`] for a summary that is too long.
    pub fn complete_with(&self, outcome: Outcome, summary: &str) -> Result<Ended, Refusal> {
        self.end(outcome, Some(summary))
    }

    fn end(&self, outcome: Outcome, summary: Option<&str>) -> Result<Ended, Refusal> {
        let table = self.worker.table();
        let by = By::Holder(self.worker.who());
        for _ in 0..TRIES {
            return match table.end(|_| Ok(Some(self.slot)), outcome, |_| Ok(by), Some(self.generation), summary)? {
                End::Ended { .. } => Ok(Ended::Now),
                End::Already => Ok(Ended::Already),
                End::ToRetry { word, attempts } => Ok(Ended::ToRetry { generation: word.generation(), attempts }),
                End::NotReady(word) => match table.waiting(self.slot, word)? {
                    Some(refusal) => Err(refusal),
                    None => continue,
                },
                End::OtherWay(_) | End::OtherGeneration(_) | End::NotHolder(_) | End::Moved => {
                    Err(table.lost(self.slot, self.generation))
                }
            };
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// Hands the node back; answers with its new generation.
    ///
    /// # Errors
    /// The claim is lost.
    pub fn release(&self) -> Result<u64, Refusal> {
        let table = self.worker.table();
        let core = table.core_mut()?;
        let by = By::Holder(self.worker.who());
        for _ in 0..TRIES {
            let seen = core.settled().map_err(|stop| table.refusal(stop))?;
            match core.release(self.slot, by, Some(self.generation), &seen).map_err(|stop| table.refusal(stop))? {
                Back::Went { to, .. } => return Ok(to.generation()),
                Back::Moved => {}
                Back::OtherGeneration(_) | Back::Refused(_) => return Err(table.lost(self.slot, self.generation)),
            }
        }
        Err(Damaged { what: "the graph never stands still" }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::TextRef;
    use crate::{CreateOptions, NodeSpec, Table};

    /// And not after a million looks whether it comes back, as contention.
    #[test]
    fn a_record_that_is_gone_is_told_as_damage_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let (table, _) = Table::open_or_create(dir.path().join("t"), &CreateOptions::default()).unwrap();
        table.upsert(&NodeSpec { name: Some("a".into()), ..NodeSpec::default() }, false).unwrap();
        let worker = table.worker("w").unwrap();
        let claim = worker.claim(NodeId::of_name("a")).unwrap();
        assert_eq!(claim.task().unwrap().name.as_deref(), Some("a"));
        let core = table.core();
        let text = core.in_force().unwrap().text(claim.slot);
        core.fixed.blocks[usize::from(text.head())].text.store(TextRef::NONE, Ordering::Relaxed);
        let refusal = claim.task().unwrap_err();
        assert!(matches!(refusal, Refusal::Damaged(_)), "{refusal}");
    }
}
