//! Rules for the text of Rust files.

use std::path::Path;

use super::{Finding, files_below, read};
use crate::run::Outcome;

/// Lines from which a file wants to be two.
const FILE_LINES_MAX: usize = 800;

/// Files that are longer today. Shorten the list, never lengthen it.
const LONG_FILES: &[&str] = &[];

/// Files that call the operating system, with a reason beside each call.
const UNSAFE_FILES: &[&str] = &[
    // An allocator that counts.
    "crates/ferrymq-engine/examples/engine_cost.rs",
];

pub(super) fn check(root: &Path) -> Result<Vec<Finding>, Outcome> {
    let mut findings = Vec::new();
    for folder in ["crates", "tests", "xtask"] {
        for path in files_below(&root.join(folder), "rs")? {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            findings.extend(check_file(&relative.to_string_lossy(), &read(&path)?));
        }
    }
    Ok(findings)
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX && !LONG_FILES.contains(&path) {
        findings.push(Finding::new(
            path,
            "file size",
            format!("has {lines} lines, more than {FILE_LINES_MAX}: find the noun that wants its own file"),
        ));
    }
    for (number, line) in code_only(text).lines().enumerate() {
        let at = format!("{path}:{}", number.saturating_add(1));
        if has_word(line, "unsafe") && !UNSAFE_FILES.contains(&path) {
            findings.push(Finding::new(
                at.clone(),
                "unsafe",
                "is allowed only in the files that xtask/src/tidy/sources.rs lists",
            ));
        }
        if line.replace(' ', "").contains("#[ignore") {
            findings.push(Finding::new(
                at.clone(),
                "no ignored test",
                "mend the test or delete it; slow suites are skipped by an environment variable",
            ));
        }
        for unfinished in ["todo!", "unimplemented!"] {
            if line.contains(unfinished) {
                findings.push(Finding::new(
                    at.clone(),
                    "finished work",
                    format!("{unfinished} must not be committed: write it or leave it out"),
                ));
            }
        }
    }
    findings
}

/// Whether `word` stands in `line` as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|found| found == word)
}

/// The text with comments, strings and characters blanked out and its lines kept.
fn code_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if first == '"' {
            string(rest)
        } else if first == '\'' {
            character(rest)
        } else {
            raw_string(rest).unwrap_or_default()
        };
        if skipped == 0 {
            // A whole identifier at once, so that an `r` at its end does not start a raw string.
            let word = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            let (head, tail) = rest.split_at(word.max(first.len_utf8()));
            out.push_str(head);
            rest = tail;
        } else {
            let (hidden, tail) = rest.split_at(skipped);
            out.extend(hidden.chars().map(|c| if c == '\n' { c } else { ' ' }));
            rest = tail;
        }
    }
    out
}

/// Length of the comment that `text` starts with; comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth: usize = 0;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth = depth.saturating_sub(1);
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Length of the string that `text` starts with, its quotes included.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of the character that `text` starts with; 0 if it is a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            // What is escaped may itself be a quote.
            chars.next();
            chars
                .find(|(_, c)| *c == '\'')
                .map_or(text.len(), |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// Length of the raw string that `text` starts with: `r"…"`, `br#"…"#`, `cr"…"`.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].iter().find(|p| {
        text.strip_prefix(**p)
            .is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let after = text.strip_prefix(prefix)?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after.get(hashes + 1..)?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(prefix.len() + hashes + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<&'static str> {
        check_file("crates/x/src/lib.rs", text)
            .iter()
            .map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn unsafe_code_is_found_and_its_mention_is_not() {
        assert_eq!(rules("fn f() { unsafe { g() } }"), vec!["unsafe"]);
        assert_eq!(
            rules("#![allow(unsafe_code)] // unsafe"),
            Vec::<&str>::new()
        );
        assert_eq!(rules("let a = \"unsafe \\\" unsafe\";"), Vec::<&str>::new());
        assert_eq!(
            rules("let a = r#\"unsafe \" unsafe\"#;"),
            Vec::<&str>::new()
        );
        assert_eq!(rules("/* /* */ unsafe */ fn f() {}"), Vec::<&str>::new());
        assert_eq!(rules("let c = '\"'; unsafe { g(\"\") }"), vec!["unsafe"]);
        assert_eq!(rules("let c = '\\''; unsafe { g() }"), vec!["unsafe"]);
        assert_eq!(
            rules("fn f<'a>(x: &'a str) { unsafe { g() } }"),
            vec!["unsafe"]
        );
        assert_eq!(rules("let letter_r = br\"x\"; unsafe {}"), vec!["unsafe"]);
    }

    #[test]
    fn ignored_tests_and_unfinished_work_are_found_with_their_line() {
        let found = check_file(
            "a.rs",
            "#[test]\n#[ignore = \"slow\"]\nfn f() { todo!() }\n",
        );
        let at: Vec<&str> = found.iter().map(|finding| finding.at.as_str()).collect();
        assert_eq!(at, vec!["a.rs:2", "a.rs:3"]);
        assert_eq!(rules("// todo! one day"), Vec::<&str>::new());
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(rules(&"fn f() {}\n".repeat(801)), vec!["file size"]);
        assert_eq!(rules(&"fn f() {}\n".repeat(800)), Vec::<&str>::new());
    }
}
