//! What a seed makes of a run: how the ends are defined, how often what fails.

use crate::sim::dice::Dice;

/// The traits of one run.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    /// `NPMSPEED(FAST)` of sender and receiver.
    pub(crate) fast: [bool; 2],
    /// `USEDLQ(YES)` of sender and receiver.
    pub(crate) use_dead_letter_queue: [bool; 2],
    /// Whether `DEADQ` is set.
    pub(crate) dead_letter_queue: [bool; 2],
    /// `MAXDEPTH` of the dead-letter queues.
    pub(crate) dead_letter_depth: u64,
    pub(crate) batch_size: u64,
    /// Milliseconds.
    pub(crate) batch_interval: u64,
    /// Seconds; 0 is never.
    pub(crate) disconnect_interval: u64,
    /// Bytes of messages in memory, so that some are fetched.
    pub(crate) cache_bytes: u64,
    /// Requests of one client.
    pub(crate) requests: u64,
    pub(crate) crashes: [u64; 2],
    pub(crate) cuts: u64,
    pub(crate) operator_acts: u64,
    pub(crate) checkpoints: bool,
    /// Percent of requests whose way there or back fails.
    pub(crate) client_losses: u64,
    /// Milliseconds over which faults are spread.
    pub(crate) horizon: u64,
    /// Most milliseconds that a frame takes.
    pub(crate) latency: u64,
    /// Most milliseconds that a sync takes.
    pub(crate) sync: u64,
    /// Percent of messages that are persistent.
    pub(crate) persistent: u64,
    /// `TRIGTYPE` of the queue with a trigger.
    pub(crate) trigger_type: &'static str,
}

impl Profile {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let calm = dice.percent(15);
        let mut times = |most: u64| if calm { 0 } else { dice.below(most + 1) };
        let crashes = [times(3), times(3)];
        let cuts = times(8);
        let operator_acts = times(4);
        Self {
            fast: [dice.percent(60), dice.percent(60)],
            use_dead_letter_queue: [dice.percent(70), dice.percent(70)],
            dead_letter_queue: [dice.percent(80), dice.percent(80)],
            dead_letter_depth: if dice.percent(20) { 2 } else { 5000 },
            batch_size: dice.pick(&[1, 2, 3, 5, 10, 50]),
            batch_interval: dice.pick(&[0, 0, 0, 20, 200]),
            disconnect_interval: dice.pick(&[0, 2, 60]),
            cache_bytes: dice.pick(&[0, 2_000, 20_000, 100_000_000]),
            requests: dice.between(8, 22),
            crashes,
            cuts,
            operator_acts,
            checkpoints: dice.percent(75),
            client_losses: if calm { 0 } else { dice.pick(&[0, 2, 6]) },
            horizon: dice.between(3_000, 12_000),
            latency: dice.pick(&[1, 5, 40, 200]),
            sync: dice.pick(&[1, 5, 30, 150]),
            persistent: dice.pick(&[50, 75, 95]),
            trigger_type: dice.pick(&["FIRST", "FIRST", "EVERY"]),
        }
    }
}
