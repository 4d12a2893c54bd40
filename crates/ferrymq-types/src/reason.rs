//! Reason codes: the contract with operators and programs. IBM MQ's numbers where it has one, ours from 9000 to 9999.

use core::fmt;

use crate::reason_pages::PAGES;

/// How a call ended. `MQCC_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompletionCode {
    /// `MQCC_OK`, 0.
    Ok,
    /// `MQCC_WARNING`, 1: done, with a caveat.
    Warning,
    /// `MQCC_FAILED`, 2.
    Failed,
}

impl CompletionCode {
    /// Its number.
    #[must_use]
    pub const fn get(self) -> u32 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Failed => 2,
        }
    }
}

/// A reason code: `MQRC_*`, `MQFB_*` or `MQRCCF_*` of IBM MQ, or one of ours (9000 to 9999).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReasonCode(u32);

/// Name, number and meaning of every reason code, a line each.
const TABLE: &str = include_str!("../reason_codes.tsv");

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl ReasonCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*
        }

        #[cfg(test)]
        const NAMED: &[(&str, ReasonCode)] = &[$((stringify!($name), ReasonCode::$name)),*];
    };
}

reasons! {
    /// No reason to report.
    NONE = 0;
    /// `MQFB_XMIT_Q_MSG_ERROR`: a message on a transmission queue has no valid transmission header.
    FEEDBACK_XMIT_Q_MSG_ERROR = 271;
    /// An alias points at a kind of queue that it may not.
    ALIAS_BASE_Q_TYPE_ERROR = 2001;
    /// The unit of work was backed out.
    BACKED_OUT = 2003;
    /// A character attribute that is to be set is too long.
    CHAR_ATTR_LENGTH_ERROR = 2006;
    /// The connection is lost; its unit of work is backed out.
    CONNECTION_BROKEN = 2009;
    /// More data came than the length that was said.
    DATA_LENGTH_ERROR = 2010;
    /// The name that a dynamic queue was to have is none.
    DYNAMIC_Q_NAME_ERROR = 2011;
    /// Expiry is zero or too large.
    EXPIRY_ERROR = 2013;
    /// GET(DISABLED).
    GET_INHIBITED = 2016;
    /// MAXHANDS reached.
    HANDLE_NOT_AVAILABLE = 2017;
    /// The handle is not valid.
    HOBJ_ERROR = 2019;
    /// Inhibit is neither allowed nor inhibited.
    INHIBIT_VALUE_ERROR = 2020;
    /// MAXUMSGS reached, or the unit of work is too large.
    SYNCPOINT_LIMIT_REACHED = 2024;
    /// No more connections.
    MAX_CONNS_LIMIT_REACHED = 2025;
    /// The descriptor is malformed.
    MD_ERROR = 2026;
    /// A request or a report without a reply-to queue.
    MISSING_REPLY_TO_Q = 2027;
    /// `MsgType` is out of range.
    MSG_TYPE_ERROR = 2029;
    /// Longer than the queue's MAXMSGL.
    MSG_TOO_BIG_FOR_Q = 2030;
    /// Longer than the queue manager's MAXMSGL.
    MSG_TOO_BIG_FOR_Q_MGR = 2031;
    /// No message within the wait.
    NO_MSG_AVAILABLE = 2033;
    /// The browse cursor is on no message.
    NO_MSG_UNDER_CURSOR = 2034;
    /// Not authorised.
    NOT_AUTHORIZED = 2035;
    /// The object cannot be browsed through this handle.
    NOT_OPEN_FOR_BROWSE = 2036;
    /// The object cannot be got from: it is not a local queue.
    NOT_OPEN_FOR_INPUT = 2037;
    /// The object cannot be asked through this handle.
    NOT_OPEN_FOR_INQUIRE = 2038;
    /// The object cannot be put to through this handle.
    NOT_OPEN_FOR_OUTPUT = 2039;
    /// The object cannot be set through this handle.
    NOT_OPEN_FOR_SET = 2040;
    /// The definition changed under an open handle.
    OBJECT_CHANGED = 2041;
    /// Somebody else uses the object.
    OBJECT_IN_USE = 2042;
    /// The object is not of a kind that this can be done to.
    OBJECT_TYPE_ERROR = 2043;
    /// An open option that this kind of object does not have.
    OPTION_NOT_VALID_FOR_TYPE = 2045;
    /// Options exclude each other or are not known.
    OPTIONS_ERROR = 2046;
    /// Persistence is not known.
    PERSISTENCE_ERROR = 2047;
    /// Persistent messages cannot go to a temporary dynamic queue.
    PERSISTENT_NOT_ALLOWED = 2048;
    /// Priority is above MAXPRTY: accepted, with a warning.
    PRIORITY_EXCEEDS_MAXIMUM = 2049;
    /// Priority is not a number from 0 to 9.
    PRIORITY_ERROR = 2050;
    /// PUT(DISABLED).
    PUT_INHIBITED = 2051;
    /// The queue was deleted while it was open.
    Q_DELETED = 2052;
    /// MAXDEPTH reached.
    Q_FULL = 2053;
    /// Messages are on the queue.
    Q_NOT_EMPTY = 2055;
    /// No space on the disk for the queue.
    Q_SPACE_NOT_AVAILABLE = 2056;
    /// The queue manager has another name.
    Q_MGR_NAME_ERROR = 2058;
    /// The queue manager cannot be reached.
    Q_MGR_NOT_AVAILABLE = 2059;
    /// Report options exclude each other.
    REPORT_OPTIONS_ERROR = 2061;
    /// The attribute is not known, or cannot be set.
    SELECTOR_ERROR = 2067;
    /// This kind of queue does not have the attribute.
    SELECTOR_NOT_FOR_TYPE = 2068;
    /// Memory for the request is not available.
    STORAGE_NOT_AVAILABLE = 2071;
    /// Syncpoint cannot be used here.
    SYNCPOINT_NOT_AVAILABLE = 2072;
    /// TriggerControl is neither on nor off.
    TRIGGER_CONTROL_ERROR = 2075;
    /// TriggerDepth is out of range.
    TRIGGER_DEPTH_ERROR = 2076;
    /// TriggerMsgPriority is out of range.
    TRIGGER_MSG_PRIORITY_ERR = 2077;
    /// TriggerType is not known.
    TRIGGER_TYPE_ERROR = 2078;
    /// Truncated and accepted: a warning.
    TRUNCATED_MSG_ACCEPTED = 2079;
    /// Truncated and refused: the message stays.
    TRUNCATED_MSG_FAILED = 2080;
    /// The target of an alias does not exist.
    UNKNOWN_ALIAS_BASE_Q = 2082;
    /// The object does not exist.
    UNKNOWN_OBJECT_NAME = 2085;
    /// No way leads to the queue manager.
    UNKNOWN_REMOTE_Q_MGR = 2087;
    /// The wait interval is not valid.
    WAIT_INTERVAL_ERROR = 2090;
    /// What should be a transmission queue is no local queue.
    XMIT_Q_TYPE_ERROR = 2091;
    /// What should be a transmission queue has another USAGE.
    XMIT_Q_USAGE_ERROR = 2092;
    /// The queue was not opened for passing all context on.
    NOT_OPEN_FOR_PASS_ALL = 2093;
    /// The queue was not opened for passing an identity on.
    NOT_OPEN_FOR_PASS_IDENT = 2094;
    /// The queue was not opened for setting all context.
    NOT_OPEN_FOR_SET_ALL = 2095;
    /// The queue was not opened for setting an identity.
    NOT_OPEN_FOR_SET_IDENT = 2096;
    /// The handle whose context is to be passed on keeps none.
    CONTEXT_HANDLE_ERROR = 2097;
    /// No message was got yet whose context could be passed on.
    CONTEXT_NOT_AVAILABLE = 2098;
    /// A queue of the name that a dynamic queue was to have exists.
    OBJECT_ALREADY_EXISTS = 2100;
    /// The object is damaged.
    OBJECT_DAMAGED = 2101;
    /// Not enough resources of the system.
    RESOURCE_PROBLEM = 2102;
    /// `Format` is not valid.
    FORMAT_ERROR = 2110;
    /// The character set of the data is not known: not converted.
    SOURCE_CCSID_ERROR = 2111;
    /// The encoding of integers in the data is not known: not converted.
    SOURCE_INTEGER_ENC_ERROR = 2112;
    /// The wanted character set is not known: not converted.
    TARGET_CCSID_ERROR = 2115;
    /// The wanted encoding of integers is not known: not converted.
    TARGET_INTEGER_ENC_ERROR = 2116;
    /// The data could not be converted: it is given as it was put.
    NOT_CONVERTED = 2119;
    /// The converted data is longer than the buffer: it is given as it was put.
    CONVERTED_MSG_TOO_BIG = 2120;
    /// The queue manager is quiescing.
    Q_MGR_QUIESCING = 2161;
    /// The queue manager is stopping.
    Q_MGR_STOPPING = 2162;
    /// A remote definition without RNAME was opened as a queue.
    REMOTE_Q_NAME_ERROR = 2184;
    /// Messages of one group differ in persistence.
    INCONSISTENT_PERSISTENCE = 2185;
    /// No space on the medium.
    STORAGE_MEDIUM_FULL = 2192;
    /// Something happened that should not.
    UNEXPECTED_ERROR = 2195;
    /// The transmission queue that a definition names does not exist.
    UNKNOWN_XMIT_Q = 2196;
    /// The default transmission queue does not exist.
    UNKNOWN_DEF_XMIT_Q = 2197;
    /// The default transmission queue is no local queue.
    DEF_XMIT_Q_TYPE_ERROR = 2198;
    /// The default transmission queue has another USAGE.
    DEF_XMIT_Q_USAGE_ERROR = 2199;
    /// No message is locked by the handle's browse.
    NO_MSG_LOCKED = 2209;
    /// Longer than the channel's negotiated MAXMSGL.
    MSG_TOO_BIG_FOR_CHANNEL = 2218;
    /// A call through the handle is not done yet.
    CALL_IN_PROGRESS = 2219;
    /// A group was left incomplete.
    INCOMPLETE_GROUP = 2241;
    /// Calls for one group differ in their unit of work.
    INCONSISTENT_UOW = 2245;
    /// The message under the cursor is not the next one in logical order.
    INVALID_MSG_UNDER_CURSOR = 2246;
    /// Match options contradict logical order.
    MATCH_OPTIONS_ERROR = 2247;
    /// `MsgFlags` has a flag that is not known.
    MSG_FLAGS_ERROR = 2249;
    /// The number in the group is not 1 to 999,999,999.
    MSG_SEQ_NUMBER_ERROR = 2250;
    /// `OriginalLength` is not a length.
    ORIGINAL_LENGTH_ERROR = 2252;
    /// The unit-of-work handle is not valid.
    UOW_NOT_AVAILABLE = 2255;
    /// A put that may be repeated does not name its group.
    GROUP_ID_ERROR = 2258;
    /// A browse changed its order on the way.
    INCONSISTENT_BROWSE = 2259;
    /// A rules and formatting header is malformed.
    RFH_ERROR = 2334;
    /// A folder of a rules and formatting header is malformed.
    RFH_STRING_ERROR = 2335;
    /// A property's name is none, or is one that applications may not set.
    PROPERTY_NAME_ERROR = 2442;
    /// Segments are not supported.
    SEGMENTATION_NOT_ALLOWED = 2443;
    /// A selector cannot be parsed.
    SELECTOR_SYNTAX_ERROR = 2459;
    /// The value of a property does not fit its type.
    PROPERTY_TYPE_ERROR = 2473;
    /// The properties of a message are too many or too long together.
    PROPERTIES_TOO_BIG = 2478;
    /// A selector names no property and is not TRUE.
    SELECTOR_ALWAYS_FALSE = 2504;
    /// A selector where nothing is selected: the queue is not opened for input or browse.
    SELECTOR_INVALID_FOR_TYPE = 2516;
    /// A selector is too long.
    SELECTION_STRING_ERROR = 2519;
    /// The host cannot be reached.
    HOST_NOT_AVAILABLE = 2538;
    /// Definitions cannot change: no majority.
    NO_QUORUM = 9001;
    /// Not known whether it took effect.
    IN_DOUBT = 9002;
    /// Stored data is damaged.
    CORRUPT_STORE = 9003;
    /// A limit was reached.
    LIMIT_EXCEEDED = 9004;
    /// The ends of a channel disagree.
    CHANNEL_SEQUENCE_ERROR = 9005;
    /// A newer connection of the channel has bound.
    CHANNEL_SUPERSEDED = 9006;
    /// The queue manager stops after a failed write.
    STOPPING = 9007;
}

impl ReasonCode {
    /// From its number; any number is a reason code, since applications have their own.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Every known code: name, number, meaning.
    pub fn all() -> impl Iterator<Item = (&'static str, u32, &'static str)> {
        TABLE.lines().skip(1).filter_map(|line| {
            let mut fields = line.split('\t');
            Some((fields.next()?, fields.next()?.parse().ok()?, fields.next()?))
        })
    }

    /// Its name, such as `MQRC_Q_FULL`; `None` for a number that has none.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Self::all()
            .find(|(_, value, _)| *value == self.0)
            .map(|(name, ..)| name)
    }

    /// What it means, in a line.
    #[must_use]
    pub fn meaning(self) -> Option<&'static str> {
        Self::all()
            .find(|(_, value, _)| *value == self.0)
            .map(|(.., meaning)| meaning)
    }

    /// Its page in Markdown: what happened, likely causes, what to do. `None` for a code that FerryMQ does not return.
    #[must_use]
    pub fn page(self) -> Option<&'static str> {
        let found = PAGES.iter().find(|(value, _)| *value == self.0);
        found.map(|(_, page)| *page)
    }

    /// From its name in any case, with or without `MQRC_`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        Self::all()
            .find(|(n, ..)| *n == name || n.strip_prefix("MQRC_") == Some(name.as_str()))
            .map(|(_, value, _)| Self(value))
    }
}

impl fmt::Display for ReasonCode {
    /// `MQRC_Q_FULL (2053)`, or the number alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_is_in_the_table_under_its_name() {
        for (name, code) in NAMED {
            let known = code
                .name()
                .unwrap_or_else(|| panic!("{name} is not in the table"));
            let short = known
                .trim_start_matches("MQRC_")
                .trim_start_matches("FMQRC_")
                .trim_start_matches("MQFB_");
            assert_eq!(name.trim_start_matches("FEEDBACK_"), short);
            assert!(code.meaning().is_some());
        }
    }

    #[test]
    fn every_constant_has_a_page_for_operators() {
        for (name, code) in NAMED {
            let page = code
                .page()
                .unwrap_or_else(|| panic!("{name} has no page in reason_codes/"));
            let known = code.name().unwrap_or_default();
            let title = format!("# {} {known}\n", code.get());
            assert!(page.starts_with(&title), "{name}: not {title:?}");
        }
    }

    #[test]
    fn every_page_says_what_happened_why_and_what_to_do() {
        for (value, page) in PAGES {
            let headings: Vec<&str> = page.lines().filter(|l| l.starts_with("## ")).collect();
            assert_eq!(
                headings,
                ["## What happened", "## Likely causes", "## What to do"],
                "{value}"
            );
            assert!(
                NAMED.iter().any(|(_, code)| code.get() == *value),
                "{value}"
            );
        }
        assert!(PAGES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn numbers_in_the_table_are_unique() {
        let mut seen = std::collections::BTreeMap::new();
        for (name, value, _) in ReasonCode::all() {
            assert_eq!(
                seen.insert(value, name),
                None,
                "{name} and another are {value}"
            );
        }
        assert!(seen.len() > 300);
    }

    #[test]
    fn codes_print_as_operators_know_them() {
        assert_eq!(ReasonCode::Q_FULL.to_string(), "MQRC_Q_FULL (2053)");
        assert_eq!(ReasonCode::new(77_777).to_string(), "77777");
        assert_eq!(ReasonCode::from_name("q_full"), Some(ReasonCode::Q_FULL));
    }
}
