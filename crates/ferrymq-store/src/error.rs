//! What can go wrong with a store.

use std::io;

use ferrymq_proto::storage::FormatError;
use ferrymq_types::{Position, ReasonCode};

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused. After a failed sync the store is [`StoreError::Failed`] for good.
    #[error("{operation} {file}")]
    Io {
        /// What was tried, in the present tense.
        operation: &'static str,
        /// The file or directory.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The disk is full or the quota used up. Nothing was changed; it may be tried again when there is room.
    #[error("{operation} {file}: no space")]
    NoSpace {
        /// What was tried, in the present tense.
        operation: &'static str,
        /// The file or directory.
        file: String,
    },
    /// What was stored is damaged or gone. The store does not open; nothing was changed.
    #[error("{file} is damaged{}: {what}", .offset.map(|o| format!(" at byte {o}")).unwrap_or_default())]
    Corrupt {
        /// The file, or the table of the row store.
        file: String,
        /// Where, in bytes from its start, if that can be said.
        offset: Option<u64>,
        /// What is wrong.
        what: String,
    },
    /// Another process has the directory open.
    #[error("{directory} is in use by another process")]
    InUse {
        /// The directory.
        directory: String,
    },
    /// Written by a newer release.
    #[error(
        "{file} has format {found}, this release knows up to {supported}: use the newer release"
    )]
    NewerFormat {
        /// The file or table.
        file: String,
        /// Its format version.
        found: u32,
        /// The newest version known here.
        supported: u32,
    },
    /// The journal has no free segment: a checkpoint must end first. Nothing was changed.
    #[error("the journal is full ({used} of {limit} bytes)")]
    LogFull {
        /// Bytes in use.
        used: u64,
        /// Bytes at most.
        limit: u64,
    },
    /// The write set, or the record, is larger than the log takes (rule U20). Nothing was changed.
    #[error("{bytes} bytes are more than the {max} that are taken at once")]
    TooLarge {
        /// Its bytes.
        bytes: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// An earlier sync failed, so what is on the disk is not known: the store refuses everything until it is opened anew.
    #[error("the store failed before: {cause}")]
    Failed {
        /// The first failure.
        cause: String,
    },
    /// Write sets must follow each other without a gap.
    #[error("write set {found} does not follow {last}")]
    Position {
        /// The last one in the journal.
        last: Position,
        /// The one that came.
        found: Position,
    },
    /// Stored bytes have a valid checksum and still make no sense: written by a faulty or newer release.
    #[error("{what} cannot be read")]
    Format {
        /// What was read.
        what: String,
        /// What is wrong.
        source: FormatError,
    },
    /// The row store reports an error of its own.
    #[error("{operation} {file}: {message}")]
    Rows {
        /// What was tried, in the present tense.
        operation: &'static str,
        /// The directory of the row store.
        file: String,
        /// What it said.
        message: String,
    },
}

impl StoreError {
    /// From an error of the operating system: a full disk or quota is told apart.
    #[must_use]
    pub fn io(operation: &'static str, file: impl ToString, source: io::Error) -> Self {
        let file = file.to_string();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::NoSpace { operation, file }
            }
            _ => Self::Io {
                operation,
                file,
                source,
            },
        }
    }

    /// Damage in `file`.
    #[must_use]
    pub fn corrupt(file: impl ToString, offset: Option<u64>, what: impl ToString) -> Self {
        Self::Corrupt {
            file: file.to_string(),
            offset,
            what: what.to_string(),
        }
    }

    /// The reason code for programs: 2192 when there is no room, 2031 for what is too large, 2195 for the rest.
    #[must_use]
    pub fn reason(&self) -> ReasonCode {
        match self {
            Self::NoSpace { .. } | Self::LogFull { .. } => ReasonCode::STORAGE_MEDIUM_FULL,
            Self::TooLarge { .. } => ReasonCode::MSG_TOO_BIG_FOR_Q_MGR,
            Self::Io { .. }
            | Self::Corrupt { .. }
            | Self::InUse { .. }
            | Self::NewerFormat { .. }
            | Self::Failed { .. }
            | Self::Position { .. }
            | Self::Format { .. }
            | Self::Rows { .. } => ReasonCode::UNEXPECTED_ERROR,
        }
    }

    /// Whether nothing was changed and the same may succeed later, once there is room.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::NoSpace { .. } | Self::LogFull { .. })
    }
}

/// Something that a read-only examination found wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, or the table of the row store.
    pub file: String,
    /// Where, in bytes from its start, if that can be said.
    pub offset: Option<u64>,
    /// What is wrong, for the operator.
    pub what: String,
    /// Whether the store refuses to open because of it.
    pub refuses_open: bool,
}
