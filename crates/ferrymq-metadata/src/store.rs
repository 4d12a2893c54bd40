//! Where applied definitions are kept.

use std::fmt;

use ferrymq_store::StoreError;

/// What a scan calls for each key and value.
pub type VisitRow<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError> + 'a;

/// A change of rows: all of it takes effect, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StateBatch {
    /// Keys to remove. They go first: a key that is also put is there afterwards.
    pub deletes: Vec<Vec<u8>>,
    /// Keys and values to write.
    pub puts: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A store of rows, each a key and a value. One node's definitions are in it, a few kilobytes to some hundred megabytes.
pub trait StateStore: fmt::Debug + Send + Sync + 'static {
    /// Gives every row, keys in order.
    ///
    /// # Errors
    /// What reading met, or what `visit` returned: the visit ends there. A partial result is never passed off as the whole.
    fn scan(&self, visit: &mut VisitRow<'_>) -> Result<(), StoreError>;

    /// Applies `batch` whole and makes it durable before it returns.
    ///
    /// # Errors
    /// What the disk says. It is then not known whether the batch is there; the store must be opened anew.
    fn write(&self, batch: StateBatch) -> Result<(), StoreError>;
}
