//! From lines to commands.

use super::commands;
use crate::{COMMAND_LENGTH_MAX, LINE_LENGTH_MAX, ScriptReader};

#[test]
fn lines_become_commands() {
    let long = format!("DIS Q({})", "x".repeat(LINE_LENGTH_MAX));
    let too_long = vec![
        "!line is longer than 2048 characters".to_owned(),
        "END".to_owned(),
    ];
    assert_eq!(commands(&format!("{long}\nEND")), too_long);
    assert_eq!(
        commands(&format!("{long} +\n ALL\nEND")),
        too_long,
        "the continuation belongs to it"
    );
    for (script, expected) in [
        ("", vec![]),
        ("\n  \n\t\n* comment\n", vec![]),
        ("END", vec!["END"]),
        ("\u{feff}DIS QMGR\r\nEND\r\n", vec!["DIS QMGR", "END"]),
        ("  dis qmgr  ", vec!["dis qmgr  "]),
        // Continuation.
        ("DEF QL(A) +\n   REPLACE", vec!["DEF QL(A) REPLACE"]),
        ("DEF QL(A) +  \t\nREPLACE", vec!["DEF QL(A) REPLACE"]),
        ("DEF QL(A+\n  BC)", vec!["DEF QL(ABC)"]),
        (
            "DEF QL(A) DESCR('x -\n  y')",
            vec!["DEF QL(A) DESCR('x   y')"],
        ),
        (
            "DEF QL(A) DESCR('x +\n  y')",
            vec!["DEF QL(A) DESCR('x y')"],
        ),
        (
            "DEF QL('A') - \n       DEFPSIST(YES) - \n       REPLACE",
            vec!["DEF QL('A')        DEFPSIST(YES)        REPLACE"],
        ),
        // Comments and blank lines inside.
        (
            "DEF QL(A) +\n* ALTDATE(2024-01-31) +\n\n   REPLACE\nEND",
            vec!["DEF QL(A) REPLACE", "END"],
        ),
        // A star that is not in the first column is no comment.
        (" * x", vec!["* x"]),
        // Semicolons.
        ("DEF QL(A) REPLACE;", vec!["DEF QL(A) REPLACE"]),
        (
            "DEF QL(A) +\nREPLACE;\nEND",
            vec!["DEF QL(A) REPLACE", "END"],
        ),
        ("DIS QMGR; END", vec!["DIS QMGR", "END"]),
        (
            "DIS QMGR; DEF QL(A) +\n REPLACE",
            vec!["DIS QMGR", "DEF QL(A) REPLACE"],
        ),
        (";;\n;", vec![]),
        ("DEF QL(A) DESCR('a;b')", vec!["DEF QL(A) DESCR('a;b')"]),
        (
            "DEF QL(A) DESCR('it''s; so');END",
            vec!["DEF QL(A) DESCR('it''s; so')", "END"],
        ),
        (
            "DEF QL(A) DESCR('a +\n b;c'); END",
            vec!["DEF QL(A) DESCR('a b;c')", "END"],
        ),
        ("DEF QL(A') X;\nEND", vec!["DEF QL(A') X;", "END"]),
        // Inserts are text.
        (
            "DEF SERVICE(A) STARTARG('-m +QMNAME+')",
            vec!["DEF SERVICE(A) STARTARG('-m +QMNAME+')"],
        ),
        // What is not complete is not run.
        (
            "DELETE QL(A) +",
            vec!["!command is not complete at the end of the input"],
        ),
        (
            "DELETE QL(A) +\n* and then nothing\n",
            vec!["!command is not complete at the end of the input"],
        ),
    ] {
        assert_eq!(commands(script), expected, "{script:?}");
    }
}

#[test]
fn commands_are_numbered_by_the_line_that_they_start_on() {
    let mut reader = ScriptReader::new();
    let numbers: Vec<Option<u64>> = [
        "* c",
        "DIS QMGR",
        "DEF QL(A) +",
        "* c",
        "",
        "REPLACE",
        "A; B",
        "END",
    ]
    .into_iter()
    .map(|line| reader.feed(line).number)
    .collect();
    assert_eq!(
        numbers,
        [None, Some(1), Some(2), None, None, None, Some(3), Some(5)]
    );
}

#[test]
fn a_command_has_a_limit_and_ends_where_it_would_have_ended() {
    let mut script = "DEF QL(A) +\n".to_owned();
    for _ in 0..=COMMAND_LENGTH_MAX / 1000 {
        script.push_str(&format!("{} +\n", "x".repeat(1000)));
    }
    script.push_str("REPLACE\nEND");
    assert_eq!(
        commands(&script),
        ["!command is longer than 65536 bytes", "END"]
    );
}

#[test]
fn the_reader_says_whether_it_waits_for_more() {
    let mut reader = ScriptReader::new();
    reader.feed("DEF QL(A) +");
    assert!(reader.is_continued());
    reader.feed("REPLACE");
    assert!(!reader.is_continued());
}
