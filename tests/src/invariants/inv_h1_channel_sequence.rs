//! H1: committed sequence numbers at the receiver rise without gap or repeat, and none that was told to the sender is ever lost.

use ferrymq_types::ReceiverRow;

use crate::invariants::{Check, violated};

const ID: &str = "inv_h1_channel_sequence";

/// What is known of the numbers of one receiving channel.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// As of the last write set of this run.
    pub(crate) last: u64,
    /// The highest number that left the node in a confirmation or an answer to a bind.
    pub(crate) told: u64,
}

impl Numbers {
    /// A write set holds a new row; the batch began at `first`.
    pub(crate) fn written(&mut self, row: &ReceiverRow, first: Option<u64>) -> Check {
        if row.last_committed < self.last {
            return violated(ID, format!("the number fell from {} by {row:?}", self.last));
        }
        if let Some(first) = first
            && first != self.last + 1
        {
            return violated(
                ID,
                format!("a batch from {first} was committed after {}", self.last),
            );
        }
        self.last = row.last_committed;
        Ok(())
    }

    /// A restart found this.
    pub(crate) fn recovered(&mut self, last: u64) -> Check {
        if last < self.told {
            return violated(
                ID,
                format!("{} was confirmed, a restart found {last}", self.told),
            );
        }
        self.last = last;
        Ok(())
    }
}
