//! I1: a put repeated with the same token takes effect once, and every answer names the same message id. That it takes effect
//! once is C1's to see: both have the same identity.

use ferrymq_types::MessageId;

use crate::invariants::{Check, violated};
use crate::oracle::{Fate, Put};

pub(crate) fn taken(put: &Put, id: MessageId) -> Check {
    // One that was confirmed is known for good; before that a crash may have undone the first try.
    if put.fate == Fate::Done && put.message_id != id {
        return violated(
            "inv_i1_token",
            format!(
                "{} was answered with {} and then with {id}",
                put.name(),
                put.message_id
            ),
        );
    }
    Ok(())
}
