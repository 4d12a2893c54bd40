//! `ferrymq rc`: what a code means and what to do.

use ferrymq_types::ReasonCode;
use serde::Serialize;

use crate::cli::RcArgs;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Ids of operator messages: number and text, a line each.
const MESSAGES: &str = include_str!("../message_ids.tsv");

/// A reason code as JSON.
#[derive(Debug, Serialize)]
struct ReasonDocument {
    mqrc: u32,
    name: Option<&'static str>,
    meaning: Option<&'static str>,
    page: Option<&'static str>,
}

/// A message id as JSON.
#[derive(Debug, Serialize)]
struct MessageIdDocument<'a> {
    id: &'a str,
    meaning: &'a str,
}

/// What was asked about.
#[derive(Debug, PartialEq, Eq)]
enum Subject {
    Reason(ReasonCode),
    /// Id without its severity, and meaning.
    Message(&'static str, &'static str),
}

pub(crate) fn run(invocation: &mut Invocation, args: &RcArgs) -> Result<(), Failure> {
    let output = &mut invocation.output;
    #[cfg(feature = "crash-points")]
    if args.crash_points {
        return ferrymq_qmgr::crash_points()
            .into_iter()
            .try_for_each(|point| output.line(point));
    }
    let code = args.code.as_deref().unwrap_or_default();
    let unknown = || Failure::Usage(format!("`{code}` is no reason code and no message id"));
    match subject(code).ok_or_else(unknown)? {
        Subject::Message(id, meaning) if output.is_text() => {
            output.line(&format!("{id}: {meaning}"))
        }
        Subject::Message(id, meaning) => output.document(&MessageIdDocument { id, meaning }),
        Subject::Reason(reason) if output.is_text() => match (reason.page(), reason.meaning()) {
            (Some(page), _) => output.line(page.trim_end()),
            (None, meaning) => output.line(&format!(
                "{reason}: {}",
                meaning.unwrap_or("no meaning is known")
            )),
        },
        Subject::Reason(reason) => output.document(&ReasonDocument {
            mqrc: reason.get(),
            name: reason.name(),
            meaning: reason.meaning(),
            page: reason.page(),
        }),
    }
}

/// A number (decimal, or hexadecimal as `mqrc` takes it), a name, or a message id. A number that has no meaning is none.
fn subject(text: &str) -> Option<Subject> {
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    if let Some(number) = number {
        let reason = ReasonCode::new(number);
        return reason.meaning().map(|_| Subject::Reason(reason));
    }
    message(text).or_else(|| ReasonCode::from_name(text).map(Subject::Reason))
}

fn message(text: &str) -> Option<Subject> {
    let wanted = text.to_ascii_uppercase();
    let wanted = wanted.trim_end_matches(['I', 'W', 'E', 'S', 'T']);
    let lines = MESSAGES
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once('\t'));
    let mut found = lines.filter(|(id, _)| *id == wanted);
    found
        .next()
        .map(|(id, meaning)| Subject::Message(id, meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_known_by_number_and_by_name() {
        let full = Some(Subject::Reason(ReasonCode::Q_FULL));
        for text in ["2053", "0x805", "MQRC_Q_FULL", "q_full"] {
            assert_eq!(subject(text), full, "{text}");
        }
        for text in ["", "4294967296", "77777", "NOTHING", "-1"] {
            assert_eq!(subject(text), None, "{text}");
        }
    }

    #[test]
    fn message_ids_are_known_with_and_without_their_severity() {
        for text in ["AMQ8147E", "amq8147", "AMQ8147"] {
            let found = subject(text);
            assert!(
                matches!(found, Some(Subject::Message("AMQ8147", _))),
                "{text} {found:?}"
            );
        }
        assert_eq!(subject("AMQ0000E"), None);
    }

    #[test]
    fn message_ids_are_sorted_and_each_is_there_once() {
        let ids: Vec<&str> = MESSAGES
            .lines()
            .skip(1)
            .filter_map(|l| Some(l.split_once('\t')?.0))
            .collect();
        assert!(ids.len() > 80 && ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    }
}
