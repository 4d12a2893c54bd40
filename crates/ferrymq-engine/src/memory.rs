//! The messages whose bytes are in memory, by their places: those that are nowhere else, and a cache of the others.

use std::sync::Arc;

use ferrymq_types::{Message, Persistence, Sequence};

use crate::ordered::Ordered;

/// What a message in memory costs beside its data, in bytes; roughly.
const MESSAGE_OVERHEAD: u64 = 512;

pub(crate) fn memory_bytes(message: &Message) -> u64 {
    (message.data_length() as u64).saturating_add(MESSAGE_OVERHEAD)
}

/// Messages in memory. A place is never used twice, so that it is enough to find one.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Non-persistent and uncommitted ones: they are nowhere else.
    only_here: Ordered<Sequence, Arc<Message>>,
    /// Persistent ones, which the store has too.
    cache: Ordered<Sequence, Arc<Message>>,
    non_persistent_bytes: u64,
    cache_bytes: u64,
}

fn is_persistent(message: &Message) -> bool {
    match message.descriptor.persistence {
        Persistence::Persistent => true,
        Persistence::NonPersistent => false,
    }
}

impl Memory {
    pub(crate) fn get(&self, sequence: Sequence) -> Option<&Arc<Message>> {
        self.cache
            .get(sequence)
            .or_else(|| self.only_here.get(sequence))
    }

    /// Keeps a message that is nowhere else.
    pub(crate) fn keep(&mut self, sequence: Sequence, message: Arc<Message>) {
        if !is_persistent(&message) {
            self.non_persistent_bytes = self
                .non_persistent_bytes
                .saturating_add(memory_bytes(&message));
        }
        self.only_here.insert(sequence, message);
    }

    /// Keeps a persistent message beside the store, as long as there is room for `bytes_max`: the oldest go first.
    pub(crate) fn cache(&mut self, sequence: Sequence, message: Arc<Message>, bytes_max: u64) {
        let bytes = memory_bytes(&message);
        if self.cache.insert(sequence, message).is_none() {
            self.cache_bytes = self.cache_bytes.saturating_add(bytes);
        }
        while self.cache_bytes > bytes_max {
            let Some((_, oldest)) = self.cache.pop_first() else {
                break;
            };
            self.cache_bytes = self.cache_bytes.saturating_sub(memory_bytes(&oldest));
        }
    }

    /// A message that was uncommitted is in the store now, if it is persistent.
    pub(crate) fn committed(&mut self, sequence: Sequence, bytes_max: u64) {
        if self
            .only_here
            .get(sequence)
            .is_some_and(|m| is_persistent(m))
            && let Some(message) = self.only_here.remove(sequence)
        {
            self.cache(sequence, message, bytes_max);
        }
    }

    pub(crate) fn remove(&mut self, sequence: Sequence) -> Option<Arc<Message>> {
        if let Some(message) = self.cache.remove(sequence) {
            self.cache_bytes = self.cache_bytes.saturating_sub(memory_bytes(&message));
            return Some(message);
        }
        let message = self.only_here.remove(sequence)?;
        if !is_persistent(&message) {
            self.non_persistent_bytes = self
                .non_persistent_bytes
                .saturating_sub(memory_bytes(&message));
        }
        Some(message)
    }

    pub(crate) const fn non_persistent_bytes(&self) -> u64 {
        self.non_persistent_bytes
    }

    pub(crate) const fn cache_bytes(&self) -> u64 {
        self.cache_bytes
    }

    /// Whether the store has it too.
    #[cfg(test)]
    pub(crate) fn is_cached(&self, sequence: Sequence) -> bool {
        self.cache.get(sequence).is_some()
    }

    /// Places and bytes of the cache, for checks.
    #[cfg(test)]
    pub(crate) fn cached(&self) -> impl Iterator<Item = (Sequence, u64)> {
        self.cache.iter().map(|(s, m)| (s, memory_bytes(m)))
    }
}
