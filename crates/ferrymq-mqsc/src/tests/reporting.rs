//! The shape of a report, and every line of a message.

use ferrymq_objects::{Applied, ObjectClass, ObjectKind};
use ferrymq_types::{ObjectId, QueueManagerId, ReasonCode};

use super::Bench;
use crate::{Answer, Report, ScriptError, ScriptReader, Statement, parse};

/// Runs a script as a command line would.
fn run(script: &str) -> (String, u8) {
    let mut bench = Bench::new();
    let mut report = Report::new("QM1");
    let mut reader = ScriptReader::new();
    'script: for line in script.lines() {
        let fed = reader.feed(line);
        report.echo(fed.number, line);
        for command in fed.commands {
            match command {
                Err(error) => report.answer(&Answer::script(error)),
                Ok(text) if parse(&text) == Ok(Statement::End) => break 'script,
                Ok(text) => report.answer(&bench.run(&text)),
            }
        }
    }
    if let Err(error) = reader.finish() {
        report.answer(&Answer::script(error));
    }
    report.closing();
    (report.take().join("\n"), report.return_code())
}

#[test]
fn a_report_has_the_shape_of_runmqsc() {
    let (text, code) = run("\
DISPLAY QLOCAL('DOES.NOT.EXIST')
define ql(A) +
maxdepth(10)
* a comment is echoed like this
\tdis ql(A) maxdepth
end
never read");
    assert_eq!(
        text,
        "\
FerryMQ 0.1.0.
Starting MQSC for queue manager QM1.


     1 : DISPLAY QLOCAL('DOES.NOT.EXIST')
AMQ8147E: FerryMQ object DOES.NOT.EXIST not found.
     2 : define ql(A) +
       : maxdepth(10)
AMQ8006I: FerryMQ queue created.
       : * a comment is echoed like this
     3 : \tdis ql(A) maxdepth
AMQ8409I: Display Queue details.
   QUEUE(A)                                TYPE(QLOCAL)
   MAXDEPTH(10)
     4 : end
3 MQSC commands read.
No commands have a syntax error.
One valid MQSC command could not be processed."
    );
    assert_eq!(code, 10);
}

#[test]
fn closing_lines_count() {
    let tail = |script: &str| {
        let (text, code) = run(script);
        let lines: Vec<&str> = text.lines().rev().take(3).collect();
        (lines.into_iter().rev().collect::<Vec<_>>().join(" "), code)
    };
    let check = |script: &str, expected: &str, code: u8| {
        assert_eq!(tail(script), (expected.to_owned(), code), "{script}");
    };
    check(
        "",
        "No MQSC commands read. No commands have a syntax error. All valid MQSC commands were processed.",
        0,
    );
    check(
        "DEF QL(A)",
        "One MQSC command read. No commands have a syntax error. All valid MQSC commands were processed.",
        0,
    );
    check(
        "DEF QL(A)\nDEF QL(A)\nDEF QL(A)\nSET AUTHREC PROFILE(A)",
        "4 MQSC commands read. No commands have a syntax error. 3 valid MQSC commands could not be processed.",
        10,
    );
    check(
        "bogus\nDEF QL(A)",
        "2 MQSC commands read. One command has a syntax error. All valid MQSC commands were processed.",
        10,
    );
    check(
        "bogus\n# x\nDEF QL(A) +",
        "3 MQSC commands read. 3 commands have a syntax error. All valid MQSC commands were processed.",
        10,
    );
}

#[test]
fn a_syntax_error_shows_how_far_the_command_was_read() {
    let command = "DEFINE QLOCAL(A) MAXDEPHT(1) REPLACE";
    let answer = Answer::syntax(command, &parse(command).unwrap_err());
    assert_eq!(
        answer.lines,
        [
            "AMQ8405I: Syntax error detected at or near end of command segment below:-",
            "DEFINE QLOCAL(A) MAXDEPHT(1)",
            "attribute MAXDEPHT is not known near 'MAXDEPHT'; did you mean MAXDEPTH?",
            "",
        ]
    );
    assert!(answer.syntax_error && !answer.is_done());
    let script = Answer::script(ScriptError::Incomplete);
    assert_eq!(
        script.lines[1],
        "command is not complete at the end of the input."
    );
}

#[test]
fn every_message_has_its_line() {
    let (id, name) = (ObjectId::new(1), || "A".to_owned());
    let (queue, channel) = (ObjectKind::AliasQueue, ObjectKind::SenderChannel);
    let failed = |code: u32| Answer::failed(ReasonCode::new(code), "A");
    for (answer, line) in [
        (
            Answer::applied(&Applied::QueueManagerCreated {
                id: QueueManagerId::NONE,
            }),
            "AMQ8003I: FerryMQ queue manager created.",
        ),
        (
            Answer::applied(&Applied::QueueManagerAltered),
            "AMQ8005I: FerryMQ queue manager changed.",
        ),
        (
            Answer::applied(&Applied::Created {
                kind: queue,
                name: name(),
                id,
            }),
            "AMQ8006I: FerryMQ queue created.",
        ),
        (
            Answer::applied(&Applied::Replaced {
                kind: queue,
                name: name(),
                id,
            }),
            "AMQ8006I: FerryMQ queue created.",
        ),
        (
            Answer::applied(&Applied::Deleted {
                kind: queue,
                name: name(),
                id,
            }),
            "AMQ8007I: FerryMQ queue deleted.",
        ),
        (
            Answer::applied(&Applied::Altered {
                kind: queue,
                name: name(),
                id,
            }),
            "AMQ8008I: FerryMQ queue changed.",
        ),
        (
            Answer::applied(&Applied::Created {
                kind: channel,
                name: name(),
                id,
            }),
            "AMQ8014I: FerryMQ channel created.",
        ),
        (
            Answer::applied(&Applied::Deleted {
                kind: channel,
                name: name(),
                id,
            }),
            "AMQ8015I: FerryMQ channel deleted.",
        ),
        (
            Answer::applied(&Applied::Altered {
                kind: channel,
                name: name(),
                id,
            }),
            "AMQ8016I: FerryMQ channel changed.",
        ),
        (
            Answer::nothing_to_delete(ObjectClass::Queue),
            "AMQ8007I: FerryMQ queue deleted.",
        ),
        (
            Answer::nothing_to_delete(ObjectClass::Channel),
            "AMQ8015I: FerryMQ channel deleted.",
        ),
        (
            Answer::channel_start_accepted(),
            "AMQ8018I: Start FerryMQ channel accepted.",
        ),
        (
            Answer::channel_stop_accepted(),
            "AMQ8019I: Stop FerryMQ channel accepted.",
        ),
        (Answer::queue_cleared(), "AMQ8022I: FerryMQ queue cleared."),
        (
            Answer::queue_manager_pinged(),
            "AMQ8415I: Ping FerryMQ Queue Manager command complete.",
        ),
        (failed(2035), "AMQ8135E: Not authorized."),
        (failed(2055), "AMQ8143E: FerryMQ queue A not empty."),
        (
            failed(2058),
            "AMQ8146E: FerryMQ queue manager not available.",
        ),
        (
            failed(2059),
            "AMQ8146E: FerryMQ queue manager not available.",
        ),
        (failed(2085), "AMQ8147E: FerryMQ object A not found."),
        (failed(2042), "AMQ8148E: FerryMQ object A in use."),
        (failed(2101), "AMQ8149S: FerryMQ object A damaged."),
        (failed(4032), "AMQ8227E: Channel A not found."),
        (failed(3065), "AMQ8420I: Channel Status not found."),
        (failed(4031), "AMQ9514E: Channel 'A' is in use."),
        (
            failed(4064),
            "AMQ9533W: Channel 'A' is not currently active.",
        ),
        (
            failed(9001),
            "AMQ8101S: Unexpected error FMQRC_NO_QUORUM (9001): the definition change was refused: this node cannot reach a \
             majority of the cluster.",
        ),
        (
            failed(77_777),
            "AMQ8101S: Unexpected error 77777: the reason is not known.",
        ),
        (
            Answer::not_supported("SET AUTHREC"),
            "AMQ8999E: SET AUTHREC is not supported by this version of FerryMQ.",
        ),
    ] {
        assert_eq!(answer.lines, [line]);
        assert_eq!(
            answer.is_done(),
            line.as_bytes()[7] == b'I' && !line.starts_with("AMQ8420")
        );
    }
}

#[test]
fn nothing_that_is_printed_reaches_a_terminal_as_a_control() {
    let mut report = Report::new("Q\u{1b}M");
    report.echo(Some(1), "\u{1b}[2Jx\u{7}");
    report.lines(&["\u{9b}31m".to_owned()], false, false);
    report.answer(&Answer::syntax(
        "DEF QL(A\u{1b})",
        &parse("DEF QL(A\u{1b})").unwrap_err(),
    ));
    for line in report.take() {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}
