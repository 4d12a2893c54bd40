//! The engine: one entry, [`Engine::step`].

use std::sync::Arc;

use ferrymq_objects::QueueManager;
use ferrymq_types::{Epoch, Position, Timestamp};

use crate::{Effect, Input, Limits};

/// A queue manager that decides. Fed with inputs by one caller, which performs the effects in their order.
#[derive(Debug)]
pub struct Engine {
    qmgr: Arc<QueueManager>,
    epoch: Epoch,
    position: Position,
    now: Timestamp,
    pub(crate) limits: Limits,
}

impl Engine {
    pub(crate) fn new(
        qmgr: Arc<QueueManager>,
        epoch: Epoch,
        position: Position,
        now: Timestamp,
    ) -> Self {
        Self {
            qmgr,
            epoch,
            position,
            now,
            limits: Limits::default(),
        }
    }

    /// Takes one input and appends what is to be done. `now` may stand still or go back: nothing is early for it.
    pub fn step(&mut self, now: Timestamp, input: Input, effects: &mut Vec<Effect>) {
        self.now = now;
        let _input = (input, effects);
    }

    /// When [`Input::Ticked`] is wanted next; `None` is never, until another step.
    #[must_use]
    pub const fn next_tick(&self) -> Option<Timestamp> {
        None
    }

    /// The position of the last write set.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The run of the queue manager.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The definitions in force.
    #[must_use]
    pub const fn queue_manager(&self) -> &Arc<QueueManager> {
        &self.qmgr
    }
}
