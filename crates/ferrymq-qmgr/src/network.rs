//! How nodes reach and recognise each other: mutual TLS, and the certificate that `cluster.peers` says.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ferrymq_authority::PeerPattern;
use ferrymq_metadata::{BoxError, Connecting, Member, PeerNetwork};
use ferrymq_tls::{ClientTls, ServerRule, TlsReloader};
use ferrymq_transport::{PeerInfo, Target};
use futures::FutureExt as _;
use tonic::Extensions;

use crate::config::ClusterConfig;

/// How long connecting to another node and the TLS handshake may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The network between nodes.
pub(crate) struct Network {
    /// `None`: the node is alone.
    tls: Option<Arc<TlsReloader>>,
    /// By node id; `None` is any certificate of the cluster's authority.
    patterns: Vec<(u64, Option<PeerPattern>)>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl Network {
    /// From the configuration.
    pub(crate) fn new(
        cluster: &ClusterConfig,
        tls: Option<Arc<TlsReloader>>,
    ) -> Result<Self, String> {
        let patterns = cluster.peers.iter().map(|peer| {
            let pattern = PeerPattern::parse_attribute(&peer.ssl_peer);
            Ok((
                peer.id,
                pattern.map_err(|e| format!("ssl_peer of node {}: {e}", peer.id))?,
            ))
        });
        Ok(Self {
            tls,
            patterns: patterns.collect::<Result<_, String>>()?,
        })
    }

    fn pattern(&self, id: u64) -> Result<Option<&PeerPattern>, String> {
        self.patterns
            .iter()
            .find(|(node, _)| *node == id)
            .map(|(_, pattern)| pattern.as_ref())
            .ok_or_else(|| format!("node {id} is not in cluster.peers"))
    }

    fn prepare(&self, member: &Member) -> Result<(Target, ClientTls), BoxError> {
        let tls = self.tls.as_ref().ok_or("[tls] is missing")?;
        let rule = match self.pattern(member.id)? {
            Some(pattern) => ServerRule::Name(pattern.clone()),
            None => ServerRule::HostName,
        };
        Ok((member.address.parse()?, tls.current().client(rule)?))
    }

    /// Whether the caller is one of the nodes: for what nodes ask of each other beside Raft.
    pub(crate) fn is_a_node(&self, peer: Option<&PeerInfo>) -> bool {
        let Some(certificate) = peer.and_then(|p| p.certificate.as_ref()) else {
            return false;
        };
        self.patterns.iter().any(|(_, pattern)| {
            pattern
                .as_ref()
                .is_none_or(|p| p.matches(&certificate.subject, &certificate.serial).is_ok())
        })
    }
}

impl PeerNetwork for Network {
    fn connect(&self, member: &Member) -> Connecting {
        let prepared = self.prepare(member);
        async move {
            let (target, tls) = prepared?;
            let connection =
                ferrymq_transport::connect(&[target], Some(&tls), CONNECT_TIMEOUT).await?;
            Ok(connection.channel())
        }
        .boxed()
    }

    fn admit(&self, member: &Member, extensions: &Extensions) -> Result<(), String> {
        let certificate = extensions
            .get::<PeerInfo>()
            .and_then(|peer| peer.certificate.as_ref())
            .ok_or("no certificate")?;
        match self.pattern(member.id)? {
            None => Ok(()),
            Some(pattern) => pattern
                .matches(&certificate.subject, &certificate.serial)
                .map_err(|mismatch| format!("{}: {mismatch}", certificate.subject)),
        }
    }
}
