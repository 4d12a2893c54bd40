//! The tables of undelivered messages, cell by cell, in the order of the specification.

use ferrymq_objects::UseDlq;
use ferrymq_types::ReportOptions;

use super::{DISCARD, EXCEPTION, EXCEPTION_WITH_FULL_DATA, reason};
use crate::undelivered::{
    DeadLetterQueue, MessageKind, ReceiverDecision, ReceiverFailure, ReceiverPlace, SenderDecision,
    SenderFailure, SenderPlace, is_queue_managers, receiving, sending,
};

const KINDS: [MessageKind; 3] = [
    MessageKind::Persistent,
    MessageKind::NonPersistentNormal,
    MessageKind::NonPersistentFast,
];
const REPORTS: [(u32, bool); 3] = [
    (0, false),
    (EXCEPTION, true),
    (EXCEPTION_WITH_FULL_DATA, true),
];

/// `DEADQ` missing, full, inhibited, too small, not authorised, not local, damaged.
const UNUSABLE: [u32; 7] = [2085, 2053, 2051, 2030, 2035, 2043, 2101];

fn receiver(
    use_dead_letter_queue: UseDlq,
    dead_letter_queue: DeadLetterQueue,
    kind: MessageKind,
    report: u32,
) -> ReceiverDecision {
    receiving(&ReceiverFailure {
        place: ReceiverPlace::Destination,
        reason: reason(2085),
        kind,
        retries_left: 10,
        use_dead_letter_queue,
        dead_letter_queue,
        report: ReportOptions::from_bits(report),
    })
}

/// A row of table A: what becomes of a persistent, a normal and a fast message.
fn row_a(use_dlq: UseDlq, queue: DeadLetterQueue, expected: [fn(bool) -> ReceiverDecision; 3]) {
    for (kind, expected) in KINDS.into_iter().zip(expected) {
        for (options, report) in REPORTS {
            assert_eq!(
                receiver(use_dlq, queue, kind, options),
                expected(report),
                "{use_dlq:?} {queue:?} {kind:?} {options:x}"
            );
        }
    }
}

const fn dead_letter(report: bool) -> ReceiverDecision {
    ReceiverDecision::DeadLetter { report }
}
const fn discard(report: bool) -> ReceiverDecision {
    ReceiverDecision::Discard { report }
}
const fn not_consumed(_: bool) -> ReceiverDecision {
    ReceiverDecision::NotConsumed
}

#[test]
fn table_a_usedlq_yes_and_a_usable_queue_dead_letters_every_kind() {
    row_a(UseDlq::Yes, DeadLetterQueue::Untried, [dead_letter; 3]);
}

#[test]
fn table_a_usedlq_yes_and_blank_deadq_discards_fast_only() {
    row_a(
        UseDlq::Yes,
        DeadLetterQueue::Blank,
        [not_consumed, not_consumed, discard],
    );
}

#[test]
fn table_a_usedlq_yes_and_an_unusable_queue_discards_fast_only() {
    for code in UNUSABLE {
        row_a(
            UseDlq::Yes,
            DeadLetterQueue::Failed(reason(code)),
            [not_consumed, not_consumed, discard],
        );
    }
}

#[test]
fn table_a_usedlq_no_discards_fast_only_whatever_deadq_is() {
    for queue in [
        DeadLetterQueue::Untried,
        DeadLetterQueue::Blank,
        DeadLetterQueue::Failed(reason(2053)),
    ] {
        row_a(UseDlq::No, queue, [not_consumed, not_consumed, discard]);
    }
}

#[test]
fn table_b_discard_option_discards_every_kind_after_its_report() {
    for use_dlq in [UseDlq::Yes, UseDlq::No] {
        for queue in [
            DeadLetterQueue::Untried,
            DeadLetterQueue::Blank,
            DeadLetterQueue::Failed(reason(2053)),
        ] {
            for kind in KINDS {
                for (options, report) in REPORTS {
                    assert_eq!(
                        receiver(use_dlq, queue, kind, DISCARD | options),
                        discard(report)
                    );
                }
            }
        }
    }
}

#[test]
fn table_b_a_report_that_cannot_be_put_is_dead_lettered_then_held_or_dropped() {
    let decide = |kind, use_dead_letter_queue, dead_letter_queue| {
        receiving(&ReceiverFailure {
            place: ReceiverPlace::Report,
            reason: reason(2053),
            kind,
            retries_left: 10,
            use_dead_letter_queue,
            dead_letter_queue,
            report: ReportOptions::from_bits(DISCARD | EXCEPTION),
        })
    };
    for use_dlq in [UseDlq::Yes, UseDlq::No] {
        for (kind, expected) in
            KINDS
                .into_iter()
                .zip([not_consumed(false), discard(false), discard(false)])
        {
            let untried = decide(kind, use_dlq, DeadLetterQueue::Untried);
            assert_eq!(untried, dead_letter(false));
            assert_eq!(decide(kind, use_dlq, DeadLetterQueue::Blank), expected);
            let failed = DeadLetterQueue::Failed(reason(2053));
            assert_eq!(decide(kind, use_dlq, failed), expected);
        }
    }
}

#[test]
fn message_retry_is_for_2051_2053_and_2192_while_tries_are_left() {
    for code in 0..=9999 {
        for (retries_left, report) in [(0, 0), (1, 0), (1, DISCARD)] {
            let decision = receiving(&ReceiverFailure {
                place: ReceiverPlace::Destination,
                reason: reason(code),
                kind: MessageKind::Persistent,
                retries_left,
                use_dead_letter_queue: UseDlq::Yes,
                dead_letter_queue: DeadLetterQueue::Untried,
                report: ReportOptions::from_bits(report),
            });
            let expected = retries_left > 0 && [2051, 2053, 2192].contains(&code);
            assert_eq!(
                decision == ReceiverDecision::RetryLater,
                expected,
                "{code} {retries_left} {report:x}"
            );
        }
    }
}

#[test]
fn a_report_is_never_retried() {
    let decision = receiving(&ReceiverFailure {
        place: ReceiverPlace::Report,
        reason: reason(2053),
        kind: MessageKind::Persistent,
        retries_left: 10,
        use_dead_letter_queue: UseDlq::Yes,
        dead_letter_queue: DeadLetterQueue::Untried,
        report: ReportOptions::from_bits(EXCEPTION),
    });
    assert_eq!(decision, dead_letter(false));
}

fn sender(
    place: SenderPlace,
    use_dead_letter_queue: UseDlq,
    dead_letter_queue: DeadLetterQueue,
    kind: MessageKind,
    report: u32,
) -> SenderDecision {
    sending(&SenderFailure {
        place,
        kind,
        use_dead_letter_queue,
        dead_letter_queue,
        report: ReportOptions::from_bits(report),
    })
}

#[test]
fn table_c_the_sender_dead_letters_what_the_receiver_refused_or_backs_the_batch_out() {
    let in_batch = [MessageKind::Persistent, MessageKind::NonPersistentNormal];
    for kind in in_batch {
        for (options, report) in REPORTS {
            let decide =
                |use_dlq, queue| sender(SenderPlace::Refused, use_dlq, queue, kind, options);
            assert_eq!(
                decide(UseDlq::Yes, DeadLetterQueue::Untried),
                SenderDecision::DeadLetterHere { report }
            );
            let back_out = SenderDecision::BackOutAndRetry;
            assert_eq!(decide(UseDlq::Yes, DeadLetterQueue::Blank), back_out);
            for code in UNUSABLE {
                let queue = DeadLetterQueue::Failed(reason(code));
                assert_eq!(decide(UseDlq::Yes, queue), back_out);
            }
            assert_eq!(decide(UseDlq::No, DeadLetterQueue::Untried), back_out);
            assert_eq!(decide(UseDlq::No, DeadLetterQueue::Blank), back_out);
        }
    }
}

#[test]
fn sending_side_usedlq_yes_and_a_usable_queue_dead_letters_every_kind() {
    for kind in KINDS {
        for (options, report) in REPORTS {
            let place = SenderPlace::BeforeSending;
            assert_eq!(
                sender(place, UseDlq::Yes, DeadLetterQueue::Untried, kind, options),
                SenderDecision::DeadLetterHere { report }
            );
        }
    }
}

#[test]
fn sending_side_without_a_usable_queue_backs_out_and_discards_fast_only() {
    let cases = [
        (UseDlq::Yes, DeadLetterQueue::Blank),
        (UseDlq::Yes, DeadLetterQueue::Failed(reason(2053))),
        (UseDlq::No, DeadLetterQueue::Untried),
        (UseDlq::No, DeadLetterQueue::Blank),
    ];
    for (use_dlq, queue) in cases {
        for (options, report) in REPORTS {
            let decide = |kind| sender(SenderPlace::BeforeSending, use_dlq, queue, kind, options);
            let back_out = SenderDecision::BackOutAndRetry;
            assert_eq!(decide(MessageKind::Persistent), back_out);
            assert_eq!(decide(MessageKind::NonPersistentNormal), back_out);
            assert_eq!(
                decide(MessageKind::NonPersistentFast),
                SenderDecision::Discard { report }
            );
        }
    }
}

#[test]
fn sending_side_discard_option_discards_every_kind_after_its_report() {
    for use_dlq in [UseDlq::Yes, UseDlq::No] {
        for queue in [DeadLetterQueue::Untried, DeadLetterQueue::Blank] {
            for kind in KINDS {
                for (options, report) in REPORTS {
                    let place = SenderPlace::BeforeSending;
                    assert_eq!(
                        sender(place, use_dlq, queue, kind, DISCARD | options),
                        SenderDecision::Discard { report }
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_the_queue_managers_fault_is_no_messages_fault() {
    let check = |code, queue, expected| {
        assert_eq!(is_queue_managers(reason(code), queue), expected, "{code}");
    };
    for code in [2162, 2161, 2255, 2024, 9002, 9005, 9006, 9007] {
        check(code, DeadLetterQueue::Untried, true);
    }
    for code in [2030, 2031, 2035, 2051, 2053, 2052, 2085, 2087, 2192] {
        check(code, DeadLetterQueue::Untried, false);
        check(code, DeadLetterQueue::Failed(reason(2053)), false);
    }
    // No space for the message, and none for the dead-letter queue: the channel waits for room.
    check(2192, DeadLetterQueue::Failed(reason(2192)), true);
    check(2053, DeadLetterQueue::Failed(reason(2192)), false);
}
