//! The FerryMQ binary: server, shell, command line.

mod cli;
mod commands;
mod context;
mod failure;
mod input;
mod invocation;
mod message;
mod output;
mod parse;
mod structure;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Format};
use crate::failure::{Exit, Failure};

/// Messages are many small allocations that one thread makes and another frees.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let exit = match Cli::try_parse() {
        Ok(cli) => commands::run(cli),
        Err(error) => not_understood(&error),
    };
    ExitCode::from(exit.code())
}

/// Help and version are answers; anything else is a usage error, in JSON if that was asked for.
fn not_understood(error: &clap::Error) -> Exit {
    let wants_json = {
        let words: Vec<String> = std::env::args().collect();
        let mut pairs = words.iter().zip(words.iter().skip(1));
        let is_json = |word: &str| {
            [Format::Json, Format::Ndjson].iter().any(|format| {
                clap::ValueEnum::to_possible_value(format).is_some_and(|v| v.get_name() == word)
            })
        };
        pairs.any(|(option, value)| matches!(option.as_str(), "-o" | "--output") && is_json(value))
            || words
                .iter()
                .any(|w| w.strip_prefix("--output=").is_some_and(is_json))
            || words
                .iter()
                .any(|w| w.strip_prefix("-o").is_some_and(is_json))
    };
    if error.use_stderr() && wants_json {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let sentence = first.strip_prefix("error: ").unwrap_or(first).to_owned();
        output::to_stderr(&Failure::Usage(sentence).json());
        return Exit::Usage;
    }
    // Where nobody reads, nothing can be said about it either.
    drop(error.print());
    if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Done
    }
}
