//! Leases and fences: claim, renew, release, complete, reclaim, reopen, archive (C1-C8, R3).
//!
//! The order in which refusals are looked for is part of the rules: each verb reads from top to bottom.

use tenure::{ClaimOptions, Completion, Ended, NodeId, Outcome, Seen};

use super::answers::{Got, No, Row, Taken};
use super::state::{Lease, Model};

impl Model {
    /// What the holder has, if anything.
    pub fn held_by(&self, holder: &str) -> Option<NodeId> {
        self.nodes.iter().find(|(_, n)| n.lease.as_ref().is_some_and(|l| l.holder == holder)).map(|(&id, _)| id)
    }

    fn got(&self, id: NodeId, resumed: bool) -> Got {
        let node = &self.nodes[&id];
        Got { id, name: node.name.clone(), generation: node.generation, resumed }
    }

    fn generation_mismatch(&self, id: NodeId) -> No {
        let node = &self.nodes[&id];
        let holder = node.lease.as_ref().map(|l| l.holder.clone());
        No::new("generation_mismatch").node(self.label(id)).generation(node.generation).holder(holder)
    }

    fn not_holder(&self, id: NodeId) -> No {
        let node = &self.nodes[&id];
        let holder = node.lease.as_ref().map(|l| l.holder.clone());
        No::new("not_holder").node(self.label(id)).generation(node.generation).holder(holder).status(self.seen(id))
    }

    fn check_fence(&self, id: NodeId, generation: Option<u64>) -> Result<(), No> {
        match generation {
            Some(g) if g != self.nodes[&id].generation => Err(self.generation_mismatch(id)),
            _ => Ok(()),
        }
    }

    /// Opens a claimed node again; its generation moves.
    fn take_back(&mut self, id: NodeId) -> Option<Taken> {
        let node = self.nodes.get_mut(&id)?;
        let lease = node.lease.take()?;
        node.generation += 1;
        Some(Taken { id, name: node.name.clone(), holder: lease.holder, generation: node.generation })
    }

    /// The attempt that stands is lost or has failed: open again, or failed when it was the last (C9).
    pub fn lose(&mut self, id: NodeId) -> Option<Taken> {
        let node = self.nodes.get(&id)?;
        if !node.is_last_attempt() {
            return self.take_back(id);
        }
        let finished = self.tick();
        let node = self.nodes.get_mut(&id)?;
        let lease = node.lease.take()?;
        (node.end, node.finished) = (Some(Outcome::Failed), finished);
        Some(Taken { id, name: node.name.clone(), holder: lease.holder, generation: node.generation })
    }

    fn take_back_if_run_out(&mut self, id: NodeId, now_ms: u64) {
        let lease = self.nodes.get(&id).and_then(|n| n.lease.as_ref());
        if lease.is_some_and(|l| l.has_run_out(now_ms)) {
            self.lose(id);
        }
    }

    fn busy(&self, holder: &str, held: NodeId) -> No {
        let generation = self.nodes[&held].generation;
        No::new("busy").node(self.label(held)).holder(Some(holder.to_owned())).generation(generation)
    }

    /// The holder asks again for what it has: it is evidently alive, so its lease runs from now.
    fn resume(&mut self, held: NodeId, options: &ClaimOptions, now_ms: u64) -> Result<Got, No> {
        let lease_ms = options.lease_ms.unwrap_or(self.rules.lease_ms);
        if let Some(lease) = self.node_mut(held)?.lease.as_mut() {
            lease.renewed_at_ms = now_ms;
            lease.lease_ms = lease_ms;
        }
        Ok(self.got(held, true))
    }

    /// C1. What has run out is taken back first: the node's lease, and the holder's own on another node.
    pub fn claim(&mut self, id: NodeId, holder: &str, options: &ClaimOptions, now_ms: u64) -> Result<Got, No> {
        self.node(id)?;
        self.take_back_if_run_out(id, now_ms);
        if let Some(held) = self.held_by(holder) {
            self.take_back_if_run_out(held, now_ms);
        }
        self.claim_as_it_is(id, holder, options, now_ms)
    }

    /// The claim itself, once what has run out was taken back.
    pub fn claim_as_it_is(&mut self, id: NodeId, holder: &str, options: &ClaimOptions, now_ms: u64) -> Result<Got, No> {
        match self.held_by(holder) {
            Some(held) if options.resume => return self.resume(held, options, now_ms),
            Some(held) => return Err(self.busy(holder, held)),
            None => {}
        }
        self.check_fence(id, options.generation)?;
        let node = self.node(id)?;
        if node.end.is_some() {
            return Err(self.refuse_ended(id));
        }
        if let Some(lease) = &node.lease {
            let holder = Some(lease.holder.clone());
            return Err(No::new("held").node(self.label(id)).holder(holder).generation(node.generation));
        }
        let seen = self.seen(id);
        if seen != Seen::Ready {
            return Err(No::new("not_ready").node(self.label(id)).status(seen));
        }
        if now_ms < node.left_alone_ms.0 {
            return Err(No::new("not_before").node(self.label(id)));
        }
        if self.is_group_full(id) {
            return Err(No::new("group_full").node(self.label(id)));
        }
        self.give(id, holder, options.lease_ms, now_ms)
    }

    fn give(&mut self, id: NodeId, holder: &str, lease_ms: Option<u64>, now_ms: u64) -> Result<Got, No> {
        let lease_ms = lease_ms.unwrap_or(self.rules.lease_ms);
        let node = self.node_mut(id)?;
        node.lease = Some(Lease { holder: holder.to_owned(), renewed_at_ms: now_ms, lease_ms });
        node.generation += 1;
        node.attempts += 1;
        node.left_alone_ms = (0, 0);
        Ok(self.got(id, false))
    }

    /// R3: the first ready node that names no role or one of `roles`.
    pub fn claim_next(&mut self, holder: &str, roles: &[&str], options: &ClaimOptions, now_ms: u64) -> Result<Got, No> {
        let ids: Vec<NodeId> = self.nodes.keys().copied().collect();
        for id in ids {
            self.take_back_if_run_out(id, now_ms);
        }
        if let Some(held) = self.held_by(holder) {
            return if options.resume { self.resume(held, options, now_ms) } else { Err(self.busy(holder, held)) };
        }
        let fits = |row: &Row| row.role.as_deref().is_none_or(|role| roles.contains(&role));
        let next = self.ready().into_iter().find(|row| fits(row) && !self.is_group_full(row.id));
        match next {
            Some(row) => self.give(row.id, holder, options.lease_ms, now_ms),
            None => Err(No::new("nothing_ready")),
        }
    }

    /// C2. A lease that has run out and that nobody took back yet can still be renewed.
    pub fn renew(
        &mut self,
        id: NodeId,
        holder: &str,
        generation: Option<u64>,
        lease_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<Got, No> {
        self.node(id)?;
        self.check_fence(id, generation)?;
        let refusal = self.not_holder(id);
        match self.node_mut(id)?.lease.as_mut().filter(|l| l.holder == holder) {
            Some(lease) => {
                lease.renewed_at_ms = now_ms;
                lease.lease_ms = lease_ms.unwrap_or(lease.lease_ms);
            }
            None => return Err(refusal),
        }
        Ok(self.got(id, false))
    }

    /// C3.
    pub fn release(&mut self, id: NodeId, holder: &str, generation: Option<u64>) -> Result<u64, No> {
        self.node(id)?;
        self.check_fence(id, generation)?;
        if self.nodes[&id].lease.as_ref().is_none_or(|l| l.holder != holder) {
            return Err(self.not_holder(id));
        }
        self.take_back(id);
        Ok(self.nodes[&id].generation)
    }

    /// C3 with `--force`.
    pub fn release_forced(&mut self, id: NodeId, generation: Option<u64>) -> Result<Taken, No> {
        self.node(id)?;
        self.check_fence(id, generation)?;
        let refusal = No::new("not_held").node(self.label(id)).generation(self.nodes[&id].generation);
        let refusal = refusal.status(self.seen(id));
        self.take_back(id).ok_or(refusal)
    }

    /// C4.
    pub fn complete(&mut self, id: NodeId, completion: &Completion) -> Result<Ended, No> {
        self.node(id)?;
        if self.rules.require_fence && completion.generation.is_none() {
            return Err(No::new("fence_required").node(self.label(id)));
        }
        self.check_fence(id, completion.generation)?;
        let node = &self.nodes[&id];
        match node.end {
            Some(outcome) if outcome == completion.outcome => return Ok(Ended::Already),
            Some(_) => return Err(self.refuse_ended(id)),
            None => {}
        }
        match (&node.lease, &completion.holder) {
            (Some(lease), Some(holder)) if lease.holder != *holder => return Err(self.not_holder(id)),
            (None, Some(_)) => return Err(self.not_holder(id)),
            (Some(lease), None) if completion.generation.is_none() => {
                let holder = Some(lease.holder.clone());
                return Err(No::new("held").node(self.label(id)).holder(holder).generation(node.generation));
            }
            _ => {}
        }
        let open_as = self.derive().open_as[&id];
        if completion.outcome == Outcome::Done && open_as != Seen::Ready {
            return Err(No::new("not_ready").node(self.label(id)).status(self.seen(id)));
        }
        let node = self.node(id)?;
        let again = node.max_attempts > 0 && !node.is_last_attempt();
        if completion.outcome == Outcome::Failed && node.lease.is_some() && again {
            let attempts = node.attempts;
            self.take_back(id);
            return Ok(Ended::ToRetry { generation: self.nodes[&id].generation, attempts });
        }
        let finished = self.tick();
        let node = self.node_mut(id)?;
        node.end = Some(completion.outcome);
        node.lease = None;
        node.finished = finished;
        if let Some(summary) = &completion.summary {
            node.summary.clone_from(summary);
        }
        Ok(Ended::Now)
    }

    /// C5: longest quiet first.
    pub fn reclaim(&mut self, quiet_ms: Option<u64>, now_ms: u64) -> Vec<Taken> {
        let due = |lease: &Lease| match quiet_ms {
            Some(quiet_ms) => now_ms.saturating_sub(lease.renewed_at_ms) >= quiet_ms || lease.has_run_out(now_ms),
            None => lease.has_run_out(now_ms),
        };
        let mut due: Vec<(u64, NodeId)> = self
            .nodes
            .iter()
            .filter_map(|(&id, n)| n.lease.as_ref().filter(|l| due(l)).map(|l| (l.renewed_at_ms, id)))
            .collect();
        due.sort_unstable();
        due.into_iter().filter_map(|(_, id)| self.lose(id)).collect()
    }

    fn ended(&self, id: NodeId) -> Result<(), No> {
        match self.node(id)?.end {
            Some(_) => Ok(()),
            None => Err(No::new("not_ended").node(self.label(id)).status(self.seen(id))),
        }
    }

    /// C7. An archived node that is opened again is shown again.
    pub fn reopen(&mut self, id: NodeId) -> Result<u64, No> {
        self.ended(id)?;
        let node = self.node_mut(id)?;
        node.end = None;
        node.finished = 0;
        node.archived = false;
        node.generation += 1;
        node.attempts = 0;
        node.left_alone_ms = (0, 0);
        Ok(node.generation)
    }

    pub fn archive(&mut self, id: NodeId) -> Result<u64, No> {
        self.set_archived(id, true)
    }

    pub fn unarchive(&mut self, id: NodeId) -> Result<u64, No> {
        self.set_archived(id, false)
    }

    /// The generation moves when something changed.
    fn set_archived(&mut self, id: NodeId, archived: bool) -> Result<u64, No> {
        self.ended(id)?;
        let node = self.node_mut(id)?;
        if node.archived != archived {
            node.archived = archived;
            node.generation += 1;
        }
        Ok(node.generation)
    }
}
