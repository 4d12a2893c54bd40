//! `PING CHANNEL`: whether the partner would admit the channel, and bytes come back as they went.

use core::fmt;

use bytes::Bytes;
use ferrymq_channel::{Address, Close, CloseReason, SenderConfig};
use ferrymq_objects::{QueueManager, SenderChannel};
use ferrymq_proto::channel_v1 as pb;
use ferrymq_proto::channel_v1::channel_client::ChannelClient;
use ferrymq_types::ReasonCode;

use crate::channels::Dialer;
use crate::channels::sender_task::CONNECT_TIMEOUT;
use crate::channels::wire;

/// Most bytes of test data that are sent back.
pub(crate) const PING_BYTES_MAX: usize = 32_768;

/// `MQRCCF_HOST_NOT_AVAILABLE`.
const HOST_NOT_AVAILABLE: ReasonCode = ReasonCode::new(4010);
/// `MQRCCF_PING_ERROR`.
const PING_ERROR: ReasonCode = ReasonCode::new(4030);

/// Why a ping failed, as an operator is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PingFailure {
    /// The message's id.
    pub(crate) id: &'static str,
    /// `MQRCCF_*`.
    pub(crate) reason: ReasonCode,
    text: String,
}

impl PingFailure {
    fn unreachable(text: String) -> Self {
        Self {
            id: "AMQ9202E",
            reason: HOST_NOT_AVAILABLE,
            text: format!("no address of the partner answers: {text}"),
        }
    }

    fn error(id: &'static str, text: impl Into<String>) -> Self {
        Self {
            id,
            reason: PING_ERROR,
            text: text.into(),
        }
    }

    /// The partner does not admit the channel.
    fn closed(close: &Close) -> Self {
        let id = match close.reason {
            CloseReason::ChannelUnknown => "AMQ9520E",
            CloseReason::ChannelWrongType => "AMQ9547E",
            CloseReason::ChannelStopped | CloseReason::QueueManagerStopping => "AMQ9558E",
            CloseReason::NotAuthorized => "AMQ9557E",
            CloseReason::WrongQueueManager => "AMQ9524E",
            CloseReason::Normal
            | CloseReason::SequenceWrap
            | CloseReason::SequenceError
            | CloseReason::Superseded
            | CloseReason::BatchRefused
            | CloseReason::ProtocolError => "AMQ9503E",
        };
        Self::error(id, format!("the partner refuses it: {}", close.text))
    }
}

impl fmt::Display for PingFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Sends `data` to the first address of `CONNAME` that answers, and compares what comes back.
pub(crate) async fn ping(
    dialer: &Dialer,
    definition: SenderChannel,
    objects: &QueueManager,
    data: Bytes,
) -> Result<(), PingFailure> {
    let config = SenderConfig::new(definition, objects)
        .map_err(|error| PingFailure::error("AMQ9503E", error.to_string()))?;
    let request = pb::PingRequest {
        version: ferrymq_channel::PROTOCOL_VERSION,
        channel: config.channel.base.name.to_string(),
        queue_manager: config.queue_manager.to_string(),
        partner: config
            .partner
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        data: data.clone(),
    };
    let mut unreachable = Vec::new();
    for address in &config.addresses {
        match call(dialer, &config, address, request.clone()).await {
            Ok(response) => return compare(response, &data),
            Err(text) => unreachable.push(format!("{address}: {text}")),
        }
    }
    Err(PingFailure::unreachable(unreachable.join("; ")))
}

async fn call(
    dialer: &Dialer,
    config: &SenderConfig,
    address: &Address,
    request: pb::PingRequest,
) -> Result<pb::PingResponse, String> {
    let connection = dialer
        .connect(address, &config.channel.base)
        .await
        .map_err(|error| error.text)?;
    let mut client = ChannelClient::new(connection.channel())
        .max_decoding_message_size(wire::FRAME_BYTES_MAX)
        .max_encoding_message_size(wire::FRAME_BYTES_MAX);
    let answer = tokio::time::timeout(CONNECT_TIMEOUT, client.ping(request)).await;
    match answer {
        Err(_) => Err("no answer".to_owned()),
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(match connection.failure() {
            Some(error) => wire::with_causes(&error),
            None => wire::explain(&status),
        }),
    }
}

fn compare(response: pb::PingResponse, sent: &Bytes) -> Result<(), PingFailure> {
    use pb::ping_response::Result as Got;
    match response.result {
        Some(Got::Data(data)) if data == *sent => Ok(()),
        Some(Got::Data(_)) => Err(PingFailure::error(
            "AMQ9999E",
            "the data came back different",
        )),
        Some(Got::Close(close)) => Err(match wire::close_from_wire(close) {
            Ok(close) => PingFailure::closed(&close),
            Err(error) => PingFailure::error("AMQ9207E", error.to_string()),
        }),
        None => Err(PingFailure::error("AMQ9207E", "an answer without content")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_comes_back_different_is_a_ping_error() {
        let sent = Bytes::from_static(b"0123456789abcdef");
        let answer = |result| compare(pb::PingResponse { result }, &sent);
        let data =
            |bytes: &'static [u8]| Some(pb::ping_response::Result::Data(Bytes::from_static(bytes)));
        assert_eq!(answer(data(b"0123456789abcdef")), Ok(()));
        assert_eq!(
            answer(data(b"0123456789abcdeF")).unwrap_err().reason,
            PING_ERROR
        );
        assert_eq!(answer(None).unwrap_err().id, "AMQ9207E");
        let close = Close::new(CloseReason::ChannelUnknown, "channel not found");
        let closed = Some(pb::ping_response::Result::Close(wire::close_to_wire(close)));
        assert_eq!(answer(closed).unwrap_err().id, "AMQ9520E");
    }
}
