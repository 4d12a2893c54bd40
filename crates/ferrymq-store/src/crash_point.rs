//! Named places where a test can make the process stop dead, and others where it can make the disk fail.

use std::sync::{Mutex, PoisonError};

/// The crash points of the store, the journal and the row store, in the order in which a message passes them.
pub const CRASH_POINTS: &[&str] = &[
    "journal.before_write",
    "journal.after_write",
    "journal.before_rotate",
    "journal.after_rotate",
    "journal.before_sync",
    "journal.after_sync",
    "journal.before_guard_write",
    "journal.after_guard_write",
    "journal.before_recycle",
    "journal.after_recycle",
    "store.before_append",
    "store.between_parts",
    "store.after_parts",
    "store.after_append",
    "store.before_checkpoint",
    "store.before_checkpoint_write",
    "store.after_checkpoint_write",
    "store.before_flush",
    "store.after_flush",
    "store.after_checkpoint",
    "store.before_recycle",
    "store.after_recycle",
    "store.recovery_start",
    "store.recovery_middle",
    "store.recovery_end",
];

/// The fault points of the journal, in the order in which a message passes them.
pub const FAULT_POINTS: &[&str] = &["journal.sync", "journal.guard_sync"];

static REGISTERED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Adds the crash points of another crate to the list. A name that is known is not added again.
pub fn register_crash_points(names: &'static [&'static str]) {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    for name in names {
        if !CRASH_POINTS.contains(name) && !registered.contains(name) {
            registered.push(name);
        }
    }
}

/// All crash points: those of the store and those that other crates registered.
#[must_use]
pub fn crash_points() -> Vec<&'static str> {
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    CRASH_POINTS
        .iter()
        .chain(registered.iter())
        .copied()
        .collect()
}

/// Aborts the process if the environment variable `FERRYMQ_CRASH_AT` is `name`, or `name:n` at the `n`th time.
///
/// Does nothing unless the feature `crash-points` is on.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn crash_point(_name: &'static str) {}

/// Aborts the process if the environment variable `FERRYMQ_CRASH_AT` is `name`, or `name:n` at the `n`th time.
///
/// Does nothing unless the feature `crash-points` is on.
#[cfg(feature = "crash-points")]
pub fn crash_point(name: &'static str) {
    use std::sync::OnceLock;

    static TARGET: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static HITS: Mutex<u64> = Mutex::new(0);

    if let Some(hit) = reached(&TARGET, "FERRYMQ_CRASH_AT", &HITS, name) {
        tracing::error!(crash_point = name, hit, "aborting as the test asked");
        std::process::abort();
    }
}

/// Fails as a broken disk does (`EIO`) if the environment variable `FERRYMQ_FAIL_AT` is `name`, or `name:n` at the `n`th time;
/// once. The operation that it stands in front of is then not tried.
///
/// Does nothing unless the feature `crash-points` is on.
///
/// # Errors
/// What the test asked for.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn fault_point(_name: &'static str) -> std::io::Result<()> {
    Ok(())
}

/// Fails as a broken disk does (`EIO`) if the environment variable `FERRYMQ_FAIL_AT` is `name`, or `name:n` at the `n`th time;
/// once. The operation that it stands in front of is then not tried.
///
/// Does nothing unless the feature `crash-points` is on.
///
/// # Errors
/// What the test asked for.
#[cfg(feature = "crash-points")]
pub fn fault_point(name: &'static str) -> std::io::Result<()> {
    use std::sync::OnceLock;

    /// `EIO`.
    const INPUT_OUTPUT_ERROR: i32 = 5;
    static TARGET: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static HITS: Mutex<u64> = Mutex::new(0);

    match reached(&TARGET, "FERRYMQ_FAIL_AT", &HITS, name) {
        None => Ok(()),
        Some(_) => Err(std::io::Error::from_raw_os_error(INPUT_OUTPUT_ERROR)),
    }
}

/// Counts a visit of `name`, if the variable names it; gives the number of the visit if it is the one that was asked for.
#[cfg(feature = "crash-points")]
fn reached(
    target: &std::sync::OnceLock<Option<(String, u64)>>,
    variable: &str,
    hits: &Mutex<u64>,
    name: &str,
) -> Option<u64> {
    let target = target.get_or_init(|| {
        let text = std::env::var(variable).ok()?;
        let (name, nth) = match text.rsplit_once(':') {
            Some((name, nth)) => (name, nth.parse().unwrap_or(1)),
            None => (text.as_str(), 1),
        };
        Some((name.to_owned(), nth))
    });
    let (wanted, nth) = target.as_ref()?;
    if wanted != name {
        return None;
    }
    let mut hits = hits.lock().unwrap_or_else(PoisonError::into_inner);
    *hits = hits.saturating_add(1);
    (*hits == *nth).then_some(*hits)
}
