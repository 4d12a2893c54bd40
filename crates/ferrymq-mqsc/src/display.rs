//! What DISPLAY finds.

use ferrymq_objects::{AttributeValue, Channel, ChannelRule, Queue, QueueManager};

use crate::display_table::{CHANNEL_STATUS, QUEUE_RUNTIME, QUEUE_STATUS};
use crate::statement::{Display, DisplayNoun, Filter, FilterValue, Operator, Pattern, Requested};
use crate::status::{ChannelState, ChannelStatus, QueueStatus, RuntimeStatus};

/// An object that DISPLAY found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayedObject {
    /// Such as `AMQ8409I: Display Queue details.`
    pub heading: String,
    /// Keyword and value, in the order of display. A word that stands alone, such as `NOTRIGGER`, has no value.
    pub pairs: Vec<(String, Option<AttributeValue>)>,
}

/// An object before the choice of attributes.
struct Found {
    heading: &'static str,
    /// Always shown. The first two, name and type, come first; the others among the rest.
    keys: Vec<(&'static str, AttributeValue)>,
    /// The rest, in alphabetical order.
    rest: Vec<(&'static str, AttributeValue)>,
}

impl Found {
    fn get(&self, keyword: &str) -> Option<&AttributeValue> {
        let mut all = self.keys.iter().chain(&self.rest);
        all.find(|(k, _)| *k == keyword).map(|(_, v)| v)
    }
}

/// Evaluates a DISPLAY. An empty answer means that nothing was found; for `DISPLAY QMGR` there is always one.
///
/// Attributes that an object does not have are left out silently.
#[must_use]
pub fn display(
    display: &Display,
    queue_manager: &QueueManager,
    status: &RuntimeStatus,
) -> Vec<DisplayedObject> {
    let found = match display.noun {
        DisplayNoun::Queue { kind } => queue_manager
            .queues
            .values()
            .filter(|q| kind.is_none_or(|k| q.kind() == k))
            .filter(|q| display.name.matches(q.base().name.as_str()))
            .map(|q| queue(q, status))
            .collect(),
        DisplayNoun::Channel { kind } => queue_manager
            .channels
            .values()
            .filter(|c| kind.is_none_or(|k| c.kind() == k))
            .filter(|c| display.name.matches(c.base().name.as_str()))
            .map(channel)
            .collect(),
        DisplayNoun::Process => queue_manager
            .processes
            .values()
            .filter(|p| display.name.matches(p.name.as_str()))
            .map(|p| Found {
                heading: "AMQ8407I: Display Process details.",
                keys: vec![("PROCESS", text(p.name.as_str()))],
                rest: p.displayed(),
            })
            .collect(),
        DisplayNoun::QueueManager => vec![Found {
            heading: "AMQ8408I: Display Queue Manager details.",
            keys: vec![("QMNAME", text(queue_manager.attributes.name.as_str()))],
            rest: queue_manager.attributes.displayed(),
        }],
        DisplayNoun::ChannelRule { rule_type } => queue_manager
            .channel_rules
            .values()
            .flatten()
            .filter(|r| rule_type.is_none_or(|t| r.rule_type == t))
            .filter(|r| display.name.matches(&r.profile))
            .map(channel_rule)
            .collect(),
        DisplayNoun::QueueStatus => queue_manager
            .queues
            .values()
            .filter(|q| display.name.matches(q.base().name.as_str()))
            .filter_map(|q| queue_status(q, status))
            .collect(),
        DisplayNoun::ChannelStatus { saved } => channel_statuses(display, saved, status),
    };
    found
        .into_iter()
        .filter(|f| {
            display
                .filter
                .as_ref()
                .is_none_or(|filter| passes(filter, f))
        })
        .map(|f| choose(display, f))
        .collect()
}

fn text(t: &str) -> AttributeValue {
    AttributeValue::Text(t.to_owned())
}

fn word(w: &str) -> AttributeValue {
    AttributeValue::Word(w.to_owned())
}

fn status_of(queue: &Queue, status: &RuntimeStatus) -> QueueStatus {
    status
        .queues
        .get(&queue.base().name)
        .copied()
        .unwrap_or_default()
}

fn queue(queue: &Queue, status: &RuntimeStatus) -> Found {
    let mut rest = queue.displayed();
    if let Queue::Local(_) = queue {
        let now = status_of(queue, status);
        // The queue manager switched it off itself.
        if now.trigger_used
            && let Some((_, trigger)) = rest.iter_mut().find(|(k, _)| *k == "TRIGGER")
        {
            *trigger = AttributeValue::Flag(false);
        }
        rest.extend(
            QUEUE_STATUS
                .iter()
                .filter(|r| QUEUE_RUNTIME.contains(&r.keyword))
                .filter_map(|r| Some((r.keyword, (r.get)(&now)?))),
        );
        rest.sort_by_key(|(k, _)| *k);
    }
    Found {
        heading: "AMQ8409I: Display Queue details.",
        keys: vec![
            ("QUEUE", text(queue.base().name.as_str())),
            ("TYPE", word(queue.kind().type_word())),
        ],
        rest,
    }
}

fn channel(channel: &Channel) -> Found {
    Found {
        heading: "AMQ8414I: Display Channel details.",
        keys: vec![
            ("CHANNEL", text(channel.base().name.as_str())),
            ("CHLTYPE", word(channel.kind().type_word())),
        ],
        rest: channel.displayed(),
    }
}

fn queue_status(queue: &Queue, status: &RuntimeStatus) -> Option<Found> {
    let Queue::Local(_) = queue else {
        return None;
    };
    let now = status_of(queue, status);
    Some(Found {
        heading: "AMQ8450I: Display queue status details.",
        keys: vec![
            ("QUEUE", text(queue.base().name.as_str())),
            ("TYPE", word("QUEUE")),
        ],
        rest: QUEUE_STATUS
            .iter()
            .filter_map(|r| Some((r.keyword, (r.get)(&now)?)))
            .collect(),
    })
}

fn channel_rule(rule: &ChannelRule) -> Found {
    Found {
        heading: "AMQ8878I: Display channel authentication record details.",
        keys: vec![
            ("CHLAUTH", text(&rule.profile)),
            ("TYPE", word(rule.rule_type.type_word())),
        ],
        rest: rule.displayed(),
    }
}

/// A channel authentication record with everything that there is to show.
#[must_use]
pub fn displayed_rule(rule: &ChannelRule) -> DisplayedObject {
    let all = Display {
        noun: DisplayNoun::ChannelRule { rule_type: None },
        name: Pattern::Exact(rule.profile.clone()),
        filter: None,
        requested: Requested::All,
        connection_name: None,
        transmission_queue: None,
    };
    choose(&all, channel_rule(rule))
}

/// What tells a channel authentication record from others: always shown.
const RULE_KEYS: [&str; 7] = [
    "ADDRLIST", "USERLIST", "CLNTUSER", "QMNAME", "SSLPEER", "SSLCERTI", "ADDRESS",
];

fn channel_statuses(display: &Display, saved: bool, status: &RuntimeStatus) -> Vec<Found> {
    let wanted = |value: &Option<String>, has: &str| {
        value.as_ref().is_none_or(|v| Pattern::new(v).matches(has))
    };
    let transmission_queue = |s: &ChannelStatus| {
        s.transmission_queue
            .as_ref()
            .map_or("", AsRef::as_ref)
            .to_owned()
    };
    status
        .channels
        .iter()
        .filter(|s| saved || s.state != ChannelState::Inactive)
        .filter(|s| display.name.matches(s.name.as_str()))
        .filter(|s| wanted(&display.connection_name, &s.connection_name))
        .filter(|s| wanted(&display.transmission_queue, &transmission_queue(s)))
        .map(|s| channel_status(s, saved))
        .collect()
}

/// The keywords that every row of CHSTATUS has.
const CURRENT_KEYS: [&str; 5] = ["CONNAME", "RQMNAME", "STATUS", "SUBSTATE", "XMITQ"];
const SAVED_KEYS: [&str; 3] = ["CONNAME", "RQMNAME", "XMITQ"];

fn channel_status(status: &ChannelStatus, saved: bool) -> Found {
    let key = |keyword: &str| {
        if saved {
            SAVED_KEYS.contains(&keyword)
        } else {
            CURRENT_KEYS.contains(&keyword)
        }
    };
    let rows = CHANNEL_STATUS
        .iter()
        .filter(|r| r.saved || !saved)
        .filter_map(|r| Some((r.keyword, (r.get)(status)?)));
    let (of_key, rest): (Vec<_>, Vec<_>) = rows.partition(|(k, _)| key(k));
    let mut keys = vec![
        ("CHANNEL", text(status.name.as_str())),
        ("CHLTYPE", word(status.channel_type.type_word())),
    ];
    let view = if saved { "SAVED" } else { "CURRENT" };
    keys.push((view, AttributeValue::Flag(true)));
    keys.extend(of_key);
    Found {
        heading: "AMQ8417I: Display Channel Status details.",
        keys,
        rest,
    }
}

fn passes(filter: &Filter, found: &Found) -> bool {
    let Some(value) = found.get(&filter.keyword) else {
        return false;
    };
    let order = match (value, &filter.value) {
        (AttributeValue::Number(n), FilterValue::Number(with)) => n.cmp(with),
        (AttributeValue::Text(t) | AttributeValue::Word(t), FilterValue::Text(with)) => {
            match filter.operator {
                Operator::Like => return Pattern::new(with).matches(t),
                Operator::NotLike => return !Pattern::new(with).matches(t),
                Operator::Less
                | Operator::Greater
                | Operator::LessOrEqual
                | Operator::GreaterOrEqual
                | Operator::Equal
                | Operator::NotEqual
                | Operator::Contains
                | Operator::Excludes
                | Operator::ContainsLike
                | Operator::ExcludesLike => t.as_str().cmp(with),
            }
        }
        (AttributeValue::List(items), FilterValue::Text(with)) => {
            let contains = |like: bool| {
                let pattern = Pattern::new(with);
                items
                    .iter()
                    .any(|i| if like { pattern.matches(i) } else { i == with })
            };
            return match filter.operator {
                Operator::Contains => contains(false),
                Operator::Excludes => !contains(false),
                Operator::ContainsLike => contains(true),
                Operator::ExcludesLike => !contains(true),
                Operator::Less
                | Operator::Greater
                | Operator::LessOrEqual
                | Operator::GreaterOrEqual
                | Operator::Equal
                | Operator::NotEqual
                | Operator::Like
                | Operator::NotLike => false,
            };
        }
        (
            AttributeValue::Number(_)
            | AttributeValue::Text(_)
            | AttributeValue::Word(_)
            | AttributeValue::Flag(_)
            | AttributeValue::List(_),
            FilterValue::Number(_) | FilterValue::Text(_),
        ) => return false,
    };
    match filter.operator {
        Operator::Less => order.is_lt(),
        Operator::Greater => order.is_gt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Like
        | Operator::NotLike
        | Operator::Contains
        | Operator::Excludes
        | Operator::ContainsLike
        | Operator::ExcludesLike => false,
    }
}

/// The key attributes and those asked for, the filtered one included.
///
/// Source: IBM MQ: without any asked for, all for one object by its full name, the keys alone for several.
fn choose(display: &Display, found: Found) -> DisplayedObject {
    let everything = match &display.requested {
        Requested::All => true,
        Requested::Unsaid => {
            display.noun == DisplayNoun::QueueManager
                || (display.filter.is_none() && !display.name.is_generic())
        }
        Requested::These(_) => false,
    };
    let filtered = display.filter.as_ref().map(|f| f.keyword.as_str());
    let of_rule = matches!(display.noun, DisplayNoun::ChannelRule { .. });
    let asked = |keyword: &str| {
        everything
            || (of_rule && RULE_KEYS.contains(&keyword))
            || filtered == Some(keyword)
            || match &display.requested {
                Requested::These(these) => these.iter().any(|t| t == keyword),
                Requested::All | Requested::Unsaid => false,
            }
    };
    let asked_for = found.rest.into_iter().filter(|(k, _)| asked(k));
    let mut keys = found.keys.into_iter();
    let lead: Vec<_> = keys.by_ref().take(2).collect();
    let mut rest: Vec<_> = keys.chain(asked_for).collect();
    // Records have an order of their own.
    if !of_rule {
        rest.sort_by_key(|(k, _)| *k);
    }
    DisplayedObject {
        heading: found.heading.to_owned(),
        pairs: lead
            .into_iter()
            .chain(rest)
            .map(|(keyword, value)| match value {
                AttributeValue::Flag(true) => (keyword.to_owned(), None),
                AttributeValue::Flag(false) => (format!("NO{keyword}"), None),
                AttributeValue::Number(_)
                | AttributeValue::Text(_)
                | AttributeValue::Word(_)
                | AttributeValue::List(_) => (keyword.to_owned(), Some(value)),
            })
            .collect(),
    }
}

/// Width of a column, blanks included.
const COLUMN: usize = 40;

/// The longest cell that shares its line.
const CELL_MAX: usize = 37;

impl DisplayedObject {
    /// The lines that `runmqsc` would print: the heading, then two columns that start at characters 4 and 44.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.heading.clone()];
        let mut left: Option<String> = None;
        for (keyword, value) in &self.pairs {
            let cell = match value {
                None => keyword.clone(),
                Some(value) => format!("{keyword}({})", printed(value)),
            };
            // A list begins on a line of its own.
            let listed = matches!(value, Some(AttributeValue::List(_)));
            let short = cell.chars().count() <= CELL_MAX && !listed;
            match left.take() {
                Some(first) if short => lines.push(format!("   {first:<COLUMN$}{cell}")),
                Some(first) => {
                    lines.push(format!("   {first}"));
                    lines.push(format!("   {cell}"));
                }
                None if short => left = Some(cell),
                None => lines.push(format!("   {cell}")),
            }
        }
        lines.extend(left.map(|cell| format!("   {cell}")));
        lines
    }
}

/// A value between its brackets. Control characters, which a partner's certificate may hold, are not passed on to a terminal.
fn printed(value: &AttributeValue) -> String {
    let text = match value {
        AttributeValue::Number(n) => return n.to_string(),
        AttributeValue::Text(t) | AttributeValue::Word(t) => t.clone(),
        AttributeValue::List(items) => items.join(","),
        AttributeValue::Flag(_) => String::new(),
    };
    if text.is_empty() {
        " ".to_owned()
    } else {
        clean(&text)
    }
}

/// Without control characters but the tab.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\t' { '?' } else { c })
        .collect()
}
