//! The dependency graph, read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::run::{Outcome, Workspace};

/// How one package depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// In the built crate.
    Normal,
    /// In its build script.
    Build,
    /// In its tests.
    Dev,
}

/// A package of the graph.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    /// Its name in `Cargo.toml`.
    pub(crate) name: String,
    /// Where its `Cargo.toml` is.
    pub(crate) manifest: PathBuf,
    /// Ids of what it depends on.
    pub(crate) dependencies: BTreeSet<(Kind, String)>,
}

/// Packages by id, and which of them are ours.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Every package, by cargo's package id.
    pub(crate) packages: BTreeMap<String, Package>,
    /// Ids of the workspace's members.
    pub(crate) members: Vec<String>,
}

impl Graph {
    /// The workspace's members.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&String, &Package)> {
        self.members
            .iter()
            .filter_map(|id| self.packages.get_key_value(id))
    }

    /// From the JSON that `cargo metadata --format-version 1` prints.
    pub(crate) fn parse(metadata: &Value) -> Result<Self, String> {
        let list = |value: &Value, key: &str| -> Result<Vec<Value>, String> {
            let found = value.get(key).and_then(Value::as_array).cloned();
            found.ok_or(format!("cargo metadata has no list {key:?}"))
        };
        let text = |value: &Value, key: &str| -> Result<String, String> {
            let found = value.get(key).and_then(Value::as_str).map(str::to_owned);
            found.ok_or(format!("cargo metadata has no text {key:?}"))
        };
        let mut graph = Self::default();
        for package in list(metadata, "packages")? {
            graph.packages.insert(
                text(&package, "id")?,
                Package {
                    name: text(&package, "name")?,
                    manifest: text(&package, "manifest_path")?.into(),
                    dependencies: BTreeSet::new(),
                },
            );
        }
        let resolve = metadata.get("resolve").unwrap_or(&Value::Null);
        for node in list(resolve, "nodes")? {
            let id = text(&node, "id")?;
            let package = graph.packages.get_mut(&id);
            let package = package.ok_or(format!("cargo metadata does not describe {id}"))?;
            for dependency in list(&node, "deps")? {
                let target = text(&dependency, "pkg")?;
                for kind in list(&dependency, "dep_kinds")? {
                    let kind = match kind.get("kind").and_then(Value::as_str) {
                        None => Kind::Normal,
                        Some("build") => Kind::Build,
                        Some("dev") => Kind::Dev,
                        Some(other) => return Err(format!("dependency kind {other:?} is new")),
                    };
                    package.dependencies.insert((kind, target.clone()));
                }
            }
        }
        for member in list(metadata, "workspace_members")? {
            let id = member.as_str().ok_or("a workspace member has no id")?;
            graph.members.push(id.to_owned());
        }
        Ok(graph)
    }
}

/// Asks cargo for the graph on this machine's platform (others need not be downloaded).
pub(crate) fn load(workspace: &Workspace) -> Result<Graph, Outcome> {
    let rustc = workspace.command("rustc").arg("-vV").output();
    let rustc = rustc.map_err(|error| format!("run rustc -vV: {error}"))?;
    let about = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc -vV names no host".to_owned())?;
    let output = workspace
        .cargo(&[
            "metadata",
            "--format-version",
            "1",
            "--filter-platform",
            host,
        ])
        .output()
        .map_err(|error| format!("run cargo metadata: {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Outcome::Failed(format!("cargo metadata: {message}")));
    }
    let value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("read cargo metadata: {error}"))?;
    Ok(Graph::parse(&value)?)
}
