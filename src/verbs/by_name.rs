//! Renew, release, complete, reclaim, archive for callers that kept a name and a generation instead of a [`Claim`].
//!
//! [`Claim`]: crate::Claim

use crate::clock;
use crate::error::Refusal;
use crate::id::NodeId;
use crate::node::{Completion, Ended, Granted, Outcome, Reclaimed, Seen};
use crate::record::Record;
use crate::sync::Ordering;
use crate::table::finish::{Back, By, End};
use crate::table::lease::{Lease, Taken};
use crate::table::text::Draft;
use crate::table::version::InForce;
use crate::table::{Core, TRIES};
use crate::verbs::Table;
use crate::verbs::table::check_lease;
use crate::word::{NodeWord, TextOf};

/// Inside this file: the node has moved while a refusal was put into words.
const MOVED: u32 = 0;

impl Table {
    /// The holder is alive: its lease runs from now, with a new length if one is given.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`]; [`Refusal::GenerationMismatch`]; [`Refusal::NotHolder`], which says who is.
    pub fn renew(
        &self,
        node: NodeId,
        holder: &str,
        generation: Option<u64>,
        lease_ms: Option<u64>,
    ) -> Result<Granted, Refusal> {
        let core = self.core_mut()?;
        let stopped = |stop| self.refusal(stop);
        lease_ms.map(check_lease).transpose()?;
        for _ in 0..TRIES {
            let seen = core.settled().map_err(stopped)?;
            let me = self.find_holder(holder)?;
            let Some(slot) = self.slot_in(&seen, node)? else { continue };
            let word = core.node(slot)?.word.load(Ordering::Acquire);
            let known = me.filter(|&me| seen.knows(me));
            if core.fixed.header.root.load(Ordering::Acquire) != seen.root || !seen.is_whole() {
                continue;
            }
            if generation.is_some_and(|wanted| wanted != word.generation()) {
                return Err(self.mismatch(slot, generation, word));
            }
            if known.is_none() || word.holder() != known.map(|me| me.slot) {
                match self.not_holder(slot, holder, word) {
                    Err(Refusal::Contended { tries: MOVED }) => continue,
                    refused => return Err(refused?),
                }
            }
            let lease_ms = match lease_ms {
                Some(lease_ms) => lease_ms,
                None => core.length_ms(slot, word.generation())?,
            };
            let lease = Lease { lease_ms, now_ms: clock::lease_now_ms() };
            if core.renew_lease(slot, word, lease).map_err(stopped)? {
                let name = self.name_in_force(slot)?;
                let lease_left_ms = lease_ms as i64;
                return Ok(Granted { id: node, name, generation: word.generation(), lease_left_ms, resumed: false });
            }
            // Closed or gone: whoever closed it opens the node, and this finds out who has it then.
            core.reclaim(slot, lease.now_ms, None).map_err(stopped)?;
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// Hands a claim back; answers with the new generation.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`], [`Refusal::GenerationMismatch`], [`Refusal::NotHolder`].
    pub fn release(&self, node: NodeId, holder: &str, generation: Option<u64>) -> Result<u64, Refusal> {
        self.decided(|| self.try_release(node, holder, generation))
    }

    fn try_release(&self, node: NodeId, holder: &str, generation: Option<u64>) -> Result<u64, Refusal> {
        let (slot, back) = self.back(node, |core, slot, seen| {
            core.release(slot, self.by(holder, seen)?, generation, seen).map_err(|stop| self.refusal(stop))
        })?;
        match back {
            Back::Went { to, .. } => Ok(to.generation()),
            Back::OtherGeneration(word) => Err(self.mismatch(slot, generation, word)),
            Back::Refused(word) => Err(self.not_holder(slot, holder, word)?),
            Back::Moved => Err(Refusal::Contended { tries: TRIES }),
        }
    }

    /// Hands a claim back whoever holds it, and says whom it was taken from.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`], [`Refusal::GenerationMismatch`]; [`Refusal::NotHeld`] when nobody holds it.
    pub fn release_forced(&self, node: NodeId, generation: Option<u64>) -> Result<Reclaimed, Refusal> {
        self.decided(|| self.try_release_forced(node, generation))
    }

    fn try_release_forced(&self, node: NodeId, generation: Option<u64>) -> Result<Reclaimed, Refusal> {
        let mut quiet_ms = 0;
        let (slot, back) = self.back(node, |core, slot, seen| {
            let stopped = |stop| self.refusal(stop);
            quiet_ms = core.quiet_ms(slot, clock::lease_now_ms()).map_err(stopped)?;
            core.release(slot, By::Force, generation, seen).map_err(stopped)
        })?;
        match back {
            Back::Went { from, to } => {
                let holder = from.holder().unwrap_or(0);
                self.reclaimed(Taken { slot, holder, generation: to.generation(), quiet_ms })
            }
            Back::OtherGeneration(word) => Err(self.mismatch(slot, generation, word)),
            Back::Refused(word) => Err(Refusal::NotHeld {
                node: self.label(slot),
                status: self.seen_now(slot, word)?,
                generation: word.generation(),
            }),
            Back::Moved => Err(Refusal::Contended { tries: TRIES }),
        }
    }

    /// Ends a node.
    ///
    /// A held node is ended by its holder: it names itself, or presents the generation, which only the holder was given.
    /// A node that nobody holds can be ended by anybody.
    ///
    /// # Errors
    /// In this order: [`Refusal::NoSuchNode`]; [`Refusal::FenceRequired`]; [`Refusal::GenerationMismatch`];
    /// [`Refusal::Ended`] when it ended another way; [`Refusal::Held`] or [`Refusal::NotHolder`]; [`Refusal::NotReady`]
    /// for `Done` while a dependency is not done.
    pub fn complete(&self, node: NodeId, completion: &Completion) -> Result<Ended, Refusal> {
        self.decided(|| self.try_complete(node, completion))
    }

    fn try_complete(&self, node: NodeId, completion: &Completion) -> Result<Ended, Refusal> {
        let Completion { outcome, generation, .. } = *completion;
        let by =
            |seen: &InForce<'_>| completion.holder.as_deref().map_or(Ok(By::Anyone), |holder| self.by(holder, seen));
        let mut slot = 0;
        let find = |seen: &InForce<'_>| {
            let found = self.slot_in(seen, node)?;
            if found.is_some() && generation.is_none() && self.requires_fence() {
                return Err(Refusal::FenceRequired { node: self.label(found.unwrap_or(0)) });
            }
            slot = found.unwrap_or(slot);
            Ok(found)
        };
        match self.end(find, outcome, by, generation, completion.summary.as_deref())? {
            End::Ended { .. } => Ok(Ended::Now),
            End::Already => Ok(Ended::Already),
            End::ToRetry { word, attempts } => Ok(Ended::ToRetry { generation: word.generation(), attempts }),
            End::OtherGeneration(word) => Err(self.mismatch(slot, generation, word)),
            End::OtherWay(word) => {
                let status = word.status().seen(Seen::Ready);
                Err(Refusal::Ended { node: self.label(slot), status, generation: word.generation() })
            }
            End::NotHolder(word) => Err(match (&completion.holder, word.holder()) {
                (None, Some(held_by)) => Refusal::Held {
                    node: self.label(slot),
                    holder: self.holder_name(held_by)?,
                    generation: word.generation(),
                },
                (Some(holder), _) => self.not_holder(slot, holder, word)?,
                // Nobody holds it and nobody claims to: only the version can have changed since.
                (None, None) => Refusal::Contended { tries: MOVED },
            }),
            End::NotReady(word) => Err(self.waiting(slot, word)?.unwrap_or(Refusal::Contended { tries: MOVED })),
            End::Moved => Err(Refusal::Contended { tries: TRIES }),
        }
    }

    /// Opens again every claim whose lease has run out, or that has been quiet for `quiet_ms`; the longest quiet first.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn reclaim(&self, quiet_ms: Option<u64>) -> Result<Vec<Reclaimed>, Refusal> {
        let core = self.core_mut()?;
        let taken = core.reclaim_all(clock::lease_now_ms(), quiet_ms).map_err(|stop| self.refusal(stop))?;
        taken.into_iter().map(|one| self.reclaimed(one)).collect()
    }

    /// Hides an ended node from ordinary lists; answers with its generation. It is the first to go when room is needed.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`], [`Refusal::NotEnded`], [`Refusal::Exhausted`].
    pub fn archive(&self, node: NodeId) -> Result<u64, Refusal> {
        self.decided(|| self.hide(node, true))
    }

    /// Shows an archived node again; answers with its generation.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`], [`Refusal::NotEnded`], [`Refusal::Exhausted`].
    pub fn unarchive(&self, node: NodeId) -> Result<u64, Refusal> {
        self.decided(|| self.hide(node, false))
    }

    fn hide(&self, node: NodeId, hide: bool) -> Result<u64, Refusal> {
        let (slot, back) =
            self.back(node, |core, slot, seen| core.archive(slot, hide, seen).map_err(|stop| self.refusal(stop)))?;
        match back {
            Back::Went { to, .. } => Ok(to.generation()),
            Back::Refused(word) => {
                Err(Refusal::NotEnded { node: self.label(slot), status: self.seen_now(slot, word)? })
            }
            Back::OtherGeneration(_) | Back::Moved => Err(Refusal::Contended { tries: TRIES }),
        }
    }

    /// A transition of the node with this id, tried again while the graph changes underneath it.
    fn back(
        &self,
        node: NodeId,
        mut go: impl FnMut(&Core<'_>, u16, &InForce<'_>) -> Result<Back, Refusal>,
    ) -> Result<(u16, Back), Refusal> {
        let core = self.core_mut()?;
        for _ in 0..TRIES {
            let seen = core.settled().map_err(|stop| self.refusal(stop))?;
            let Some(slot) = self.slot_in(&seen, node)? else { continue };
            match go(&core, slot, &seen)? {
                Back::Moved => {}
                back => return Ok((slot, back)),
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// Ends the node that `find` names, with a new record when there is a new summary.
    pub(crate) fn end(
        &self,
        mut find: impl FnMut(&InForce<'_>) -> Result<Option<u16>, Refusal>,
        outcome: Outcome,
        by: impl Fn(&InForce<'_>) -> Result<By, Refusal>,
        wanted: Option<u64>,
        summary: Option<&str>,
    ) -> Result<End, Refusal> {
        let core = self.core_mut()?;
        let stopped = |stop| self.refusal(stop);
        if let Some(summary) = summary {
            Record { summary: summary.to_owned(), ..Record::default() }.check()?;
        }
        for _ in 0..TRIES {
            let seen = core.settled().map_err(stopped)?;
            let Some(slot) = find(&seen)? else { continue };
            let text = match summary {
                None => None,
                Some(summary) => match self.record_with(summary, slot, &seen)? {
                    Some(text) => Some(text),
                    None => continue,
                },
            };
            let head = text.as_ref().map(|&(_, head)| head);
            match core.try_end(slot, outcome, by(&seen)?, wanted, head, &seen).map_err(stopped)? {
                End::Moved => {}
                End::Ended { out_of_order: true } => {
                    // It has ended whatever comes of this; the order is mended by the next look through the leases.
                    let _ = core.rerank();
                    return Ok(End::Ended { out_of_order: true });
                }
                end => return Ok(end),
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// The record of `slot` with another summary, written but not referred to yet, and its head block. `None`: the version
    /// was overwritten, look again.
    #[cold]
    fn record_with(&self, summary: &str, slot: u16, seen: &InForce<'_>) -> Result<Option<(Draft<'_>, u16)>, Refusal> {
        let core = self.core();
        let Some(record) = core.read_text(seen.text(slot))?.and_then(|bytes| Record::decode(&bytes)) else {
            self.look_again(seen.root)?;
            return Ok(None);
        };
        let record = Record { summary: summary.to_owned(), ..record };
        let mut draft = core.draft();
        let text = draft.write(TextOf::Node(slot), &record.encode()).map_err(|stop| self.refusal(stop))?;
        Ok(Some((draft, text.head())))
    }

    /// The slot of an id in the version in force. `None`: it was overwritten, look again.
    fn slot_in(&self, seen: &InForce<'_>, node: NodeId) -> Result<Option<u16>, Refusal> {
        let slot = seen.slot_of(node);
        if !seen.is_whole() {
            return Ok(None);
        }
        slot.map(Some).ok_or_else(|| Refusal::NoSuchNode { node: node.to_string() })
    }

    /// What a holder's name stands for in the version that the transition decides from. The transition looks whether the
    /// version still is in force after it has read the node's word.
    fn by(&self, holder: &str, seen: &InForce<'_>) -> Result<By, Refusal> {
        Ok(self.find_holder(holder)?.filter(|&who| seen.knows(who)).map_or(By::Stranger, By::Holder))
    }

    pub(crate) fn granted(&self, slot: u16, claimed: NodeWord, resumed: bool) -> Result<Granted, Refusal> {
        let core = self.core();
        for _ in 0..TRIES {
            let root = core.fixed.header.root.load(Ordering::Acquire);
            let node = core.load_node(slot).map_err(|stop| self.refusal(stop))?;
            let now = core.node(slot)?.word.load(Ordering::Acquire);
            if now.generation() != claimed.generation() || now.holder() != claimed.holder() {
                return Err(self.lost(slot, claimed.generation()));
            }
            let record = node.map_or(Ok(None), |node| self.record_of(&node))?;
            let (Some(node), Some(record)) = (node, record) else {
                self.look_again(root)?;
                continue;
            };
            return Ok(Granted {
                id: node.id,
                name: (!record.name.is_empty()).then_some(record.name),
                generation: now.generation(),
                lease_left_ms: self.lease_left_ms(slot, now)?,
                resumed,
            });
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    fn reclaimed(&self, taken: Taken) -> Result<Reclaimed, Refusal> {
        let core = self.core();
        let (_, graph) = core.load().map_err(|stop| self.refusal(stop))?;
        let name = self.record_in(&graph, taken.slot)?.map(|r| r.name).filter(|name| !name.is_empty());
        Ok(Reclaimed {
            id: graph.node(taken.slot).map_or(NodeId(0), |n| n.id),
            name,
            holder: self.holder_name(taken.holder)?,
            generation: taken.generation,
            quiet_ms: taken.quiet_ms,
        })
    }

    /// The fence did not match.
    #[cold]
    pub(crate) fn mismatch(&self, slot: u16, expected: Option<u64>, word: NodeWord) -> Refusal {
        Refusal::GenerationMismatch {
            node: self.label(slot),
            expected: expected.unwrap_or(0),
            found: word.generation(),
            held_by: word.holder().and_then(|holder| self.holder_name(holder).ok()),
        }
    }

    /// The claim at `generation` is over.
    #[cold]
    pub(crate) fn lost(&self, slot: u16, generation: u64) -> Refusal {
        match self.core().node(slot) {
            Ok(node) => self.mismatch(slot, Some(generation), node.word.load(Ordering::Acquire)),
            Err(damaged) => damaged.into(),
        }
    }

    fn not_holder(&self, slot: u16, holder: &str, word: NodeWord) -> Result<Refusal, Refusal> {
        Ok(Refusal::NotHolder {
            node: self.label(slot),
            holder: holder.to_owned(),
            held_by: word.holder().map(|holder| self.holder_name(holder)).transpose()?,
            status: self.seen_now(slot, word)?,
            generation: word.generation(),
        })
    }

    /// What a reader sees of a node in the state that `word` says. For an open one that follows from its dependencies: if it
    /// has left that state by the time they were looked at, the two never were so together, and the verb is to be decided
    /// anew; see `decided`.
    fn seen_now(&self, slot: u16, word: NodeWord) -> Result<Seen, Refusal> {
        if !word.is_open() {
            return Ok(word.status().seen(Seen::Ready));
        }
        let cut = self.cut()?;
        let now = self.core().node(slot)?.word.load(Ordering::Acquire);
        if now != word || cut.words.get(usize::from(slot)) != Some(&word) {
            return Err(Refusal::Contended { tries: MOVED });
        }
        Ok(cut.seen(slot))
    }

    /// Decides a verb, and once more whenever a refusal of it could not be put into words that were true at one moment.
    fn decided<T>(&self, verb: impl Fn() -> Result<T, Refusal>) -> Result<T, Refusal> {
        for _ in 0..TRIES {
            match verb() {
                Err(Refusal::Contended { tries: MOVED }) => {}
                decided => return decided,
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// The dependencies that keep a node from being done, whose word was this one. `None`: none does by now, or the node is not
    /// what it was, so the verb is to be decided anew.
    #[cold]
    pub(crate) fn waiting(&self, slot: u16, word: NodeWord) -> Result<Option<Refusal>, Refusal> {
        let cut = self.cut()?;
        if cut.words.get(usize::from(slot)) != Some(&word) {
            return Ok(None);
        }
        let label = |slot: u16| self.label_in(&cut.graph, slot);
        if let Some(by) = cut.skipped_by(slot) {
            return Ok(Some(Refusal::Skipped { node: label(slot), by: label(by) }));
        }
        let waits_for: Vec<String> = cut.unsatisfied(slot).take(8).map(|e| label(e.parent)).collect();
        if waits_for.is_empty() {
            return Ok(None);
        }
        Ok(Some(Refusal::NotReady { node: label(slot), status: cut.seen(slot), waits_for }))
    }
}
