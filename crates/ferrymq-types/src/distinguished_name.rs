//! Distinguished names as parsed attributes: what a certificate says, never how it prints.

use core::fmt::{self, Write as _};

/// An attribute type that a peer pattern can name.
///
/// Source: IBM MQ, "IBM MQ rules for SSLPEER values".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DnAttributeType {
    /// `SERIALNUMBER`: the serial number of the certificate, not an attribute of its subject.
    SerialNumber,
    /// `MAIL`, `E`.
    Mail,
    /// `UID`, `USERID`.
    UserId,
    /// `CN`.
    CommonName,
    /// `T`.
    Title,
    /// `OU`.
    OrganizationalUnit,
    /// `DC`.
    DomainComponent,
    /// `O`.
    Organization,
    /// `STREET`.
    Street,
    /// `L`.
    Locality,
    /// `ST`, `SP`, `S`.
    State,
    /// `PC`.
    PostalCode,
    /// `C`.
    Country,
    /// `UNSTRUCTUREDNAME`.
    UnstructuredName,
    /// `UNSTRUCTUREDADDRESS`.
    UnstructuredAddress,
    /// `DNQ`.
    DnQualifier,
    /// Any other, by its object identifier in dotted form.
    Other(String),
}

impl DnAttributeType {
    /// The type that a keyword of a peer pattern names, `None` if it names none. Keywords are upper case only.
    ///
    /// Source: IBM MQ, "IBM MQ rules for SSLPEER values".
    #[must_use]
    pub fn from_keyword(keyword: &str) -> Option<Self> {
        Some(match keyword {
            "SERIALNUMBER" => Self::SerialNumber,
            "MAIL" | "E" => Self::Mail,
            "UID" | "USERID" => Self::UserId,
            "CN" => Self::CommonName,
            "T" => Self::Title,
            "OU" => Self::OrganizationalUnit,
            "DC" => Self::DomainComponent,
            "O" => Self::Organization,
            "STREET" => Self::Street,
            "L" => Self::Locality,
            "ST" | "SP" | "S" => Self::State,
            "PC" => Self::PostalCode,
            "C" => Self::Country,
            "UNSTRUCTUREDNAME" => Self::UnstructuredName,
            "UNSTRUCTUREDADDRESS" => Self::UnstructuredAddress,
            "DNQ" => Self::DnQualifier,
            _ => return None,
        })
    }

    /// Its keyword in a peer pattern, or the dotted object identifier of a type that has none.
    #[must_use]
    pub fn keyword(&self) -> &str {
        match self {
            Self::SerialNumber => "SERIALNUMBER",
            Self::Mail => "MAIL",
            Self::UserId => "UID",
            Self::CommonName => "CN",
            Self::Title => "T",
            Self::OrganizationalUnit => "OU",
            Self::DomainComponent => "DC",
            Self::Organization => "O",
            Self::Street => "STREET",
            Self::Locality => "L",
            Self::State => "ST",
            Self::PostalCode => "PC",
            Self::Country => "C",
            Self::UnstructuredName => "UNSTRUCTUREDNAME",
            Self::UnstructuredAddress => "UNSTRUCTUREDADDRESS",
            Self::DnQualifier => "DNQ",
            Self::Other(oid) => oid,
        }
    }

    /// The type with this object identifier in dotted form.
    ///
    /// The `serialNumber` attribute of a subject (2.5.4.5) is an [`Other`](Self::Other): it numbers a person or a device,
    /// and is not the serial number of the certificate that `SERIALNUMBER` means.
    #[must_use]
    pub fn from_oid(oid: &str) -> Self {
        match oid {
            "1.2.840.113549.1.9.1" | "0.9.2342.19200300.100.1.3" => Self::Mail,
            "0.9.2342.19200300.100.1.1" => Self::UserId,
            "2.5.4.3" => Self::CommonName,
            "2.5.4.12" => Self::Title,
            "2.5.4.11" => Self::OrganizationalUnit,
            "0.9.2342.19200300.100.1.25" => Self::DomainComponent,
            "2.5.4.10" => Self::Organization,
            "2.5.4.9" => Self::Street,
            "2.5.4.7" => Self::Locality,
            "2.5.4.8" => Self::State,
            "2.5.4.17" => Self::PostalCode,
            "2.5.4.6" => Self::Country,
            "1.2.840.113549.1.9.2" => Self::UnstructuredName,
            "1.2.840.113549.1.9.8" => Self::UnstructuredAddress,
            "2.5.4.46" => Self::DnQualifier,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Its object identifier in dotted form, `None` for [`SerialNumber`](Self::SerialNumber), which is no attribute.
    ///
    /// `MAIL` has two; this gives the usual one of certificates, PKCS #9 `emailAddress`.
    #[must_use]
    pub fn oid(&self) -> Option<&str> {
        Some(match self {
            Self::SerialNumber => return None,
            Self::Mail => "1.2.840.113549.1.9.1",
            Self::UserId => "0.9.2342.19200300.100.1.1",
            Self::CommonName => "2.5.4.3",
            Self::Title => "2.5.4.12",
            Self::OrganizationalUnit => "2.5.4.11",
            Self::DomainComponent => "0.9.2342.19200300.100.1.25",
            Self::Organization => "2.5.4.10",
            Self::Street => "2.5.4.9",
            Self::Locality => "2.5.4.7",
            Self::State => "2.5.4.8",
            Self::PostalCode => "2.5.4.17",
            Self::Country => "2.5.4.6",
            Self::UnstructuredName => "1.2.840.113549.1.9.2",
            Self::UnstructuredAddress => "1.2.840.113549.1.9.8",
            Self::DnQualifier => "2.5.4.46",
            Self::Other(oid) => oid,
        })
    }

    /// Whether a name may hold it several times, in an order that means something: `OU` and `DC`.
    ///
    /// Source: IBM MQ, "Distinguished Names".
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        matches!(self, Self::OrganizationalUnit | Self::DomainComponent)
    }
}

/// One attribute of a distinguished name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnAttribute {
    /// Its type, by object identifier.
    pub kind: DnAttributeType,
    /// Its value, decoded by its ASN.1 type; `None` if it could not be decoded: it then matches nothing.
    pub value: Option<String>,
    /// The relative distinguished name that it is in, counted from 0: attributes of one set share it.
    pub rdn: usize,
}

/// A subject or an issuer: its attributes in the order of the certificate's encoding.
///
/// It prints for logs and displays only (`CN=QM1,OU=Queue Managers,O=FerryMQ`): the most specific attribute first, several `OU`
/// or `DC` from the highest level down, as a peer pattern lists them. Every character that could be mistaken is escaped, so one
/// name is one line and an attribute cannot pretend to be two. **Nothing may be decided by the printed form.**
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DistinguishedName {
    /// The attributes.
    pub attributes: Vec<DnAttribute>,
}

impl DistinguishedName {
    /// Whether it has no attribute at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    /// The attributes of one type, in the order of the encoding.
    pub fn of_kind<'a>(
        &'a self,
        kind: &'a DnAttributeType,
    ) -> impl Iterator<Item = &'a DnAttribute> {
        self.attributes.iter().filter(move |a| a.kind == *kind)
    }

    /// The common name, if there is exactly one and it could be decoded.
    #[must_use]
    pub fn common_name(&self) -> Option<&str> {
        let mut names = self.of_kind(&DnAttributeType::CommonName);
        match (names.next(), names.next()) {
            (Some(only), None) => only.value.as_deref(),
            (Some(_), Some(_)) | (None, _) => None,
        }
    }

    /// Turns relative names from the order of the encoding (highest level first) into the order of the printed form
    /// (most specific first, but several `OU` or `DC` from the highest level down), or back: it is its own inverse.
    ///
    /// `kind_of` tells the type of a relative name with a single attribute, and `None` for one with several.
    pub fn reverse_for_print<T>(rdns: &mut [T], kind_of: impl Fn(&T) -> Option<DnAttributeType>) {
        rdns.reverse();
        for kind in [
            DnAttributeType::OrganizationalUnit,
            DnAttributeType::DomainComponent,
        ] {
            let slots: Vec<usize> = rdns
                .iter()
                .enumerate()
                .filter(|(_, rdn)| kind_of(rdn).as_ref() == Some(&kind))
                .map(|(index, _)| index)
                .collect();
            let half = slots.len() / 2;
            for (low, high) in slots.iter().take(half).zip(slots.iter().rev()) {
                rdns.swap(*low, *high);
            }
        }
    }
}

impl fmt::Display for DistinguishedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rdns: Vec<&[DnAttribute]> = self
            .attributes
            .chunk_by(|left, right| left.rdn == right.rdn)
            .collect();
        Self::reverse_for_print(&mut rdns, |rdn| match rdn {
            [only] => Some(only.kind.clone()),
            [] | [_, _, ..] => None,
        });
        for (index, rdn) in rdns.iter().enumerate() {
            if index > 0 {
                f.write_char(',')?;
            }
            for (position, attribute) in rdn.iter().enumerate() {
                if position > 0 {
                    f.write_char('+')?;
                }
                write!(f, "{attribute}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for DnAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.kind.keyword())?;
        match &self.value {
            Some(value) => write_escaped(f, value),
            None => f.write_str("<undecodable>"),
        }
    }
}

/// Writes a value so that it stays one value on one line: separators, quotes, `*` and blanks at the ends get a backslash, control and
/// invisible characters become the hex pairs of their UTF-8 bytes, and so does every other non-ASCII character that is not
/// alphanumeric.
fn write_escaped(f: &mut fmt::Formatter<'_>, value: &str) -> fmt::Result {
    let last = value.chars().count().saturating_sub(1);
    for (index, c) in value.chars().enumerate() {
        let at_end = index == 0 || index == last;
        match c {
            ',' | ';' | '+' | '"' | '\\' | '<' | '>' | '=' | '*' => write!(f, "\\{c}")?,
            ' ' | '#' if at_end => write!(f, "\\{c}")?,
            ' '..='~' => f.write_char(c)?,
            _ if c.is_alphanumeric() => f.write_char(c)?,
            _ => {
                let mut buffer = [0; 4];
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    write!(f, "\\{byte:02X}")?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::arithmetic_side_effects,
        reason = "tests count small collections"
    )]

    use super::*;

    fn attribute(kind: DnAttributeType, value: &str, rdn: usize) -> DnAttribute {
        DnAttribute {
            kind,
            value: Some(value.to_owned()),
            rdn,
        }
    }

    #[test]
    fn prints_most_specific_first_and_units_from_the_top() {
        let name = DistinguishedName {
            attributes: vec![
                attribute(DnAttributeType::Country, "DE", 0),
                attribute(DnAttributeType::Organization, "Bank", 1),
                attribute(DnAttributeType::OrganizationalUnit, "Trade", 2),
                attribute(DnAttributeType::OrganizationalUnit, "Payments", 3),
                attribute(DnAttributeType::CommonName, "app", 4),
            ],
        };
        assert_eq!(name.to_string(), "CN=app,OU=Trade,OU=Payments,O=Bank,C=DE");
        assert_eq!(name.common_name(), Some("app"));
    }

    #[test]
    fn attributes_of_one_set_print_joined() {
        let name = DistinguishedName {
            attributes: vec![
                attribute(DnAttributeType::Organization, "Bank", 0),
                attribute(DnAttributeType::CommonName, "app", 1),
                attribute(DnAttributeType::OrganizationalUnit, "Payments", 1),
            ],
        };
        assert_eq!(name.to_string(), "CN=app+OU=Payments,O=Bank");
    }

    #[test]
    fn sec_p1_a_value_cannot_print_as_two_attributes() {
        let name = DistinguishedName {
            attributes: vec![attribute(
                DnAttributeType::CommonName,
                "app, OU=Payments + O=Bank",
                0,
            )],
        };
        assert_eq!(name.to_string(), "CN=app\\, OU\\=Payments \\+ O\\=Bank");
    }

    #[test]
    fn sec_j2_control_and_invisible_characters_are_escaped() {
        for (value, printed) in [
            ("a\nb", "CN=a\\0Ab"),
            ("a\0b", "CN=a\\00b"),
            ("a\u{1b}[2J", "CN=a\\1B[2J"),
            ("a\u{202e}b", "CN=a\\E2\\80\\AEb"),
            ("a\u{200b}b", "CN=a\\E2\\80\\8Bb"),
            ("a\u{85}b", "CN=a\\C2\\85b"),
            (" a ", "CN=\\ a\\ "),
            ("Müller", "CN=Müller"),
        ] {
            let name = DistinguishedName {
                attributes: vec![attribute(DnAttributeType::CommonName, value, 0)],
            };
            assert_eq!(name.to_string(), printed);
        }
    }

    #[test]
    fn an_undecodable_value_says_so() {
        let name = DistinguishedName {
            attributes: vec![DnAttribute {
                kind: DnAttributeType::CommonName,
                value: None,
                rdn: 0,
            }],
        };
        assert_eq!(name.to_string(), "CN=<undecodable>");
        assert_eq!(name.common_name(), None);
    }

    #[test]
    fn keywords_and_object_identifiers_agree() {
        for keyword in [
            "MAIL",
            "UID",
            "CN",
            "T",
            "OU",
            "DC",
            "O",
            "STREET",
            "L",
            "ST",
            "PC",
            "C",
            "UNSTRUCTUREDNAME",
            "UNSTRUCTUREDADDRESS",
            "DNQ",
        ] {
            let kind = DnAttributeType::from_keyword(keyword).expect(keyword);
            assert_eq!(kind.keyword(), keyword);
            assert_eq!(DnAttributeType::from_oid(kind.oid().expect(keyword)), kind);
        }
        assert_eq!(
            DnAttributeType::from_oid("2.5.4.5"),
            DnAttributeType::Other("2.5.4.5".to_owned())
        );
        assert_eq!(DnAttributeType::from_keyword("cn"), None);
    }

    #[test]
    fn print_order_is_its_own_inverse() {
        let kinds = [
            DnAttributeType::Organization,
            DnAttributeType::DomainComponent,
            DnAttributeType::OrganizationalUnit,
            DnAttributeType::DomainComponent,
            DnAttributeType::OrganizationalUnit,
            DnAttributeType::CommonName,
        ];
        let start: Vec<(usize, DnAttributeType)> = kinds.into_iter().enumerate().collect();
        let mut rdns = start.clone();
        DistinguishedName::reverse_for_print(&mut rdns, |rdn| Some(rdn.1.clone()));
        assert_ne!(rdns, start);
        DistinguishedName::reverse_for_print(&mut rdns, |rdn| Some(rdn.1.clone()));
        assert_eq!(rdns, start);
    }
}
