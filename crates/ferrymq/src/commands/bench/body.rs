//! Messages of the load: each says of which run it is, who sent it, as which, and when, so that what arrives can be checked.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

/// Run (4), producer (4), its number (8), time (8), checksum (8).
pub(crate) const BODY_LENGTH_MIN: usize = 32;

const PRODUCER_AT: usize = 4;
const NUMBER_AT: usize = 8;
const TIME_AT: usize = 16;
const SUM_AT: usize = 24;

/// One run of the program: its number is random, its clock means nothing to another run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) id: u32,
    pub(super) began: Instant,
}

impl Run {
    fn nanoseconds(self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Makes messages of one producer.
#[derive(Debug)]
pub(super) struct Bodies {
    run: Run,
    next: u64,
    template: BytesMut,
}

impl Bodies {
    pub(super) fn new(run: Run, producer: u32, length: usize) -> Self {
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
        write(&mut template, 0, &run.id.to_le_bytes());
        write(&mut template, PRODUCER_AT, &producer.to_le_bytes());
        Self {
            run,
            next: 0,
            template,
        }
    }

    pub(super) fn next(&mut self) -> Bytes {
        let mut body = self.template.clone();
        write(&mut body, NUMBER_AT, &self.next.to_le_bytes());
        write(&mut body, TIME_AT, &self.run.nanoseconds().to_le_bytes());
        let sum = sum(&body);
        write(&mut body, SUM_AT, &sum.to_le_bytes());
        self.next = self.next.saturating_add(1);
        body.freeze()
    }
}

fn write(body: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in body.iter_mut().skip(at).zip(bytes) {
        *to = *from;
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
    run: u32,
    producer: u32,
    number: u64,
    /// How long it was under way, if it was sent in this run.
    pub(super) age: Option<Duration>,
}

impl Seen {
    /// Whether it is this message of this run.
    pub(super) fn is(&self, run: Run, producer: u32, number: u64) -> bool {
        (self.run, self.producer, self.number) == (run.id, producer, number)
    }
}

/// Reads a message; `None` if it is none of a load, or damaged. The checksum is looked at only where it is to be verified.
pub(super) fn read(body: &[u8], run: Run, verify: bool) -> Option<Seen> {
    let word = |at: usize| Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?));
    if body.len() < BODY_LENGTH_MIN || (verify && word(SUM_AT)? != sum(body)) {
        return None;
    }
    let sent_by = half(0)?;
    let age = run.nanoseconds().saturating_sub(word(TIME_AT)?);
    Some(Seen {
        run: sent_by,
        producer: half(PRODUCER_AT)?,
        number: word(NUMBER_AT)?,
        age: (sent_by == run.id).then_some(Duration::from_nanos(age)),
    })
}

/// Which numbers a page of the ledger covers.
const PAGE_BITS: u64 = 512;

/// A producer of a run, and a page of its numbers.
type Page = (u32, u32, u64);

/// Which messages arrived, a bit each.
///
/// Bits are in pages, and a message makes one page at most: whatever its body says, it cannot make the ledger large.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pages: BTreeMap<Page, [u64; 8]>,
    /// Each counted once.
    arrived: u64,
    duplicated: u64,
    damaged: u64,
    left: u64,
}

/// What the ledger comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(super) struct Verdict {
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) damaged: u64,
    /// On the queue at the end, and not delivered though it was waited for.
    pub(super) left: u64,
}

impl Verdict {
    pub(super) const fn is_clean(&self) -> bool {
        self.lost == 0 && self.duplicated == 0 && self.damaged == 0 && self.left == 0
    }
}

impl Ledger {
    /// Notes a message that was delivered.
    pub(super) fn enter(&mut self, seen: Option<Seen>) {
        let Some(seen) = seen else {
            self.damaged = self.damaged.saturating_add(1);
            return;
        };
        if self.mark(seen) {
            self.arrived = self.arrived.saturating_add(1);
        } else {
            self.duplicated = self.duplicated.saturating_add(1);
        }
    }

    /// Notes a message that is on the queue when all is over. `Others::MayBeThere`: only a copy of one that arrived is wrong.
    pub(super) fn find_left(&mut self, seen: Option<Seen>, others: Others) {
        match (seen, others) {
            (Some(seen), Others::MayBeThere) => {
                if self.has(seen) {
                    self.duplicated = self.duplicated.saturating_add(1);
                }
            }
            (None, Others::MayBeThere) => {}
            (Some(seen), Others::AreWrong) => {
                if self.mark(seen) {
                    self.left = self.left.saturating_add(1);
                } else {
                    self.duplicated = self.duplicated.saturating_add(1);
                }
            }
            (None, Others::AreWrong) => self.damaged = self.damaged.saturating_add(1),
        }
    }

    /// Returns whether it was not marked before.
    fn mark(&mut self, seen: Seen) -> bool {
        let (page, word, bit) = place(seen);
        let words = self.pages.entry(page).or_default();
        let Some(word) = words.get_mut(word) else {
            return false;
        };
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    fn has(&self, seen: Seen) -> bool {
        let (page, word, bit) = place(seen);
        let word = self.pages.get(&page).and_then(|words| words.get(word));
        word.is_some_and(|word| word & bit != 0)
    }

    /// Messages that arrived, each counted once, damaged ones not at all.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Of `expected` messages in all.
    pub(super) fn verdict(&self, expected: u64) -> Verdict {
        Verdict {
            lost: expected.saturating_sub(self.arrived.saturating_add(self.left)),
            duplicated: self.duplicated,
            damaged: self.damaged,
            left: self.left,
        }
    }
}

/// Whether messages that did not arrive may be on the queue at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// Only so many were to be got.
    MayBeThere,
    /// All that was put was to arrive.
    AreWrong,
}

/// The page, the word in it, and the bit in that.
fn place(seen: Seen) -> (Page, usize, u64) {
    let page = (seen.run, seen.producer, seen.number / PAGE_BITS);
    let within = seen.number % PAGE_BITS;
    let word = usize::try_from(within / 64).expect("less than eight");
    (page, word, 1 << (within % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: u32) -> Run {
        Run {
            id,
            began: Instant::now(),
        }
    }

    const CLEAN: Verdict = Verdict {
        lost: 0,
        duplicated: 0,
        damaged: 0,
        left: 0,
    };

    #[test]
    fn a_ledger_finds_what_is_lost_doubled_or_damaged() {
        let run = run(1);
        let mut bodies = Bodies::new(run, 7, 100);
        let all: Vec<Bytes> = (0..1000).map(|_| bodies.next()).collect();
        let mut ledger = Ledger::default();
        for body in &all {
            ledger.enter(read(body, run, true));
        }
        assert_eq!(ledger.verdict(1000), CLEAN);
        assert_eq!(ledger.verdict(1001).lost, 1);
        ledger.enter(read(&all[3], run, true));
        for at in 0..100 {
            let mut damaged = BytesMut::from(&all[5][..]);
            damaged[at] ^= 1;
            assert!(read(&damaged, run, true).is_none(), "byte {at}");
        }
        assert!(read(b"short", run, false).is_none());
        ledger.enter(None);
        assert_eq!(ledger.arrived(), 1000, "copies and ruins do not arrive");
        let verdict = ledger.verdict(1001);
        let found = (verdict.lost, verdict.duplicated, verdict.damaged);
        assert_eq!(found, (1, 1, 1));
    }

    #[test]
    fn runs_with_the_same_producers_and_numbers_are_told_apart() {
        let (one, other) = (run(1), run(2));
        let mut ledger = Ledger::default();
        for run in [one, other] {
            ledger.enter(read(&Bodies::new(run, 0, 64).next(), one, true));
        }
        assert_eq!(ledger.verdict(2), CLEAN);
    }

    #[test]
    fn only_a_message_of_this_run_has_an_age() {
        let (one, other) = (run(1), run(2));
        let body = Bodies::new(one, 0, 64).next();
        assert!(read(&body, one, true).is_some_and(|s| s.age.is_some()));
        assert!(read(&body, other, true).is_some_and(|s| s.age.is_none()));
    }

    #[test]
    fn a_crafted_number_makes_one_page_and_no_more() {
        let run = run(1);
        let mut ledger = Ledger::default();
        for number in [u64::MAX, u64::MAX - 1, u64::MAX / 2, 0] {
            let mut body = BytesMut::from(&Bodies::new(run, u32::MAX, 64).next()[..]);
            write(&mut body, NUMBER_AT, &number.to_le_bytes());
            ledger.enter(read(&body, run, false));
        }
        assert_eq!((ledger.arrived(), ledger.pages.len()), (4, 3));
    }

    #[test]
    fn what_is_left_on_the_queue_is_a_copy_or_was_not_delivered() {
        let run = run(1);
        let mut bodies = Bodies::new(run, 0, 64);
        let (first, second) = (bodies.next(), bodies.next());
        let mut get = Ledger::default();
        get.enter(read(&first, run, true));
        get.find_left(read(&second, run, true), Others::MayBeThere);
        get.find_left(None, Others::MayBeThere);
        assert_eq!(get.verdict(1), CLEAN);
        get.find_left(read(&first, run, true), Others::MayBeThere);
        assert_eq!(get.verdict(1).duplicated, 1);
        let mut all = Ledger::default();
        all.enter(read(&first, run, true));
        all.find_left(read(&second, run, true), Others::AreWrong);
        let verdict = all.verdict(2);
        assert_eq!(
            (verdict.lost, verdict.left, verdict.is_clean()),
            (0, 1, false)
        );
    }
}
