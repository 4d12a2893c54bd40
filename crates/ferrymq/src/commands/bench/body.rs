//! Messages of the load: each says who sent it, as which, and when, so that what arrives can be checked.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

/// Producer (4), its number (8), time (8), checksum (8); rounded up.
pub(crate) const BODY_LENGTH_MIN: usize = 32;

const SUM_AT: usize = 20;

/// Makes messages of one producer.
#[derive(Debug)]
pub(super) struct Bodies {
    producer: u32,
    next: u64,
    began: Instant,
    template: BytesMut,
}

impl Bodies {
    pub(super) fn new(producer: u32, length: usize, began: Instant) -> Self {
        let mut template = BytesMut::zeroed(length.max(BODY_LENGTH_MIN));
        // Bytes that a compressor cannot make nothing of.
        let mut state = u64::from(producer).wrapping_add(0x9e37_79b9_7f4a_7c15);
        for chunk in template.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            for (to, from) in chunk.iter_mut().zip(state.to_le_bytes()) {
                *to = from;
            }
        }
        Self {
            producer,
            next: 0,
            began,
            template,
        }
    }

    pub(super) fn next(&mut self) -> Bytes {
        let mut body = self.template.clone();
        let sent = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let head = self
            .producer
            .to_le_bytes()
            .into_iter()
            .chain(self.next.to_le_bytes())
            .chain(sent.to_le_bytes());
        for (to, from) in body.iter_mut().zip(head) {
            *to = from;
        }
        let sum = sum(&body);
        for (to, from) in body.iter_mut().skip(SUM_AT).zip(sum.to_le_bytes()) {
            *to = from;
        }
        self.next = self.next.saturating_add(1);
        body.freeze()
    }
}

/// Over everything but itself.
fn sum(body: &[u8]) -> u64 {
    let (head, tail) = body.split_at(SUM_AT.min(body.len()));
    xxh3_64(tail.get(8..).unwrap_or_default()) ^ xxh3_64(head)
}

/// A message that arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    producer: u32,
    number: u64,
    /// How long it was under way, if it was sent in this run.
    pub(super) age: Duration,
}

/// Reads a message; `None` if it is none of the load, or damaged. The checksum is looked at only where it is to be verified.
pub(super) fn read(body: &[u8], began: Instant, verify: bool) -> Option<Seen> {
    let word = |at: usize| Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?));
    if body.len() < BODY_LENGTH_MIN || (verify && word(SUM_AT)? != sum(body)) {
        return None;
    }
    let now = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Some(Seen {
        producer: u32::from_le_bytes(*body.first_chunk()?),
        number: word(4)?,
        age: Duration::from_nanos(now.saturating_sub(word(12)?)),
    })
}

/// Which messages arrived, a bit each.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    producers: BTreeMap<u32, Vec<u64>>,
    seen: u64,
    duplicated: u64,
    damaged: u64,
}

/// What the ledger comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(super) struct Verdict {
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) damaged: u64,
}

impl Ledger {
    pub(super) fn enter(&mut self, seen: Option<Seen>) {
        let Some(seen) = seen else {
            self.damaged = self.damaged.saturating_add(1);
            return;
        };
        let bits = self.producers.entry(seen.producer).or_default();
        let (word, bit) = (seen.number / 64, 1_u64 << (seen.number % 64));
        let Ok(word) = usize::try_from(word) else {
            self.damaged = self.damaged.saturating_add(1);
            return;
        };
        if word >= bits.len() {
            bits.resize(word.saturating_add(1), 0);
        }
        if let Some(word) = bits.get_mut(word) {
            if *word & bit == 0 {
                *word |= bit;
                self.seen = self.seen.saturating_add(1);
            } else {
                self.duplicated = self.duplicated.saturating_add(1);
            }
        }
    }

    /// Of `expected` messages in all.
    pub(super) fn verdict(&self, expected: u64) -> Verdict {
        Verdict {
            lost: expected.saturating_sub(self.seen),
            duplicated: self.duplicated,
            damaged: self.damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_finds_what_is_lost_doubled_or_damaged() {
        let began = Instant::now();
        let mut bodies = Bodies::new(7, 100, began);
        let all: Vec<Bytes> = (0..100).map(|_| bodies.next()).collect();
        let mut ledger = Ledger::default();
        for body in &all {
            ledger.enter(read(body, began, true));
        }
        let clean = Verdict {
            lost: 0,
            duplicated: 0,
            damaged: 0,
        };
        assert_eq!(ledger.verdict(100), clean);
        assert_eq!(ledger.verdict(101).lost, 1);
        ledger.enter(read(&all[3], began, true));
        assert_eq!(ledger.verdict(100).duplicated, 1);
        for at in 0..100 {
            let mut damaged = BytesMut::from(&all[5][..]);
            damaged[at] ^= 1;
            assert!(read(&damaged, began, true).is_none(), "byte {at}");
        }
        assert!(read(b"short", began, false).is_none());
    }
}
