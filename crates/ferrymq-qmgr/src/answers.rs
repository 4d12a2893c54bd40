//! The answers of one session: the engine's thread leaves them here, the session takes all that are there.

use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use ferrymq_engine::{Failure, Reply};
use ferrymq_types::UnitOfWorkId;

use crate::conversion::Reading;

/// Which call of a session an answer belongs to, and what kind of answer it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallTag {
    pub(crate) call_id: u64,
    pub(crate) kind: Kind,
}

/// The kinds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Begin(UnitOfWorkId),
    Put,
    /// A put of which only the message id is to be told.
    BriefPut,
    /// A get, and how its data is wanted.
    Get(Reading),
    Open,
    Inquire,
    /// A browse through a handle, and how its data is wanted.
    Browse(Reading),
    /// Commit, back, settle, set.
    Done,
    /// The next messages of a consumer.
    Consume,
    /// A unit of work that a consumer needs: nobody waits for that.
    Silent,
}

/// An answer and the call that it belongs to.
pub(crate) type Answered = (CallTag, Result<Reply, Failure>);

#[derive(Debug, Default)]
struct State {
    ready: Vec<Answered>,
    waker: Option<Waker>,
}

/// A place for answers. Its bound is that of the calls that a session may have under way.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    state: Mutex<State>,
}

impl Answers {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an answer. Says whether it is the first since the session took some: then [`Answers::wake`] is due.
    pub(crate) fn push(&self, tag: CallTag, answer: Result<Reply, Failure>) -> bool {
        let mut state = self.state();
        let first = state.ready.is_empty();
        state.ready.push((tag, answer));
        first
    }

    /// Wakes the session.
    pub(crate) fn wake(&self) {
        let waker = self.state().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes all answers into `into`, which is empty. If there are none `waker` is woken when there are.
    pub(crate) fn take(&self, into: &mut Vec<Answered>, waker: &Waker) {
        let mut state = self.state();
        if !state.ready.is_empty() {
            std::mem::swap(&mut state.ready, into);
            return;
        }
        match &mut state.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }
}
