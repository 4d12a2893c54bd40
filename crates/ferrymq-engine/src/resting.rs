//! Messages that anybody may get, in the order of delivery and found by their ids: what a deep queue is made of.
//!
//! About 69 bytes for a message, whatever its priority and length: 56 of its record and 12 for its message id; 12 more for a
//! correlation id, and 5 more for each of them that is random (measured by the example `engine_cost`). One that expires takes
//! 16 more here, and 24 in the order of expiry; one that was backed out or moved 24. Nothing here looks at more than one chunk
//! or two of [`Ordered`].

use std::collections::BTreeSet;
use std::ops::Bound;

use ferrymq_types::{BodyId, MessageId, Persistence, Position, Priority, Sequence, Timestamp};

use crate::ordered::Ordered;
use crate::queue::{Entry, Key, State, Wanted};

/// Orders of delivery: one for each priority.
const RANKS: usize = Priority::MAX.get() as usize + 1;

/// A short hash of an id: the same in every run, so that the same inputs give the same effects. 0 is none. Ids that a queue
/// manager generates count up in their last bytes, and so do their hashes: an index of them grows at its end.
///
/// Two ids may have the same one: what is found by it is compared with the message itself.
pub(crate) fn hash_id(id: &[u8; 24]) -> u32 {
    let (words, _) = id.as_chunks::<4>();
    let (&count, head) = words.split_last().unwrap_or((&[0; 4], &[]));
    let mut hash: u64 = 0;
    for word in head {
        // The multiplier of xorshift64*.
        hash = (hash ^ u64::from(u32::from_be_bytes(*word))).wrapping_mul(0x2545_f491_4f6c_dd1d);
        hash ^= hash >> 32;
    }
    #[allow(clippy::cast_possible_truncation, reason = "a hash")]
    let head = hash as u32;
    head.wrapping_add(u32::from_be_bytes(count)).max(1)
}

/// A message that rests. Small: a queue may hold tens of millions.
#[derive(Debug, Clone, Copy)]
struct Resting {
    position: Position,
    message_id: MessageId,
    length: u32,
    correlation: u32,
    /// Milliseconds: 48 bits, the highest first.
    put_time: [u16; 3],
    priority: Priority,
    marks: u8,
}

/// It is persistent.
const PERSISTENT: u8 = 1;
/// There is a [`Special`] for it.
const SPECIAL: u8 = 2;
/// It expires.
const EXPIRES: u8 = 4;
/// Its expiry is to be reported.
const REPORTS_EXPIRY: u8 = 8;

/// What few messages have.
#[derive(Debug, Clone, Copy)]
struct Special {
    body: BodyId,
    backout_count: u32,
    journaled_count: u32,
}

/// An id's hash, then the place in the order of delivery: 4 bits of rank and 60 of sequence, in two halves.
type Filed = [u32; 3];

/// Sequences that fit into a [`Filed`]: at a million messages a second they last for 36,000 years.
const SEQUENCE_BITS: u32 = 60;

fn file(hash: u32, key: Key) -> Filed {
    let sequence = key.sequence.get().min((1 << SEQUENCE_BITS) - 1);
    let place = (u64::from(key.rank) << SEQUENCE_BITS) | sequence;
    let [a, b, c, d, e, f, g, h] = place.to_be_bytes();
    [
        hash,
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    ]
}

fn key_of([_, high, low]: Filed) -> Key {
    let place = (u64::from(high) << 32) | u64::from(low);
    Key {
        rank: u8::try_from(place >> SEQUENCE_BITS).unwrap_or(u8::MAX),
        sequence: Sequence::new(place & ((1 << SEQUENCE_BITS) - 1)),
    }
}

/// The messages of a queue that can be had.
#[derive(Debug, Default)]
pub(crate) struct RestingMessages {
    ranks: [Ordered<Sequence, Resting>; RANKS],
    special: Ordered<Sequence, Special>,
    expires_at: Ordered<Sequence, Timestamp>,
    by_message_id: Ordered<Filed, ()>,
    by_correlation: Ordered<Filed, ()>,
}

impl RestingMessages {
    pub(crate) fn len(&self) -> usize {
        self.ranks
            .iter()
            .fold(0, |sum, rank| sum.saturating_add(rank.len()))
    }

    pub(crate) fn insert(&mut self, key: Key, entry: &Entry) {
        self.insert_unfiled(key, entry);
        let hash = hash_id(entry.message_id.as_bytes());
        self.by_message_id.insert(file(hash, key), ());
        if entry.correlation != 0 {
            self.by_correlation.insert(file(entry.correlation, key), ());
        }
    }

    /// Files all messages by their ids: at once that is several times cheaper than one by one, where ids are random.
    pub(crate) fn file_all(&mut self) {
        let file_by = |hash: fn(&Resting) -> u32| {
            let mut all = Vec::with_capacity(self.len());
            for (map, rank) in self.ranks.iter().zip(0..) {
                let hashed = map
                    .iter()
                    .map(|(sequence, resting)| (hash(resting), Key { rank, sequence }));
                all.extend(
                    hashed
                        .filter(|(hash, _)| *hash != 0)
                        .map(|(hash, key)| file(hash, key)),
                );
            }
            all.sort_unstable();
            let mut index = Ordered::default();
            for filed in all {
                index.insert(filed, ());
            }
            index
        };
        let by_message_id = file_by(|resting| hash_id(resting.message_id.as_bytes()));
        let by_correlation = file_by(|resting| resting.correlation);
        (self.by_message_id, self.by_correlation) = (by_message_id, by_correlation);
    }

    /// Adds a message that is not found by its ids before [`RestingMessages::file_all`].
    pub(crate) fn insert_unfiled(&mut self, key: Key, entry: &Entry) {
        let special = Special {
            body: entry.body,
            backout_count: entry.backout_count,
            journaled_count: entry.journaled_count,
        };
        let usual = special.body == usual_body(key.sequence, entry.persistence)
            && (special.backout_count, special.journaled_count) == (0, 0);
        let persistent = match entry.persistence {
            Persistence::Persistent => PERSISTENT,
            Persistence::NonPersistent => 0,
        };
        let [_, _, a, b, c, d, e, f] = entry.put_time.as_millis().min((1 << 48) - 1).to_be_bytes();
        let resting = Resting {
            position: entry.position,
            message_id: entry.message_id,
            length: entry.length,
            correlation: entry.correlation,
            put_time: [
                u16::from_be_bytes([a, b]),
                u16::from_be_bytes([c, d]),
                u16::from_be_bytes([e, f]),
            ],
            priority: entry.priority,
            marks: persistent
                | if usual { 0 } else { SPECIAL }
                | entry.expires_at.map_or(0, |_| EXPIRES)
                | if entry.reports_expiry {
                    REPORTS_EXPIRY
                } else {
                    0
                },
        };
        let Some(rank) = self.ranks.get_mut(usize::from(key.rank)) else {
            return;
        };
        rank.insert(key.sequence, resting);
        if !usual {
            self.special.insert(key.sequence, special);
        }
        if let Some(at) = entry.expires_at {
            self.expires_at.insert(key.sequence, at);
        }
    }

    /// Takes a message out.
    pub(crate) fn remove(&mut self, sequence: Sequence) -> Option<Entry> {
        let (rank, resting) = self.ranks.iter_mut().zip(0..).find_map(|(map, rank)| {
            if map.is_empty() {
                return None;
            }
            Some((rank, map.remove(sequence)?))
        })?;
        let special = if resting.marks & SPECIAL == 0 {
            None
        } else {
            self.special.remove(sequence)
        };
        let expires_at = if resting.marks & EXPIRES == 0 {
            None
        } else {
            self.expires_at.remove(sequence)
        };
        let key = Key { rank, sequence };
        let hash = hash_id(resting.message_id.as_bytes());
        self.by_message_id.remove(file(hash, key));
        if resting.correlation != 0 {
            self.by_correlation.remove(file(resting.correlation, key));
        }
        Some(entry_of(sequence, &resting, special, expires_at))
    }

    pub(crate) fn get(&self, sequence: Sequence) -> Option<Entry> {
        let resting = self.ranks.iter().find_map(|rank| rank.get(sequence))?;
        Some(self.whole(sequence, resting))
    }

    pub(crate) fn get_at(&self, key: Key) -> Option<Entry> {
        let resting = self.ranks.get(usize::from(key.rank))?.get(key.sequence)?;
        Some(self.whole(key.sequence, resting))
    }

    fn whole(&self, sequence: Sequence, resting: &Resting) -> Entry {
        let special = if resting.marks & SPECIAL == 0 {
            None
        } else {
            self.special.get(sequence).copied()
        };
        let expires_at = if resting.marks & EXPIRES == 0 {
            None
        } else {
            self.expires_at.get(sequence).copied()
        };
        entry_of(sequence, resting, special, expires_at)
    }

    /// The first message behind `after` that may be wanted and is none of `not`.
    pub(crate) fn find(
        &self,
        wanted: &Wanted,
        after: Option<Key>,
        not: &BTreeSet<Sequence>,
    ) -> Option<Key> {
        self.find_where(wanted, after, not, |_| true)
    }

    /// As [`RestingMessages::find`], of those that are `fit`.
    pub(crate) fn find_where(
        &self,
        wanted: &Wanted,
        after: Option<Key>,
        not: &BTreeSet<Sequence>,
        fit: impl Fn(Key) -> bool,
    ) -> Option<Key> {
        let fits = |key: &Key| !not.contains(&key.sequence) && fit(*key);
        match (wanted.message_id, wanted.correlation) {
            (Some(hash), _) => self.find_filed(&self.by_message_id, hash, wanted, after, fits),
            (None, Some(hash)) => self.find_filed(&self.by_correlation, hash, wanted, after, fits),
            (None, None) => self.keys(after).find(fits),
        }
    }

    fn find_filed(
        &self,
        index: &Ordered<Filed, ()>,
        hash: u32,
        wanted: &Wanted,
        after: Option<Key>,
        fits: impl Fn(&Key) -> bool,
    ) -> Option<Key> {
        let from = match after {
            Some(key) => Bound::Excluded(file(hash, key)),
            None => Bound::Included([hash, 0, 0]),
        };
        index
            .range(from)
            .map(|(filed, ())| filed)
            .take_while(|filed| filed[0] == hash)
            .map(key_of)
            .find(|key| fits(key) && self.get_at(*key).is_some_and(|entry| wanted.may_be(&entry)))
    }

    /// The places behind `after`, in the order of delivery.
    fn keys(&self, after: Option<Key>) -> impl Iterator<Item = Key> {
        self.behind(after).map(|(key, _)| key)
    }

    /// The persistent messages behind `from`, in the order of delivery, with the bytes of each.
    pub(crate) fn upcoming(&self, from: Key) -> impl Iterator<Item = (Key, u32)> {
        self.behind(Some(from))
            .filter(|(_, resting)| resting.marks & PERSISTENT != 0)
            .map(|(key, resting)| (key, resting.length))
    }

    fn behind(&self, after: Option<Key>) -> impl Iterator<Item = (Key, &Resting)> {
        let first = after.map_or(0, |key| key.rank);
        self.ranks
            .iter()
            .zip(0..)
            .skip(usize::from(first))
            .filter(|(map, _)| !map.is_empty())
            .flat_map(move |(map, rank): (_, u8)| {
                let from = match after {
                    Some(key) if key.rank == rank => Bound::Excluded(key.sequence),
                    Some(_) | None => Bound::Unbounded,
                };
                map.range(from)
                    .map(move |(sequence, resting)| (Key { rank, sequence }, resting))
            })
    }

    /// Messages in the order of their sequences, from one on.
    pub(crate) fn by_sequence(
        &self,
        from: Bound<Sequence>,
    ) -> impl Iterator<Item = (Sequence, Entry)> {
        let mut ranks: Vec<_> = self
            .ranks
            .iter()
            .map(|rank| rank.range(from).peekable())
            .collect();
        std::iter::from_fn(move || {
            let (_, next) = ranks
                .iter_mut()
                .filter_map(|rank| Some((rank.peek()?.0, rank)))
                .min_by_key(|(sequence, _)| *sequence)?;
            let (sequence, resting) = next.next()?;
            Some((sequence, self.whole(sequence, resting)))
        })
    }

    /// The messages that expire.
    pub(crate) fn expiring(&self) -> impl Iterator<Item = (Timestamp, Sequence)> {
        self.expires_at.iter().map(|(sequence, at)| (*at, sequence))
    }

    /// When the oldest was put: the first of each priority is looked at.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.ranks
            .iter()
            .filter_map(|rank| rank.first())
            .map(|(_, resting)| resting.put_time())
            .min()
    }

    /// All messages, out of here.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Sequence, Entry)> {
        let all = std::mem::take(self);
        let Self {
            ranks,
            special,
            expires_at,
            ..
        } = all;
        ranks.into_iter().flat_map(Ordered::into_iter).map({
            move |(sequence, resting)| {
                let special = special.get(sequence).copied();
                let expires_at = expires_at.get(sequence).copied();
                (sequence, entry_of(sequence, &resting, special, expires_at))
            }
        })
    }
}

impl Resting {
    fn put_time(&self) -> Timestamp {
        let [high, middle, low] = self.put_time.map(u64::from);
        Timestamp::from_millis((high << 32) | (middle << 16) | low)
    }
}

/// The body of a persistent message that was never moved has the number of its place.
pub(crate) fn usual_body(sequence: Sequence, persistence: Persistence) -> BodyId {
    match persistence {
        Persistence::Persistent => BodyId::new(sequence.get()),
        Persistence::NonPersistent => BodyId::ZERO,
    }
}

fn entry_of(
    sequence: Sequence,
    resting: &Resting,
    special: Option<Special>,
    expires_at: Option<Timestamp>,
) -> Entry {
    let persistence = if resting.marks & PERSISTENT == 0 {
        Persistence::NonPersistent
    } else {
        Persistence::Persistent
    };
    let special = special.unwrap_or(Special {
        body: usual_body(sequence, persistence),
        backout_count: 0,
        journaled_count: 0,
    });
    Entry {
        message_id: resting.message_id,
        correlation: resting.correlation,
        body: special.body,
        position: resting.position,
        expires_at,
        put_time: resting.put_time(),
        length: resting.length,
        backout_count: special.backout_count,
        journaled_count: special.journaled_count,
        priority: resting.priority,
        persistence,
        reports_expiry: resting.marks & REPORTS_EXPIRY != 0,
        group: None,
        state: State::Available,
    }
}
