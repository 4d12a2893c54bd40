//! `ferrymq get`: each message is removed in a unit of work that ends when it is written out, so that one that nobody
//! could read is back on its queue.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use ferrymq_client::{Session, wire};
use ferrymq_types::{CorrelationId, MessageId, UnitOfWorkId};

use crate::cli::GetArgs;
use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Invocation, Retry};
use crate::message::{Decoding, MessageDocument, Place, message_id};
use crate::parse::Count;

/// Messages of one unit of work: many share one sync, and few come again if it fails.
const BATCH: u64 = 64;

/// Files that may have the name of one message id, since ids need not be unique.
const SAME_NAME_MAX: u32 = 10_000;

pub(crate) async fn run(invocation: &mut Invocation, args: GetArgs) -> Result<(), Failure> {
    let connected = invocation.connect(Retry::Yes, TIMEOUT_DEFAULT).await?;
    let session = connected.client.session().await?;
    let id =
        |bytes: Option<&[u8; 24]>| bytes.map_or_else(Bytes::new, |b| Bytes::copy_from_slice(b));
    let request = wire::GetRequest {
        queue_manager: connected.queue_manager(),
        queue: args.queue.to_string(),
        wait_ms: 0,
        message_id: id(args.id.as_ref().map(MessageId::as_bytes)),
        correlation_id: id(args.correl.as_ref().map(CorrelationId::as_bytes)),
        selector: args.selector.clone().unwrap_or_default(),
        length_max: 0,
        // UTF-8 by default.
        convert: (!args.no_convert).then(wire::Conversion::default),
        ..wire::GetRequest::default()
    };
    let getter = Getter {
        session: &session,
        request,
        args: &args,
        queue_manager: connected.queue_manager_if_said(),
    };
    let mut got: u64 = 0;
    let ended = loop {
        match getter.batch(invocation, got).await {
            Ok(0) => break None,
            Ok(more) => {
                got = got.saturating_add(more);
                invocation.done = Some(messages_got(got));
                if args.count.is_reached_by(got) {
                    break None;
                }
            }
            Err(failure) => break Some(failure),
        }
    };
    match (ended, args.count) {
        (Some(failure), _) if got == 0 => return Err(failure),
        (Some(failure), _) => {
            return Err(Failure::Partly {
                done: messages_got(got),
                cause: Some(Box::new(failure)),
            });
        }
        (None, _) if got == 0 => return Err(Failure::NoMessage),
        (None, Count::Exactly(count)) if got < count => {
            return Err(Failure::Partly {
                done: messages_got(got),
                cause: None,
            });
        }
        (None, Count::Exactly(_) | Count::All) => {}
    }
    Ok(session.close().await?)
}

fn messages_got(count: u64) -> String {
    match count {
        1 => "1 message got".to_owned(),
        n => format!("{n} messages got"),
    }
}

struct Getter<'a> {
    session: &'a Session,
    request: wire::GetRequest,
    args: &'a GetArgs,
    queue_manager: Option<&'a str>,
}

impl Getter<'_> {
    /// Gets and writes out messages of one unit of work, and commits it. Returns how many; 0 if there are none.
    async fn batch(&self, invocation: &mut Invocation, before: u64) -> Result<u64, Failure> {
        let unit_of_work = self.session.begin(None).await?;
        let mut got: u64 = 0;
        // Only the first is waited for: others must not wait uncommitted.
        while got < BATCH && !self.args.count.is_reached_by(before.saturating_add(got)) {
            let wait = if got == 0 {
                self.args.wait
            } else {
                Duration::ZERO
            };
            let (message, examined) = self.get(unit_of_work, wait).await?;
            let Some(message) = message else {
                if self.args.selector.is_some() {
                    let remark = format!("no more of them match: {examined} messages judged");
                    invocation.output.remark(&remark);
                }
                break;
            };
            self.write_out(invocation, message)?;
            got = got.saturating_add(1);
        }
        invocation.output.flush()?;
        self.session.commit(unit_of_work).await?;
        Ok(got)
    }

    async fn get(
        &self,
        unit_of_work: UnitOfWorkId,
        wait: Duration,
    ) -> Result<(Option<wire::Message>, u64), Failure> {
        let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        let request = wire::GetRequest {
            wait_ms,
            ..self.request.clone()
        };
        let got = self
            .session
            .get_counted(request, Some(unit_of_work))
            .await?;
        Ok((got.0.map(|got| got.message), got.1))
    }

    fn write_out(
        &self,
        invocation: &mut Invocation,
        message: wire::Message,
    ) -> Result<(), Failure> {
        let descriptor = message.descriptor.unwrap_or_default();
        if let Some(directory) = &self.args.out {
            let name = message_id(&descriptor);
            write_file(directory, &name, &message.data).map_err(|error| {
                Failure::System(format!("write {name} in {}: {error}", directory.display()))
            })?;
        }
        let output = &mut invocation.output;
        if !output.is_text() {
            let place = Place {
                queue: &self.request.queue,
                queue_manager: self.queue_manager,
                ..Place::default()
            };
            let document =
                MessageDocument::new(place, &descriptor, &message.data, Decoding::Readable);
            return output.record(&document);
        }
        if self.args.out.is_some() {
            return output.line(&message_id(&descriptor));
        }
        output.bytes(&message.data)?;
        if output.is_terminal() {
            output.bytes(b"\n")
        } else {
            Ok(())
        }
    }
}

/// Writes a new file and makes it durable: after that its message is removed from the queue.
fn write_file(directory: &Path, name: &str, data: &[u8]) -> std::io::Result<()> {
    let mut number = 1u32;
    let mut file = loop {
        let path = match number {
            1 => directory.join(name),
            n => directory.join(format!("{name}-{n}")),
        };
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => break file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < SAME_NAME_MAX => {
                number = number.saturating_add(1);
            }
            Err(error) => return Err(error),
        }
    };
    file.write_all(data)?;
    file.sync_all()?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        for data in ["a", "b", "c"] {
            write_file(directory.path(), "id", data.as_bytes()).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(
            (read("id"), read("id-2"), read("id-3")),
            ("a".into(), "b".into(), "c".into())
        );
    }
}
