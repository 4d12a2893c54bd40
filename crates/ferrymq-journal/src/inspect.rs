//! What a directory holds, found out without changing it: the chain of records, where it ends, and whether that is a torn tail
//! or damage (rules U3, U12).

use std::collections::BTreeSet;

use ferrymq_store::{Finding, Recovered, StoreError};
use ferrymq_types::{Epoch, Position};

use crate::{
    disk::{Disk, DiskFile},
    guard::{self, Block, Named},
    meta::Meta,
    record::{Header, Kind, blocks_bytes},
    segment::{self, BLOCK},
};

/// A segment that holds records of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) named: Named,
    /// Bytes from its start to the end of its last record.
    pub(crate) end: u64,
    /// The last position that something in it belongs to: a record, or a part that a record names.
    pub(crate) last: Position,
    /// It ends with parts that no record has named yet, or is empty behind such a segment.
    pub(crate) open_parts: bool,
}

/// A record follows that names the parts in front of it, or makes sure that none ever will: what segments end with belongs to it.
pub(crate) fn close_parts(live: &mut [Live], position: Position) {
    for live in live.iter_mut().rev().take_while(|l| l.open_parts) {
        live.last = live.last.max(position);
        live.open_parts = false;
    }
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Inspection {
    pub(crate) block: Block,
    pub(crate) findings: Vec<Finding>,
    /// Oldest first; records go on behind the last.
    pub(crate) live: Vec<Live>,
    /// Files that hold nothing that is needed.
    pub(crate) free: Vec<u32>,
    /// The checksum of the last record; zero if there is none.
    pub(crate) predecessor: u128,
    pub(crate) last: Position,
    pub(crate) epoch: Epoch,
    /// Never used before.
    pub(crate) incarnation: u64,
    /// Where records that were never acknowledged begin.
    pub(crate) cut: Option<String>,
}

impl Inspection {
    /// What a log that is opened knows.
    pub(crate) fn recovered(&self) -> Recovered {
        Recovered {
            guard: self.block.guard.clone(),
            last: self.last,
            epoch: self.epoch,
            cut: self.cut.clone(),
        }
    }

    /// The first finding that forbids to open.
    pub(crate) fn refusal(&self) -> Option<StoreError> {
        self.findings
            .iter()
            .find(|f| f.refuses_open)
            .map(|f| StoreError::corrupt(&f.file, f.offset, &f.what))
    }
}

/// Follows the chain of records.
struct Chain {
    /// `None` before the first record: there is nothing to compare that one with.
    predecessor: Option<u128>,
    first: Option<Position>,
    last: Position,
    epoch: Epoch,
    /// The highest position that is proven to have been acknowledged.
    proven: Position,
}

impl Chain {
    fn takes(&self, header: &Header, named: Named) -> bool {
        let shape = match header.kind {
            Kind::Data => header.last >= header.first,
            Kind::Epoch | Kind::Part => header.last.next() == header.first,
        };
        let follows = self
            .predecessor
            .is_none_or(|p| header.predecessor == p && header.first == self.last.next());
        shape && follows && header.incarnation == named.incarnation && header.epoch >= self.epoch
    }

    fn take(&mut self, checksum: u128, header: &Header) {
        self.predecessor = Some(checksum);
        self.first.get_or_insert(header.first);
        self.last = header.last;
        self.epoch = header.epoch;
        self.proven = self.proven.max(header.durable);
    }
}

/// How the chain goes through a segment.
struct Followed {
    /// Bytes from its start to where the records end.
    end: u64,
    /// The position of the first record that is no part: parts at the ends of earlier segments belong to it.
    closes: Option<Position>,
    /// It ends with parts.
    open_parts: bool,
}

struct Inspector<'a, D> {
    disk: &'a D,
    meta: &'a Meta,
    findings: Vec<Finding>,
}

/// Looks at everything in the directory.
///
/// Damage is a finding; an error is what the operating system said.
pub(crate) fn inspect<D: Disk>(disk: &D, meta: &Meta) -> Result<Inspection, StoreError> {
    let (block, damaged) = guard::read(disk, meta.secret)?;
    let mut inspector = Inspector {
        disk,
        meta,
        findings: Vec::new(),
    };
    if damaged {
        inspector.find(
            guard::NAME,
            None,
            "one of its two blocks does not pass its checksum; the other is used",
            false,
        );
    }
    let numbers = inspector.numbers()?;
    let named = inspector.named(&block, &numbers)?;
    if inspector.findings.iter().any(|f| f.refuses_open) {
        return Ok(Inspection {
            findings: inspector.findings,
            live: Vec::new(),
            free: Vec::new(),
            predecessor: 0,
            last: block.guard.checkpoint,
            epoch: block.epoch,
            incarnation: 0,
            cut: None,
            block,
        });
    }
    inspector.walk(block, &named, &numbers)
}

impl<D: Disk> Inspector<'_, D> {
    fn find(&mut self, name: &str, offset: Option<u64>, what: impl ToString, refuses_open: bool) {
        self.findings.push(Finding {
            file: self.disk.path(name),
            offset,
            what: what.to_string(),
            refuses_open,
        });
    }

    fn read(&self, number: u32) -> Result<Vec<u8>, StoreError> {
        let name = segment::name(number);
        self.disk
            .open_read_only(&name)
            .and_then(|f| segment::read_all(&f))
            .map_err(|e| StoreError::io("read", self.disk.path(&name), e))
    }

    /// The numbers of the segment files, each of the right length.
    fn numbers(&mut self) -> Result<BTreeSet<u32>, StoreError> {
        let names = self
            .disk
            .list()
            .map_err(|e| StoreError::io("list", self.disk.path(""), e))?;
        let mut numbers = BTreeSet::new();
        for name in names {
            let Some(number) = segment::number(&name) else {
                continue;
            };
            let length = self
                .disk
                .open_read_only(&name)
                .and_then(|f| f.length())
                .map_err(|e| StoreError::io("read", self.disk.path(&name), e))?;
            if length != self.meta.segment_bytes {
                let what = format!(
                    "it has {length} bytes instead of {}",
                    self.meta.segment_bytes
                );
                self.find(&name, None, what, true);
            }
            numbers.insert(number);
        }
        Ok(numbers)
    }

    /// The segments in use, oldest first: those that the guard names, and any that was begun after it. The latter is there only
    /// if the newest block of the guard is damaged, since that is synced before a segment is used.
    fn named(&mut self, block: &Block, numbers: &BTreeSet<u32>) -> Result<Vec<Named>, StoreError> {
        let mut named = block.segments.clone();
        for missing in named.iter().filter(|n| !numbers.contains(&n.segment)) {
            let what = "it is missing, and it holds records";
            self.find(&segment::name(missing.segment), None, what, true);
        }
        let newest = named.last().map_or(0, |n| n.incarnation);
        let known: BTreeSet<u32> = named.iter().map(|n| n.segment).collect();
        for number in numbers.difference(&known) {
            let bytes = self.read(*number)?;
            let first = Header::check(&bytes, 0, *number, self.meta.secret);
            named.extend(
                first
                    .filter(|(_, h)| h.incarnation > newest)
                    .map(|(_, h)| Named {
                        segment: *number,
                        incarnation: h.incarnation,
                    }),
            );
        }
        named.sort_by_key(|n| n.incarnation);
        Ok(named)
    }

    fn walk(
        mut self,
        block: Block,
        named: &[Named],
        numbers: &BTreeSet<u32>,
    ) -> Result<Inspection, StoreError> {
        let mut chain = Chain {
            predecessor: None,
            first: None,
            last: block.guard.checkpoint,
            epoch: Epoch::ZERO,
            proven: block.guard.acknowledged.max(block.guard.checkpoint),
        };
        let mut live: Vec<Live> = Vec::new();
        for named in named {
            let followed = self.follow(*named, &mut chain)?;
            if followed.end == 0 && !live.is_empty() {
                break;
            }
            if let Some(position) = followed.closes {
                close_parts(&mut live, position);
            }
            live.push(Live {
                named: *named,
                end: followed.end,
                last: chain.last,
                open_parts: followed.open_parts,
            });
        }
        if let Some(first) = chain.first.filter(|f| *f > block.guard.checkpoint.next()) {
            let name = named
                .first()
                .map_or_else(String::new, |n| segment::name(n.segment));
            let what = format!(
                "the records of positions {} to {} are missing",
                block.guard.checkpoint.next(),
                first.get().saturating_sub(1)
            );
            self.find(&name, Some(0), what, true);
        }
        let cut = self.behind(named, &live, &mut chain)?;
        if let Some((name, offset)) = self.end_of_chain(named, &live, &chain)? {
            let what = format!(
                "records up to position {} were acknowledged, the unharmed ones end at {}",
                chain.proven, chain.last
            );
            self.find(&name, Some(offset), what, true);
        } else if let Some((name, offset)) = &cut {
            let what = format!(
                "records behind position {} were never acknowledged and are cut off",
                chain.last
            );
            self.find(name, Some(*offset), what, false);
        }
        let used: BTreeSet<u32> = live.iter().map(|l| l.named.segment).collect();
        Ok(Inspection {
            findings: self.findings,
            free: numbers.difference(&used).copied().collect(),
            predecessor: chain.predecessor.unwrap_or(0),
            last: chain.last,
            epoch: chain.epoch.max(block.epoch),
            incarnation: named.last().map_or(0, |n| n.incarnation).saturating_add(1),
            cut: cut.map(|(name, offset)| format!("{} at byte {offset}", self.disk.path(&name))),
            live,
            block,
        })
    }

    /// Takes the records of a segment that continue the chain.
    fn follow(&self, named: Named, chain: &mut Chain) -> Result<Followed, StoreError> {
        let bytes = self.read(named.segment)?;
        let mut offset = 0;
        let (mut closes, mut open_parts) = (None, false);
        while let Some((checksum, header)) =
            Header::check(&bytes, offset, named.segment, self.meta.secret)
        {
            if !chain.takes(&header, named) {
                break;
            }
            chain.take(checksum, &header);
            open_parts = header.kind == Kind::Part;
            if !open_parts {
                closes.get_or_insert(header.last);
            }
            offset = usize::try_from(blocks_bytes(u64::from(header.length)))
                .ok()
                .and_then(|b| offset.checked_add(b))
                .unwrap_or(usize::MAX);
        }
        Ok(Followed {
            end: offset as u64,
            closes,
            open_parts,
        })
    }

    /// Looks behind the end of the chain for whole records: each proves that what it calls durable was acknowledged. Returns where
    /// something of the newest run begins that is not in the chain.
    fn behind(
        &self,
        named: &[Named],
        live: &[Live],
        chain: &mut Chain,
    ) -> Result<Option<(String, u64)>, StoreError> {
        let mut cut = None;
        let tail = live.len().saturating_sub(1);
        for (index, named) in named.iter().enumerate().skip(tail) {
            let bytes = self.read(named.segment)?;
            let start = live
                .get(index)
                .and_then(|l| usize::try_from(l.end).ok())
                .unwrap_or(0);
            for offset in (start..bytes.len()).step_by(BLOCK) {
                // What was cut off by an earlier recovery is of an earlier epoch and may still lie here.
                let recent = Header::peek(&bytes, offset)
                    .is_some_and(|h| h.incarnation == named.incarnation && h.epoch >= chain.epoch);
                if recent && cut.is_none() {
                    cut = Some((segment::name(named.segment), offset as u64));
                }
                let whole = Header::check(&bytes, offset, named.segment, self.meta.secret);
                if let Some((_, header)) = whole.filter(|(_, h)| h.incarnation == named.incarnation)
                {
                    chain.proven = chain.proven.max(header.durable);
                }
            }
        }
        Ok(cut)
    }

    /// Where the chain breaks, if something that was acknowledged is behind it.
    fn end_of_chain(
        &self,
        named: &[Named],
        live: &[Live],
        chain: &Chain,
    ) -> Result<Option<(String, u64)>, StoreError> {
        if chain.proven <= chain.last {
            return Ok(None);
        }
        let Some(tail) = live.last() else {
            return Ok(Some((guard::NAME.to_owned(), 0)));
        };
        // A segment ends regularly where the next record did not fit; then it is the next segment whose start is bad.
        let bytes = self.read(tail.named.segment)?;
        let here = usize::try_from(tail.end)
            .ok()
            .and_then(|end| bytes.get(end..))
            .and_then(|rest| rest.get(..BLOCK))
            .is_some_and(|block| {
                Header::peek(block, 0).is_some_and(|h| h.incarnation == tail.named.incarnation)
            });
        Ok(Some(match named.get(live.len()) {
            Some(next) if !here => (segment::name(next.segment), 0),
            Some(_) | None => (segment::name(tail.named.segment), tail.end),
        }))
    }
}
