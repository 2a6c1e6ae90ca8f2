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

/// How long to wait for the next look.
pub(super) struct Idle(Duration);

impl Idle {
    pub(super) fn new() -> Idle {
        Idle(FIRST)
    }

    /// There was work: the next wait is short again.
    pub(super) fn reset(&mut self) {
        self.0 = FIRST;
    }

    /// Waits for the bell, an order, or the time of the next look.
    pub(super) fn wait(&mut self, bell: &Bell, orders: &Receiver<Order>) -> Option<Order> {
        select! {
            recv(bell.heard) -> _ => {
                self.reset();
                None
            }
            recv(orders) -> order => order.ok(),
            default(self.0) => {
                self.0 = LONGEST.min(self.0 * 2);
                None
            }
        }
    }
}
