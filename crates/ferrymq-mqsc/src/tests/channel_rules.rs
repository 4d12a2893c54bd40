//! SET CHLAUTH, DISPLAY CHLAUTH and REFRESH SECURITY.

use super::Bench;
use crate::{ChannelCheck, Statement, parse};

/// The lines that a script of commands answers with, those of a DISPLAY among them.
fn answers(bench: &mut Bench, commands: &[&str]) -> Vec<String> {
    commands.iter().flat_map(|c| bench.run(c).lines).collect()
}

const SET: &str = "AMQ8877I: FerryMQ channel authentication record set.";

#[test]
fn the_four_records_that_most_scripts_set() {
    let mut bench = Bench::new();
    let set = answers(
        &mut bench,
        &[
            "SET CHLAUTH('*') TYPE(BLOCKUSER) USERLIST('nobody')",
            "SET CHLAUTH('*') TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(NOACCESS) DESCR('back stop')",
            "SET CHLAUTH(SHIP.CLNT) type(addressmap) ADDRESS('*') usersrc(channel) CHCKCLNT(ASQMGR) ACTION(REPLACE)",
            "SET CHLAUTH('NORTH.SOUTH') TYPE(SSLPEERMAP) SSLPEER('CN=north,O=Ferry') USERSRC(MAP) MCAUSER('ferry') ACTION(REPLACE)",
        ],
    );
    assert_eq!(set, [SET; 4]);
    let shown = answers(&mut bench, &["DISPLAY CHLAUTH('NORTH.SOUTH')"]);
    assert_eq!(
        shown,
        [
            "AMQ8878I: Display channel authentication record details.",
            "   CHLAUTH(NORTH.SOUTH)                    TYPE(SSLPEERMAP)",
            "   DESCR( )                                SSLPEER(CN=north,O=Ferry)",
            "   SSLCERTI( )                             ADDRESS( )",
            "   USERSRC(MAP)                            MCAUSER(ferry)",
            "   WARN(NO)                                ALTDATE(2000-02-28)",
            "   ALTTIME(23.59.59)",
        ]
    );
    let shown = answers(
        &mut bench,
        &["DIS CHLAUTH(*) TYPE(BLOCKUSER) WHERE(USERLIST CT nobody)"],
    );
    assert!(
        shown
            .iter()
            .any(|l| l == "AMQ8884E: FerryMQ channel authentication record not found."),
        "{shown:?}"
    );
    let shown = answers(
        &mut bench,
        &["DIS CHLAUTH(*) TYPE(BLOCKUSER) WHERE(USERLIST CT 'nobody')"],
    );
    assert_eq!(
        shown,
        [
            "AMQ8878I: Display channel authentication record details.",
            "   CHLAUTH(*)                              TYPE(BLOCKUSER)",
            "   USERLIST(nobody)",
        ]
    );
}

#[test]
fn lists_grow_and_shrink_and_records_that_map_are_replaced_or_not() {
    let mut bench = Bench::new();
    for (command, expected) in [
        ("SET CHLAUTH('A.B') TYPE(BLOCKUSER) USERLIST('x','y')", SET),
        (
            "SET CHLAUTH('A.B') TYPE(BLOCKUSER) USERLIST('y','z') ACTION(ADD)",
            SET,
        ),
        (
            "SET CHLAUTH('A.B') TYPE(BLOCKUSER) USERLIST('x') ACTION(REMOVE)",
            SET,
        ),
        (
            "SET CHLAUTH('A.B') TYPE(BLOCKUSER) USERLIST('x') ACTION(REMOVE)",
            "AMQ8884E: FerryMQ channel authentication record of A.B not found.",
        ),
        (
            "SET CHLAUTH('A.B') TYPE(ADDRESSMAP) ADDRESS('192.0.2.*') MCAUSER('u')",
            SET,
        ),
        (
            "SET CHLAUTH('A.B') TYPE(ADDRESSMAP) ADDRESS('192.0.2.*') MCAUSER('v')",
            "AMQ8871E: FerryMQ channel authentication record of A.B already exists.",
        ),
        (
            "SET CHLAUTH('A.B') TYPE(ADDRESSMAP) ADDRESS('192.0.2.*') MCAUSER('v') ACTION(REPLACE)",
            SET,
        ),
        (
            "SET CHLAUTH('A.B') TYPE(ADDRESSMAP) ADDRESS('192.0.3.*') MCAUSER('v')",
            SET,
        ),
        (
            "SET CHLAUTH('A.B') TYPE(ADDRESSMAP) ADDRESS('192.0.3.*') ACTION(REMOVE)",
            SET,
        ),
        ("SET CHLAUTH('A.B') TYPE(ADDRESSMAP) ACTION(REMOVEALL)", SET),
        (
            "SET CHLAUTH('A.B') TYPE(ADDRESSMAP) ACTION(REMOVEALL)",
            "AMQ8884E: FerryMQ channel authentication record of A.B not found.",
        ),
        (
            "SET CHLAUTH('A.B') TYPE(USERMAP) CLNTUSER('ann')",
            "AMQ8405E: Attribute MCAUSER is required.",
        ),
        (
            "SET CHLAUTH('A.B') TYPE(QMGRMAP) MCAUSER('ann')",
            "AMQ8405E: Attribute QMNAME is required.",
        ),
    ] {
        assert_eq!(answers(&mut bench, &[command]), [expected], "{command}");
    }
    let rules = &bench.qm1().channel_rules["A.B"];
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].users, ["y", "z"]);
    answers(
        &mut bench,
        &["SET CHLAUTH('A.B') TYPE(BLOCKUSER) USERLIST('y','z') ACTION(REMOVE)"],
    );
    assert!(!bench.qm1().channel_rules.contains_key("A.B"));
}

#[test]
fn a_new_queue_manager_keeps_everybody_from_the_system_channels() {
    let mut bench = Bench::new();
    let shown = answers(&mut bench, &["DISPLAY CHLAUTH('SYSTEM.*') ADDRESS USERSRC"]);
    assert_eq!(
        shown,
        [
            "AMQ8878I: Display channel authentication record details.",
            "   CHLAUTH(SYSTEM.*)                       TYPE(ADDRESSMAP)",
            "   ADDRESS(*)                              USERSRC(NOACCESS)",
            "AMQ8878I: Display channel authentication record details.",
            "   CHLAUTH(SYSTEM.ADMIN.SVRCONN)           TYPE(ADDRESSMAP)",
            "   ADDRESS(*)                              USERSRC(CHANNEL)",
        ]
    );
    let exact = answers(&mut bench, &["DISPLAY CHLAUTH('SYSTEM.*') MATCH(EXACT)"]);
    assert_eq!(
        exact.iter().filter(|l| l.starts_with("AMQ8878I")).count(),
        1
    );
    let altered = answers(
        &mut bench,
        &[
            "ALTER QMGR CHLAUTH(DISABLED) CONNAUTH(' ')",
            "DISPLAY QMGR CHLAUTH",
        ],
    );
    assert!(
        altered.iter().any(|l| l.contains("CHLAUTH(DISABLED)")),
        "{altered:?}"
    );
}

#[test]
fn what_is_wrong_is_named() {
    for (command, expected) in [
        ("SET CHLAUTH('A') USERLIST('x')", "TYPE is required"),
        (
            "SET CHLAUTH('A') TYPE(BLOCKUSR) USERLIST('x')",
            "did you mean BLOCKUSER?",
        ),
        (
            "SET CHLAUTH('A') TYPE(BLOCKUSER) USRLIST('x')",
            "did you mean USERLIST?",
        ),
        (
            "SET CHLAUTH('A') TYPE(BLOCKUSER) DESCRIPTION('x')",
            "attribute DESCRIPTION is not known",
        ),
        (
            "SET CHLAUTH('A') TYPE(BLOCKUSER) ADDRESS('*')",
            "attribute ADDRESS does not apply",
        ),
        (
            "SET CHLAUTH('A') TYPE(BLOCKADDR) ADDRLIST('*')",
            "TYPE(BLOCKADDR) is for all channels",
        ),
        (
            "SET CHLAUTH('A B') TYPE(BLOCKUSER) USERLIST('x')",
            "not a channel name",
        ),
        (
            "SET CHLAUTH(ABCDEFGHIJKLMNOPQRSTU) TYPE(BLOCKUSER) USERLIST('x')",
            "not a channel name",
        ),
        (
            "SET CHLAUTH('A') TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(NONE)",
            "USERSRC does not take",
        ),
        (
            "SET CHLAUTH('A') TYPE(ADDRESSMAP) ACTION(DELETE)",
            "allowed is ADD, REPLACE, REMOVE, REMOVEALL",
        ),
        (
            "DISPLAY CHLAUTH('A') MATCH(RUNCHECK) CLNTUSER('a')",
            "MATCH(RUNCHECK) needs ADDRESS",
        ),
        (
            "DISPLAY CHLAUTH('A') MATCH(RUNCHECK) ADDRESS('::1')",
            "needs one of CLNTUSER and QMNAME",
        ),
        ("REFRESH SECURITY TYPE(CONAUTH)", "did you mean CONNAUTH?"),
        ("REFRESH SECURTY TYPE(CONNAUTH)", "did you mean SECURITY?"),
    ] {
        let error = parse(command).unwrap_err().to_string();
        assert!(error.contains(expected), "{command}: {error}");
    }
    let asks = "SET CHLAUTH('A') TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(CHANNEL) CHCKCLNT(REQUIRED)";
    let what = "attribute CHCKCLNT of CHLAUTH".to_owned();
    assert_eq!(parse(asks), Ok(Statement::NotSupported { what }));
}

#[test]
fn refresh_and_run_check_are_read() {
    for command in [
        "REFRESH SECURITY",
        "REFRESH SECURITY(*)",
        "ref security TYPE(CONNAUTH)",
        "REFRESH SECURITY(*) TYPE(SSL)",
        "REFRESH SECURITY TYPE(AUTHSERV)",
    ] {
        assert_eq!(parse(command), Ok(Statement::RefreshSecurity), "{command}");
    }
    let command =
        "DISPLAY CHLAUTH('SHIP.CLNT') MATCH(RUNCHECK) CLNTUSER('anna') ADDRESS('192.0.2.7')";
    let expected = Statement::CheckChannel {
        channel: ferrymq_types::ChannelName::new("SHIP.CLNT").unwrap(),
        check: ChannelCheck {
            address: "192.0.2.7".into(),
            client_user: "anna".into(),
            ..ChannelCheck::default()
        },
    };
    assert_eq!(parse(command).as_ref(), Ok(&expected));
    assert_eq!(parse(&expected.to_string()), Ok(expected));
}
