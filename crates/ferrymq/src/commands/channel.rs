//! `ferrymq channel`: sugar over MQSC.

use std::collections::BTreeMap;

use ferrymq_client::admin_wire::{DisplayedObject, RunMqscResponse};
use ferrymq_client::{CallError, ClientError};
use ferrymq_types::ReasonCode;
use serde::Serialize;

use crate::cli::ChannelCommand;
use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Connected, Invocation, Retry};

/// `MQRCCF_CHL_STATUS_NOT_FOUND`: no channel runs.
const CHANNEL_STATUS_NOT_FOUND: u32 = 3065;

/// A channel as JSON.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ChannelDocument {
    channel: String,
    chltype: String,
    conname: String,
    xmitq: String,
    status: String,
}

#[derive(Debug, Serialize)]
struct DoneDocument<'a> {
    channel: &'a str,
    message: String,
}

const HEADING: &[&str] = &[
    "CHANNEL",
    "TYPE",
    "CONNECTION",
    "TRANSMISSION QUEUE",
    "STATUS",
];

pub(crate) async fn run(
    invocation: &mut Invocation,
    command: ChannelCommand,
) -> Result<(), Failure> {
    let connected = invocation.connect(Retry::No, TIMEOUT_DEFAULT).await?;
    match command {
        ChannelCommand::List => list(invocation, &connected).await,
        ChannelCommand::Start { name } => {
            let mqsc = format!("START CHANNEL('{name}')");
            change(invocation, &connected, name.as_str(), &mqsc).await
        }
        ChannelCommand::Stop { name } => {
            let mqsc = format!("STOP CHANNEL('{name}')");
            change(invocation, &connected, name.as_str(), &mqsc).await
        }
    }
}

async fn list(invocation: &mut Invocation, connected: &Connected) -> Result<(), Failure> {
    let admin = connected.client.admin();
    let queue_manager = connected.queue_manager();
    let defined = admin
        .run_mqsc(&queue_manager, "DISPLAY CHANNEL(*) ALL")
        .await?;
    let defined = unless_refused(defined, "CHANNEL(*)", ReasonCode::UNKNOWN_OBJECT_NAME.get())?;
    let running = admin
        .run_mqsc(&queue_manager, "DISPLAY CHSTATUS(*) ALL")
        .await?;
    let running = unless_refused(running, "CHSTATUS(*)", CHANNEL_STATUS_NOT_FOUND)?;
    let channels = channels(&defined, &running);
    if channels.is_empty() {
        return Err(Failure::NoMessage);
    }
    let output = &mut invocation.output;
    if !output.is_text() {
        return output.document(&channels);
    }
    let row = |c: ChannelDocument| vec![c.channel, c.chltype, c.conname, c.xmitq, c.status];
    let rows: Vec<Vec<String>> = channels.into_iter().map(row).collect();
    output.table(HEADING, &rows)
}

async fn change(
    invocation: &mut Invocation,
    connected: &Connected,
    name: &str,
    mqsc: &str,
) -> Result<(), Failure> {
    let answer = connected
        .client
        .admin()
        .run_mqsc(&connected.queue_manager(), mqsc)
        .await?;
    let message = answer.lines.join(" ");
    unless_refused(answer, name, 0)?;
    if invocation.output.is_text() {
        invocation.output.line(&message)
    } else {
        invocation.output.document(&DoneDocument {
            channel: name,
            message,
        })
    }
}

/// The objects of an answer; none if it was refused with `none_found`.
fn unless_refused(
    answer: RunMqscResponse,
    object: &str,
    none_found: u32,
) -> Result<Vec<DisplayedObject>, Failure> {
    if answer.reason == 0 && !answer.syntax_error {
        return Ok(answer.objects);
    }
    if answer.reason == none_found {
        return Ok(Vec::new());
    }
    Err(Failure::Call(ClientError::Refused(CallError {
        reason: ReasonCode::new(answer.reason),
        object: Some(object.to_owned()),
        queue_manager: None,
        text: answer.lines.join(" "),
    })))
}

fn value(object: &DisplayedObject, keyword: &str) -> String {
    let found = object.attributes.iter().find(|a| a.keyword == keyword);
    let value = found.and_then(|a| a.value.as_deref()).unwrap_or_default();
    value.trim().to_owned()
}

/// Definitions and how they run, joined by name; what runs without a definition has only a status.
fn channels(defined: &[DisplayedObject], running: &[DisplayedObject]) -> Vec<ChannelDocument> {
    let mut status: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for object in running {
        status
            .entry(value(object, "CHANNEL"))
            .or_default()
            .push(value(object, "STATUS"));
    }
    let mut channels: Vec<ChannelDocument> = Vec::new();
    for object in defined {
        let channel = value(object, "CHANNEL");
        let status = status.remove(&channel).unwrap_or_default();
        channels.push(ChannelDocument {
            chltype: value(object, "CHLTYPE"),
            conname: value(object, "CONNAME"),
            xmitq: value(object, "XMITQ"),
            status: if status.is_empty() {
                "INACTIVE".to_owned()
            } else {
                status.join(",")
            },
            channel,
        });
    }
    channels.extend(status.into_iter().map(|(channel, status)| ChannelDocument {
        channel,
        chltype: String::new(),
        conname: String::new(),
        xmitq: String::new(),
        status: status.join(","),
    }));
    channels
}

#[cfg(test)]
mod tests {
    use ferrymq_client::admin_wire::Attribute;

    use super::*;

    fn object(attributes: &[(&str, &str)]) -> DisplayedObject {
        let attribute = |(keyword, value): &(&str, &str)| Attribute {
            keyword: (*keyword).to_owned(),
            value: Some((*value).to_owned()),
            number: false,
        };
        DisplayedObject {
            heading: String::new(),
            attributes: attributes.iter().map(attribute).collect(),
        }
    }

    #[test]
    fn definitions_and_status_are_joined_by_name() {
        let defined = [
            object(&[
                ("CHANNEL", "A.TO.B"),
                ("CHLTYPE", "SDR"),
                ("XMITQ", "B"),
                ("CONNAME", "h(1)"),
            ]),
            object(&[("CHANNEL", "B.TO.A"), ("CHLTYPE", "RCVR"), ("XMITQ", " ")]),
        ];
        let running = [
            object(&[("CHANNEL", "A.TO.B"), ("STATUS", "RUNNING")]),
            object(&[("CHANNEL", "GONE"), ("STATUS", "STOPPED")]),
        ];
        let found = channels(&defined, &running);
        let short: Vec<(&str, &str, &str)> = found
            .iter()
            .map(|c| (c.channel.as_str(), c.xmitq.as_str(), c.status.as_str()))
            .collect();
        assert_eq!(
            short,
            [
                ("A.TO.B", "B", "RUNNING"),
                ("B.TO.A", "", "INACTIVE"),
                ("GONE", "", "STOPPED")
            ]
        );
    }

    #[test]
    fn nothing_found_is_no_refusal_and_a_refusal_keeps_its_reason() {
        let answer = |reason| RunMqscResponse {
            lines: vec!["AMQ8135E: Not authorized.".into()],
            completion_code: 2,
            reason,
            ..RunMqscResponse::default()
        };
        let none = unless_refused(answer(3065), "CHSTATUS(*)", CHANNEL_STATUS_NOT_FOUND);
        assert!(none.unwrap().is_empty());
        let failure = unless_refused(answer(2035), "A", CHANNEL_STATUS_NOT_FOUND).unwrap_err();
        assert_eq!(failure.exit().code(), 5);
    }
}
