//! Object names: IBM MQ's lengths and characters, checked once, at the edge.

use core::fmt;
use core::str::FromStr;

/// Why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No characters, or blanks alone.
    #[error("name is empty")]
    Empty,
    /// Longer than the kind of object allows.
    #[error("name has {length} characters, {max} are allowed")]
    TooLong {
        /// Characters found.
        length: usize,
        /// Characters allowed.
        max: usize,
    },
    /// A character outside `A-Z a-z 0-9 . / _ %`.
    #[error(
        "character {character:?} at position {position} is not allowed in a name (A-Z a-z 0-9 . / _ %)"
    )]
    Character {
        /// The character.
        character: char,
        /// Its place, counted from 1.
        position: usize,
    },
}

fn check(text: &str, max: usize) -> Result<&str, NameError> {
    let text = text.trim_end_matches(' ');
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    let bad = text
        .chars()
        .enumerate()
        .find(|(_, c)| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '_' | '%')));
    if let Some((index, character)) = bad {
        return Err(NameError::Character {
            character,
            position: index.saturating_add(1),
        });
    }
    if text.len() > max {
        return Err(NameError::TooLong {
            length: text.len(),
            max,
        });
    }
    Ok(text)
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Characters allowed.
            pub const LENGTH_MAX: usize = $max;

            /// Checks `text`; trailing blanks are dropped, as on the wire of IBM MQ.
            ///
            /// # Errors
            /// [`NameError`] if it is empty, too long or has a character that names may not have.
            pub fn new(text: &str) -> Result<Self, NameError> {
                check(text, Self::LENGTH_MAX).map(|t| Self(t.into()))
            }

            /// As text, without padding.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(s: &str) -> Result<Self, NameError> {
                Self::new(s)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

name_type!(
    /// The name of a queue manager: 1 to 48 characters of `A-Z a-z 0-9 . / _ %`. Case counts.
    QueueManagerName,
    48
);
name_type!(
    /// The name of a queue, of any kind: 1 to 48 characters of `A-Z a-z 0-9 . / _ %`. Case counts.
    QueueName,
    48
);
name_type!(
    /// The name of a channel: 1 to 20 characters of `A-Z a-z 0-9 . / _ %`. Case counts.
    ChannelName,
    20
);
name_type!(
    /// The name of a process: 1 to 48 characters of `A-Z a-z 0-9 . / _ %`. Case counts.
    ProcessName,
    48
);
name_type!(
    /// The name of any other object.
    ObjectName,
    48
);

impl QueueManagerName {
    /// The same characters as a queue name: a transmission queue is found by the name of the queue manager that it leads to.
    #[must_use]
    pub fn as_queue_name(&self) -> QueueName {
        QueueName(self.0.clone())
    }
}

impl QueueName {
    /// The same characters as a queue-manager name: a remote definition can stand for a queue manager.
    #[must_use]
    pub fn as_queue_manager_name(&self) -> QueueManagerName {
        QueueManagerName(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_case_and_drop_trailing_blanks() {
        assert_eq!(
            QueueName::new("Orders.In   ").unwrap().as_str(),
            "Orders.In"
        );
        assert_ne!(QueueName::new("a").unwrap(), QueueName::new("A").unwrap());
    }

    #[test]
    fn sec_z8_names_outside_the_alphabet_are_refused() {
        for bad in [
            "",
            "  ",
            " A",
            "A B",
            "../A-",
            "A\n",
            "A'",
            "A(",
            "\u{1b}[0m",
            "ä",
            "A\0",
        ] {
            assert!(QueueName::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(
            ChannelName::new("ABCDEFGHIJKLMNOPQRSTU"),
            Err(NameError::TooLong {
                length: 21,
                max: 20
            })
        );
        assert!(QueueName::new(&"Q".repeat(48)).is_ok());
        assert!(QueueName::new(&"Q".repeat(10_000)).is_err());
    }
}
