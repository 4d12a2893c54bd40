//! Who may connect: peer patterns (SSLPEER, SSLCERTI) against distinguished names, and what a missing certificate means.
//!
//! **Invariants:** a name is compared attribute by attribute as the certificate encodes it, never as a printed string; whatever
//! cannot be decided refuses; this crate knows no TLS, no socket and no clock.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    clippy::arithmetic_side_effects
)]

mod client_authentication;
mod parse;
mod pattern;
#[cfg(test)]
mod tests;

pub use client_authentication::{PeerCertificateNames, PeerRefusal, check_peer};
pub use parse::{PATTERN_LENGTH_MAX, PatternError, PatternErrorKind, parse_distinguished_name};
pub use pattern::{MismatchKind, PeerMismatch, PeerPattern, serial_text};
