//! Why a text is not a selector.

use core::fmt;

use ferrymq_types::{PROPERTY_NAME_LENGTH_MAX, ReasonCode};

use crate::SELECTOR_LENGTH_MAX;
use crate::like::LIKE_PART_LENGTH_MAX;
use crate::parse::NESTING_MAX;

/// Why a text is not a selector, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorError {
    /// Where, in characters, counted from 1.
    pub position: usize,
    /// What is wrong there.
    pub kind: SelectorErrorKind,
}

/// What is wrong with the text of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectorErrorKind {
    /// More than [`SELECTOR_LENGTH_MAX`] bytes.
    TooLong,
    /// Something else was expected.
    Unexpected {
        /// What is there, cut short if it is long; `None` at the end of the selector.
        found: Option<String>,
        /// What could be there.
        expected: &'static str,
    },
    /// A character that begins nothing.
    Character(char),
    /// A quote that is never closed.
    OpenQuote,
    /// Double quotes that hold no byte string.
    ByteString,
    /// Not a number: what was expected in it.
    Number(&'static str),
    /// A number that its type cannot hold: 64 bits for exact ones, a finite double for the others.
    NumberTooLarge,
    /// A name that does not end in a letter or digit after its last dot.
    Name,
    /// A name of more than [`PROPERTY_NAME_LENGTH_MAX`] bytes.
    NameTooLong,
    /// Parentheses, signs and NOT nested deeper than [`NESTING_MAX`].
    TooDeep,
    /// The escape character of a pattern before something that needs no escape, or at its end.
    Escape,
    /// More than [`LIKE_PART_LENGTH_MAX`] characters, with `_` among them, between two `%` of a pattern.
    PatternPartTooLong,
    /// No property is named and the condition is not TRUE: no message could be chosen.
    NeverTrue,
}

impl SelectorError {
    /// `MQRC_SELECTION_STRING_ERROR` (2519) for a text that is too long, `MQRC_SELECTOR_ALWAYS_FALSE` (2504) for what could
    /// choose no message, else `MQRC_SELECTOR_SYNTAX_ERROR` (2459).
    #[must_use]
    pub fn reason(&self) -> ReasonCode {
        match self.kind {
            SelectorErrorKind::NeverTrue => ReasonCode::SELECTOR_ALWAYS_FALSE,
            SelectorErrorKind::TooLong => ReasonCode::SELECTION_STRING_ERROR,
            SelectorErrorKind::Unexpected { .. }
            | SelectorErrorKind::Character(_)
            | SelectorErrorKind::OpenQuote
            | SelectorErrorKind::ByteString
            | SelectorErrorKind::Number(_)
            | SelectorErrorKind::NumberTooLarge
            | SelectorErrorKind::Name
            | SelectorErrorKind::NameTooLong
            | SelectorErrorKind::TooDeep
            | SelectorErrorKind::Escape
            | SelectorErrorKind::PatternPartTooLong => ReasonCode::SELECTOR_SYNTAX_ERROR,
        }
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: ", self.position)?;
        match &self.kind {
            SelectorErrorKind::TooLong => write!(f, "longer than {SELECTOR_LENGTH_MAX} bytes"),
            SelectorErrorKind::Unexpected {
                found: Some(found),
                expected,
            } => write!(f, "expected {expected}, found {found}"),
            SelectorErrorKind::Unexpected {
                found: None,
                expected,
            } => write!(f, "expected {expected}, found the end"),
            SelectorErrorKind::Character(character) => {
                write!(f, "{character:?} has no meaning in a selector")
            }
            SelectorErrorKind::OpenQuote => f.write_str("the quote is not closed"),
            SelectorErrorKind::ByteString => f.write_str(
                "double quotes hold a byte string, 0x and pairs of hex digits; a string has single quotes",
            ),
            SelectorErrorKind::Number(expected) => write!(f, "expected {expected} in a number"),
            SelectorErrorKind::NumberTooLarge => f.write_str("the number is too large"),
            SelectorErrorKind::Name => {
                f.write_str("a dot in a property name goes before a letter, _ or $")
            }
            SelectorErrorKind::NameTooLong => write!(
                f,
                "the property name is longer than {PROPERTY_NAME_LENGTH_MAX} bytes"
            ),
            SelectorErrorKind::TooDeep => write!(
                f,
                "parentheses, signs and NOT are nested deeper than {NESTING_MAX}"
            ),
            SelectorErrorKind::Escape => f.write_str(
                "the escape character of a pattern goes before %, _ or itself",
            ),
            SelectorErrorKind::PatternPartTooLong => write!(
                f,
                "a part of the pattern with _ between two % is longer than {LIKE_PART_LENGTH_MAX} characters"
            ),
            SelectorErrorKind::NeverTrue => {
                f.write_str("it names no property and is never TRUE")
            }
        }
    }
}

impl core::error::Error for SelectorError {}
