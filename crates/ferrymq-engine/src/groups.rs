//! Messages in groups that anybody may get: beside the order of delivery they are found by their group, by their number in it,
//! and by whether the group is all there. Only messages in groups are here, so that no other message costs anything for it.
//!
//! About 110 bytes for a message more than [`RestingMessages`] takes, and 250 for a group: as many messages as `MAXDEPTH` lets
//! be. Nothing here looks at more than one message of a group, but for a browse that wants complete groups alone and does not
//! ask for their order: it passes over the messages of the others.
//!
//! Source: IBM MQ, "Message groups", "Logical and physical ordering", "Options (MQLONG)" of MQGMO.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use ferrymq_types::{CorrelationId, MessageDescriptor, Sequence, Timestamp};

use crate::ordered::Ordered;
use crate::queue::{Entry, Key, Wanted};
use crate::resting::RestingMessages;

/// A message's place in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    /// `GroupId`.
    pub(crate) group: CorrelationId,
    /// `MsgSeqNumber`.
    pub(crate) number: u32,
    /// `MQMF_LAST_MSG_IN_GROUP`.
    pub(crate) last: bool,
}

impl Member {
    /// `None` for a message that is in no group.
    pub(crate) fn of(descriptor: &MessageDescriptor) -> Option<Self> {
        descriptor.is_in_group().then(|| Self {
            group: descriptor.group_id,
            number: descriptor.message_sequence_number,
            last: descriptor.is_last_in_group(),
        })
    }
}

/// A group of which there are messages. Numbered while there are, since its id is long.
#[derive(Debug)]
struct Group {
    id: CorrelationId,
    messages: u64,
    /// How many different `MsgSeqNumber`s they have.
    numbers: u64,
    /// Its first message in the order of delivery and the one with number 1, if it is complete.
    complete: Option<(Key, Key)>,
}

/// Where a message is.
#[derive(Debug, Clone, Copy)]
struct Place {
    group: u64,
    number: u32,
    last: bool,
    rank: u8,
}

/// A group, then the number with the highest first, then the order of delivery.
type ByNumber = (u64, u32, Key);

/// The messages of a queue that are in groups and can be had.
#[derive(Debug, Default)]
pub(crate) struct GroupedMessages {
    resting: RestingMessages,
    places: Ordered<Sequence, Place>,
    ids: BTreeMap<CorrelationId, u64>,
    groups: BTreeMap<u64, Group>,
    last_group: u64,
    by_place: Ordered<(u64, Key), ()>,
    by_number: Ordered<ByNumber, ()>,
    /// Those of them that end their group.
    lasts: Ordered<ByNumber, ()>,
    numbers: Ordered<(u32, Key), ()>,
    /// The first messages of complete groups, in the order of delivery.
    complete: BTreeSet<Key>,
    /// Those with number 1.
    complete_starts: BTreeSet<Key>,
}

const FIRST: Key = Key {
    rank: 0,
    sequence: Sequence::ZERO,
};

/// Numbers are filed with the highest first.
const fn file(number: u32) -> u32 {
    u32::MAX.saturating_sub(number)
}

/// The first that is filed under a group and a number.
fn first_filed(filed: &Ordered<ByNumber, ()>, group: u64, number: u32) -> Option<Key> {
    let number = file(number);
    let from = Bound::Included((group, number, FIRST));
    let ((g, n, key), ()) = filed.range(from).next()?;
    ((g, n) == (group, number)).then_some(key)
}

impl GroupedMessages {
    pub(crate) fn len(&self) -> usize {
        self.resting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(crate) fn insert(&mut self, key: Key, entry: &Entry, member: Member) {
        self.resting.insert(key, entry);
        self.add(key, member);
    }

    /// As [`RestingMessages::insert_unfiled`].
    pub(crate) fn insert_unfiled(&mut self, key: Key, entry: &Entry, member: Member) {
        self.resting.insert_unfiled(key, entry);
        self.add(key, member);
    }

    /// As [`RestingMessages::file_all`].
    pub(crate) fn file_all(&mut self) {
        self.resting.file_all();
    }

    fn add(&mut self, key: Key, member: Member) {
        let number = match self.ids.get(&member.group) {
            Some(number) => *number,
            None => {
                self.last_group = self.last_group.saturating_add(1);
                let group = Group {
                    id: member.group,
                    messages: 0,
                    numbers: 0,
                    complete: None,
                };
                self.groups.insert(self.last_group, group);
                self.ids.insert(member.group, self.last_group);
                self.last_group
            }
        };
        let place = Place {
            group: number,
            number: member.number,
            last: member.last,
            rank: key.rank,
        };
        let new = first_filed(&self.by_number, place.group, place.number).is_none();
        self.places.insert(key.sequence, place);
        self.by_place.insert((place.group, key), ());
        let filed = (place.group, file(place.number), key);
        self.by_number.insert(filed, ());
        if place.last {
            self.lasts.insert(filed, ());
        }
        self.numbers.insert((place.number, key), ());
        if let Some(group) = self.groups.get_mut(&place.group) {
            group.messages = group.messages.saturating_add(1);
            group.numbers = group.numbers.saturating_add(u64::from(new));
        }
        self.complete_or_not(place.group);
    }

    pub(crate) fn remove(&mut self, sequence: Sequence) -> Option<Entry> {
        let mut entry = self.resting.remove(sequence)?;
        let place = self.places.remove(sequence)?;
        entry.group = self.member(place);
        let key = Key {
            rank: place.rank,
            sequence,
        };
        self.by_place.remove((place.group, key));
        let filed = (place.group, file(place.number), key);
        self.by_number.remove(filed);
        if place.last {
            self.lasts.remove(filed);
        }
        self.numbers.remove((place.number, key));
        let gone = first_filed(&self.by_number, place.group, place.number).is_none();
        let group = self.groups.get_mut(&place.group)?;
        group.messages = group.messages.saturating_sub(1);
        group.numbers = group.numbers.saturating_sub(u64::from(gone));
        self.complete_or_not(place.group);
        if let Some(group) = self.groups.get(&place.group)
            && group.messages == 0
        {
            self.ids.remove(&group.id);
            self.groups.remove(&place.group);
        }
        Some(entry)
    }

    /// Notes whether a group is complete: its highest number ends it, and all below are there.
    fn complete_or_not(&mut self, number: u64) {
        let Some(group) = self.groups.get(&number) else {
            return;
        };
        let highest = self
            .by_number
            .range(Bound::Included((number, 0, FIRST)))
            .next()
            .filter(|((g, ..), ())| *g == number)
            .map(|((_, filed, _), ())| file(filed));
        let is = highest.is_some_and(|highest| {
            group.numbers == u64::from(highest)
                && first_filed(&self.lasts, number, highest).is_some()
        });
        let complete = if is {
            let first = self
                .by_place
                .range(Bound::Included((number, FIRST)))
                .map(|((_, key), ())| key)
                .next();
            first.zip(first_filed(&self.by_number, number, 1))
        } else {
            None
        };
        let Some(group) = self.groups.get_mut(&number) else {
            return;
        };
        if group.complete == complete {
            return;
        }
        if let Some((first, start)) = group.complete {
            self.complete.remove(&first);
            self.complete_starts.remove(&start);
        }
        if let Some((first, start)) = complete {
            self.complete.insert(first);
            self.complete_starts.insert(start);
        }
        group.complete = complete;
    }

    fn member(&self, place: Place) -> Option<Member> {
        Some(Member {
            group: self.groups.get(&place.group)?.id,
            number: place.number,
            last: place.last,
        })
    }

    fn whole(&self, sequence: Sequence, mut entry: Entry) -> Entry {
        entry.group = self
            .places
            .get(sequence)
            .and_then(|place| self.member(*place));
        entry
    }

    pub(crate) fn get(&self, sequence: Sequence) -> Option<Entry> {
        Some(self.whole(sequence, self.resting.get(sequence)?))
    }

    pub(crate) fn get_at(&self, key: Key) -> Option<Entry> {
        Some(self.whole(key.sequence, self.resting.get_at(key)?))
    }

    /// Whether all messages of a group are here.
    pub(crate) fn is_complete(&self, group: CorrelationId) -> bool {
        self.ids
            .get(&group)
            .and_then(|number| self.groups.get(number))
            .is_some_and(|group| group.complete.is_some())
    }

    /// The first message behind `after` that may be wanted and is none of `not`.
    pub(crate) fn find(
        &self,
        wanted: &Wanted,
        after: Option<Key>,
        not: &BTreeSet<Sequence>,
    ) -> Option<Key> {
        let free = |key: &Key| !not.contains(&key.sequence);
        if wanted.by_message() {
            return self
                .resting
                .find_where(wanted, after, not, |key| self.fits(wanted, key));
        }
        if let Some(id) = wanted.ids.group_id {
            let group = *self.ids.get(&id)?;
            if wanted.complete && !self.is_complete(id) {
                return None;
            }
            return match wanted.ids.message_sequence_number {
                Some(number) => self
                    .by_number
                    .range(behind(after, |key| (group, file(number), key)))
                    .map(|(filed, ())| filed)
                    .take_while(|(g, n, _)| (*g, *n) == (group, file(number)))
                    .map(|(.., key)| key)
                    .find(free),
                None => self
                    .by_place
                    .range(behind(after, |key| (group, key)))
                    .map(|(filed, ())| filed)
                    .take_while(|(g, _)| *g == group)
                    .map(|(_, key)| key)
                    .find(free),
            };
        }
        match (wanted.ids.message_sequence_number, wanted.complete) {
            (None, false) => self.resting.find(wanted, after, not),
            (Some(1), true) => {
                let from = after.map_or(Bound::Unbounded, Bound::Excluded);
                let mut starts = self.complete_starts.range((from, Bound::Unbounded));
                starts.find(|key| free(key)).copied()
            }
            (None, true) if after.is_none() && not.is_empty() => self.complete.first().copied(),
            (None, true) => self
                .resting
                .find_where(wanted, after, not, |key| self.fits(wanted, key)),
            (Some(number), _) => self
                .numbers
                .range(behind(after, |key| (number, key)))
                .map(|(filed, ())| filed)
                .take_while(|(n, _)| *n == number)
                .map(|(_, key)| key)
                .find(|key| free(key) && self.fits(wanted, *key)),
        }
    }

    /// Whether a message is the wanted one of its group.
    fn fits(&self, wanted: &Wanted, key: Key) -> bool {
        self.places
            .get(key.sequence)
            .and_then(|place| self.member(*place))
            .is_some_and(|member| {
                wanted.is_member(Some(&member))
                    && (!wanted.complete || self.is_complete(member.group))
            })
    }

    pub(crate) fn by_sequence(
        &self,
        from: Bound<Sequence>,
    ) -> impl Iterator<Item = (Sequence, Entry)> {
        self.resting
            .by_sequence(from)
            .map(|(sequence, entry)| (sequence, self.whole(sequence, entry)))
    }

    pub(crate) fn upcoming(&self, from: Key) -> impl Iterator<Item = (Key, u32)> {
        self.resting.upcoming(from)
    }

    pub(crate) fn expiring(&self) -> impl Iterator<Item = (Timestamp, Sequence)> {
        self.resting.expiring()
    }

    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.resting.oldest()
    }

    /// All messages, out of here.
    pub(crate) fn drain(mut self) -> impl Iterator<Item = (Sequence, Entry)> {
        let mut resting = std::mem::take(&mut self.resting);
        let all: Vec<(Sequence, Entry)> = resting.drain().collect();
        all.into_iter()
            .map(move |(sequence, entry)| (sequence, self.whole(sequence, entry)))
    }
}

/// Where a search goes on behind a place.
fn behind<K>(after: Option<Key>, file: impl Fn(Key) -> K) -> Bound<K> {
    match after {
        Some(key) => Bound::Excluded(file(key)),
        None => Bound::Included(file(FIRST)),
    }
}
