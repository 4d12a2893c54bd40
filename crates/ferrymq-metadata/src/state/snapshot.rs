//! Snapshots of all definitions as files.
//!
//! A file is eight bytes that say what it is, then messages, each with its length (4 bytes, big-endian) in front: the start, the rows, the
//! end with a checksum over everything before it. It is written under another name, synced and then renamed, so the file under the right
//! name is always whole.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use prost::Message as _;
use xxhash_rust::xxh3::Xxh3;

use ferrymq_proto::storage_v1 as pb;
use ferrymq_store::crash_point;

use super::rows::{Applicable, Loader, snapshot_row};
use crate::files;
use crate::types::{LogId, StoredMembership, with_cause};

const MAGIC: &[u8; 8] = b"FMQSNAP1";
const VERSION: u32 = 1;
const FILE: &str = "definitions.snapshot";
/// Longest message in a file, in bytes.
const ITEM_BYTES_MAX: u32 = 4 * 1024 * 1024;

/// The directory of a node's snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotDirectory {
    directory: PathBuf,
    cluster: String,
    next: AtomicU64,
    /// How far the current snapshot goes, once this run knows it.
    current: Mutex<Option<LogId>>,
}

/// A snapshot file that is open for reading. It stays readable if a newer one takes its name.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    file: File,
    /// Removed at the end, unless it was given the right name.
    unfinished: Option<PathBuf>,
}

impl Drop for SnapshotFile {
    fn drop(&mut self) {
        if let Some(path) = &self.unfinished {
            // What cannot be removed now is removed at the next start.
            drop(fs::remove_file(path));
        }
    }
}

impl SnapshotFile {
    /// The file, to read it from its start, and its length in bytes.
    pub(crate) fn reader(&self) -> io::Result<(File, u64)> {
        let mut file = self.file.try_clone()?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(0))?;
        Ok((file, length))
    }

    /// Adds bytes to a file that is being received.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl SnapshotDirectory {
    /// Removes what an earlier run did not finish.
    pub(crate) fn open(directory: &Path, cluster: &str) -> io::Result<Self> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == files::UNFINISHED) {
                fs::remove_file(&path)?;
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            cluster: cluster.to_owned(),
            next: AtomicU64::new(1),
            current: Mutex::new(None),
        })
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// An empty file under a name of its own.
    pub(crate) fn create(&self) -> io::Result<SnapshotFile> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self
            .directory
            .join(format!("snapshot-{number}.{}", files::UNFINISHED));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        Ok(SnapshotFile {
            file,
            unfinished: Some(path),
        })
    }

    /// The current snapshot, if there is one.
    pub(crate) fn current(&self) -> io::Result<Option<SnapshotFile>> {
        match File::open(self.path()) {
            Ok(file) => Ok(Some(SnapshotFile {
                file,
                unfinished: None,
            })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Writes `contents` as the current snapshot.
    pub(super) fn write(&self, contents: &Applicable) -> io::Result<SnapshotFile> {
        crash_point("raft.before_snapshot_write");
        let mut made = self.create()?;
        let mut writer = Writer {
            to: BufWriter::new(&made.file),
            hash: Xxh3::new(),
        };
        writer.bytes(MAGIC)?;
        writer.item(&pb::SnapshotItem {
            item: Some(pb::snapshot_item::Item::Start(pb::SnapshotStart {
                version: VERSION,
                cluster: self.cluster.clone(),
                state: Some(contents.state()),
            })),
        })?;
        let mut rows = 0_u64;
        for (key, value) in contents.rows() {
            writer.item(&snapshot_row(key, value))?;
            rows = rows.saturating_add(1);
        }
        let checksum = writer.hash.digest128().to_be_bytes();
        writer.item(&pb::SnapshotItem {
            item: Some(pb::snapshot_item::Item::End(pb::SnapshotEnd {
                rows,
                checksum: Bytes::copy_from_slice(&checksum),
            })),
        })?;
        writer.to.flush()?;
        drop(writer);
        self.publish(&mut made, contents.applied)?;
        crash_point("raft.after_snapshot_write");
        Ok(made)
    }

    /// Makes a whole file the current snapshot, durably. One that is it already stays it; one that is older than the current one, because
    /// its making took long, is left to vanish.
    fn publish(&self, snapshot: &mut SnapshotFile, last: Option<LogId>) -> io::Result<()> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if *current > last {
            return Ok(());
        }
        if let Some(unfinished) = snapshot.unfinished.take() {
            let published = snapshot
                .file
                .sync_all()
                .and_then(|()| files::publish(&unfinished, &self.path()));
            if published.is_err() {
                snapshot.unfinished = Some(unfinished);
            }
            published?;
        }
        *current = last;
        Ok(())
    }

    /// Reads the current snapshot; an error names the file and the remedy.
    pub(super) fn read_current(&self, snapshot: &SnapshotFile) -> io::Result<Applicable> {
        let contents = self.read(snapshot).map_err(|e| {
            let file = self.path();
            io::Error::new(
                e.kind(),
                format!(
                    "{}: {e}; remove the file to have it made anew",
                    file.display()
                ),
            )
        })?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        *current = (*current).max(contents.applied);
        Ok(contents)
    }

    /// Whether a received file is whole and the snapshot that was announced.
    pub(crate) fn check(
        &self,
        snapshot: &SnapshotFile,
        last: Option<LogId>,
        membership: &StoredMembership,
    ) -> io::Result<()> {
        self.announced(snapshot, last, membership).map(drop)
    }

    fn announced(
        &self,
        snapshot: &SnapshotFile,
        last: Option<LogId>,
        membership: &StoredMembership,
    ) -> io::Result<Applicable> {
        let contents = self.read(snapshot)?;
        if contents.applied != last || contents.membership != *membership {
            return Err(invalid("the snapshot is not the one that was announced"));
        }
        Ok(contents)
    }

    /// Reads a snapshot whole, and makes it the current one if it is right.
    pub(super) fn install(
        &self,
        snapshot: SnapshotFile,
        last: Option<LogId>,
        membership: &StoredMembership,
    ) -> io::Result<Applicable> {
        let contents = self.announced(&snapshot, last, membership)?;
        let mut own = self.own(snapshot)?;
        self.publish(&mut own, contents.applied)?;
        Ok(contents)
    }

    /// The file itself if it was received here, else a copy of it.
    fn own(&self, snapshot: SnapshotFile) -> io::Result<SnapshotFile> {
        let received = snapshot.unfinished.as_ref();
        if received.is_some_and(|path| path.parent() == Some(self.directory.as_path())) {
            return Ok(snapshot);
        }
        let (mut from, _) = snapshot.reader()?;
        let mut copy = self.create()?;
        io::copy(&mut from, &mut copy.file)?;
        Ok(copy)
    }

    /// Reads and checks a snapshot.
    fn read(&self, snapshot: &SnapshotFile) -> io::Result<Applicable> {
        let (file, _) = snapshot.reader()?;
        let mut reader = Reader {
            from: BufReader::new(file),
            hash: Xxh3::new(),
        };
        let mut magic = [0; 8];
        reader.from.read_exact(&mut magic)?;
        reader.hash.update(&magic);
        if &magic != MAGIC {
            return Err(invalid("it is no snapshot, or one of a newer release"));
        }
        let mut loader = Loader::default();
        let mut rows = 0_u64;
        let pb::SnapshotItem {
            item: Some(pb::snapshot_item::Item::Start(start)),
        } = reader.item()?.0
        else {
            return Err(invalid("the snapshot does not start as it should"));
        };
        if start.version != VERSION {
            return Err(invalid(
                "the snapshot was made by a newer release: use that one",
            ));
        }
        if start.cluster != self.cluster {
            return Err(invalid(format!(
                "the snapshot is one of cluster {:?}",
                start.cluster
            )));
        }
        let state = start
            .state
            .ok_or_else(|| invalid("the snapshot has no state"))?;
        loader.state(state).map_err(|e| invalid(with_cause(&e)))?;
        loop {
            let (item, checksum) = reader.item()?;
            match item.item {
                Some(pb::snapshot_item::Item::Row(row)) => {
                    loader
                        .take(&row.key, &row.value)
                        .map_err(|e| invalid(with_cause(&e)))?;
                    rows = rows.saturating_add(1);
                }
                Some(pb::snapshot_item::Item::End(end)) => {
                    if end.rows != rows || end.checksum.as_ref() != checksum.to_be_bytes() {
                        return Err(invalid("the snapshot is damaged"));
                    }
                    break;
                }
                Some(pb::snapshot_item::Item::Start(_)) | None => {
                    return Err(invalid("the snapshot makes no sense"));
                }
            }
        }
        if reader.from.read(&mut [0])? != 0 {
            return Err(invalid("the snapshot is followed by other bytes"));
        }
        loader
            .finish()
            .map_err(|e| invalid(with_cause(&e)))?
            .ok_or_else(|| invalid("the snapshot has no state"))
    }
}

struct Writer<'a> {
    to: BufWriter<&'a File>,
    hash: Xxh3,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.to.write_all(bytes)
    }

    fn item(&mut self, item: &pb::SnapshotItem) -> io::Result<()> {
        let bytes = item.encode_to_vec();
        let length = u32::try_from(bytes.len())
            .ok()
            .filter(|n| *n <= ITEM_BYTES_MAX)
            .ok_or_else(|| invalid("a definition is too large for a snapshot"))?;
        self.bytes(&length.to_be_bytes())?;
        self.bytes(&bytes)
    }
}

struct Reader {
    from: BufReader<File>,
    hash: Xxh3,
}

impl Reader {
    /// The next message, and the checksum of everything before it.
    fn item(&mut self) -> io::Result<(pb::SnapshotItem, u128)> {
        let before = self.hash.digest128();
        let mut length = [0; 4];
        self.from.read_exact(&mut length)?;
        self.hash.update(&length);
        let length = u32::from_be_bytes(length);
        if length > ITEM_BYTES_MAX {
            return Err(invalid("the snapshot is damaged: a message is too long"));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.from)
            .take(u64::from(length))
            .read_to_end(&mut bytes)?;
        if read as u64 != u64::from(length) {
            return Err(invalid("the snapshot is cut off"));
        }
        self.hash.update(&bytes);
        let item = pb::SnapshotItem::decode(Bytes::from(bytes))
            .map_err(|e| invalid(format!("the snapshot is damaged: {e}")))?;
        Ok((item, before))
    }
}
