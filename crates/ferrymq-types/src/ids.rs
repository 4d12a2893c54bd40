//! Numbers and byte strings that identify things.

use core::fmt;

use crate::QueueManagerName;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// Before the first.
            pub const ZERO: Self = Self(0);

            /// From its number.
            #[must_use]
            pub const fn new(n: u64) -> Self {
                Self(n)
            }

            /// Its number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The one after this. These counters cannot run out: 2^64 steps at a million a second are 584,000 years.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number!(
    /// The ordinal of a write set in the journal of one queue manager, from 1. What leaves the queue manager waits until
    /// the position that it depends on is durable; [`Position::ZERO`] depends on nothing.
    Position
);
number!(
    /// The place of a message on its queue, from 1, never used again on that queue.
    Sequence
);
number!(
    /// The id of a message body, unique for its queue manager for ever. A body lives while a message row names it (rule U8).
    BodyId
);
number!(
    /// The id of an object (a queue, a channel), given by the metadata and never used again, so that an object that is
    /// defined anew under an old name inherits nothing (rule U15).
    ObjectId
);
number!(
    /// A run of a queue manager, counted from 1. Handles and cursors of an earlier run are refused (rule U16).
    Epoch
);

macro_rules! bytes_id {
    ($(#[$doc:meta])* $name:ident, $len:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $len]);

        impl $name {
            /// Bytes of the id.
            pub const LENGTH: usize = $len;
            /// All zeros: none, or any.
            pub const NONE: Self = Self([0; $len]);

            /// From its bytes.
            #[must_use]
            pub const fn new(bytes: [u8; $len]) -> Self {
                Self(bytes)
            }

            /// From bytes of any length: shorter ones are padded with zeros.
            ///
            /// Returns `None` if there are too many.
            #[must_use]
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                let mut id = [0; $len];
                id.get_mut(..bytes.len())?.copy_from_slice(bytes);
                Some(Self(id))
            }

            /// From lower- or upper-case hexadecimal digits; fewer than the full number are padded with zeros.
            ///
            /// Returns `None` if a character is no digit, the number of digits is odd, or there are too many.
            #[must_use]
            pub fn from_hex(text: &str) -> Option<Self> {
                let digits = text.as_bytes();
                if !digits.len().is_multiple_of(2) {
                    return None;
                }
                let mut bytes = Vec::with_capacity(digits.len() / 2);
                for pair in digits.chunks_exact(2) {
                    let [high, low] = pair else { return None };
                    let value = |d: u8| char::from(d).to_digit(16).and_then(|v| u8::try_from(v).ok());
                    bytes.push(value(*high)? << 4 | value(*low)?);
                }
                Self::from_slice(&bytes)
            }

            /// Its bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }

            /// Whether it is all zeros.
            #[must_use]
            pub fn is_none(&self) -> bool {
                self.0 == [0; $len]
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NONE
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

bytes_id!(
    /// `MsgId`: identifies a message. All zeros on put asks for a generated one; on get it matches any.
    MessageId,
    24
);
bytes_id!(
    /// `CorrelId`: relates a message to another. All zeros on get matches any.
    CorrelationId,
    24
);
bytes_id!(
    /// `AccountingToken`: to whom the work is charged that a message causes; all zeros for nobody (`MQACT_NONE`).
    AccountingToken,
    32
);
bytes_id!(
    /// The id of a unit of work. A client may choose it at begin and ask by it for the outcome when an answer was lost;
    /// a channel batch has one too (`LUWID`).
    UnitOfWorkId,
    16
);
bytes_id!(
    /// The id of a queue manager that was created once (`QMID` as bytes): a queue manager that is created anew under an old
    /// name has another. Channel records are kept by it (rule U6).
    QueueManagerId,
    16
);

impl MessageId {
    /// A message id in IBM's form: `AMQ `, twelve characters of the queue manager's name padded with blanks, and eight bytes
    /// that are unique for the queue manager: its epoch and a counter.
    ///
    /// Source: IBM MQ, "MsgId (MQBYTE24)".
    #[must_use]
    pub fn generate(qmgr: &QueueManagerName, epoch: Epoch, counter: u64) -> Self {
        let mut id = [b' '; 24];
        for (to, from) in id
            .iter_mut()
            .zip(b"AMQ ".iter().chain(qmgr.as_str().as_bytes()).take(16))
        {
            *to = *from;
        }
        // 24 bits of epoch, 40 bits of counter: 16 million starts, a trillion messages each.
        let unique = (epoch.get() << 40) | (counter & 0xff_ffff_ffff);
        for (to, from) in id.iter_mut().skip(16).zip(unique.to_be_bytes()) {
            *to = from;
        }
        Self(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_message_ids_have_ibm_form_and_differ() {
        let qmgr = QueueManagerName::new("QM1").unwrap();
        let id = MessageId::generate(&qmgr, Epoch::new(2), 7);
        assert_eq!(&id.as_bytes()[..16], b"AMQ QM1         ");
        assert_ne!(id, MessageId::generate(&qmgr, Epoch::new(2), 8));
        assert_ne!(id, MessageId::generate(&qmgr, Epoch::new(3), 7));
    }

    #[test]
    fn ids_read_their_own_hex_and_refuse_other_text() {
        let id = MessageId::from_hex("0aFF").unwrap();
        assert_eq!(id.as_bytes()[..3], [0x0a, 0xff, 0]);
        assert_eq!(MessageId::from_hex(&id.to_string()), Some(id));
        for bad in ["0", "0g", "é0", &"00".repeat(25)] {
            assert_eq!(MessageId::from_hex(bad), None, "{bad}");
        }
    }
}
