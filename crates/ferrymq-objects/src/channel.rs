//! Channel definitions, attribute by attribute.

use core::time::Duration;

use ferrymq_types::{ChannelName, ObjectId, QueueName, Timestamp};

/// How non-persistent messages travel. `NPMSPEED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum MessageSpeed {
    /// `FAST`: outside the batch; may be lost with the link.
    #[default]
    Fast,
    /// `NORMAL`: in the batch, as persistent ones do.
    Normal,
}

/// Whether an undeliverable message may go to the dead-letter queue. `USEDLQ`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum UseDlq {
    /// `YES`.
    #[default]
    Yes,
    /// `NO`.
    No,
}

/// Whether the end that accepts a conversation demands a certificate. `SSLCAUTH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum SslClientAuthentication {
    /// `REQUIRED`.
    #[default]
    Required,
    /// `OPTIONAL`.
    Optional,
}

/// What every channel has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelBase {
    /// Never used again.
    pub id: ObjectId,
    /// The name, the same at both ends.
    pub name: ChannelName,
    /// `DESCR`, at most 64 characters.
    pub description: String,
    /// `SSLCIPH`; empty is no TLS. Any value of IBM's list is taken to mean TLS 1.2 or higher by rustls's choice of suites.
    pub ssl_cipher: String,
    /// `SSLPEER`: the pattern that the partner's distinguished name must match; empty is any.
    pub ssl_peer_name: String,
    /// `MAXMSGL`, bytes. Default 4194304.
    pub max_message_length: u32,
    /// `HBINT`, seconds; 0 is none. Default 300.
    pub heartbeat_interval: u32,
    /// `ALTDATE`, `ALTTIME`.
    pub altered: Timestamp,
}

/// The end that sends. `CHLTYPE(SDR)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderChannel {
    /// What every channel has.
    pub base: ChannelBase,
    /// `CONNAME`: `host(port)`, tried in the order given.
    pub connection_name: String,
    /// `XMITQ`.
    pub transmission_queue: QueueName,
    /// `BATCHSZ`, messages. Default 50. The lower of the ends.
    pub batch_size: u32,
    /// `BATCHINT`, milliseconds. Default 0.
    pub batch_interval: Duration,
    /// `BATCHLIM`, kilobytes; 0 is no limit. Default 5000.
    pub batch_data_limit: u32,
    /// `DISCINT`, seconds; 0 is never. Default 6000.
    pub disconnect_interval: Duration,
    /// `SHORTRTY`. Default 10.
    pub short_retry_count: u32,
    /// `SHORTTMR`, seconds. Default 60.
    pub short_retry_interval: Duration,
    /// `LONGRTY`. Default 999999999.
    pub long_retry_count: u32,
    /// `LONGTMR`, seconds. Default 1200.
    pub long_retry_interval: Duration,
    /// `NPMSPEED`. Default `FAST`; both ends must be.
    pub non_persistent_message_speed: MessageSpeed,
    /// `USEDLQ`. Default `YES`; each end its own.
    pub use_dead_letter_queue: UseDlq,
    /// `SEQWRAP`. Default 999999999; both ends must have the same.
    pub sequence_wrap: u32,
}

/// The end that receives. `CHLTYPE(RCVR)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverChannel {
    /// What every channel has.
    pub base: ChannelBase,
    /// `BATCHSZ`, messages. Default 50. The lower of the ends.
    pub batch_size: u32,
    /// `MRRTY`: attempts after the first. Default 10.
    pub message_retry_count: u32,
    /// `MRTMR`, milliseconds. Default 1000.
    pub message_retry_interval: Duration,
    /// `NPMSPEED`. Default `FAST`; both ends must be.
    pub non_persistent_message_speed: MessageSpeed,
    /// `USEDLQ`. Default `YES`; each end its own.
    pub use_dead_letter_queue: UseDlq,
    /// `SEQWRAP`. Default 999999999; both ends must have the same.
    pub sequence_wrap: u32,
    /// `SSLCAUTH`. Default `REQUIRED`.
    pub ssl_client_authentication: SslClientAuthentication,
}

/// Where applications connect. `CHLTYPE(SVRCONN)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConnectionChannel {
    /// What every channel has.
    pub base: ChannelBase,
    /// `SSLCAUTH`. Default `REQUIRED`.
    pub ssl_client_authentication: SslClientAuthentication,
    /// `MCAUSER`: the user that applications of this channel run as; empty is the connection's own.
    pub mca_user: String,
    /// `MAXINST`: conversations in total. Default 999999999; 0 refuses all.
    pub max_instances: u32,
}

/// A channel definition of any type. All types share one name space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// `SDR`.
    Sender(SenderChannel),
    /// `RCVR`.
    Receiver(ReceiverChannel),
    /// `SVRCONN`.
    ServerConnection(ServerConnectionChannel),
}

impl Channel {
    /// What every channel has.
    #[must_use]
    pub const fn base(&self) -> &ChannelBase {
        match self {
            Self::Sender(c) => &c.base,
            Self::Receiver(c) => &c.base,
            Self::ServerConnection(c) => &c.base,
        }
    }
}
