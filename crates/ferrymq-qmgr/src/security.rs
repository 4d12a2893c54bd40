//! Who may connect. The caller learns only that it is not authorised; the operator's log says why.

use ferrymq_authority::{
    Applicant, Identity, PeerPattern, PeerRefusal, admit, check_peer, check_user,
};
use ferrymq_objects::{Channel, ChannelBase, ChannelRule, QueueManager, SslClientAuthentication};
use ferrymq_proto::status::CallError;
use ferrymq_transport::PeerInfo;
use ferrymq_types::{ChannelName, ReasonCode};
use tonic::metadata::MetadataMap;
use tracing::warn;

use crate::handle::QueueManagerHandle;

/// Metadata key of the server-connection channel that a client uses.
const CHANNEL_KEY: &str = "ferrymq-channel";
/// Metadata key of the application's name.
const APPLICATION_KEY: &str = "ferrymq-app-name";
/// Bytes of `UserIdentifier`.
const USER_LENGTH_MAX: usize = 12;
/// Bytes of `PutApplName`.
const APPLICATION_LENGTH_MAX: usize = 28;
/// Definitions of this prefix are templates: nobody connects through one.
const TEMPLATE_PREFIX: &str = "SYSTEM.DEF.";

/// An application that was let in.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// What its messages carry as `UserIdentifier`.
    pub(crate) user: String,
    /// What its messages carry as `PutApplName`.
    pub(crate) application: String,
    /// Whether it may set the context of messages, as an administrator may.
    pub(crate) sets_context: bool,
}

fn refused() -> CallError {
    CallError::new(ReasonCode::NOT_AUTHORIZED, None, None)
}

/// Text without control characters, cut to `length_max` bytes at a character's end.
fn shorten(text: &str, length_max: usize) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if out.len().saturating_add(c.len_utf8()) > length_max {
            break;
        }
        out.push(c);
    }
    out
}

fn text<'a>(metadata: &'a MetadataMap, key: &str) -> &'a str {
    metadata
        .get(key)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default()
}

/// Lets an application in, or not: by its server-connection channel's SSLCAUTH and SSLPEER and the channel authentication records, or
/// on loopback without TLS, which is as good as a connection within the machine.
pub(crate) fn authorize_client(
    handle: &QueueManagerHandle,
    peer: Option<&PeerInfo>,
    administrators: &[PeerPattern],
    metadata: &MetadataMap,
) -> Result<Client, CallError> {
    let peer = peer.ok_or_else(refused)?;
    let application = shorten(text(metadata, APPLICATION_KEY), APPLICATION_LENGTH_MAX);
    if !peer.tls {
        // Plain text is for loopback; the transport refuses it elsewhere.
        return Ok(Client {
            user: "local".into(),
            application,
            sets_context: true,
        });
    }
    let name = text(metadata, CHANNEL_KEY);
    let objects = handle.objects();
    let channel = ChannelName::new(name)
        .ok()
        .filter(|name| !name.as_str().starts_with(TEMPLATE_PREFIX))
        .and_then(|name| objects.channels.get(&name));
    let Some(Channel::ServerConnection(channel)) = channel else {
        warn!(
            id = "AMQ9519E",
            qmgr = %handle.name(),
            address = %peer.address,
            channel = %shorten(name, ChannelName::LENGTH_MAX),
            "client refused: it named no server-connection channel that is defined here"
        );
        return Err(refused());
    };
    check_channel_peer(&channel.base, channel.ssl_client_authentication, peer).map_err(|why| {
        warn!(
            id = "AMQ9636E",
            qmgr = %handle.name(),
            address = %peer.address,
            channel = %channel.base.name,
            wanted = %channel.base.ssl_peer_name,
            got = %subject(peer),
            "client refused: {why}"
        );
        refused()
    })?;
    let asserted = common_name(peer);
    let own = if channel.mca_user.is_empty() {
        &asserted
    } else {
        &channel.mca_user
    };
    let administrator = is_administrator(administrators, peer);
    let user = admit_by_rules(
        &objects,
        &channel.base.name,
        peer,
        Identity::Client(&asserted),
        own,
        administrator,
    )
    .map_err(|Blocked| refused())?;
    Ok(Client {
        user: shorten(&user, USER_LENGTH_MAX),
        application,
        sets_context: administrator,
    })
}

/// A channel authentication record refused a partner; the operator's log says which.
#[derive(Debug)]
pub(crate) struct Blocked;

/// Applies the channel authentication records (CHLAUTH) to whoever has passed the channel's own SSLPEER, and returns the user that it
/// becomes; `own` is the one that it is without records.
pub(crate) fn admit_by_rules(
    objects: &QueueManager,
    channel: &ChannelName,
    peer: &PeerInfo,
    identity: Identity<'_>,
    own: &str,
    administrator: bool,
) -> Result<String, Blocked> {
    let qmgr = &objects.attributes.name;
    let applicant = Applicant {
        channel: channel.as_str(),
        address: peer.address.ip(),
        certificate: peer.certificate.as_ref().map(|c| c.names()),
        issuer: peer.certificate.as_ref().map(|c| &c.issuer),
        identity,
    };
    let admission = admit(objects, &applicant).map_err(|rule| {
        warn!(
            id = "AMQ9777E", %qmgr, address = %peer.address, %channel, partner = ?identity, got = %subject(peer),
            "channel refused by {}", named(rule)
        );
        Blocked
    })?;
    for rule in admission.warned {
        warn!(
            id = "AMQ9777W", %qmgr, address = %peer.address, %channel, partner = ?identity, got = %subject(peer),
            "channel would be refused by {}, which only warns", named(rule)
        );
    }
    let user = admission.user.unwrap_or(own);
    // Whom a record maps to another user is that one and no administrator any more.
    let administrator = administrator && admission.user.is_none();
    match check_user(objects, channel.as_str(), user, administrator) {
        Ok(()) => Ok(user.to_owned()),
        Err(rule) if rule.warn => {
            warn!(
                id = "AMQ9776W", %qmgr, address = %peer.address, %channel, user,
                "user would be refused by {}, which only warns", named(rule)
            );
            Ok(user.to_owned())
        }
        Err(rule) => {
            warn!(
                id = "AMQ9776E", %qmgr, address = %peer.address, %channel, user,
                "user refused by {}", named(rule)
            );
            Err(Blocked)
        }
    }
}

/// A record as an operator would name it.
fn named(rule: &ChannelRule) -> String {
    let (profile, of_type) = (&rule.profile, rule.rule_type.type_word());
    format!("CHLAUTH('{profile}') TYPE({of_type})")
}

/// Lets an administrator in, or not: by the node's `auth.admin_peers`, or on loopback without TLS.
pub(crate) fn authorize_administrator(
    patterns: &[PeerPattern],
    peer: Option<&PeerInfo>,
) -> Result<(), CallError> {
    let peer = peer.ok_or_else(refused)?;
    if !peer.tls {
        return Ok(());
    }
    if is_administrator(patterns, peer) {
        return Ok(());
    }
    warn!(
        id = "FMQ9001E",
        address = %peer.address,
        got = %subject(peer),
        "administrator refused: no pattern of auth.admin_peers matches"
    );
    Err(refused())
}

fn is_administrator(patterns: &[PeerPattern], peer: &PeerInfo) -> bool {
    peer.certificate.as_ref().is_some_and(|certificate| {
        patterns.iter().any(|pattern| {
            pattern
                .matches(&certificate.subject, &certificate.serial)
                .is_ok()
        })
    })
}

/// Why a peer may not use a channel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelRefusal {
    /// The channel asks for TLS and the connection has none.
    #[error("SSLCIPH asks for TLS and the connection has none")]
    NoTls,
    /// `SSLPEER` of the definition is no pattern: checked at definition, so the stored text is damaged. Fail closed.
    #[error("SSLPEER of the definition cannot be read: {0}")]
    Pattern(String),
    /// SSLCAUTH or SSLPEER.
    #[error(transparent)]
    Peer(PeerRefusal),
}

/// Applies SSLCIPH, SSLCAUTH and SSLPEER of a channel to whoever is at the other end.
pub(crate) fn check_channel_peer(
    channel: &ChannelBase,
    authentication: SslClientAuthentication,
    peer: &PeerInfo,
) -> Result<(), ChannelRefusal> {
    if !channel.ssl_cipher.is_empty() && !peer.tls {
        return Err(ChannelRefusal::NoTls);
    }
    let pattern = PeerPattern::parse_attribute(&channel.ssl_peer_name)
        .map_err(|error| ChannelRefusal::Pattern(error.to_string()))?;
    let names = peer.certificate.as_ref().map(|c| c.names());
    check_peer(peer.tls, authentication, pattern.as_ref(), names).map_err(ChannelRefusal::Peer)
}

/// The peer's subject, for the operator.
pub(crate) fn subject(peer: &PeerInfo) -> String {
    peer.certificate
        .as_ref()
        .map_or_else(|| "no certificate".to_owned(), |c| c.subject.to_string())
}

fn common_name(peer: &PeerInfo) -> String {
    peer.certificate
        .as_ref()
        .and_then(|c| c.subject.common_name())
        .map(str::to_owned)
        .unwrap_or_default()
}
