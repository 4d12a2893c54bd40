//! House rules that no compiler knows. Each finding is a line: where, which rule, what to do.

pub(crate) mod documents;
mod layers;
mod members;
mod metadata;
mod sources;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::run::{Outcome, Workspace};

/// One breach of one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Crate or file, with a line where there is one.
    pub(crate) at: String,
    /// The rule's name.
    pub(crate) rule: &'static str,
    /// What is wrong, and what to do.
    pub(crate) advice: String,
}

impl Finding {
    fn new(at: impl Into<String>, rule: &'static str, advice: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            rule,
            advice: advice.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.at, self.rule, self.advice)
    }
}

/// Runs every rule; fails if one of them has a finding.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Outcome> {
    let start = Instant::now();
    let graph = metadata::load(workspace)?;
    let mut findings = layers::check(&graph);
    findings.extend(members::check(&graph)?);
    findings.extend(sources::check(&workspace.root)?);
    findings.extend(documents::check(&workspace.root)?);
    findings.sort();
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    if findings.is_empty() {
        let seconds = start.elapsed().as_secs_f32();
        eprintln!("xtask: tidy, nothing found in {seconds:.1} s");
        return Ok(());
    }
    Err(Outcome::Failed(format!("tidy: {} found", findings.len())))
}

fn read(path: &Path) -> Result<String, Outcome> {
    Ok(fs::read_to_string(path).map_err(|error| format!("read {}: {error}", path.display()))?)
}

/// Every file under `folder` with that extension, `target` folders left out, in order.
fn files_below(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Outcome> {
    let fail = |error| format!("list {}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let path = entry.path();
        if entry.file_type().map_err(fail)?.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                files.extend(files_below(&path, extension)?);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
