//! `ferrymq browse`: never removes.

use bytes::Bytes;
use ferrymq_client::wire;
use ferrymq_types::{CorrelationId, MessageId};

use crate::cli::BrowseArgs;
use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Invocation, Retry};
use crate::message::{Decoding, MessageDocument, Place, ROW_HEADING, hexadecimal, row};

/// Rows that are written out at once: columns fit these rows.
const ROWS: usize = 256;

pub(crate) async fn run(invocation: &mut Invocation, args: BrowseArgs) -> Result<(), Failure> {
    let connected = invocation.connect(Retry::Yes, TIMEOUT_DEFAULT).await?;
    let id =
        |bytes: Option<&[u8; 24]>| bytes.map_or_else(Bytes::new, |b| Bytes::copy_from_slice(b));
    let request = wire::BrowseRequest {
        queue_manager: connected.queue_manager(),
        queue: args.queue.to_string(),
        message_id: id(args.id.as_ref().map(MessageId::as_bytes)),
        correlation_id: id(args.correl.as_ref().map(CorrelationId::as_bytes)),
        limit: args.limit.unwrap_or(0),
        selector: args.selector.clone().unwrap_or_default(),
        // Whatever the queue says, so that they are shown as what they are.
        properties: wire::PropertyOption::InDescriptor.into(),
        ..wire::BrowseRequest::default()
    };
    let mut messages = connected.client.browse(request).await?;
    let output = &mut invocation.output;
    let mut number: u64 = 0;
    let mut rows = Vec::new();
    while let Some(found) = messages.next().await? {
        number = number.saturating_add(1);
        let message = found.message.unwrap_or_default();
        let descriptor = message.descriptor.unwrap_or_default();
        if !output.is_text() {
            let place = Place {
                queue: args.queue.as_str(),
                queue_manager: connected.queue_manager_if_said(),
                position: Some(found.position),
                held: None,
            };
            output.record(&MessageDocument::new(
                place,
                &descriptor,
                &message.data,
                Decoding::Readable,
            ))?;
        } else if args.hex {
            for line in hexadecimal(number, &descriptor, &message.data) {
                output.line(&line)?;
            }
        } else {
            rows.push(row(found.position, &descriptor, &message.data));
            if rows.len() == ROWS {
                output.table(ROW_HEADING, &rows)?;
                rows.clear();
            }
        }
    }
    if !rows.is_empty() {
        output.table(ROW_HEADING, &rows)?;
    }
    if number == 0 {
        Err(Failure::NoMessage)
    } else {
        Ok(())
    }
}
