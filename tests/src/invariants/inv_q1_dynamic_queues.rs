//! Q1: a permanent dynamic queue is there from the answer that made it to the one that deleted it, whatever fails between; a
//! temporary one is gone with the handle or the run that made it.

use ferrymq_types::ReasonCode;

use crate::invariants::{Check, violated};
use crate::oracle::Existence;

const ID: &str = "inv_q1_dynamic_queues";

/// It was found there.
pub(crate) fn found(known: Existence) -> Check {
    if known == Existence::No {
        return violated(ID, "a permanent dynamic queue that was deleted is there");
    }
    Ok(())
}

/// It was made.
pub(crate) fn made(known: Existence) -> Check {
    if known == Existence::Yes {
        return violated(ID, "a permanent dynamic queue was made though it is there");
    }
    Ok(())
}

/// It was not found.
pub(crate) fn missing(known: Existence) -> Check {
    if known == Existence::Yes {
        return violated(ID, "a permanent dynamic queue is lost");
    }
    Ok(())
}

/// A temporary one was opened, or not for this reason.
pub(crate) fn temporary(refused: Option<ReasonCode>) -> Check {
    if refused == Some(ReasonCode::OBJECT_ALREADY_EXISTS) {
        return violated(ID, "a temporary queue outlives the connection that made it");
    }
    Ok(())
}

pub(crate) fn at_rest(known: Existence, permanent: bool, orphan: bool) -> Check {
    if permanent {
        found(known)?;
    } else {
        missing(known)?;
    }
    if orphan {
        return violated(ID, "a temporary queue is there that nobody has open");
    }
    Ok(())
}
