//! Changes of the graph: one version takes the place of another.
//!
//! A writer copies the version in force, changes the copy, writes it into a free buffer and swaps the root to it. If
//! somebody else was first, it starts over from the new root. What only adds is in force with that one swap. What may
//! take a node's readiness away, or must find a node as it was, takes two: the first makes the change *pending* and
//! names the steps that have to be done, the second settles it. Whoever wants to write and meets a pending root does
//! the steps itself, each of which can be done any number of times, and settles it: nobody waits for the one who began.
//!
//! | root | means | goes to |
//! |---|---|---|
//! | settled `n`, buffer `a` | `a` is in force | settled `n+1`, `b` (a change without steps); pending `n+1`, `a`, `b` |
//! | pending `n`, `a`, `b` | `a` is in force until the steps of `b` are done | settled `n+1`, `b` (done); settled `n+1`, `a` (called off) |
//!
//! A change is called off when a step finds that it no longer applies: the node to be changed has ended, the holder to
//! be evicted holds something. The verdict is kept in the new version's buffer, decided by one swap, so that all who
//! help settle alike and the writer can read what became of its change.

use crate::derive::{Loop, Plan};
use crate::error::Damaged;
use crate::graph::Graph;
use crate::layout::{STEPS, VERSIONS_MAX, Version};
use crate::standing::{Standing, standings};
use crate::sync::{Ordering, Shared};
use crate::table::claim::Holding;
use crate::table::version::{Derived, step, write_out};
use crate::table::{Core, Stop, TRIES};
use crate::word::{NodeWord, OwnerWord, Phase, RootWord, Step};

/// What became of a change.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// It is in force.
    InForce,
    /// Something it was made from has changed: decide anew.
    Stale,
}

const UNDECIDED: u64 = 0;
const KEEP: u64 = 1;
const CALL_OFF: u64 = 2;

/// What a step found.
enum Did {
    Done,
    CallOff,
    /// The change is settled already.
    Settled,
}

/// A version buffer with this process's mark on it; the mark comes off when it is dropped.
pub(crate) struct Buffer<'m> {
    version: &'m Version,
    i: u8,
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // Release: whoever takes the buffer next sees the root that may name it. Pairs with the Acquire in `take_buffer`.
        self.version.owner.store(OwnerWord::NOBODY, Ordering::Release);
    }
}

impl<'m> Core<'m> {
    /// The root once no change is under way, doing the one that is. For everybody who writes.
    #[inline]
    pub(crate) fn settled_root(&self) -> Result<RootWord, Stop> {
        // Acquire: pairs with the Release swaps of the root below. SeqCst: see `in_force`.
        let root = self.fixed.header.root.load(Ordering::SeqCst);
        if root.is_pending() { self.settle_until_settled(root) } else { Ok(root) }
    }

    #[cold]
    fn settle_until_settled(&self, mut root: RootWord) -> Result<RootWord, Stop> {
        for _ in 0..TRIES {
            if !root.is_pending() {
                return Ok(root);
            }
            self.settle(root)?;
            root = self.fixed.header.root.load(Ordering::Acquire);
        }
        Err(Stop::Contended)
    }

    /// Does the steps of a pending change and settles it.
    fn settle(&self, pending: RootWord) -> Result<(), Stop> {
        let Some(next) = pending.next() else { return Ok(()) };
        let version = self.version(next)?;
        let steps = version.steps.load(Ordering::Acquire);
        let mut found = KEEP;
        for i in 0..steps.min(STEPS as u64) as usize {
            let Some(step) = step(version, i) else {
                return self.damage_unless_moved(pending, "a change of the graph has a step that does not exist");
            };
            match self.take_step(step, pending)? {
                Did::Done => {}
                Did::CallOff => {
                    found = CALL_OFF;
                    break;
                }
                Did::Settled => return Ok(()),
            }
        }
        let undecided = pending.number() << 2 | UNDECIDED;
        // One verdict for everybody: the first. A late helper meets another number in a buffer used again, and loses.
        let verdict =
            version.verdict.compare_exchange(undecided, undecided | found, Ordering::AcqRel, Ordering::Acquire);
        let verdict = match verdict {
            Ok(_) => found,
            Err(seen) if seen >> 2 == pending.number() => seen & 3,
            Err(_) => return self.damage_unless_moved(pending, "a change of the graph has the number of another"),
        };
        let current = if verdict == KEEP { next } else { pending.current() };
        let settled = RootWord::settled(pending.number() + 1, current);
        // Release: a reader that sees the settled root sees the steps done. Pairs with the Acquire in `settled_root` and
        // `in_force`. SeqCst: see `begin`. Lost: somebody else settled it, alike.
        let _ = self.fixed.header.root.compare_exchange(pending, settled, Ordering::SeqCst, Ordering::Relaxed);
        Ok(())
    }

    /// What was read belongs to a buffer used again if the root has moved; if it has not, the bytes are bad.
    fn damage_unless_moved(&self, pending: RootWord, what: &'static str) -> Result<(), Stop> {
        if self.fixed.header.root.load(Ordering::Acquire) == pending { Err(Damaged { what }.into()) } else { Ok(()) }
    }

    /// One step. The word is read first and the root after it: if the root still is the pending one, the word is as it
    /// was during the change, and since no word ever comes back to an old value, the swap from it can only be in time.
    fn take_step(&self, step: Step, pending: RootWord) -> Result<Did, Stop> {
        let root = &self.fixed.header.root;
        for _ in 0..TRIES {
            let did = match step {
                Step::Touch(slot) | Step::Unready(slot) => {
                    let node = self.node(slot)?;
                    let old = node.word.load(Ordering::Acquire);
                    if root.load(Ordering::Acquire) != pending {
                        return Ok(Did::Settled);
                    }
                    let new = match (step, old.state().phase) {
                        (Step::Touch(_), Phase::Ended { .. }) => return Ok(Did::CallOff),
                        (_, Phase::Ended { .. }) => return Ok(Did::Done),
                        _ => old.bumped(),
                    };
                    // A counter that is used up calls the change off; the writer looks for that before it begins.
                    let Some(new) = new else { return Ok(Did::CallOff) };
                    // AcqRel: whoever reads the moved guard afterwards also finds the root pending or later.
                    node.word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
                }
                Step::Become(slot) => match self.become_target(slot, pending)? {
                    Some(did) => return Ok(did),
                    None => false,
                },
                Step::Evict(slot) => {
                    let holder = self.holder(slot)?;
                    let old = holder.word.load(Ordering::Acquire);
                    let holding = self.judge(slot, old)?;
                    if root.load(Ordering::Acquire) != pending {
                        return Ok(Did::Settled);
                    }
                    match holding {
                        Holding::Holds { .. } => return Ok(Did::CallOff),
                        Holding::Idle => {}
                        // Whoever began that claim, or helps it, read the node's word before this; now its swap fails.
                        Holding::UnderWay { node, word } => match word.bumped() {
                            None => return Ok(Did::CallOff),
                            Some(new) => {
                                let word_of = &self.node(node)?.word;
                                if word_of.compare_exchange(word, new, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                                    continue;
                                }
                            }
                        },
                    }
                    holder.word.compare_exchange(old, old.evicted(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
                }
            };
            if did {
                return Ok(Did::Done);
            }
        }
        Err(Stop::Contended)
    }

    /// Sets a node's word to the target of a pending change. `None`: the word has moved meanwhile.
    ///
    /// What the word was is noted first, for readers; see [`seen_word`](Core::seen_word). The note is read before the word
    /// is, so whoever notes an older word than somebody else did fails to: a word never comes back to an old value.
    fn become_target(&self, slot: u16, pending: RootWord) -> Result<Option<Did>, Stop> {
        let (target, before) = self.target(pending, slot)?;
        // Acquire: keeps the look at the word behind this one.
        let noted = before.load(Ordering::Acquire);
        let target = target.load(Ordering::Acquire);
        let word = &self.node(slot)?.word;
        let old = word.load(Ordering::Acquire);
        // Everything was read before the root is looked at: from then on the buffer may be another version's.
        if self.fixed.header.root.load(Ordering::Acquire) != pending {
            return Ok(Some(Did::Settled));
        }
        if old == target {
            return Ok(Some(Did::Done));
        }
        if old.generation() >= target.generation() {
            return Ok(Some(Did::CallOff));
        }
        // Release: pairs with the Acquire of readers that find the word at its target.
        if noted != old && before.compare_exchange(noted, old, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Ok(None);
        }
        // AcqRel: as every swap of a node's word; whoever sees the target sees the note.
        let swap = word.compare_exchange(old, target, Ordering::AcqRel, Ordering::Relaxed);
        Ok(swap.is_ok().then_some(Did::Done))
    }

    /// The target of a pending change for a node's word, [`NodeWord::NEVER`] for none, and what the word was before.
    fn target(&self, pending: RootWord, slot: u16) -> Result<(&'m Shared<NodeWord>, &'m Shared<NodeWord>), Damaged> {
        let version = self.version(pending.next().unwrap_or(0))?;
        let at = usize::from(slot);
        let both = version.targets.get(at).zip(version.befores.get(at));
        both.ok_or(Damaged { what: "a step names a node past the last slot" })
    }

    /// A node's word as a reader sees it under `root`: what a change has set that is not in force yet shows as it was. The
    /// caller must find the root unchanged afterwards.
    pub(crate) fn seen_word(&self, root: RootWord, slot: u16) -> Result<NodeWord, Damaged> {
        // Acquire: pairs with the swaps of a node's word, here with the one in `become_target`.
        let word = self.node(slot)?.word.load(Ordering::Acquire);
        if !root.is_pending() {
            return Ok(word);
        }
        let (target, before) = self.target(root, slot)?;
        let target = target.load(Ordering::Acquire);
        let is_set = target == word && target != NodeWord::NEVER;
        Ok(if is_set { before.load(Ordering::Acquire) } else { word })
    }

    /// Publishes `graph` in place of the version that `base` names. `steps` are what has to be done before it is in
    /// force; none means that it may be in force at once.
    ///
    /// On a loop nothing happens and the loop comes back, for the caller to put into words.
    pub(crate) fn publish(
        &self,
        base: RootWord,
        graph: &Graph,
        steps: &[Step],
        targets: &[(u16, NodeWord)],
    ) -> Result<Published, PublishError> {
        let Some((new, buffer)) = self.begin(base, graph, steps, targets)? else { return Ok(Published::Stale) };
        if new.is_pending() {
            self.settle(new)?;
            // Acquire: pairs with the swap in `settle`. The mark on the buffer keeps it from being used again meanwhile.
            if buffer.version.verdict.load(Ordering::Acquire) != new.number() << 2 | KEEP {
                return Ok(Published::Stale);
            }
        }
        drop(buffer);
        // The change is in force whatever comes of this: hints lost here are found again by whoever looks for work.
        let _ = self.refresh_hints();
        Ok(Published::InForce)
    }

    /// Writes `graph` into a buffer and swaps the root to it, in force or pending. `None`: the root is not `base` any more.
    pub(crate) fn begin(
        &self,
        base: RootWord,
        graph: &Graph,
        steps: &[Step],
        targets: &[(u16, NodeWord)],
    ) -> Result<Option<(RootWord, Buffer<'m>)>, PublishError> {
        let derived = self.derive(graph, &self.words_after(graph, targets)).map_err(PublishError::Loop)?;
        let Some(buffer) = self.take_buffer(base)? else { return Ok(None) };
        let number = base.number() + 1;
        write_out(buffer.version, number, graph, &derived, steps, targets)?;
        let new = match steps {
            [] => RootWord::settled(number, buffer.i),
            _ => RootWord::pending(number, base.current(), buffer.i),
        };
        // Release: whoever reads the root sees the version. Pairs with the Acquire in `in_force` and `settled_root`. SeqCst:
        // of this swap with the looks that follow it, and a hint set under the old root with the look at the root that
        // follows it, one sees the other; likewise whoever is about to sleep.
        let swap = self.fixed.header.root.compare_exchange(base, new, Ordering::SeqCst, Ordering::Relaxed);
        Ok(swap.is_ok().then_some((new, buffer)))
    }

    /// What follows from a graph whose nodes have these words.
    fn derive(&self, graph: &Graph, words: &[NodeWord]) -> Result<Derived, Loop> {
        let mut arrays = graph.arrays();
        let topological = arrays.view().topological()?;
        arrays.ended = standings(graph, &topological, words).into_iter().map(Standing::is_over).collect();
        let waiting_below = arrays.view().chains(&topological);
        let plan = Plan { topological, waiting_below };
        let order = arrays.view().order(&plan);
        let children = graph.children_bits(&arrays);
        Ok(Derived { plan, order, ended: arrays.ended, child_start: arrays.child_start, children })
    }

    /// Publishes the version in force once more if the chains it was ordered by are no longer those of the graph: a node
    /// has ended before its dependencies, or was skipped, so that less waits above. In-order ends change no chain of a
    /// live node.
    pub(crate) fn rerank(&self) -> Result<(), Stop> {
        for _ in 0..TRIES {
            self.settled_root()?;
            let (root, graph) = self.load()?;
            if root.is_pending() {
                continue;
            }
            let looped = Damaged { what: "the version in force has a loop" };
            let derived = self.derive(&graph, &self.words(graph.nodes.len())).map_err(|_| looped)?;
            let version = self.version(root.current())?;
            let same = derived.plan.waiting_below.iter().zip(&version.nodes).zip(&derived.ended);
            if same.into_iter().all(|((now, then), ended)| *ended || *now == then.waiting_below.load(Ordering::Relaxed))
            {
                return Ok(());
            }
            match self.publish(root, &graph, &[], &[]) {
                Ok(Published::InForce) => return Ok(()),
                Ok(Published::Stale) => {}
                Err(PublishError::Stop(stop)) => return Err(stop),
                Err(PublishError::Loop(_)) => return Err(Damaged { what: "the version in force has a loop" }.into()),
            }
        }
        Err(Stop::Contended)
    }

    /// The words of a graph's nodes as they will be once the change is in force: what it reopens has to be done again, and
    /// counts in the chains above it.
    fn words_after(&self, graph: &Graph, targets: &[(u16, NodeWord)]) -> Vec<NodeWord> {
        let mut words = self.words(graph.nodes.len());
        for &(slot, target) in targets {
            if let Some(word) = words.get_mut(usize::from(slot)) {
                *word = target;
            }
        }
        words
    }

    /// The words of the first `high` nodes.
    fn words(&self, high: usize) -> Vec<NodeWord> {
        self.fixed.nodes.iter().take(high).map(|n| n.word.load(Ordering::Acquire)).collect()
    }

    /// Puts this process's mark on a buffer that the root does not name and no living process has marked; the one
    /// written longest ago, so that slow readers are overtaken last. `None`: the root is not `base` any more.
    ///
    /// There are as many buffers as there were ever writers at once, and two: when all are marked the file grows by one.
    fn take_buffer(&self, base: RootWord) -> Result<Option<Buffer<'m>>, Stop> {
        for _ in 0..TRIES {
            if self.fixed.header.root.load(Ordering::Acquire) != base {
                return Ok(None);
            }
            let count = self.version_count()?;
            let Some((i, version, owner)) = self.oldest_free(count, base)? else {
                self.grow(count)?;
                continue;
            };
            // Acquire: pairs with the Release in `Buffer::drop`, so that the root read next is the one it published.
            if version.owner.compare_exchange(owner, self.me()?, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            let buffer = Buffer { version, i };
            if self.fixed.header.root.load(Ordering::Acquire) == base {
                // `base` is settled and does not name the buffer, and nobody but its owner can make the root name it.
                return Ok(Some(buffer));
            }
        }
        Err(Stop::Contended)
    }

    fn oldest_free(&self, count: usize, base: RootWord) -> Result<Option<(u8, &'m Version, OwnerWord)>, Stop> {
        let mut oldest: Option<(u64, u8, &'m Version, OwnerWord)> = None;
        for i in (0..count.min(VERSIONS_MAX)).map(|i| i as u8).filter(|&i| i != base.current()) {
            let version = self.version(i)?;
            let owner = version.owner.load(Ordering::Acquire);
            let stamp = version.stamp.load(Ordering::Relaxed);
            let older = oldest.as_ref().is_none_or(|o| stamp < o.0);
            if older && (owner == OwnerWord::NOBODY || (owner != self.me()? && crate::process::is_gone(owner))) {
                oldest = Some((stamp, i, version, owner));
            }
        }
        Ok(oldest.map(|(_, i, version, owner)| (i, version, owner)))
    }

    /// Buffers that the file has room for.
    pub(crate) fn version_count(&self) -> Result<usize, Damaged> {
        let count = self.fixed.header.versions.load(Ordering::Acquire);
        usize::try_from(count)
            .ok()
            .filter(|&count| (1..=VERSIONS_MAX).contains(&count))
            .ok_or(Damaged { what: "the number of version buffers is out of range" })
    }

    /// Gives the file room for one more buffer: first the blocks, then the count, so that nobody touches what is not
    /// there. Two that grow at once reserve the same room and count it once.
    pub(crate) fn grow(&self, count: usize) -> Result<(), Stop> {
        #[cfg(not(tenure_loom))]
        let reserved = self.region.reserve_version(count);
        #[cfg(tenure_loom)]
        let reserved = count < self.versions.len();
        if !reserved {
            return Err(Stop::NoRoom { what: "versions of the graph written at once", limit: count as u64 });
        }
        let count = count as u64;
        let versions: &Shared<u64> = &self.fixed.header.versions;
        // Release: pairs with the Acquire in `version_count`. Lost: somebody else counted this buffer.
        let _ = versions.compare_exchange(count, count + 1, Ordering::AcqRel, Ordering::Relaxed);
        Ok(())
    }

    /// Buffers that a living process has marked.
    pub(crate) fn count_marked_versions(&self) -> Result<u32, Stop> {
        let mut marked = 0;
        for i in 0..self.version_count()? {
            let owner = self.version(i as u8)?.owner.load(Ordering::Acquire);
            marked += u32::from(owner != OwnerWord::NOBODY && !crate::process::is_gone(owner));
        }
        Ok(marked)
    }
}

/// Why a version was not published.
pub(crate) enum PublishError {
    Stop(Stop),
    Loop(Loop),
}

impl From<Stop> for PublishError {
    fn from(stop: Stop) -> PublishError {
        PublishError::Stop(stop)
    }
}
