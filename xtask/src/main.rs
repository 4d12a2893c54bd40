//! What a developer runs: `cargo xtask <command>`. Depends on next to nothing, so that it is there in seconds.

mod bench;
mod demo;
mod run;
mod setup;
mod suites;
mod tidy;

use std::process::ExitCode;

use run::{Outcome, Workspace};

/// Every command and what it does, in the order in which the usage lists them.
const COMMANDS: &[(&str, &str)] = &[
    (
        "demo",
        "build, run three queue managers and show what they promise [--keep]",
    ),
    (
        "test",
        "tidy, build, then every suite (the build server runs this)",
    ),
    (
        "ci",
        "fmt, clippy, docs, tidy, deny where it is installed, then test",
    ),
    ("tidy", "house rules: layers, lints, file sizes, documents"),
    ("fix", "fmt and clippy --fix: edits files"),
    (
        "sim",
        "the simulator alone: --seeds N [--first S] [--release]",
    ),
    (
        "chaos",
        "three nodes in a network that fails: [--minutes N] [--seed S]",
    ),
    (
        "bench",
        "a table of speeds beside what wire and disk allow: [--runs N] [--shorter N] [--deep N, such as 5000000]",
    ),
    ("setup", "install what the build needs, where it is missing"),
    ("docs", "build the documentation of the workspace"),
];

fn usage() -> String {
    let mut text = String::from("usage: cargo xtask <command>\n\n");
    for (name, what) in COMMANDS {
        text.push_str(&format!("  {name:<6}  {what}\n"));
    }
    text
}

/// Options of the commands; what a command does not know is refused.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    keep: bool,
    release: bool,
    seeds: Option<u64>,
    first: Option<u64>,
    minutes: Option<u64>,
    seed: Option<u64>,
    runs: Option<u64>,
    shorter: Option<u64>,
    deep: Option<u64>,
}

fn parse(command: &str, arguments: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64, String> {
            let text = arguments
                .next()
                .ok_or(format!("{argument} needs a number"))?;
            text.parse()
                .map_err(|_| format!("{argument} needs a number, not {text:?}"))
        };
        match (command, argument.as_str()) {
            ("demo", "--keep") => options.keep = true,
            ("sim", "--release") => options.release = true,
            ("sim", "--seeds") => options.seeds = Some(number()?),
            ("sim", "--first") => options.first = Some(number()?),
            ("chaos", "--minutes") => options.minutes = Some(number()?.max(1)),
            ("chaos", "--seed") => options.seed = Some(number()?),
            ("bench", "--runs") => options.runs = Some(number()?.max(1)),
            ("bench", "--shorter") => options.shorter = Some(number()?.max(1)),
            ("bench", "--deep") => options.deep = Some(number()?.max(100)),
            _ => return Err(format!("{command} does not know {argument}")),
        }
    }
    Ok(options)
}

fn execute(command: &str, options: &Options) -> Result<ExitCode, Outcome> {
    // First, since what it installs decides how everything is built.
    if matches!(
        command,
        "setup" | "demo" | "test" | "ci" | "sim" | "chaos" | "bench"
    ) {
        setup::ensure()?;
    }
    let workspace = Workspace::find();
    match command {
        "setup" => {}
        "demo" => {
            let binary = suites::build_binary(&workspace)?;
            return Ok(demo::run(&binary, options.keep));
        }
        "test" => {
            tidy::check(&workspace)?;
            suites::test(&workspace)?;
        }
        "ci" => {
            suites::static_checks(&workspace)?;
            tidy::check(&workspace)?;
            suites::test(&workspace)?;
        }
        "tidy" => tidy::check(&workspace)?,
        "fix" => suites::fix(&workspace)?,
        "sim" => suites::simulate(&workspace, options.seeds, options.first, options.release)?,
        "chaos" => suites::chaos(
            &workspace,
            options.minutes.unwrap_or(1),
            options.seed.unwrap_or(1),
        )?,
        "bench" => {
            let binary = suites::build_release_binary(&workspace)?;
            let plan = bench::Plan {
                runs: options.runs.unwrap_or(5),
                shorter: options.shorter.unwrap_or(1),
                deep: options.deep.unwrap_or(1_000_000),
            };
            bench::run(&binary, &workspace.target, &plan)?;
        }
        "docs" => suites::docs(&workspace)?,
        _ => return Err(Outcome::Usage(format!("there is no command {command}"))),
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{}", usage());
        return ExitCode::from(2);
    };
    let result = parse(command, rest)
        .map_err(Outcome::Usage)
        .and_then(|options| execute(command, &options));
    match result {
        Ok(code) => code,
        Err(Outcome::Usage(message)) => {
            eprintln!("xtask: {message}\n\n{}", usage());
            ExitCode::from(2)
        }
        Err(Outcome::Failed(message)) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_belong_to_their_command() {
        let sim = parse("sim", &words("--seeds 500 --first 81")).unwrap();
        assert_eq!((sim.seeds, sim.first), (Some(500), Some(81)));
        assert!(parse("demo", &words("--keep")).unwrap().keep);
        assert_eq!(
            parse("test", &words("--keep")),
            Err("test does not know --keep".to_owned())
        );
        assert!(parse("sim", &words("--seeds many")).is_err());
        assert!(parse("sim", &words("--seeds")).is_err());
    }

    #[test]
    fn an_unknown_command_is_a_usage_error() {
        let error = execute("tets", &Options::default()).unwrap_err();
        assert_eq!(error, Outcome::Usage("there is no command tets".to_owned()));
    }
}
