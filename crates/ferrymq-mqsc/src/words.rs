//! Verbs and nouns, their short forms, and which of them go together.
//!
//! Source: IBM MQ, "Script (MQSC) commands".

/// A word with its short forms.
struct Entry {
    word: &'static str,
    /// Every shortening of at least this many letters is accepted too.
    letters_min: usize,
    others: &'static [&'static str],
}

const fn entry(word: &'static str, letters_min: usize) -> Entry {
    Entry {
        word,
        letters_min,
        others: &[],
    }
}

const fn whole(word: &'static str) -> Entry {
    entry(word, usize::MAX)
}

const VERBS: &[Entry] = &[
    entry("ALTER", 3),
    whole("ARCHIVE"),
    whole("BACKUP"),
    whole("CLEAR"),
    entry("DEFINE", 3),
    entry("DELETE", 3),
    entry("DISPLAY", 3),
    whole("MOVE"),
    whole("PING"),
    whole("PURGE"),
    whole("RECOVER"),
    entry("REFRESH", 3),
    whole("RESET"),
    whole("RESOLVE"),
    entry("RESUME", 3),
    whole("RVERIFY"),
    whole("SET"),
    entry("START", 3),
    whole("STOP"),
    whole("SUSPEND"),
];

const NOUNS: &[Entry] = &[
    whole("APSTATUS"),
    whole("ARCHIVE"),
    whole("AUTHINFO"),
    whole("AUTHREC"),
    whole("AUTHSERV"),
    whole("BUFFPOOL"),
    whole("CFSTATUS"),
    whole("CFSTRUCT"),
    Entry {
        word: "CHANNEL",
        letters_min: 4,
        others: &["CHL"],
    },
    whole("CHINIT"),
    whole("CHLAUTH"),
    entry("CHSTATUS", 3),
    whole("CLUSQMGR"),
    whole("CLUSTER"),
    whole("CMDSERV"),
    whole("COMMINFO"),
    whole("CONN"),
    whole("ENTAUTH"),
    whole("GROUP"),
    whole("INDOUBT"),
    Entry {
        word: "LISTENER",
        letters_min: 3,
        others: &["LSTR"],
    },
    whole("LOG"),
    entry("LSSTATUS", 2),
    Entry {
        word: "NAMELIST",
        letters_min: 3,
        others: &["NL"],
    },
    whole("POLICY"),
    entry("PROCESS", 3),
    whole("PSID"),
    whole("PUBSUB"),
    entry("QALIAS", 2),
    entry("QCLUSTER", 2),
    entry("QLOCAL", 2),
    whole("QMGR"),
    whole("QMODEL"),
    whole("QMSTATUS"),
    entry("QREMOTE", 2),
    entry("QSTATUS", 2),
    entry("QUEUE", 1),
    whole("SBSTATUS"),
    whole("SECURITY"),
    whole("SERVICE"),
    whole("SMDS"),
    whole("STGCLASS"),
    whole("SUB"),
    whole("SVSTATUS"),
    whole("SYSTEM"),
    whole("TCLUSTER"),
    whole("THREAD"),
    whole("TOPIC"),
    whole("TOPICSTR"),
    whole("TPSTATUS"),
    whole("TRACE"),
    whole("USAGE"),
];

/// Which nouns go with a verb.
const COMMANDS: &[(&str, &[&str])] = &[
    (
        "ALTER",
        &[
            "AUTHINFO", "BUFFPOOL", "CFSTRUCT", "CHANNEL", "COMMINFO", "LISTENER", "NAMELIST",
            "PROCESS", "PSID", "QALIAS", "QLOCAL", "QMGR", "QMODEL", "QREMOTE", "SECURITY",
            "SERVICE", "SMDS", "STGCLASS", "SUB", "TOPIC", "TRACE",
        ],
    ),
    ("ARCHIVE", &["LOG"]),
    ("BACKUP", &["CFSTRUCT"]),
    ("CLEAR", &["QLOCAL", "TOPICSTR"]),
    (
        "DEFINE",
        &[
            "AUTHINFO", "BUFFPOOL", "CFSTRUCT", "CHANNEL", "COMMINFO", "LISTENER", "LOG",
            "NAMELIST", "PROCESS", "PSID", "QALIAS", "QLOCAL", "QMODEL", "QREMOTE", "SERVICE",
            "STGCLASS", "SUB", "TOPIC",
        ],
    ),
    (
        "DELETE",
        &[
            "AUTHINFO", "AUTHREC", "BUFFPOOL", "CFSTRUCT", "CHANNEL", "COMMINFO", "LISTENER",
            "NAMELIST", "POLICY", "PROCESS", "PSID", "QALIAS", "QLOCAL", "QMODEL", "QREMOTE",
            "SERVICE", "STGCLASS", "SUB", "TOPIC",
        ],
    ),
    (
        "DISPLAY",
        &[
            "APSTATUS", "ARCHIVE", "AUTHINFO", "AUTHREC", "AUTHSERV", "CFSTATUS", "CFSTRUCT",
            "CHANNEL", "CHINIT", "CHLAUTH", "CHSTATUS", "CLUSQMGR", "CMDSERV", "COMMINFO", "CONN",
            "ENTAUTH", "GROUP", "LISTENER", "LOG", "LSSTATUS", "NAMELIST", "POLICY", "PROCESS",
            "PUBSUB", "QALIAS", "QCLUSTER", "QLOCAL", "QMGR", "QMODEL", "QMSTATUS", "QREMOTE",
            "QSTATUS", "QUEUE", "SBSTATUS", "SECURITY", "SERVICE", "SMDS", "STGCLASS", "SUB",
            "SVSTATUS", "SYSTEM", "TCLUSTER", "THREAD", "TOPIC", "TPSTATUS", "TRACE", "USAGE",
        ],
    ),
    ("MOVE", &["QLOCAL"]),
    ("PING", &["CHANNEL", "QMGR"]),
    ("PURGE", &["CHANNEL"]),
    ("RECOVER", &["CFSTRUCT"]),
    ("REFRESH", &["CLUSTER", "QMGR", "SECURITY"]),
    ("RESET", &["CFSTRUCT", "CHANNEL", "CLUSTER", "QMGR", "SMDS"]),
    ("RESOLVE", &["CHANNEL", "INDOUBT"]),
    ("RESUME", &["QMGR"]),
    ("RVERIFY", &["SECURITY"]),
    (
        "SET",
        &["ARCHIVE", "AUTHREC", "CHLAUTH", "LOG", "POLICY", "SYSTEM"],
    ),
    (
        "START",
        &[
            "CHANNEL", "CHINIT", "CMDSERV", "LISTENER", "QMGR", "SERVICE", "TRACE",
        ],
    ),
    (
        "STOP",
        &[
            "CHANNEL", "CHINIT", "CMDSERV", "CONN", "LISTENER", "QMGR", "SERVICE", "TRACE",
        ],
    ),
    ("SUSPEND", &["QMGR"]),
];

fn find(entries: &'static [Entry], word: &str) -> Option<&'static str> {
    let exact = |e: &&Entry| e.word == word || e.others.contains(&word);
    let short = |e: &&Entry| word.len() >= e.letters_min && e.word.starts_with(word);
    // `QM` is the model queue, never the queue manager.
    if word == "QM" {
        return Some("QMODEL");
    }
    entries
        .iter()
        .find(exact)
        .or_else(|| entries.iter().find(short))
        .map(|e| e.word)
}

/// The verb that `word`, in upper case, means.
pub(crate) fn verb(word: &str) -> Option<&'static str> {
    find(VERBS, word).filter(|v| *v != "QMODEL")
}

/// The noun that `word`, in upper case, means.
pub(crate) fn noun(word: &str) -> Option<&'static str> {
    find(NOUNS, word)
}

/// The verbs in full.
pub(crate) fn verbs() -> impl Iterator<Item = &'static str> {
    VERBS.iter().map(|e| e.word)
}

/// The nouns that go with `verb`.
pub(crate) fn nouns(verb: &str) -> &'static [&'static str] {
    COMMANDS
        .iter()
        .find(|(v, _)| *v == verb)
        .map_or(&[], |(_, nouns)| *nouns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_those_that_operators_type() {
        for (word, expected) in [
            ("DEF", "DEFINE"),
            ("DEFIN", "DEFINE"),
            ("ALT", "ALTER"),
            ("DEL", "DELETE"),
            ("DIS", "DISPLAY"),
            ("DISP", "DISPLAY"),
            ("STA", "START"),
            ("REF", "REFRESH"),
            ("RES", "RESUME"),
        ] {
            assert_eq!(verb(word), Some(expected), "{word}");
        }
        for (word, expected) in [
            ("QL", "QLOCAL"),
            ("QR", "QREMOTE"),
            ("QA", "QALIAS"),
            ("QM", "QMODEL"),
            ("QMGR", "QMGR"),
            ("Q", "QUEUE"),
            ("QS", "QSTATUS"),
            ("CHL", "CHANNEL"),
            ("CHAN", "CHANNEL"),
            ("CHS", "CHSTATUS"),
            ("NL", "NAMELIST"),
            ("PRO", "PROCESS"),
            ("LSTR", "LISTENER"),
        ] {
            assert_eq!(noun(word), Some(expected), "{word}");
        }
        for none in ["", "D", "DE", "X", "QM", "STO"] {
            assert_eq!(verb(none), None, "{none}");
        }
        for none in ["", "CH", "QMG", "SECURTY"] {
            assert_eq!(noun(none), None, "{none}");
        }
    }
}
