//! Who waits on a queue, in order of arrival, found by what they want.

use std::collections::BTreeSet;

use crate::RequestId;
use crate::queue::{Entry, Wanted};
use crate::resting::hash_id;

/// What a waiting get is filed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Filed {
    Any,
    MessageId(u32),
    CorrelationId(u32),
}

fn file(wanted: &Wanted) -> Filed {
    match (wanted.message_id, wanted.correlation) {
        (Some(hash), _) => Filed::MessageId(hash),
        (None, Some(hash)) => Filed::CorrelationId(hash),
        (None, None) => Filed::Any,
    }
}

/// The waiting gets of one queue. A put finds those that want its message without looking at the others.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    filed: BTreeSet<(Filed, u64, RequestId)>,
}

impl Waiters {
    pub(crate) fn insert(&mut self, wanted: &Wanted, arrival: u64, id: RequestId) {
        self.filed.insert((file(wanted), arrival, id));
    }

    pub(crate) fn remove(&mut self, wanted: &Wanted, arrival: u64, id: RequestId) {
        self.filed.remove(&(file(wanted), arrival, id));
    }

    pub(crate) fn len(&self) -> usize {
        self.filed.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filed.is_empty()
    }

    /// The first that arrived after `after` and may want the message.
    pub(crate) fn next(&self, entry: &Entry, after: Option<u64>) -> Option<(u64, RequestId)> {
        let from = match after {
            Some(arrival) => arrival.checked_add(1)?,
            None => 0,
        };
        let first = |filed: Filed| {
            self.filed
                .range((filed, from, RequestId(0))..=(filed, u64::MAX, RequestId(u64::MAX)))
                .next()
                .map(|(_, arrival, id)| (*arrival, *id))
        };
        [
            Some(Filed::Any),
            Some(Filed::MessageId(hash_id(entry.message_id.as_bytes()))),
            (entry.correlation != 0).then_some(Filed::CorrelationId(entry.correlation)),
        ]
        .into_iter()
        .flatten()
        .filter_map(first)
        .min()
    }
}
