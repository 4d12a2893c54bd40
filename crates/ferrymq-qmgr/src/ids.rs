//! Random numbers of the edge: ids and seeds come into the core with the request.

use ferrymq_engine::Failure;
use ferrymq_types::{ReasonCode, UnitOfWorkId};

/// A random id of a unit of work.
///
/// # Errors
/// 2102 if the operating system gives no random bytes.
pub(crate) fn random_unit_of_work() -> Result<UnitOfWorkId, Failure> {
    random::<16>().map(UnitOfWorkId::new)
}

/// A random seed for a machine.
///
/// # Errors
/// 2102 if the operating system gives no random bytes.
pub(crate) fn seed() -> Result<u128, Failure> {
    random::<16>().map(u128::from_be_bytes)
}

/// Random bytes.
///
/// # Errors
/// 2102 if the operating system gives no random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Failure {
        reason: ReasonCode::RESOURCE_PROBLEM,
        object: None,
    })?;
    Ok(bytes)
}
