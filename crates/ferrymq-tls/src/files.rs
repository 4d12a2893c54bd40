//! Certificates, keys, authorities and revocation lists from PEM files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::TlsError;

/// The largest file that is read, 64 MiB: a revocation list of a million entries is about 40 MiB.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

fn read(path: &Path, file: &mut File) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(TlsError::content(
            path,
            format!("larger than {FILE_BYTES_MAX} bytes"),
        ));
    }
    Ok(bytes)
}

fn open(path: &Path) -> Result<File, TlsError> {
    File::open(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Reads a chain of certificates, the owner's first.
///
/// # Errors
/// [`TlsError::Read`], or [`TlsError::Content`] if there is none or one of them is damaged.
pub fn load_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path, &mut open(path)?)?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|_| TlsError::content(path, "a PEM section is damaged"))?;
    if chain.is_empty() {
        return Err(TlsError::content(
            path,
            "no certificate in it; it must hold BEGIN CERTIFICATE sections, the own certificate first",
        ));
    }
    for (index, der) in chain.iter().enumerate() {
        parse(der).ok_or_else(|| {
            TlsError::content(path, format!("certificate {} is damaged", index + 1))
        })?;
    }
    Ok(chain)
}

fn parse(der: &[u8]) -> Option<X509Certificate<'_>> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Some(certificate),
        Ok(_) | Err(_) => None,
    }
}

/// Reads a private key (PKCS #8, SEC 1 or PKCS #1).
///
/// # Errors
/// [`TlsError::KeyMode`] if others than the owner may use the file, [`TlsError::Read`], or [`TlsError::Content`] if there is no key
/// or more than one. No error shows any of the content.
pub fn load_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let mut file = open(path)?;
    refuse_wide_mode(path, &file)?;
    let bytes = read(path, &mut file)?;
    // A damaged section's error would quote a line of the file: it is dropped.
    let keys: Vec<PrivateKeyDer<'static>> = PrivateKeyDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|_| TlsError::content(path, "a PEM section is damaged"))?;
    let mut keys = keys.into_iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) => Ok(key),
        (None, _) => Err(TlsError::content(
            path,
            "no private key in it; it must hold one unencrypted BEGIN PRIVATE KEY section",
        )),
        (Some(_), Some(_)) => Err(TlsError::content(
            path,
            "more than one private key in it; keep the one that belongs to the certificate",
        )),
    }
}

/// The mode is that of the opened file, so a swapped name cannot pass.
#[cfg(unix)]
fn refuse_wide_mode(path: &Path, file: &File) -> Result<(), TlsError> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata().map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & !0o600 != 0 {
        return Err(TlsError::KeyMode {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_wide_mode(_path: &Path, _file: &File) -> Result<(), TlsError> {
    Ok(())
}

/// Reads the certificates of the authorities that are trusted.
///
/// # Errors
/// [`TlsError::Read`], or [`TlsError::Content`] if there is none, or one of them is damaged or not an authority's: any other
/// certificate in the bundle would make its owner an authority.
pub fn load_authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for (index, der) in load_certificates(path)?.into_iter().enumerate() {
        let number = index + 1;
        if !parse(&der).is_some_and(|certificate| certificate.is_ca()) {
            return Err(TlsError::content(
                path,
                format!("certificate {number} is not that of an authority (CA); remove it"),
            ));
        }
        roots.add(der).map_err(|error| {
            TlsError::content(
                path,
                format!("certificate {number} cannot be used: {error}"),
            )
        })?;
    }
    Ok(roots)
}

/// Reads revocation lists.
///
/// # Errors
/// [`TlsError::Read`], or [`TlsError::Content`] for a file without a list or with a damaged one: a missing list never means that
/// nothing is revoked.
pub fn load_revocation_lists(
    paths: &[PathBuf],
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let mut lists = Vec::new();
    for path in paths {
        let bytes = read(path, &mut open(path)?)?;
        let before = lists.len();
        for list in CertificateRevocationListDer::pem_slice_iter(&bytes) {
            lists.push(list.map_err(|_| TlsError::content(path, "a PEM section is damaged"))?);
        }
        if lists.len() == before {
            return Err(TlsError::content(
                path,
                "no revocation list in it; it must hold BEGIN X509 CRL sections",
            ));
        }
    }
    Ok(lists)
}
