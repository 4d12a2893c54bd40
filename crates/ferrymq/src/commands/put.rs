//! `ferrymq put`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;

use bytes::Bytes;
use ferrymq_client::{Answer, Client, Session, properties_to_wire, wire};
use ferrymq_types::{CorrelationId, MessageDescriptor, MessageId, Properties, ReasonCode};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::cli::{MessageOptions, PutArgs};
use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::input;
use crate::invocation::{Invocation, Retry, fresh_unit_of_work_id};

/// Puts whose answers are awaited at once.
const WINDOW: usize = 128;

/// What `put` prints with `-o json`.
#[derive(Debug, Serialize)]
struct PutDocument<'a> {
    message_id: String,
    correl_id: String,
    queue: &'a str,
    qmgr: Option<&'a str>,
    resolved_queue: &'a str,
    resolved_qmgr: &'a str,
    mqcc: u8,
    mqrc: u32,
}

/// Where the data comes from.
enum Source {
    /// The same message so many times.
    Repeated { data: Bytes, count: u64 },
    /// A message per line, up to a blank one if a person types.
    Typed {
        lines: mpsc::Receiver<Result<Vec<u8>, Failure>>,
        until_blank: bool,
    },
    /// A message per line of a file.
    File(BufReader<File>),
}

pub(crate) async fn run(invocation: &mut Invocation, args: PutArgs) -> Result<(), Failure> {
    let (source, format) = source(&args).await?;
    let descriptor = descriptor(&args, format)?;
    let connected = invocation.connect(Retry::Yes, TIMEOUT_DEFAULT).await?;
    let template = wire::PutRequest {
        queue_manager: connected.queue_manager(),
        queue: args.queue.queue.to_string(),
        object_queue_manager: args
            .queue
            .queue_manager
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        message: Some(wire::Message {
            descriptor: Some(descriptor),
            data: Bytes::new(),
        }),
        ..wire::PutRequest::default()
    };
    let said = connected.queue_manager_if_said();
    match source {
        Source::Repeated { data, count: 1 } => {
            let id = fresh_unit_of_work_id()?;
            let put = wire::PutRequest {
                unit_of_work_id: Bytes::copy_from_slice(id.as_bytes()),
                ..with_data(&template, data)
            };
            let put = connected.client.put(put).await?;
            print(invocation, &template.queue, said, &put)
        }
        source @ (Source::Repeated { .. } | Source::Typed { .. } | Source::File(_)) => {
            many(invocation, &connected.client, said, &template, source).await
        }
    }
}

/// What is to be put, and the format that such data has.
async fn source(args: &PutArgs) -> Result<(Source, &'static str), Failure> {
    let text = MessageDescriptor::FORMAT_STRING;
    let bytes = MessageDescriptor::FORMAT_NONE;
    let repeated = |data: Vec<u8>| Source::Repeated {
        data: data.into(),
        count: args.count,
    };
    let file = args.body.as_deref().and_then(|body| body.strip_prefix('@'));
    Ok(match (args.body.as_deref(), file) {
        (_, Some(path)) => {
            let open = File::open(path)
                .map_err(|error| Failure::Usage(format!("open {path}: {error}")))?;
            if args.lines {
                (Source::File(BufReader::new(open)), text)
            } else {
                (repeated(input::at_most_one_message(path, open)?), bytes)
            }
        }
        (None | Some("-"), None) if args.lines => (
            Source::Typed {
                lines: input::lines(),
                until_blank: false,
            },
            text,
        ),
        (None, None) if input::is_terminal() => (
            Source::Typed {
                lines: input::lines(),
                until_blank: true,
            },
            text,
        ),
        (None | Some("-"), None) => (repeated(input::all().await?), bytes),
        (Some(_), None) if args.lines => {
            let why = "--lines reads stdin or @FILE; a text is one message".to_owned();
            return Err(Failure::Usage(why));
        }
        (Some(body), None) => (repeated(body.as_bytes().to_vec()), text),
    })
}

fn descriptor(args: &PutArgs, format: &str) -> Result<wire::MessageDescriptor, Failure> {
    let reply_to = args.reply_to.as_ref();
    Ok(wire::MessageDescriptor {
        reply_to_queue: reply_to.map(|r| r.queue.to_string()).unwrap_or_default(),
        reply_to_queue_manager: reply_to
            .and_then(|r| r.queue_manager.as_ref())
            .map(ToString::to_string)
            .unwrap_or_default(),
        ..descriptor_of(&args.message, format)?
    })
}

/// The descriptor that the options ask for; `format` is that of the data, unless they name one.
pub(super) fn descriptor_of(
    options: &MessageOptions,
    format: &str,
) -> Result<wire::MessageDescriptor, Failure> {
    let properties = Properties::new(options.properties.clone()).map_err(|reason| {
        let meaning = reason.meaning().unwrap_or_default();
        Failure::Usage(format!("--property: {reason}: {meaning}"))
    })?;
    let id =
        |bytes: Option<&[u8; 24]>| bytes.map_or_else(Bytes::new, |b| Bytes::copy_from_slice(b));
    let mut descriptor = wire::MessageDescriptor {
        expiry: options.expiry,
        format: options.format.clone().unwrap_or_else(|| format.to_owned()),
        priority: options.priority,
        message_id: id(options.msgid.as_ref().map(MessageId::as_bytes)),
        correlation_id: id(options.correl.as_ref().map(CorrelationId::as_bytes)),
        properties: properties_to_wire(&properties),
        ..wire::MessageDescriptor::default()
    };
    descriptor.set_persistence(match (options.persistent, options.nonpersistent) {
        (true, _) => wire::Persistence::Persistent,
        (false, true) => wire::Persistence::NonPersistent,
        (false, false) => wire::Persistence::Unspecified,
    });
    Ok(descriptor)
}

fn with_data(template: &wire::PutRequest, data: Bytes) -> wire::PutRequest {
    let mut put = template.clone();
    if let Some(message) = &mut put.message {
        message.data = data;
    }
    put
}

impl Source {
    /// The data of the next message; `None` after the last.
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Self::Repeated { count: 0, .. } => Ok(None),
            Self::Repeated { data, count } => {
                *count = count.saturating_sub(1);
                Ok(Some(data.clone()))
            }
            Self::Typed { lines, until_blank } => match lines.recv().await.transpose()? {
                Some(line) if *until_blank && line.is_empty() => Ok(None),
                line => Ok(line.map(Bytes::from)),
            },
            Self::File(file) => Ok(input::next_line(file)?.map(Bytes::from)),
        }
    }

    /// Whether a person types and wants to see each answer at once.
    fn is_typed(&self) -> bool {
        matches!(
            self,
            Self::Typed {
                until_blank: true,
                ..
            }
        )
    }
}

/// Puts many messages, in order, many under way at once. After the first refusal no more are sent.
async fn many(
    invocation: &mut Invocation,
    client: &Client,
    queue_manager: Option<&str>,
    template: &wire::PutRequest,
    mut source: Source,
) -> Result<(), Failure> {
    let session = client.session().await?;
    let window = if source.is_typed() { 1 } else { WINDOW };
    let mut under_way: VecDeque<Answer<wire::PutResponse>> = VecDeque::new();
    let mut put: u64 = 0;
    let mut stopped: Option<Failure> = None;
    let mut at_end = false;
    loop {
        if stopped.is_none() && !at_end && under_way.len() < window {
            match send_next(&session, template, &mut source).await {
                Ok(Some(answer)) => under_way.push_back(answer),
                Ok(None) => at_end = true,
                Err(failure) => stopped = Some(failure),
            }
            continue;
        }
        let Some(answer) = under_way.pop_front() else {
            break;
        };
        match answer.wait().await {
            Ok(response) => {
                put = put.saturating_add(1);
                invocation.done = Some(messages_put(put));
                print(invocation, &template.queue, queue_manager, &response)?;
                if window == 1 {
                    invocation.output.flush()?;
                }
            }
            Err(error) => {
                stopped.get_or_insert(error.into());
            }
        }
    }
    match stopped {
        None => Ok(session.close().await?),
        Some(failure) if put == 0 => Err(failure),
        Some(failure) => Err(Failure::Partly {
            done: messages_put(put),
            cause: Some(Box::new(failure)),
        }),
    }
}

async fn send_next(
    session: &Session,
    template: &wire::PutRequest,
    source: &mut Source,
) -> Result<Option<Answer<wire::PutResponse>>, Failure> {
    match source.next().await? {
        Some(data) => Ok(Some(
            session.send_put(with_data(template, data), None).await?,
        )),
        None => Ok(None),
    }
}

fn messages_put(count: u64) -> String {
    match count {
        1 => "1 message put".to_owned(),
        n => format!("{n} messages put"),
    }
}

fn print(
    invocation: &mut Invocation,
    queue: &str,
    queue_manager: Option<&str>,
    put: &wire::PutResponse,
) -> Result<(), Failure> {
    let message_id = MessageId::from_slice(&put.message_id)
        .unwrap_or_default()
        .to_string();
    if put.reason != ReasonCode::NONE.get() {
        let reason = ReasonCode::new(put.reason);
        let meaning = reason.meaning().unwrap_or_default();
        invocation
            .output
            .remark(&format!("put {queue}: warning: {reason}: {meaning}"));
    }
    if invocation.output.is_text() {
        return invocation.output.line(&message_id);
    }
    invocation.output.record(&PutDocument {
        message_id,
        correl_id: CorrelationId::from_slice(&put.correlation_id)
            .unwrap_or_default()
            .to_string(),
        queue,
        qmgr: queue_manager,
        resolved_queue: &put.resolved_queue,
        resolved_qmgr: &put.resolved_queue_manager,
        mqcc: u8::from(put.reason != 0),
        mqrc: put.reason,
    })
}
