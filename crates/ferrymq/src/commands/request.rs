//! `ferrymq request`: asks, and writes out the reply.

use std::time::Instant;

use bytes::Bytes;
use ferrymq_client::{ReplyQueue, wire};
use ferrymq_types::{MessageDescriptor, ReportOptions};

use super::put::descriptor_of;
use crate::cli::RequestArgs;
use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::input;
use crate::invocation::{Invocation, Retry};
use crate::message::{Decoding, MessageDocument, Place, message_id_of};

pub(crate) async fn run(invocation: &mut Invocation, args: RequestArgs) -> Result<(), Failure> {
    let (data, format) = data(args.body.as_deref()).await?;
    let report = ReportOptions::NONE
        .with_pass_message_id(args.pass_msgid)
        .with_pass_correlation_id(args.pass_correl);
    let descriptor = wire::MessageDescriptor {
        report: report.bits(),
        ..descriptor_of(&args.message, format)?
    };
    let connected = invocation.connect(Retry::Yes, TIMEOUT_DEFAULT).await?;
    let put = wire::PutRequest {
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
            data,
        }),
        ..wire::PutRequest::default()
    };
    let session = connected.client.session().await?;
    let reply_queue = match args.reply_queue {
        Some(queue) => ReplyQueue::Named(queue.to_string()),
        None => ReplyQueue::Model {
            model: args.model.to_string(),
            name: String::new(),
        },
    };
    let mut requester = session.requester(reply_queue).await?;
    // UTF-8 by default.
    requester.convert = (!args.no_convert).then(wire::Conversion::default);
    let started = Instant::now();
    let reply = requester.request(put, args.wait).await?;
    let round_trip = started.elapsed();
    let Some(message) = reply.message else {
        let id = message_id_of(&reply.request.message_id);
        invocation
            .output
            .remark(&format!("no reply to {id} within {:?}", args.wait));
        requester.close().await?;
        return Err(Failure::NoMessage);
    };
    let output = &mut invocation.output;
    output.remark(&format!(
        "reply after {:.3} ms",
        round_trip.as_secs_f64() * 1000.0
    ));
    let descriptor = message.descriptor.unwrap_or_default();
    if output.is_text() {
        output.bytes(&message.data)?;
        if output.is_terminal() {
            output.bytes(b"\n")?;
        }
    } else {
        let place = Place {
            queue: requester.reply_queue(),
            queue_manager: connected.queue_manager_if_said(),
            ..Place::default()
        };
        let document = MessageDocument::new(place, &descriptor, &message.data, Decoding::Readable);
        output.record(&document)?;
    }
    output.flush()?;
    requester.close().await?;
    Ok(session.close().await?)
}

/// What is asked, and the format that such data has.
async fn data(body: Option<&str>) -> Result<(Bytes, &'static str), Failure> {
    let file = body.and_then(|body| body.strip_prefix('@'));
    Ok(match (body, file) {
        (_, Some(path)) => {
            let open = std::fs::File::open(path)
                .map_err(|error| Failure::Usage(format!("open {path}: {error}")))?;
            let bytes = input::at_most_one_message(path, open)?;
            (bytes.into(), MessageDescriptor::FORMAT_NONE)
        }
        (None | Some("-"), None) => (input::all().await?.into(), MessageDescriptor::FORMAT_NONE),
        (Some(text), None) => (
            text.as_bytes().to_vec().into(),
            MessageDescriptor::FORMAT_STRING,
        ),
    })
}
