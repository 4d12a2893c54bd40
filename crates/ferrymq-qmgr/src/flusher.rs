//! The thread that makes write sets durable while the engine gathers more.

use ferrymq_store::{LogSync, StoreError};
use ferrymq_types::{Position, QueueManagerName};
use tokio::sync::mpsc;

/// The thread that syncs while the engine gathers.
pub(crate) struct Flusher {
    begin: std::sync::mpsc::Sender<()>,
    /// What came of each sync.
    pub(crate) results: mpsc::UnboundedReceiver<Result<Position, StoreError>>,
}

impl Flusher {
    pub(crate) fn start<S: LogSync>(syncer: S, name: &QueueManagerName) -> std::io::Result<Self> {
        let (begin, begun) = std::sync::mpsc::channel();
        let (sender, results) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name(format!("sync-{name}"))
            .spawn(move || {
                while begun.recv().is_ok() {
                    ferrymq_store::crash_point("engine.before_sync");
                    if sender.send(syncer.sync()).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self { begin, results })
    }

    /// Begins a sync of what has been appended.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        self.begin
            .send(())
            .map_err(|_| "the syncing thread has ended".to_owned())
    }

    /// The result of the sync that is under way; never, if there is no such thread.
    pub(crate) async fn done(this: &mut Option<Self>) -> Result<Position, StoreError> {
        match this {
            Some(flusher) => match flusher.results.recv().await {
                Some(result) => result,
                None => Err(StoreError::Failed {
                    cause: "the syncing thread has ended".to_owned(),
                }),
            },
            None => std::future::pending().await,
        }
    }
}
