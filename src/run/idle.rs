//! What a worker does while nothing is ready.
//!
//! One idle worker of the process has the *seat*: it sleeps in the kernel until a node may be ready, whoever made it so.
//! The others sleep in this process, and one of them takes the seat when it is free. Whoever claims a node rings for one
//! more, so that a completion which makes many nodes ready wakes the workers one after the other, and only as many as
//! there is work for.
//!
//! The sleep in the kernel ends from time to time, to obey orders and to see whether everything is over: after 1 ms first
//! and then at doubling intervals, so that at the end of a run nobody is waited for longer than it had been idle.

use std::time::Duration;

use crossbeam::channel::{self, Receiver, Sender, select};

use super::Order;
use crate::error::Refusal;
use crate::verbs::Claim;

const FIRST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(250);

/// The bell and the seat of all workers of this process.
///
/// The bell holds one ring: whoever hears it looks for work after every change that was made before, so a second ring
/// would tell nothing new.
pub(super) struct Bell {
    ring: Sender<()>,
    heard: Receiver<()>,
    give_seat: Sender<()>,
    seat: Receiver<()>,
}

impl Bell {
    pub(super) fn new() -> Bell {
        let (ring, heard) = channel::bounded(1);
        let (give_seat, seat) = channel::bounded(1);
        let bell = Bell { ring, heard, give_seat, seat };
        bell.give_seat();
        bell
    }

    /// Wakes one idle worker, or the next one to become idle.
    pub(super) fn ring(&self) {
        // Full: a ring is waiting to be heard already.
        let _ = self.ring.try_send(());
    }

    fn give_seat(&self) {
        // There is one, and it was taken: never full.
        let _ = self.give_seat.try_send(());
    }
}

/// What ended a wait.
pub(super) enum Woken<'w> {
    /// There may be work.
    Look,
    /// The sleep in the kernel is over: with a claim, or because something is wrong.
    Slept(Result<Claim<'w>, Refusal>),
    Told(Order),
}

/// What an idle worker knows about its waiting.
pub(super) struct Idle {
    /// How long the next sleep in the kernel may be.
    next: Duration,
    /// It looks because of a ring.
    rung: bool,
}

impl Idle {
    pub(super) fn new() -> Idle {
        Idle { next: FIRST, rung: false }
    }

    /// Whether it is time to see if everything is over: not after every ring, since looking at the whole table takes
    /// longer than the claim that was rung for.
    pub(super) fn is_look_due(&self) -> bool {
        !self.rung
    }

    /// Waits for the bell, an order, or with the seat for a node: `claim` sleeps in the kernel for so long at most.
    ///
    /// After a ring in vain it hears no other for a millisecond. In a long chain of short nodes every claim rings, and
    /// none of them has work for a second worker.
    pub(super) fn wait<'w>(
        &mut self,
        bell: &Bell,
        orders: &Receiver<Order>,
        claim: impl FnOnce(Duration) -> Result<Claim<'w>, Refusal>,
    ) -> Woken<'w> {
        if std::mem::take(&mut self.rung)
            && let Ok(order) = orders.recv_timeout(FIRST)
        {
            return Woken::Told(order);
        }
        select! {
            recv(bell.heard) -> _ => {
                self.next = FIRST;
                self.rung = true;
                Woken::Look
            }
            recv(orders) -> order => order.map_or(Woken::Look, Woken::Told),
            recv(bell.seat) -> _ => {
                let slept = claim(self.next);
                bell.give_seat();
                self.next = LONGEST.min(self.next * 2);
                Woken::Slept(slept)
            }
        }
    }
}
