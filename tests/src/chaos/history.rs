//! What producers and consumers of a run saw.

use std::fmt;
use std::time::Duration;

/// A producer: messages from one queue manager to another, all persistent or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Number of the queue manager where they are put.
    pub from: usize,
    /// Number of the one where they are got.
    pub to: usize,
    /// Whether they are persistent.
    pub persistent: bool,
}

/// A message: the n-th of its producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Its producer.
    pub flow: Flow,
    /// Its number.
    pub number: u64,
}

/// How a put or a get ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Answered: it took effect.
    Done,
    /// It was backed out, or never committed.
    NotDone,
    /// Nobody can say: it may even take effect later.
    Unknown,
}

/// A put.
#[derive(Debug, Clone, Copy)]
pub struct Put {
    /// The message.
    pub name: Name,
    /// How it ended.
    pub outcome: Outcome,
}

/// A message that a consumer was given.
#[derive(Debug, Clone, Copy)]
pub struct Got {
    /// The message.
    pub name: Name,
    /// The consumer's connection.
    pub session: u32,
    /// Whether it had been given to somebody before (`BackoutCount`).
    pub again: bool,
    /// How its unit of work ended.
    pub outcome: Outcome,
    /// When, since the start.
    pub at: Duration,
}

/// A message on a queue at the end.
#[derive(Debug, Clone)]
pub struct Remaining {
    /// Number of the queue manager.
    pub queue_manager: usize,
    /// The queue.
    pub queue: String,
    /// The message.
    pub name: Name,
}

/// Everything that was seen, in order.
#[derive(Debug, Default)]
pub struct History {
    /// Puts, in the order of each producer.
    pub puts: Vec<Put>,
    /// Messages got, in the order of each connection.
    pub gets: Vec<Got>,
    /// What was on queues at the end.
    pub remaining: Vec<Remaining>,
    /// What should not happen at all: messages that nobody put, refusals, nodes that end.
    pub complaints: Vec<String>,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.persistent { 'p' } else { 'n' };
        write!(f, "{}.{}.{kind}", self.from, self.to)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.flow, self.number)
    }
}

impl Name {
    /// The data of the message: its name, and bytes that follow from the name and `length`.
    #[must_use]
    pub fn data(&self, length: usize) -> Vec<u8> {
        let mut data = format!("{self} {length}\n").into_bytes();
        let seed = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut state = seed | 1;
        data.extend((0..length).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        }));
        data
    }

    /// The message that has this data; `None` if no producer puts such data.
    #[must_use]
    pub fn of(data: &[u8]) -> Option<Self> {
        let line = data.split(|byte| *byte == b'\n').next()?;
        let mut words = std::str::from_utf8(line).ok()?.split(' ');
        let mut flow = words.next()?.split('.');
        let name = Self {
            flow: Flow {
                from: flow.next()?.parse().ok()?,
                to: flow.next()?.parse().ok()?,
                persistent: flow.next()? == "p",
            },
            number: words.next()?.parse().ok()?,
        };
        let length = words.next()?.parse().ok()?;
        (name.data(length) == data).then_some(name)
    }
}
