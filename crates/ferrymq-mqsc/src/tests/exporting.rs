//! Definitions as the commands that make them.

use super::Bench;
use crate::{ScriptReader, export};

/// Runs a script; every command has to succeed.
fn apply(bench: &mut Bench, lines: &[String]) {
    let mut reader = ScriptReader::new();
    for line in lines {
        for command in reader.feed(line).commands {
            let command = command.expect("a script of an export");
            let answer = bench.run(&command);
            assert!(answer.is_done(), "{command}: {:?}", answer.lines);
        }
    }
    assert_eq!(reader.finish(), Ok(()));
}

#[test]
fn an_export_of_every_kind_of_object_exports_the_same_where_it_is_applied() {
    let mut from = Bench::new();
    let script = [
        "ALTER QMGR DESCR('it''s ours') DEADQ(DEAD) MAXUMSGS(77) CHLAUTH(DISABLED)",
        "DEFINE QLOCAL('lower.case/Q') DESCR(' (brackets), commas + plus ') TRIGGER PROCESS(P) INITQ(I) BOTHRESH(3)",
        "DEFINE QLOCAL(X) USAGE(XMITQ)",
        "DEFINE QREMOTE(R) RNAME(THERE) RQMNAME(QM2) XMITQ(X) DEFPSIST(YES)",
        "DEFINE QALIAS(A) TARGET('lower.case/Q')",
        "DEFINE QMODEL(M) DEFTYPE(PERMDYN) MAXDEPTH(7)",
        "DEFINE PROCESS(P) APPLICID('run me') USERDATA('-m +QMNAME+ -q I')",
        "DEFINE CHANNEL(QM1.TO.QM2) CHLTYPE(SDR) CONNAME('h1(1414),h2(1415)') XMITQ(X) SSLPEER('CN=a,O=b')",
        "DEFINE CHANNEL(QM2.TO.QM1) CHLTYPE(RCVR) MRRTY(3)",
        "DEFINE CHANNEL(APP) CHLTYPE(SVRCONN) MCAUSER('app')",
        // A default object that is another than at first does not change what comes behind it.
        "ALTER QLOCAL(SYSTEM.DEFAULT.LOCAL.QUEUE) MAXDEPTH(9) DESCR('new')",
        "SET CHLAUTH('*') TYPE(BLOCKUSER) USERLIST('nobody','*MQADMIN')",
        "SET CHLAUTH('APP') TYPE(SSLPEERMAP) SSLPEER('CN=x') MCAUSER('y') DESCR('d')",
        "SET CHLAUTH('APP') TYPE(ADDRESSMAP) ADDRESS('192.0.2.*') USERSRC(NOACCESS) WARN(YES)",
    ];
    apply(&mut from, &script.map(str::to_owned));
    let exported = export(from.qm1());
    let mut to = Bench::new();
    apply(&mut to, &exported);
    assert_eq!(export(to.qm1()), exported);
    // Also where much is there already.
    apply(&mut from, &exported);
    assert_eq!(export(from.qm1()), exported);
    // As a person would read it.
    let at = exported
        .iter()
        .position(|l| l == "DEFINE QALIAS('A') +")
        .expect("the alias");
    assert_eq!(
        exported[at..at + 10],
        [
            "DEFINE QALIAS('A') +",
            "   DEFPRTY(0) +",
            "   DEFPSIST(NO) +",
            "   DESCR(' ') +",
            "   GET(ENABLED) +",
            "   PROPCTL(COMPAT) +",
            "   PUT(ENABLED) +",
            "   TARGET('lower.case/Q') +",
            "   TARGTYPE(QUEUE) +",
            "   REPLACE",
        ]
    );
    assert_eq!(exported[0], "ALTER QMGR +");
}
