//! A disk in memory that loses power: what was not synced may be there, in any mixture of blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use ferrymq_store::memory::Random;

use crate::{
    disk::{Disk, DiskFile},
    segment::BLOCK,
};

#[derive(Clone, Default)]
struct Content {
    synced: Vec<u8>,
    now: Vec<u8>,
    /// Blocks of `now` that were written since the last sync.
    dirty: BTreeSet<usize>,
}

impl core::fmt::Debug for Content {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} bytes", self.now.len())
    }
}

#[derive(Debug, Default)]
struct State {
    run: u64,
    locked: bool,
    files: BTreeMap<u64, Content>,
    next: u64,
    names: BTreeMap<String, u64>,
    synced_names: BTreeMap<String, u64>,
    fail_next_sync: bool,
    /// Bytes that files may still grow by.
    room: Option<u64>,
    /// Writes until one fails with EIO.
    fail_write_in: Option<u64>,
}

/// A directory in memory. Clones are the same directory.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The power fails. Of every block that was written and not synced the new or the old content stays, and of every name that
    /// was changed and not synced the new or the old one, as `seed` chooses. Open files are dead.
    pub fn crash(&self, seed: u64) {
        let mut random = Random::new(seed);
        self.with(|state| {
            state.run += 1;
            state.locked = false;
            state.fail_next_sync = false;
            state.room = None;
            state.fail_write_in = None;
            if random.below(2) == 0 {
                state.names = state.synced_names.clone();
            }
            for content in state.files.values_mut() {
                // A file that grew may have any of its new blocks, and zeros between them.
                let mut after = content.synced.clone();
                for block in core::mem::take(&mut content.dirty) {
                    if random.below(2) == 0 {
                        continue;
                    }
                    let start = block * BLOCK;
                    let end = (start + BLOCK).min(content.now.len());
                    if after.len() < end {
                        after.resize(end, 0);
                    }
                    after[start..end].copy_from_slice(&content.now[start..end]);
                }
                content.now = after.clone();
                content.synced = after;
            }
            state.synced_names = state.names.clone();
        });
    }

    /// The process dies and the machine stays up: nothing is lost, open files are dead.
    pub fn kill(&self) {
        self.with(|state| {
            state.run += 1;
            state.locked = false;
        });
    }

    /// The next sync of a file fails, once.
    pub fn fail_next_sync(&self) {
        self.with(|state| state.fail_next_sync = true);
    }

    /// Files may grow by this many bytes from now on; `None` is without end.
    pub fn set_room(&self, room: Option<u64>) {
        self.with(|state| state.room = room);
    }

    /// The `n`th write from now on fails, once.
    pub fn fail_write_in(&self, n: u64) {
        self.with(|state| state.fail_write_in = Some(n));
    }

    /// Flips a bit of a file, durably.
    ///
    /// # Errors
    /// If there is no such file or bit.
    pub fn flip(&self, name: &str, bit: usize) -> io::Result<()> {
        self.with(|state| {
            let content = content(state, name)?;
            let byte = content
                .now
                .get_mut(bit / 8)
                .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            *byte ^= 1 << (bit % 8);
            content.synced = content.now.clone();
            content.dirty.clear();
            Ok(())
        })
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.with(|state| Ok(content(state, name)?.now.clone()))
    }

    /// Sets the bytes of a file, durably.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.with(|state| {
            let content = content(state, name)?;
            *content = Content {
                synced: bytes.to_vec(),
                now: bytes.to_vec(),
                dirty: BTreeSet::new(),
            };
            Ok(())
        })
    }

    fn file(&self, name: &str) -> io::Result<SimFile> {
        self.with(|state| {
            let id = *state
                .names
                .get(name)
                .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
            Ok(SimFile {
                disk: self.clone(),
                id,
                run: state.run,
            })
        })
    }
}

fn content<'a>(state: &'a mut State, name: &str) -> io::Result<&'a mut Content> {
    let not_found = || io::Error::from(io::ErrorKind::NotFound);
    let id = *state.names.get(name).ok_or_else(not_found)?;
    state.files.get_mut(&id).ok_or_else(not_found)
}

/// Held while the directory is open.
#[derive(Debug)]
pub struct SimLock {
    disk: SimDisk,
    run: u64,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.with(|state| {
            if state.run == self.run {
                state.locked = false;
            }
        });
    }
}

impl Disk for SimDisk {
    type File = SimFile;
    type Lock = SimLock;

    fn lock(&self) -> io::Result<Option<SimLock>> {
        self.with(|state| {
            if core::mem::replace(&mut state.locked, true) {
                return Ok(None);
            }
            Ok(Some(SimLock {
                disk: self.clone(),
                run: state.run,
            }))
        })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.with(|state| Ok(state.names.keys().cloned().collect()))
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        self.file(name)
    }

    fn open_read_only(&self, name: &str) -> io::Result<SimFile> {
        self.file(name)
    }

    fn create(&self, name: &str) -> io::Result<SimFile> {
        self.with(|state| {
            let id = state.next;
            state.next += 1;
            state.files.insert(id, Content::default());
            state.names.insert(name.to_owned(), id);
        });
        self.file(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.with(|state| {
            let id = state
                .names
                .remove(from)
                .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
            state.names.insert(to.to_owned(), id);
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.with(|state| {
            state
                .names
                .remove(name)
                .map(|_| ())
                .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        })
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.with(|state| state.synced_names = state.names.clone());
        Ok(())
    }

    fn path(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// A file in memory.
#[derive(Debug)]
pub struct SimFile {
    disk: SimDisk,
    id: u64,
    run: u64,
}

impl SimFile {
    fn with<T>(&self, f: impl FnOnce(&mut State, u64) -> io::Result<T>) -> io::Result<T> {
        self.disk.with(|state| {
            if state.run != self.run {
                return Err(io::Error::other(
                    "the disk crashed since the file was opened",
                ));
            }
            f(state, self.id)
        })
    }
}

fn gone() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl DiskFile for SimFile {
    fn length(&self) -> io::Result<u64> {
        self.with(|state, id| Ok(state.files.get(&id).ok_or_else(gone)?.now.len() as u64))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(|state, id| {
            let now = &state.files.get(&id).ok_or_else(gone)?.now;
            let eof = || io::Error::from(io::ErrorKind::UnexpectedEof);
            let start = usize::try_from(offset).map_err(|_| eof())?;
            let end = start.checked_add(buffer.len()).ok_or_else(eof)?;
            buffer.copy_from_slice(now.get(start..end).ok_or_else(eof)?);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|state, id| {
            if let Some(left) = state.fail_write_in {
                state.fail_write_in = left.checked_sub(1).filter(|l| *l > 0);
                if left <= 1 {
                    return Err(io::Error::other("the test asked for it"));
                }
            }
            let start = usize::try_from(offset)
                .map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
            let end = start.saturating_add(bytes.len());
            let content = state.files.get_mut(&id).ok_or_else(gone)?;
            let growth = end.saturating_sub(content.now.len());
            if growth > 0 {
                if let Some(room) = &mut state.room {
                    *room = room
                        .checked_sub(growth as u64)
                        .ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
                }
                content.now.resize(end, 0);
            }
            content.now[start..end].copy_from_slice(bytes);
            content.dirty.extend(start / BLOCK..end.div_ceil(BLOCK));
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|state, id| {
            let content = state.files.get_mut(&id).ok_or_else(gone)?;
            if core::mem::take(&mut state.fail_next_sync) {
                // As Linux does: the pages count as clean and are lost with the power.
                content.dirty.clear();
                return Err(io::Error::other("the test asked for it"));
            }
            content.synced = content.now.clone();
            content.dirty.clear();
            Ok(())
        })
    }
}
