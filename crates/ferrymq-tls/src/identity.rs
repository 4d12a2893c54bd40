//! The rustls configurations of a node, and how they change while it runs.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use ferrymq_authority::PeerPattern;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::certificate::PeerCertificate;
use crate::error::TlsError;
use crate::files;
use crate::verifier::ServerVerifier;

/// HTTP/2, which gRPC speaks.
const ALPN: &[u8] = b"h2";

/// TLS 1.2 and later.
static VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

/// The files of a node that accepts connections and opens them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Its certificate, followed by those of intermediate authorities. PEM.
    pub certificate: PathBuf,
    /// The certificate's private key, unencrypted, mode 0600 or narrower. PEM.
    pub key: PathBuf,
    /// The authorities whose certificates are accepted. PEM.
    pub authorities: PathBuf,
    /// Revocation lists of these authorities. PEM. Default none: revocation is not checked.
    pub revocation_lists: Vec<PathBuf>,
    /// What to do where the lists give no answer.
    pub revocation: RevocationPolicy,
}

/// The files of an application that only opens connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// Its certificate and the key to it, if it has one.
    pub certificate_and_key: Option<(PathBuf, PathBuf)>,
    /// The authorities whose certificates are accepted. PEM.
    pub authorities: PathBuf,
    /// Revocation lists of these authorities. PEM.
    pub revocation_lists: Vec<PathBuf>,
    /// What to do where the lists give no answer.
    pub revocation: RevocationPolicy,
}

/// What to do where revocation lists are configured but give no answer. Default: refuse in both cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RevocationPolicy {
    /// A certificate whose authority has no list.
    pub unknown: Verdict,
    /// A list whose next update is overdue.
    pub outdated: Verdict,
}

/// Whether to refuse or accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Refuse.
    #[default]
    Refuse,
    /// Accept.
    Accept,
}

/// Whether a listener accepts peers without a certificate at the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientVerification {
    /// A certificate is asked for, and must be valid if sent. Each channel decides later whether it needs one (SSLCAUTH). For the
    /// listener of applications and channels.
    Optional,
    /// Without a valid certificate there is no connection. For the listener between nodes.
    Required,
}

/// Which server a client accepts, beside that a trusted authority must have signed its valid certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerRule {
    /// The certificate must be for the host that was dialled.
    HostName,
    /// The subject must match the pattern. MQSC `SSLPEER` of senders and client connections.
    Name(PeerPattern),
    /// Both.
    HostNameAndName(PeerPattern),
    /// Any server with a certificate of a trusted authority: what `SSLPEER(' ')` means in IBM MQ. Whoever uses it must be sure that the
    /// authorities sign for nobody else.
    AnyTrusted,
}

/// What a node needs for TLS, loaded and checked: its own certificate and key, whom it trusts, what is revoked.
pub struct TlsIdentity {
    server: Arc<ServerConfig>,
    client_verifier: Arc<dyn ClientCertVerifier>,
    trust: Trust,
    own: Own,
    certificate: PeerCertificate,
}

struct Own {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    path: PathBuf,
}

struct Trust {
    roots: Arc<RootCertStore>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    revocation: RevocationPolicy,
    path: PathBuf,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity")
            .field("certificate", &self.certificate)
            .field("authorities", &self.trust.roots.len())
            .field("revocation_lists", &self.trust.lists.len())
            .finish_non_exhaustive()
    }
}

impl TlsIdentity {
    /// Loads the files and builds the configuration of a listener.
    ///
    /// # Errors
    /// [`TlsError`] names the file and says what to do; its [`reason`](TlsError::reason) is 2381 or 2393.
    pub fn load(files: &TlsFiles, verification: ClientVerification) -> Result<Self, TlsError> {
        let own = Own::load(&files.certificate, &files.key)?;
        let trust = Trust::load(
            &files.authorities,
            &files.revocation_lists,
            files.revocation,
        )?;
        let certificate = own
            .chain
            .first()
            .and_then(|der| PeerCertificate::from_der(der).ok())
            .ok_or_else(|| TlsError::content(&files.certificate, "no certificate in it"))?;
        let client_verifier = trust.client_verifier(verification)?;
        let server = server_config(&own, Arc::clone(&client_verifier))?;
        Ok(Self {
            server,
            client_verifier,
            trust,
            own,
            certificate,
        })
    }

    /// For a listener.
    #[must_use]
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// For connections that this node opens, with its own certificate.
    ///
    /// # Errors
    /// [`TlsError::Unusable`] if the certificate cannot be used by a client.
    pub fn client(&self, rule: ServerRule) -> Result<ClientTls, TlsError> {
        ClientTls::build(&self.trust, Some(&self.own), rule)
    }

    /// The own certificate.
    #[must_use]
    pub fn certificate(&self) -> &PeerCertificate {
        &self.certificate
    }

    /// Judges the chain of a peer again, by the authorities and lists of today: running connections are not judged by TLS itself once they
    /// are open.
    ///
    /// # Errors
    /// Why the chain would not be accepted now (expired, revoked, no longer trusted).
    pub fn verify_client_again(&self, chain: &[CertificateDer<'_>]) -> Result<(), rustls::Error> {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Err(rustls::Error::NoCertificatesPresented);
        };
        self.client_verifier
            .verify_client_cert(leaf, intermediates, UnixTime::now())
            .map(|_| ())
    }
}

/// How an application or a sender speaks TLS.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    rule: ServerRule,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

impl ClientTls {
    /// Loads the files of an application.
    ///
    /// # Errors
    /// [`TlsError`] names the file and says what to do.
    pub fn load(files: &ClientFiles, rule: ServerRule) -> Result<Self, TlsError> {
        let own = match &files.certificate_and_key {
            Some((certificate, key)) => Some(Own::load(certificate, key)?),
            None => None,
        };
        let trust = Trust::load(
            &files.authorities,
            &files.revocation_lists,
            files.revocation,
        )?;
        Self::build(&trust, own.as_ref(), rule)
    }

    /// The rustls configuration.
    #[must_use]
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Which servers it accepts.
    #[must_use]
    pub fn rule(&self) -> &ServerRule {
        &self.rule
    }

    fn build(trust: &Trust, own: Option<&Own>, rule: ServerRule) -> Result<Self, TlsError> {
        let (check_host, pattern) = match &rule {
            ServerRule::HostName => (true, None),
            ServerRule::Name(pattern) => (false, Some(pattern.clone())),
            ServerRule::HostNameAndName(pattern) => (true, Some(pattern.clone())),
            ServerRule::AnyTrusted => (false, None),
        };
        let verifier = ServerVerifier {
            inner: trust.server_verifier()?,
            check_host,
            pattern,
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(VERSIONS)
            .map_err(|error| trust.unusable(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match own {
            Some(own) => builder
                .with_client_auth_cert(own.chain.clone(), own.key.clone_key())
                .map_err(|error| own.unusable(&error))?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_early_data = false;
        Ok(Self {
            config: Arc::new(config),
            rule,
        })
    }
}

impl Own {
    fn load(certificate: &std::path::Path, key: &std::path::Path) -> Result<Self, TlsError> {
        Ok(Self {
            chain: files::load_certificates(certificate)?,
            key: files::load_private_key(key)?,
            path: certificate.to_owned(),
        })
    }

    fn unusable(&self, error: &rustls::Error) -> TlsError {
        let problem = match error {
            rustls::Error::InconsistentKeys(_) => {
                "the private key does not belong to the certificate".to_owned()
            }
            other => other.to_string(),
        };
        TlsError::Unusable {
            path: self.path.clone(),
            problem,
        }
    }
}

impl Trust {
    fn load(
        authorities: &std::path::Path,
        lists: &[PathBuf],
        revocation: RevocationPolicy,
    ) -> Result<Self, TlsError> {
        Ok(Self {
            roots: Arc::new(files::load_authorities(authorities)?),
            lists: files::load_revocation_lists(lists)?,
            revocation,
            path: authorities.to_owned(),
        })
    }

    fn unusable(&self, error: &impl fmt::Display) -> TlsError {
        TlsError::Unusable {
            path: self.path.clone(),
            problem: error.to_string(),
        }
    }

    fn client_verifier(
        &self,
        verification: ClientVerification,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let mut builder =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&self.roots), provider())
                .with_crls(self.lists.iter().cloned());
        if self.revocation.unknown == Verdict::Accept {
            builder = builder.allow_unknown_revocation_status();
        }
        if self.revocation.outdated == Verdict::Refuse {
            builder = builder.enforce_revocation_expiration();
        }
        if verification == ClientVerification::Optional {
            builder = builder.allow_unauthenticated();
        }
        builder.build().map_err(|error| self.unusable(&error))
    }

    fn server_verifier(&self) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
        let mut builder =
            WebPkiServerVerifier::builder_with_provider(Arc::clone(&self.roots), provider())
                .with_crls(self.lists.iter().cloned());
        if self.revocation.unknown == Verdict::Accept {
            builder = builder.allow_unknown_revocation_status();
        }
        if self.revocation.outdated == Verdict::Refuse {
            builder = builder.enforce_revocation_expiration();
        }
        builder.build().map_err(|error| self.unusable(&error))
    }
}

/// ring with all of its cipher suites: each has forward secrecy and authenticated encryption, there are no others in it.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn server_config(
    own: &Own,
    verifier: Arc<dyn ClientCertVerifier>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .map_err(|error| own.unusable(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(own.chain.clone(), own.key.clone_key())
        .map_err(|error| own.unusable(&error))?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}

/// A [`TlsIdentity`] that follows its files. New connections use the latest that could be loaded; open ones keep what they have.
#[derive(Debug)]
pub struct TlsReloader {
    files: TlsFiles,
    verification: ClientVerification,
    current: ArcSwap<TlsIdentity>,
}

impl TlsReloader {
    /// Loads the files for the first time.
    ///
    /// # Errors
    /// As [`TlsIdentity::load`].
    pub fn load(files: TlsFiles, verification: ClientVerification) -> Result<Self, TlsError> {
        let identity = TlsIdentity::load(&files, verification)?;
        Ok(Self {
            files,
            verification,
            current: ArcSwap::from_pointee(identity),
        })
    }

    /// What new connections use.
    #[must_use]
    pub fn current(&self) -> Arc<TlsIdentity> {
        self.current.load_full()
    }

    /// Which files it follows.
    #[must_use]
    pub fn files(&self) -> &TlsFiles {
        &self.files
    }

    /// Loads the files again. All of them are loaded and checked before any is used.
    ///
    /// # Errors
    /// As [`TlsIdentity::load`]; then what was in force stays in force.
    pub fn reload(&self) -> Result<(), TlsError> {
        let identity = TlsIdentity::load(&self.files, self.verification)?;
        tracing::info!(
            subject = %identity.certificate.subject,
            serial = %identity.certificate.serial_text(),
            authorities = identity.trust.roots.len(),
            revocation_lists = identity.trust.lists.len(),
            "tls files reloaded"
        );
        self.current.store(Arc::new(identity));
        Ok(())
    }
}
