//! What a load came to.

use std::collections::BTreeMap;
use std::time::Duration;

use ferrymq_client::ClientError;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::body::Verdict;
use crate::failure::Failure;
use crate::output::Output;

/// Latencies beyond this are counted as this: ten minutes, in microseconds.
const LATENCY_MAX_US: u64 = 600_000_000;

/// What one task of the load saw.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) messages: u64,
    latencies: Histogram<u64>,
    pub(super) errors: BTreeMap<String, u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            messages: 0,
            latencies: Histogram::new_with_bounds(1, LATENCY_MAX_US, 3)
                .expect("the bounds are in order and three digits are allowed"),
            errors: BTreeMap::new(),
        }
    }
}

impl Tally {
    pub(super) fn took(&mut self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(us.max(1));
    }

    pub(super) fn failed(&mut self, error: &ClientError) {
        let count = self.errors.entry(error.reason().to_string()).or_default();
        *count = count.saturating_add(1);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.latencies
            .add(&other.latencies)
            .expect("every tally has the same bounds");
        self.add_errors(other);
    }

    pub(super) fn add_errors(&mut self, other: &Self) {
        for (reason, count) in &other.errors {
            let sum = self.errors.entry(reason.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

/// The result, as it is printed.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) workload: &'static str,
    pub(super) clients: u32,
    pub(super) queues: u32,
    pub(super) size: usize,
    pub(super) window: u32,
    pub(super) persistent: bool,
    pub(super) syncpoint: u32,
    pub(super) messages: u64,
    pub(super) seconds: f64,
    /// Messages a second.
    pub(super) rate: f64,
    pub(super) megabytes_per_second: f64,
    /// Of this process, for each message.
    pub(super) cpu_us_per_message: f64,
    /// Of messages of this run; nothing where there were none.
    pub(super) latency_us: Option<Latency>,
    /// Messages that were waited for and did not come.
    pub(super) missing: u64,
    pub(super) errors: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verified: Option<Verdict>,
}

#[derive(Debug, Serialize)]
pub(super) struct Latency {
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Latency {
    pub(super) fn of(tally: &Tally) -> Option<Self> {
        let at = |q| tally.latencies.value_at_quantile(q);
        (!tally.latencies.is_empty()).then(|| Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: tally.latencies.max(),
        })
    }
}

impl Report {
    pub(super) fn print(&self, output: &mut Output, csv: bool) -> Result<(), Failure> {
        let latencies = self.latency_us.as_ref();
        let failed: u64 = self.errors.values().sum();
        if csv {
            output.line("workload,clients,queues,size,window,persistent,syncpoint,messages,seconds,rate,p50_us,p90_us,p99_us,p999_us,max_us,errors")?;
            return output.line(&format!(
                "{},{},{},{},{},{},{},{},{:.3},{:.0},{},{failed}",
                self.workload,
                self.clients,
                self.queues,
                self.size,
                self.window,
                self.persistent,
                self.syncpoint,
                self.messages,
                self.seconds,
                self.rate,
                latencies.map_or_else(
                    || ",,,,".to_owned(),
                    |l| format!("{},{},{},{},{}", l.p50, l.p90, l.p99, l.p999, l.max)
                ),
            ));
        }
        if !output.is_text() {
            return output.document(self);
        }
        output.line(&format!(
            "{}: {} messages of {} bytes in {:.2} s: {:.0}/s, {:.1} MB/s, {:.1} us of CPU each here",
            self.workload,
            self.messages,
            self.size,
            self.seconds,
            self.rate,
            self.megabytes_per_second,
            self.cpu_us_per_message,
        ))?;
        if let Some(l) = latencies {
            output.line(&format!(
                "latency: p50 {} us, p90 {} us, p99 {} us, p99.9 {} us, longest {} us",
                l.p50, l.p90, l.p99, l.p999, l.max
            ))?;
        }
        for (reason, count) in &self.errors {
            output.line(&format!("errors: {count} x {reason}"))?;
        }
        if let Some(verdict) = &self.verified {
            output.line(&format!(
                "verified: lost {}, duplicated {}, damaged {}, left on the queue {}",
                verdict.lost, verdict.duplicated, verdict.damaged, verdict.left
            ))?;
        }
        Ok(())
    }
}
