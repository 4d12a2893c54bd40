mod faults;

use crate::{
    Recovered, StoreError,
    conformance::Factory,
    memory::{MemoryDisk, MemoryLog, MemoryOptions, MemoryRows},
};

/// Log and rows in memory.
#[derive(Debug, Default)]
struct InMemory(MemoryDisk);

impl Factory for InMemory {
    type Log = MemoryLog;
    type Rows = MemoryRows;

    fn open_log(&mut self) -> Result<MemoryLog, StoreError> {
        Ok(self.0.open_log(MemoryOptions {
            log_bytes_max: 4 * 1024 * 1024,
            payload_bytes_max: 1024 * 1024,
        }))
    }

    fn open_rows(&mut self, recovered: &Recovered) -> Result<MemoryRows, StoreError> {
        self.0.open_rows(recovered)
    }

    fn crash(&mut self, seed: u64) {
        self.0.crash(seed);
    }
}

mod conformance {
    crate::conformance_suite!(super::InMemory::default);
}
