//! Which events are reported as messages.

use core::time::Duration;

use crate::Enabled;

/// Which service interval event of a queue is on first. `QSVCIEV`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ServiceIntervalEvent {
    /// `HIGH`: that the queue is not served within the interval; when it is again follows.
    High,
    /// `OK`: that the queue is served within the interval; when it is no longer follows.
    Ok,
    /// `NONE`.
    #[default]
    None,
}

/// Performance events of a local queue; none is reported while `PERFMEV` of the queue manager is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueEvents {
    /// `QDEPTHHI`, percent of `MAXDEPTH`. Default 80.
    pub depth_high_percent: u32,
    /// `QDEPTHLO`, percent of `MAXDEPTH`, not above `QDEPTHHI`. Default 20.
    pub depth_low_percent: u32,
    /// `QDPHIEV`: whether depth high is reported first. Default `DISABLED`.
    pub depth_high: Enabled,
    /// `QDPLOEV`: whether depth low is reported first. Default `DISABLED`.
    pub depth_low: Enabled,
    /// `QDPMAXEV`: whether a full queue is reported first. Default `ENABLED`.
    pub queue_full: Enabled,
    /// `QSVCIEV`. Default `NONE`.
    pub service_interval_event: ServiceIntervalEvent,
    /// `QSVCINT`, in milliseconds in MQSC. Default 999999999.
    pub service_interval: Duration,
}

impl Default for QueueEvents {
    fn default() -> Self {
        Self {
            depth_high_percent: 80,
            depth_low_percent: 20,
            depth_high: Enabled::No,
            depth_low: Enabled::No,
            queue_full: Enabled::Yes,
            service_interval_event: ServiceIntervalEvent::None,
            service_interval: INTERVAL_DEFAULT,
        }
    }
}

/// Default of `QSVCINT` and of `TRIGINT`.
pub(crate) const INTERVAL_DEFAULT: Duration =
    Duration::from_millis(ferrymq_types::ATTRIBUTE_MAX as u64);

/// Events of a queue manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueManagerEvents {
    /// `INHIBTEV`: puts and gets that were inhibited (2051, 2016). Default `DISABLED`.
    pub inhibit: Enabled,
    /// `LOCALEV`: local names that could not be resolved (2001, 2082, 2085). Default `DISABLED`.
    pub local: Enabled,
    /// `REMOTEEV`: names of other queue managers that could not be resolved, and transmission queues that could not be used
    /// (2057, 2087, 2091, 2092, 2184, 2196 to 2199). Default `DISABLED`.
    pub remote: Enabled,
    /// `PERFMEV`: performance events of queues. Default `DISABLED`.
    pub performance: Enabled,
    /// `STRSTPEV`: that the queue manager starts or stops. Default `ENABLED`.
    pub start_stop: Enabled,
}

impl QueueManagerEvents {
    /// IBM MQ's defaults.
    pub const DEFAULT: Self = Self {
        inhibit: Enabled::No,
        local: Enabled::No,
        remote: Enabled::No,
        performance: Enabled::No,
        start_stop: Enabled::Yes,
    };
}
