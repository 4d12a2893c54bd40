//! Non-persistent messages that do not fit in memory any more: they are written aside, never to the journal, and are gone after a
//! restart like all others (rule U16).
//!
//! What becomes available while memory is above its limit goes to the disk, the newest first to go: what is in memory is older,
//! and wanted before it. A message stays in memory until it is known to be written. One that is on the disk is fetched and read
//! ahead as a persistent one; it is known by being in memory nowhere that counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferrymq_types::{Message, Persistence, ReasonCode, Sequence, Timestamp};

use crate::engine::Step;
use crate::limits::SPILL_RETRY_INTERVAL;
use crate::memory::memory_bytes;
use crate::{Effect, Engine};

/// What is on its way to the disk, and what is to leave it.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    /// Became available in this step.
    candidates: Vec<Sequence>,
    /// Being written, with the bytes of each.
    in_flight: BTreeMap<Sequence, u64>,
    in_flight_bytes: u64,
    /// Left since; its bytes on the disk are not wanted any more.
    forgotten: Vec<Sequence>,
    /// Why nothing can be written, and when it is tried again.
    refused: Option<(ReasonCode, Timestamp)>,
}

impl Engine {
    /// Whether a non-persistent message of this many bytes more fits in memory, or beside it.
    ///
    /// 2071 above the limit, if nothing is spilled or the disk does not keep up; 2192, or 2071 at the limit of the spill file,
    /// while nothing can be written.
    pub(crate) fn check_memory(
        &self,
        persistence: Persistence,
        bytes: u64,
    ) -> Result<(), ReasonCode> {
        match persistence {
            Persistence::Persistent => return Ok(()),
            Persistence::NonPersistent => {}
        }
        let limits = &self.limits;
        let with = self.memory.non_persistent_bytes().saturating_add(bytes);
        if with <= limits.non_persistent_bytes_max {
            return Ok(());
        }
        let window = limits.spill_window_bytes;
        if let Some((reason, _)) = self.spill.refused {
            return Err(reason);
        }
        let room = limits.non_persistent_bytes_max.saturating_add(window);
        // One that is larger than the window goes when nothing else is on its way.
        let alone = self.spill.in_flight.is_empty()
            && self.memory.non_persistent_bytes() <= limits.non_persistent_bytes_max;
        if window > 0 && (with <= room || alone) {
            Ok(())
        } else {
            Err(ReasonCode::STORAGE_NOT_AVAILABLE)
        }
    }

    /// A non-persistent message became available: is it one too many?
    pub(crate) fn may_spill(&mut self, sequence: Sequence) {
        let above = self.memory.non_persistent_bytes() > self.limits.non_persistent_bytes_max;
        if above && self.limits.spill_window_bytes > 0 && self.spill.refused.is_none() {
            self.spill.candidates.push(sequence);
        }
    }

    /// A non-persistent message leaves, before it leaves memory: what is on the disk of it has to go.
    pub(crate) fn forget_spilled(&mut self, sequence: Sequence) {
        if !self.memory.is_only_here(sequence) {
            self.spill.forgotten.push(sequence);
        }
    }

    /// A message that may be on the disk only is to be moved or held with its bytes: they are in memory again.
    pub(crate) fn recall(&mut self, sequence: Sequence, message: &Arc<Message>) {
        let on_disk = match message.descriptor.persistence {
            Persistence::Persistent => false,
            Persistence::NonPersistent => !self.memory.is_only_here(sequence),
        };
        if on_disk {
            self.memory.remove(sequence);
            self.memory.keep(sequence, Arc::clone(message));
            self.spill.forgotten.push(sequence);
        }
    }

    /// At the end of a step: says what is to be written and what is to be forgotten.
    pub(crate) fn spill_over(&mut self, step: &mut Step<'_>) {
        let mut messages = Vec::new();
        for sequence in core::mem::take(&mut self.spill.candidates) {
            let bytes = self.memory.non_persistent_bytes();
            let left = bytes.saturating_sub(self.spill.in_flight_bytes);
            if left <= self.limits.non_persistent_bytes_max
                || self.spill.in_flight.contains_key(&sequence)
            {
                continue;
            }
            // It may have been got in the same step.
            if let Some(message) = self.memory.only_here(sequence) {
                let bytes = memory_bytes(message);
                messages.push((sequence, Arc::clone(message)));
                self.spill.in_flight.insert(sequence, bytes);
                self.spill.in_flight_bytes = self.spill.in_flight_bytes.saturating_add(bytes);
            }
        }
        if !messages.is_empty() {
            step.effects.push(Effect::Spill { messages });
        }
        if !self.spill.forgotten.is_empty() {
            let sequences = core::mem::take(&mut self.spill.forgotten);
            step.effects.push(Effect::Forget { sequences });
        }
    }

    /// Messages were written, or could not be: then they stay in memory, and nothing more comes beyond its limit for a while.
    pub(crate) fn spilled(
        &mut self,
        step: &Step<'_>,
        sequences: Vec<Sequence>,
        result: Result<(), ReasonCode>,
    ) {
        for sequence in sequences {
            let bytes = self.spill.in_flight.remove(&sequence).unwrap_or(0);
            self.spill.in_flight_bytes = self.spill.in_flight_bytes.saturating_sub(bytes);
            if result.is_ok() && !self.memory.let_go(sequence) {
                // It left meanwhile.
                self.spill.forgotten.push(sequence);
            }
        }
        self.spill.refused = result
            .err()
            .map(|reason| (reason, step.now.saturating_add(SPILL_RETRY_INTERVAL)));
    }

    /// When writing is tried again that failed.
    pub(crate) fn spill_retry(&self) -> Option<Timestamp> {
        self.spill.refused.map(|(_, at)| at)
    }

    /// The next put may try.
    pub(crate) fn retry_spill(&mut self, step: &Step<'_>) {
        if self.spill_retry().is_some_and(|at| at <= step.now) {
            self.spill.refused = None;
        }
    }

    /// Bytes that are being written aside, for back pressure: beyond [`crate::Limits::spill_window_bytes`] puts are refused.
    #[must_use]
    pub const fn spill_backlog_bytes(&self) -> u64 {
        self.spill.in_flight_bytes
    }
}
