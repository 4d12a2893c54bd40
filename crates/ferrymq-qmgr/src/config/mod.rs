//! Configuration files: `cluster.toml` must agree on every node, a node file belongs to one machine and includes it.
//!
//! Objects are no configuration: they are MQSC, and replicated.

mod cluster;
mod node;
mod units;

use std::path::{Path, PathBuf};

pub use cluster::{ClusterConfig, PeerConfig};
pub use node::{
    AuthConfig, ListenConfig, LogConfig, LogFormat, NodeConfig, NodeSection, StorageConfig,
    TlsConfig,
};
pub use units::{ByteSize, Interval};

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read configuration file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be: line, column and what is wrong.
    #[error("{}: {text}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, column, the key and what is allowed.
        text: String,
    },
    /// Two keys disagree, or a value is out of range.
    #[error("{}: {text}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Which keys, and what to do.
        text: String,
    },
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError::Parse {
        path: path.to_owned(),
        text: explain(&error, text),
    })
}

/// Line and column of a TOML error, its message, and the nearest key if one was mistyped.
fn explain(error: &toml::de::Error, text: &str) -> String {
    let message = error.message();
    let place = error.span().map_or_else(String::new, |span| {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.matches('\n').count().saturating_add(1);
        let column = before
            .rsplit('\n')
            .next()
            .map_or(0, |l| l.chars().count())
            .saturating_add(1);
        format!("line {line}, column {column}: ")
    });
    let mut words = message.split('`').skip(1).step_by(2);
    let suggestion = message
        .starts_with("unknown field")
        .then(|| words.next())
        .flatten()
        .and_then(|wrong| {
            words
                .map(|known| (strsim::damerau_levenshtein(wrong, known), known))
                .min()
                .filter(|(distance, known)| *distance <= known.len() / 2)
        })
        .map_or_else(String::new, |(_, known)| {
            format!("; did you mean `{known}`?")
        });
    format!("{place}{}{suggestion}", message.trim_end())
}

#[cfg(test)]
mod tests;
