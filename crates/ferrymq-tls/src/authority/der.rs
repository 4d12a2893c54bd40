//! The little DER that is needed to put a name into a certificate as its owner wrote it.
//!
//! rcgen keeps one value per attribute type, so it cannot write several `OU`, nor a set, nor copy an issuer's name byte by byte. What it
//! made is taken apart into elements here, the names are replaced, and the result is signed again.

use ferrymq_types::{DistinguishedName, DnAttribute, DnAttributeType};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;

/// One element: tag, length, content.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    if let Ok(short) = u8::try_from(content.len())
        && short < 0x80
    {
        out.push(short);
    } else {
        let length = content.len().to_be_bytes();
        let significant: Vec<u8> = length.iter().copied().skip_while(|b| *b == 0).collect();
        // At most eight bytes of length, so the count fits.
        out.push(0x80 | u8::try_from(significant.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(&significant);
    }
    out.extend_from_slice(content);
    out
}

/// Splits the first element off: (the whole element, its content, what follows). `None` if it is damaged.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let first = *bytes.get(1)?;
    let (header, length) = if first < 0x80 {
        (2usize, usize::from(first))
    } else {
        let count = usize::from(first & 0x7f);
        let digits = bytes.get(2..count.checked_add(2)?)?;
        if count == 0 || count > size_of::<usize>() {
            return None;
        }
        let length = digits
            .iter()
            .fold(0usize, |sum, digit| sum << 8 | usize::from(*digit));
        (count.checked_add(2)?, length)
    };
    let end = header.checked_add(length)?;
    Some((
        bytes.get(..end)?,
        bytes.get(header..end)?,
        bytes.get(end..)?,
    ))
}

/// The elements that a constructed element holds, each whole.
fn children(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (_, mut content, rest) = split(bytes)?;
    if !rest.is_empty() {
        return None;
    }
    let mut children = Vec::new();
    while !content.is_empty() {
        let (whole, _, rest) = split(content)?;
        children.push(whole);
        content = rest;
    }
    Some(children)
}

/// A signed structure (certificate or revocation list) with some elements of its signed part replaced: the part to sign, and the
/// element that names the algorithm.
pub(super) fn replace(
    signed: &[u8],
    replacements: &[(usize, &[u8])],
) -> Option<(Vec<u8>, Vec<u8>)> {
    let outer = children(signed)?;
    let [body, algorithm, _signature] = outer.as_slice() else {
        return None;
    };
    let mut parts = children(body)?;
    for (index, replacement) in replacements {
        *parts.get_mut(*index)? = replacement;
    }
    Some((element(SEQUENCE, &parts.concat()), algorithm.to_vec()))
}

/// Joins the signed part, the algorithm and the signature.
pub(super) fn join(body: &[u8], algorithm: &[u8], signature: &[u8]) -> Vec<u8> {
    // No unused bits in the last byte.
    let mut bits = vec![0];
    bits.extend_from_slice(signature);
    element(
        SEQUENCE,
        &[body, algorithm, &element(BIT_STRING, &bits)].concat(),
    )
}

/// A name, or the attribute that cannot be written.
pub(super) fn encode_name(name: &DistinguishedName) -> Result<Vec<u8>, &DnAttribute> {
    let mut rdns = Vec::new();
    for set in name
        .attributes
        .chunk_by(|left, right| left.rdn == right.rdn)
    {
        let mut members = Vec::new();
        for attribute in set {
            members.push(encode_attribute(attribute).ok_or(attribute)?);
        }
        // DER orders the members of a set by their bytes.
        members.sort();
        rdns.extend(element(SET, &members.concat()));
    }
    Ok(element(SEQUENCE, &rdns))
}

fn encode_attribute(attribute: &DnAttribute) -> Option<Vec<u8>> {
    let oid = encode_oid(attribute.kind.oid()?)?;
    let value = attribute.value.as_deref()?;
    let tag = match &attribute.kind {
        DnAttributeType::Country | DnAttributeType::DnQualifier => {
            if !value.bytes().all(is_printable) {
                return None;
            }
            PRINTABLE_STRING
        }
        DnAttributeType::Mail | DnAttributeType::DomainComponent => {
            if !value.is_ascii() {
                return None;
            }
            IA5_STRING
        }
        DnAttributeType::SerialNumber => return None,
        DnAttributeType::UserId
        | DnAttributeType::CommonName
        | DnAttributeType::Title
        | DnAttributeType::OrganizationalUnit
        | DnAttributeType::Organization
        | DnAttributeType::Street
        | DnAttributeType::Locality
        | DnAttributeType::State
        | DnAttributeType::PostalCode
        | DnAttributeType::UnstructuredName
        | DnAttributeType::UnstructuredAddress
        | DnAttributeType::Other(_) => UTF8_STRING,
    };
    let pair = [
        element(OBJECT_IDENTIFIER, &oid),
        element(tag, value.as_bytes()),
    ]
    .concat();
    Some(element(SEQUENCE, &pair))
}

/// The alphabet of a PrintableString.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte)
}

fn encode_oid(dotted: &str) -> Option<Vec<u8>> {
    let arcs: Vec<u64> = dotted
        .split('.')
        .map(|arc| arc.parse().ok())
        .collect::<Option<_>>()?;
    let [first, second, rest @ ..] = arcs.as_slice() else {
        return None;
    };
    let mut out = Vec::new();
    for arc in
        std::iter::once(first.checked_mul(40)?.checked_add(*second)?).chain(rest.iter().copied())
    {
        let mut groups = Vec::new();
        let mut left = arc;
        loop {
            let low = u8::try_from(left & 0x7f).ok()?;
            groups.push(if groups.is_empty() { low } else { low | 0x80 });
            left >>= 7;
            if left == 0 {
                break;
            }
        }
        out.extend(groups.into_iter().rev());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_the_shortest_form() {
        for (length, header) in [
            (0usize, &[0x30, 0][..]),
            (0x7f, &[0x30, 0x7f]),
            (0x80, &[0x30, 0x81, 0x80]),
            (0x1234, &[0x30, 0x82, 0x12, 0x34]),
        ] {
            let whole = element(SEQUENCE, &vec![7; length]);
            assert_eq!(&whole[..header.len()], header);
            let (again, content, rest) = split(&whole).unwrap();
            assert_eq!(again, whole);
            assert_eq!(content.len(), length);
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn damaged_elements_are_refused() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 1],
            &[0x30, 0x80],
            &[0x30, 0x82, 1],
            &[0x30, 0x89, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            &[0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(split(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn object_identifiers_are_base_128() {
        assert_eq!(encode_oid("2.5.4.3").unwrap(), [0x55, 4, 3]);
        assert_eq!(
            encode_oid("1.2.840.113549.1.9.1").unwrap(),
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1]
        );
        assert_eq!(encode_oid("x"), None);
        assert_eq!(encode_oid("1"), None);
    }
}
