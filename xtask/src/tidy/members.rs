//! What each crate's folder must hold: the workspace's lints, and for core crates their own bans.

use std::path::Path;

use super::layers::{self, Layer};
use super::metadata::Graph;
use super::{Finding, read};
use crate::run::Outcome;

/// A core crate's `clippy.toml` replaces the root's, so each must name all of these.
const CORE_BANS: &[&str] = &[
    "allow-unwrap-in-tests = true",
    "std::env::set_var",
    "std::env::var",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::thread::sleep",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::fs::File",
    "std::net::TcpStream",
];

/// Lints that a member cannot add to the workspace's list and therefore has in its `lib.rs`.
const CORE_LINTS: &[&str] = &[
    "clippy::wildcard_enum_match_arm",
    "clippy::match_wildcard_for_single_variants",
    "clippy::arithmetic_side_effects",
];

pub(super) fn check(graph: &Graph) -> Result<Vec<Finding>, Outcome> {
    let mut findings = Vec::new();
    for (_, package) in graph.members() {
        let name = package.name.as_str();
        if !takes_workspace_lints(&read(&package.manifest)?) {
            findings.push(Finding::new(
                name,
                "lints",
                "its Cargo.toml lacks `[lints]` with `workspace = true`",
            ));
        }
        if layers::layer(name).is_some_and(Layer::is_core) {
            let folder = package.manifest.parent().unwrap_or(Path::new("."));
            findings.extend(core_bans(name, read(&folder.join("clippy.toml")).ok()));
            findings.extend(core_lints(name, &read(&folder.join("src/lib.rs"))?));
        }
    }
    Ok(findings)
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim);
    lines.any(|line| line == "[lints]")
        && lines
            .take_while(|line| !line.starts_with('['))
            .any(|line| line == "workspace = true")
}

fn core_bans(name: &str, clippy_toml: Option<String>) -> Vec<Finding> {
    let Some(text) = clippy_toml else {
        return vec![Finding::new(
            name,
            "core bans",
            "has no clippy.toml: copy the one of ferrymq-types",
        )];
    };
    CORE_BANS
        .iter()
        .filter(|ban| !text.contains(*ban))
        .map(|ban| Finding::new(name, "core bans", format!("its clippy.toml lacks {ban}")))
        .collect()
}

fn core_lints(name: &str, lib: &str) -> Vec<Finding> {
    CORE_LINTS
        .iter()
        .filter(|lint| !lib.contains(*lint))
        .map(|lint| {
            Finding::new(
                name,
                "core lints",
                format!("its lib.rs does not warn on {lint}"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_lints_are_looked_for_in_their_own_section() {
        assert!(takes_workspace_lints("[lints]\nworkspace = true\n"));
        assert!(!takes_workspace_lints("[package]\nworkspace = true\n"));
        assert!(!takes_workspace_lints(
            "[lints]\n[other]\nworkspace = true\n"
        ));
        assert!(!takes_workspace_lints("[lints]\n"));
    }

    #[test]
    fn a_core_crate_without_its_bans_is_reported() {
        assert_eq!(core_bans("ferrymq-engine", None).len(), 1);
        let all = CORE_BANS.join("\n");
        assert_eq!(core_bans("ferrymq-engine", Some(all.clone())), vec![]);
        let less = all.replace("std::thread::sleep", "");
        let found = core_bans("ferrymq-engine", Some(less));
        assert_eq!(found.len(), 1);
        assert_eq!(
            core_lints("ferrymq-engine", "#![warn(missing_docs)]").len(),
            3
        );
    }
}
