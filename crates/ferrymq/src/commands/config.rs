//! `ferrymq config`: definitions as code.

use serde::Serialize;

use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Invocation, Retry};

#[derive(Debug, Serialize)]
struct ExportDocument {
    lines: Vec<String>,
}

/// `config export`.
pub(crate) async fn export(invocation: &mut Invocation) -> Result<(), Failure> {
    let connected = invocation.connect(Retry::Yes, TIMEOUT_DEFAULT).await?;
    let queue_manager = connected.queue_manager();
    let admin = connected.client.admin();
    let lines = admin.export_definitions(&queue_manager).await?;
    let output = &mut invocation.output;
    if !output.is_text() {
        return output.document(&ExportDocument { lines });
    }
    lines.iter().try_for_each(|line| output.line(line))
}
