//! The clock of a node: the wall clock at the start, moved on by the monotonic one, so that a jump of the wall clock expires
//! nothing early and ends no wait.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ferrymq_types::Timestamp;

/// A clock. Cheap to copy; all copies agree.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    base: Timestamp,
    started: Instant,
}

impl Clock {
    /// Starts from the wall clock.
    #[must_use]
    pub fn start() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        Self {
            base: Timestamp::from_millis(ms),
            started: Instant::now(),
        }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.base.saturating_add(self.started.elapsed())
    }

    /// The moment of `at` for a timer; at once if it has passed.
    #[must_use]
    pub fn instant(&self, at: Timestamp) -> tokio::time::Instant {
        // A timer further away than a year is as good as none, and keeps the arithmetic in range.
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        tokio::time::Instant::now() + at.since(self.now()).min(FAR)
    }
}
