//! What an engine may hold. Each limit has a name, a default and a reason code.

use core::time::Duration;

/// Limits of one engine, in bytes and in numbers of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the largest write set; it must fit in the journal beside others (rule U20). A put that would make its unit of
    /// work larger is refused with 2024, a single message that is larger with 2031. Default 128 MiB, for a journal of 512 MiB.
    pub write_set_bytes_max: u64,
    /// Bytes that open units of work may hold together. Beyond: 2024. Default 256 MiB.
    pub unit_of_work_bytes_max: u64,
    /// Open units of work. Beyond: 9004. Default 100,000.
    pub units_of_work_max: usize,
    /// Bytes of non-persistent messages in memory. Beyond, they are written aside, or refused with 2071. Default 512 MiB.
    pub non_persistent_bytes_max: u64,
    /// Bytes of non-persistent messages beyond that limit that may be on their way to the disk; 0: none are written aside.
    /// Default 0.
    pub spill_window_bytes: u64,
    /// Bytes of persistent messages that are kept in memory beside the store; older ones are fetched. Default 256 MiB.
    pub cache_bytes_max: u64,
    /// Account entries that are kept; the oldest go first. Default 100,000.
    pub account_entries_max: usize,
    /// Dynamic queues, temporary and permanent ones together. Beyond: 2102. Default 10,000.
    pub dynamic_queues_max: usize,
    /// Outcomes of units of work that are kept; beyond, the oldest go before [`OUTCOME_KEPT`] is over. Default 1,000,000.
    pub outcomes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            write_set_bytes_max: 128 * 1024 * 1024,
            unit_of_work_bytes_max: ferrymq_types::UNIT_OF_WORK_BYTES_MAX,
            units_of_work_max: 100_000,
            non_persistent_bytes_max: 512 * 1024 * 1024,
            spill_window_bytes: 0,
            cache_bytes_max: 256 * 1024 * 1024,
            account_entries_max: 100_000,
            dynamic_queues_max: 10_000,
            outcomes_max: 1_000_000,
        }
    }
}

/// Messages that are read ahead of gets at once, at most.
pub(crate) const READ_AHEAD_MESSAGES: usize = 256;

/// Bytes that are read ahead of the gets of one queue at once, at most: 4 MiB.
pub(crate) const READ_AHEAD_BYTES: u64 = 4 * 1024 * 1024;

/// Messages that a get or a browse with a selector passes in one step.
pub(crate) const SELECTION_STEP_MAX: usize = 1_000;

/// Rows that a get or a browse with a selector has read at once, at most.
pub(crate) const SELECTION_ROWS_MAX: usize = 256;

/// Messages that become available behind a get with a selector before it begins anew.
pub(crate) const SELECTION_BEHIND_MAX: usize = 1_000;

/// Gets and browses with a selector that are under way at once. Beyond: 9004. Those that wait at the end of their queue do not
/// count.
pub(crate) const SELECTIONS_MAX: usize = 1_024;

/// Messages that one get or browse with a selector judges before operators are told.
pub(crate) const SELECTION_REPORTED: u64 = 10_000;

/// How long the outcome of a unit of work, or of a put with a token, can be asked for.
pub const OUTCOME_KEPT: Duration = Duration::from_secs(15 * 60);

/// How often outcomes are looked through for old ones.
pub(crate) const OUTCOME_SCAN_INTERVAL: Duration = Duration::from_secs(30);

/// How often expired messages are looked for; gets and browses find them at once.
pub(crate) const EXPIRY_SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// How long a message may be held under syncpoint before that is journaled, on queues without a threshold (rule U14): most
/// units of work end sooner, and then nothing needs to be written.
pub(crate) const DELIVERY_NOTE_DELAY: Duration = Duration::from_millis(100);

/// How often the move of a poison message is tried again when no queue could take it.
pub(crate) const POISON_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// How long nothing is written aside after that failed.
pub(crate) const SPILL_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Messages, outcomes or notes that one tick or one write set deals with.
pub(crate) const CHANGES_PER_WRITE_SET: usize = 10_000;

/// Numbers that are reserved by one [`ferrymq_types::Change::SetCounters`].
pub(crate) const COUNTER_BLOCK: u64 = 1_048_576;

/// `MQRC_BACKOUT_THRESHOLD_REACHED`.
pub(crate) const BACKOUT_THRESHOLD_REACHED: ferrymq_types::ReasonCode =
    ferrymq_types::ReasonCode::new(2362);
