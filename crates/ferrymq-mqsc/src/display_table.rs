//! What DISPLAY can show of what runs, and which words it knows.

use ferrymq_objects::{
    AttributeForm, AttributeProblem, AttributeValue, MessageSpeed, any_channel_attribute,
    any_queue_attribute, channel_rule_attribute, channel_rule_attributes, mqsc_date, mqsc_time,
    process_attribute, process_attributes, queue_manager_attribute, queue_manager_attributes,
};
use ferrymq_objects::{ObjectClass, ObjectKind};
use ferrymq_types::{Timestamp, UnitOfWorkId};

use crate::statement::DisplayNoun;
use crate::status::{ChannelStatus, QueueStatus};

/// A keyword of status, and how it is read.
pub(crate) struct StatusRow<T: 'static> {
    pub(crate) keyword: &'static str,
    /// Whether it is a number.
    pub(crate) number: bool,
    /// Whether `SAVED` shows it too.
    pub(crate) saved: bool,
    pub(crate) get: fn(&T) -> Option<AttributeValue>,
}

fn text(t: &str) -> Option<AttributeValue> {
    Some(AttributeValue::Text(t.to_owned()))
}

fn word(w: &str) -> Option<AttributeValue> {
    Some(AttributeValue::Word(w.to_owned()))
}

const fn number(n: u64) -> Option<AttributeValue> {
    Some(AttributeValue::Number(n))
}

fn yes_no(yes: bool) -> Option<AttributeValue> {
    word(if yes { "YES" } else { "NO" })
}

/// A date, blank if there is none.
fn date(t: Option<Timestamp>) -> Option<AttributeValue> {
    text(&t.map_or_else(String::new, mqsc_date))
}

/// A time, blank if there is none.
fn time(t: Option<Timestamp>) -> Option<AttributeValue> {
    text(&t.map_or_else(String::new, mqsc_time))
}

fn luwid(id: UnitOfWorkId) -> Option<AttributeValue> {
    text(&id.to_string().to_ascii_uppercase())
}

macro_rules! status_rows {
    ($name:ident: $type:ty; $($keyword:literal, $number:literal, $saved:literal, $get:expr;)+) => {
        pub(crate) static $name: &[StatusRow<$type>] = &[$(StatusRow {
            keyword: $keyword,
            number: $number,
            saved: $saved,
            get: $get,
        }),+];
    };
}

status_rows! {
    QUEUE_STATUS: QueueStatus;
    "CURDEPTH", true, true, |s| number(s.current_depth);
    "IPPROCS", true, true, |s| number(s.input_handles);
    "LGETDATE", false, true, |s| date(s.last_get);
    "LGETTIME", false, true, |s| time(s.last_get);
    "LPUTDATE", false, true, |s| date(s.last_put);
    "LPUTTIME", false, true, |s| time(s.last_put);
    "MSGAGE", true, true, |s| number(s.oldest_message_age_seconds.unwrap_or(0));
    "OPPROCS", true, true, |s| number(s.output_handles);
    "UNCOM", false, true, |s| yes_no(s.uncommitted > 0);
}

/// What DISPLAY QLOCAL shows besides the definition.
pub(crate) const QUEUE_RUNTIME: [&str; 3] = ["CURDEPTH", "IPPROCS", "OPPROCS"];

status_rows! {
    CHANNEL_STATUS: ChannelStatus;
    "BATCHES", true, false, |s| number(s.batches);
    "BATCHSZ", true, false, |s| number(u64::from(s.batch_size?));
    "BYTSRCVD", true, false, |s| number(s.bytes_received);
    "BYTSSENT", true, false, |s| number(s.bytes_sent);
    "CHSTADA", false, false, |s| date(s.started);
    "CHSTATI", false, false, |s| time(s.started);
    "CONNAME", false, true, |s| text(&s.connection_name);
    "CURLUWID", false, true, |s| luwid(s.current_luwid);
    "CURMSGS", true, true, |s| number(s.current_messages);
    "CURSEQNO", true, true, |s| number(s.current_sequence);
    "HBINT", true, false, |s| number(u64::from(s.heartbeat_interval?));
    "INDOUBT", false, true, |s| yes_no(s.in_doubt);
    "LONGRTS", true, false, |s| number(s.long_retries_left?);
    "LSTLUWID", false, true, |s| luwid(s.last_luwid);
    "LSTMSGDA", false, false, |s| date(s.last_message);
    "LSTMSGTI", false, false, |s| time(s.last_message);
    "LSTSEQNO", true, true, |s| number(s.last_sequence);
    "MAXMSGL", true, false, |s| number(u64::from(s.max_message_length?));
    "MCASTAT", false, false, |s| word(if s.mca_running { "RUNNING" } else { "NOT RUNNING" });
    "MSGS", true, false, |s| number(s.messages);
    "NPMSPEED", false, false, |s| word(match s.non_persistent_message_speed? {
        MessageSpeed::Fast => "FAST",
        MessageSpeed::Normal => "NORMAL",
    });
    "RQMNAME", false, true, |s| text(s.remote_queue_manager.as_ref().map_or("", AsRef::as_ref));
    "SHORTRTS", true, false, |s| number(s.short_retries_left?);
    "SSLCERTI", false, false, |s| text(&s.ssl_cert_issuer);
    "SSLPEER", false, false, |s| text(&s.ssl_peer);
    "STATUS", false, false, |s| word(s.state.word());
    "STOPREQ", false, false, |s| yes_no(s.stop_requested);
    "SUBSTATE", false, false, |s| word(&s.substate);
    "XMITQ", false, true, |s| text(s.transmission_queue.as_ref()?.as_str());
}

/// Keywords of IBM MQ that we do not show. Source: IBM MQ, "DISPLAY QSTATUS", "DISPLAY QUEUE".
const QUEUE_STATUS_NOT_SUPPORTED: &[&str] = &[
    "CURFSIZE", "CURMAXFS", "MEDIALOG", "MONQ", "QTIME", "APPLDESC", "APPLTAG", "APPLTYPE",
    "BROWSE", "CHANNEL", "CONN", "CONNAME", "HSTATE", "INPUT", "INQUIRE", "OPENOPTS", "OUTPUT",
    "PID", "SET", "TID", "URID", "URTYPE", "USERID", "ASTATE", "OPENTYPE",
];

/// Keywords of IBM MQ that we do not show. Source: IBM MQ, "DISPLAY CHSTATUS".
const CHANNEL_STATUS_NOT_SUPPORTED: &[&str] = &[
    "BUFSRCVD", "BUFSSENT", "CHLDISP", "COMPHDR", "COMPMSG", "COMPRATE", "COMPTIME", "CURSHCNV",
    "EXITTIME", "JOBNAME", "KAINT", "LOCLADDR", "MAXSHCNV", "MCAUSER", "MONCHL", "MONITOR",
    "NETTIME", "PORT", "QMNAME", "RAPPLTAG", "RPRODUCT", "RVERSION", "SECPROT", "SHORT",
    "SSLCERTU", "SSLCIPH", "SSLKEYDA", "SSLKEYTI", "SSLRKEYS", "STATCHL", "TPROOT", "XBATCHSZ",
    "XQMSGSA", "XQTIME",
];

/// A keyword that DISPLAY knows, and whether it is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) keyword: &'static str,
    pub(crate) number: bool,
    pub(crate) flag: bool,
    pub(crate) list: bool,
}

fn of_spec(spec: &'static ferrymq_objects::AttributeSpec) -> Shown {
    // `MAXPRTY` is shown only, so its form does not say that it is a number.
    let number = matches!(spec.form, AttributeForm::Number { .. }) || spec.keyword == "MAXPRTY";
    Shown {
        keyword: spec.keyword,
        number,
        flag: spec.form == AttributeForm::Flag,
        list: matches!(spec.form, AttributeForm::List { .. }),
    }
}

const fn plain(keyword: &'static str, number: bool) -> Shown {
    Shown {
        keyword,
        number,
        flag: false,
        list: false,
    }
}

fn of_status<T>(
    rows: &'static [StatusRow<T>],
    not_supported: &[&str],
    word: &str,
) -> Result<Shown, AttributeProblem> {
    rows.iter()
        .find(|r| r.keyword == word)
        .map(|r| plain(r.keyword, r.number))
        .ok_or(if not_supported.contains(&word) {
            AttributeProblem::NotSupported
        } else {
            AttributeProblem::Unknown
        })
}

/// The attribute that `word` means in a DISPLAY of `noun`.
pub(crate) fn shown(noun: DisplayNoun, word: &str) -> Result<Shown, AttributeProblem> {
    match noun {
        DisplayNoun::Queue { .. } => match word {
            "QUEUE" => Ok(plain("QUEUE", false)),
            "TYPE" | "QTYPE" => Ok(plain("TYPE", false)),
            "CURDEPTH" => Ok(plain("CURDEPTH", true)),
            "IPPROCS" => Ok(plain("IPPROCS", true)),
            "OPPROCS" => Ok(plain("OPPROCS", true)),
            other => any_queue_attribute(other).map(of_spec),
        },
        DisplayNoun::Channel { .. } => match word {
            "CHANNEL" => Ok(plain("CHANNEL", false)),
            "CHLTYPE" | "TYPE" => Ok(plain("CHLTYPE", false)),
            other => any_channel_attribute(other).map(of_spec),
        },
        DisplayNoun::Process => match word {
            "PROCESS" => Ok(plain("PROCESS", false)),
            other => process_attribute(other).map(of_spec),
        },
        DisplayNoun::ChannelRule { rule_type } => match word {
            "CHLAUTH" => Ok(plain("CHLAUTH", false)),
            "TYPE" => Ok(plain("TYPE", false)),
            "ALTDATE" => Ok(plain("ALTDATE", false)),
            "ALTTIME" => Ok(plain("ALTTIME", false)),
            other => channel_rule_attribute(rule_type, other).map(of_spec),
        },
        DisplayNoun::QueueManager => match word {
            "QMNAME" => Ok(plain("QMNAME", false)),
            other => queue_manager_attribute(other).map(of_spec),
        },
        DisplayNoun::QueueStatus => match word {
            "QUEUE" => Ok(plain("QUEUE", false)),
            "TYPE" => Ok(plain("TYPE", false)),
            other => of_status(QUEUE_STATUS, QUEUE_STATUS_NOT_SUPPORTED, other),
        },
        DisplayNoun::ChannelStatus { .. } => match word {
            "CHANNEL" => Ok(plain("CHANNEL", false)),
            "CHLTYPE" => Ok(plain("CHLTYPE", false)),
            other => of_status(CHANNEL_STATUS, CHANNEL_STATUS_NOT_SUPPORTED, other),
        },
    }
}

/// Every word that a DISPLAY of `noun` takes, for suggestions.
pub(crate) fn shown_words(noun: DisplayNoun) -> Vec<&'static str> {
    let of_kinds = |class: ObjectClass| {
        ObjectKind::ALL
            .into_iter()
            .filter(move |k| k.class() == class)
            .flat_map(|k| k.attributes().into_iter().map(|s| s.keyword))
    };
    let mut words = vec!["ALL", "WHERE"];
    match noun {
        DisplayNoun::Queue { .. } => {
            words.extend(QUEUE_RUNTIME);
            words.push("TYPE");
            words.extend(of_kinds(ObjectClass::Queue));
        }
        DisplayNoun::Channel { .. } => {
            words.push("CHLTYPE");
            words.extend(of_kinds(ObjectClass::Channel));
        }
        DisplayNoun::Process => words.extend(process_attributes().map(|s| s.keyword)),
        DisplayNoun::ChannelRule { rule_type } => {
            words.extend(["TYPE", "MATCH", "ALTDATE", "ALTTIME"]);
            words.extend(channel_rule_attributes(rule_type).map(|s| s.keyword));
        }
        DisplayNoun::QueueManager => words.extend(queue_manager_attributes().map(|s| s.keyword)),
        DisplayNoun::QueueStatus => words.extend(QUEUE_STATUS.iter().map(|r| r.keyword)),
        DisplayNoun::ChannelStatus { .. } => {
            words.extend(["CURRENT", "SAVED"]);
            words.extend(CHANNEL_STATUS.iter().map(|r| r.keyword));
        }
    }
    words
}
