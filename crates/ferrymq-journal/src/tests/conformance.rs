//! The suite, with rows in memory: both lose power together.

use ferrymq_store::{
    Recovered, StoreError,
    conformance::Factory,
    memory::{MemoryDisk, MemoryRows},
};

use crate::{Journal, JournalOptions, sim::SimDisk};

#[derive(Debug, Default)]
struct Simulated {
    journal: SimDisk,
    rows: MemoryDisk,
}

impl Factory for Simulated {
    type Log = Journal<SimDisk>;
    type Rows = MemoryRows;

    fn open_log(&mut self) -> Result<Journal<SimDisk>, StoreError> {
        let options = JournalOptions {
            segments_max: 8,
            ..super::options()
        };
        Journal::open(self.journal.clone(), options)
    }

    fn open_rows(&mut self, recovered: &Recovered) -> Result<MemoryRows, StoreError> {
        self.rows.open_rows(recovered)
    }

    fn crash(&mut self, seed: u64) {
        self.journal.crash(seed);
        self.rows.crash(seed);
    }
}

ferrymq_store::conformance_suite!(Simulated::default);
