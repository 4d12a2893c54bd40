//! A message: its descriptor and its bytes.

use bytes::{Bytes, BytesMut};

use crate::MessageDescriptor;

/// A message as it is stored and moved.
///
/// The bytes are in two parts so that a queue manager can put a header (transmission, dead-letter) in front of a body without
/// copying it: an application sees `header` followed by `body`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The descriptor. Its `format`, `encoding` and `coded_character_set_id` describe what comes first: `header` if it is
    /// not empty, else `body`.
    pub descriptor: MessageDescriptor,
    /// Headers that a queue manager put in front; mostly empty.
    pub header: Bytes,
    /// What the application put.
    pub body: Bytes,
}

impl Message {
    /// Bytes that an application sees.
    #[must_use]
    pub fn data_length(&self) -> usize {
        self.header.len().saturating_add(self.body.len())
    }

    /// Bytes that it takes where it is kept: what an application sees, and the properties.
    #[must_use]
    pub fn stored_length(&self) -> usize {
        self.data_length()
            .saturating_add(self.descriptor.properties.length())
    }

    /// What an application sees: `header` and `body` in one piece. Copies only if there is a header.
    #[must_use]
    pub fn data(&self) -> Bytes {
        if self.header.is_empty() {
            return self.body.clone();
        }
        let mut all = BytesMut::with_capacity(self.data_length());
        all.extend_from_slice(&self.header);
        all.extend_from_slice(&self.body);
        all.freeze()
    }
}
