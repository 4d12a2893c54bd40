//! Distinguished names as parsed attributes: what a certificate says, never how it prints.

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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DistinguishedName {
    /// The attributes.
    pub attributes: Vec<DnAttribute>,
}
