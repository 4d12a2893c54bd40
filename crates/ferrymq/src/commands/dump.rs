//! `ferrymq dump --all`: every message, for a machine to read.

use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Invocation, Retry};
use crate::message::{Decoding, MessageDocument, Place};

pub(crate) async fn run(invocation: &mut Invocation) -> Result<(), Failure> {
    let connected = invocation.connect(Retry::Yes, TIMEOUT_DEFAULT).await?;
    let mut messages = connected
        .client
        .admin()
        .dump(&connected.queue_manager())
        .await?;
    let mut written: u64 = 0;
    while let Some(found) = messages.next().await? {
        let message = found.message.unwrap_or_default();
        let descriptor = message.descriptor.unwrap_or_default();
        let place = Place {
            queue: &found.queue,
            queue_manager: connected.queue_manager_if_said(),
            position: Some(found.position),
            held: Some(found.held),
        };
        let document = MessageDocument::new(place, &descriptor, &message.data, Decoding::Exact);
        invocation.output.record(&document)?;
        written = written.saturating_add(1);
        invocation.done = Some(format!("{written} messages written"));
    }
    Ok(())
}
