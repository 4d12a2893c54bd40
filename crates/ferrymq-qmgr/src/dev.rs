//! `ferrymq dev`: one queue manager, QM1, with the DEV.* objects, on loopback without certificates, to try things.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::config::{
    AuthConfig, ByteSize, ClusterConfig, ListenConfig, LogConfig, NodeConfig, NodeSection,
    StorageConfig,
};
use crate::run::{Ready, RunError, run_with};

/// What `ferrymq dev` was told.
#[derive(Debug, Clone)]
pub struct DevOptions {
    /// Where to keep data.
    pub data_dir: PathBuf,
    /// The port of the listener on 127.0.0.1; 0 takes a free one.
    pub port: u16,
}

/// The queue manager's name.
pub const QUEUE_MANAGER: &str = "QM1";

/// Objects of a try-out queue manager; defined once, so that what was changed stays.
///
/// Source: IBM MQ, developer defaults of the container image.
pub const OBJECTS: &str = "\
DEFINE QLOCAL(DEV.QUEUE.1)
DEFINE QLOCAL(DEV.QUEUE.2)
DEFINE QLOCAL(DEV.QUEUE.3)
DEFINE QLOCAL(DEV.DEAD.LETTER.QUEUE)
DEFINE QMODEL(DEV.APP.MODEL.QUEUE)
DEFINE CHANNEL(DEV.APP.SVRCONN) CHLTYPE(SVRCONN) MCAUSER('app')
DEFINE CHANNEL(DEV.ADMIN.SVRCONN) CHLTYPE(SVRCONN) MCAUSER('admin')
ALTER QMGR DEADQ(DEV.DEAD.LETTER.QUEUE)
";

/// The configuration of a try-out node.
#[must_use]
pub fn config(options: &DevOptions) -> NodeConfig {
    NodeConfig {
        node: NodeSection {
            name: "dev".into(),
            id: 1,
            data_dir: options.data_dir.clone(),
            qmgrs: vec![QUEUE_MANAGER.into()],
        },
        listen: ListenConfig {
            mq: SocketAddr::from(([127, 0, 0, 1], options.port)),
            ..ListenConfig::default()
        },
        tls: None,
        auth: AuthConfig::default(),
        cluster: ClusterConfig {
            name: "dev".into(),
            ..ClusterConfig::default()
        },
        storage: StorageConfig {
            segment: ByteSize(16 << 20),
            journal: ByteSize(128 << 20),
            ..StorageConfig::default()
        },
        log: LogConfig::default(),
    }
}

/// Runs a try-out node until `shutdown` is cancelled.
///
/// # Errors
/// As [`crate::run`].
pub async fn run(
    options: &DevOptions,
    shutdown: CancellationToken,
    on_ready: impl FnOnce(Ready) + Send,
) -> Result<(), RunError> {
    run_with(config(options), Some(OBJECTS), shutdown, on_ready).await
}
