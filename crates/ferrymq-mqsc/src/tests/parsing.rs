//! What scripts write, what is refused, and that nothing makes the parser stumble.

use ferrymq_objects::{Action, AttributeValue, DeleteKind, ObjectKind};

use super::{Bench, commands};
use crate::{
    DisplayNoun, FilterValue, Operator, Pattern, Requested, Statement, StopMode, StopStatus, parse,
};

/// The statement in its full spelling, `?what` for what we do not have, `!message` for an error.
fn read(command: &str) -> String {
    match parse(command) {
        Ok(Statement::NotSupported { what }) => format!("?{what}"),
        Ok(statement) => statement.to_string(),
        Err(error) => format!("!{error}"),
    }
}

#[test]
fn forms_that_real_scripts_use_are_understood() {
    for (command, expected) in [
        ("DEFINE QLOCAL(A)", "DEFINE QLOCAL('A')"),
        ("def ql(orders)", "DEFINE QLOCAL('ORDERS')"),
        (
            "Define Qlocal('orders') replace",
            "DEFINE QLOCAL('orders') REPLACE",
        ),
        (
            "define qlocal(A) replace descr('x')",
            "DEFINE QLOCAL('A') DESCR('x') REPLACE",
        ),
        (
            "DEFINE QLOCAL (A.B) USAGE(xmitq)",
            "DEFINE QLOCAL('A.B') USAGE(XMITQ)",
        ),
        (
            "DEFINE QLOCAL ( 'A' ) BOTHRESH ( 3 ),MAXDEPTH(10)",
            "DEFINE QLOCAL('A') BOTHRESH(3) MAXDEPTH(10)",
        ),
        (
            "ALTER QLOCAL ('Account' )      BOTHRESH ( 1)",
            "ALTER QLOCAL('Account') BOTHRESH(1)",
        ),
        (
            "DEF QL(A)\tBOQNAME('')\t\tDESCR(' ')",
            "DEFINE QLOCAL('A') BOQNAME(' ') DESCR(' ')",
        ),
        (
            "DEF QL(PAY.BO) LIKE('TEMPLATE.Q') DESCR('x') BOQNAME(PAY.BO) REPLACE",
            "DEFINE QLOCAL('PAY.BO') LIKE('TEMPLATE.Q') BOQNAME('PAY.BO') DESCR('x') REPLACE",
        ),
        (
            "DEF QL(A) DESCR('it''s')",
            "DEFINE QLOCAL('A') DESCR('it''s')",
        ),
        (
            "DEF QL(A) TRIGGER TRIGTYPE(FIRST) NOSHARE",
            "DEFINE QLOCAL('A') NOSHARE TRIGGER TRIGTYPE(FIRST)",
        ),
        (
            "DEF QL(A) NOHARDENBO NOTRIGGER",
            "DEFINE QLOCAL('A') NOHARDENBO NOTRIGGER",
        ),
        (
            "DEFINE QALIAS('PAY.///.LATE') TARGET('PAY.OUT')",
            "DEFINE QALIAS('PAY.///.LATE') TARGET('PAY.OUT')",
        ),
        (
            "DEF QA(A) TARGQ(b) TARGTYPE(QUEUE)",
            "DEFINE QALIAS('A') TARGET('B') TARGTYPE(QUEUE)",
        ),
        (
            "DEF QR(A) RNAME(' ') RQMNAME(QM2) XMITQ(TO.NORTH)",
            "DEFINE QREMOTE('A') RNAME(' ') RQMNAME('QM2') XMITQ('TO.NORTH')",
        ),
        (
            "DEF CHL(QM1.TO.QM2) trptype(tcp) chltype(sdr) CONNAME('north.example.net(1414)') XMITQ(QM2)",
            "DEFINE CHANNEL('QM1.TO.QM2') CHLTYPE(SDR) CONNAME('north.example.net(1414)') TRPTYPE(TCP) XMITQ('QM2')",
        ),
        (
            "DEFINE CHANNEL(A) CHLTYPE(RCVR) TRPTYPE (TCP) SSLPEER('CN=north, O=Ferry,C=NO')",
            "DEFINE CHANNEL('A') CHLTYPE(RCVR) SSLPEER('CN=north, O=Ferry,C=NO') TRPTYPE(TCP)",
        ),
        (
            "alter chl(APP) chltype(svrconn) MCAUSER ('ferry') DESCR ('x') sslciph(any_tls12_or_higher)",
            "ALTER CHANNEL('APP') CHLTYPE(SVRCONN) DESCR('x') MCAUSER('ferry') SSLCIPH('ANY_TLS12_OR_HIGHER')",
        ),
        ("alter qmgr force deadq(d)", "ALTER QMGR DEADQ('D') FORCE"),
        (
            "DELETE QLOCAL(A) PURGE IGNSTATE(YES)",
            "DELETE QLOCAL('A') PURGE IGNSTATE(YES)",
        ),
        ("DELETE QL(A) NOPURGE AUTHREC(NO)", "DELETE QLOCAL('A')"),
        ("DEL CHL(A)", "DELETE CHANNEL('A')"),
        ("CLEAR QLOCAL(A)", "CLEAR QLOCAL('A')"),
        ("sta chl(A)", "START CHANNEL('A')"),
        (
            "STOP CHANNEL(A)",
            "STOP CHANNEL('A') MODE(QUIESCE) STATUS(STOPPED)",
        ),
        (
            "STOP CHANNEL(A) MODE(FORCE) STATUS(INACTIVE)",
            "STOP CHANNEL('A') MODE(FORCE) STATUS(INACTIVE)",
        ),
        (
            "STOP CHANNEL(A) CONNAME('h(1)') QMNAME(QM2)",
            "STOP CHANNEL('A') MODE(QUIESCE) STATUS(INACTIVE) CONNAME('h(1)') QMNAME('QM2')",
        ),
        (
            "DEF QM(A) DEFTYPE(permdyn)",
            "DEFINE QMODEL('A') DEFTYPE(PERMDYN)",
        ),
        (
            "alter qm(A) DEFSOPT(EXCL)",
            "ALTER QMODEL('A') DEFSOPT(EXCL)",
        ),
        ("DELETE QMODEL(A)", "DELETE QMODEL('A')"),
        ("dis qm(*) deftype", "DISPLAY QMODEL('*') DEFTYPE"),
        ("PING QMGR", "PING QMGR"),
        ("PING CHL(a)", "PING CHANNEL('A') DATALEN(64)"),
        (
            "PING CHANNEL(A) DATALEN(32768)",
            "PING CHANNEL('A') DATALEN(32768)",
        ),
        ("RESET CHANNEL(A)", "RESET CHANNEL('A') SEQNUM(1)"),
        (
            "RESET CHL(A) SEQNUM(999999999)",
            "RESET CHANNEL('A') SEQNUM(999999999)",
        ),
        (
            "RESOLVE CHL(A) ACTION(backout)",
            "RESOLVE CHANNEL('A') ACTION(BACKOUT)",
        ),
        (
            "RESOLVE CHANNEL(A) ACTION(COMMIT)",
            "RESOLVE CHANNEL('A') ACTION(COMMIT)",
        ),
        ("end", "END"),
        ("QUIT", "END"),
        ("Exit", "END"),
        // DISPLAY.
        (
            "DISPLAY QLOCAL(*) WHERE(CURDEPTH GT 0)",
            "DISPLAY QLOCAL('*') WHERE(CURDEPTH GT 0)",
        ),
        (
            "dis ql(*) where(curdepth ge 1)",
            "DISPLAY QLOCAL('*') WHERE(CURDEPTH GE 1)",
        ),
        (
            "dis qs(*) CURDEPTH where(CURDEPTH gt 1000)",
            "DISPLAY QSTATUS('*') WHERE(CURDEPTH GT 1000) CURDEPTH",
        ),
        (
            "dis chs(*) where(status ne running)",
            "DISPLAY CHSTATUS('*') CURRENT WHERE(STATUS NE 'RUNNING')",
        ),
        (
            "dis qs(A.B) ipprocs lgetdate lgettime where (curdepth ne 0)",
            "DISPLAY QSTATUS('A.B') WHERE(CURDEPTH NE 0) IPPROCS LGETDATE LGETTIME",
        ),
        (
            "DISPLAY CHSTATUS(SHIP.CLNT) CONNAME(192.0.2.7) LSTMSGDA LSTMSGTI",
            "DISPLAY CHSTATUS('SHIP.CLNT') CURRENT CONNAME('192.0.2.7') LSTMSGDA LSTMSGTI",
        ),
        (
            "DISPLAY CHS(A) SAVED ALL",
            "DISPLAY CHSTATUS('A') SAVED ALL",
        ),
        ("dis ql(PAY.*) curdepth", "DISPLAY QLOCAL('PAY.*') CURDEPTH"),
        ("display channel(*)", "DISPLAY CHANNEL('*')"),
        (
            "dis chl(*) chltype(sdr)",
            "DISPLAY CHANNEL('*') CHLTYPE(SDR)",
        ),
        ("dis qmgr deadq", "DISPLAY QMGR DEADQ"),
        ("dis ql(A) all", "DISPLAY QLOCAL('A') ALL"),
        ("DIS Q(*) TYPE(QLOCAL)", "DISPLAY QLOCAL('*')"),
        ("DIS Q('ab*') TYPE DESCR", "DISPLAY QUEUE('ab*') TYPE DESCR"),
        (
            "DIS Q(*) WHERE(DESCR LK 'Orders*')",
            "DISPLAY QUEUE('*') WHERE(DESCR LK 'Orders*')",
        ),
    ] {
        assert_eq!(read(command), expected, "{command}");
    }
}

#[test]
fn what_ibm_mq_has_and_we_do_not_is_read_to_its_end() {
    for (command, expected) in [
        (
            "SET AUTHREC PROFILE(**) OBJTYPE(QUEUE) PRINCIPAL('app') AUTHADD(GET, INQ,PUT)",
            "?SET AUTHREC",
        ),
        ("REFRESH CLUSTER(*)", "?REFRESH CLUSTER"),
        (
            "DEFINE LISTENER(L) TRPTYPE(TCP) PORT(1414) CONTROL(QMGR)",
            "?DEFINE LISTENER",
        ),
        (
            "ALTER NAMELIST(CITIES) NAMES(PARIS ,OSLO,ROME)",
            "?ALTER NAMELIST",
        ),
        (
            "DIS CONN(*) WHERE (CHANNEL EQ SHIP.CLNT) ALL",
            "?DISPLAY CONN",
        ),
        ("MOVE QLOCAL(A) TOQLOCAL(B)", "?MOVE QLOCAL"),
        (
            "DEF CHL(A) CHLTYPE(CLUSRCVR) CLUSTER(C)",
            "?CHLTYPE(CLUSRCVR)",
        ),
        (
            "DEF QL(A) CLUSTER(C) MAXDEPTH(1)",
            "?attribute CLUSTER of QLOCAL",
        ),
        (
            "ALTER QMGR CHLAUTH(DISABLED) CCSID(819)",
            "?attribute CCSID of QMGR",
        ),
        ("DIS QS(A) TYPE(HANDLE)", "?DISPLAY QSTATUS TYPE(HANDLE)"),
        (
            "DIS CHS(A) NETTIME",
            "?attribute NETTIME of DISPLAY CHSTATUS",
        ),
        ("DIS CHL(*) CHLTYPE(CLUSSDR)", "?CHLTYPE(CLUSSDR)"),
    ] {
        assert_eq!(read(command), expected, "{command}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_a_suggestion() {
    let mut different = Vec::new();
    for (command, segment, expected) in [
        (
            "REFRESH SECURTY TYPE(CONNAUTH)",
            "REFRESH SECURTY",
            "REFRESH does not go with this near 'SECURTY'; did you mean SECURITY?",
        ),
        (
            "DEFNE QL(A)",
            "DEFNE",
            "not a command near 'DEFNE'; did you mean DEFINE?",
        ),
        (
            "ALTER CHL CHLTYPE(NORTH.SOUTH) DISCINT(0)",
            "ALTER CHL",
            "CHL needs a value in brackets near 'CHL'",
        ),
        (
            "DEFINE QLOCAL('q') + DESCR('x')",
            "DEFINE QLOCAL('q') +",
            "not a keyword near '+'",
        ),
        (
            "DEF QL(A) MAXDEPHT(1)",
            "DEF QL(A) MAXDEPHT(1)",
            "attribute MAXDEPHT is not known near 'MAXDEPHT'; did you mean MAXDEPTH?",
        ),
        (
            "DEFINE QREMOTE (A) RNAME (B) RQMNAME (QM') XMITQ (X)",
            "DEFINE QREMOTE (A) RNAME (B) RQMNAME (QM') XMITQ (X)",
            "the closing apostrophe is missing near ') XMITQ (X)'",
        ),
        ("# text", "#", "not a keyword near '#'"),
        ("cat << 'EOF' > x.mqsc", "cat <<", "not a keyword near '<<'"),
        ("EOF", "EOF", "not a command near 'EOF'"),
        ("runmqsc QM", "runmqsc", "not a command near 'RUNMQSC'"),
        ("$ strmqm QM", "$", "not a keyword near '$'"),
        (
            "ALTER QMGR DESCR(A)  * note",
            "ALTER QMGR DESCR(A)  *",
            "not a keyword near '*'",
        ),
        ("", "", "there is no command"),
        ("DEFINE", "DEFINE", "DEFINE needs to say what of"),
        (
            "DEF QL(A) LIKE(B) LIKE(C)",
            "DEF QL(A) LIKE(B) LIKE(C)",
            "given more than once near 'LIKE'",
        ),
        (
            "DEF QL(A) REPLACE NOREPLACE",
            "DEF QL(A) REPLACE NOREPLACE",
            "given more than once near 'NOREPLACE'",
        ),
        (
            "DEF QL(A) SHARE NOSHARE",
            "DEF QL(A) SHARE NOSHARE",
            "attribute SHARE is given more than once near 'NOSHARE'",
        ),
        (
            "DEF QL(A) PUT(ENABLED) PUT(DISABLED)",
            "DEF QL(A) PUT(ENABLED) PUT(DISABLED)",
            "attribute PUT is given more than once near 'PUT'",
        ),
        ("DEF QL()", "DEF QL()", "the brackets are empty near 'QL'"),
        (
            "DEF QL('A B')",
            "DEF QL('A B'",
            "character ' ' at position 2 is not allowed in a name (A-Z a-z 0-9 . / _ %) near 'A B'",
        ),
        (
            "DEF QL(A B)",
            "DEF QL(A B",
            "QL takes one value; blanks and commas need apostrophes near 'B'",
        ),
        ("DEF QL(A", "DEF QL(A", "the closing bracket is missing"),
        (
            "DEF QL(A))",
            "DEF QL(A))",
            "a closing bracket without an opening one near ')'",
        ),
        (
            "DEF QL((A))",
            "DEF QL((",
            "a value with brackets needs apostrophes near '('",
        ),
        (
            "DEF QL(A)(B)",
            "DEF QL(A)(",
            "a bracket without a keyword before it near '('",
        ),
        (
            "DEF QL(A) 'x'",
            "DEF QL(A) 'x'",
            "a text in apostrophes belongs in brackets after a keyword near 'x'",
        ),
        (
            "DEFINE LISTENER(L) PORT($P)",
            "DEFINE LISTENER(L) PORT($P",
            "a value with the character '$' needs apostrophes near '$P'",
        ),
        (
            "DEF QL(A) MAXDEPTH",
            "DEF QL(A) MAXDEPTH",
            "MAXDEPTH needs a value in brackets near 'MAXDEPTH'",
        ),
        (
            "DEF QL(A) TRIGGER(YES)",
            "DEF QL(A) TRIGGER(YES)",
            "TRIGGER takes no value near 'TRIGGER'",
        ),
        (
            "DEF QL(A) MAXDEPTH(1000000000) PUT(ENABLED)",
            "DEF QL(A) MAXDEPTH(1000000000",
            "MAXDEPTH does not take the value '1000000000': allowed is a number from 0 to 999999999 near 'MAXDEPTH'",
        ),
        (
            "DEF QL(A) XMITQ(B)",
            "DEF QL(A) XMITQ(B)",
            "attribute XMITQ does not apply to this type of object near 'XMITQ'",
        ),
        (
            "DEF QL(A) CRDATE(B)",
            "DEF QL(A) CRDATE(B)",
            "CRDATE cannot be set near 'CRDATE'",
        ),
        ("DEF CHL(A) DESCR(B)", "DEF CHL(A)", "CHLTYPE is required"),
        (
            "DEF CHL(A) CHLTYPE(SDX)",
            "DEF CHL(A) CHLTYPE(SDX",
            "not a channel type: allowed is SDR, RCVR, SVRCONN near 'SDX'; did you mean SDR?",
        ),
        (
            "STOP CHL(A) MODE(HARD)",
            "STOP CHL(A) MODE(HARD",
            "allowed is QUIESCE, FORCE, TERMINATE near 'HARD'",
        ),
        (
            "STOP CHL(A) CONNAME(H) STATUS(STOPPED)",
            "STOP CHL(A)",
            "STATUS(STOPPED) does not go with CONNAME or QMNAME",
        ),
        (
            "DELETE QR(A) PURGE",
            "DELETE QR(A) PURGE",
            "not a word of DELETE near 'PURGE'",
        ),
        (
            "PING QMGR NOW",
            "PING QMGR NOW",
            "nothing may follow near 'NOW'",
        ),
        (
            "RESET CHANNEL(A) SEQNUM(0)",
            "RESET CHANNEL(A) SEQNUM(0",
            "allowed is 1 to 999999999 near '0'",
        ),
        (
            "PING CHANNEL(A) DATALEN(15)",
            "PING CHANNEL(A) DATALEN(15",
            "allowed is 16 to 32768 near '15'",
        ),
        (
            "RESOLVE CHANNEL(A) ACTION(KEEP)",
            "RESOLVE CHANNEL(A) ACTION(KEEP",
            "allowed is COMMIT, BACKOUT near 'KEEP'",
        ),
        (
            "DIS QMGR(QM1)",
            "DIS QMGR(QM1)",
            "QMGR takes no value near 'QMGR'",
        ),
        (
            "DIS QMGR WHERE(DESCR EQ A)",
            "DIS QMGR WHERE(DESCR EQ A)",
            "QMGR takes no WHERE near 'WHERE'",
        ),
        (
            "DIS Q(A?C)",
            "DIS Q(A?C",
            "a value with the character '?' needs apostrophes near 'A?C'",
        ),
        (
            "DIS Q('A*C')",
            "DIS Q('A*C'",
            "character '*' at position 2 is not allowed in a name (A-Z a-z 0-9 . / _ %) near 'A*C'",
        ),
        (
            "DIS Q(*) WHERE(CURDEPTH GT A)",
            "DIS Q(*) WHERE(CURDEPTH GT A",
            "CURDEPTH is a number near 'A'",
        ),
        (
            "DIS Q(*) WHERE(CURDEPTH LK 1)",
            "DIS Q(*) WHERE(CURDEPTH LK",
            "CURDEPTH cannot be compared so near 'LK'",
        ),
        (
            "DIS Q(*) WHERE(SHARE EQ YES)",
            "DIS Q(*) WHERE(SHARE EQ",
            "SHARE cannot be compared so near 'EQ'",
        ),
        (
            "DIS Q(*) WHERE(DESCR CT A)",
            "DIS Q(*) WHERE(DESCR CT",
            "DESCR cannot be compared so near 'CT'",
        ),
        (
            "DIS Q(*) WHERE(CURDEPTH)",
            "DIS Q(*) WHERE(CURDEPTH)",
            "WHERE takes a keyword, an operator and a value near 'WHERE'",
        ),
        (
            "DIS QL(*) TYPE(QALIAS)",
            "DIS QL(*) TYPE(QALIAS",
            "TYPE does not go with QLOCAL near 'QALIAS'",
        ),
        (
            "DIS QL(*) CURDEPHT",
            "DIS QL(*) CURDEPHT",
            "attribute CURDEPHT is not known near 'CURDEPHT'; did you mean CURDEPTH?",
        ),
    ] {
        let error = parse(command).expect_err(command);
        if error.to_string() != expected || error.segment(command) != segment {
            different.push(format!(
                "{command:?}: {error} at {:?}",
                error.segment(command)
            ));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn an_unbounded_or_hostile_command_is_refused_and_never_more() {
    let many = 100_000;
    for command in [
        "(".repeat(many),
        ")".repeat(many),
        format!("DEF QL({}", "(".repeat(many)),
        format!("DEF QL(A{}", ")".repeat(many)),
        "'".repeat(many),
        "'".repeat(many + 1),
        format!("DEF QL({})", "A".repeat(many)),
        format!("DEF QL({})", "'A' ".repeat(many)),
        format!("DEF QL(A) {}", "DESCR ".repeat(many)),
        "A".repeat(many),
        format!("DEF {}", "ö".repeat(many)),
        format!("DEF QL(A) DESCR('{}')", "x'' ".repeat(many)),
        "DEF QL(A) DESCR('\u{1b}[31m')".to_owned(),
        "DEF QL(A)\0".to_owned(),
        "DEF QL(A)\nDEL QL(B)".to_owned(),
        "DEF QL(A) DESCR('\u{85}')".to_owned(),
        "DEF QL('A'')".to_owned(),
        "DEF QL('../A-')".to_owned(),
    ] {
        let error = parse(&command).expect_err("refused");
        assert!(error.word.chars().count() <= 48);
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
        assert!(command.is_char_boundary(error.position));
    }
    // Quotes cannot end a value and begin a command.
    assert_eq!(
        read("DEF QL(A) DESCR('x'') REPLACE DESCR(''y')"),
        "DEFINE QLOCAL('A') DESCR('x'') REPLACE DESCR(''y')"
    );
}

#[test]
fn a_statement_says_what_it_changes() {
    let action = |command: &str| parse(command).unwrap().action();
    assert_eq!(
        action("DEF QL(A) REPLACE LIKE(B) MAXDEPTH(7)"),
        Some(Action::Define {
            kind: ObjectKind::LocalQueue,
            name: "A".into(),
            attributes: [("MAXDEPTH", AttributeValue::Number(7))]
                .into_iter()
                .collect(),
            like: Some("B".into()),
            replace: true,
        })
    );
    assert_eq!(
        action("DEL CHL(A)"),
        Some(Action::Delete {
            kind: DeleteKind::Channel,
            name: "A".into()
        })
    );
    assert!(matches!(
        action("ALT QMGR DEADQ(A)"),
        Some(Action::AlterQueueManager { .. })
    ));
    assert!(matches!(
        action("ALT QR(A) XMITQ(' ')"),
        Some(Action::Alter { .. })
    ));
    for none in [
        "DIS QMGR",
        "END",
        "STOP CHL(A)",
        "STA CHL(A)",
        "CLEAR QL(A)",
        "PING QMGR",
        "SET LOG",
    ] {
        assert_eq!(action(none), None, "{none}");
    }
}

#[test]
fn parts_of_a_display_are_typed() {
    let Ok(Statement::Display(d)) =
        parse("DIS CHL('a*') TYPE(SDR) WHERE(HBINT LE 5) XMITQ CONNAME")
    else {
        panic!("not a DISPLAY");
    };
    assert_eq!(
        d.noun,
        DisplayNoun::Channel {
            kind: Some(ObjectKind::SenderChannel)
        }
    );
    assert_eq!(d.name, Pattern::Prefix("a".into()));
    let filter = d.filter.unwrap();
    assert_eq!(filter.operator, Operator::LessOrEqual);
    assert_eq!(filter.value, FilterValue::Number(5));
    assert_eq!(
        d.requested,
        Requested::These(vec!["XMITQ".into(), "CONNAME".into()])
    );
    let Ok(Statement::StopChannel { mode, status, .. }) = parse("STOP CHL(A) MODE(TERMINATE)")
    else {
        panic!("not a STOP CHANNEL");
    };
    assert_eq!((mode, status), (StopMode::Terminate, StopStatus::Stopped));
}

#[test]
fn a_dump_is_read_back_with_its_forward_references() {
    let script = "\
****************************
* Script generated on 2024-01-31
****************************
ALTER QMGR +
*  ALTDATE(2024-01-31) +
   DEADQ('NOT.YET.DLQ') +
   FORCE
DEFINE QALIAS('A.FIRST') +
   DESCR(' ') +
   TARGET('LATER') +
*  ALTDATE(2024-01-31) +
   REPLACE
DEFINE QLOCAL('LATER') +
   MAXDEPTH(10) +
   NOTRIGGER +
   SHARE +
   REPLACE
DEFINE CHANNEL('QM1.TO.QM2') +
   CHLTYPE(SDR) +
   CONNAME('a(1414),b(1415)') +
   XMITQ('NOT.YET') +
   REPLACE
";
    let mut bench = Bench::new();
    let lines: Vec<String> = commands(script)
        .iter()
        .flat_map(|c| bench.must(c).lines)
        .collect();
    assert_eq!(
        lines,
        [
            "AMQ8005I: FerryMQ queue manager changed.",
            "AMQ8006I: FerryMQ queue created.",
            "AMQ8006I: FerryMQ queue created.",
            "AMQ8014I: FerryMQ channel created.",
        ]
    );
}
