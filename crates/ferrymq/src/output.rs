//! Where answers and remarks go: stdout has the answer and nothing else.

use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write as _};

use serde::Serialize;

use crate::cli::{Color, Format, GlobalOptions};
use crate::failure::Failure;

/// The answer (stdout) and the remarks (stderr) of a command.
#[derive(Debug)]
pub(crate) struct Output {
    out: BufWriter<Stdout>,
    format: Format,
    quiet: bool,
    color: bool,
    terminal: bool,
}

impl Output {
    pub(crate) fn new(options: &GlobalOptions, no_color: bool) -> Self {
        let color = match options.color {
            Color::Auto => io::stderr().is_terminal() && !no_color,
            Color::Always => true,
            Color::Never => false,
        };
        Self {
            out: BufWriter::new(io::stdout()),
            format: options.output,
            quiet: options.quiet,
            color,
            terminal: io::stdout().is_terminal(),
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    /// Whether a person sees the answer.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A line of the answer.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.out, "{text}").map_err(Failure::Output)
    }

    /// Bytes of the answer, as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(Failure::Output)
    }

    /// The whole answer as one JSON document.
    pub(crate) fn document(&mut self, answer: &impl Serialize) -> Result<(), Failure> {
        let text = match self.format {
            Format::Text | Format::Json => serde_json::to_string_pretty(answer),
            Format::Ndjson => serde_json::to_string(answer),
        };
        self.line(&text.map_err(|error| Failure::Output(error.into()))?)
    }

    /// One of several answers, as a line of JSON.
    pub(crate) fn record(&mut self, answer: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(answer);
        self.line(&text.map_err(|error| Failure::Output(error.into()))?)
    }

    /// Rows of a table: in columns under a heading on a terminal, else separated by tabs and without a heading.
    pub(crate) fn table(&mut self, heading: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        for line in table_lines(heading, rows, self.terminal) {
            self.line(&line)?;
        }
        Ok(())
    }

    /// Writes out what is held back.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::Output)
    }

    /// A remark on stderr; none with `-q`.
    pub(crate) fn remark(&self, text: &str) {
        if !self.quiet {
            to_stderr(&format!("ferrymq: {text}"));
        }
    }

    /// Why the command failed.
    pub(crate) fn failure(&self, action: &str, failure: &Failure) {
        if failure.is_silent() {
            return;
        }
        if self.format != Format::Text {
            to_stderr(&failure.json());
            return;
        }
        let text = failure.text(action);
        match text.strip_prefix("ferrymq:") {
            Some(rest) if self.color => to_stderr(&format!("\u{1b}[31mferrymq:\u{1b}[0m{rest}")),
            Some(_) | None => to_stderr(&text),
        }
    }

    /// What asks, on stderr, without a line end.
    pub(crate) fn ask(&self, text: &str) {
        let mut stderr = io::stderr();
        // Where nobody reads, nothing can be said about it either.
        drop(write!(stderr, "{text}").and_then(|()| stderr.flush()));
    }
}

/// A line on stderr. Where nobody reads, nothing can be said about it either.
pub(crate) fn to_stderr(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

fn table_lines(heading: &[&str], rows: &[Vec<String>], terminal: bool) -> Vec<String> {
    if !terminal {
        return rows.iter().map(|row| row.join("\t")).collect();
    }
    let heading: Vec<String> = heading.iter().map(|word| (*word).to_owned()).collect();
    let width = |column: usize| {
        let cells = rows
            .iter()
            .chain([&heading])
            .filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    [&heading].into_iter().chain(rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_columns_on_a_terminal_and_tabs_elsewhere() {
        let row = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let rows = [row("A.TO.B", "RUNNING"), row("X", "")];
        assert_eq!(
            table_lines(&["CHANNEL", "STATUS"], &rows, true),
            ["CHANNEL  STATUS", "A.TO.B   RUNNING", "X"]
        );
        assert_eq!(
            table_lines(&["CHANNEL", "STATUS"], &rows, false),
            ["A.TO.B\tRUNNING", "X\t"]
        );
    }
}
