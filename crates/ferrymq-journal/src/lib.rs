//! The journal: records in pre-written segment files, one sync per batch; the log of queue managers and of Raft groups.
//!
//! A directory holds
//!
//! | file | content |
//! |---|---|
//! | `LOCK` | locked while a process has the journal open |
//! | `journal.meta` | format version, size of segments, the secret that keys all checksums |
//! | `guard.bin` | two blocks written in turn: what was acknowledged, the checkpoint, the segments in use (rule U12) |
//! | `segment-00000001.journal` ... | records, each on blocks of its own; a file is written in full before it is used and used again later |
//! | `reserve.bin` | space that is given back when the disk is full (rule U18) |
//!
//! A record's checksum is keyed with the secret and covers epoch, incarnation and place of the segment, positions and the
//! checksum of the record before (rule U11). Recovery follows this chain; where it ends, what is known to have been
//! acknowledged decides between a torn tail, which is cut, and damage, which is refused (rule U3).
//!
//! **Invariant:** only this crate syncs a file on the way of a message.

mod check;
mod copy;
mod disk;
mod guard;
mod inspect;
mod journal;
mod meta;
mod record;
mod segment;
mod shared;
pub mod sim;

pub use check::{Examination, check, check_on};
pub use copy::JournalCopy;
pub use disk::{Disk, DiskFile, OsDisk, OsFile};
pub use guard::SEGMENTS_MAX;
pub use journal::{Journal, JournalOptions};
pub use record::HEADER_BYTES;
pub use segment::BLOCK_BYTES;
pub use shared::{JournalRead, JournalSync};

#[cfg(test)]
mod tests;
