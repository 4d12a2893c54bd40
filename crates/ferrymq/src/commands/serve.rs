//! `ferrymq serve`: runs a node.

use std::path::PathBuf;

use ferrymq_qmgr::config::{ConfigError, NodeConfig};
use ferrymq_qmgr::{Ready, RunError, logging};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::cli::ServeArgs;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// A node that is up, as JSON.
#[derive(Debug, Serialize)]
struct ReadyDocument<'a> {
    node: &'a str,
    qmgrs: &'a [String],
    address: String,
    peer_address: Option<String>,
}

#[derive(Debug, Serialize)]
struct CheckDocument {
    config: PathBuf,
    valid: bool,
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let text = error.to_string();
        match error {
            RunError::Config(_)
            | RunError::Tls(_)
            | RunError::Listen { .. }
            | RunError::DataDirectory { .. } => Self::Usage(text),
            RunError::Metadata(_) | RunError::QueueManager(_) | RunError::Failed(_) => {
                Self::System(text)
            }
            RunError::Cancelled => Self::Interrupted,
        }
    }
}

pub(crate) async fn run(invocation: &mut Invocation, args: ServeArgs) -> Result<(), Failure> {
    let config = NodeConfig::load(&args.config)?;
    if args.check {
        ferrymq_qmgr::check(&config)?;
        return if invocation.output.is_text() {
            invocation
                .output
                .line(&format!("{} is valid", args.config.display()))
        } else {
            invocation.output.document(&CheckDocument {
                config: args.config,
                valid: true,
            })
        };
    }
    logging::init(&config.log, &config.node.name);
    let node = config.node.clone();
    let shutdown = until_told_to_stop()?;
    let told = shutdown.clone();
    let mut not_told = None;
    let output = &mut invocation.output;
    let on_ready = |ready: Ready| {
        let said = if output.is_text() {
            output.line(&format!("{} listens on {}", node.qmgrs.join(","), ready.mq))
        } else {
            output.document(&ReadyDocument {
                node: &node.name,
                qmgrs: &node.qmgrs,
                address: ready.mq.to_string(),
                peer_address: ready.peer.map(|peer| peer.to_string()),
            })
        };
        if let Err(failure) = said.and_then(|()| output.flush()) {
            not_told = Some(failure);
            told.cancel();
        }
    };
    Box::pin(ferrymq_qmgr::run(config, shutdown, on_ready)).await?;
    not_told.map_or(Ok(()), Err)
}

/// A token that is cancelled when the process is told to stop: by SIGTERM or by Ctrl-C.
pub(crate) fn until_told_to_stop() -> Result<CancellationToken, Failure> {
    let token = CancellationToken::new();
    let cancel = token.clone();
    #[cfg(unix)]
    let refused = |error: std::io::Error| Failure::System(format!("watch for signals: {error}"));
    #[cfg(unix)]
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(refused)?;
    #[cfg(unix)]
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
        .map_err(refused)?;
    // Ends with the process: it is what ends the process.
    tokio::spawn(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        cancel.cancel();
    });
    Ok(token)
}
