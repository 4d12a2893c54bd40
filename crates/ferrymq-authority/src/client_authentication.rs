//! What a certificate, or none, means at the accepting end of a channel.

use core::fmt;

use ferrymq_objects::SslClientAuthentication;
use ferrymq_types::{DistinguishedName, ReasonCode};

use crate::pattern::{PeerMismatch, PeerPattern};

/// What the TLS layer found in the peer's verified certificate.
#[derive(Debug, Clone, Copy)]
pub struct PeerCertificateNames<'a> {
    /// Its subject.
    pub subject: &'a DistinguishedName,
    /// Its serial number, as encoded, big end first.
    pub serial: &'a [u8],
}

/// Why a peer may not use a channel. For the operator's log and events only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerRefusal {
    /// The channel has a pattern, but the connection has no TLS: nothing was proved.
    PatternWithoutTls,
    /// No certificate, and SSLCAUTH(REQUIRED).
    CertificateRequired,
    /// No certificate, and a pattern that it would have to match.
    PatternWithoutCertificate,
    /// A certificate with another name.
    Mismatch(PeerMismatch),
}

impl PeerRefusal {
    /// 2398 (`MQRC_SSL_PEER_NAME_MISMATCH`) for another name, 2393 (`MQRC_SSL_INITIALIZATION_ERROR`) for a missing proof.
    #[must_use]
    pub fn reason(&self) -> ReasonCode {
        match self {
            Self::Mismatch(mismatch) => mismatch.reason(),
            Self::PatternWithoutTls
            | Self::CertificateRequired
            | Self::PatternWithoutCertificate => ReasonCode::new(2393),
        }
    }
}

impl fmt::Display for PeerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PatternWithoutTls => {
                f.write_str("the channel has SSLPEER but the connection is not TLS")
            }
            Self::CertificateRequired => {
                f.write_str("the peer sent no certificate and SSLCAUTH is REQUIRED")
            }
            Self::PatternWithoutCertificate => {
                f.write_str("the peer sent no certificate that could match SSLPEER")
            }
            Self::Mismatch(mismatch) => mismatch.fmt(f),
        }
    }
}

impl core::error::Error for PeerRefusal {}

/// Whether a peer passes SSLCAUTH and SSLPEER. It knows nothing of SSLCIPH: that a channel which asks for TLS has it is checked
/// beside this.
///
/// Without TLS, SSLCAUTH means nothing and a pattern refuses (a pattern that nobody checked must not look checked). With TLS, a missing
/// certificate is refused if it is required or if there is a pattern.
///
/// Source: IBM MQ, SSLCAUTH and SSLPEER; ours: the pattern without TLS, and the pattern without a certificate under OPTIONAL.
///
/// # Errors
/// [`PeerRefusal`] says why it does not pass; its [`reason`](PeerRefusal::reason) is 2393 or 2398.
pub fn check_peer(
    tls: bool,
    authentication: SslClientAuthentication,
    pattern: Option<&PeerPattern>,
    certificate: Option<PeerCertificateNames<'_>>,
) -> Result<(), PeerRefusal> {
    match (tls, pattern, certificate, authentication) {
        (false, Some(_), _, _) => Err(PeerRefusal::PatternWithoutTls),
        (false, None, _, _) => Ok(()),
        (true, _, None, SslClientAuthentication::Required) => Err(PeerRefusal::CertificateRequired),
        (true, Some(_), None, SslClientAuthentication::Optional) => {
            Err(PeerRefusal::PatternWithoutCertificate)
        }
        (true, None, None, SslClientAuthentication::Optional) | (true, None, Some(_), _) => Ok(()),
        (true, Some(pattern), Some(certificate), _) => pattern
            .matches(certificate.subject, certificate.serial)
            .map_err(PeerRefusal::Mismatch),
    }
}
