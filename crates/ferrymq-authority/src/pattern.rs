//! A parsed peer pattern and its comparison with a certificate's names.

use core::fmt;

use ferrymq_types::{DistinguishedName, DnAttribute, DnAttributeType, ReasonCode};

/// The value of one element of a pattern: literal text, with or without a wildcard at either end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ValuePattern {
    /// `*` at the start: any characters, also none, may come before the text.
    pub(crate) open_start: bool,
    /// The text, compared without regard to the case of ASCII letters.
    pub(crate) text: String,
    /// `*` at the end.
    pub(crate) open_end: bool,
}

impl ValuePattern {
    /// Whether `value` fits. Linear in its length but for the search of a text that is open at both ends, whose cost is bounded by
    /// the length of a pattern times that of a value.
    fn matches(&self, value: &str) -> bool {
        let value = value.as_bytes();
        let text = self.text.as_bytes();
        match (self.open_start, self.open_end) {
            (false, false) => value.eq_ignore_ascii_case(text),
            (false, true) => value
                .get(..text.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(text)),
            (true, false) => value
                .len()
                .checked_sub(text.len())
                .and_then(|start| value.get(start..))
                .is_some_and(|end| end.eq_ignore_ascii_case(text)),
            (true, true) => {
                text.is_empty()
                    || value
                        .windows(text.len())
                        .any(|part| part.eq_ignore_ascii_case(text))
            }
        }
    }
}

impl fmt::Display for ValuePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.open_start {
            f.write_str("*")?;
        }
        let last = self.text.chars().count().saturating_sub(1);
        for (index, c) in self.text.chars().enumerate() {
            let at_end = index == 0 || index == last;
            match c {
                ',' | ';' | '+' | '"' | '\\' => write!(f, "\\{c}")?,
                ' ' | '*' if at_end => write!(f, "\\{c}")?,
                other => write!(f, "{other}")?,
            }
        }
        if self.open_end {
            f.write_str("*")?;
        }
        Ok(())
    }
}

/// A pattern for the distinguished name at the other end of a channel: `CN=QM1, OU=Queue Managers, O=FerryMQ`.
///
/// MQSC `SSLPEER`, also `SSLCERTI` and the `SSLPEER` of channel authentication records. Every element must match; the certificate may
/// have more attributes. What matches:
/// - attributes by type, never the printed name; letters A to Z without regard to case, and nothing else folded or normalised;
/// - several `OU` (or `DC`) from the highest level down: the first of the pattern against the first of the certificate, and so on;
/// - `*` at the start or the end of a value stands for any characters; elsewhere, or as `\*`, it is itself;
/// - any other attribute only if the certificate has exactly one of it.
///
/// A value that could not be decoded, or that holds control or invisible characters, matches nothing, a `*` included.
///
/// It prints in a form that parses back to itself.
///
/// Source: IBM MQ, "IBM MQ rules for SSLPEER values", "Distinguished Names". Ours: the escapes `\,` and hex pairs, the refusal of invisible
/// characters, and that units which share one set have no order and do not match.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerPattern {
    /// In the order of the text.
    pub(crate) elements: Vec<(DnAttributeType, ValuePattern)>,
}

/// Why a certificate's name does not match a pattern. For the operator's log and events only: the peer is told no more than that it is
/// not authorised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerMismatch {
    /// The type of the first element of the pattern that did not match.
    pub attribute: DnAttributeType,
    /// For `OU` and `DC`: which one, counted from 1 at the highest level. 1 for all others.
    pub ordinal: usize,
    /// What the pattern wants, as a pattern prints it.
    pub wanted: String,
    /// What the certificate has.
    pub kind: MismatchKind,
}

/// What a certificate has in place of what a pattern wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MismatchKind {
    /// No such attribute.
    Missing,
    /// Another value, as logs print it (escaped).
    Different(String),
    /// A value that could not be decoded.
    Undecodable,
    /// A value with control or invisible characters, as logs print it (escaped).
    Unprintable(String),
    /// The attribute more than once, where only one is allowed; or units that share one set and so have no order.
    Ambiguous(usize),
}

impl PeerMismatch {
    /// `MQRC_SSL_PEER_NAME_MISMATCH` (2398).
    #[must_use]
    pub fn reason(&self) -> ReasonCode {
        ReasonCode::new(2398)
    }

    /// What was got, in words for a log line.
    #[must_use]
    pub fn got(&self) -> String {
        match &self.kind {
            MismatchKind::Missing => "no such attribute".to_owned(),
            MismatchKind::Different(value) => value.clone(),
            MismatchKind::Undecodable => "a value that cannot be decoded".to_owned(),
            MismatchKind::Unprintable(value) => {
                format!("a value with control or invisible characters: {value}")
            }
            MismatchKind::Ambiguous(count) => format!("{count} of them without an order"),
        }
    }
}

impl fmt::Display for PeerMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.attribute.keyword())?;
        if self.ordinal > 1 {
            write!(f, " number {}", self.ordinal)?;
        }
        write!(
            f,
            " of the certificate does not match: wanted {}, got {}",
            self.wanted,
            self.got()
        )
    }
}

impl core::error::Error for PeerMismatch {}

impl PeerPattern {
    /// How much it says: elements, and those of them without `*`.
    pub(crate) fn rank(&self) -> (usize, usize) {
        let exact =
            |(_, value): &&(DnAttributeType, ValuePattern)| !value.open_start && !value.open_end;
        (
            self.elements.len(),
            self.elements.iter().filter(exact).count(),
        )
    }

    /// Compares it with the subject of a certificate and the certificate's serial number (the bytes of its encoding, big end first).
    ///
    /// # Errors
    /// [`PeerMismatch`] (2398) names the first element of the pattern that does not match.
    pub fn matches(&self, name: &DistinguishedName, serial: &[u8]) -> Result<(), PeerMismatch> {
        let mut units_seen = 0usize;
        let mut components_seen = 0usize;
        for (kind, value) in &self.elements {
            let (ordinal, outcome) = match kind {
                DnAttributeType::SerialNumber => (1, match_serial(value, serial)),
                DnAttributeType::OrganizationalUnit => {
                    units_seen = units_seen.saturating_add(1);
                    (units_seen, match_level(kind, value, name, units_seen))
                }
                DnAttributeType::DomainComponent => {
                    components_seen = components_seen.saturating_add(1);
                    (
                        components_seen,
                        match_level(kind, value, name, components_seen),
                    )
                }
                DnAttributeType::Mail
                | DnAttributeType::UserId
                | DnAttributeType::CommonName
                | DnAttributeType::Title
                | DnAttributeType::Organization
                | DnAttributeType::Street
                | DnAttributeType::Locality
                | DnAttributeType::State
                | DnAttributeType::PostalCode
                | DnAttributeType::Country
                | DnAttributeType::UnstructuredName
                | DnAttributeType::UnstructuredAddress
                | DnAttributeType::DnQualifier
                | DnAttributeType::Other(_) => (1, match_single(kind, value, name)),
            };
            outcome.map_err(|mismatch| PeerMismatch {
                attribute: kind.clone(),
                ordinal,
                wanted: value.to_string(),
                kind: mismatch,
            })?;
        }
        Ok(())
    }
}

impl fmt::Display for PeerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kind, value)) in self.elements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}={value}", kind.keyword())?;
        }
        Ok(())
    }
}

fn match_serial(wanted: &ValuePattern, serial: &[u8]) -> Result<(), MismatchKind> {
    let text = serial_text(serial);
    if text.is_empty() {
        return Err(MismatchKind::Missing);
    }
    if wanted.matches(&text) {
        Ok(())
    } else {
        Err(MismatchKind::Different(text))
    }
}

/// The `ordinal`-th `OU` or `DC`, counted from 1 at the highest level.
fn match_level(
    kind: &DnAttributeType,
    wanted: &ValuePattern,
    name: &DistinguishedName,
    ordinal: usize,
) -> Result<(), MismatchKind> {
    let levels: Vec<&DnAttribute> = name.of_kind(kind).collect();
    // A set has no order, so two levels in one set have none.
    if levels
        .iter()
        .zip(levels.iter().skip(1))
        .any(|(left, right)| left.rdn == right.rdn)
    {
        return Err(MismatchKind::Ambiguous(levels.len()));
    }
    match levels.get(ordinal.saturating_sub(1)) {
        Some(attribute) => match_value(wanted, attribute),
        None => Err(MismatchKind::Missing),
    }
}

/// An attribute that a certificate must have exactly once.
fn match_single(
    kind: &DnAttributeType,
    wanted: &ValuePattern,
    name: &DistinguishedName,
) -> Result<(), MismatchKind> {
    let found: Vec<&DnAttribute> = name.of_kind(kind).collect();
    match found.as_slice() {
        [] => Err(MismatchKind::Missing),
        [only] => match_value(wanted, only),
        [_, _, ..] => Err(MismatchKind::Ambiguous(found.len())),
    }
}

fn match_value(wanted: &ValuePattern, attribute: &DnAttribute) -> Result<(), MismatchKind> {
    let Some(value) = &attribute.value else {
        return Err(MismatchKind::Undecodable);
    };
    if value.chars().any(is_invisible) {
        return Err(MismatchKind::Unprintable(attribute.to_string()));
    }
    if wanted.matches(value) {
        Ok(())
    } else {
        Err(MismatchKind::Different(attribute.to_string()))
    }
}

/// Control characters, and those that format or hide text: what a person who reads a name would not see.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// A certificate's serial number as `SERIALNUMBER` writes it: hex pairs in upper case with colons between, without the leading zero
/// byte that only keeps an encoded number positive.
///
/// Source: IBM MQ, displays of `SSLPEER`.
#[must_use]
pub fn serial_text(serial: &[u8]) -> String {
    let significant = match serial {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    let pairs: Vec<String> = significant
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    pairs.join(":")
}
