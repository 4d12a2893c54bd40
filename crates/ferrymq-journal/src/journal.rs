//! The journal's owner: opens, appends, rotates, recycles.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;

use ferrymq_store::{
    Appended, LogUsage, Place, Record, RecordLog, Recovered, StoreError, crash_point,
};
use ferrymq_types::{Epoch, Position};

use crate::{
    disk::{Disk, DiskFile, OsDisk},
    guard::{self, Block, Named},
    inspect::{self, Live},
    meta::{self, Meta},
    record::{HEADER_BYTES, Header, Kind, blocks_bytes},
    segment::{self, BLOCK, BLOCK_BYTES},
    shared::{JournalRead, JournalSync, Readable, Serial, Shared, State, lock},
};

const RESERVE: &str = "reserve.bin";

/// Bytes of the blocks of one part, at most. Default segments hold sixteen.
const PART_BLOCKS_BYTES: u64 = 4 * 1024 * 1024;

/// There while a journal is created.
const CREATING: &str = "creating";

/// Settings of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalOptions {
    /// Bytes of a segment; a record fits in one, and what is larger goes in parts. Default 64 MiB, at least 64 KiB, at most 1 GiB, in whole blocks. An existing
    /// journal keeps the size that it was created with.
    pub segment_bytes: u64,
    /// Segments that the journal may have: its size is fixed (rule U19). Default 16, at least 3, at most 200.
    pub segments_max: u32,
    /// Bytes of the file that is given back when the disk is full (rule U18). Default 64 MiB; 0 is none.
    pub reserve_bytes: u64,
    /// How old the guard may become under load (rule U12). Default one second.
    pub guard_interval: Duration,
    /// Whether the next segment is written by a thread of its own while the last free one is filled. Default yes; a test that
    /// must be repeatable says no.
    pub prepare_in_background: bool,
}

impl JournalOptions {
    /// The defaults.
    pub const DEFAULTS: Self = Self {
        segment_bytes: 64 * 1024 * 1024,
        segments_max: 16,
        reserve_bytes: 64 * 1024 * 1024,
        guard_interval: Duration::from_secs(1),
        prepare_in_background: true,
    };

    fn checked(self) -> Self {
        let bytes = self.segment_bytes.clamp(64 * 1024, 1024 * 1024 * 1024);
        Self {
            segment_bytes: bytes.next_multiple_of(BLOCK_BYTES),
            segments_max: self.segments_max.clamp(3, guard::SEGMENTS_MAX),
            ..self
        }
    }
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self::DEFAULTS
    }
}

/// The segment that is being filled.
#[derive(Debug)]
struct Active<F> {
    named: Named,
    file: Arc<F>,
    offset: u64,
}

type Segment<F> = (u32, Arc<F>);

/// A journal in a directory. See the [crate's](crate) page; used through [`RecordLog`].
#[derive(Debug)]
pub struct Journal<D: Disk = OsDisk> {
    shared: Arc<Shared<D>>,
    /// Keeps other processes out.
    _lock: D::Lock,
    options: JournalOptions,
    recovered: Recovered,
    started: bool,
    active: Option<Active<D::File>>,
    free: VecDeque<Segment<D::File>>,
    spare: Option<JoinHandle<Result<Segment<D::File>, StoreError>>>,
    /// Segment files that there are or that are being made.
    files: u32,
    next_number: u32,
    next_incarnation: u64,
    predecessor: u128,
    /// Reused for each record.
    buffer: Vec<u8>,
}

impl Journal<OsDisk> {
    /// Opens the journal in a directory, or creates it.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_directory(directory: &Path, options: JournalOptions) -> Result<Self, StoreError> {
        let disk = OsDisk::create(directory)
            .map_err(|e| StoreError::io("create", directory.display(), e))?;
        Self::open(disk, options)
    }
}

impl<D: Disk> Journal<D> {
    /// Opens a journal, or creates it where there is none. Reads all of it and changes nothing that is there.
    ///
    /// # Errors
    /// [`StoreError::InUse`]; [`StoreError::NewerFormat`]; [`StoreError::Corrupt`] for damage to anything that was acknowledged,
    /// naming the file; what the disk says.
    pub fn open(disk: D, options: JournalOptions) -> Result<Self, StoreError> {
        let options = options.checked();
        let directory = disk.path("");
        let lock = disk
            .lock()
            .map_err(|e| StoreError::io("lock", &directory, e))?
            .ok_or(StoreError::InUse { directory })?;
        let meta = Self::meta(&disk, options)?;
        let found = inspect::inspect(&disk, &meta)?;
        if let Some(refusal) = found.refusal() {
            return Err(refusal);
        }
        for finding in &found.findings {
            tracing::warn!(
                file = finding.file,
                offset = finding.offset,
                "{}",
                finding.what
            );
        }
        let open = |number: u32| -> Result<Segment<D::File>, StoreError> {
            let name = segment::name(number);
            disk.open(&name)
                .map(|file| (number, Arc::new(file)))
                .map_err(|e| StoreError::io("open", disk.path(&name), e))
        };
        let mut segments = BTreeMap::new();
        let mut active = None;
        for live in &found.live {
            let (number, file) = open(live.named.segment)?;
            active = Some(Active {
                named: live.named,
                file: Arc::clone(&file),
                offset: live.end,
            });
            let incarnation = Some(live.named.incarnation);
            segments.insert(number, Readable { file, incarnation });
        }
        let free = found
            .free
            .iter()
            .map(|n| open(*n))
            .collect::<Result<VecDeque<_>, _>>()?;
        for (number, file) in &free {
            let file = Arc::clone(file);
            segments.insert(
                *number,
                Readable {
                    file,
                    incarnation: None,
                },
            );
        }
        let serial = Serial {
            file: disk
                .open(guard::NAME)
                .map_err(|e| StoreError::io("open", disk.path(guard::NAME), e))?,
            generation: found.block.generation,
            written: Instant::now(),
        };
        let numbers = segments.keys().copied();
        Ok(Self {
            files: u32::try_from(segments.len()).unwrap_or(u32::MAX),
            next_number: numbers.max().unwrap_or(0).saturating_add(1),
            next_incarnation: found.incarnation,
            predecessor: found.predecessor,
            recovered: found.recovered(),
            shared: Arc::new(Shared {
                disk,
                secret: meta.secret,
                segment_bytes: meta.segment_bytes,
                guard_interval: options.guard_interval,
                state: Mutex::new(State {
                    appended: found.last,
                    durable: found.block.guard.acknowledged,
                    dirty: Vec::new(),
                    failed: None,
                    epoch: found.epoch,
                    checkpoint: found.block.guard.checkpoint,
                    counts: found.block.guard.counts,
                    live: found.live,
                    copies: 0,
                }),
                serial: Mutex::new(serial),
                segments: RwLock::new(segments),
            }),
            _lock: lock,
            options,
            started: false,
            active,
            free,
            spare: None,
            buffer: Vec::new(),
        })
    }

    /// Reads what stays the same, or creates the journal. The files of a creation that did not end were never used.
    fn meta(disk: &D, options: JournalOptions) -> Result<Meta, StoreError> {
        let names = disk
            .list()
            .map_err(|e| StoreError::io("list", disk.path(""), e))?;
        let has = |name: &str| names.iter().any(|n| n == name);
        if has(meta::NAME) {
            let unfinished = |n: &&String| n.ends_with(".new") || *n == CREATING;
            for unfinished in names.iter().filter(unfinished) {
                disk.remove(unfinished)
                    .map_err(|e| StoreError::io("remove", disk.path(unfinished), e))?;
            }
            return Meta::read(disk);
        }
        let segments = names.iter().any(|n| segment::number(n).is_some());
        if segments || (has(guard::NAME) && !has(CREATING)) {
            let what = "it is missing, and the journal cannot be read without it";
            return Err(StoreError::corrupt(disk.path(meta::NAME), None, what));
        }
        // The marker says that the guard belongs to a creation under way; the name of the meta file ends that.
        disk.create(CREATING)
            .and_then(|file| file.sync())
            .and_then(|()| disk.sync_directory())
            .map_err(|e| StoreError::io("create", disk.path(CREATING), e))?;
        let meta = Meta::new(options.segment_bytes)?;
        let first = Block {
            generation: 1,
            ..Block::default()
        };
        guard::create(disk, meta.secret, &first)?;
        meta.create(disk)?;
        disk.remove(CREATING)
            .map_err(|e| StoreError::io("remove", disk.path(CREATING), e))?;
        Ok(meta)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State<D::File>> {
        lock(&self.shared.state)
    }

    /// Writes one record behind the last. On an error nothing of it counts: its blocks hold no acknowledged bytes and are written
    /// again.
    fn write(&mut self, kind: Kind, span: u64, parts: &[&[u8]]) -> Result<Appended, StoreError> {
        let payload = parts
            .iter()
            .map(|p| p.len() as u64)
            .fold(0, u64::saturating_add);
        let max = self.payload_bytes_max();
        let length = u32::try_from(payload)
            .ok()
            .filter(|_| payload <= max)
            .ok_or(StoreError::TooLarge {
                bytes: payload,
                max,
            })?;
        let bytes = blocks_bytes(payload);
        let fits =
            |a: &Active<D::File>| a.offset.saturating_add(bytes) <= self.shared.segment_bytes;
        if !self.active.as_ref().is_some_and(fits) {
            self.rotate()?;
        }
        let Some(active) = &mut self.active else {
            return Err(StoreError::Failed {
                cause: "no segment is in use".to_owned(),
            });
        };
        let (epoch, appended, durable) = {
            let state = lock(&self.shared.state);
            state.check()?;
            (state.epoch, state.appended, state.durable)
        };
        let header = Header {
            kind,
            epoch,
            segment: active.named.segment,
            incarnation: active.named.incarnation,
            offset: active.offset,
            first: appended.next(),
            last: Position::new(appended.get().saturating_add(span)),
            predecessor: self.predecessor,
            durable,
            length,
        };
        let checksum = header.write(self.shared.secret, parts, &mut self.buffer);
        crash_point("journal.before_write");
        active
            .file
            .write_at(&self.buffer, active.offset)
            .map_err(|e| {
                let name = segment::name(active.named.segment);
                StoreError::io("write", self.shared.disk.path(&name), e)
            })?;
        crash_point("journal.after_write");
        let place = Place {
            segment: active.named.segment,
            incarnation: active.named.incarnation,
            offset: active.offset.saturating_add(HEADER_BYTES as u64),
            length,
        };
        active.offset = active.offset.saturating_add(bytes);
        self.predecessor = checksum;
        let mut state = lock(&self.shared.state);
        state.appended = header.last;
        if kind != Kind::Part {
            inspect::close_parts(&mut state.live, header.last);
        }
        if let Some(live) = state.live.last_mut() {
            live.end = active.offset;
            live.last = header.last;
            live.open_parts = kind == Kind::Part;
        }
        if !state.dirty.iter().any(|f| Arc::ptr_eq(f, &active.file)) {
            state.dirty.push(Arc::clone(&active.file));
        }
        drop(state);
        // A record of a rare size should not hold its memory for ever.
        if self.buffer.capacity() > 8 * 1024 * 1024 {
            self.buffer = Vec::new();
        }
        Ok(Appended {
            first: header.first,
            last: header.last,
            place,
        })
    }

    /// Takes the next segment into use. The guard names it before a record is in it (rule U12).
    fn rotate(&mut self) -> Result<(), StoreError> {
        crash_point("journal.before_rotate");
        let (number, file) = self.take_free()?;
        let named = Named {
            segment: number,
            incarnation: self.next_incarnation,
        };
        self.next_incarnation = self.next_incarnation.saturating_add(1);
        {
            let mut state = self.state();
            let last = state.appended;
            let open_parts = state.live.last().is_some_and(|l| l.open_parts);
            state.live.push(Live {
                named,
                end: 0,
                last,
                open_parts,
            });
        }
        self.shared.write_guard(&mut lock(&self.shared.serial))?;
        self.segments().insert(
            number,
            Readable {
                file: Arc::clone(&file),
                incarnation: Some(named.incarnation),
            },
        );
        self.active = Some(Active {
            named,
            file,
            offset: 0,
        });
        crash_point("journal.after_rotate");
        self.prepare();
        Ok(())
    }

    fn segments(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<u32, Readable<D::File>>> {
        self.shared
            .segments
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn take_free(&mut self) -> Result<Segment<D::File>, StoreError> {
        if let Some(free) = self.free.pop_front() {
            return Ok(free);
        }
        if let Some(spare) = self.spare.take() {
            let made = spare.join().map_err(|_| StoreError::Failed {
                cause: "the thread that prepares a segment panicked".to_owned(),
            })?;
            if made.is_err() {
                self.files = self.files.saturating_sub(1);
            }
            return made;
        }
        if self.files >= self.options.segments_max {
            // A copy may have kept what a checkpoint has given up.
            let checkpoint = self.state().checkpoint;
            self.recycle(checkpoint)?;
            if let Some(free) = self.free.pop_front() {
                return Ok(free);
            }
            let LogUsage { used, limit } = self.usage();
            return Err(StoreError::LogFull { used, limit });
        }
        let number = self.next_number;
        let file = segment::create(&self.shared.disk, number, self.shared.segment_bytes)?;
        self.next_number = number.saturating_add(1);
        self.files = self.files.saturating_add(1);
        Ok((number, file))
    }

    /// Lets the next segment be written while this one is filled.
    fn prepare(&mut self) {
        let room = self.files < self.options.segments_max;
        if !self.options.prepare_in_background
            || !room
            || !self.free.is_empty()
            || self.spare.is_some()
        {
            return;
        }
        let (disk, number) = (self.shared.disk.clone(), self.next_number);
        let bytes = self.shared.segment_bytes;
        let thread = std::thread::Builder::new()
            .name("journal-segment".to_owned())
            .spawn(move || Ok((number, segment::create(&disk, number, bytes)?)));
        match thread {
            Ok(thread) => {
                self.spare = Some(thread);
                self.next_number = number.saturating_add(1);
                self.files = self.files.saturating_add(1);
            }
            // Then it is written when it is needed.
            Err(error) => tracing::debug!(%error, "start a thread that prepares a segment"),
        }
    }

    fn create_reserve(&self) -> Result<(), StoreError> {
        let bytes = self.options.reserve_bytes;
        segment::create_file(&self.shared.disk, RESERVE, bytes, |_| Ok(()))?;
        Ok(())
    }

    fn has_reserve(&self) -> Result<bool, StoreError> {
        let disk = &self.shared.disk;
        let names = disk
            .list()
            .map_err(|e| StoreError::io("list", disk.path(""), e))?;
        Ok(names.iter().any(|n| n == RESERVE))
    }
}

impl<D: Disk> Drop for Journal<D> {
    fn drop(&mut self) {
        // The directory is not unlocked while a thread still writes in it.
        if let Some(Err(_)) = self.spare.take().map(JoinHandle::join) {
            tracing::debug!("the thread that prepares a segment panicked");
        }
    }
}

impl<D: Disk> RecordLog for Journal<D> {
    type Sync = JournalSync<D>;
    type Read = JournalRead<D>;

    fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    fn replay(
        &self,
        after: Position,
        visit: &mut dyn FnMut(Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let live = self.state().live.clone();
        for live in live.iter().filter(|l| l.last > after) {
            let number = live.named.segment;
            let path = || self.shared.disk.path(&segment::name(number));
            let file = {
                let segments = self
                    .shared
                    .segments
                    .read()
                    .unwrap_or_else(PoisonError::into_inner);
                segments.get(&number).map(|s| Arc::clone(&s.file))
            };
            let bytes: Bytes = file
                .ok_or_else(|| StoreError::corrupt(path(), None, "it is not open"))
                .and_then(|f| {
                    segment::read_all(&*f).map_err(|e| StoreError::io("read", path(), e))
                })?
                .into();
            let mut offset = 0;
            while (offset as u64) < live.end {
                // It was unharmed when the journal was opened.
                let (_, header) = Header::check(&bytes, offset, number, self.shared.secret)
                    .ok_or_else(|| {
                        StoreError::corrupt(
                            path(),
                            Some(offset as u64),
                            "it changed while it was read",
                        )
                    })?;
                let start = offset.saturating_add(HEADER_BYTES);
                let end = start.saturating_add(header.length as usize);
                if header.kind == Kind::Data && header.last > after {
                    visit(Record {
                        first: header.first,
                        last: header.last,
                        payload: bytes.slice(start..end),
                        place: Place {
                            segment: number,
                            incarnation: header.incarnation,
                            offset: start as u64,
                            length: header.length,
                        },
                    })?;
                }
                offset = end.next_multiple_of(BLOCK);
            }
        }
        Ok(())
    }

    fn start(&mut self) -> Result<Epoch, StoreError> {
        if self.started {
            return Err(StoreError::Failed {
                cause: "the journal was started before".to_owned(),
            });
        }
        // What was read may be in the page cache only.
        let live = self.state().live.clone();
        let files: Vec<_> = {
            let segments = self.segments();
            live.iter()
                .filter_map(|l| segments.get(&l.named.segment))
                .map(|s| Arc::clone(&s.file))
                .collect()
        };
        for file in files {
            file.sync()
                .map_err(|e| StoreError::io("sync a segment of", self.shared.disk.path(""), e))?;
        }
        self.shared
            .disk
            .sync_directory()
            .map_err(|e| StoreError::io("sync the directory", self.shared.disk.path(""), e))?;
        let epoch = {
            let mut state = self.state();
            state.durable = state.appended;
            state.epoch = state.epoch.next();
            state.epoch
        };
        self.started = true;
        self.write(Kind::Epoch, 0, &[])?;
        {
            let mut serial = lock(&self.shared.serial);
            self.shared.sync(&mut serial)?;
            self.shared.write_guard(&mut serial)?;
        }
        let checkpoint = self.state().checkpoint;
        self.recycle(checkpoint)?;
        if self.options.reserve_bytes > 0 && !self.restore_reserve()? {
            tracing::warn!(
                directory = self.shared.disk.path(""),
                "no space for the reserve file"
            );
        }
        Ok(epoch)
    }

    fn append(&mut self, span: u64, parts: &[&[u8]]) -> Result<Appended, StoreError> {
        if !self.started {
            return Err(StoreError::Failed {
                cause: "the journal was not started".to_owned(),
            });
        }
        self.state().check()?;
        self.write(Kind::Data, span.max(1), parts)
    }

    fn append_part(&mut self, parts: &[&[u8]]) -> Result<Place, StoreError> {
        if !self.started {
            return Err(StoreError::Failed {
                cause: "the journal was not started".to_owned(),
            });
        }
        self.state().check()?;
        Ok(self.write(Kind::Part, 0, parts)?.place)
    }

    fn has_room(&self, parts: u64) -> bool {
        let bytes = blocks_bytes(self.part_bytes_max());
        let in_segment = self.shared.segment_bytes / bytes;
        let here = self.active.as_ref().map_or(0, |a| {
            self.shared.segment_bytes.saturating_sub(a.offset) / bytes
        });
        let more = self.options.segments_max.saturating_sub(self.files);
        let segments = (self.free.len() as u64)
            .saturating_add(u64::from(more))
            .saturating_add(u64::from(self.spare.is_some()));
        here.saturating_add(segments.saturating_mul(in_segment)) > parts
    }

    fn part_bytes_max(&self) -> u64 {
        // At least four in a segment, with their headers.
        (self.shared.segment_bytes / 4)
            .min(PART_BLOCKS_BYTES)
            .saturating_sub(HEADER_BYTES as u64)
    }

    fn last(&self) -> Position {
        self.state().appended
    }

    fn payload_bytes_max(&self) -> u64 {
        let bytes = self
            .shared
            .segment_bytes
            .saturating_sub(HEADER_BYTES as u64);
        bytes.min(u64::from(u32::MAX))
    }

    fn syncer(&self) -> JournalSync<D> {
        JournalSync(Arc::clone(&self.shared))
    }

    fn reader(&self) -> JournalRead<D> {
        JournalRead(Arc::clone(&self.shared))
    }

    fn recycle(&mut self, position: Position) -> Result<(), StoreError> {
        crash_point("journal.before_recycle");
        let recycled: Vec<Live> = {
            let mut state = self.state();
            state.check()?;
            if position > state.checkpoint {
                return Err(StoreError::Failed {
                    cause: format!("recycle up to {position} before the guard names it"),
                });
            }
            if state.copies > 0 {
                return Ok(());
            }
            // The newest stays: records go on behind its last.
            let newest = state.live.last().map(|l| l.named);
            let keep = |l: &Live| l.last > position || Some(l.named) == newest;
            let gone = state.live.iter().copied().filter(|l| !keep(l)).collect();
            state.live.retain(keep);
            gone
        };
        for live in recycled {
            let mut segments = self.segments();
            if let Some(segment) = segments.get_mut(&live.named.segment) {
                segment.incarnation = None;
                let file = Arc::clone(&segment.file);
                drop(segments);
                self.free.push_back((live.named.segment, file));
            }
        }
        crash_point("journal.after_recycle");
        Ok(())
    }

    fn usage(&self) -> LogUsage {
        let full = (self.state().live.len() as u64).saturating_sub(1);
        let offset = self.active.as_ref().map_or(0, |a| a.offset);
        let bytes = self.shared.segment_bytes;
        LogUsage {
            used: full.saturating_mul(bytes).saturating_add(offset),
            limit: u64::from(self.options.segments_max).saturating_mul(bytes),
        }
    }

    fn release_reserve(&mut self) -> Result<(), StoreError> {
        if !self.has_reserve()? {
            return Ok(());
        }
        self.shared
            .disk
            .remove(RESERVE)
            .and_then(|()| self.shared.disk.sync_directory())
            .map_err(|e| StoreError::io("remove", self.shared.disk.path(RESERVE), e))
    }

    fn restore_reserve(&mut self) -> Result<bool, StoreError> {
        if self.options.reserve_bytes == 0 || self.has_reserve()? {
            return Ok(true);
        }
        match self.create_reserve() {
            Ok(()) => Ok(true),
            Err(error) if error.is_no_space() => Ok(false),
            Err(error) => Err(error),
        }
    }
}
