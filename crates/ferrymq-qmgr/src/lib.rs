//! The runtime: it runs the machines and performs their effects. Timers, recovery, channels, listeners, configuration, logs.
//!
//! **Invariants:** nothing is decided here that an engine or an MCA decides; an answer leaves only when the position that it
//! depends on is durable; every task is tracked and ends with its node.

mod answers;
mod backup;
mod channels;
mod clock;
mod commands;
pub mod config;
mod conversion;
pub mod dev;
mod engine_thread;
mod events;
mod flusher;
mod handle;
mod ids;
mod known_stores;
pub mod logging;
mod metadata_store;
mod network;
mod node;
mod queue_manager;
mod reload;
mod run;
mod security;
mod services;
mod spill;
mod store_check;

pub use backup::{
    BackupError, BackupFile, BackupReport, BackupStore, ListedBackup, Manifest, list_backups,
    restore_backup, verify_backup,
};
pub use clock::Clock;
pub use queue_manager::StartError;
pub use run::{Ready, RunError, check, run};
pub use store_check::{CheckError, StoreReport, StoredQueue, check_stores};

/// Every crash point of this build, for tests; none unless it was compiled with `crash-points`.
#[must_use]
pub fn crash_points() -> Vec<&'static str> {
    ferrymq_store::register_crash_points(CRASH_POINTS);
    ferrymq_store::crash_points()
}

/// The crash points of this crate.
const CRASH_POINTS: &[&str] = &[
    "engine.before_sync",
    "engine.before_reply",
    "engine.after_reply",
    "channel.before_send",
    "channel.after_send",
    "channel.before_confirm",
    "channel.after_confirm",
];
