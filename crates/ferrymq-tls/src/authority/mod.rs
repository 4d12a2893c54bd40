//! A small certificate authority for try-outs, tests and sites without one: `ferrymq cert ca`, `server`, `client`.
//!
//! Keys are ECDSA P-256. A subject is written as it appears in a peer pattern, `CN=QM1,OU=Queue Managers,O=FerryMQ`, and its certificate
//! then matches that text as SSLPEER.

mod der;
mod store;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ferrymq_authority::parse_distinguished_name;
use ferrymq_types::{DistinguishedName, DnAttributeType, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, RevokedCertParams,
    SanType, SerialNumber, SigningKey,
};
use rustls_pki_types::CertificateDer;
use time::OffsetDateTime;

use crate::certificate::PeerCertificate;
use crate::error::TlsError;
use crate::files;

/// How long an authority's certificate is valid unless said otherwise, in days.
pub const AUTHORITY_DAYS_DEFAULT: u32 = 3650;

/// How long the certificate of a server or a client is valid unless said otherwise, in days.
pub const LEAF_DAYS_DEFAULT: u32 = 825;

/// A certificate is valid from this long before its making, so that a peer whose clock is behind accepts it.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// From.
    pub not_before: Timestamp,
    /// To, inclusive.
    pub not_after: Timestamp,
}

impl Validity {
    /// From an hour before `now`, against clocks that differ, until `days` after it.
    #[must_use]
    pub fn days(now: Timestamp, days: u32) -> Self {
        let skew_ms = u64::try_from(CLOCK_SKEW.as_millis()).unwrap_or(0);
        Self {
            not_before: Timestamp::from_millis(now.as_millis().saturating_sub(skew_ms)),
            not_after: now.saturating_add(Duration::from_secs(u64::from(days) * 24 * 3600)),
        }
    }
}

/// Where a certificate and its key are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificatePaths {
    /// The certificate, PEM, mode 0644 less the process's umask.
    pub certificate: PathBuf,
    /// The private key, PEM (PKCS #8), mode 0600.
    pub key: PathBuf,
}

impl CertificatePaths {
    /// `NAME.crt` and `NAME.key` in a directory.
    #[must_use]
    pub fn in_directory(directory: &Path, name: &str) -> Self {
        Self {
            certificate: directory.join(format!("{name}.crt")),
            key: directory.join(format!("{name}.key")),
        }
    }
}

/// A subject from text, checked for what a certificate can hold.
///
/// # Errors
/// [`TlsError::Request`] with the position of what is wrong.
pub fn parse_subject(text: &str) -> Result<DistinguishedName, TlsError> {
    let name = parse_distinguished_name(text)
        .map_err(|error| TlsError::Request(format!("subject {text:?}: {error}")))?;
    for attribute in &name.attributes {
        let length = attribute
            .value
            .as_ref()
            .map_or(0, |value| value.chars().count());
        let (min, max) = length_bounds(&attribute.kind);
        if length < min || length > max {
            return Err(TlsError::Request(format!(
                "subject {text:?}: {attribute} has {length} characters, allowed are {min} to {max}"
            )));
        }
    }
    encode(&name)?;
    Ok(name)
}

/// Fewest and most characters. Source: RFC 5280, appendix A, upper bounds.
fn length_bounds(kind: &DnAttributeType) -> (usize, usize) {
    match kind {
        DnAttributeType::Country => (2, 2),
        DnAttributeType::CommonName
        | DnAttributeType::Organization
        | DnAttributeType::OrganizationalUnit
        | DnAttributeType::Title => (1, 64),
        DnAttributeType::Locality | DnAttributeType::State | DnAttributeType::Street => (1, 128),
        DnAttributeType::PostalCode => (1, 40),
        DnAttributeType::SerialNumber
        | DnAttributeType::Mail
        | DnAttributeType::UserId
        | DnAttributeType::DomainComponent
        | DnAttributeType::UnstructuredName
        | DnAttributeType::UnstructuredAddress
        | DnAttributeType::DnQualifier
        | DnAttributeType::Other(_) => (1, 255),
    }
}

fn encode(name: &DistinguishedName) -> Result<Vec<u8>, TlsError> {
    der::encode_name(name).map_err(|attribute| {
        TlsError::Request(format!(
            "{attribute} cannot be written: C and DNQ take letters, digits, blanks and '()+,-./:=?, MAIL and DC take ASCII"
        ))
    })
}

/// A host of a server's certificate: an IP address if it is one, else a DNS name.
fn alternative_name(host: &str) -> Result<SanType, TlsError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    rustls_pki_types::DnsName::try_from(host.strip_prefix("*.").unwrap_or(host))
        .map_err(|_| TlsError::Request(format!("{host:?} is no host name and no IP address")))?;
    let name = host
        .try_into()
        .map_err(|_| TlsError::Request(format!("{host:?} is no host name and no IP address")))?;
    Ok(SanType::DnsName(name))
}

/// A new certificate and its key, both PEM, not written anywhere yet.
pub struct Issued {
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key. A secret.
    pub key_pem: String,
    /// The certificate's DER.
    der: Vec<u8>,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

impl Issued {
    /// What the certificate says.
    ///
    /// # Errors
    /// [`TlsError::Request`] if it cannot be read back.
    pub fn certificate(&self) -> Result<PeerCertificate, TlsError> {
        PeerCertificate::from_der(&self.der).map_err(|error| TlsError::Request(error.to_string()))
    }

    /// Writes both files. The key's file is created with mode 0600.
    ///
    /// # Errors
    /// [`TlsError::Exists`] if either is there already: nothing is overwritten. [`TlsError::Write`]; then neither is left behind.
    pub fn write(&self, paths: &CertificatePaths) -> Result<(), TlsError> {
        store::write_pair(paths, &self.certificate_pem, &self.key_pem)
    }
}

/// An authority that can sign.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own subject, byte by byte.
    name: Vec<u8>,
    certificate: PeerCertificate,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes the certificate and key of a new authority. It signs servers and clients, not other authorities.
    ///
    /// # Errors
    /// [`TlsError::Request`] for a name that cannot be encoded, [`TlsError::Create`].
    pub fn create(subject: &DistinguishedName, validity: Validity) -> Result<Issued, TlsError> {
        let key = new_key()?;
        let name = encode(subject)?;
        let mut params = params(validity)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let draft = params.self_signed(&key).map_err(TlsError::Create)?;
        let der = rename_and_sign(draft.der(), &name, &name, &key)?;
        Ok(issued(der, &key))
    }

    /// Loads an authority from its files.
    ///
    /// # Errors
    /// [`TlsError`] names the file and what is wrong with it.
    pub fn load(paths: &CertificatePaths) -> Result<Self, TlsError> {
        let mut chain = files::load_certificates(&paths.certificate)?.into_iter();
        let (Some(der), None) = (chain.next(), chain.next()) else {
            return Err(TlsError::content(
                &paths.certificate,
                "more than one certificate in it; keep the authority's own",
            ));
        };
        let private = files::load_private_key(&paths.key)?;
        let key = KeyPair::try_from(&private).map_err(|_| {
            TlsError::content(&paths.key, "this kind of key cannot be used for signing")
        })?;
        let unusable = |problem: &str| TlsError::content(&paths.certificate, problem);
        let (name, public_key, is_authority) = {
            use x509_parser::prelude::{FromDer, X509Certificate};
            let (_, certificate) =
                X509Certificate::from_der(&der).map_err(|_| unusable("it is damaged"))?;
            (
                certificate.subject().as_raw().to_vec(),
                certificate.public_key().subject_public_key.data.to_vec(),
                certificate.is_ca(),
            )
        };
        if !is_authority {
            return Err(unusable("it is not the certificate of an authority (CA)"));
        }
        if public_key != key.public_key_raw() {
            return Err(TlsError::Unusable {
                path: paths.certificate.clone(),
                problem: "the private key does not belong to the certificate".to_owned(),
            });
        }
        let certificate =
            PeerCertificate::from_der(&der).map_err(|error| unusable(&error.to_string()))?;
        Ok(Self {
            issuer: issuer(&der, key)?,
            name,
            certificate,
        })
    }

    /// Its own certificate.
    #[must_use]
    pub fn certificate(&self) -> &PeerCertificate {
        &self.certificate
    }

    /// Signs the certificate of a node: it serves `hosts` (DNS names and IP addresses) and also opens connections to other nodes, so it
    /// is good for both ends.
    ///
    /// # Errors
    /// [`TlsError::Request`] for a name that cannot be encoded or without a host, [`TlsError::Create`].
    pub fn issue_server(
        &self,
        subject: &DistinguishedName,
        hosts: &[String],
        validity: Validity,
    ) -> Result<Issued, TlsError> {
        if hosts.is_empty() {
            return Err(TlsError::Request(
                "a server's certificate needs at least one host name or IP address".to_owned(),
            ));
        }
        let names = hosts
            .iter()
            .map(|host| alternative_name(host))
            .collect::<Result<Vec<_>, _>>()?;
        self.issue(
            subject,
            names,
            vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
            validity,
        )
    }

    /// Signs the certificate of an application or an operator.
    ///
    /// # Errors
    /// [`TlsError::Request`] for a name that cannot be encoded, [`TlsError::Create`].
    pub fn issue_client(
        &self,
        subject: &DistinguishedName,
        validity: Validity,
    ) -> Result<Issued, TlsError> {
        self.issue(
            subject,
            Vec::new(),
            vec![ExtendedKeyUsagePurpose::ClientAuth],
            validity,
        )
    }

    fn issue(
        &self,
        subject: &DistinguishedName,
        alternative_names: Vec<SanType>,
        usages: Vec<ExtendedKeyUsagePurpose>,
        validity: Validity,
    ) -> Result<Issued, TlsError> {
        let key = new_key()?;
        let mut params = params(validity)?;
        params.subject_alt_names = alternative_names;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages;
        params.use_authority_key_identifier_extension = true;
        let draft = params
            .signed_by(&key, &self.issuer)
            .map_err(TlsError::Create)?;
        let der = rename_and_sign(
            draft.der(),
            &self.name,
            &encode(subject)?,
            self.issuer.key(),
        )?;
        Ok(issued(der, &key))
    }

    /// Signs a list of the certificates, by serial number, that are no longer good, as PEM. `number` must grow from list to list.
    ///
    /// # Errors
    /// [`TlsError::Create`].
    pub fn revocation_list(
        &self,
        serials: &[Vec<u8>],
        number: u64,
        validity: Validity,
    ) -> Result<String, TlsError> {
        let params = CertificateRevocationListParams {
            this_update: date(validity.not_before)?,
            next_update: date(validity.not_after)?,
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs: serials
                .iter()
                .map(|serial| {
                    Ok(RevokedCertParams {
                        serial_number: SerialNumber::from_slice(serial),
                        revocation_time: date(validity.not_before)?,
                        reason_code: None,
                        invalidity_date: None,
                    })
                })
                .collect::<Result<_, TlsError>>()?,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let draft = params.signed_by(&self.issuer).map_err(TlsError::Create)?;
        // version, algorithm, issuer
        let der = replace_and_sign(draft.der(), &[(2, &self.name)], self.issuer.key())?;
        Ok(store::pem("X509 CRL", &der))
    }
}

fn new_key() -> Result<KeyPair, TlsError> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(TlsError::Create)
}

fn date(at: Timestamp) -> Result<OffsetDateTime, TlsError> {
    i64::try_from(at.as_millis() / 1000)
        .ok()
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
        .ok_or_else(|| TlsError::Request("a date after the year 9999".to_owned()))
}

fn params(validity: Validity) -> Result<CertificateParams, TlsError> {
    if validity.not_after <= validity.not_before {
        return Err(TlsError::Request(
            "a certificate must end after it begins".to_owned(),
        ));
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.not_before = date(validity.not_before)?;
    params.not_after = date(validity.not_after)?;
    Ok(params)
}

fn issuer(der: &CertificateDer<'_>, key: KeyPair) -> Result<Issuer<'static, KeyPair>, TlsError> {
    Issuer::from_ca_cert_der(der, key).map_err(TlsError::Create)
}

/// Gives a certificate its names and signs it again.
fn rename_and_sign(
    draft: &[u8],
    issuer: &[u8],
    subject: &[u8],
    key: &KeyPair,
) -> Result<Vec<u8>, TlsError> {
    // version, serial number, algorithm, issuer, validity, subject
    replace_and_sign(draft, &[(3, issuer), (5, subject)], key)
}

fn replace_and_sign(
    draft: &[u8],
    replacements: &[(usize, &[u8])],
    key: &KeyPair,
) -> Result<Vec<u8>, TlsError> {
    let (body, algorithm) = der::replace(draft, replacements)
        .ok_or(TlsError::Create(rcgen::Error::CouldNotParseCertificate))?;
    let signature = key.sign(&body).map_err(TlsError::Create)?;
    Ok(der::join(&body, &algorithm, &signature))
}

fn issued(der: Vec<u8>, key: &KeyPair) -> Issued {
    Issued {
        certificate_pem: store::pem("CERTIFICATE", &der),
        key_pem: key.serialize_pem(),
        der,
    }
}

#[cfg(test)]
mod tests;
