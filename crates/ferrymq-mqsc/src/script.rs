//! From lines to commands: continuation, comments, semicolons.
//!
//! Source: IBM MQ, "MQSC input file syntax", "Building command scripts".

/// Characters of a line.
pub const LINE_LENGTH_MAX: usize = 2048;

/// Bytes of a command after its lines are joined. Our own limit; the longest command of IBM MQ's table needs a third of it.
pub const COMMAND_LENGTH_MAX: usize = 65_536;

/// Why a command of a script cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A line is too long.
    #[error("line is longer than {LINE_LENGTH_MAX} characters")]
    LineTooLong,
    /// The command is too long.
    #[error("command is longer than {COMMAND_LENGTH_MAX} bytes")]
    CommandTooLong,
    /// The script ends where another line should follow. The command is not run: what is missing may change its meaning.
    #[error("command is not complete at the end of the input")]
    Incomplete,
}

/// What a line was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FedLine {
    /// The number of the command that starts on this line, counted from 1; none for comments, blank lines and continuations.
    pub number: Option<u64>,
    /// The commands that end on this line. More than one if semicolons separate them.
    pub commands: Vec<Result<String, ScriptError>>,
}

/// Reads a script line by line.
#[derive(Debug, Default)]
pub struct ScriptReader {
    pending: Option<Pending>,
    started: u64,
    lines: u64,
}

#[derive(Debug)]
struct Pending {
    text: String,
    quoted: bool,
    refused: Option<ScriptError>,
    /// The line before ended in `+`: blanks at the start of the next do not count.
    skip_blanks: bool,
}

impl Pending {
    const fn new() -> Self {
        Self {
            text: String::new(),
            quoted: false,
            refused: None,
            skip_blanks: true,
        }
    }

    fn push(&mut self, part: &str) {
        if self.text.len().saturating_add(part.len()) > COMMAND_LENGTH_MAX {
            self.refused.get_or_insert(ScriptError::CommandTooLong);
            self.text.clear();
        }
        if self.refused.is_none() {
            self.text.push_str(part);
        }
    }

    fn finish(self) -> Option<Result<String, ScriptError>> {
        match self.refused {
            Some(error) => Some(Err(error)),
            None if self.text.trim_matches(is_blank).is_empty() => None,
            None => Some(Ok(self.text)),
        }
    }
}

const fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

impl ScriptReader {
    /// Before the first line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a command has begun and goes on in the next line.
    #[must_use]
    pub const fn is_continued(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes the next line, without its line end.
    pub fn feed(&mut self, line: &str) -> FedLine {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line = if self.lines == 0 {
            line.strip_prefix('\u{feff}').unwrap_or(line)
        } else {
            line
        };
        self.lines = self.lines.saturating_add(1);
        let mut fed = FedLine {
            number: None,
            commands: Vec::new(),
        };
        if line.starts_with('*') || line.trim_matches(is_blank).is_empty() {
            return fed;
        }
        let too_long = line.len() > LINE_LENGTH_MAX && line.chars().count() > LINE_LENGTH_MAX;
        let trimmed = line.trim_end_matches(is_blank);
        let (body, goes_on, skip_blanks) = match trimmed.as_bytes().last() {
            Some(b'+') => (trimmed.get(..trimmed.len().saturating_sub(1)), true, true),
            Some(b'-') => (trimmed.get(..trimmed.len().saturating_sub(1)), true, false),
            Some(_) | None => (Some(line), false, false),
        };
        let mut rest = body.unwrap_or_default();
        let mut pending = match self.pending.take() {
            Some(pending) => pending,
            None => {
                self.started = self.started.saturating_add(1);
                fed.number = Some(self.started);
                Pending::new()
            }
        };
        if pending.skip_blanks {
            rest = rest.trim_start_matches(is_blank);
        }
        if too_long {
            pending.refused.get_or_insert(ScriptError::LineTooLong);
        }
        loop {
            let quoted = &mut pending.quoted;
            let end = rest.char_indices().find(|(_, c)| {
                *quoted ^= *c == '\'';
                *c == ';' && !*quoted
            });
            let Some((at, _)) = end else {
                pending.push(rest);
                break;
            };
            pending.push(rest.get(..at).unwrap_or_default());
            fed.commands.extend(pending.finish());
            pending = Pending::new();
            rest = rest.get(at.saturating_add(1)..).unwrap_or_default();
            rest = rest.trim_start_matches(is_blank);
            if rest.is_empty() {
                return fed;
            }
            self.started = self.started.saturating_add(1);
        }
        if goes_on {
            pending.skip_blanks = skip_blanks;
            self.pending = Some(pending);
        } else {
            fed.commands.extend(pending.finish());
        }
        fed
    }

    /// The end of the input.
    ///
    /// # Errors
    /// [`ScriptError::Incomplete`] if a command goes on in a line that is not there.
    pub fn finish(&mut self) -> Result<(), ScriptError> {
        match self.pending.take() {
            Some(_) => Err(ScriptError::Incomplete),
            None => Ok(()),
        }
    }
}
