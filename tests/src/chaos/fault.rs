//! What goes wrong in a run. The letters are those of the list of faults.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::HOSTS;
use super::relay::{Link, Relay};
use crate::cluster::{Nodes, binary};

/// How long a node may take to come to a crash point.
const CRASH_WITHIN: Duration = Duration::from_secs(10);

/// Points at which a node of a run aborts: those that messages bring it to.
const CRASH_POINTS: [&str; 16] = [
    "journal.before_write",
    "journal.after_write",
    "journal.before_sync",
    "journal.after_sync",
    "journal.before_rotate",
    "journal.after_guard_write",
    "store.before_append",
    "store.after_append",
    "store.recovery_start",
    "store.recovery_end",
    "engine.before_sync",
    "engine.before_reply",
    "channel.before_send",
    "channel.after_send",
    "channel.before_confirm",
    "channel.after_confirm",
];

/// What happens to processes.
#[derive(Debug, Clone)]
pub enum ProcessFault {
    /// P1: these are killed at once.
    Kill(Vec<usize>),
    /// P2: one aborts when it comes to a point for the n-th time.
    CrashPoint(usize, String),
    /// P3: one is killed again so soon after its start.
    KilledInRecovery(usize, [Duration; 3]),
    /// P4: one stands still for a time, and goes on as if nothing had happened.
    Pause(usize, Duration),
}

/// What happens to the network.
#[derive(Debug, Clone)]
pub enum NetworkFault {
    /// W1: nothing passes between two hosts.
    Partition(usize, usize),
    /// W1: one hears nobody and nobody hears it, its clients included (W4: their connections are half open).
    Isolate(usize),
    /// W2: nothing passes in one direction.
    OneWay(usize, usize),
    /// W3: packets are lost, doubled, changed, late and out of order, everywhere.
    Noise(Link),
    /// W5: connections are ended again and again, everywhere.
    Resets(f64),
    /// W7: one direction is slow.
    Slow(usize, usize, u64),
}

impl ProcessFault {
    /// Chooses one. `crash_points`: whether there is a binary that has them.
    pub fn choose(random: &mut StdRng, crash_points: bool, pause_max: Duration) -> Self {
        let node = random.random_range(1..=HOSTS);
        match random.random_range(0..if crash_points { 4 } else { 3 }) {
            0 => {
                let mut nodes = vec![node];
                // Sometimes two, or all.
                nodes.extend((1..=HOSTS).filter(|n| *n != node && random.random_bool(0.3)));
                Self::Kill(nodes)
            }
            1 => {
                let mut after = || Duration::from_millis(random.random_range(10..500));
                Self::KilledInRecovery(node, [after(), after(), after()])
            }
            2 => Self::Pause(
                node,
                random.random_range(Duration::from_secs(2)..pause_max.max(Duration::from_secs(3))),
            ),
            _ => {
                let point = CRASH_POINTS[random.random_range(0..CRASH_POINTS.len())];
                let once = point.contains("recovery") || point.contains("rotate");
                let times = if once { 1 } else { random.random_range(1..60) };
                Self::CrashPoint(node, format!("{point}:{times}"))
            }
        }
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Kill(_) => "P1 kill",
            Self::CrashPoint(..) => "P2 crash point",
            Self::KilledInRecovery(..) => "P3 kill in recovery",
            Self::Pause(..) => "P4 pause",
        }
    }

    /// Lets it happen, from its start to its end: afterwards every node runs. Says whether it took hold.
    ///
    /// # Panics
    /// If a signal cannot be sent.
    pub fn happen(&self, nodes: &mut Nodes, crash_points: Option<&Path>) -> bool {
        match self {
            Self::Kill(which) => {
                for node in which {
                    nodes.kill(*node);
                }
                for node in which {
                    nodes.start(*node);
                }
                true
            }
            Self::CrashPoint(node, point) => {
                let with_points = crash_points.expect("chosen only where there is one");
                nodes.kill(*node);
                nodes.start_with(*node, with_points, &[("FERRYMQ_CRASH_AT", point)]);
                let start = Instant::now();
                while nodes.runs(*node) && start.elapsed() < CRASH_WITHIN {
                    std::thread::sleep(Duration::from_millis(10));
                }
                let took_hold = !nodes.runs(*node);
                if !took_hold {
                    nodes.kill(*node);
                }
                nodes.start(*node);
                took_hold
            }
            Self::KilledInRecovery(node, times) => {
                nodes.kill(*node);
                for after in times {
                    nodes.start_with(*node, &binary(), &[]);
                    std::thread::sleep(*after);
                    nodes.kill(*node);
                }
                nodes.start(*node);
                true
            }
            Self::Pause(node, time) => {
                nodes.signal(*node, Signal::SIGSTOP);
                std::thread::sleep(*time);
                nodes.signal(*node, Signal::SIGCONT);
                true
            }
        }
    }
}

impl NetworkFault {
    /// Chooses one.
    pub fn choose(random: &mut StdRng) -> Self {
        let one = random.random_range(1..=HOSTS);
        let other = (one % HOSTS) + 1;
        match random.random_range(0..6) {
            0 => Self::Partition(one, other),
            1 => Self::Isolate(one),
            2 if random.random_bool(0.5) => Self::OneWay(one, other),
            2 => Self::OneWay(other, one),
            3 => {
                let mut some = || random.random_range(0.0..0.1);
                let (loss, duplicate, corrupt, reorder) = (some(), some(), some(), some());
                Self::Noise(Link {
                    loss,
                    duplicate,
                    corrupt,
                    reorder,
                    delay: Duration::from_millis(random.random_range(0..100)),
                    jitter: Duration::from_millis(random.random_range(0..50)),
                    ..Link::CLEAR
                })
            }
            4 => Self::Resets(random.random_range(0.001..0.02)),
            _ => Self::Slow(one, other, random.random_range(8_000..64_000)),
        }
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Partition(..) => "W1 partition",
            Self::Isolate(_) => "W1 isolated, W4 half open",
            Self::OneWay(..) => "W2 one-way",
            Self::Noise(_) => "W3 loss, doubles, corruption, delay",
            Self::Resets(_) => "W5 resets",
            Self::Slow(..) => "W7 slow link",
        }
    }

    /// Begins. It ends when the network is healed.
    pub fn begin(&self, relay: &Relay) {
        let cut = Link {
            cut: true,
            ..Link::CLEAR
        };
        let set = |from: usize, to: usize, link: Link| {
            relay.set(super::address(from), super::address(to), link);
        };
        let everywhere = |link: Link| {
            for from in 0..=HOSTS {
                for to in (0..=HOSTS).filter(|to| *to != from) {
                    set(from, to, link);
                }
            }
        };
        match *self {
            Self::Partition(a, b) => {
                set(a, b, cut);
                set(b, a, cut);
            }
            Self::Isolate(a) => {
                for other in (0..=HOSTS).filter(|other| *other != a) {
                    set(a, other, cut);
                    set(other, a, cut);
                }
            }
            Self::OneWay(from, to) => set(from, to, cut),
            Self::Noise(link) => everywhere(link),
            Self::Resets(reset) => everywhere(Link {
                reset,
                ..Link::CLEAR
            }),
            Self::Slow(from, to, bandwidth) => set(
                from,
                to,
                Link {
                    bandwidth,
                    ..Link::CLEAR
                },
            ),
        }
    }
}
