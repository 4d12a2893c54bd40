//! Reading ahead: while gets take messages of a queue that are not in memory, the next ones are read before they are asked for.
//!
//! One read ahead is under way for a queue at a time, and the next is asked for when half of it has been taken. What was read
//! and not taken is given up when there is no more room for it.

use bytes::Bytes;
use ferrymq_types::{MessageRow, ObjectId, Sequence};

use crate::engine::Step;
use crate::limits::{READ_AHEAD_BYTES, READ_AHEAD_MESSAGES};
use crate::messages::message_of;
use crate::queue::Key;
use crate::{Effect, Engine};

/// What is being read ahead, or was, and is not taken yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadAhead {
    /// The message behind which it began, and the last one that was asked for.
    first: Key,
    last: Key,
    asked: usize,
    taken: usize,
    under_way: bool,
}

impl Engine {
    /// A get came upon a message that is not in memory. What is read ahead already goes on, unless the message is in front of
    /// it: then others came before those, as of a higher priority.
    pub(crate) fn read_ahead(&mut self, step: &mut Step<'_>, queue: ObjectId, from: Key) {
        let begins = self.queue(queue).is_some_and(|q| match &q.read_ahead {
            Some(ahead) => !ahead.under_way && from < ahead.first,
            None => true,
        });
        if begins {
            self.read_behind(step, queue, from);
        }
    }

    /// A get took a message.
    pub(crate) fn taken_ahead(&mut self, step: &mut Step<'_>, queue: ObjectId) {
        let Some(ahead) = self.queue(queue).and_then(|q| q.read_ahead.as_mut()) else {
            return;
        };
        ahead.taken = ahead.taken.saturating_add(1);
        if !ahead.under_way && ahead.taken >= ahead.asked / 2 {
            let from = ahead.last;
            self.read_behind(step, queue, from);
        }
    }

    /// Asks for the next messages behind `from` that are not in memory; looks at a bounded number of them.
    fn read_behind(&mut self, step: &mut Step<'_>, queue: ObjectId, from: Key) {
        let bytes_max = READ_AHEAD_BYTES.min(self.read_ahead_bytes_max());
        let Some(q) = self.queues.get_mut(&queue) else {
            return;
        };
        let (mut sequences, mut bytes, mut last) = (Vec::new(), 0u64, from);
        for (key, length) in q.upcoming(from).take(READ_AHEAD_MESSAGES) {
            bytes = bytes.saturating_add(crate::memory::bytes_of_length(u64::from(length)));
            if bytes > bytes_max {
                break;
            }
            last = key;
            if self.memory.get(key.sequence).is_none() {
                sequences.push(key.sequence);
            }
        }
        if sequences.is_empty() {
            q.read_ahead = None;
            return;
        }
        q.read_ahead = Some(ReadAhead {
            first: from,
            last,
            asked: sequences.len(),
            taken: 0,
            under_way: true,
        });
        step.effects.push(Effect::ReadAhead { queue, sequences });
    }

    /// Bytes that messages which were read ahead may take: a part of the cache.
    fn read_ahead_bytes_max(&self) -> u64 {
        self.limits.cache_bytes_max / 2
    }

    /// What the store read ahead. What has left its queue meanwhile, or came into memory by another way, is not kept; what
    /// could not be read is not here, and is reported when a get asks for it.
    pub(crate) fn was_read_ahead(
        &mut self,
        queue: ObjectId,
        messages: Vec<(Sequence, Box<MessageRow>, Bytes)>,
    ) {
        let bytes_max = self.read_ahead_bytes_max();
        let Some(q) = self.queues.get_mut(&queue) else {
            return;
        };
        match &mut q.read_ahead {
            Some(ahead) if !messages.is_empty() => ahead.under_way = false,
            Some(_) | None => q.read_ahead = None,
        }
        for (sequence, row, body) in messages {
            let here = q
                .entry(sequence)
                .is_some_and(|entry| !entry.is_persistent() || entry.body == row.body);
            if here && self.memory.get(sequence).is_none() {
                self.memory
                    .keep_ahead(sequence, message_of(*row, body), bytes_max);
            }
        }
        self.memory.trim(self.limits.cache_bytes_max);
    }
}
