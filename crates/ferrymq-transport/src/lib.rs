//! How frames travel: gRPC over our own TLS acceptor and connector, with the limits that tonic leaves unset.
//!
//! **Invariants:** nothing is decided here but who may connect at all (TLS, deadlines, counts): channels, authorities and messages are unknown;
//! plain text is for loopback addresses only, at both ends; no task outlives the future or the handle that started it.

mod connect;
mod error;
mod limits;
mod listener;
mod peer;

pub use connect::{Connection, ServerInfo, Target, TargetError, connect};
pub use error::{ConnectError, ListenError, TlsFault};
pub use limits::*;
pub use listener::{
    Listener, ListenerHandle, ListenerSecurity, ListenerStats, Refusal, RefusalCause, StopError,
};
pub use peer::{PeerInfo, PeerIo};
