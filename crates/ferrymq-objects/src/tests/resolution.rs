//! Every row of the tables of name resolution, error codes included.

use ferrymq_types::{QueueManagerName, QueueName, ReasonCode};

use super::{Bench, text, word};
use crate::ObjectKind::{AliasQueue, LocalQueue, RemoteQueue};
use crate::{Action, Target};

fn bench() -> Bench {
    let mut b = Bench::new();
    b.define(LocalQueue, "LOCAL", &[]);
    for xmitq in ["QM2", "X", "SYSTEM.CLUSTER.TRANSMIT.QUEUE"] {
        b.define(LocalQueue, xmitq, &[("USAGE", word("XMITQ"))]);
    }
    b.define(AliasQueue, "A.LOCAL", &[("TARGET", text("LOCAL"))]);
    b.define(AliasQueue, "A.REMOTE", &[("TARGET", text("R.X"))]);
    b.define(AliasQueue, "A.ALIAS", &[("TARGET", text("A.LOCAL"))]);
    b.define(AliasQueue, "A.MISSING", &[("TARGET", text("NOWHERE"))]);
    b.define(AliasQueue, "A.BLANK", &[]);
    b.define(AliasQueue, "A.QMALIAS", &[("TARGET", text("QM3"))]);
    let mut remote = |name: &str, rname: &str, rqmname: &str, xmitq: &str| {
        b.define(
            RemoteQueue,
            name,
            &[
                ("RNAME", text(rname)),
                ("RQMNAME", text(rqmname)),
                ("XMITQ", text(xmitq)),
            ],
        );
    };
    remote("R.X", "THERE", "QM9", "X");
    remote("R.NAMED", "THERE", "QM2", "");
    remote("R.UNKNOWN", "THERE", "QM9", "");
    remote("R.NO.XMITQ", "THERE", "QM9", "NOWHERE");
    remote("R.ALIAS.XMITQ", "THERE", "QM9", "A.LOCAL");
    remote("R.NORMAL.XMITQ", "THERE", "QM9", "LOCAL");
    remote("R.BLANK.QM", "THERE", "", "X");
    remote("R.ME", "THERE", "QM1", "X");
    remote("R.LIKE.ALIAS", "THERE", "A.LOCAL", "");
    remote("R.LIKE.LOCAL", "THERE", "LOCAL", "");
    // Queue-manager aliases.
    remote("QM3", "", "QM2", "");
    remote("QM4", "", "QM9", "X");
    remote("QM5", "", "QM1", "NOWHERE");
    remote("QM6", "", "QM9", "");
    remote("QM7", "", "", "X");
    b
}

/// The outcome in a line: reason code, or path, `>` and the end.
fn resolve(b: &Bench, queue: &str, queue_manager: &str) -> String {
    let queue = QueueName::new(queue).unwrap();
    let queue_manager = QueueManagerName::new(queue_manager).ok();
    match b.qm1().resolve_for_output(&queue, queue_manager.as_ref()) {
        Err(reason) => reason.get().to_string(),
        Ok(found) => {
            let path: Vec<&str> = found.path.iter().map(|q| q.base().name.as_str()).collect();
            let end = match found.target {
                Target::Local(q) => q.base.name.to_string(),
                Target::Remote {
                    transmission_queue,
                    remote_queue,
                    remote_queue_manager,
                } => format!(
                    "{remote_queue}@{remote_queue_manager} by {}",
                    transmission_queue.base.name
                ),
            };
            format!("{} > {end}", path.join(" "))
        }
    }
}

#[test]
fn rules_22_and_23_names_resolve_as_the_tables_say() {
    let b = bench();
    for (queue, queue_manager, expected) in [
        // The queue manager.
        ("LOCAL", "", "LOCAL > LOCAL"),
        ("LOCAL", "QM1", "LOCAL > LOCAL"),
        ("Q", "QM2", "QM2 > Q@QM2 by QM2"),
        ("Q", "X", "X > Q@X by X"),
        ("Q", "LOCAL", "2092"),
        ("Q", "A.LOCAL", "2087"),
        ("Q", "QM3", "QM3 QM2 > Q@QM2 by QM2"),
        ("Q", "QM4", "QM4 X > Q@QM9 by X"),
        ("LOCAL", "QM5", "QM5 LOCAL > LOCAL"),
        ("A.REMOTE", "QM5", "QM5 A.REMOTE R.X X > THERE@QM9 by X"),
        ("NOWHERE", "QM5", "2085"),
        ("Q", "QM6", "2087"),
        ("Q", "QM7", "2087"),
        ("Q", "R.X", "2087"),
        ("Q", "QM9", "2087"),
        // The queue.
        ("A.LOCAL", "", "A.LOCAL LOCAL > LOCAL"),
        ("A.LOCAL", "QM1", "A.LOCAL LOCAL > LOCAL"),
        ("A.REMOTE", "", "A.REMOTE R.X X > THERE@QM9 by X"),
        ("A.ALIAS", "", "2001"),
        ("A.MISSING", "", "2082"),
        ("A.BLANK", "", "2082"),
        ("A.QMALIAS", "", "2184"),
        ("R.X", "", "R.X X > THERE@QM9 by X"),
        ("R.BLANK.QM", "", "2087"),
        ("R.ME", "", "2087"),
        ("QM3", "", "2184"),
        ("NOWHERE", "", "2085"),
        ("QM2", "", "QM2 > QM2"),
        // The transmission queue.
        ("R.NO.XMITQ", "", "2196"),
        ("R.ALIAS.XMITQ", "", "2091"),
        ("R.NORMAL.XMITQ", "", "2092"),
        ("R.NAMED", "", "R.NAMED QM2 > THERE@QM2 by QM2"),
        ("R.LIKE.ALIAS", "", "2091"),
        ("R.LIKE.LOCAL", "", "2092"),
        ("R.UNKNOWN", "", "2087"),
    ] {
        assert_eq!(
            resolve(&b, queue, queue_manager),
            expected,
            "{queue} at {queue_manager}"
        );
    }
}

#[test]
fn the_default_transmission_queue_is_the_last_way_out() {
    for (default, unknown_manager, unknown_remote) in [
        ("X", "X > Q@QM9 by X", "R.UNKNOWN X > THERE@QM9 by X"),
        ("NOWHERE", "2197", "2197"),
        ("A.LOCAL", "2198", "2198"),
        ("R.X", "2198", "2198"),
        ("LOCAL", "2199", "2199"),
        ("SYSTEM.CLUSTER.TRANSMIT.QUEUE", "2199", "2199"),
        ("", "2087", "2087"),
    ] {
        let mut b = bench();
        b.must(Action::AlterQueueManager {
            attributes: super::attributes(&[("DEFXMITQ", text(default))]),
        });
        assert_eq!(resolve(&b, "Q", "QM9"), unknown_manager, "{default}");
        assert_eq!(resolve(&b, "R.UNKNOWN", ""), unknown_remote, "{default}");
        // Nearer ways come first.
        assert_eq!(resolve(&b, "Q", "QM2"), "QM2 > Q@QM2 by QM2");
        assert_eq!(resolve(&b, "R.NO.XMITQ", ""), "2196");
    }
}

#[test]
fn input_ends_at_a_local_queue() {
    let b = bench();
    for (queue, expected) in [
        ("LOCAL", Ok(("LOCAL", None))),
        ("QM2", Ok(("QM2", None))),
        ("A.LOCAL", Ok(("LOCAL", Some("A.LOCAL")))),
        ("A.REMOTE", Err(2045)),
        ("A.ALIAS", Err(2001)),
        ("A.MISSING", Err(2082)),
        ("A.BLANK", Err(2082)),
        ("R.X", Err(2045)),
        ("QM3", Err(2045)),
        ("NOWHERE", Err(2085)),
    ] {
        let found = b
            .qm1()
            .resolve_for_input(&QueueName::new(queue).unwrap())
            .map(|(q, a)| (q.base.name.as_str(), a.map(|a| a.base.name.as_str())))
            .map_err(ReasonCode::get);
        assert_eq!(found, expected, "{queue}");
    }
}

#[test]
fn reply_to_names_are_those_of_the_alias() {
    let b = bench();
    for (queue, queue_manager, expected) in [
        ("R.X", "", "THERE@QM9"),
        ("R.X", "QM8", "R.X@QM8"),
        ("LOCAL", "", "LOCAL@QM1"),
        ("A.LOCAL", "", "A.LOCAL@QM1"),
        ("NOWHERE", "", "NOWHERE@QM1"),
        ("R.BLANK.QM", "", "THERE@QM1"),
        ("QM3", "", "QM3@QM2"),
    ] {
        let queue_manager = QueueManagerName::new(queue_manager).ok();
        let (q, m) = b
            .qm1()
            .resolve_reply_to(&QueueName::new(queue).unwrap(), queue_manager.as_ref());
        assert_eq!(format!("{q}@{m}"), expected, "{queue}");
    }
}
