//! DISPLAY: what is found, what of it is shown, and how.

use ferrymq_objects::ObjectKind;
use ferrymq_types::{ChannelName, QueueManagerName, QueueName, Timestamp, UnitOfWorkId};

use super::Bench;
use crate::{ChannelState, ChannelStatus, QueueStatus};

fn bench() -> Bench {
    let mut b = Bench::new();
    for command in [
        "DEF QL(ORDERS) DESCR('Orders (north)') BOTHRESH(3) BOQNAME(ORDERS.BO)",
        "DEF QL(ORDERS.BO)",
        "DEF QL(QM2) USAGE(XMITQ)",
        "DEF QA(ORDERS.ALIAS) TARGET(ORDERS)",
        "DEF QR(FAR) RNAME(NEAR) RQMNAME(QM2)",
        "DEF CHL(QM1.TO.QM2) CHLTYPE(SDR) CONNAME('192.0.2.7(1414)') XMITQ(QM2)",
        "DEF CHL(QM2.TO.QM1) CHLTYPE(RCVR)",
        "ALTER QMGR DEADQ(SYSTEM.DEAD.LETTER.QUEUE)",
    ] {
        b.must(command);
    }
    b.status.queues.insert(
        QueueName::new("ORDERS").unwrap(),
        QueueStatus {
            current_depth: 12,
            uncommitted: 1,
            input_handles: 2,
            output_handles: 3,
            oldest_message_age_seconds: Some(60),
            last_get: None,
            last_put: Some(Timestamp::from_millis(951_782_399_999)),
            trigger_used: false,
        },
    );
    b
}

fn sender() -> ChannelStatus {
    let name = ChannelName::new("QM1.TO.QM2").unwrap();
    ChannelStatus {
        connection_name: "192.0.2.7(1414)".into(),
        remote_queue_manager: QueueManagerName::new("QM2").ok(),
        transmission_queue: QueueName::new("QM2").ok(),
        in_doubt: true,
        current_luwid: UnitOfWorkId::new([0xab; 16]),
        current_messages: 4,
        current_sequence: 104,
        last_sequence: 100,
        messages: 104,
        batches: 3,
        bytes_sent: 9000,
        short_retries_left: Some(10),
        long_retries_left: Some(999_999_999),
        started: Some(Timestamp::from_millis(951_782_400_000)),
        batch_size: Some(50),
        heartbeat_interval: Some(300),
        max_message_length: Some(4_194_304),
        non_persistent_message_speed: Some(ferrymq_objects::MessageSpeed::Fast),
        ssl_peer: "CN=evil\u{1b}[2J".into(),
        substate: "MQGET".into(),
        mca_running: true,
        ..ChannelStatus::new(name, ObjectKind::SenderChannel, ChannelState::Running)
    }
}

fn show(b: &mut Bench, command: &str) -> String {
    b.run(command).lines.join("\n")
}

#[test]
fn one_queue_is_shown_whole() {
    let mut b = bench();
    assert_eq!(
        show(&mut b, "dis q(ORDERS)"),
        "\
AMQ8409I: Display Queue details.
   QUEUE(ORDERS)                           TYPE(QLOCAL)
   ALTDATE(2000-02-28)                     ALTTIME(23.59.59)
   BOQNAME(ORDERS.BO)                      BOTHRESH(3)
   CRDATE(2000-02-28)                      CRTIME(23.59.59)
   CURDEPTH(12)                            DEFPRTY(0)
   DEFPSIST(NO)                            DEFSOPT(SHARED)
   DEFTYPE(PREDEFINED)                     DESCR(Orders (north))
   GET(ENABLED)                            HARDENBO
   INITQ( )                                IPPROCS(2)
   MAXDEPTH(5000)                          MAXMSGL(4194304)
   MSGDLVSQ(PRIORITY)                      NPMCLASS(NORMAL)
   OPPROCS(3)                              PROCESS( )
   PROPCTL(COMPAT)                         PUT(ENABLED)
   QDEPTHHI(80)                            QDEPTHLO(20)
   QDPHIEV(DISABLED)                       QDPLOEV(DISABLED)
   QDPMAXEV(ENABLED)                       QSVCIEV(NONE)
   QSVCINT(999999999)                      SHARE
   TRIGDATA( )                             TRIGDPTH(1)
   NOTRIGGER                               TRIGMPRI(0)
   TRIGTYPE(FIRST)                         USAGE(NORMAL)"
    );
    assert_eq!(
        show(&mut b, "dis q(ORDERS)"),
        show(&mut b, "dis ql(ORDERS) all")
    );
}

#[test]
fn several_are_shown_by_their_keys_and_what_was_asked() {
    let mut b = bench();
    assert_eq!(
        show(&mut b, "DIS Q(ORDERS*)"),
        "\
AMQ8409I: Display Queue details.
   QUEUE(ORDERS)                           TYPE(QLOCAL)
AMQ8409I: Display Queue details.
   QUEUE(ORDERS.ALIAS)                     TYPE(QALIAS)
AMQ8409I: Display Queue details.
   QUEUE(ORDERS.BO)                        TYPE(QLOCAL)"
    );
    assert_eq!(
        show(&mut b, "DIS Q(ORDERS*) TARGET CURDEPTH TYPE"),
        "\
AMQ8409I: Display Queue details.
   QUEUE(ORDERS)                           TYPE(QLOCAL)
   CURDEPTH(12)
AMQ8409I: Display Queue details.
   QUEUE(ORDERS.ALIAS)                     TYPE(QALIAS)
   TARGET(ORDERS)
AMQ8409I: Display Queue details.
   QUEUE(ORDERS.BO)                        TYPE(QLOCAL)
   CURDEPTH(0)"
    );
    assert_eq!(
        show(&mut b, "dis chl(QM1.TO.QM2) xmitq"),
        "\
AMQ8414I: Display Channel details.
   CHANNEL(QM1.TO.QM2)                     CHLTYPE(SDR)
   XMITQ(QM2)"
    );
    assert_eq!(
        show(&mut b, "dis qmgr deadq"),
        "\
AMQ8408I: Display Queue Manager details.
   QMNAME(QM1)                             DEADQ(SYSTEM.DEAD.LETTER.QUEUE)"
    );
    assert!(show(&mut b, "DIS QMGR").contains("QMID(QM1_2000-02-28_23.59.59)"));
}

#[test]
fn where_picks_and_its_attribute_is_shown() {
    let mut b = bench();
    let names = |b: &mut Bench, command: &str| -> Vec<String> {
        b.run(command)
            .objects
            .iter()
            .map(|o| match &o.pairs[0].1 {
                Some(v) => v.as_str().unwrap_or_default().to_owned(),
                None => String::new(),
            })
            .collect()
    };
    for (command, expected) in [
        ("DIS QL(*) WHERE(CURDEPTH GT 0)", vec!["ORDERS"]),
        ("DIS QL(*) WHERE(CURDEPTH GE 13)", vec![]),
        ("DIS QL(O*) WHERE(CURDEPTH LT 12)", vec!["ORDERS.BO"]),
        (
            "DIS QL(O*) WHERE(CURDEPTH LE 12)",
            vec!["ORDERS", "ORDERS.BO"],
        ),
        ("DIS QL(O*) WHERE(CURDEPTH EQ 12)", vec!["ORDERS"]),
        ("DIS QL(O*) WHERE(CURDEPTH NE 12)", vec!["ORDERS.BO"]),
        ("DIS Q(*) WHERE(USAGE EQ XMITQ)", vec!["QM2"]),
        ("DIS Q(O*) WHERE(TYPE NE QLOCAL)", vec!["ORDERS.ALIAS"]),
        ("DIS Q(*) WHERE(DESCR LK 'Orders*')", vec!["ORDERS"]),
        ("DIS QL(O*) WHERE(DESCR NL 'Orders*')", vec!["ORDERS.BO"]),
        ("DIS Q(*) WHERE(BOQNAME EQ ORDERS.BO)", vec!["ORDERS"]),
        ("DIS Q(*) WHERE(RQMNAME EQ QM2)", vec!["FAR"]),
        ("DIS CHL(Q*) WHERE(CHLTYPE EQ RCVR)", vec!["QM2.TO.QM1"]),
    ] {
        assert_eq!(names(&mut b, command), expected, "{command}");
    }
    assert_eq!(
        show(&mut b, "DIS QL(*) WHERE(CURDEPTH GT 0)"),
        "\
AMQ8409I: Display Queue details.
   QUEUE(ORDERS)                           TYPE(QLOCAL)
   CURDEPTH(12)"
    );
}

#[test]
fn nothing_found_is_said() {
    let mut b = bench();
    for (command, line) in [
        (
            "DISPLAY QLOCAL('DOES.NOT.EXIST')",
            "AMQ8147E: FerryMQ object DOES.NOT.EXIST not found.",
        ),
        (
            "DIS QA(ORDERS)",
            "AMQ8147E: FerryMQ object ORDERS not found.",
        ),
        ("DIS Q(NONE*)", "AMQ8147E: FerryMQ object NONE* not found."),
        ("DIS CHL(NONE)", "AMQ8147E: FerryMQ object NONE not found."),
        ("DIS QS(FAR)", "AMQ8147E: FerryMQ object FAR not found."),
        ("DIS CHS(QM1.TO.QM2)", "AMQ8420I: Channel Status not found."),
    ] {
        let answer = b.run(command);
        assert_eq!(answer.lines, [line]);
        assert!(!answer.is_done() && !answer.syntax_error, "{command}");
    }
}

#[test]
fn queue_status_is_what_runs() {
    let mut b = bench();
    assert_eq!(
        show(&mut b, "DIS QS(ORDERS)"),
        "\
AMQ8450I: Display queue status details.
   QUEUE(ORDERS)                           TYPE(QUEUE)
   CURDEPTH(12)                            IPPROCS(2)
   LGETDATE( )                             LGETTIME( )
   LPUTDATE(2000-02-28)                    LPUTTIME(23.59.59)
   MSGAGE(60)                              OPPROCS(3)
   UNCOM(YES)"
    );
    assert_eq!(
        show(&mut b, "DIS QS(*) WHERE(IPPROCS EQ 2)"),
        "\
AMQ8450I: Display queue status details.
   QUEUE(ORDERS)                           TYPE(QUEUE)
   IPPROCS(2)"
    );
}

#[test]
fn channel_status_is_current_or_saved() {
    let mut b = bench();
    let receiver = ChannelName::new("QM2.TO.QM1").unwrap();
    b.status.channels = vec![
        sender(),
        ChannelStatus::new(
            receiver,
            ObjectKind::ReceiverChannel,
            ChannelState::Inactive,
        ),
    ];
    assert_eq!(
        show(&mut b, "DIS CHS(QM1.TO.QM2)"),
        "\
AMQ8417I: Display Channel Status details.
   CHANNEL(QM1.TO.QM2)                     CHLTYPE(SDR)
   BATCHES(3)                              BATCHSZ(50)
   BYTSRCVD(0)                             BYTSSENT(9000)
   CHSTADA(2000-02-29)                     CHSTATI(00.00.00)
   CONNAME(192.0.2.7(1414))
   CURLUWID(ABABABABABABABABABABABABABABABAB)
   CURMSGS(4)                              CURRENT
   CURSEQNO(104)                           HBINT(300)
   INDOUBT(YES)                            LONGRTS(999999999)
   LSTLUWID(00000000000000000000000000000000)
   LSTMSGDA( )                             LSTMSGTI( )
   LSTSEQNO(100)                           MAXMSGL(4194304)
   MCASTAT(RUNNING)                        MSGS(104)
   NPMSPEED(FAST)                          RQMNAME(QM2)
   SHORTRTS(10)                            SSLCERTI( )
   SSLPEER(CN=evil?[2J)                    STATUS(RUNNING)
   STOPREQ(NO)                             SUBSTATE(MQGET)
   XMITQ(QM2)"
    );
    assert_eq!(
        show(&mut b, "DIS CHS(*)"),
        "\
AMQ8417I: Display Channel Status details.
   CHANNEL(QM1.TO.QM2)                     CHLTYPE(SDR)
   CONNAME(192.0.2.7(1414))                CURRENT
   RQMNAME(QM2)                            STATUS(RUNNING)
   SUBSTATE(MQGET)                         XMITQ(QM2)"
    );
    assert_eq!(
        show(&mut b, "DIS CHS(*) SAVED LSTSEQNO"),
        "\
AMQ8417I: Display Channel Status details.
   CHANNEL(QM1.TO.QM2)                     CHLTYPE(SDR)
   CONNAME(192.0.2.7(1414))                LSTSEQNO(100)
   RQMNAME(QM2)                            SAVED
   XMITQ(QM2)
AMQ8417I: Display Channel Status details.
   CHANNEL(QM2.TO.QM1)                     CHLTYPE(RCVR)
   CONNAME( )                              LSTSEQNO(0)
   RQMNAME( )                              SAVED"
    );
    for (command, found) in [
        ("DIS CHS(*) WHERE(STATUS EQ RUNNING)", 1),
        ("DIS CHS(*) WHERE(STATUS NE RUNNING)", 0),
        ("DIS CHS(*) CONNAME('192.0.2.7*')", 1),
        ("DIS CHS(*) CONNAME('192.0.2.8')", 0),
        ("DIS CHS(*) XMITQ(QM2)", 1),
        ("DIS CHS(*) XMITQ(QM3)", 0),
        ("DIS CHS(*) WHERE(INDOUBT EQ YES)", 1),
        ("DIS CHS(*) WHERE(MSGS GT 103)", 1),
    ] {
        assert_eq!(b.run(command).objects.len(), found, "{command}");
    }
}

#[test]
fn every_state_of_a_channel_has_its_word() {
    let words: Vec<&str> = [
        ChannelState::Inactive,
        ChannelState::Initializing,
        ChannelState::Starting,
        ChannelState::Binding,
        ChannelState::Requesting,
        ChannelState::Running,
        ChannelState::Paused,
        ChannelState::Stopping,
        ChannelState::Retrying,
        ChannelState::Stopped,
    ]
    .map(ChannelState::word)
    .to_vec();
    assert_eq!(
        words.join(" "),
        "INACTIVE INITIALIZING STARTING BINDING REQUESTING RUNNING PAUSED STOPPING RETRYING STOPPED"
    );
}

#[test]
fn a_process_is_defined_shown_altered_and_deleted() {
    let mut b = Bench::new();
    assert_eq!(
        show(
            &mut b,
            "DEF PRO(ORDERS) APPLICID('/usr/bin/orders -a') USERDATA(x) DESCR('starts it')"
        ),
        "AMQ8010I: FerryMQ process created."
    );
    assert_eq!(
        show(&mut b, "ALT PROCESS(ORDERS) APPLTYPE(70000)"),
        "AMQ8012I: FerryMQ process changed."
    );
    assert_eq!(
        show(&mut b, "DIS PROCESS(ORDERS)"),
        "\
AMQ8407I: Display Process details.
   PROCESS(ORDERS)                         ALTDATE(2000-02-28)
   ALTTIME(23.59.59)                       APPLICID(/usr/bin/orders -a)
   APPLTYPE(70000)                         DESCR(starts it)
   ENVRDATA( )                             USERDATA(X)"
    );
    assert_eq!(
        show(&mut b, "DIS PRO(*) APPLTYPE WHERE(APPLTYPE EQ UNIX)"),
        "\
AMQ8407I: Display Process details.
   PROCESS(SYSTEM.DEFAULT.PROCESS)         APPLTYPE(UNIX)"
    );
    assert_eq!(
        show(&mut b, "DELETE PROCESS(ORDERS)"),
        "AMQ8011I: FerryMQ process deleted."
    );
    assert_eq!(
        show(&mut b, "DIS PRO(ORDERS)"),
        "AMQ8147E: FerryMQ object ORDERS not found."
    );
}

#[test]
fn a_depth_trigger_that_was_used_is_shown_as_notrigger() {
    let mut b = Bench::new();
    b.must("DEF QL(ORDERS) TRIGGER TRIGTYPE(DEPTH) TRIGDPTH(3) TRIGMPRI(2) PROCESS(P)");
    let shown = "DIS QL(ORDERS) TRIGGER TRIGDPTH";
    assert!(show(&mut b, shown).contains(" TRIGGER"));
    let name = QueueName::new("ORDERS").unwrap();
    let used = QueueStatus {
        trigger_used: true,
        ..QueueStatus::default()
    };
    b.status.queues.insert(name, used);
    assert!(show(&mut b, shown).contains("NOTRIGGER"));
}
