//! Message selectors: the text of a condition over message properties, and whether a message satisfies it.
//!
//! The language is the subset of SQL-92 that IBM MQ takes. [`Selector::parse`] refuses what is not in it with the position
//! and what was expected there; [`Selector::matches`] asks a message for its [`Fields`] one by one.
//!
//! **Invariants:** a selector that was accepted always has an answer, in time bounded by its length and that of the values
//! compared, without recursion deeper than [`NESTING_MAX`] allows; a message is chosen only by TRUE, never by unknown.
//!
//! Source: IBM MQ, "Message selector syntax" and "Selection behavior".
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    clippy::arithmetic_side_effects
)]

mod condition;
mod error;
mod evaluate;
mod like;
mod message;
mod parse;
mod print;
#[cfg(test)]
mod tests;
mod token;
mod value;

pub use error::{SelectorError, SelectorErrorKind};
pub use evaluate::Truth;
pub use like::LIKE_PART_LENGTH_MAX;
pub use message::MessageFields;
pub use parse::NESTING_MAX;

pub use value::{Fields, Value};

use condition::Condition;

/// The longest selector, in bytes. `MQ_SELECTOR_LENGTH`. Beyond: 2519.
pub const SELECTOR_LENGTH_MAX: usize = 10_240;

/// A condition over the properties of a message.
///
/// `Display` prints it in one normal form: single blanks, upper-case keywords, decimal numbers, only the parentheses that
/// are needed. What is printed parses to the same selector as long as it keeps within [`SELECTOR_LENGTH_MAX`]; blanks can
/// make it longer than what was parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    condition: Condition,
}

impl Selector {
    /// Parses the text of a selector. Text without a condition is refused: no selector is the caller's `None`.
    ///
    /// # Errors
    /// [`SelectorError`]: 2459 with the position of what is wrong; 2519 if the text is too long; 2504 if no property is named and the condition is not TRUE.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::parse(text).map(|condition| Self { condition })
    }

    /// Whether a message with these properties is chosen: the condition is TRUE, neither FALSE nor unknown.
    #[must_use]
    pub fn matches(&self, fields: &impl Fields) -> bool {
        self.evaluate(fields) == Truth::True
    }

    /// What the condition comes to for a message with these properties.
    #[must_use]
    pub fn evaluate(&self, fields: &impl Fields) -> Truth {
        self.condition.evaluate(fields)
    }
}

impl core::str::FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}
