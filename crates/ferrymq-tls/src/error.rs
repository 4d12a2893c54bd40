//! What can be wrong with certificates, keys and lists, in words that say which file and what to do.

use std::io;
use std::path::PathBuf;

use ferrymq_types::ReasonCode;

/// Why TLS could not be set up. No variant holds, or prints, any part of a key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be opened or read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file exists that would have to be overwritten.
    #[error("{path} exists already and is not overwritten; move it away or choose another name")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file that does not hold what it should.
    #[error("{path}: {problem}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A key file that others may read.
    #[error("{path} holds a private key but has mode {mode:04o}; run: chmod 600 {path}")]
    KeyMode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Certificate and key, or authorities and lists, that do not work together.
    #[error("set up TLS with {path}: {problem}")]
    Unusable {
        /// The file to look at first.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A subject, an alternative name or a period that a certificate cannot have.
    #[error("{0}")]
    Request(String),
    /// The signing library refused.
    #[error("create certificate")]
    Create(#[source] rcgen::Error),
}

impl TlsError {
    /// `MQRC_KEY_REPOSITORY_ERROR` (2381) for files that cannot be used, `MQRC_SSL_INITIALIZATION_ERROR` (2393) for the rest.
    #[must_use]
    pub fn reason(&self) -> ReasonCode {
        match self {
            Self::Read { .. }
            | Self::Write { .. }
            | Self::Exists { .. }
            | Self::Content { .. }
            | Self::KeyMode { .. } => ReasonCode::new(2381),
            Self::Unusable { .. } | Self::Request(_) | Self::Create(_) => ReasonCode::new(2393),
        }
    }

    pub(crate) fn content(path: &std::path::Path, problem: impl Into<String>) -> Self {
        Self::Content {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}
