//! From a configuration to a running node, and back.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ferrymq_authority::PeerPattern;
use ferrymq_metadata::{Member, Metadata, MetadataConfig};
use ferrymq_proto::{DESCRIPTOR_SET, admin_v1, channel_v1, v1};
use ferrymq_store::RecordLog as _;
use ferrymq_tls::{ClientVerification, RevocationPolicy, TlsFiles, TlsReloader};
use ferrymq_transport::{
    ListenError, Listener, ListenerHandle, ListenerSecurity, ServerLimits, server_builder,
};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tracing::{info, warn};

use crate::channels::{FRAME_BYTES_MAX, with_causes};
use crate::clock::Clock;
use crate::config::NodeConfig;
use crate::metadata_store::CopyDefinitions;
use crate::network::Network;
use crate::node::Node;
use crate::queue_manager::StartError;
use crate::services::admin::{AdminService, Callers};
use crate::services::channel::ChannelService;
use crate::services::messaging::MessagingService;
use crate::{commands, metadata_store, reload};

/// Why a node does not run, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration does not fit what is there.
    #[error("{0}")]
    Config(String),
    /// A certificate, key or list cannot be used.
    #[error("{}", with_causes(.0))]
    Tls(#[from] ferrymq_tls::TlsError),
    /// An address cannot be listened on.
    #[error("{key}: {}", with_causes(source))]
    Listen {
        /// The configuration key.
        key: &'static str,
        /// The address and why.
        source: ListenError,
    },
    /// The data directory cannot be used.
    #[error("cannot use data directory {}: {source}", path.display())]
    DataDirectory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The definitions cannot be opened or changed.
    #[error("definitions: {0}")]
    Metadata(String),
    /// A queue manager does not start.
    #[error(transparent)]
    QueueManager(#[from] StartError),
    /// A queue manager failed while it ran: recovery at the next start decides what is in doubt.
    #[error("the node ended: {0}")]
    Failed(String),
    /// The node was asked to end before it was up.
    #[error("the start was cancelled")]
    Cancelled,
}

impl RunError {
    fn metadata(error: &dyn std::error::Error) -> Self {
        Self::Metadata(with_causes(error))
    }
}

/// What a node that is up tells its caller.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Where clients and channels connect.
    pub mq: SocketAddr,
    /// Where other nodes connect, if it is not alone.
    pub peer: Option<SocketAddr>,
}

fn tls_files(config: &NodeConfig) -> Option<TlsFiles> {
    config.tls.as_ref().map(|tls| TlsFiles {
        certificate: tls.cert.clone(),
        key: tls.key.clone(),
        authorities: tls.ca.clone(),
        revocation_lists: tls.crl.clone(),
        revocation: RevocationPolicy::default(),
    })
}

/// Checks a configuration as far as that is possible without running it: files, certificates, addresses.
///
/// # Errors
/// What is wrong, naming key or file.
pub fn check(config: &NodeConfig) -> Result<(), RunError> {
    if let Some(files) = tls_files(config) {
        TlsReloader::load(files, ClientVerification::Optional)?;
    }
    std::fs::create_dir_all(&config.node.data_dir).map_err(|source| RunError::DataDirectory {
        path: config.node.data_dir.clone(),
        source,
    })?;
    let peer = (!config.is_alone()).then_some(("listen.peer", config.listen.peer));
    for (key, address) in [("listen.mq", config.listen.mq)].into_iter().chain(peer) {
        // Bound and let go of again; plain or not was checked with the configuration.
        let security = ListenerSecurity::PlainLoopback;
        if address.ip().is_loopback() {
            bind(key, address, security)?;
        }
    }
    Ok(())
}

/// Runs a node until `shutdown` is cancelled. `on_ready` is called once it serves.
///
/// # Errors
/// [`RunError`]: nothing was lost; the error names what is wrong.
pub async fn run(
    config: NodeConfig,
    shutdown: CancellationToken,
    on_ready: impl FnOnce(Ready) + Send,
) -> Result<(), RunError> {
    run_with(config, None, shutdown, on_ready).await
}

/// As [`run`], with MQSC that is run when its queue manager is new.
pub(crate) async fn run_with(
    config: NodeConfig,
    first_objects: Option<&'static str>,
    shutdown: CancellationToken,
    on_ready: impl FnOnce(Ready) + Send,
) -> Result<(), RunError> {
    let data_dir = config.node.data_dir.clone();
    std::fs::create_dir_all(&data_dir).map_err(|source| RunError::DataDirectory {
        path: data_dir.clone(),
        source,
    })?;
    // One set of files for both listeners; they differ in whether a certificate must come at the handshake.
    let mq_tls = tls_files(&config)
        .map(|files| TlsReloader::load(files, ClientVerification::Optional).map(Arc::new))
        .transpose()?;
    let peer_tls = tls_files(&config)
        .filter(|_| !config.is_alone())
        .map(|files| TlsReloader::load(files, ClientVerification::Required).map(Arc::new))
        .transpose()?;
    let administrators = config
        .auth
        .admin_peers
        .iter()
        .map(|text| {
            PeerPattern::parse(text).map_err(|e| RunError::Config(format!("{text:?}: {e}")))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let network = Network::new(&config.cluster, peer_tls.clone()).map_err(RunError::Config)?;
    let network = Arc::new(network);
    // Addresses first: a port that is in use is told before anything is opened or changed.
    let security = mq_tls
        .clone()
        .map_or(ListenerSecurity::PlainLoopback, ListenerSecurity::Tls);
    let mq = bind("listen.mq", config.listen.mq, security)?;
    let peer = peer_tls
        .clone()
        .map(|tls| {
            bind(
                "listen.peer",
                config.listen.peer,
                ListenerSecurity::Tls(tls),
            )
        })
        .transpose()?;
    let metadata = open_metadata(&config, network.clone()).await?;
    let node = Node::new(
        config,
        Clock::start(),
        metadata,
        network,
        mq_tls.clone(),
        administrators,
        shutdown.child_token(),
    );
    let watched: Vec<_> = mq_tls.iter().chain(&peer_tls).cloned().collect();
    if !watched.is_empty() {
        node.tasks().spawn(reload::run(watched, shutdown.clone()));
    }
    let result = serve(&node, mq, peer, first_objects, &shutdown, on_ready).await;
    node.stop().await;
    match node.failure() {
        Some(cause) => Err(RunError::Failed(cause)),
        None => result,
    }
}

fn bind(
    key: &'static str,
    address: SocketAddr,
    security: ListenerSecurity,
) -> Result<Listener, RunError> {
    Listener::bind(address, security, ServerLimits::default())
        .map_err(|source| RunError::Listen { key, source })
}

/// Opens log and state of the definitions, and starts Raft.
async fn open_metadata(
    config: &NodeConfig,
    network: Arc<Network>,
) -> Result<(Metadata, CopyDefinitions), RunError> {
    let directory = config.node.data_dir.join("metadata");
    let path = directory.clone();
    let opened = tokio::task::spawn_blocking(move || metadata_store::open(&path)).await;
    let (log, state) = opened
        .map_err(|error| RunError::Metadata(error.to_string()))?
        .map_err(|error| RunError::metadata(&error))?;
    let state = Arc::new(state);
    let copy = CopyDefinitions {
        log: log.syncer(),
        state: Arc::clone(&state),
        directory,
    };
    let metadata = Metadata::open(metadata_config(config), log, state, network)
        .await
        .map_err(|error| RunError::metadata(&error))?;
    Ok((metadata, copy))
}

fn metadata_config(config: &NodeConfig) -> MetadataConfig {
    let directory = config.node.data_dir.join("metadata");
    let members = if config.cluster.peers.is_empty() {
        vec![Member {
            id: config.node.id,
            name: config.node.name.clone(),
            address: String::new(),
        }]
    } else {
        let member = |peer: &crate::config::PeerConfig| Member {
            id: peer.id,
            name: peer.name.clone(),
            address: peer.peer.clone(),
        };
        config.cluster.peers.iter().map(member).collect()
    };
    // The first of the configured nodes makes the cluster, once.
    let bootstrap = members.iter().map(|m| m.id).min() == Some(config.node.id);
    MetadataConfig {
        bootstrap,
        election_timeout: config.cluster.election_timeout.0,
        heartbeat: config.cluster.heartbeat.0,
        snapshot_every: config.cluster.snapshot_every,
        ..MetadataConfig::new(
            config.cluster.name.clone(),
            config.node.id,
            members,
            directory,
        )
    }
}

async fn serve(
    node: &Arc<Node>,
    mq: Listener,
    peer: Option<Listener>,
    first_objects: Option<&'static str>,
    shutdown: &CancellationToken,
    on_ready: impl FnOnce(Ready) + Send,
) -> Result<(), RunError> {
    let peer = peer.map(|listener| listener.start(router(peer_routes(node))));
    if peer.is_some() {
        node.metadata()
            .bootstrap()
            .await
            .map_err(|error| RunError::metadata(&error))?;
    }
    node.start_queue_managers().await?;
    if let Some(script) = first_objects {
        commands::run_once(node, script).await?;
    }
    let (health, routes) = mq_routes(node).await?;
    let mq = mq.start(router(routes));
    let ready = Ready {
        mq: mq.local_addr(),
        peer: peer.as_ref().map(ListenerHandle::local_addr),
    };
    info!(id = "FMQ9043I", mq = %ready.mq, "the node serves");
    on_ready(ready);
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = node.cancelled() => {}
    }
    info!(id = "FMQ9044I", "the node ends");
    health
        .set_service_status("", tonic_health::ServingStatus::NotServing)
        .await;
    // Who asked for it hears of the end (2161); the others go on for the grace period of the listener.
    node.quiesce();
    // Channels end with their queue managers; what clients have open ends with the listener.
    for listener in [Some(mq), peer].into_iter().flatten() {
        if let Err(error) = listener.stop().await {
            warn!("a listener did not end as it should: {error}");
        }
    }
    Ok(())
}

fn router(routes: Routes) -> tonic::transport::server::Router {
    server_builder(&ServerLimits::default()).add_routes(routes)
}

fn peer_routes(node: &Arc<Node>) -> Routes {
    Routes::new(node.metadata().service()).add_service(admin_v1::admin_server::AdminServer::new(
        AdminService::new(node.clone(), Callers::Nodes),
    ))
}

async fn mq_routes(
    node: &Arc<Node>,
) -> Result<(tonic_health::server::HealthReporter, Routes), RunError> {
    let (health, health_service) = tonic_health::server::health_reporter();
    for service in ["", "ferrymq.v1.Messaging"] {
        health
            .set_service_status(service, tonic_health::ServingStatus::Serving)
            .await;
    }
    for name in &node.config().node.qmgrs {
        let service = format!("qmgr/{name}");
        health
            .set_service_status(service, tonic_health::ServingStatus::Serving)
            .await;
    }
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|error| RunError::Config(format!("reflection: {error}")))?;
    let message_max = usize::try_from(node.config().storage.max_message.0)
        .unwrap_or(usize::MAX)
        .saturating_add(64 * 1024);
    // What comes in is limited. What goes out has no limit of its own: an answer that could not be sent would lose the message
    // that was got for it, and a session brings messages in that are longer than one request.
    let messaging = v1::messaging_server::MessagingServer::new(MessagingService::new(node.clone()))
        .max_decoding_message_size(message_max);
    let channel = channel_v1::channel_server::ChannelServer::new(ChannelService::new(node.clone()))
        .max_decoding_message_size(FRAME_BYTES_MAX)
        .max_encoding_message_size(FRAME_BYTES_MAX);
    let admin = admin_v1::admin_server::AdminServer::new(AdminService::new(
        node.clone(),
        Callers::Administrators,
    ));
    let routes = Routes::new(messaging)
        .add_service(channel)
        .add_service(admin)
        .add_service(health_service)
        .add_service(reflection);
    Ok((health, routes))
}
