//! Breaks write sets as planted faults want them.

use ferrymq_types::{Change, WriteSet};

use crate::sim::Fault;
use crate::sim::reports::body_of_report;
use crate::sim::world::World;

impl World {
    /// Breaks a write set as the planted fault wants it.
    pub(crate) fn spoil(&mut self, node: usize, mut set: WriteSet) -> WriteSet {
        let Some(fault) = self.fault else {
            return set;
        };
        let Some(running) = self.nodes[node].running.as_mut() else {
            return set;
        };
        let has_puts = set
            .changes
            .iter()
            .any(|c| matches!(c, Change::SetMessage { .. }));
        let is_unit = set
            .changes
            .iter()
            .any(|c| matches!(c, Change::SetUnitOfWork(_)));
        let is_move = set.changes.iter().any(|c| {
            matches!(
                c,
                Change::SetAccount(_) | Change::SetSender(_) | Change::SetReceiver(_)
            )
        });
        let is_removal =
            |c: &Change| matches!(c, Change::DeleteMessage { .. } | Change::DeleteBody { .. });
        match fault {
            Fault::SequenceApart => {
                let (kept, changes) = set
                    .changes
                    .into_iter()
                    .partition(|c| matches!(c, Change::SetReceiver(_)));
                set.changes = changes;
                let earlier = std::mem::replace(&mut running.stash, kept);
                set.changes.extend(earlier);
            }
            Fault::DeliveryCountForgotten => set
                .changes
                .retain(|c| !matches!(c, Change::SetDeliveryCount { .. })),
            Fault::TokenForgotten => set
                .changes
                .retain(|c| !matches!(c, Change::SetUnitOfWork(row) if row.message_id.is_some())),
            Fault::GetForgotten => {
                if !has_puts && !is_unit && !is_move {
                    set.changes.retain(|c| !is_removal(c));
                }
            }
            Fault::GetsOfUnitForgotten => {
                if has_puts && is_unit {
                    set.changes.retain(|c| !is_removal(c));
                }
            }
            Fault::ReportsApart => {
                // Its row and its body, which has the same number.
                let reports: Vec<_> = set.changes.iter().filter_map(body_of_report).collect();
                let (kept, changes) = set.changes.into_iter().partition(|c| match c {
                    Change::SetBody { id, .. } => reports.contains(id),
                    other => body_of_report(other).is_some(),
                });
                set.changes = changes;
                let earlier = std::mem::replace(&mut running.stash, kept);
                set.changes.extend(earlier);
            }
            Fault::ReportsWithoutCause => {
                if set.changes.iter().any(|c| body_of_report(c).is_some()) && !is_unit {
                    set.changes.retain(|c| !is_removal(c));
                }
            }
            Fault::DynamicQueueForgotten => {
                let is_dynamic = |c: &Change| matches!(c, Change::SetQueue { row, .. } if row.definition.is_some());
                set.changes.retain(|c| !is_dynamic(c));
            }
            Fault::TemporaryQueueKept
            | Fault::TriggersIgnored
            | Fault::GroupsInPhysicalOrder
            | Fault::IncompleteGroups
            | Fault::GroupsNotNumbered
            | Fault::AnswerBeforeDurable
            | Fault::PrepareNotAwaited
            | Fault::OldStreamAccepted
            | Fault::SettleWithoutComparing
            | Fault::RecycledBeforeFlush
            | Fault::DeletionForgotten
            | Fault::BodiesMixedUp => {}
        }
        set
    }
}
