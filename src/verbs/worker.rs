//! A holder's handle: claims work under one name.

use std::sync::Arc;

use crate::clock;
use crate::error::{NameError, Refusal};
use crate::id::{NodeId, check_name};
use crate::node::{ClaimOptions, Seen};
use crate::record::name_hash;
use crate::sync::{Bits, LocalWord, Ordering};
use crate::table::claim::{Attempt, Holding, Who};
use crate::table::lease::{Lease, SCAN_MS_MAX};
use crate::table::next::{Next, Offer};
use crate::table::version::InForce;
use crate::table::wait::{SLEEP_MS_MAX, waiter_bits};
use crate::table::{Core, TRIES};
use crate::verbs::table::check_lease;
use crate::verbs::{Claim, Table};
use crate::word::{NodeWord, OwnerWord, Phase, TextOf, TextRef};

/// Answers whether work may start on a workspace surface, named by its key.
pub type Gate = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How long a waiter sleeps at most while a ready node names a surface, in milliseconds: the table does not know when a
/// surface comes free.
const GATE_MS_MAX: u64 = 1_000;

/// A holder's handle on a table.
///
/// A holder has at most one claim at a time, however many handles, threads or processes use its name.
pub struct Worker {
    table: Table,
    holder: String,
    /// The holder's name as the table knows it; changes when the name was evicted while it held nothing.
    name: LocalWord,
    roles: Vec<u64>,
    gate: Option<Gate>,
    lease_ms: u64,
    /// The process that its claims stand and fall with.
    process: Option<OwnerWord>,
}

impl Table {
    /// A worker called `holder`, at most 64 bytes; registers the name if it is new.
    ///
    /// # Errors
    /// [`Refusal::Name`]; [`Refusal::NoRoom`] when 4,095 other holders have a live claim each.
    pub fn worker(&self, holder: &str) -> Result<Worker, Refusal> {
        let who = self.register(holder)?;
        let lease_ms = self.default_lease_ms();
        let name = LocalWord::new(who.name.bits());
        let (table, holder) = (self.clone(), holder.to_owned());
        Ok(Worker { table, holder, name, roles: Vec::new(), gate: None, lease_ms, process: None })
    }
}

impl Worker {
    /// Offers roles: it is given nodes that name one of them, or none. A worker without roles is given only nodes
    /// without.
    ///
    /// # Errors
    /// [`Refusal::Name`] for a role that no node can have.
    pub fn with_roles<S: AsRef<str>>(mut self, roles: impl IntoIterator<Item = S>) -> Result<Worker, Refusal> {
        for role in roles {
            let role = role.as_ref();
            if role.is_empty() {
                return Err(NameError::Empty { field: "role" }.into());
            }
            check_role(role)?;
            self.roles.push(name_hash(role));
        }
        Ok(self)
    }

    /// Lease of its claims in milliseconds, instead of the table's.
    ///
    /// # Errors
    /// [`Refusal::Name`] for a length that the table cannot keep.
    pub fn with_lease_ms(mut self, lease_ms: u64) -> Result<Worker, Refusal> {
        check_lease(lease_ms)?;
        self.lease_ms = lease_ms;
        Ok(self)
    }

    /// Asks this gate about nodes that name a surface, while it looks for the next node; those for which it says no, and
    /// without a gate all of them, are passed over. [`claim`](Worker::claim) does not ask.
    pub fn with_gate(mut self, gate: Gate) -> Worker {
        self.gate = Some(gate);
        self
    }

    fn offer(&self) -> Offer<'_> {
        Offer { roles: &self.roles, gate: self.gate.as_deref().map(|gate| gate as _) }
    }

    /// Lets its claims stand and fall with this process: when it is gone, their leases count as run out.
    pub fn tied_to_this_process(mut self) -> Worker {
        self.process = crate::process::this_process();
        self
    }

    /// The holder's name.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// The table it works on.
    pub fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn who(&self) -> Who {
        let name = TextRef::from_bits(self.name.load(Ordering::Relaxed));
        let (TextOf::Holder(slot) | TextOf::Node(slot) | TextOf::Group(slot)) = name.of();
        Who { slot, name }
    }

    /// Its name was evicted while it held nothing: takes another slot.
    #[cold]
    fn register_again(&self) -> Result<(), Refusal> {
        let who = self.table.register(&self.holder)?;
        self.name.store(who.name.bits(), Ordering::Relaxed);
        Ok(())
    }

    fn lease(&self, options: &ClaimOptions) -> Result<Lease, Refusal> {
        let lease_ms = options.lease_ms.unwrap_or(self.lease_ms);
        check_lease(lease_ms)?;
        Ok(Lease { lease_ms, now_ms: clock::lease_now_ms() })
    }

    /// Claims one node.
    ///
    /// # Errors
    /// [`Refusal::NoSuchNode`], [`Refusal::Busy`], [`Refusal::Held`], [`Refusal::NotReady`], [`Refusal::Ended`].
    pub fn claim(&self, node: NodeId) -> Result<Claim<'_>, Refusal> {
        self.claim_with(node, &ClaimOptions::default())
    }

    /// Claims the ready node with the most work waiting below it, of those that fit its roles.
    ///
    /// # Errors
    /// [`Refusal::NothingReady`]; [`Refusal::Busy`] when it has a claim already.
    pub fn claim_next(&self) -> Result<Claim<'_>, Refusal> {
        self.claim_next_with(&ClaimOptions::default())
    }

    /// Claims the next node, with options; a generation in them is not looked at.
    ///
    /// # Errors
    /// As [`claim_next`](Worker::claim_next).
    pub fn claim_next_with(&self, options: &ClaimOptions) -> Result<Claim<'_>, Refusal> {
        let core = self.table.core_mut()?;
        let lease = self.lease(options)?;
        for _ in 0..TRIES {
            match core.claim_next(self.who(), self.offer(), lease).map_err(|stop| self.table.refusal(stop))? {
                Next::Won { slot, generation } => return self.won(slot, generation, options),
                Next::Busy { node, generation } => {
                    if let Some(claim) = self.standing(node, generation, lease, options.resume)? {
                        return Ok(claim);
                    }
                }
                Next::Nothing => return Err(Refusal::NothingReady),
                Next::NameGone => self.register_again()?,
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// Claims the next node, and sleeps until there is one: at most `wait_ms` milliseconds, or for as long as it takes.
    ///
    /// It wakes when a node becomes ready, and when a lease runs out; waiting costs no processor time.
    ///
    /// # Errors
    /// [`Refusal::NothingReady`] when the time is over; otherwise as [`claim_next`](Worker::claim_next).
    pub fn wait_claim_next(&self, options: &ClaimOptions, wait_ms: Option<u64>) -> Result<Claim<'_>, Refusal> {
        self.wait_claim_next_unless(options, wait_ms, || false)
    }

    /// As [`wait_claim_next`](Worker::wait_claim_next), and gives up, as if the time were over, once `is_over` says so. It is
    /// asked before each look; [`Table::wake_all`] makes every sleeper look.
    ///
    /// # Errors
    /// As [`wait_claim_next`](Worker::wait_claim_next).
    pub fn wait_claim_next_unless(
        &self,
        options: &ClaimOptions,
        wait_ms: Option<u64>,
        is_over: impl Fn() -> bool,
    ) -> Result<Claim<'_>, Refusal> {
        let core = self.table.core_mut()?;
        let deadline_ms = wait_ms.map_or(u64::MAX, |wait_ms| clock::lease_now_ms().saturating_add(wait_ms));
        let bits = waiter_bits(&self.roles);
        let mut watch = Watch { core, is_mine: false };
        let mut passed_on = Vec::new();
        let mut ring_ms = 0;
        loop {
            let seen = core.prepare_to_sleep();
            // After the bell was read: whoever makes it over rings afterwards.
            if is_over() {
                core.ring(0);
                return Err(Refusal::NothingReady);
            }
            match self.claim_next_with(options) {
                Err(Refusal::NothingReady) => {}
                Ok(claim) => return Ok(claim),
                Err(refusal) => {
                    // Woken for a node that somebody else may want.
                    core.ring(0);
                    return Err(refusal);
                }
            }
            core.pass_on(&self.roles, &mut passed_on).map_err(|stop| self.table.refusal(stop))?;
            let now_ms = clock::lease_now_ms();
            if now_ms >= deadline_ms {
                return Err(Refusal::NothingReady);
            }
            watch.is_mine = watch.is_mine || core.become_watcher();
            if watch.is_mine && now_ms >= ring_ms {
                // Not at every turn: a ring moves the bell, over which this thread is about to fall asleep too.
                ring_ms = now_ms + SCAN_MS_MAX;
                core.ring_for_others(&self.roles).map_err(|stop| self.table.refusal(stop))?;
            }
            let wake_ms = match watch.is_mine {
                true => core.next_scan_ms().max(now_ms + 1),
                false => now_ms.saturating_add(SLEEP_MS_MAX),
            };
            let gated = self.gate.is_some() && core.has_gated_hint().map_err(|stop| self.table.refusal(stop))?;
            let wake_ms = if gated { wake_ms.min(now_ms.saturating_add(GATE_MS_MAX)) } else { wake_ms };
            core.sleep(seen, bits, wake_ms.min(deadline_ms));
        }
    }

    /// Claims one node, with options. With `resume` the answer is the claim that the holder has, if it has one, whatever
    /// node it is of: a caller that was killed between its claim and the answer asks again and goes on from there.
    ///
    /// # Errors
    /// As [`claim`](Worker::claim), and [`Refusal::GenerationMismatch`].
    pub fn claim_with(&self, node: NodeId, options: &ClaimOptions) -> Result<Claim<'_>, Refusal> {
        let core = self.table.core_mut()?;
        let stopped = |stop| self.table.refusal(stop);
        let lease = self.lease(options)?;
        for _ in 0..TRIES {
            let seen = core.settled().map_err(stopped)?;
            let Some(slot) = seen.slot_of(node) else {
                if seen.is_whole() {
                    return Err(Refusal::NoSuchNode { node: node.to_string() });
                }
                continue;
            };
            // A lease that has run out holds nobody up.
            core.reclaim(slot, lease.now_ms, None).map_err(stopped)?;
            match core.try_claim(self.who(), slot, options.generation, lease, &seen).map_err(stopped)? {
                Attempt::Won { generation } => return self.won(slot, generation, options),
                Attempt::Busy { node, generation } => match self.standing(node, generation, lease, options.resume)? {
                    Some(claim) => return Ok(claim),
                    None => continue,
                },
                Attempt::NotOpen(word) if word.holder() == Some(self.who().slot) => {
                    match self.standing(slot, word.generation(), lease, options.resume)? {
                        Some(claim) => return Ok(claim),
                        None => continue,
                    }
                }
                Attempt::OtherGeneration(word) => return Err(self.table.mismatch(slot, options.generation, word)),
                Attempt::NotOpen(word) => return Err(self.not_open(slot, word)?),
                Attempt::NotReady => match self.not_ready(slot, &seen)? {
                    Some(refusal) => return Err(refusal),
                    None => continue,
                },
                Attempt::NotBefore { until_ms } => {
                    let left_ms = until_ms.saturating_sub(lease.now_ms);
                    return Err(Refusal::NotBefore { node: self.table.label(slot), left_ms });
                }
                Attempt::GroupFull => return Err(self.group_full(slot)?),
                Attempt::NameGone => self.register_again()?,
                Attempt::Moved => {}
            }
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// The claim that this holder has, if any.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn current(&self) -> Result<Option<Claim<'_>>, Refusal> {
        let core = self.table.core_mut()?;
        let Some(who) = self.table.find_holder(&self.holder)? else { return Ok(None) };
        self.name.store(who.name.bits(), Ordering::Relaxed);
        let holding = core.holding(who.slot)?;
        // Looked at last: a name that is there now was there when the words were read.
        let seen = core.settled().map_err(|stop| self.table.refusal(stop))?;
        Ok(match holding {
            Holding::Holds { node, generation } if seen.knows(who) => Some(Claim::new(self, node, generation, true)),
            Holding::Holds { .. } | Holding::Idle | Holding::UnderWay { .. } => None,
        })
    }

    /// A fresh claim, with the process that it stands and falls with noted.
    #[inline]
    fn won(&self, slot: u16, generation: u64, options: &ClaimOptions) -> Result<Claim<'_>, Refusal> {
        if let Some(process) = options.pid.and_then(crate::process::process).or(self.process) {
            let core = self.table.core_mut()?;
            core.name_process(slot, generation, process).map_err(|stop| self.table.refusal(stop))?;
        }
        Ok(Claim::new(self, slot, generation, false))
    }

    /// What it means that the holder has a claim: `None` when its lease has run out, and it has it no longer. With `resume`
    /// the answer is that claim, its lease running from now, since the caller is evidently alive.
    #[cold]
    fn standing(&self, slot: u16, generation: u64, lease: Lease, resume: bool) -> Result<Option<Claim<'_>>, Refusal> {
        let core = self.table.core_mut()?;
        let stopped = |stop| self.table.refusal(stop);
        core.reclaim(slot, lease.now_ms, None).map_err(stopped)?;
        let word = core.node(slot)?.word.load(Ordering::Acquire);
        if word.generation() != generation || word.holder() != Some(self.who().slot) {
            return Ok(None);
        }
        if !resume {
            return Err(self.busy(slot, generation));
        }
        if !core.renew_lease(slot, word, lease).map_err(stopped)? {
            return Ok(None);
        }
        // Looked at last: a name that is there now was there when the words were read.
        let seen = core.settled().map_err(stopped)?;
        Ok(seen.knows(self.who()).then(|| Claim::new(self, slot, generation, true)))
    }

    fn busy(&self, node: u16, generation: u64) -> Refusal {
        Refusal::Busy { holder: self.holder.clone(), node: self.table.label(node), generation }
    }

    fn not_open(&self, slot: u16, word: NodeWord) -> Result<Refusal, Refusal> {
        let node = self.table.label(slot);
        let generation = word.generation();
        Ok(match word.state().phase {
            Phase::Claimed { holder } => Refusal::Held { node, holder: self.table.holder_name(holder)?, generation },
            _ => Refusal::Ended { node, status: word.status().seen(Seen::Ready), generation },
        })
    }

    /// What the node waits for. `None`: it no longer does, so try again.
    fn not_ready(&self, slot: u16, seen: &InForce<'_>) -> Result<Option<Refusal>, Refusal> {
        let cut = self.table.cut()?;
        if cut.root != seen.root {
            return Ok(None);
        }
        let label = |slot: u16| self.table.label_in(&cut.graph, slot);
        let status = cut.seen(slot);
        if let Some(by) = cut.skipped_by(slot) {
            return Ok(Some(Refusal::Skipped { node: label(slot), by: label(by) }));
        }
        let waits_for: Vec<String> = cut.unsatisfied(slot).take(8).map(|e| label(e.parent)).collect();
        let refusal = Refusal::NotReady { node: label(slot), status, waits_for };
        Ok(matches!(status, Seen::Todo | Seen::Blocked).then_some(refusal))
    }

    fn group_full(&self, slot: u16) -> Result<Refusal, Refusal> {
        let cut = self.table.cut()?;
        let number = cut.graph.node(slot).map_or(0, |node| node.policy.group());
        let group = self.table.group_name(&cut.graph, number)?.unwrap_or_default();
        let limit = cut.graph.groups.get(usize::from(number)).copied().flatten().map_or(0, |group| group.limit);
        Ok(Refusal::GroupFull { node: self.table.label_in(&cut.graph, slot), group, limit })
    }
}

/// Leaves the watch over leases when the waiter that has it stops waiting, in whatever way.
struct Watch<'t> {
    core: Core<'t>,
    is_mine: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if self.is_mine {
            self.core.leave_watch();
        }
    }
}

/// A role is a name that may also look like an id.
fn check_role(role: &str) -> Result<(), NameError> {
    match check_name("role", role) {
        Err(NameError::LooksLikeAnId { .. }) => Ok(()),
        other => other,
    }
}
