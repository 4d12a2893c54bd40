//! What a certificate says, decoded by the types of its encoding.

use std::fmt;

use ferrymq_authority::PeerCertificateNames;
use ferrymq_types::{DistinguishedName, DnAttribute, DnAttributeType, Timestamp};
use x509_parser::asn1_rs::{Any, Class, Tag};
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};
use x509_parser::time::ASN1Time;

/// The parts of a peer's certificate that FerryMQ decides by and shows. That it is genuine was verified by the handshake.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerCertificate {
    /// Whom it names.
    pub subject: DistinguishedName,
    /// Who signed it.
    pub issuer: DistinguishedName,
    /// Its serial number as encoded, big end first. Unique for one issuer only.
    pub serial: Vec<u8>,
    /// When it starts to be valid.
    pub not_before: Timestamp,
    /// The last moment at which it is valid.
    pub not_after: Timestamp,
    /// The whole certificate.
    pub der: Vec<u8>,
}

/// A certificate that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not a DER encoded X.509 certificate.
    #[error("not an X.509 certificate")]
    Malformed,
    /// Bytes after the end of the certificate.
    #[error("{0} bytes after the end of the certificate")]
    TrailingBytes(usize),
}

impl PeerCertificate {
    /// Reads a DER encoded certificate. Names with values that cannot be decoded are no error: such values match no pattern.
    ///
    /// # Errors
    /// [`CertificateError`] if it is not one certificate and nothing else.
    pub fn from_der(der: &[u8]) -> Result<Self, CertificateError> {
        let (rest, certificate) =
            X509Certificate::from_der(der).map_err(|_| CertificateError::Malformed)?;
        if !rest.is_empty() {
            return Err(CertificateError::TrailingBytes(rest.len()));
        }
        Ok(Self {
            subject: distinguished_name(certificate.subject()),
            issuer: distinguished_name(certificate.issuer()),
            serial: certificate.raw_serial().to_vec(),
            not_before: timestamp(certificate.validity().not_before),
            not_after: timestamp(certificate.validity().not_after),
            der: der.to_vec(),
        })
    }

    /// What peer patterns are compared with.
    #[must_use]
    pub fn names(&self) -> PeerCertificateNames<'_> {
        PeerCertificateNames {
            subject: &self.subject,
            serial: &self.serial,
        }
    }

    /// Its serial number as displays write it: hex pairs with colons between.
    #[must_use]
    pub fn serial_text(&self) -> String {
        ferrymq_authority::serial_text(&self.serial)
    }
}

impl fmt::Debug for PeerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PeerCertificate({} by {}, serial {})",
            self.subject,
            self.issuer,
            self.serial_text()
        )
    }
}

/// Before 1970 counts as 1970.
fn timestamp(time: ASN1Time) -> Timestamp {
    let seconds = u64::try_from(time.timestamp()).unwrap_or(0);
    Timestamp::from_millis(seconds.saturating_mul(1000))
}

fn distinguished_name(name: &X509Name<'_>) -> DistinguishedName {
    let mut attributes = Vec::new();
    for (rdn, set) in name.iter_rdn().enumerate() {
        for attribute in set.iter() {
            attributes.push(DnAttribute {
                kind: DnAttributeType::from_oid(&attribute.attr_type().to_id_string()),
                value: decode(attribute.attr_value()),
                rdn,
            });
        }
    }
    DistinguishedName { attributes }
}

/// The text of a value by its ASN.1 type, `None` for anything that is not the plain meaning of that type.
///
/// A TeletexString may switch character sets and its few differences from ASCII are read in several ways; it is decoded only where all
/// readings agree, the characters of a PrintableString.
fn decode(value: &Any<'_>) -> Option<String> {
    if value.header.class() != Class::Universal || value.header.is_constructed() {
        return None;
    }
    let bytes = value.data;
    match value.tag() {
        Tag::Utf8String => String::from_utf8(bytes.to_vec()).ok(),
        Tag::PrintableString | Tag::VisibleString => ascii(bytes, |b| matches!(b, b' '..=b'~')),
        Tag::Ia5String => ascii(bytes, u8::is_ascii),
        Tag::NumericString => ascii(bytes, |b| b.is_ascii_digit() || *b == b' '),
        Tag::T61String => ascii(bytes, |b| {
            b.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(b)
        }),
        Tag::BmpString => {
            let (pairs, rest) = bytes.as_chunks::<2>();
            if !rest.is_empty() {
                return None;
            }
            // Surrogates are no characters, and `from_u32` refuses them.
            pairs
                .iter()
                .map(|pair| char::from_u32(u32::from(u16::from_be_bytes(*pair))))
                .collect()
        }
        Tag::UniversalString => {
            let (quads, rest) = bytes.as_chunks::<4>();
            if !rest.is_empty() {
                return None;
            }
            quads
                .iter()
                .map(|quad| char::from_u32(u32::from_be_bytes(*quad)))
                .collect()
        }
        _ => None,
    }
}

fn ascii(bytes: &[u8], allowed: impl Fn(&u8) -> bool) -> Option<String> {
    if !bytes.iter().all(allowed) {
        return None;
    }
    String::from_utf8(bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use x509_parser::asn1_rs::Header;

    use super::*;

    #[track_caller]
    fn check(tag: Tag, bytes: &[u8], expected: Option<&str>) {
        let length = x509_parser::asn1_rs::Length::Definite(bytes.len());
        let value = Any::new(Header::new(Class::Universal, false, tag, length), bytes);
        assert_eq!(decode(&value).as_deref(), expected, "{tag:?} {bytes:?}");
    }

    #[test]
    fn sec_p5_the_same_text_in_every_string_type_is_the_same_value() {
        check(Tag::Utf8String, b"App 1", Some("App 1"));
        check(Tag::PrintableString, b"App 1", Some("App 1"));
        check(Tag::VisibleString, b"App 1", Some("App 1"));
        check(Tag::Ia5String, b"App 1", Some("App 1"));
        check(Tag::T61String, b"App 1", Some("App 1"));
        check(Tag::BmpString, b"\0A\0p\0p\0 \x001", Some("App 1"));
        check(
            Tag::UniversalString,
            b"\0\0\0A\0\0\0p\0\0\0p\0\0\0 \0\0\x001",
            Some("App 1"),
        );
        check(Tag::NumericString, b"12 3", Some("12 3"));
        check(Tag::BmpString, b"\0M\0\xfc", Some("Mü"));
        check(Tag::Utf8String, "Mü".as_bytes(), Some("Mü"));
        check(Tag::UniversalString, b"\0\x01\xf6\x00", Some("\u{1f600}"));
    }

    #[test]
    fn sec_p5_what_is_not_its_type_has_no_value() {
        check(Tag::Utf8String, b"a\xff", None);
        check(Tag::Utf8String, b"\xed\xa0\x80", None);
        check(Tag::Utf8String, b"\xc0\x80", None);
        check(Tag::PrintableString, b"a\xe4", None);
        check(Tag::PrintableString, b"a\0", None);
        check(Tag::Ia5String, b"a\x80", None);
        check(Tag::NumericString, b"12a", None);
        check(Tag::T61String, b"M\xfcller", None);
        check(Tag::T61String, b"a\x1bb", None);
        check(Tag::T61String, b"a$b", None);
        check(Tag::BmpString, b"\0a\0", None);
        check(Tag::BmpString, b"\xd8\x3d\xde\x00", None);
        check(Tag::UniversalString, b"\0\0a", None);
        check(Tag::UniversalString, b"\0\x11\0\0", None);
        check(Tag::OctetString, b"a", None);
        check(Tag::Integer, b"a", None);
        check(Tag::Sequence, b"", None);
    }

    #[test]
    fn sec_p5_constructed_and_foreign_classes_have_no_value() {
        let length = x509_parser::asn1_rs::Length::Definite(1);
        for (class, constructed) in [(Class::Universal, true), (Class::ContextSpecific, false)] {
            let header = Header::new(class, constructed, Tag::Utf8String, length);
            assert_eq!(decode(&Any::new(header, b"a")), None);
        }
    }

    #[test]
    fn garbage_is_no_certificate() {
        for bytes in [
            &b""[..],
            b"\x30",
            b"\x30\x80",
            b"\x30\x03\x02\x01\x00",
            &[0xff; 64],
        ] {
            assert_eq!(
                PeerCertificate::from_der(bytes).unwrap_err(),
                CertificateError::Malformed
            );
        }
    }
}
