//! Documents at the root: the commands that they show exist, the files that they name exist.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Finding, read};
use crate::COMMANDS;
use crate::run::Outcome;

const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

/// Commands of the binary that are followed by another word.
const GROUPS: &[&str] = &["channel", "cluster", "cert", "log"];

pub(super) fn check(root: &Path) -> Result<Vec<Finding>, Outcome> {
    let mut findings = Vec::new();
    for document in DOCUMENTS {
        let text = read(&root.join(document))?;
        findings.extend(unknown_tasks(document, &text));
        for link in links(&text) {
            if !root.join(link).exists() {
                findings.push(Finding::new(
                    *document,
                    "links",
                    format!("names {link}, which does not exist: mend the link"),
                ));
            }
        }
    }
    Ok(findings)
}

fn unknown_tasks(document: &str, text: &str) -> Vec<Finding> {
    text.match_indices("cargo xtask ")
        .filter_map(|(at, found)| {
            let rest = text.get(at.saturating_add(found.len())..)?;
            let task: String = rest.chars().take_while(char::is_ascii_lowercase).collect();
            let known = task.is_empty() || COMMANDS.iter().any(|(name, _)| *name == task);
            (!known).then(|| {
                Finding::new(
                    document,
                    "commands",
                    format!("shows `cargo xtask {task}`, which does not exist"),
                )
            })
        })
        .collect()
}

/// Relative targets of Markdown links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("](").filter_map(|(at, found)| {
        let rest = text.get(at.saturating_add(found.len())..)?;
        let target = rest.split_once(')')?.0;
        let file = target.split('#').next().unwrap_or_default();
        (!file.is_empty() && !file.contains("://")).then_some(file)
    })
}

/// The `ferrymq` commands in the code blocks of a document, each as its leading words: `["channel", "list"]`.
pub(crate) fn binary_commands(text: &str) -> BTreeSet<Vec<String>> {
    let mut commands = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        let mut words = line.split_whitespace().skip_while(|word| *word == "$");
        if !in_code || words.next() != Some("ferrymq") {
            continue;
        }
        let is_command = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let Some(first) = words.next().filter(is_command) else {
            continue;
        };
        let mut command = vec![first.to_owned()];
        if GROUPS.contains(&first) {
            command.extend(words.next().filter(is_command).map(str::to_owned));
        }
        commands.insert(command);
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_code_blocks() {
        let text = "ferrymq nothing\n```sh\n$ ferrymq put Q 'x'\nferrymq channel list\nferrymq -V\n```\nferrymq no\n";
        let found: Vec<Vec<String>> = binary_commands(text).into_iter().collect();
        assert_eq!(found, vec![vec!["channel", "list"], vec!["put"]]);
    }

    #[test]
    fn a_task_that_does_not_exist_is_reported() {
        assert_eq!(unknown_tasks("README.md", "`cargo xtask test`\n"), vec![]);
        assert_eq!(unknown_tasks("README.md", "`cargo xtask fly`\n").len(), 1);
        assert_eq!(
            unknown_tasks("README.md", "`cargo xtask <command>`\n"),
            vec![]
        );
    }

    #[test]
    fn links_to_the_web_and_inside_the_page_are_left_alone() {
        let text = "[a](docs/a.md) [b](https://x.org/y) [c](#part) [d](b.md#part)";
        assert_eq!(links(text).collect::<Vec<_>>(), vec!["docs/a.md", "b.md"]);
    }
}
