//! The value of an attribute of a definition, as commands give it and as it is stored.

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttributeValue {
    /// A number, in the unit of the MQSC attribute.
    Number(u64),
    /// Text as stored, case kept; empty clears the attribute. Names of objects are text too.
    Text(String),
    /// One of a fixed set of words, in upper case.
    Word(String),
    /// A word that stands alone: `TRIGGER` is true, `NOTRIGGER` is false, both under the keyword `TRIGGER`.
    Flag(bool),
    /// A list of texts. No attribute of today takes one.
    List(Vec<String>),
}

impl AttributeValue {
    /// A number.
    #[must_use]
    pub fn number(n: u32) -> Self {
        Self::Number(u64::from(n))
    }

    /// A text.
    #[must_use]
    pub fn text(t: &str) -> Self {
        Self::Text(t.to_owned())
    }

    /// The number, if it is one that fits.
    #[must_use]
    pub fn as_u32(&self) -> Option<u32> {
        self.as_u64().and_then(|n| u32::try_from(n).ok())
    }

    /// The number, if it is one.
    #[must_use]
    pub const fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(n) => Some(*n),
            Self::Text(_) | Self::Word(_) | Self::Flag(_) | Self::List(_) => None,
        }
    }

    /// The text or word, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(t) | Self::Word(t) => Some(t),
            Self::Number(_) | Self::Flag(_) | Self::List(_) => None,
        }
    }

    /// The flag, if it is one.
    #[must_use]
    pub const fn as_flag(&self) -> Option<bool> {
        match self {
            Self::Flag(f) => Some(*f),
            Self::Number(_) | Self::Text(_) | Self::Word(_) | Self::List(_) => None,
        }
    }
}
