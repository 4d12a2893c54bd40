//! The index of a queue against a naive model: a list of entries, searched from its start.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use ferrymq_objects::DeliverySequence;
use ferrymq_types::{
    BodyId, CorrelationId, MessageId, ObjectId, Persistence, Position, Priority, Sequence,
    Timestamp,
};

use super::harness::{local, queue_name};
use crate::MatchIds;
use crate::groups::Member;
use crate::queue::{Entry, Key, QueueState, State, Wanted};
use crate::resting::hash_id;

/// xorshift64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Few ids, so that many messages have the same.
fn id(n: u64) -> [u8; 24] {
    let mut id = *b"AMQ QM1         ........";
    id[16..].copy_from_slice(&(n % 7 + 1).to_be_bytes());
    id
}

fn same(a: &Entry, b: &Entry) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

struct Checked {
    queue: QueueState,
    model: BTreeMap<Sequence, Entry>,
    next: u64,
}

impl Checked {
    fn new() -> Self {
        let mut queue = QueueState::new(ObjectId::new(1), queue_name("A"));
        queue.definition = Some(Box::new(local(1, "A")));
        Self {
            queue,
            model: BTreeMap::new(),
            next: 0,
        }
    }

    fn put(&mut self, chance: &mut Chance, state: State) {
        self.next += 1;
        let persistent = chance.below(3) > 0;
        let moved = chance.below(8) == 0;
        let entry = Entry {
            message_id: MessageId::new(id(chance.below(100))),
            correlation: match chance.below(2) {
                0 => 0,
                _ => hash_id(&id(chance.below(100))),
            },
            body: match (persistent, moved) {
                (false, _) => BodyId::ZERO,
                (true, false) => BodyId::new(self.next),
                (true, true) => BodyId::new(self.next / 2),
            },
            position: Position::new(chance.below(1 << 40)),
            expires_at: (chance.below(4) == 0)
                .then(|| Timestamp::from_millis(chance.below(1 << 50))),
            reports_expiry: chance.below(4) == 0,
            put_time: Timestamp::from_millis(chance.below(1 << 45)),
            length: u32::try_from(chance.below(1 << 32)).unwrap(),
            backout_count: u32::try_from(chance.below(8).saturating_sub(6)).unwrap(),
            journaled_count: u32::try_from(chance.below(8).saturating_sub(6)).unwrap(),
            priority: Priority::new(u8::try_from(chance.below(3)).unwrap()).unwrap(),
            persistence: if persistent {
                Persistence::Persistent
            } else {
                Persistence::NonPersistent
            },
            group: (chance.below(2) == 0).then(|| {
                let number = u32::try_from(chance.below(3)).unwrap() + 1;
                Member {
                    group: CorrelationId::new(id(chance.below(6))),
                    number,
                    last: number == 3 || chance.below(6) == 0,
                }
            }),
            state,
        };
        self.model.insert(Sequence::new(self.next), entry);
        self.queue.insert(Sequence::new(self.next), entry);
    }

    fn some(&self, chance: &mut Chance) -> Option<Sequence> {
        let from = Sequence::new(chance.below(self.next + 1));
        self.model.range(from..).next().map(|(s, _)| *s)
    }

    /// The messages that can be had, in the order of delivery.
    fn order(&self) -> Vec<(Key, Entry)> {
        let mut all: Vec<(Key, Entry)> = self
            .model
            .iter()
            .filter(|(_, e)| e.state == State::Available)
            .map(|(s, e)| (self.queue.key(*s, e.priority), *e))
            .collect();
        all.sort_by_key(|(key, _)| *key);
        all
    }

    fn is_complete(&self, group: Option<Member>) -> bool {
        let Some(member) = group else { return true };
        let members: Vec<Member> = self
            .order()
            .iter()
            .filter_map(|(_, entry)| entry.group)
            .filter(|other| other.group == member.group)
            .collect();
        let numbers: BTreeSet<u32> = members.iter().map(|m| m.number).collect();
        let highest = *numbers.last().unwrap();
        numbers.len() == highest as usize && members.iter().any(|m| m.number == highest && m.last)
    }

    fn is_first_of_its_number(&self, key: Key, group: Option<Member>) -> bool {
        let Some(member) = group else { return true };
        let order = self.order();
        let first = order.iter().find(|(_, entry)| {
            let same =
                |other: &Member| (other.group, other.number) == (member.group, member.number);
            entry.group.as_ref().is_some_and(same)
        });
        first.is_some_and(|(first, _)| *first == key)
    }

    fn check_find(&self, chance: &mut Chance) {
        let any = |chance: &mut Chance| (chance.below(2) == 0).then(|| id(chance.below(100)));
        let mut wanted = Wanted::new(MatchIds {
            message_id: any(chance).map(MessageId::new),
            correlation_id: any(chance).map(CorrelationId::new),
            group_id: any(chance).map(CorrelationId::new),
            message_sequence_number: any(chance).map(|id| u32::from(id[23]).min(3)),
        });
        // Half of them ask for nothing of the message itself.
        if chance.below(2) == 0 {
            wanted = Wanted::new(MatchIds {
                message_id: None,
                correlation_id: None,
                ..wanted.ids
            });
        }
        wanted.complete = chance.below(2) == 0;
        let order = self.order();
        let after = (chance.below(2) == 0).then(|| {
            self.queue.key(
                Sequence::new(chance.below(self.next + 2)),
                Priority::default(),
            )
        });
        let not: BTreeSet<Sequence> = order
            .iter()
            .map(|(key, _)| key.sequence)
            .filter(|_| chance.below(5) == 0)
            .collect();
        // A complete group begins once, though two of its messages have number 1.
        let ids = &wanted.ids;
        let begins = wanted.complete
            && !wanted.by_message()
            && ids.group_id.is_none()
            && ids.message_sequence_number == Some(1);
        let expected = order
            .iter()
            .find(|(key, entry)| {
                after.is_none_or(|after| *key > after)
                    && !not.contains(&key.sequence)
                    && wanted.may_be(entry)
                    && wanted.is_member(entry.group.as_ref())
                    && (!wanted.complete || self.is_complete(entry.group))
                    && (!begins || self.is_first_of_its_number(*key, entry.group))
            })
            .map(|(key, _)| *key);
        assert_eq!(self.queue.find(&wanted, after, &not), expected);
    }

    fn check(&self) {
        let q = &self.queue;
        assert_eq!(q.depth(), self.model.len() as u64);
        let order = self.order();
        assert_eq!(q.available_len(), order.len());
        let any = Wanted::new(MatchIds::default());
        let mut after = None;
        for (key, entry) in &order {
            assert_eq!(q.find(&any, after, &BTreeSet::new()), Some(*key));
            assert!(same(&q.available(*key).unwrap(), entry));
            after = Some(*key);
        }
        assert_eq!(q.find(&any, after, &BTreeSet::new()), None);
        let all: Vec<(Sequence, Entry)> = q.entries(Bound::Unbounded).collect();
        assert_eq!(all.len(), self.model.len());
        for ((sequence, entry), (s, e)) in all.iter().zip(&self.model) {
            assert!(sequence == s && same(entry, e) && same(&q.entry(*s).unwrap(), e));
        }
        let uncommitted = |e: &&Entry| matches!(e.state, State::Uncommitted | State::Locked);
        assert_eq!(
            q.uncommitted,
            self.model.values().filter(uncommitted).count() as u64
        );
        let mut first = BTreeMap::new();
        for (key, entry) in &order {
            first
                .entry((key.rank, entry.group.is_some()))
                .or_insert(entry.put_time);
        }
        assert_eq!(q.oldest(), first.into_values().min());
        let mut expiring: Vec<_> = q.expiring().collect();
        expiring.sort_by_key(|(_, sequence)| *sequence);
        let expected = self
            .model
            .iter()
            .filter(|(_, e)| e.state == State::Available);
        let expected: Vec<_> = expected
            .filter_map(|(s, e)| Some((e.expires_at?, *s)))
            .collect();
        assert_eq!(expiring, expected);
    }
}

#[test]
fn inv_o1_o3_the_index_agrees_with_a_naive_one() {
    for seed in 1..=40u64 {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut c = Checked::new();
        for step in 0..600 {
            match chance.below(12) {
                0..4 => c.put(&mut chance, State::Available),
                4 => c.put(&mut chance, State::Uncommitted),
                // A get takes it, a backout puts it back where it was.
                5..8 => {
                    if let Some(sequence) = c.some(&mut chance) {
                        let entry = c.model.get_mut(&sequence).unwrap();
                        if entry.state == State::Available {
                            entry.state = State::Locked;
                        } else {
                            entry.state = State::Available;
                            entry.backout_count += 1;
                        }
                        let now = *entry;
                        let changed = c.queue.change(sequence, |e| *e = now).unwrap();
                        assert!(same(&changed, &now));
                    }
                }
                8..10 => {
                    if let Some(sequence) = c.some(&mut chance) {
                        let removed = c.queue.remove(sequence).unwrap();
                        assert!(same(&removed, &c.model.remove(&sequence).unwrap()));
                        assert!(c.queue.remove(sequence).is_none());
                    }
                }
                10 => c.check_find(&mut chance),
                _ if step % 20 == 0 => {
                    let definition = c.queue.definition.as_mut().unwrap();
                    definition.delivery_sequence = match definition.delivery_sequence {
                        DeliverySequence::Fifo => DeliverySequence::Priority,
                        DeliverySequence::Priority => DeliverySequence::Fifo,
                    };
                    c.queue.reorder();
                }
                _ => c.check_find(&mut chance),
            }
            if step % 30 == 0 {
                c.check();
            }
        }
        c.check();
    }
}

#[test]
fn hashes_of_generated_ids_count_up_and_differ_from_others() {
    let with = |n: u64| {
        let mut id = *b"AMQ QM1         ........";
        id[16..].copy_from_slice(&n.to_be_bytes());
        hash_id(&id)
    };
    assert_eq!(with(2), with(1).wrapping_add(1));
    assert_ne!(with(1), with(1 << 40));
    assert_ne!(hash_id(&[0; 24]), 0);
    let mut other = *b"AMQ QM2         ........";
    other[16..].copy_from_slice(&1u64.to_be_bytes());
    assert_ne!(with(1), hash_id(&other));
}
