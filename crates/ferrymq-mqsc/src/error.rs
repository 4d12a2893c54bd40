//! What is wrong with the text of a command, where, and what was probably meant.

/// A command that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}{}", word_part(word), suggestion_part(suggestion.as_deref()))]
pub struct SyntaxError {
    /// Up to where the command was read, in bytes; on a boundary of characters.
    pub position: usize,
    /// The word that is wrong, shortened; empty if none is.
    pub word: String,
    /// What is wrong.
    pub message: String,
    /// The nearest word that would be right.
    pub suggestion: Option<String>,
}

fn word_part(word: &str) -> String {
    if word.is_empty() {
        String::new()
    } else {
        format!(" near '{word}'")
    }
}

fn suggestion_part(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |s| format!("; did you mean {s}?"))
}

/// Longest word that a message repeats, in characters.
const WORD_MAX: usize = 48;

impl SyntaxError {
    pub(crate) fn at(position: usize, word: &str, message: impl Into<String>) -> Self {
        let clean = |c: char| if c.is_control() { '?' } else { c };
        Self {
            position,
            word: word.chars().take(WORD_MAX).map(clean).collect(),
            message: message.into(),
            suggestion: None,
        }
    }

    /// With the nearest of `candidates`, if one is near.
    pub(crate) fn suggest<'a>(mut self, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        let word = self.word.to_ascii_uppercase();
        self.suggestion = candidates
            .into_iter()
            .map(|c| (strsim::damerau_levenshtein(&word, c), c))
            .filter(|(distance, c)| {
                (1..=2).contains(distance) && distance.saturating_mul(2) < c.len()
            })
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, c)| c.to_owned());
        self
    }

    /// The command up to the error, as `runmqsc` prints it.
    #[must_use]
    pub fn segment<'a>(&self, command: &'a str) -> &'a str {
        command.get(..self.position).unwrap_or(command)
    }
}
