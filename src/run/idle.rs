//! What a worker does while nothing is ready.
//!
//! A sibling's progress is heard at once: whoever claims a node rings for one more, so that a completion which makes
//! many nodes ready wakes the workers one after the other, and only as many as there is work for. Progress of other
//! processes is found by looking again, after 1 ms and then at doubling intervals up to 50 ms.

use std::time::Duration;

use crossbeam::channel::{self, Receiver, Sender, select};

use super::Order;

const FIRST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);

/// One bell for all workers of this process. It holds one ring: whoever hears it looks for work after every change
/// that was made before, so a second ring would tell nothing new.
pub(super) struct Bell {
    ring: Sender<()>,
    heard: Receiver<()>,
}

impl Bell {
    pub(super) fn new() -> Bell {
        let (ring, heard) = channel::bounded(1);
        Bell { ring, heard }
    }

    /// Wakes one idle worker, or the next one to become idle.
    pub(super) fn ring(&self) {
        // Full: a ring is waiting to be heard already.
        let _ = self.ring.try_send(());
    }
}

/// What an idle worker knows about its waiting.
pub(super) struct Idle {
    /// How long until the next look.
    next: Duration,
    /// It looks because of a ring.
    rung: bool,
}

impl Idle {
    pub(super) fn new() -> Idle {
        Idle { next: FIRST, rung: false }
    }

    /// There was work: the next wait is short again.
    pub(super) fn reset(&mut self) {
        *self = Idle::new();
    }

    /// Whether it is time to see if everything is over: not after every ring, since looking at the whole table takes
    /// longer than the claim that was rung for.
    pub(super) fn is_look_due(&self) -> bool {
        !self.rung
    }

    /// Waits for the bell, an order, or the time of the next look.
    ///
    /// After a ring in vain it hears no other for a millisecond. In a long chain of short nodes every claim rings, and
    /// none of them has work for a second worker.
    pub(super) fn wait(&mut self, bell: &Bell, orders: &Receiver<Order>) -> Option<Order> {
        if std::mem::take(&mut self.rung)
            && let Ok(order) = orders.recv_timeout(FIRST)
        {
            return Some(order);
        }
        select! {
            recv(bell.heard) -> _ => {
                self.next = FIRST;
                self.rung = true;
                None
            }
            recv(orders) -> order => order.ok(),
            default(self.next) => {
                self.next = LONGEST.min(self.next * 2);
                None
            }
        }
    }
}
