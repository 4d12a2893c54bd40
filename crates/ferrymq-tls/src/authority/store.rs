//! Writing certificates and keys without overwriting and without a moment in which others can read a key.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::CertificatePaths;
use crate::error::TlsError;

/// Writes the key, then the certificate; removes what it created if the second fails.
pub(super) fn write_pair(
    paths: &CertificatePaths,
    certificate_pem: &str,
    key_pem: &str,
) -> Result<(), TlsError> {
    for path in [&paths.certificate, &paths.key] {
        if path.symlink_metadata().is_ok() {
            return Err(TlsError::Exists { path: path.clone() });
        }
    }
    write_new(&paths.key, key_pem, 0o600)?;
    if let Err(error) = write_new(&paths.certificate, certificate_pem, 0o644) {
        remove(&paths.key);
        return Err(error);
    }
    Ok(())
}

fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    let mut file = create_new(path, mode).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => TlsError::Exists {
            path: path.to_owned(),
        },
        _ => TlsError::Write {
            path: path.to_owned(),
            source,
        },
    })?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    written.map_err(|source| {
        remove(path);
        TlsError::Write {
            path: path.to_owned(),
            source,
        }
    })
}

/// Removes a file that this process has just created.
fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "remove an incomplete file");
    }
}

/// The mode is part of the creation, so there is no moment with a wider one.
#[cfg(unix)]
fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
}

#[cfg(not(unix))]
fn create_new(path: &Path, _mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// PEM text of DER bytes.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for (index, c) in base64(der).chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            text.push('\n');
        }
        text.push(c);
    }
    text.push_str(&format!("\n-----END {label}-----\n"));
    text
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .chain(std::iter::repeat(&0))
            .take(3)
            .fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
        for place in 0..4usize {
            if place > chunk.len() {
                text.push('=');
            } else {
                let index = (group >> (18 - 6 * place)) & 0x3f;
                // `index` is below 64.
                let letter = ALPHABET.get(index as usize).copied().unwrap_or(b'=');
                text.push(char::from(letter));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (&[0xff, 0xfe, 0xfd], "//79"),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }
}
