//! Where non-persistent messages are that do not fit in memory: files of a directory that is emptied at each start (rule U16).
//!
//! Messages are appended to a file until it is full, and a file goes when nothing in it is wanted any more. Nothing is synced:
//! what is here lives as long as the process. A file that is mostly unwanted is rewritten, so that one message that stays does
//! not keep the room of many. Memory: about 27 bytes a message, for its place.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use bytes::{BufMut as _, Bytes, BytesMut};
use ferrymq_engine::Input;
use ferrymq_proto::storage::StoredRow as _;
use ferrymq_store::StoreError;
use ferrymq_types::{BodyId, Message, MessageRow, ReasonCode, Sequence};
use tracing::{error, info};
use xxhash_rust::xxh3::Xxh3;

use crate::handle::Job;

/// A file takes no more messages once it has this many bytes: 16 MiB.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// A full file is rewritten when less than this part of it is wanted.
const WANTED_PART: u64 = 4;

/// Bytes of a message in front of its row: place, lengths of row and body, checksum.
const HEADER_BYTES: usize = 24;

/// Where a message is.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: u32,
    offset: u32,
}

#[derive(Debug)]
struct SpillFile {
    file: Arc<File>,
    path: PathBuf,
    /// Bytes written.
    length: u64,
    /// Bytes of messages that are wanted.
    wanted: u64,
}

#[derive(Debug, Default)]
struct State {
    places: BTreeMap<Sequence, Place>,
    files: BTreeMap<u32, SpillFile>,
    /// The number of the file that is being filled.
    current: Option<u32>,
    next: u32,
    /// Bytes of all files.
    bytes: u64,
}

/// The messages that were written aside.
#[derive(Debug)]
pub(crate) struct Spill {
    directory: PathBuf,
    bytes_max: u64,
    state: Mutex<State>,
}

impl Spill {
    /// Empties the directory, and takes no more than so many bytes of its disk.
    ///
    /// # Errors
    /// What the disk says: a message of an earlier run must not come back.
    pub(crate) fn open(directory: &Path, bytes_max: u64) -> Result<Self, StoreError> {
        match std::fs::remove_dir_all(directory) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            // A file system of its own is mounted there: what was in it is removed, the directory cannot be.
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {}
            Err(e) => return Err(StoreError::io("empty", directory.display(), e)),
        }
        Ok(Self {
            directory: directory.to_owned(),
            bytes_max,
            state: Mutex::default(),
        })
    }

    /// Held for assignments and while a file is made or removed, not while one is read or written.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message that was written aside; `None` if it was not, or is forgotten.
    ///
    /// # Errors
    /// What the disk says; [`StoreError::Corrupt`] if it is not what was written.
    pub(crate) fn read(
        &self,
        sequence: Sequence,
    ) -> Result<Option<(MessageRow, Bytes)>, StoreError> {
        let (file, path, offset) = {
            let state = self.state();
            let Some(place) = state.places.get(&sequence).copied() else {
                return Ok(None);
            };
            let Some(file) = state.files.get(&place.file) else {
                return Ok(None);
            };
            (
                file.file.clone(),
                file.path.clone(),
                u64::from(place.offset),
            )
        };
        let damaged = |what: &str| StoreError::corrupt(path.display(), Some(offset), what);
        let read_error = |e| StoreError::io("read", path.display(), e);
        let header = Header::read(&file, offset).map_err(read_error)?;
        if header.sequence != sequence {
            return Err(damaged("another message is in its place"));
        }
        let length = header.payload().ok_or_else(|| damaged("it is too long"))?;
        let mut payload = BytesMut::zeroed(length);
        file.read_exact_at(&mut payload, offset.saturating_add(HEADER_BYTES as u64))
            .map_err(read_error)?;
        let mut payload = payload.freeze();
        if checksum(&[&payload]) != header.checksum {
            return Err(damaged("the message does not pass its checksum"));
        }
        let row = payload.split_to(header.row as usize);
        let row = MessageRow::from_stored(&row).map_err(|source| StoreError::Format {
            what: path.display().to_string(),
            source,
        })?;
        Ok(Some((row, payload)))
    }

    /// Writes messages, all of them or none.
    ///
    /// # Errors
    /// [`StoreError::LogFull`] at the limit; [`StoreError::NoSpace`]; what the disk says.
    fn write(&self, messages: &[(Sequence, Arc<Message>)]) -> Result<(), StoreError> {
        for (index, (sequence, message)) in messages.iter().enumerate() {
            if let Err(error) = self.write_one(*sequence, message) {
                let written = messages.iter().take(index).map(|(sequence, _)| *sequence);
                self.forget(written);
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_one(&self, sequence: Sequence, message: &Message) -> Result<(), StoreError> {
        let row = MessageRow {
            descriptor: message.descriptor.clone(),
            header: message.header.clone(),
            body: BodyId::new(sequence.get()),
            body_length: u32::try_from(message.body.len()).unwrap_or(u32::MAX),
        }
        .to_stored();
        self.append(sequence, &row, &message.body)
    }

    fn append(&self, sequence: Sequence, row: &[u8], body: &[u8]) -> Result<(), StoreError> {
        let header = Header {
            sequence,
            row: u32::try_from(row.len()).unwrap_or(u32::MAX),
            body: u32::try_from(body.len()).unwrap_or(u32::MAX),
            checksum: checksum(&[row, body]),
        };
        let bytes = [HEADER_BYTES, row.len(), body.len()]
            .iter()
            .fold(0_u64, |sum, n| sum.saturating_add(*n as u64));
        let (number, file, path, offset) = {
            let mut state = self.state();
            if state.bytes.saturating_add(bytes) > self.bytes_max {
                return Err(StoreError::LogFull {
                    used: state.bytes,
                    limit: self.bytes_max,
                });
            }
            let number = self.current(&mut state)?;
            let Some(file) = state.files.get(&number) else {
                return Err(StoreError::Failed {
                    cause: "the spill file is gone".to_owned(),
                });
            };
            (number, file.file.clone(), file.path.clone(), file.length)
        };
        let mut head = header.encode();
        head.extend_from_slice(row);
        let body_at = offset.saturating_add(head.len() as u64);
        file.write_all_at(&head, offset)
            .and_then(|()| file.write_all_at(body, body_at))
            .map_err(|e| StoreError::io("write", path.display(), e))?;
        let mut state = self.state();
        state.bytes = state.bytes.saturating_add(bytes);
        if let Some(file) = state.files.get_mut(&number) {
            file.length = file.length.saturating_add(bytes);
            file.wanted = file.wanted.saturating_add(bytes);
        }
        let place = Place {
            file: number,
            // A file begins its last message below 16 MiB.
            offset: u32::try_from(offset).unwrap_or(u32::MAX),
        };
        state.places.insert(sequence, place);
        Ok(())
    }

    /// The file that is being filled; a new one if that is full.
    fn current(&self, state: &mut State) -> Result<u32, StoreError> {
        if let Some(number) = state.current
            && state
                .files
                .get(&number)
                .is_some_and(|f| f.length < FILE_BYTES)
        {
            return Ok(number);
        }
        let number = state.next;
        let path = self.directory.join(format!("{number:08}.spill"));
        let file = std::fs::create_dir_all(&self.directory)
            .and_then(|()| {
                OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .open(&path)
            })
            .map_err(|e| StoreError::io("create", path.display(), e))?;
        state.next = number.saturating_add(1);
        state.current = Some(number);
        state.files.insert(
            number,
            SpillFile {
                file: Arc::new(file),
                path,
                length: 0,
                wanted: 0,
            },
        );
        Ok(number)
    }

    /// Forgets messages; files in which nothing is wanted any more are removed.
    fn forget(&self, sequences: impl IntoIterator<Item = Sequence>) {
        let mut state = self.state();
        let state = &mut *state;
        for sequence in sequences {
            let Some(place) = state.places.remove(&sequence) else {
                continue;
            };
            let Some(file) = state.files.get_mut(&place.file) else {
                continue;
            };
            // Its length is in front of it: the file has it, or nothing of it is wanted any more.
            let length = Header::read(&file.file, u64::from(place.offset))
                .ok()
                .and_then(|header| header.payload())
                .map_or(file.wanted, |n| {
                    (n as u64).saturating_add(HEADER_BYTES as u64)
                });
            file.wanted = file.wanted.saturating_sub(length);
            if file.wanted == 0 {
                state.remove(place.file);
            }
        }
    }

    /// Writes what is wanted of a file that is mostly unwanted to the current one, so that it can go.
    fn rewrite(&self) -> Result<(), StoreError> {
        let (file, moved) = {
            let state = self.state();
            let sparse = state.files.iter().find(|(number, file)| {
                Some(**number) != state.current
                    && file.wanted.saturating_mul(WANTED_PART) < file.length
            });
            let Some((number, _)) = sparse else {
                return Ok(());
            };
            let in_it = state
                .places
                .iter()
                .filter(|(_, place)| place.file == *number);
            (
                *number,
                in_it.map(|(sequence, _)| *sequence).collect::<Vec<_>>(),
            )
        };
        for sequence in moved {
            if let Some((row, body)) = self.read(sequence)? {
                self.append(sequence, &row.to_stored(), &body)?;
            }
        }
        self.state().remove(file);
        Ok(())
    }
}

impl State {
    fn remove(&mut self, number: u32) {
        if self.current == Some(number) {
            self.current = None;
        }
        if let Some(file) = self.files.remove(&number) {
            self.bytes = self.bytes.saturating_sub(file.length);
            if let Err(error) = std::fs::remove_file(&file.path) {
                // The next start removes it.
                info!(path = %file.path.display(), "a spill file stays: {error}");
            }
        }
    }
}

fn checksum(parts: &[&[u8]]) -> u64 {
    let mut hash = Xxh3::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.digest()
}

/// What is in front of a message.
struct Header {
    sequence: Sequence,
    row: u32,
    body: u32,
    checksum: u64,
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES.saturating_add(self.row as usize));
        out.put_u64_le(self.sequence.get());
        out.put_u32_le(self.row);
        out.put_u32_le(self.body);
        out.put_u64_le(self.checksum);
        out
    }

    fn read(file: &File, offset: u64) -> io::Result<Self> {
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, offset)?;
        let mut rest = &bytes[..];
        use bytes::Buf as _;
        Ok(Self {
            sequence: Sequence::new(rest.get_u64_le()),
            row: rest.get_u32_le(),
            body: rest.get_u32_le(),
            checksum: rest.get_u64_le(),
        })
    }

    /// Bytes of row and body.
    fn payload(&self) -> Option<usize> {
        (self.row as usize).checked_add(self.body as usize)
    }
}

/// What the spill's thread is to do, in order.
#[derive(Debug)]
pub(crate) enum Order {
    Write(Vec<(Sequence, Arc<Message>)>),
    Forget(Vec<Sequence>),
}

/// Starts the thread that writes and forgets; it ends with the sender that this returns. There are no more orders on their way
/// than the engine's window has room for.
///
/// # Errors
/// The operating system gives no thread.
pub(crate) fn start(
    spill: Arc<Spill>,
    name: String,
    jobs: tokio::sync::mpsc::WeakUnboundedSender<Job>,
) -> io::Result<mpsc::Sender<Order>> {
    let (orders, ordered) = mpsc::channel();
    std::thread::Builder::new()
        .name(format!("spill-{name}"))
        .spawn(move || {
            let mut failing = false;
            while let Ok(order) = ordered.recv() {
                let messages = match order {
                    Order::Write(messages) => messages,
                    Order::Forget(sequences) => {
                        spill.forget(sequences);
                        if let Err(error) = spill.rewrite() {
                            info!(qmgr = name, "a spill file is kept as it is: {error}");
                        }
                        continue;
                    }
                };
                let result = spill.write(&messages);
                match (&result, failing) {
                    (Err(error), false) => error!(id = "FMQ9015E", qmgr = name, "non-persistent messages cannot be written aside; those that do not fit in memory are refused: {}", crate::channels::with_causes(error)),
                    (Ok(()), true) => info!(id = "FMQ9016I", qmgr = name, "non-persistent messages are written aside again"),
                    (Err(_), true) | (Ok(()), false) => {}
                }
                failing = result.is_err();
                let result = result.map_err(|error| reason(&error));
                let sequences = messages.iter().map(|(sequence, _)| *sequence).collect();
                let Some(jobs) = jobs.upgrade() else { return };
                // A failure means that the engine has stopped.
                drop(jobs.send(Job::Input(Input::Spilled { sequences, result })));
            }
        })?;
    Ok(orders)
}

/// 2071 at the limit, 2192 when the disk does not take it.
fn reason(error: &StoreError) -> ReasonCode {
    match error {
        StoreError::LogFull { .. } => ReasonCode::STORAGE_NOT_AVAILABLE,
        StoreError::Io { .. }
        | StoreError::NoSpace { .. }
        | StoreError::Corrupt { .. }
        | StoreError::InUse { .. }
        | StoreError::NewerFormat { .. }
        | StoreError::TooLarge { .. }
        | StoreError::Failed { .. }
        | StoreError::Position { .. }
        | StoreError::Format { .. }
        | StoreError::Rows { .. } => ReasonCode::STORAGE_MEDIUM_FULL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrymq_types::MessageDescriptor;

    fn message(n: u64, length: usize) -> (Sequence, Arc<Message>) {
        let byte = u8::try_from(n % 251).unwrap();
        let message = Message {
            descriptor: MessageDescriptor::default(),
            header: Bytes::from_static(b"head"),
            body: vec![byte; length].into(),
        };
        (Sequence::new(n), Arc::new(message))
    }

    fn files(directory: &Path) -> usize {
        std::fs::read_dir(directory).map_or(0, Iterator::count)
    }

    fn check(spill: &Spill, n: u64, length: usize) {
        let (row, body) = spill.read(Sequence::new(n)).unwrap().unwrap();
        assert_eq!(
            (&row.header[..], row.body_length as usize),
            (&b"head"[..], length)
        );
        assert_eq!(body, message(n, length).1.body);
    }

    #[test]
    fn messages_come_back_until_they_are_forgotten_and_files_go_with_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spill");
        let spill = Spill::open(&path, u64::MAX).unwrap();
        const LENGTH: usize = 1024 * 1024;
        for n in 0..100 {
            spill.write(&[message(n, LENGTH)]).unwrap();
        }
        assert_eq!(files(&path), 7);
        (0..100).for_each(|n| check(&spill, n, LENGTH));
        spill.forget((0..90).map(Sequence::new));
        assert!(files(&path) <= 2);
        assert!(spill.read(Sequence::new(5)).unwrap().is_none());
        (90..100).for_each(|n| check(&spill, n, LENGTH));
        spill.forget((90..100).map(Sequence::new));
        assert_eq!(files(&path), 0);
        assert_eq!(spill.state().bytes, 0);
    }

    #[test]
    fn a_file_that_is_mostly_unwanted_is_rewritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spill");
        let spill = Spill::open(&path, u64::MAX).unwrap();
        const LENGTH: usize = 1024 * 1024;
        for n in 0..160 {
            spill.write(&[message(n, LENGTH)]).unwrap();
        }
        // One in sixteen stays.
        spill.forget((0..160).filter(|n| n % 16 != 0).map(Sequence::new));
        for _ in 0..20 {
            spill.rewrite().unwrap();
        }
        assert!(files(&path) <= 2, "{}", files(&path));
        (0..160)
            .filter(|n| n % 16 == 0)
            .for_each(|n| check(&spill, n, LENGTH));
    }

    #[test]
    fn beyond_the_limit_nothing_is_written_and_u16_a_new_run_begins_empty() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spill");
        let spill = Spill::open(&path, 10_000).unwrap();
        spill.write(&[message(1, 4_000)]).unwrap();
        let error = spill
            .write(&[message(2, 4_000), message(3, 4_000)])
            .unwrap_err();
        assert_eq!(reason(&error), ReasonCode::STORAGE_NOT_AVAILABLE);
        assert!(
            spill.read(Sequence::new(2)).unwrap().is_none(),
            "all or none"
        );
        check(&spill, 1, 4_000);
        let again = Spill::open(&path, 10_000).unwrap();
        assert!(again.read(Sequence::new(1)).unwrap().is_none());
        assert_eq!(files(&path), 0);
    }

    #[test]
    fn u9_damage_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spill");
        let spill = Spill::open(&path, u64::MAX).unwrap();
        spill.write(&[message(1, 4_000)]).unwrap();
        let file = path.join("00000000.spill");
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[2_000] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let error = spill.read(Sequence::new(1)).unwrap_err().to_string();
        assert!(error.contains("00000000.spill"), "{error}");
    }
}
