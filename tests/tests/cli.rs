//! The command line as its users see it: what it prints, where, and how it ends.

use std::io::Read as _;
use std::process::Stdio;

use ferrymq_tests::command_line::{Dev, Home, check, json};

#[test]
fn a_reason_code_is_explained() {
    let home = Home::new();
    let (out, err) = check(&home.run(&["rc", "2053"]), 0);
    assert!(out.starts_with("# 2053 MQRC_Q_FULL"), "{out}");
    assert!(
        out.contains("## What to do") && err.is_empty(),
        "{out}{err}"
    );
    let (by_name, _) = check(&home.run(&["rc", "q_full"]), 0);
    assert_eq!(by_name, out);
    let (out, _) = check(&home.run(&["rc", "AMQ8147E", "-o", "json"]), 0);
    assert_eq!(json(&out)["id"], "AMQ8147");
    let (out, err) = check(&home.run(&["rc", "nothing"]), 2);
    assert!(
        out.is_empty() && err.starts_with("ferrymq: rc: "),
        "{out}{err}"
    );
}

#[test]
fn the_version_is_an_answer() {
    let home = Home::new();
    let (out, _) = check(&home.run(&["version"]), 0);
    assert!(
        out.starts_with("ferrymq ") && out.lines().count() == 1,
        "{out}"
    );
    let (out, _) = check(&home.run(&["version", "-o", "json"]), 0);
    assert!(json(&out)["version"].is_string(), "{out}");
}

#[test]
fn an_unknown_context_is_a_usage_error_and_no_fallback() {
    let home = Home::new();
    let (out, err) = check(&home.run(&["put", "A", "x", "--context", "nowhere"]), 2);
    assert!(out.is_empty() && err.contains("nowhere"), "{out}{err}");
    let (_, err) = check(
        &home.run(&["mqsc", "-e", "DISPLAY QMGR", "--context", "nowhere"]),
        2,
    );
    assert!(err.contains("nowhere"), "{err}");
}

#[test]
fn a_bad_address_is_a_usage_error() {
    let home = Home::new();
    for url in [
        "127.0.0.1:1414",
        "http://192.0.2.1:1414",
        "https://",
        "ftp://h:1",
    ] {
        let (out, err) = check(&home.run(&["put", "A", "x", "--url", url]), 2);
        assert!(
            out.is_empty() && err.starts_with("ferrymq: put A: "),
            "{url}: {out}{err}"
        );
    }
}

#[test]
fn words_that_are_not_understood_are_a_usage_error_in_json_too() {
    let home = Home::new();
    check(&home.run(&["nothing"]), 2);
    check(&home.run(&["put", "A", "x", "--priority", "10"]), 2);
    check(&home.run(&["put", "NOT A NAME", "x"]), 2);
    let (_, err) = check(
        &home.run(&["put", "A", "x", "--expiry", "10", "-o", "json"]),
        2,
    );
    let error = &json(&err)["error"];
    assert_eq!(error["exit"], 2);
    assert!(
        error["mqrc"].is_null() && error["message"].is_string(),
        "{err}"
    );
}

#[test]
fn a_closed_port_is_tried_until_the_time_is_over() {
    let home = Home::new();
    let url = Home::url_of_nobody();
    let (out, err) = check(
        &home.run(&["put", "A", "x", "--url", url, "--timeout", "1s"]),
        6,
    );
    assert!(out.is_empty(), "{out}");
    assert!(
        err.contains("ferrymq: put A: MQRC_HOST_NOT_AVAILABLE (2538): "),
        "{err}"
    );
    let arguments = [
        "get",
        "A",
        "--url",
        url,
        "--timeout",
        "1s",
        "-o",
        "json",
        "-q",
    ];
    let (_, err) = check(&home.run(&arguments), 6);
    let error = &json(&err)["error"];
    assert_eq!((&error["mqrc"], &error["exit"]), (&2538.into(), &6.into()));
}

#[test]
fn a_script_that_cannot_be_run_ends_with_20() {
    let home = Home::new();
    let url = Home::url_of_nobody();
    let arguments = [
        "mqsc",
        "-e",
        "DISPLAY QMGR",
        "--url",
        url,
        "--timeout",
        "1s",
    ];
    let (_, err) = check(&home.run(&arguments), 20);
    assert!(err.contains("2538"), "{err}");
    let missing = home.directory.path().join("missing.mqsc");
    let missing = missing.to_str().expect("the path is UTF-8");
    check(
        &home.run(&["mqsc", "-f", missing, "--url", url, "--timeout", "1s"]),
        20,
    );
}

#[test]
fn a_script_is_checked_without_a_queue_manager() {
    let home = Home::new();
    let script = b"* two commands\nDEFINE QLOCAL(A) +\n  MAXDEPTH(2)\nDEFINE QLOCL(B)\n";
    let output = home.run_with_input(&["mqsc", "-v"], script);
    let (out, _) = check(&output, 10);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.contains(&"     1 : DEFINE QLOCAL(A) +"), "{out}");
    assert!(lines.contains(&"     2 : DEFINE QLOCL(B)"), "{out}");
    assert!(lines.iter().any(|l| l.starts_with("AMQ8405I: ")), "{out}");
    assert_eq!(
        lines[lines.len() - 3..],
        [
            "2 MQSC commands read.",
            "One command has a syntax error.",
            "All valid MQSC commands were processed."
        ]
    );
    let output = home.run_with_input(&["mqsc", "-v", "-o", "json"], b"DEFINE QLOCAL(A)\nEND\nX\n");
    let (out, _) = check(&output, 0);
    assert_eq!(
        json(&out)["commands"].as_array().map(Vec::len),
        Some(1),
        "{out}"
    );
}

#[test]
fn certificates_are_made_and_never_overwritten() {
    let home = Home::new();
    let directory = home.directory.path().join("pki");
    let dir = directory.to_str().expect("the path is UTF-8");
    check(
        &home.run(&["cert", "ca", "CN=Test authority", "--dir", dir]),
        0,
    );
    let server = [
        "cert",
        "server",
        "CN=QM1,O=Test",
        "--dir",
        dir,
        "--san",
        "127.0.0.1",
    ];
    let (out, _) = check(&home.run(&server), 0);
    assert_eq!(out, format!("{dir}/server.crt\n{dir}/server.key\n"));
    check(&home.run(&server), 2);
    check(
        &home.run(&["cert", "client", "CN=app", "--dir", dir, "-o", "json"]),
        0,
    );
    check(&home.run(&["cert", "server", "CN=QM1", "--dir", dir]), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let key = directory.join("client.key");
        let mode = key
            .metadata()
            .expect("the key was written")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let home = Home::new();
    let mut command = home.command(&["rc", "2053"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("run ferrymq");
    drop(child.stdout.take());
    let mut err = String::new();
    let mut stderr = child.stderr.take().expect("stderr is piped");
    stderr
        .read_to_string(&mut err)
        .expect("read what ferrymq says");
    child.wait().expect("wait for ferrymq");
    assert_eq!(err, "");
}

#[test]
fn what_is_put_is_got_once() {
    let home = Home::new();
    let dev = Dev::start(&home);
    let (id, err) = dev.check(&["put", "DEV.QUEUE.1", "hello", "--persistent"], 0);
    assert_eq!((id.trim_end().len(), err.as_str()), (48, ""), "{id}");
    let (listed, _) = dev.check(&["browse", "DEV.QUEUE.1", "-o", "json"], 0);
    let listed = json(&listed);
    assert_eq!(listed["message_id"], id.trim_end());
    assert_eq!(
        (&listed["body"], &listed["persistence"]),
        (&"hello".into(), &"persistent".into())
    );
    let (got, err) = dev.check(&["get", "DEV.QUEUE.1"], 0);
    assert_eq!((got.as_str(), err.as_str()), ("hello", ""));
    let (got, err) = dev.check(&["get", "DEV.QUEUE.1"], 4);
    assert!(got.is_empty() && err.contains("2033"), "{got}{err}");
}

#[test]
fn lines_are_put_in_order_and_all_are_got() {
    let home = Home::new();
    let dev = Dev::start(&home);
    let lines: Vec<String> = (0..300).map(|n| format!("line {n}")).collect();
    let arguments = ["put", "DEV.QUEUE.2", "--lines", "--url", &dev.url];
    let (ids, _) = check(
        &home.run_with_input(&arguments, lines.join("\n").as_bytes()),
        0,
    );
    assert_eq!(ids.lines().count(), 300);
    let (got, _) = dev.check(&["get", "DEV.QUEUE.2", "--count", "all", "-o", "ndjson"], 0);
    let bodies: Vec<String> = got
        .lines()
        .map(|line| json(line)["body"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(bodies, lines);
    dev.check(&["get", "DEV.QUEUE.2", "--count", "all"], 4);
}

#[test]
fn a_get_that_waits_in_vain_ends_when_its_wait_does() {
    let home = Home::new();
    let dev = Dev::start(&home);
    for _ in 0..3 {
        // Were it never woken, the command's own limit would end it, with 7.
        let (_, err) = dev.check(&["get", "DEV.QUEUE.1", "--wait", "300ms"], 4);
        assert!(err.contains("2033"), "{err}");
    }
}

#[test]
fn a_full_queue_refuses_with_its_reason() {
    let home = Home::new();
    let dev = Dev::start(&home);
    let define = "DEFINE QLOCAL(SMALL) MAXDEPTH(2)";
    let (report, _) = dev.check(&["mqsc", "QM1", "-e", define], 0);
    let lines: Vec<&str> = report.lines().collect();
    assert!(
        lines.contains(&"Starting MQSC for queue manager QM1."),
        "{report}"
    );
    assert!(
        lines.contains(&"     1 : DEFINE QLOCAL(SMALL) MAXDEPTH(2)"),
        "{report}"
    );
    assert!(
        lines.iter().any(|l| l.starts_with("AMQ8006I: ")),
        "{report}"
    );
    assert_eq!(
        lines[lines.len() - 3..],
        [
            "One MQSC command read.",
            "No commands have a syntax error.",
            "All valid MQSC commands were processed."
        ]
    );
    dev.check(&["put", "SMALL", "1"], 0);
    dev.check(&["put", "SMALL", "2"], 0);
    let (out, err) = dev.check(&["put", "SMALL", "3"], 1);
    assert!(
        out.is_empty() && err.contains("put SMALL: MQRC_Q_FULL (2053): "),
        "{out}{err}"
    );
    let (_, err) = dev.check(&["put", "SMALL", "3", "-o", "json"], 1);
    let error = &json(&err)["error"];
    assert_eq!(
        (&error["mqrc"], &error["object"]),
        (&2053.into(), &"SMALL".into()),
        "{err}"
    );
    dev.check(&["get", "SMALL"], 0);
    // One of two fits: that one is told, and so is that not all was done.
    let (ids, err) = dev.check(&["put", "SMALL", "3", "--count", "2"], 3);
    assert_eq!(ids.lines().count(), 1);
    assert!(
        err.contains("2053") && err.contains("1 message put"),
        "{err}"
    );
}

#[test]
fn commands_that_fail_are_counted_in_the_report() {
    let home = Home::new();
    let dev = Dev::start(&home);
    let arguments = [
        "mqsc",
        "-e",
        "DISPLAY QLOCAL('DOES.NOT.EXIST')",
        "-e",
        "DISPLAY QMGR",
    ];
    let (report, _) = dev.check(&arguments, 10);
    assert!(report.contains("AMQ8147E: "), "{report}");
    assert!(
        report.contains("One valid MQSC command could not be processed."),
        "{report}"
    );
    let (_, err) = dev.check(&["put", "DOES.NOT.EXIST", "x"], 1);
    assert!(err.contains("MQRC_UNKNOWN_OBJECT_NAME (2085)"), "{err}");
}

#[test]
fn an_event_is_shown_in_words() {
    let home = Home::new();
    let dev = Dev::start(&home);
    let started = "reason(MQRC_Q_MGR_ACTIVE) mqrc(2222) MQCA_Q_MGR_NAME(QM1)";
    let (out, _) = dev.check(&["browse", "SYSTEM.ADMIN.QMGR.EVENT"], 0);
    assert!(out.contains(started), "{out}");
    let (out, _) = dev.check(&["get", "SYSTEM.ADMIN.QMGR.EVENT", "-o", "json"], 0);
    let event = json(&out);
    assert_eq!(event["format"], "MQEVENT");
    assert_eq!(event["body"]["mqrc"], 2222, "{out}");
    assert_eq!(event["body"]["MQCA_Q_MGR_NAME"], "QM1");
}

#[test]
fn a_dump_has_every_message_and_changes_nothing() {
    let home = Home::new();
    let dev = Dev::start(&home);
    dev.check(&["put", "DEV.QUEUE.1", "one"], 0);
    let raw = home.run_with_input(&["put", "DEV.QUEUE.3", "-"], b"\xff\x00two");
    check(&raw, 0);
    for _ in 0..2 {
        let (out, _) = dev.check(&["dump", "--all"], 0);
        let dumped: Vec<serde_json::Value> = out.lines().map(json).collect();
        // That the queue manager has started is a message too.
        let is_event = |m: &&serde_json::Value| m["queue"] == "SYSTEM.ADMIN.QMGR.EVENT";
        assert_eq!(dumped.iter().filter(is_event).count(), 1, "{out}");
        let mut short: Vec<(String, String)> = dumped
            .iter()
            .filter(|m| !is_event(m))
            .map(|m| {
                (
                    m["queue"].to_string(),
                    format!("{} {}", m["encoding"], m["body"]),
                )
            })
            .collect();
        short.sort();
        assert_eq!(
            short,
            [
                (r#""DEV.QUEUE.1""#.to_owned(), r#""text" "one""#.to_owned()),
                (
                    r#""DEV.QUEUE.3""#.to_owned(),
                    r#""base64" "/wB0d28=""#.to_owned()
                ),
            ]
        );
        assert!(
            dumped
                .iter()
                .all(|m| m["position"].is_u64() && m["held"] == false),
            "{out}"
        );
    }
}

#[test]
fn a_message_that_nobody_could_read_stays_on_its_queue() {
    let home = Home::new();
    let dev = Dev::start(&home);
    dev.check(&["put", "DEV.QUEUE.1", "kept"], 0);
    let missing = home.directory.path().join("missing");
    let missing = missing.to_str().expect("the path is UTF-8");
    let (_, err) = dev.check(&["get", "DEV.QUEUE.1", "--out", missing], 1);
    assert!(err.contains("missing"), "{err}");
    let (got, _) = dev.check(&["get", "DEV.QUEUE.1", "--wait", "10s"], 0);
    assert_eq!(got, "kept");
}

#[test]
fn an_account_lists_what_was_cleared() {
    let home = Home::new();
    let dev = Dev::start(&home);
    let (id, _) = dev.check(&["put", "DEV.QUEUE.1", "x", "--persistent"], 0);
    dev.check(&["mqsc", "-e", "CLEAR QLOCAL(DEV.QUEUE.1)"], 0);
    let (out, _) = dev.check(&["log", "account", "-o", "ndjson"], 0);
    let entry = json(out.lines().next().unwrap_or_default());
    assert_eq!(entry["message_id"], id.trim_end());
    assert_eq!(
        (&entry["from"], &entry["reason"]),
        (&"DEV.QUEUE.1".into(), &"cleared".into())
    );
    assert!(entry["to"].is_null(), "{out}");
}

#[test]
fn a_load_is_measured_and_every_message_of_it_arrives_once() {
    let home = Home::new();
    let dev = Dev::start(&home);
    let defined: Vec<String> = ["LOAD.1", "LOAD.2", "LOAD", "LOAD.REPLY.1"]
        .iter()
        .map(|queue| format!("DEFINE QLOCAL({queue})"))
        .collect();
    for define in &defined {
        dev.check(&["mqsc", "QM1", "-e", define], 0);
    }
    let load = |verb: &str, more: &[&str]| {
        let mut words = vec!["bench", verb, "--queue", "LOAD", "--verify", "-o", "json"];
        words.extend(more);
        json(&dev.check(&words, 0).0)
    };
    let clean = serde_json::json!({ "lost": 0, "duplicated": 0, "damaged": 0, "left": 0 });
    let two = ["--clients", "2", "--queues", "2", "--messages", "500"];
    let report = load("putget", &two);
    assert_eq!(
        (&report["messages"], &report["verified"]),
        (&1000.into(), &clean)
    );
    let report = load("roundtrip", &["--messages", "50"]);
    assert_eq!(
        (&report["messages"], &report["verified"]),
        (&50.into(), &clean)
    );
    load("put", &["--messages", "200", "--syncpoint", "20"]);
    // What is there already would be taken for what is put.
    let (_, err) = dev.check(
        &["bench", "putget", "--queue", "LOAD", "--messages", "1"],
        2,
    );
    assert!(err.contains("queue LOAD is not empty"), "{err}");
    let report = load("get", &["--messages", "200"]);
    assert_eq!(report["verified"], clean);
    load("put", &["--messages", "10"]);
    let report = load("get", &["--messages", "10"]);
    assert_eq!(report["verified"], clean);
    // Another run's clock says nothing about ages.
    assert!(report["latency_us"].is_null(), "{report}");
}

/// Gets one message of LOAD into a file and returns the file.
fn take_one(dev: &Dev<'_>, home: &Home) -> std::path::PathBuf {
    let into = tempfile::tempdir_in(home.directory.path()).expect("a directory");
    let into = into.keep();
    dev.check(&["get", "LOAD", "--out", &into.to_string_lossy()], 0);
    let mut files = std::fs::read_dir(&into).expect("read it");
    files.next().expect("a file").expect("read it").path()
}

#[test]
fn a_load_reports_what_was_lost_doubled_or_damaged() {
    let home = Home::new();
    let dev = Dev::start(&home);
    dev.check(&["mqsc", "QM1", "-e", "DEFINE QLOCAL(LOAD)"], 0);
    let load = |verb: &str, more: &[&str], code| {
        let mut words = vec!["bench", verb, "--queue", "LOAD", "--idle", "300ms"];
        words.extend(["-o", "json"]);
        words.extend(if more.contains(&"--messages") {
            &[][..]
        } else {
            &["--messages", "10"]
        });
        words.extend(more);
        json(&dev.check(&words, code).0)
    };
    let verdict = |lost, duplicated, damaged| serde_json::json!({ "lost": lost, "duplicated": duplicated, "damaged": damaged, "left": 0 });
    // Another getter took one.
    load("put", &[], 0);
    take_one(&dev, &home);
    let report = load("get", &["--verify"], 1);
    assert_eq!(report["verified"], verdict(1, 0, 0));
    // It does not wait for ever without --verify either.
    load("put", &[], 0);
    take_one(&dev, &home);
    assert_eq!(load("get", &[], 1)["missing"], 1);
    // One is there twice; the copy is behind the last one that is waited for.
    load("put", &[], 0);
    let one = format!("@{}", take_one(&dev, &home).display());
    dev.check(&["put", "LOAD", &one, "--count", "2"], 0);
    let report = load("get", &["--verify"], 1);
    assert_eq!(report["verified"], verdict(0, 1, 0));
    dev.check(&["mqsc", "QM1", "-e", "CLEAR QLOCAL(LOAD)"], 0);
    // One was altered on its way.
    load("put", &[], 0);
    let file = take_one(&dev, &home);
    let mut bytes = std::fs::read(&file).expect("read it");
    *bytes.last_mut().expect("a body") ^= 1;
    std::fs::write(&file, bytes).expect("write it");
    dev.check(&["put", "LOAD", &format!("@{}", file.display())], 0);
    let report = load("get", &["--verify"], 1);
    assert_eq!(report["verified"], verdict(1, 0, 1));
    // Two runs into one queue are twenty messages, not ten and their copies.
    load("put", &[], 0);
    load("put", &[], 0);
    let report = load("get", &["--verify", "--messages", "20"], 0);
    assert_eq!(report["verified"], verdict(0, 0, 0));
}

#[test]
fn a_load_whose_messages_somebody_else_gets_ends_and_says_so() {
    let home = Home::new();
    let dev = Dev::start(&home);
    for queue in ["LOAD", "LOAD.REPLY.1"] {
        let define = format!("DEFINE QLOCAL({queue})");
        dev.check(&["mqsc", "QM1", "-e", &define], 0);
    }
    for (verb, stolen_from) in [("putget", "LOAD"), ("roundtrip", "LOAD.REPLY.1")] {
        let mut thief = home
            .command(&["get", stolen_from, "--wait", "60s", "--count", "3"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("run ferrymq");
        wait_until_open(&dev, stolen_from);
        let words = ["bench", verb, "--queue", "LOAD", "--messages", "50"];
        let more = ["--idle", "500ms", "--verify", "-o", "json"];
        let report = json(&dev.check(&[&words[..], &more[..]].concat(), 1).0);
        let lost = report["verified"]["lost"].as_u64();
        assert!(lost >= Some(1), "{verb}: {report}");
        assert_eq!(report["missing"].as_u64(), lost, "{verb}: {report}");
        drop(thief.kill());
        thief.wait().expect("wait for it");
        dev.check(
            &["mqsc", "QM1", "-e", &format!("CLEAR QLOCAL({stolen_from})")],
            0,
        );
    }
}

/// Waits until somebody gets from the queue.
fn wait_until_open(dev: &Dev<'_>, queue: &str) {
    let display = format!("DISPLAY QLOCAL({queue}) IPPROCS");
    for _ in 0..600 {
        let (out, _) = dev.check(&["mqsc", "QM1", "-e", &display], 0);
        if out.contains("IPPROCS(1)") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("nobody gets from {queue}");
}

#[test]
fn only_what_a_selector_chooses_is_browsed_got_and_answered() {
    let home = Home::new();
    let dev = Dev::start(&home);
    for (text, colour, priority) in [("a", "red", "1"), ("b", "blue", "7"), ("c", "red", "7")] {
        let property = format!("colour={colour}");
        let put = ["put", "DEV.QUEUE.1", text, "--property", &property];
        let options = ["--priority", priority, "--reply-to", "DEV.QUEUE.2"];
        dev.check(&[&put[..], &options].concat(), 0);
    }
    let with = |command: &[&str], selector: &str, code| {
        let (out, err) = dev.check(&[command, &["--where", selector]].concat(), code);
        format!("{out}{err}")
    };
    let browsed = with(
        &["browse", "DEV.QUEUE.1", "-o", "json"],
        "colour = 'red'",
        0,
    );
    let bodies = browsed.lines().map(|line| json(line)["body"].clone());
    assert_eq!(bodies.collect::<Vec<_>>(), ["c", "a"]);
    let both = "colour = 'red' AND Root.MQMD.Priority > 4";
    assert_eq!(with(&["get", "DEV.QUEUE.1"], both, 0), "c");
    let none = with(&["get", "DEV.QUEUE.1"], both, 4);
    assert!(none.contains("2 messages judged"), "{none}");
    let echo = ["reply", "DEV.QUEUE.1", "--echo", "--wait", "0"];
    with(&echo, "colour = 'blue'", 0);
    dev.check(&["get", "DEV.QUEUE.2", "--where", "colour = 'blue'"], 0);
    assert_eq!(with(&["get", "DEV.QUEUE.1"], "TRUE", 0), "a");
    let refused = with(&["get", "DEV.QUEUE.1"], "colour = ", 1);
    assert!(refused.contains("2459"), "{refused}");
}

#[test]
fn properties_are_shown_as_what_they_are_whatever_the_queue_says() {
    let home = Home::new();
    let dev = Dev::start(&home);
    let alter = "ALTER QLOCAL(DEV.QUEUE.1) PROPCTL(FORCE)";
    dev.check(&["mqsc", "-e", alter], 0);
    let put = ["put", "DEV.QUEUE.1", "x", "--property", "colour=red"];
    dev.check(&put, 0);
    let (shown, _) = dev.check(&["browse", "DEV.QUEUE.1", "-o", "json"], 0);
    let shown = json(&shown);
    assert_eq!(shown["properties"]["colour"], "red");
    assert_eq!(
        (&shown["body"], &shown["format"]),
        (&"x".into(), &"MQSTR".into())
    );
    let (got, _) = dev.check(&["get", "DEV.QUEUE.1", "-o", "json"], 0);
    assert_eq!(json(&got)["format"], "MQHRF2");
}

#[test]
fn an_exported_configuration_makes_the_same_one_elsewhere() {
    let (home, elsewhere) = (Home::new(), Home::new());
    let (from, to) = (Dev::start(&home), Dev::start(&elsewhere));
    for command in [
        "DEFINE QLOCAL('orders.in') MAXDEPTH(7) DESCR('it''s')",
        "SET CHLAUTH('APP.*') TYPE(BLOCKUSER) USERLIST('nobody')",
    ] {
        from.check(&["mqsc", "-e", command], 0);
    }
    let (exported, _) = from.check(&["config", "export"], 0);
    assert!(
        exported.contains("DEFINE QLOCAL('orders.in') +\n"),
        "{exported}"
    );
    let options = ["mqsc", "--url", &to.url];
    let applied = elsewhere.run_with_input(&options, exported.as_bytes());
    let (report, _) = check(&applied, 0);
    assert!(
        report.contains("All valid MQSC commands were processed."),
        "{report}"
    );
    let (again, _) = to.check(&["config", "export"], 0);
    assert_eq!(again, exported);
    let (document, _) = to.check(&["config", "export", "-o", "json"], 0);
    let lines = json(&document)["lines"].as_array().map(Vec::len);
    assert_eq!(lines, Some(exported.lines().count()));
}
