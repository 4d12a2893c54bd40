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
    Group(u32),
    /// Number 1 of a group, or in none.
    First,
    /// In a complete group, or in none.
    Complete,
}

fn file(wanted: &Wanted) -> Filed {
    match (wanted.message_id, wanted.correlation) {
        (Some(hash), _) => Filed::MessageId(hash),
        (None, Some(hash)) => Filed::CorrelationId(hash),
        (None, None) => match (wanted.ids.group_id, wanted.ids.message_sequence_number) {
            (Some(group), _) => Filed::Group(hash_id(group.as_bytes())),
            _ if wanted.complete => Filed::Complete,
            (None, Some(1)) => Filed::First,
            (None, _) => Filed::Any,
        },
    }
}

/// The waiting gets of one queue. A put finds those that want its message without looking at the others.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    filed: BTreeSet<(Filed, u64, RequestId)>,
    /// How many want something of the group.
    of_groups: usize,
}

impl Filed {
    const fn is_of_group(self) -> bool {
        match self {
            Self::Any | Self::MessageId(_) | Self::CorrelationId(_) => false,
            Self::Group(_) | Self::First | Self::Complete => true,
        }
    }
}

impl Waiters {
    pub(crate) fn insert(&mut self, wanted: &Wanted, arrival: u64, id: RequestId) {
        let filed = file(wanted);
        let new = self.filed.insert((filed, arrival, id));
        self.of_groups = self
            .of_groups
            .saturating_add(usize::from(new && filed.is_of_group()));
    }

    pub(crate) fn remove(&mut self, wanted: &Wanted, arrival: u64, id: RequestId) {
        let filed = file(wanted);
        let was = self.filed.remove(&(filed, arrival, id));
        self.of_groups = self
            .of_groups
            .saturating_sub(usize::from(was && filed.is_of_group()));
    }

    pub(crate) fn len(&self) -> usize {
        self.filed.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filed.is_empty()
    }

    /// The first that arrived after `after` and may want the message. `complete`: its group is, or it is in none.
    pub(crate) fn next(
        &self,
        entry: &Entry,
        complete: bool,
        after: Option<u64>,
    ) -> Option<(u64, RequestId)> {
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
        let by_message = [
            Some(Filed::Any),
            Some(Filed::MessageId(hash_id(entry.message_id.as_bytes()))),
            (entry.correlation != 0).then_some(Filed::CorrelationId(entry.correlation)),
        ];
        let by_message = by_message.into_iter().flatten().filter_map(first).min();
        if self.of_groups == 0 {
            return by_message;
        }
        let group = entry.group;
        let by_group = [
            group.map(|member| Filed::Group(hash_id(member.group.as_bytes()))),
            group
                .is_none_or(|member| member.number == 1)
                .then_some(Filed::First),
            complete.then_some(Filed::Complete),
        ];
        by_group
            .into_iter()
            .flatten()
            .filter_map(first)
            .chain(by_message)
            .min()
    }
}
