//! `ferrymq log account`: what left a queue by another way than a committed get.

use ferrymq_client::admin_wire::ListAccountResponse;
use ferrymq_types::{MessageId, ReasonCode, Timestamp};
use serde::Serialize;

use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Invocation, Retry, now};
use crate::parse::Since;

/// An entry as JSON.
#[derive(Debug, Serialize)]
struct EntryDocument<'a> {
    number: u64,
    message_id: String,
    from: &'a str,
    to: Option<&'a str>,
    reason: &'a str,
    mqrc: Option<u32>,
    mqrc_name: Option<&'static str>,
    who: &'a str,
    time: String,
}

impl<'a> EntryDocument<'a> {
    fn new(entry: &'a ListAccountResponse) -> Self {
        let mqrc = (entry.reason_code != 0).then_some(entry.reason_code);
        Self {
            number: entry.number,
            message_id: MessageId::from_slice(&entry.message_id)
                .unwrap_or_default()
                .to_string(),
            from: &entry.from,
            to: (!entry.to.is_empty()).then_some(entry.to.as_str()),
            reason: &entry.reason,
            mqrc,
            mqrc_name: mqrc.and_then(|code| ReasonCode::new(code).name()),
            who: &entry.who,
            time: Timestamp::from_millis(entry.time_ms).to_string(),
        }
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.time.clone(),
            self.message_id.clone(),
            self.from.to_owned(),
            self.to.unwrap_or("-").to_owned(),
            self.reason.to_owned(),
            self.mqrc
                .map_or_else(|| "-".to_owned(), |code| code.to_string()),
            self.who.to_owned(),
        ]
    }
}

const HEADING: &[&str] = &["TIME", "MESSAGE ID", "FROM", "TO", "REASON", "CODE", "WHO"];

pub(crate) async fn run(invocation: &mut Invocation, since: Option<Since>) -> Result<(), Failure> {
    let connected = invocation.connect(Retry::Yes, TIMEOUT_DEFAULT).await?;
    let since = since.map_or(Timestamp::ZERO, |since| since.at(now()));
    let admin = connected.client.admin();
    let mut entries = admin.account(&connected.queue_manager(), since).await?;
    let output = &mut invocation.output;
    let mut rows = Vec::new();
    while let Some(entry) = entries.next().await? {
        let document = EntryDocument::new(&entry);
        if output.is_text() {
            rows.push(document.row());
        } else {
            output.record(&document)?;
        }
        if rows.len() == 256 {
            output.table(HEADING, &rows)?;
            rows.clear();
        }
    }
    if rows.is_empty() {
        Ok(())
    } else {
        output.table(HEADING, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_who_what_why_and_when() {
        let entry = ListAccountResponse {
            number: 3,
            message_id: bytes::Bytes::from_static(&[1; 24]),
            from: "A".into(),
            to: "DLQ".into(),
            reason: "dead_lettered".into(),
            reason_code: 2053,
            who: "receiver QM1.TO.QM2".into(),
            time_ms: 0,
        };
        let json = serde_json::to_value(EntryDocument::new(&entry)).unwrap();
        assert_eq!(json["message_id"], "01".repeat(24));
        assert_eq!(json["mqrc_name"], "MQRC_Q_FULL");
        assert_eq!(json["time"], "1970-01-01T00:00:00.000Z");
        let gone = ListAccountResponse {
            to: String::new(),
            reason_code: 0,
            ..entry
        };
        let json = serde_json::to_value(EntryDocument::new(&gone)).unwrap();
        assert!(json["to"].is_null() && json["mqrc"].is_null());
        assert_eq!(
            EntryDocument::new(&gone).row()[3..6],
            ["-", "dead_lettered", "-"]
        );
    }
}
