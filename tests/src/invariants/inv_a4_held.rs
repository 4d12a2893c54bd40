//! A4: what an open unit of work holds nobody else gets.

use ferrymq_types::UnitOfWorkId;

use crate::invariants::{Check, violated};
use crate::oracle::{Put, short};

pub(crate) fn got(put: &Put, by: Option<UnitOfWorkId>) -> Check {
    match put.held_by {
        Some(unit) => violated(
            "inv_a4_held",
            format!(
                "{} is held by unit of work {} and was shown to {:?}",
                put.name(),
                short(unit),
                by.map(short)
            ),
        ),
        None => Ok(()),
    }
}
