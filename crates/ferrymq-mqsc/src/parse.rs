//! From words to statements.

use ferrymq_objects::{
    AttributeForm, AttributeProblem, AttributeSpec, AttributeValue, Attributes, DeleteKind,
    ObjectKind, queue_manager_attribute, queue_manager_attributes,
};
use ferrymq_types::{ChannelName, NameError, QueueName};

use crate::channel_commands::{
    ping_channel, reset_channel, resolve_channel, start_channel, stop_channel,
};
use crate::channel_rule_commands::{profile, refresh_security, rule_type, set_channel_rule};
use crate::display_table::{shown, shown_words};
use crate::lex::{Clause, Item, lex};
use crate::statement::{
    ChannelCheck, Display, DisplayNoun, Filter, FilterValue, Operator, Pattern, Requested,
    Statement, settable_words,
};
use crate::{SyntaxError, words};

/// Reads one command, its lines joined.
///
/// # Errors
/// [`SyntaxError`] with the place, the word and, if one is near, the word that was probably meant. A command or an attribute
/// of IBM MQ that we do not have is no error here but [`Statement::NotSupported`].
pub fn parse(command: &str) -> Result<Statement, SyntaxError> {
    let clauses = lex(command)?;
    let mut rest = Clauses {
        clauses: clauses.into_iter(),
    };
    let Some(first) = rest.next() else {
        return Err(SyntaxError::at(0, "", "there is no command"));
    };
    if matches!(first.keyword.as_str(), "END" | "QUIT" | "EXIT") && first.items.is_none() {
        return rest.none_left().map(|()| Statement::End);
    }
    let Some(verb) = words::verb(&first.keyword).filter(|_| first.items.is_none()) else {
        return Err(wrong(&first, "not a command").suggest(words::verbs()));
    };
    let Some(second) = rest.next() else {
        let message = format!("{verb} needs to say what of");
        return Err(SyntaxError::at(first.end, "", message));
    };
    let nouns = words::nouns(verb);
    let Some(noun) = words::noun(&second.keyword).filter(|n| nouns.contains(n)) else {
        let message = format!("{verb} does not go with this");
        return Err(wrong(&second, message).suggest(nouns.iter().copied()));
    };
    statement(verb, noun, &second, rest)
}

/// The clauses that are not read yet.
pub(crate) struct Clauses {
    clauses: std::vec::IntoIter<Clause>,
}

impl Iterator for Clauses {
    type Item = Clause;
    fn next(&mut self) -> Option<Clause> {
        self.clauses.next()
    }
}

impl Clauses {
    fn none_left(mut self) -> Result<(), SyntaxError> {
        match self.next() {
            None => Ok(()),
            Some(clause) => Err(wrong(&clause, "nothing may follow")),
        }
    }
}

pub(crate) fn wrong(clause: &Clause, message: impl Into<String>) -> SyntaxError {
    SyntaxError::at(clause.end, &clause.keyword, message)
}

fn statement(
    verb: &'static str,
    noun: &'static str,
    second: &Clause,
    rest: Clauses,
) -> Result<Statement, SyntaxError> {
    match (verb, noun) {
        ("DEFINE", "QLOCAL" | "QREMOTE" | "QALIAS" | "QMODEL" | "CHANNEL" | "PROCESS") => {
            define(noun, second, rest)
        }
        ("ALTER", "QLOCAL" | "QREMOTE" | "QALIAS" | "QMODEL" | "CHANNEL" | "PROCESS") => {
            alter(noun, second, rest)
        }
        ("ALTER", "QMGR") => alter_queue_manager(second, rest),
        ("DELETE", "QLOCAL" | "QREMOTE" | "QALIAS" | "QMODEL" | "CHANNEL" | "PROCESS") => {
            delete(noun, second, rest)
        }
        (
            "DISPLAY",
            "QUEUE" | "QLOCAL" | "QREMOTE" | "QALIAS" | "QMODEL" | "CHANNEL" | "QMGR" | "QSTATUS",
        )
        | ("DISPLAY", "CHSTATUS" | "PROCESS") => display(noun, second, rest),
        ("DISPLAY", "CHLAUTH") => display(noun, second, rest),
        ("SET", "CHLAUTH") => set_channel_rule(second, rest),
        ("REFRESH", "SECURITY") => refresh_security(second, rest),
        ("START", "CHANNEL") => start_channel(second, rest),
        ("STOP", "CHANNEL") => stop_channel(second, rest),
        ("RESET", "CHANNEL") => reset_channel(second, rest),
        ("RESOLVE", "CHANNEL") => resolve_channel(second, rest),
        ("PING", "CHANNEL") => ping_channel(second, rest),
        ("CLEAR", "QLOCAL") => {
            let name = queue_name(second)?;
            rest.none_left()?;
            Ok(Statement::ClearQueue { name })
        }
        ("PING", "QMGR") => {
            no_value(second)?;
            rest.none_left()?;
            Ok(Statement::PingQueueManager)
        }
        _ => Ok(Statement::NotSupported {
            what: format!("{verb} {noun}"),
        }),
    }
}

/// The one value of a clause.
pub(crate) fn value(clause: &Clause) -> Result<&Item, SyntaxError> {
    match clause.items.as_deref() {
        Some([item]) => Ok(item),
        Some([]) => Err(wrong(clause, "the brackets are empty")),
        Some([_, second, ..]) => Err(SyntaxError::at(
            second.end,
            &second.text,
            format!(
                "{} takes one value; blanks and commas need apostrophes",
                clause.keyword
            ),
        )),
        None => Err(wrong(
            clause,
            format!("{} needs a value in brackets", clause.keyword),
        )),
    }
}

fn no_value(clause: &Clause) -> Result<(), SyntaxError> {
    if clause.items.is_some() {
        Err(wrong(clause, format!("{} takes no value", clause.keyword)))
    } else {
        Ok(())
    }
}

pub(crate) fn bad_name(item: &Item, error: &NameError) -> SyntaxError {
    SyntaxError::at(item.end, &item.text, error.to_string())
}

fn queue_name(clause: &Clause) -> Result<QueueName, SyntaxError> {
    let item = value(clause)?;
    QueueName::new(&item.text).map_err(|e| bad_name(item, &e))
}

pub(crate) fn channel_name(clause: &Clause) -> Result<ChannelName, SyntaxError> {
    let item = value(clause)?;
    ChannelName::new(&item.text).map_err(|e| bad_name(item, &e))
}

/// The name of an object of the noun; processes are called as queues are.
fn object_name(noun: &str, clause: &Clause) -> Result<String, SyntaxError> {
    if noun == "CHANNEL" {
        channel_name(clause).map(|n| n.to_string())
    } else {
        queue_name(clause).map(|n| n.to_string())
    }
}

/// The value of `YES` or `NO`.
pub(crate) fn yes_no(clause: &Clause) -> Result<bool, SyntaxError> {
    let item = value(clause)?;
    match item.text.to_ascii_uppercase().as_str() {
        "YES" => Ok(true),
        "NO" => Ok(false),
        _ => Err(SyntaxError::at(item.end, &item.text, "allowed is YES, NO")),
    }
}

/// One of a fixed set of words.
pub(crate) fn choice<T: Copy>(
    clause: &Clause,
    all: &[T],
    word: impl Fn(T) -> &'static str,
) -> Result<T, SyntaxError> {
    let item = value(clause)?;
    let given = item.text.to_ascii_uppercase();
    all.iter()
        .copied()
        .find(|v| word(*v) == given)
        .ok_or_else(|| {
            let allowed: Vec<&str> = all.iter().map(|v| word(*v)).collect();
            let message = format!("allowed is {}", allowed.join(", "));
            SyntaxError::at(item.end, &item.text, message).suggest(allowed)
        })
}

/// Sets a slot that may be set once.
pub(crate) fn once<T>(slot: &mut Option<T>, clause: &Clause, value: T) -> Result<(), SyntaxError> {
    if slot.is_some() {
        return Err(wrong(clause, "given more than once"));
    }
    *slot = Some(value);
    Ok(())
}

/// The kind that a queue noun means.
fn queue_kind(noun: &str) -> Option<ObjectKind> {
    ObjectKind::from_type_word(noun).filter(|k| k.is_queue())
}

/// The kind that a noun means by itself: all but `CHANNEL`.
fn noun_kind(noun: &str) -> Option<ObjectKind> {
    ObjectKind::from_type_word(noun).filter(|k| !k.is_channel())
}

/// Types of channels that IBM MQ has and we do not.
const OTHER_CHANNEL_TYPES: [&str; 7] = [
    "SVR", "RQSTR", "CLNTCONN", "CLUSSDR", "CLUSRCVR", "AMQP", "MQTT",
];

enum ChannelType {
    Kind(ObjectKind),
    NotSupported(String),
}

fn channel_type(clause: &Clause) -> Result<ChannelType, SyntaxError> {
    let item = value(clause)?;
    let word = item.text.to_ascii_uppercase();
    if let Some(kind) = ObjectKind::from_type_word(&word).filter(|k| k.is_channel()) {
        return Ok(ChannelType::Kind(kind));
    }
    if OTHER_CHANNEL_TYPES.contains(&word.as_str()) {
        return Ok(ChannelType::NotSupported(format!("CHLTYPE({word})")));
    }
    let message = "not a channel type: allowed is SDR, RCVR, SVRCONN";
    Err(SyntaxError::at(item.end, &item.text, message).suggest(["SDR", "RCVR", "SVRCONN"]))
}

/// What `DEFINE` and `ALTER` say of an object besides its attributes.
struct Given {
    kind: ObjectKind,
    attributes: Vec<Clause>,
}

/// Finds the kind of object, so that the attributes can be read. `CHLTYPE` may stand anywhere.
///
/// The outer error is the user's, the inner one what we do not have.
fn kind_and_rest(
    noun: &str,
    second: &Clause,
    rest: Clauses,
) -> Result<Result<Given, String>, SyntaxError> {
    if let Some(kind) = noun_kind(noun) {
        let attributes = rest.collect();
        return Ok(Ok(Given { kind, attributes }));
    }
    let mut found = None;
    let mut attributes = Vec::new();
    for clause in rest {
        if clause.keyword == "CHLTYPE" {
            let kind = channel_type(&clause)?;
            once(&mut found, &clause, kind)?;
        } else {
            attributes.push(clause);
        }
    }
    match found {
        Some(ChannelType::Kind(kind)) => Ok(Ok(Given { kind, attributes })),
        Some(ChannelType::NotSupported(what)) => Ok(Err(what)),
        None => Err(SyntaxError::at(second.end, "", "CHLTYPE is required")),
    }
}

/// Collects attributes; remembers the first that we do not have.
pub(crate) struct Collector {
    attributes: Attributes,
    not_supported: Option<String>,
    of: String,
}

impl Collector {
    pub(crate) fn new(of: String) -> Self {
        Self {
            attributes: Attributes::new(),
            not_supported: None,
            of,
        }
    }

    /// Reads one attribute. `find` is the table, `candidates` its words.
    pub(crate) fn read(
        &mut self,
        clause: &Clause,
        find: impl Fn(&str) -> Result<&'static AttributeSpec, AttributeProblem>,
        candidates: impl FnOnce() -> Vec<&'static str>,
    ) -> Result<(), SyntaxError> {
        let keyword = clause.keyword.as_str();
        let opposite = keyword
            .strip_prefix("NO")
            .and_then(|k| find(k).ok())
            .filter(|s| s.form == AttributeForm::Flag);
        let (spec, on) = match (opposite, find(keyword)) {
            (Some(spec), _) => (spec, false),
            (None, Ok(spec)) => (spec, true),
            (None, Err(AttributeProblem::NotSupported)) => {
                let what = format!("attribute {keyword} of {}", self.of);
                self.not_supported.get_or_insert(what);
                return Ok(());
            }
            (None, Err(AttributeProblem::Unknown)) => {
                let error = wrong(clause, format!("attribute {keyword} is not known"));
                return Err(error.suggest(candidates()));
            }
            (None, Err(problem)) => {
                return Err(wrong(clause, format!("attribute {keyword} {problem}")));
            }
        };
        if !spec.settable {
            return Err(wrong(clause, format!("{keyword} cannot be set")));
        }
        let read = if spec.form == AttributeForm::Flag {
            no_value(clause)?;
            AttributeValue::Flag(on)
        } else if let AttributeForm::List { .. } = spec.form {
            let Some(items) = clause.items.as_deref() else {
                return Err(wrong(clause, format!("{keyword} needs values in brackets")));
            };
            spec.form
                .read_list(items.iter().map(|i| i.text.as_str()))
                .map_err(|p| SyntaxError::at(clause.end, keyword, format!("{keyword} {p}")))?
        } else {
            let item = value(clause)?;
            spec.form
                .read(&item.text)
                .map_err(|p| SyntaxError::at(item.end, keyword, format!("{keyword} {p}")))?
        };
        self.attributes
            .insert(spec.keyword, read)
            .map_err(|e| wrong(clause, e.to_string()))
    }

    pub(crate) fn finish(self, make: impl FnOnce(Attributes) -> Statement) -> Statement {
        match self.not_supported {
            Some(what) => Statement::NotSupported { what },
            None => make(self.attributes),
        }
    }
}

fn define(noun: &str, second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let name = object_name(noun, second)?;
    let Given { kind, attributes } = match kind_and_rest(noun, second, rest)? {
        Ok(given) => given,
        Err(what) => return Ok(Statement::NotSupported { what }),
    };
    let (mut like, mut replace) = (None, None);
    let mut collector = Collector::new(kind.to_string());
    for clause in attributes {
        match clause.keyword.as_str() {
            "LIKE" => once(&mut like, &clause, object_name(noun, &clause)?)?,
            "REPLACE" | "NOREPLACE" => {
                no_value(&clause)?;
                once(&mut replace, &clause, clause.keyword == "REPLACE")?;
            }
            _ => collector.read(
                &clause,
                |w| kind.attribute(w),
                || {
                    let mut words = settable_words(kind.attributes());
                    words.extend(["LIKE", "REPLACE", "NOREPLACE"]);
                    words
                },
            )?,
        }
    }
    Ok(collector.finish(|attributes| Statement::Define {
        kind,
        name,
        attributes,
        like,
        replace: replace.unwrap_or(false),
    }))
}

fn alter(noun: &str, second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let name = object_name(noun, second)?;
    let Given { kind, attributes } = match kind_and_rest(noun, second, rest)? {
        Ok(given) => given,
        Err(what) => return Ok(Statement::NotSupported { what }),
    };
    let mut force = None;
    let mut collector = Collector::new(kind.to_string());
    for clause in attributes {
        if clause.keyword == "FORCE" {
            no_value(&clause)?;
            once(&mut force, &clause, ())?;
        } else {
            collector.read(
                &clause,
                |w| kind.attribute(w),
                || {
                    let mut words = settable_words(kind.attributes());
                    words.push("FORCE");
                    words
                },
            )?;
        }
    }
    Ok(collector.finish(|attributes| Statement::Alter {
        kind,
        name,
        attributes,
        force: force.is_some(),
    }))
}

fn alter_queue_manager(second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    no_value(second)?;
    let mut force = None;
    let mut collector = Collector::new("QMGR".to_owned());
    for clause in rest {
        if clause.keyword == "FORCE" {
            no_value(&clause)?;
            once(&mut force, &clause, ())?;
        } else {
            collector.read(&clause, queue_manager_attribute, || {
                let mut words = settable_words(queue_manager_attributes());
                words.push("FORCE");
                words
            })?;
        }
    }
    Ok(collector.finish(|attributes| Statement::AlterQueueManager {
        attributes,
        force: force.is_some(),
    }))
}

fn delete(noun: &str, second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let name = object_name(noun, second)?;
    let kind = noun_kind(noun).map_or(DeleteKind::Channel, DeleteKind::Kind);
    let holds_messages = noun == "QLOCAL";
    let (mut purge, mut ignore, mut records) = (None, None, None);
    for clause in rest {
        match clause.keyword.as_str() {
            "PURGE" | "NOPURGE" if holds_messages => {
                no_value(&clause)?;
                once(&mut purge, &clause, clause.keyword == "PURGE")?;
            }
            "IGNSTATE" => once(&mut ignore, &clause, yes_no(&clause)?)?,
            // There are no authority records, so nothing follows from the answer.
            "AUTHREC" => once(&mut records, &clause, yes_no(&clause)?)?,
            _ => {
                let words: &[&str] = if holds_messages {
                    &["PURGE", "NOPURGE", "IGNSTATE", "AUTHREC"]
                } else {
                    &["IGNSTATE", "AUTHREC"]
                };
                let error = wrong(&clause, "not a word of DELETE");
                return Err(error.suggest(words.iter().copied()));
            }
        }
    }
    Ok(Statement::Delete {
        kind,
        name,
        purge: purge.unwrap_or(false),
        ignore_state: ignore.unwrap_or(false),
    })
}

/// A name or a generic name: the characters of names, then perhaps `*`.
fn pattern(clause: &Clause) -> Result<Pattern, SyntaxError> {
    let item = value(clause)?;
    let pattern = Pattern::new(&item.text);
    let good = match &pattern {
        Pattern::Exact(name) => QueueName::new(name).map(|_| ()),
        Pattern::Prefix(prefix) if prefix.is_empty() => Ok(()),
        Pattern::Prefix(prefix) => QueueName::new(prefix).map(|_| ()),
    };
    good.map_err(|e| bad_name(item, &e)).map(|()| pattern)
}

/// What a DISPLAY has collected so far.
struct DisplayParts {
    noun: DisplayNoun,
    filter: Option<Filter>,
    all: Option<()>,
    requested: Vec<String>,
    connection_name: Option<String>,
    transmission_queue: Option<String>,
    view: Option<()>,
    typed: Option<()>,
    not_supported: Option<String>,
    matching: Option<Matching>,
    check: ChannelCheck,
}

/// `MATCH` of `DISPLAY CHLAUTH`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Matching {
    Generic,
    Exact,
    RunCheck,
}

impl Matching {
    const ALL: [Self; 4] = [Self::Generic, Self::Generic, Self::Exact, Self::RunCheck];
    /// Every word with what it means; `ALL` is what is shown without one.
    const WORDS: [&'static str; 4] = ["GENERIC", "ALL", "EXACT", "RUNCHECK"];

    fn read(clause: &Clause) -> Result<Self, SyntaxError> {
        let chosen = choice(clause, &Self::WORDS, core::convert::identity)?;
        let place = Self::WORDS.iter().position(|w| *w == chosen);
        let found = place.and_then(|at| Self::ALL.get(at));
        Ok(found.copied().unwrap_or(Self::Generic))
    }
}

fn display(noun: &str, second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let display_noun = match noun {
        "CHANNEL" => DisplayNoun::Channel { kind: None },
        "PROCESS" => DisplayNoun::Process,
        "QMGR" => DisplayNoun::QueueManager,
        "CHLAUTH" => DisplayNoun::ChannelRule { rule_type: None },
        "QSTATUS" => DisplayNoun::QueueStatus,
        "CHSTATUS" => DisplayNoun::ChannelStatus { saved: false },
        other => DisplayNoun::Queue {
            kind: queue_kind(other),
        },
    };
    let name = if display_noun == DisplayNoun::QueueManager {
        no_value(second)?;
        Pattern::Prefix(String::new())
    } else if noun == "CHLAUTH" {
        Pattern::new(&profile(second)?)
    } else {
        pattern(second)?
    };
    let mut parts = DisplayParts {
        noun: display_noun,
        filter: None,
        all: None,
        requested: Vec::new(),
        connection_name: None,
        transmission_queue: None,
        view: None,
        typed: None,
        not_supported: None,
        matching: None,
        check: ChannelCheck::default(),
    };
    for clause in rest {
        parts.read(noun, &clause)?;
    }
    if let Some(what) = parts.not_supported {
        return Ok(Statement::NotSupported { what });
    }
    let name = match parts.matching {
        Some(Matching::RunCheck) => return check_channel(second, parts.check),
        Some(Matching::Exact) => Pattern::Exact(value(second)?.text.clone()),
        Some(Matching::Generic) | None => name,
    };
    Ok(Statement::Display(Display {
        noun: parts.noun,
        name,
        filter: parts.filter,
        requested: match (parts.all, parts.requested.is_empty()) {
            (Some(()), _) => Requested::All,
            (None, true) => Requested::Unsaid,
            (None, false) => Requested::These(parts.requested),
        },
        connection_name: parts.connection_name,
        transmission_queue: parts.transmission_queue,
    }))
}

/// `DISPLAY CHLAUTH(channel) MATCH(RUNCHECK)`: what would happen to this partner.
fn check_channel(second: &Clause, check: ChannelCheck) -> Result<Statement, SyntaxError> {
    let channel = channel_name(second)?;
    let missing = |what: &str| {
        let message = format!("MATCH(RUNCHECK) needs {what}");
        Err(SyntaxError::at(second.end, "", message))
    };
    if check.address.is_empty() {
        return missing("ADDRESS");
    }
    if check.client_user.is_empty() == check.queue_manager.is_empty() {
        return missing("one of CLNTUSER and QMNAME");
    }
    Ok(Statement::CheckChannel { channel, check })
}

impl DisplayParts {
    fn read_rule(&mut self, clause: &Clause) -> Result<(), SyntaxError> {
        match clause.keyword.as_str() {
            "TYPE" => {
                once(&mut self.typed, clause, ())?;
                if !value(clause)?.text.eq_ignore_ascii_case("ALL") {
                    let rule_type = Some(rule_type(clause)?);
                    self.noun = DisplayNoun::ChannelRule { rule_type };
                }
                return Ok(());
            }
            "MATCH" => return once(&mut self.matching, clause, Matching::read(clause)?),
            _ => {}
        }
        let slot = match clause.keyword.as_str() {
            "ADDRESS" => &mut self.check.address,
            "CLNTUSER" => &mut self.check.client_user,
            "QMNAME" => &mut self.check.queue_manager,
            "SSLPEER" => &mut self.check.peer_name,
            "SSLCERTI" => &mut self.check.issuer_name,
            _ => return Err(wrong(clause, "not a word of DISPLAY CHLAUTH")),
        };
        slot.clone_from(&value(clause)?.text);
        Ok(())
    }

    fn read(&mut self, noun: &str, clause: &Clause) -> Result<(), SyntaxError> {
        let valued = clause.items.is_some();
        match (self.noun, clause.keyword.as_str()) {
            (_, "ALL") if !valued => once(&mut self.all, clause, ()),
            (DisplayNoun::QueueManager, "WHERE") => Err(wrong(clause, "QMGR takes no WHERE")),
            (_, "WHERE") => self.read_filter(noun, clause),
            (DisplayNoun::ChannelRule { .. }, _) if valued => self.read_rule(clause),
            (DisplayNoun::Queue { .. }, "TYPE" | "QTYPE") if valued => self.read_queue_type(clause),
            (DisplayNoun::Channel { .. }, "CHLTYPE" | "TYPE") if valued => {
                once(&mut self.typed, clause, ())?;
                if value(clause)?.text.eq_ignore_ascii_case("ALL") {
                    return Ok(());
                }
                match channel_type(clause)? {
                    ChannelType::Kind(kind) => {
                        self.noun = DisplayNoun::Channel { kind: Some(kind) }
                    }
                    ChannelType::NotSupported(what) => {
                        self.not_supported.get_or_insert(what);
                    }
                }
                Ok(())
            }
            (DisplayNoun::QueueStatus, "TYPE") if valued => {
                once(&mut self.typed, clause, ())?;
                let item = value(clause)?;
                match item.text.to_ascii_uppercase().as_str() {
                    "QUEUE" => Ok(()),
                    "HANDLE" => {
                        let what = "DISPLAY QSTATUS TYPE(HANDLE)".to_owned();
                        self.not_supported.get_or_insert(what);
                        Ok(())
                    }
                    _ => Err(SyntaxError::at(item.end, &item.text, "allowed is QUEUE")),
                }
            }
            (DisplayNoun::ChannelStatus { .. }, "CURRENT" | "SAVED") if !valued => {
                once(&mut self.view, clause, ())?;
                let saved = clause.keyword == "SAVED";
                self.noun = DisplayNoun::ChannelStatus { saved };
                Ok(())
            }
            (DisplayNoun::ChannelStatus { .. }, "CONNAME") if valued => {
                let text = value(clause)?.text.clone();
                once(&mut self.connection_name, clause, text)
            }
            (DisplayNoun::ChannelStatus { .. }, "XMITQ") if valued => {
                let text = value(clause)?.text.clone();
                once(&mut self.transmission_queue, clause, text)
            }
            _ => self.read_attribute(noun, clause),
        }
    }

    fn read_queue_type(&mut self, clause: &Clause) -> Result<(), SyntaxError> {
        once(&mut self.typed, clause, ())?;
        let item = value(clause)?;
        let word = item.text.to_ascii_uppercase();
        match words::noun(&word).unwrap_or(&word) {
            "ALL" => Ok(()),
            "QCLUSTER" => {
                self.not_supported.get_or_insert(format!("TYPE({word})"));
                Ok(())
            }
            full => {
                let Some(kind) = queue_kind(full) else {
                    let message = "allowed is QLOCAL, QREMOTE, QALIAS, QMODEL, ALL";
                    let error = SyntaxError::at(item.end, &item.text, message);
                    return Err(error.suggest(["QLOCAL", "QREMOTE", "QALIAS", "QMODEL"]));
                };
                if let DisplayNoun::Queue { kind: Some(asked) } = self.noun
                    && asked != kind
                {
                    let message = format!("TYPE does not go with {}", asked.noun());
                    return Err(SyntaxError::at(item.end, &item.text, message));
                }
                self.noun = DisplayNoun::Queue { kind: Some(kind) };
                Ok(())
            }
        }
    }

    fn read_attribute(&mut self, noun: &str, clause: &Clause) -> Result<(), SyntaxError> {
        let keyword = clause.keyword.as_str();
        match shown(self.noun, keyword) {
            Ok(found) => {
                no_value(clause)?;
                if self.requested.iter().any(|k| k == found.keyword) {
                    return Err(wrong(clause, "given more than once"));
                }
                self.requested.push(found.keyword.to_owned());
                Ok(())
            }
            Err(AttributeProblem::NotSupported) => {
                let what = format!("attribute {keyword} of DISPLAY {noun}");
                self.not_supported.get_or_insert(what);
                Ok(())
            }
            Err(problem) => {
                let error = wrong(clause, format!("attribute {keyword} {problem}"));
                Err(error.suggest(shown_words(self.noun)))
            }
        }
    }

    fn read_filter(&mut self, noun: &str, clause: &Clause) -> Result<(), SyntaxError> {
        let Some([keyword, operator, compared]) = clause.items.as_deref() else {
            let message = "WHERE takes a keyword, an operator and a value";
            return Err(wrong(clause, message));
        };
        let at = |item: &Item, message: String| SyntaxError::at(item.end, &item.text, message);
        let word = keyword.text.to_ascii_uppercase();
        let found = match shown(self.noun, &word) {
            Ok(found) => found,
            Err(AttributeProblem::NotSupported) => {
                let what = format!("attribute {word} of DISPLAY {noun}");
                self.not_supported.get_or_insert(what);
                return Ok(());
            }
            Err(problem) => {
                let error = at(keyword, format!("attribute {word} {problem}"));
                return Err(error.suggest(shown_words(self.noun)));
            }
        };
        let given = operator.text.to_ascii_uppercase();
        let Some(chosen) = Operator::ALL.into_iter().find(|o| o.word() == given) else {
            let words = Operator::ALL.map(Operator::word).join(", ");
            return Err(at(operator, format!("not an operator: allowed is {words}")));
        };
        let fits = match chosen {
            Operator::Less
            | Operator::Greater
            | Operator::LessOrEqual
            | Operator::GreaterOrEqual
            | Operator::Equal
            | Operator::NotEqual => !found.list,
            Operator::Like | Operator::NotLike => !found.number && !found.list,
            Operator::Contains
            | Operator::Excludes
            | Operator::ContainsLike
            | Operator::ExcludesLike => found.list,
        };
        if !fits || found.flag {
            let message = format!("{} cannot be compared so", found.keyword);
            return Err(at(operator, message));
        }
        let text = compared.text.trim_end_matches(' ');
        let filter_value = if found.number {
            let number = text.parse().ok().filter(|_| !text.starts_with('+'));
            let message = format!("{} is a number", found.keyword);
            FilterValue::Number(number.ok_or_else(|| at(compared, message))?)
        } else {
            FilterValue::Text(text.to_owned())
        };
        let filter = Filter {
            keyword: found.keyword.to_owned(),
            operator: chosen,
            value: filter_value,
        };
        once(&mut self.filter, clause, filter)
    }
}
