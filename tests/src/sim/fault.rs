//! Faults that the harness plants in its own driver, so that it can be seen that the invariants find them.

/// One broken rule. The driver breaks it at the seam between a machine and what performs its effects; the product stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Every answer leaves before what it depends on is durable (rule U7).
    AnswerBeforeDurable,
    /// The number of a received batch is written one write set after its messages (invariant H3).
    SequenceApart,
    /// The end of a batch is sent before its record is durable (rule U4).
    PrepareNotAwaited,
    /// All conversations of a receiver share one connection: an old stream may commit (rule U5).
    OldStreamAccepted,
    /// Any confirmation settles everything that was sent (rule U6).
    SettleWithoutComparing,
    /// Segments are recycled although the row store was never flushed (rule U1).
    RecycledBeforeFlush,
    /// A checkpoint does not delete the rows that earlier ones wrote (rule U2).
    DeletionForgotten,
    /// How often a message was delivered is not journaled (rule U14).
    DeliveryCountForgotten,
    /// The outcome of a put with a token is not journaled (invariant I1).
    TokenForgotten,
    /// A get outside a unit of work is not journaled (invariant C4).
    GetForgotten,
    /// A fetch brings the body of another message (rule U9).
    BodiesMixedUp,
    /// A unit of work is journaled without its gets (invariant A3).
    GetsOfUnitForgotten,
    /// Gets of groups are not in logical order (invariant G1).
    GroupsInPhysicalOrder,
    /// Groups are got before they are complete (invariant G1).
    IncompleteGroups,
    /// Puts of groups are not in logical order (invariant G1).
    GroupsNotNumbered,
    /// A report is journaled one write set after what it reports (invariant T1).
    ReportsApart,
    /// A report is journaled though its cause is not (invariant T1).
    ReportsWithoutCause,
    /// That a permanent dynamic queue was made is not journaled (invariant Q1).
    DynamicQueueForgotten,
    /// The engine does not hear that the client of a temporary queue is gone (invariant Q1).
    TemporaryQueueKept,
    /// The monitor drops some trigger messages (invariant T2).
    TriggersIgnored,
}

impl Fault {
    /// Every one.
    pub const ALL: [Self; 20] = [
        Self::AnswerBeforeDurable,
        Self::SequenceApart,
        Self::PrepareNotAwaited,
        Self::OldStreamAccepted,
        Self::SettleWithoutComparing,
        Self::RecycledBeforeFlush,
        Self::DeletionForgotten,
        Self::DeliveryCountForgotten,
        Self::TokenForgotten,
        Self::GetForgotten,
        Self::BodiesMixedUp,
        Self::GetsOfUnitForgotten,
        Self::GroupsInPhysicalOrder,
        Self::IncompleteGroups,
        Self::GroupsNotNumbered,
        Self::ReportsApart,
        Self::ReportsWithoutCause,
        Self::DynamicQueueForgotten,
        Self::TemporaryQueueKept,
        Self::TriggersIgnored,
    ];
}
