//! What the verbs of the scheduler do about nodes that name a surface. A program that was made without a ledger passes them
//! over.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod with_ledger {
    use std::sync::Arc;

    use tenure::run::Gatekeeper;
    use tenure::{NodeView, Worker};

    use crate::cli::admission::NodeGate;
    use crate::cli::context::Context;

    /// Says of each node whether it could start: one without a surface can.
    pub fn ask(context: &Context, views: &mut [NodeView]) {
        let gate = NodeGate::for_lookers(context);
        for view in views {
            view.startable = Some(view.surface.as_deref().is_none_or(|surface| gate.is_startable(surface)));
        }
    }

    /// The worker with somebody to ask.
    pub fn with_gate(context: &Context, worker: Worker) -> Worker {
        worker.with_gate(NodeGate::for_lookers(context).into_gate())
    }

    /// Whom `run` and `work` ask.
    pub fn gatekeeper(context: &Context) -> Option<Arc<dyn Gatekeeper>> {
        Some(Arc::new(NodeGate::for_starters(context)))
    }
}

#[cfg(not(any(feature = "sqlite", feature = "postgres")))]
mod with_ledger {
    use std::sync::Arc;

    use tenure::run::Gatekeeper;
    use tenure::{NodeView, Worker};

    use crate::cli::context::Context;

    /// Says of each node whether it could start: one without a surface can.
    pub fn ask(_: &Context, views: &mut [NodeView]) {
        for view in views {
            view.startable = Some(view.surface.is_none());
        }
    }

    /// The worker as it is.
    pub fn with_gate(_: &Context, worker: Worker) -> Worker {
        worker
    }

    /// Nobody.
    pub fn gatekeeper(_: &Context) -> Option<Arc<dyn Gatekeeper>> {
        None
    }
}

pub use with_ledger::{ask, gatekeeper, with_gate};
