//! `ferrymq version`.

use serde::Serialize;

use crate::failure::Failure;
use crate::invocation::Invocation;

#[derive(Debug, Serialize)]
struct VersionDocument {
    version: &'static str,
}

pub(crate) fn run(invocation: &mut Invocation) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    if invocation.output.is_text() {
        invocation.output.line(&format!("ferrymq {version}"))
    } else {
        invocation.output.document(&VersionDocument { version })
    }
}
