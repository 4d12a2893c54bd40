//! `ferrymq reply`: each request is got and its reply is put in one unit of work: both, or neither.

use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use ferrymq_client::{Queue, Session, reply_to, wire};
use ferrymq_types::{MESSAGE_LENGTH_MAX, MessageDescriptor, ReasonCode, UnitOfWorkId};

use crate::cli::{ReplyArgs, ReplyWith};
use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Invocation, Retry};
use crate::message::message_id;

/// How long to wait after a request that had to be backed out: it comes again at once, until the queue's BOTHRESH takes it away.
const PAUSE_AFTER_BACKOUT: Duration = Duration::from_secs(1);

/// What became of requests.
#[derive(Debug, Default)]
struct Tally {
    replied: u64,
    backed_out: u64,
}

impl Tally {
    fn total(&self) -> u64 {
        self.replied.saturating_add(self.backed_out)
    }

    fn words(&self) -> String {
        format!(
            "{} answered, {} backed out",
            match self.replied {
                1 => "1 request".to_owned(),
                n => format!("{n} requests"),
            },
            self.backed_out
        )
    }
}

pub(crate) async fn run(invocation: &mut Invocation, args: ReplyArgs) -> Result<(), Failure> {
    let connected = invocation.connect(Retry::Yes, TIMEOUT_DEFAULT).await?;
    let session = connected.client.session().await?;
    let open = wire::OpenCall {
        queue: args.queue.to_string(),
        input: wire::InputUse::Shared.into(),
        selector: args.selector.clone().unwrap_or_default(),
        ..wire::OpenCall::default()
    };
    let queue = session.open(open).await?;
    let mut tally = Tally::default();
    let mut last_failure = None;
    while !args.count.is_reached_by(tally.total()) {
        let unit_of_work = session.begin(None).await?;
        let Some(request) = get(&queue, unit_of_work, &args).await? else {
            session.back(unit_of_work).await?;
            break;
        };
        let id = message_id(&request.descriptor.clone().unwrap_or_default());
        match answer(&session, unit_of_work, request, &args.with).await {
            Ok(()) => {
                session.commit(unit_of_work).await?;
                tally.replied = tally.replied.saturating_add(1);
                if invocation.output.is_text() {
                    invocation.output.line(&id)?;
                } else {
                    let document =
                        serde_json::json!({"request_id": id, "queue": args.queue.as_str()});
                    invocation.output.record(&document)?;
                }
                invocation.output.flush()?;
            }
            Err(failure) => {
                session.back(unit_of_work).await?;
                tally.backed_out = tally.backed_out.saturating_add(1);
                invocation.output.remark(&format!(
                    "request {id} backed out: {}",
                    failure.text("reply")
                ));
                last_failure = Some(failure);
                if !args.count.is_reached_by(tally.total()) {
                    tokio::time::sleep(PAUSE_AFTER_BACKOUT).await;
                }
            }
        }
        invocation.done = Some(tally.words());
    }
    match last_failure {
        Some(failure) if tally.replied == 0 => Err(failure),
        Some(failure) => Err(Failure::Partly {
            done: tally.words(),
            cause: Some(Box::new(failure)),
        }),
        None if tally.replied == 0 => Err(Failure::NoMessage),
        None => Ok(session.close().await?),
    }
}

async fn get(
    queue: &Queue<'_>,
    unit_of_work: UnitOfWorkId,
    args: &ReplyArgs,
) -> Result<Option<wire::Message>, Failure> {
    let wait_ms = args.wait.map_or(0, |wait| {
        u32::try_from(wait.as_millis()).unwrap_or(u32::MAX)
    });
    let get = wire::GetCall {
        get: Some(wire::GetRequest {
            wait_ms,
            // A command reads text in UTF-8; an echo gives back what came.
            convert: args.with.exec.as_ref().map(|_| wire::Conversion::default()),
            ..wire::GetRequest::default()
        }),
        wait_unlimited: args.wait.is_none(),
        syncpoint: Bytes::copy_from_slice(unit_of_work.as_bytes()),
        ..wire::GetCall::default()
    };
    Ok(queue.get(get).await?.map(|got| got.message))
}

/// Makes the reply to a request and puts it in the unit of work.
async fn answer(
    session: &Session,
    unit_of_work: UnitOfWorkId,
    request: wire::Message,
    with: &ReplyWith,
) -> Result<(), Failure> {
    let descriptor = request.descriptor.clone().unwrap_or_default();
    let data = match (&with.text, &with.exec) {
        (Some(text), _) => text_message(Bytes::copy_from_slice(text.as_bytes())),
        (None, Some(command)) => {
            let command = command.clone();
            let output = tokio::task::spawn_blocking(move || execute(&command, request.data));
            let output = output
                .await
                .map_err(|error| Failure::System(format!("run the command: {error}")))??;
            text_message(output.into())
        }
        (None, None) => request,
    };
    let Some(put) = reply_to(&descriptor, data) else {
        let reason = ReasonCode::MISSING_REPLY_TO_Q;
        let meaning = reason.meaning().unwrap_or_default();
        return Err(Failure::System(format!("{reason}: {meaning}")));
    };
    session.put(put, Some(unit_of_work)).await?;
    Ok(())
}

/// Text if it is some.
fn text_message(data: Bytes) -> wire::Message {
    let format = if core::str::from_utf8(&data).is_ok() {
        MessageDescriptor::FORMAT_STRING
    } else {
        MessageDescriptor::FORMAT_NONE
    };
    wire::Message {
        descriptor: Some(wire::MessageDescriptor {
            format: format.to_owned(),
            ..wire::MessageDescriptor::default()
        }),
        data,
    }
}

/// Runs a shell command with the data on stdin. Returns what it writes to stdout, at most as much as a message holds.
fn execute(command: &str, data: Bytes) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::System(format!("run `{command}`: {error}"));
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    // By a thread of its own: a command may write before it has read everything.
    let writer = thread::spawn(
        move || match stdin.map(|mut stdin| stdin.write_all(&data)) {
            // It need not read what it has no use for.
            Some(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Some(Ok(()) | Err(_)) | None => Ok(()),
        },
    );
    let limit = u64::from(MESSAGE_LENGTH_MAX);
    let mut output = Vec::new();
    let read = match stdout {
        Some(stdout) => stdout
            .take(limit.saturating_add(1))
            .read_to_end(&mut output),
        None => Ok(0),
    };
    if read.is_err() || output.len() as u64 > limit {
        child.kill().map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    let written = writer
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the writer of its input ended")));
    read.map_err(failed)?;
    if output.len() as u64 > limit {
        let text = format!("`{command}` wrote more than the {limit} bytes of a message");
        return Err(Failure::System(text));
    }
    if !status.success() {
        return Err(Failure::System(format!("`{command}` ended with {status}")));
    }
    written.map_err(failed)?;
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_request_and_says_the_reply() {
        let run = |command: &str, data: &'static [u8]| execute(command, Bytes::from_static(data));
        assert_eq!(run("tr a-z A-Z", b"abc").expect("it runs"), b"ABC");
        assert_eq!(run("true", &[7; 1_000_000]).expect("it reads nothing"), b"");
        let failure = run("echo x; exit 3", b"").expect_err("it fails");
        assert!(failure.text("reply").contains("exit status: 3"));
    }

    #[test]
    fn a_large_request_passes_through_a_command() {
        let data = vec![b'x'; 3_000_000];
        let output = execute("cat", data.clone().into()).expect("it runs");
        assert!(output == data);
    }
}
