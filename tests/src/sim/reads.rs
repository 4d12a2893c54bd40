//! Reads of rows that selectors are to judge.

use ferrymq_engine::{FetchId, Input};
use ferrymq_types::{ObjectId, Sequence};

use crate::invariants::Check;
use crate::sim::world::World;

impl World {
    pub(crate) fn read_rows(
        &mut self,
        node: usize,
        run: u64,
        fetch: FetchId,
        queue: ObjectId,
        sequences: Vec<Sequence>,
    ) -> Check {
        if self.running(node, run).is_some_and(|r| r.appending) {
            self.append(node, run)?;
        }
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        let reader = running.store.reader();
        let rows = sequences
            .into_iter()
            .filter_map(|sequence| match reader.fetch_row(queue, sequence) {
                Ok(Some(row)) => Some((sequence, Box::new(row))),
                Ok(None) | Err(_) => None,
            })
            .collect();
        self.hand_in(node, run, Input::RowsRead { fetch, rows });
        Ok(())
    }
}
