//! From the text of SSLPEER to a pattern. What does not mean one clear thing is refused when it is defined.

use core::fmt;

use ferrymq_types::{DistinguishedName, DnAttribute, DnAttributeType, ReasonCode};

use crate::pattern::{PeerPattern, ValuePattern, is_invisible};

/// The longest pattern, in characters.
///
/// Source: IBM MQ, SSLPEER.
pub const PATTERN_LENGTH_MAX: usize = 1024;

/// Why a text is not a peer pattern. `MQRCCF_SSL_PEER_NAME_ERROR` (4093).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// Where, in characters, counted from 1.
    pub position: usize,
    /// What is wrong there.
    pub kind: PatternErrorKind,
}

/// What is wrong with the text of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternErrorKind {
    /// Nothing but blanks.
    Empty,
    /// More than [`PATTERN_LENGTH_MAX`] characters.
    TooLong,
    /// An attribute type was expected: nothing is there, or a second separator.
    MissingType,
    /// Not an attribute type that a pattern can name; types are written in upper case.
    UnknownType(String),
    /// No `=` directly after the type.
    MissingEquals,
    /// An attribute that a name may have only once is in the pattern twice.
    Repeated(&'static str),
    /// A value without characters.
    EmptyValue,
    /// A quote that is never closed.
    OpenQuote,
    /// A quote inside a value that does not start with one.
    StrayQuote,
    /// Something other than a separator after a closing quote.
    AfterQuote,
    /// A backslash before something that it cannot escape, or at the end.
    BadEscape,
    /// Hex pairs that are not UTF-8 together.
    NotUtf8,
    /// A control or invisible character: no certificate that holds one matches.
    Invisible,
    /// `+` before another type: a pattern has no sets; write a comma, or `\+` if the plus is part of the value.
    Set,
    /// `SERIALNUMBER` takes hex pairs with colons between, and `*` at an end.
    BadSerial,
}

impl PatternError {
    /// `MQRCCF_SSL_PEER_NAME_ERROR` (4093).
    #[must_use]
    pub fn reason(&self) -> ReasonCode {
        ReasonCode::new(4093)
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: ", self.position)?;
        match &self.kind {
            PatternErrorKind::Empty => f.write_str("it is empty"),
            PatternErrorKind::TooLong => {
                write!(f, "longer than {PATTERN_LENGTH_MAX} characters")
            }
            PatternErrorKind::MissingType => f.write_str("an attribute type is missing"),
            PatternErrorKind::UnknownType(name) => write!(
                f,
                "{name:?} is not an attribute type that a pattern can name (types are upper case)"
            ),
            PatternErrorKind::MissingEquals => {
                f.write_str("= is missing directly after the attribute type")
            }
            PatternErrorKind::Repeated(keyword) => {
                write!(f, "{keyword} may be given only once")
            }
            PatternErrorKind::EmptyValue => f.write_str("the value is empty"),
            PatternErrorKind::OpenQuote => f.write_str("the quote is not closed"),
            PatternErrorKind::StrayQuote => {
                f.write_str("a quote inside a value is written \\\"")
            }
            PatternErrorKind::AfterQuote => {
                f.write_str("only a comma or a semicolon may follow a closing quote")
            }
            PatternErrorKind::BadEscape => f.write_str(
                "a backslash goes before one of , ; + = < > # * \" \\ blank, or before two hex digits",
            ),
            PatternErrorKind::NotUtf8 => f.write_str("the hex pairs are not UTF-8"),
            PatternErrorKind::Invisible => {
                f.write_str("control and invisible characters match no certificate")
            }
            PatternErrorKind::Set => f.write_str(
                "+ does not join attributes in a pattern; write a comma, or \\+ if it is part of the value",
            ),
            PatternErrorKind::BadSerial => f.write_str(
                "a serial number is written as hex pairs with colons between, * at either end",
            ),
        }
    }
}

impl core::error::Error for PatternError {}

impl core::str::FromStr for PeerPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl PeerPattern {
    /// Parses the text of a pattern that must be there.
    ///
    /// # Errors
    /// [`PatternError`] (4093) with the position of what is wrong.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        Parser::new(text, false).pattern()
    }

    /// Parses the value of an attribute such as `SSLPEER`, where blank means that names are not checked.
    ///
    /// # Errors
    /// [`PatternError`] (4093) with the position of what is wrong.
    pub fn parse_attribute(text: &str) -> Result<Option<Self>, PatternError> {
        if text.chars().all(|c| c == ' ') {
            return Ok(None);
        }
        Self::parse(text).map(Some)
    }
}

/// Parses a name as it prints and as operators write it, `CN=QM1,OU=Queue Managers,O=FerryMQ`: the most specific attribute first,
/// several `OU` or `DC` from the highest level down, `+` between attributes of one set. `*` is a character like any other.
///
/// The attributes of the result are in the order of an encoding, the highest level first. So a name as it is written here is also a
/// pattern that its certificate matches (unless it has `*` at an end of a value or a set).
///
/// # Errors
/// [`PatternError`] with the position of what is wrong. `SERIALNUMBER` is no attribute of a name.
pub fn parse_distinguished_name(text: &str) -> Result<DistinguishedName, PatternError> {
    Parser::new(text, true).name()
}

/// One character of a value after escapes are taken off.
#[derive(Clone, Copy)]
struct ValueChar {
    c: char,
    /// Written with a backslash or as hex: never a wildcard, and not cut off at the ends.
    literal: bool,
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    /// `+` joins attributes into a set: in names, not in patterns.
    sets: bool,
}

impl Parser {
    fn new(text: &str, sets: bool) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
            sets,
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn advance(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn skip_blanks(&mut self) {
        while self.peek() == Some(' ') {
            self.advance();
        }
    }

    fn error<T>(&self, kind: PatternErrorKind) -> Result<T, PatternError> {
        error_at(self.at, kind)
    }

    fn pattern(mut self) -> Result<PeerPattern, PatternError> {
        if self.chars.len() > PATTERN_LENGTH_MAX {
            return error_at(PATTERN_LENGTH_MAX, PatternErrorKind::TooLong);
        }
        self.skip_blanks();
        if self.peek().is_none() {
            return error_at(0, PatternErrorKind::Empty);
        }
        let mut elements: Vec<(DnAttributeType, ValuePattern)> = Vec::new();
        loop {
            self.skip_blanks();
            let start = self.at;
            let (kind, keyword) = self.attribute_type()?;
            if !kind.is_repeatable() && elements.iter().any(|(seen, _)| *seen == kind) {
                return error_at(start, PatternErrorKind::Repeated(keyword));
            }
            let value_start = self.at;
            let value = split_wildcards(&self.value()?);
            let value = if kind == DnAttributeType::SerialNumber {
                serial_pattern(value, value_start)?
            } else {
                value
            };
            elements.push((kind, value));
            match self.peek() {
                // `value` stops at a separator or at the end only.
                Some(_) => self.advance(),
                None => return Ok(PeerPattern { elements }),
            }
        }
    }

    fn name(mut self) -> Result<DistinguishedName, PatternError> {
        if self.chars.len() > PATTERN_LENGTH_MAX {
            return error_at(PATTERN_LENGTH_MAX, PatternErrorKind::TooLong);
        }
        self.skip_blanks();
        if self.peek().is_none() {
            return error_at(0, PatternErrorKind::Empty);
        }
        let mut rdns: Vec<Vec<(DnAttributeType, String)>> = Vec::new();
        let mut joins = false;
        loop {
            self.skip_blanks();
            let start = self.at;
            let (kind, keyword) = self.attribute_type()?;
            if kind == DnAttributeType::SerialNumber {
                return error_at(start, PatternErrorKind::UnknownType(keyword.to_owned()));
            }
            let seen = rdns.iter().flatten().any(|(seen, _)| *seen == kind);
            if !kind.is_repeatable() && seen {
                return error_at(start, PatternErrorKind::Repeated(keyword));
            }
            let text = self.value()?.iter().map(|value| value.c).collect();
            match rdns.last_mut().filter(|_| joins) {
                Some(set) => set.push((kind, text)),
                None => rdns.push(vec![(kind, text)]),
            }
            // `value` stops at a separator, at a plus that joins, or at the end.
            joins = self.peek() == Some('+');
            if self.peek().is_none() {
                break;
            }
            self.advance();
        }
        DistinguishedName::reverse_for_print(&mut rdns, |rdn| match rdn.as_slice() {
            [(kind, _)] => Some(kind.clone()),
            [] | [_, _, ..] => None,
        });
        let attributes = rdns
            .into_iter()
            .enumerate()
            .flat_map(|(rdn, set)| {
                set.into_iter().map(move |(kind, value)| DnAttribute {
                    kind,
                    value: Some(value),
                    rdn,
                })
            })
            .collect();
        Ok(DistinguishedName { attributes })
    }

    fn attribute_type(&mut self) -> Result<(DnAttributeType, &'static str), PatternError> {
        let start = self.at;
        let mut word = String::new();
        while let Some(c) = self
            .peek()
            .filter(|c| !matches!(c, '=' | ',' | ';' | ' ' | '"' | '\\' | '+'))
        {
            word.push(c);
            self.advance();
        }
        if word.is_empty() {
            return error_at(start, PatternErrorKind::MissingType);
        }
        let Some(kind) = DnAttributeType::from_keyword(&word) else {
            return error_at(start, PatternErrorKind::UnknownType(word));
        };
        if self.peek() != Some('=') {
            return self.error(PatternErrorKind::MissingEquals);
        }
        self.advance();
        let keyword = static_keyword(&kind);
        Ok((kind, keyword))
    }

    /// The value up to the next separator, which is not taken.
    fn value(&mut self) -> Result<Vec<ValueChar>, PatternError> {
        self.skip_blanks();
        let start = self.at;
        let quoted = self.peek() == Some('"');
        let mut value = Vec::new();
        if quoted {
            self.advance();
            loop {
                match self.peek() {
                    None => return error_at(start, PatternErrorKind::OpenQuote),
                    Some('"') => break,
                    Some(c) => self.value_char(c, &mut value)?,
                }
            }
            self.advance();
            self.skip_blanks();
            let set_follows = self.sets && self.peek() == Some('+') && self.starts_attribute();
            if !set_follows && !matches!(self.peek(), None | Some(',' | ';')) {
                return self.error(PatternErrorKind::AfterQuote);
            }
        } else {
            while let Some(c) = self.peek().filter(|c| !matches!(c, ',' | ';')) {
                if c == '"' {
                    return self.error(PatternErrorKind::StrayQuote);
                }
                if c == '+' && self.starts_attribute() {
                    if self.sets {
                        break;
                    }
                    return self.error(PatternErrorKind::Set);
                }
                self.value_char(c, &mut value)?;
            }
            while value
                .last()
                .is_some_and(|last| last.c == ' ' && !last.literal)
            {
                value.pop();
            }
        }
        if value.is_empty() {
            return error_at(start, PatternErrorKind::EmptyValue);
        }
        Ok(value)
    }

    /// Takes one character, or one escape, whose first character is `c`.
    fn value_char(&mut self, c: char, value: &mut Vec<ValueChar>) -> Result<(), PatternError> {
        if c == '\\' {
            return self.escape(value);
        }
        if is_invisible(c) {
            return self.error(PatternErrorKind::Invisible);
        }
        value.push(ValueChar { c, literal: false });
        self.advance();
        Ok(())
    }

    fn escape(&mut self, value: &mut Vec<ValueChar>) -> Result<(), PatternError> {
        let start = self.at;
        // Hex pairs that follow each other are the bytes of one text.
        let mut bytes = Vec::new();
        while self.peek() == Some('\\')
            && let Some(byte) = self.hex_pair(self.at.saturating_add(1))
        {
            bytes.push(byte);
            self.at = self.at.saturating_add(3);
        }
        if !bytes.is_empty() {
            let Ok(text) = core::str::from_utf8(&bytes) else {
                return error_at(start, PatternErrorKind::NotUtf8);
            };
            if text.chars().any(is_invisible) {
                return error_at(start, PatternErrorKind::Invisible);
            }
            value.extend(text.chars().map(|c| ValueChar { c, literal: true }));
            return Ok(());
        }
        self.advance();
        match self.peek() {
            Some(c @ (',' | ';' | '+' | '=' | '<' | '>' | '#' | '*' | '"' | '\\' | ' ')) => {
                value.push(ValueChar { c, literal: true });
                self.advance();
                Ok(())
            }
            Some(_) | None => error_at(start, PatternErrorKind::BadEscape),
        }
    }

    fn hex_pair(&self, at: usize) -> Option<u8> {
        let digit = |index: usize| {
            let digit = self.chars.get(index)?.to_digit(16)?;
            u8::try_from(digit).ok()
        };
        let high = digit(at)?;
        let low = digit(at.checked_add(1)?)?;
        high.checked_mul(16)?.checked_add(low)
    }

    /// Whether a `+` at the current place is followed by `TYPE=`.
    fn starts_attribute(&self) -> bool {
        let rest = self.chars.get(self.at.saturating_add(1)..).unwrap_or(&[]);
        let word: String = rest
            .iter()
            .skip_while(|c| **c == ' ')
            .take_while(|c| c.is_ascii_alphabetic())
            .collect();
        let after = rest
            .iter()
            .skip_while(|c| **c == ' ')
            .find(|c| !c.is_ascii_alphabetic());
        after == Some(&'=') && DnAttributeType::from_keyword(&word.to_ascii_uppercase()).is_some()
    }
}

fn error_at<T>(at: usize, kind: PatternErrorKind) -> Result<T, PatternError> {
    Err(PatternError {
        position: at.saturating_add(1),
        kind,
    })
}

/// The keyword of a type that came from a keyword.
fn static_keyword(kind: &DnAttributeType) -> &'static str {
    match kind {
        DnAttributeType::SerialNumber => "SERIALNUMBER",
        DnAttributeType::Mail => "MAIL (or E)",
        DnAttributeType::UserId => "UID (or USERID)",
        DnAttributeType::CommonName => "CN",
        DnAttributeType::Title => "T",
        DnAttributeType::OrganizationalUnit => "OU",
        DnAttributeType::DomainComponent => "DC",
        DnAttributeType::Organization => "O",
        DnAttributeType::Street => "STREET",
        DnAttributeType::Locality => "L",
        DnAttributeType::State => "ST (or SP, S)",
        DnAttributeType::PostalCode => "PC",
        DnAttributeType::Country => "C",
        DnAttributeType::UnstructuredName => "UNSTRUCTUREDNAME",
        DnAttributeType::UnstructuredAddress => "UNSTRUCTUREDADDRESS",
        DnAttributeType::DnQualifier => "DNQ",
        DnAttributeType::Other(_) => "the attribute",
    }
}

fn split_wildcards(value: &[ValueChar]) -> ValuePattern {
    let is_star = |c: &ValueChar| c.c == '*' && !c.literal;
    let (open_start, rest) = match value {
        [first, rest @ ..] if is_star(first) => (true, rest),
        all => (false, all),
    };
    // A lone `*` is any characters and needs no second one.
    let (open_end, text) = match rest {
        [text @ .., last] if is_star(last) => (true, text),
        [] => (true, rest),
        all => (false, all),
    };
    ValuePattern {
        open_start,
        text: text.iter().map(|c| c.c).collect(),
        open_end,
    }
}

/// Checks a serial number and brings it into the form of [`serial_text`](crate::serial_text).
fn serial_pattern(mut value: ValuePattern, at: usize) -> Result<ValuePattern, PatternError> {
    value.text.make_ascii_uppercase();
    if !value
        .text
        .chars()
        .all(|c| c.is_ascii_hexdigit() || c == ':')
    {
        return error_at(at, PatternErrorKind::BadSerial);
    }
    if !value.open_start && !value.open_end {
        let pairs: Vec<&str> = value.text.split(':').collect();
        if pairs.iter().any(|pair| pair.len() != 2) {
            return error_at(at, PatternErrorKind::BadSerial);
        }
        if pairs.len() > 1 && pairs.first() == Some(&"00") {
            value.text.drain(.."00:".len());
        }
    }
    Ok(value)
}
