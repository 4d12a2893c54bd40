//! Log lines: one event, one line, in text for people or JSON for machines. Control characters in any value are escaped, so
//! that nobody can write a line of their own.

use std::fmt::{self, Write as _};
use std::io::IsTerminal as _;

use ferrymq_types::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::config::{LogConfig, LogFormat};

/// Starts logging to standard error. A second call changes nothing and says so with `false`.
pub fn init(config: &LogConfig, node: &str) -> bool {
    let format = config.format.unwrap_or(if std::io::stderr().is_terminal() {
        LogFormat::Text
    } else {
        LogFormat::Json
    });
    let level = config.level.as_deref().unwrap_or("info");
    // Libraries speak only when something is wrong with them.
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("warn,ferrymq={level}")))
        .add_directive(tracing_subscriber::filter::LevelFilter::ERROR.into());
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .event_format(Line {
            format,
            node: node.to_owned(),
        })
        .try_init()
        .is_ok()
}

struct Line {
    format: LogFormat,
    node: String,
}

#[derive(Default)]
struct Fields {
    id: Option<String>,
    qmgr: Option<String>,
    message: String,
    inserts: Map<String, Value>,
}

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        let text = || {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        match field.name() {
            "message" => self.message = text(),
            "id" => self.id = Some(text()),
            "qmgr" => self.qmgr = Some(text()),
            name => {
                self.inserts.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Value::String(value.to_owned()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let now = crate::clock::Clock::start().now();
        let line = match self.format {
            LogFormat::Json => json(now, event.metadata(), &self.node, fields),
            LogFormat::Text => text(now, *event.metadata().level(), &fields),
        };
        writeln!(writer, "{line}")
    }
}

fn json(now: Timestamp, metadata: &tracing::Metadata<'_>, node: &str, fields: Fields) -> String {
    let mut line = Map::new();
    let mut set = |key: &str, value: Value| {
        line.insert(key.to_owned(), value);
    };
    set("ts", now.to_string().into());
    set("level", metadata.level().to_string().to_lowercase().into());
    if let Some(id) = fields.id {
        set("id", id.into());
    }
    set("msg", fields.message.into());
    set("node", node.into());
    if let Some(qmgr) = fields.qmgr {
        set("qmgr", qmgr.into());
    }
    set("target", metadata.target().into());
    if !fields.inserts.is_empty() {
        set("inserts", fields.inserts.into());
    }
    Value::Object(line).to_string()
}

fn text(now: Timestamp, level: Level, fields: &Fields) -> String {
    let mut line = format!("{now} {level:<5} ");
    if let Some(id) = &fields.id {
        escape(&mut line, id);
        line.push(' ');
    }
    if let Some(qmgr) = &fields.qmgr {
        line.push('[');
        escape(&mut line, qmgr);
        line.push_str("] ");
    }
    escape(&mut line, &fields.message);
    for (key, value) in &fields.inserts {
        line.push(' ');
        line.push_str(key);
        line.push('=');
        match value {
            Value::String(value) => escape(&mut line, value),
            other => line.push_str(&other.to_string()),
        }
    }
    line
}

/// Adds `text` with control characters and Unicode's direction marks written as escapes.
fn escape(line: &mut String, text: &str) {
    for c in text.chars() {
        let direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || direction {
            // Writing to a string cannot fail.
            write!(line, "{}", c.escape_unicode()).unwrap_or_default();
        } else {
            line.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_j2_one_event_is_one_line() {
        let mut fields = Fields {
            message: "refused\nFAKE line\u{1b}[31m".into(),
            ..Fields::default()
        };
        fields
            .inserts
            .insert("got".into(), "CN=x\r\n\u{202e}y".into());
        let line = text(Timestamp::ZERO, Level::WARN, &fields);
        assert!(!line.contains(['\n', '\r', '\u{1b}', '\u{202e}']), "{line}");
        assert!(line.contains("refused\\u{a}FAKE"), "{line}");
    }
}
