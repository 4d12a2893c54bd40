//! TLS for FerryMQ: certificates and keys from files, rustls configurations that reload, and what a peer's certificate says.
//!
//! TLS 1.2 and 1.3 with forward secrecy and authenticated encryption only, by rustls with ring. Sessions are never resumed: a resumed
//! session would skip the verification of certificates, and outlive a changed pattern or revocation. No early data, no key log.
//!
//! **Invariants:** a peer's name is read from the certificate's encoding, attribute by attribute; a key never appears in an error, a log or a
//! debug print; what cannot be loaded leaves what was loaded before in force.

mod certificate;
mod error;
mod files;
mod identity;
mod verifier;

pub mod authority;

pub use certificate::{CertificateError, PeerCertificate};
pub use error::TlsError;
pub use files::{load_authorities, load_certificates, load_private_key, load_revocation_lists};
pub use identity::{
    ClientFiles, ClientTls, ClientVerification, RevocationPolicy, ServerRule, TlsFiles,
    TlsIdentity, TlsReloader, Verdict,
};
pub use verifier::ServerNameMismatch;
