//! The few things that a journal asks of a file system, so that a test can lose power at any of them.

use core::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// A directory.
pub trait Disk: Clone + Debug + Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;
    /// Held while the directory is in use.
    type Lock: Debug + Send + 'static;

    /// Locks the directory; `None` if another process has it.
    ///
    /// # Errors
    /// What the operating system says.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;

    /// The names of the files, in order.
    ///
    /// # Errors
    /// What the operating system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// What the operating system says.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading.
    ///
    /// # Errors
    /// What the operating system says.
    fn open_read_only(&self, name: &str) -> io::Result<Self::File>;

    /// Creates an empty file, or empties the one that is there.
    ///
    /// # Errors
    /// What the operating system says.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Renames a file.
    ///
    /// # Errors
    /// What the operating system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the operating system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync_directory(&self) -> io::Result<()>;

    /// What a file is called in messages to an operator.
    fn path(&self, name: &str) -> String;
}

/// A file.
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// Its bytes.
    ///
    /// # Errors
    /// What the operating system says.
    fn length(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// What the operating system says; `UnexpectedEof` if the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// What the operating system says; some of the bytes may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes its bytes durable.
    ///
    /// # Errors
    /// What the operating system says. What is on the disk is then not known, and trying again tells nothing.
    fn sync(&self) -> io::Result<()>;
}

/// A directory of the operating system.
#[derive(Debug, Clone)]
pub struct OsDisk {
    directory: PathBuf,
}

impl OsDisk {
    /// Creates the directory if it is not there.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn create(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        // The directory's own name has to survive too.
        if let Some(parent) = directory.parent().filter(|p| !p.as_os_str().is_empty()) {
            File::open(parent)?.sync_all()?;
        }
        Ok(Self::existing(directory))
    }

    /// A directory that should be there.
    #[must_use]
    pub fn existing(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Disk for OsDisk {
    type File = OsFile;
    type Lock = File;

    fn lock(&self) -> io::Result<Option<File>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.at("LOCK"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            // Names that are no text are none of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<OsFile> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.at(name))?;
        Ok(OsFile(file))
    }

    fn open_read_only(&self, name: &str) -> io::Result<OsFile> {
        File::open(self.at(name)).map(OsFile)
    }

    fn create(&self, name: &str) -> io::Result<OsFile> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(self.at(name))?;
        Ok(OsFile(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.at(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }
}

/// A file of the operating system.
#[derive(Debug)]
pub struct OsFile(File);

impl DiskFile for OsFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
