//! The messages whose bytes are in memory, by their places: those that are nowhere else, and a cache of the others.

use std::sync::Arc;

use ferrymq_types::{Message, Persistence, Sequence};

use crate::ordered::Ordered;

/// What a message in memory costs beside its data, in bytes; roughly.
const MESSAGE_OVERHEAD: u64 = 512;

pub(crate) fn memory_bytes(message: &Message) -> u64 {
    bytes_of_length(message.stored_length() as u64)
}

/// What a message with so many bytes of data takes in memory.
pub(crate) fn bytes_of_length(length: u64) -> u64 {
    length.saturating_add(MESSAGE_OVERHEAD)
}

/// Messages in memory. A place is never used twice, so that it is enough to find one.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Non-persistent and uncommitted ones: they are nowhere else.
    only_here: Ordered<Sequence, Arc<Message>>,
    /// Persistent ones, which the store has too.
    cache: Ordered<Sequence, Arc<Message>>,
    /// Ones on the disk that were read ahead: apart, since they are older than what is cached and wanted before it.
    ahead: Ordered<Sequence, Arc<Message>>,
    ahead_bytes: u64,
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
            .or_else(|| self.ahead.get(sequence))
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

    /// A message of which there are no other bytes.
    pub(crate) fn only_here(&self, sequence: Sequence) -> Option<&Arc<Message>> {
        self.only_here.get(sequence)
    }

    pub(crate) fn is_only_here(&self, sequence: Sequence) -> bool {
        self.only_here.get(sequence).is_some()
    }

    /// Lets go of a non-persistent message that is on the disk by now. `false` if it is not here any more.
    pub(crate) fn let_go(&mut self, sequence: Sequence) -> bool {
        let Some(message) = self.only_here.remove(sequence) else {
            return false;
        };
        self.non_persistent_bytes = self
            .non_persistent_bytes
            .saturating_sub(memory_bytes(&message));
        true
    }

    /// Keeps a persistent message beside the store, as long as there is room for `bytes_max`: the oldest go first.
    pub(crate) fn cache(&mut self, sequence: Sequence, message: Arc<Message>, bytes_max: u64) {
        let bytes = memory_bytes(&message);
        if self.cache.insert(sequence, message).is_none() {
            self.cache_bytes = self.cache_bytes.saturating_add(bytes);
        }
        self.trim(bytes_max);
    }

    /// Keeps a message that was read ahead; of such ones as many as `bytes_max` has room for, and the oldest go first.
    pub(crate) fn keep_ahead(&mut self, sequence: Sequence, message: Arc<Message>, bytes_max: u64) {
        let bytes = memory_bytes(&message);
        if self.ahead.insert(sequence, message).is_none() {
            self.ahead_bytes = self.ahead_bytes.saturating_add(bytes);
        }
        while self.ahead_bytes > bytes_max && self.drop_ahead() {}
    }

    /// Lets go of what the store has too, until it takes no more than so many bytes.
    pub(crate) fn trim(&mut self, bytes_max: u64) {
        while self.cache_bytes() > bytes_max {
            if let Some((_, oldest)) = self.cache.pop_first() {
                self.cache_bytes = self.cache_bytes.saturating_sub(memory_bytes(&oldest));
            } else if !self.drop_ahead() {
                break;
            }
        }
    }

    fn drop_ahead(&mut self) -> bool {
        let Some((_, oldest)) = self.ahead.pop_first() else {
            return false;
        };
        self.ahead_bytes = self.ahead_bytes.saturating_sub(memory_bytes(&oldest));
        true
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
        if let Some(message) = self.ahead.remove(sequence) {
            self.ahead_bytes = self.ahead_bytes.saturating_sub(memory_bytes(&message));
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

    /// Those that were read ahead are counted too.
    pub(crate) const fn cache_bytes(&self) -> u64 {
        self.cache_bytes.saturating_add(self.ahead_bytes)
    }

    /// Whether the store has it too.
    #[cfg(test)]
    pub(crate) fn is_cached(&self, sequence: Sequence) -> bool {
        self.cache.get(sequence).is_some() || self.ahead.get(sequence).is_some()
    }

    /// Places and bytes of the cache, for checks.
    #[cfg(test)]
    pub(crate) fn cached(&self) -> impl Iterator<Item = (Sequence, u64)> {
        let all = self.cache.iter().chain(self.ahead.iter());
        all.map(|(s, m)| (s, memory_bytes(m)))
    }
}
