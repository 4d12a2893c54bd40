//! Building and testing.
//!
//! Every step selects the whole workspace with its tests' dependencies. Cargo unites features over what is
//! selected, and the code generators that RocksDB's build script uses are among them: a step that selected less
//! (`-p ferrymq`) would get another build script and build RocksDB a second time.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{Outcome, Workspace, on_path};
use crate::tidy::documents;

/// Simulation seeds of `cargo xtask test` unless `FERRYMQ_SIM_SEEDS` says otherwise.
const SIMULATION_SEEDS: &str = "200";

/// Selects the binary alone, with the features of the whole workspace and its tests (`--examples` asks for the
/// tests' dependencies and builds next to nothing).
const BUILD_BINARY: &[&str] = &["build", "--workspace", "--bin", "ferrymq", "--examples"];

/// Builds `ferrymq` and answers where it is.
pub(crate) fn build_binary(workspace: &Workspace) -> Result<PathBuf, Outcome> {
    workspace.step(&mut workspace.cargo(BUILD_BINARY))?;
    built(workspace)
}

/// Builds `ferrymq` as it is released and answers where it is.
pub(crate) fn build_release_binary(workspace: &Workspace) -> Result<PathBuf, Outcome> {
    workspace.step(workspace.cargo(BUILD_BINARY).arg("--release"))?;
    built_as(workspace, "release")
}

fn built(workspace: &Workspace) -> Result<PathBuf, Outcome> {
    built_as(workspace, "debug")
}

fn built_as(workspace: &Workspace, profile: &str) -> Result<PathBuf, Outcome> {
    let binary = workspace.target.join(profile).join("ferrymq");
    if binary.is_file() {
        return Ok(binary);
    }
    Err(Outcome::Failed(format!(
        "{} was not built; is another build target configured?",
        binary.display()
    )))
}

/// Builds `ferrymq` with crash points and keeps it beside the target directory's profiles.
///
/// The feature touches our own crates only, so RocksDB and the other dependencies are not built again.
fn build_crash_points(workspace: &Workspace) -> Result<PathBuf, Outcome> {
    let mut command = workspace.cargo(BUILD_BINARY);
    workspace.step(command.args(["--features", "ferrymq/crash-points"]))?;
    let kept = workspace.target.join("ferrymq-crash-points");
    let fresh = workspace.target.join("ferrymq-crash-points.new");
    // Renamed into place: a copy over a binary that still runs would be refused.
    fs::copy(built(workspace)?, &fresh)
        .and_then(|_| fs::rename(&fresh, &kept))
        .map_err(|error| format!("keep {}: {error}", kept.display()))?;
    Ok(kept)
}

/// Unit, conformance, simulation and cluster suites.
pub(crate) fn test(workspace: &Workspace) -> Result<(), Outcome> {
    let crash_points = build_crash_points(workspace)?;
    let binary = build_binary(workspace)?;
    documented_commands_answer(workspace, &binary)?;
    let mut command = workspace.cargo(&["test", "--workspace", "--no-fail-fast"]);
    command.env("FERRYMQ_BIN", &binary);
    command.env("FERRYMQ_CRASH_POINTS_BIN", &crash_points);
    if env::var_os("FERRYMQ_SIM_SEEDS").is_none() {
        command.env("FERRYMQ_SIM_SEEDS", SIMULATION_SEEDS);
    }
    workspace.step(&mut command)
}

/// The simulator alone, over `seeds` seeds from `first` on.
pub(crate) fn simulate(
    workspace: &Workspace,
    seeds: Option<u64>,
    first: Option<u64>,
    release: bool,
) -> Result<(), Outcome> {
    let mut command = workspace.cargo(&["test", "--workspace", "--test", "sim"]);
    if release {
        command.arg("--release");
    }
    match seeds {
        Some(seeds) => command.env("FERRYMQ_SIM_SEEDS", seeds.to_string()),
        None => command.env("FERRYMQ_SIM_SEEDS", SIMULATION_SEEDS),
    };
    if let Some(first) = first {
        command.env("FERRYMQ_SIM_FIRST", first.to_string());
    }
    workspace.step(command.args(["--", "--nocapture"]))
}

/// Three real nodes in a network that fails, for so many minutes.
pub(crate) fn chaos(workspace: &Workspace, minutes: u64, seed: u64) -> Result<(), Outcome> {
    let crash_points = build_crash_points(workspace)?;
    let binary = build_binary(workspace)?;
    let mut command = workspace.cargo(&["test", "--workspace", "--test", "chaos"]);
    command.env("FERRYMQ_BIN", &binary);
    command.env("FERRYMQ_CRASH_POINTS_BIN", &crash_points);
    let seconds = minutes.saturating_mul(60);
    command.env("FERRYMQ_CHAOS_SECONDS", seconds.to_string());
    command.env("FERRYMQ_SEED", seed.to_string());
    workspace.step(command.args(["--", "--nocapture"]))
}

/// Formatting, lints, documentation, dependencies. Edits nothing.
pub(crate) fn static_checks(workspace: &Workspace) -> Result<(), Outcome> {
    workspace.step(&mut workspace.cargo(&["fmt", "--all", "--check"]))?;
    workspace.step(&mut workspace.cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    docs(workspace)?;
    if on_path("cargo-deny").is_some() {
        workspace.step(&mut workspace.cargo(&["deny", "check"]))?;
    } else {
        eprintln!("xtask: cargo-deny is not installed; deny.toml is not checked here");
    }
    Ok(())
}

/// Documentation of the workspace; a warning is an error.
pub(crate) fn docs(workspace: &Workspace) -> Result<(), Outcome> {
    let mut command = workspace.cargo(&["doc", "--workspace", "--no-deps"]);
    workspace.step(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Formats, and applies what clippy can mend by itself.
pub(crate) fn fix(workspace: &Workspace) -> Result<(), Outcome> {
    workspace.step(&mut workspace.cargo(&[
        "clippy",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
        "--workspace",
        "--all-targets",
    ]))?;
    workspace.step(&mut workspace.cargo(&["fmt", "--all"]))
}

/// Every `ferrymq` command that the README shows is one that the binary explains.
fn documented_commands_answer(workspace: &Workspace, binary: &Path) -> Result<(), Outcome> {
    let path = workspace.root.join("README.md");
    let text = fs::read_to_string(&path).map_err(|e| format!("read {}: {e}", path.display()))?;
    for words in documents::binary_commands(&text) {
        let mut command = Command::new(binary);
        command.args(&words).arg("--help");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let status = command
            .status()
            .map_err(|error| format!("run {}: {error}", binary.display()))?;
        if !status.success() {
            return Err(Outcome::Failed(format!(
                "README.md shows `ferrymq {}`, which the binary does not know",
                words.join(" ")
            )));
        }
    }
    Ok(())
}
