//! How a client judges the certificate of a server.

use std::fmt;
use std::sync::Arc;

use ferrymq_authority::{PeerMismatch, PeerPattern};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

use crate::certificate::PeerCertificate;

/// The server is genuine but not the one that was wanted. Found in the source chain of a failed handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNameMismatch {
    /// The subject of its certificate, as logs print it.
    pub subject: String,
    /// The whole pattern.
    pub pattern: String,
    /// The first element that differs.
    pub mismatch: PeerMismatch,
}

impl fmt::Display for ServerNameMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the server is {}, wanted {}: {}",
            self.subject, self.pattern, self.mismatch
        )
    }
}

impl std::error::Error for ServerNameMismatch {}

/// Verifies chain, validity, purpose and revocation, then the host name if asked, then the subject against a pattern.
#[derive(Debug)]
pub(crate) struct ServerVerifier {
    pub(crate) inner: Arc<WebPkiServerVerifier>,
    pub(crate) check_host: bool,
    pub(crate) pattern: Option<PeerPattern>,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            Ok(_) => {}
            // The name is judged last, when everything else has passed.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_host => {}
            Err(error) => return Err(error),
        }
        if let Some(pattern) = &self.pattern {
            let certificate = PeerCertificate::from_der(end_entity)
                .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
            pattern
                .matches(&certificate.subject, &certificate.serial)
                .map_err(|mismatch| {
                    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(
                        ServerNameMismatch {
                            subject: certificate.subject.to_string(),
                            pattern: pattern.to_string(),
                            mismatch,
                        },
                    ))))
                })?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
