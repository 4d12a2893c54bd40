//! Who may connect: peer patterns (SSLPEER, SSLCERTI) against distinguished names, what a missing certificate means, and channel
//! authentication records (CHLAUTH).
//!
//! **Invariants:** a name is compared attribute by attribute as the certificate encodes it, never as a printed string; whatever
//! cannot be decided refuses; this crate knows no TLS, no socket and no clock.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    clippy::arithmetic_side_effects
)]

mod address;
mod channel_rules;
mod client_authentication;
mod parse;
mod pattern;
#[cfg(test)]
mod tests;

pub use address::{AddressPattern, AddressPatternError};
pub use channel_rules::{Admission, Applicant, Identity, admit, check_rule_texts, check_user};
pub use client_authentication::{PeerCertificateNames, PeerRefusal, check_peer};
pub use parse::{PATTERN_LENGTH_MAX, PatternError, PatternErrorKind, parse_distinguished_name};
pub use pattern::{MismatchKind, PeerMismatch, PeerPattern, serial_text};
