//! Running cargo and others: one place for the environment of every child, so that nothing is built twice.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Why a command ended early.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// Something that was run or checked failed: exit code 1.
    Failed(String),
}

impl From<String> for Outcome {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

/// The workspace and where it is built.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The folder of the root `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// `CARGO_TARGET_DIR` of every child: outside the clone, so that fresh clones reuse what is built (RocksDB
    /// takes many minutes).
    pub(crate) target: PathBuf,
    environment: Vec<(&'static str, OsString)>,
}

impl Workspace {
    /// The workspace that this xtask was built in.
    pub(crate) fn find() -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().unwrap_or(manifest).to_owned();
        let target = target_dir(
            env::var_os("CARGO_TARGET_DIR"),
            env::var_os("XDG_CACHE_HOME"),
            env::var_os("HOME"),
            &root,
        );
        let mut environment = vec![("CARGO_TARGET_DIR", target.clone().into_os_string())];
        // The compiler's command line is part of what decides whether RocksDB is built again: it is set here only.
        if on_path("ccache").is_some() {
            for (variable, compiler) in [("CC", "gcc"), ("CXX", "g++")] {
                if env::var_os(variable).is_none() && on_path(compiler).is_some() {
                    environment.push((variable, format!("ccache {compiler}").into()));
                }
            }
        }
        Self {
            root,
            target,
            environment,
        }
    }

    /// A command in the workspace's root with the environment that all share.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        for (name, _) in env::vars_os() {
            if set_by_cargo_run(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// `cargo` with `arguments`.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = self.command(cargo);
        command.args(arguments);
        command
    }

    /// Prints, runs and times `command`.
    pub(crate) fn step(&self, command: &mut Command) -> Result<(), Outcome> {
        let shown = self.show(command);
        eprintln!("xtask: $ {shown}");
        let start = Instant::now();
        let status = command
            .status()
            .map_err(|error| format!("run {shown}: {error}"))?;
        let seconds = start.elapsed().as_secs_f32();
        if status.success() {
            eprintln!("xtask: done in {seconds:.1} s");
            return Ok(());
        }
        Err(Outcome::Failed(format!(
            "failed ({status}) after {seconds:.1} s: {shown}"
        )))
    }

    /// The command as somebody could type it.
    fn show(&self, command: &Command) -> String {
        let mut words: Vec<String> = command
            .get_envs()
            .filter_map(|(name, value)| {
                Some(format!("{}={}", name.to_str()?, quote(value?.to_str()?)))
            })
            .collect();
        let program = Path::new(command.get_program()).file_name();
        words.extend(program.map(|name| name.to_string_lossy().into_owned()));
        words.extend(command.get_args().map(|a| quote(&a.to_string_lossy())));
        words.join(" ")
    }
}

fn quote(word: &str) -> String {
    if word.contains(' ') {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}

/// What `cargo run` sets for xtask and must not reach another cargo: build scripts that watch these variables
/// (ring's does) would run again at each change between `cargo xtask` and plain `cargo`.
fn set_by_cargo_run(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_")
        || matches!(
            variable,
            "CARGO_MANIFEST_DIR"
                | "CARGO_MANIFEST_PATH"
                | "CARGO_MANIFEST_LINKS"
                | "CARGO_PRIMARY_PACKAGE"
                | "CARGO_BIN_NAME"
                | "CARGO_CRATE_NAME"
                | "OUT_DIR"
        )
}

fn target_dir(
    given: Option<OsString>,
    cache: Option<OsString>,
    home: Option<OsString>,
    root: &Path,
) -> PathBuf {
    let set = |value: Option<OsString>| value.filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = set(cache).or_else(|| Some(set(home)?.join(".cache")));
    match (set(given), cache) {
        (Some(given), _) => root.join(given),
        (None, Some(cache)) => cache.join("ferrymq/target"),
        (None, None) => root.join("target"),
    }
}

/// The first executable of that name on PATH.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_directory_is_outside_the_clone_unless_given() {
        let root = Path::new("/clone");
        let os = |text: &str| Some(OsString::from(text));
        let check = |given, cache, home, expected: &str| {
            assert_eq!(target_dir(given, cache, home, root), Path::new(expected));
        };
        check(os("/t"), os("/c"), os("/h"), "/t");
        check(os("target"), None, None, "/clone/target");
        check(None, os("/c"), os("/h"), "/c/ferrymq/target");
        check(None, None, os("/h"), "/h/.cache/ferrymq/target");
        check(os(""), os(""), os("/h"), "/h/.cache/ferrymq/target");
        check(None, None, None, "/clone/target");
    }

    #[test]
    fn what_cargo_run_sets_is_not_handed_on() {
        assert!(set_by_cargo_run("CARGO_PKG_VERSION_MAJOR"));
        assert!(set_by_cargo_run("CARGO_MANIFEST_DIR"));
        assert!(!set_by_cargo_run("CARGO_HOME"));
        assert!(!set_by_cargo_run("CARGO_TERM_COLOR"));
        assert!(!set_by_cargo_run("CARGO_TARGET_DIR"));
    }
}
