//! The client of a FerryMQ queue manager over gRPC: connect, put, get, browse, units of work, administration.
//!
//! [`Client::connect`] finds the first of several addresses that answers, [`Client`] has the calls that stand alone,
//! [`Session`] the ones that belong to units of work, [`Admin`] what operators use. Every call ends with a
//! [`ClientError`] that says completion and reason code, as an application of IBM MQ expects.
//!
//! ```no_run
//! # async fn example() -> Result<(), ferrymq_client::ClientError> {
//! use ferrymq_client::{Client, ConnectOptions, wire};
//!
//! let server = "http://127.0.0.1:1414".parse().expect("a loopback address");
//! let client = Client::connect(&ConnectOptions::new(server)).await?;
//! let message = wire::Message { data: "hello".into(), ..wire::Message::default() };
//! let put = wire::PutRequest {
//!     queue: "DEV.QUEUE.1".into(),
//!     message: Some(message),
//!     ..wire::PutRequest::default()
//! };
//! client.put(put).await?;
//! # Ok(()) }
//! ```

mod address;
mod admin;
mod connect;
mod error;
mod messaging;
mod session;
mod stream;

/// Requests and responses, as they travel.
pub use ferrymq_proto::v1 as wire;

/// Requests and responses of administration, as they travel.
pub use ferrymq_proto::admin_v1 as admin_wire;

pub use address::{ServerUrl, ServerUrlError};
pub use admin::Admin;
pub use connect::{Client, ConnectOptions};
pub use error::ClientError;
pub use ferrymq_proto::status::CallError;
pub use ferrymq_proto::{properties_from_wire, properties_to_wire};
pub use ferrymq_tls::{ClientFiles, RevocationPolicy, ServerRule};
pub use ferrymq_transport::{ConnectError, Target};
pub use session::{
    Answer, ConsumeMode, Consumer, Delivered, GotMessage, Queue, Reply, ReplyQueue, Requester,
    Session, reply_to,
};
pub use stream::Responses;
