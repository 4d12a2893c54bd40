//! `ferrymq store check`.

use std::path::Path;

use ferrymq_qmgr::{CheckError, StoreReport, check_stores};
use serde::Serialize;

use crate::failure::Failure;
use crate::invocation::Invocation;

#[derive(Debug, Serialize)]
struct StoreDocument<'a> {
    name: &'a str,
    directory: String,
    epoch: Option<u64>,
    position: Option<u64>,
    checkpoint: Option<u64>,
    segments: usize,
    rows: serde_json::Map<String, serde_json::Value>,
    queues: Vec<QueueDocument<'a>>,
    torn_tail: Option<&'a str>,
    findings: Vec<FindingDocument<'a>>,
    opens: bool,
}

#[derive(Debug, Serialize)]
struct QueueDocument<'a> {
    id: u64,
    queue: Option<&'a str>,
    dynamic: bool,
    closed: bool,
    messages: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct FindingDocument<'a> {
    file: &'a str,
    offset: Option<u64>,
    what: &'a str,
    refuses_open: bool,
}

impl<'a> StoreDocument<'a> {
    fn new(report: &'a StoreReport) -> Self {
        Self {
            name: &report.name,
            directory: report.directory.display().to_string(),
            epoch: report.epoch,
            position: report.position,
            checkpoint: report.checkpoint,
            segments: report.segments,
            rows: report
                .rows
                .iter()
                .map(|(table, rows)| ((*table).to_owned(), (*rows).into()))
                .collect(),
            queues: report
                .queues
                .iter()
                .map(|q| QueueDocument {
                    id: q.id,
                    queue: q.name.as_deref(),
                    dynamic: q.dynamic,
                    closed: q.closed,
                    messages: q.messages,
                    bytes: q.bytes,
                })
                .collect(),
            torn_tail: report.torn_tail.as_deref(),
            findings: report
                .findings
                .iter()
                .map(|f| FindingDocument {
                    file: &f.file,
                    offset: f.offset,
                    what: &f.what,
                    refuses_open: f.refuses_open,
                })
                .collect(),
            opens: !report.refuses_open(),
        }
    }
}

fn number(n: Option<u64>) -> String {
    n.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
}

pub(crate) fn check(invocation: &mut Invocation, directory: &Path) -> Result<(), Failure> {
    let reports = check_stores(directory).map_err(|error| match error {
        CheckError::NoStore(_) => Failure::Usage(error.to_string()),
        CheckError::Store(_) => Failure::System(error.to_string()),
    })?;
    let output = &mut invocation.output;
    if output.is_text() {
        for report in &reports {
            for line in lines(report) {
                output.line(&line)?;
            }
        }
    } else {
        let documents: Vec<StoreDocument<'_>> = reports.iter().map(StoreDocument::new).collect();
        output.document(&documents)?;
    }
    let damaged = reports.iter().filter(|r| r.refuses_open()).count();
    if damaged > 0 {
        return Err(Failure::System(format!(
            "{damaged} of {} stores are damaged: the node refuses to start with them; restore them from a backup, or take their queue managers out of its configuration",
            reports.len()
        )));
    }
    Ok(())
}

pub(crate) fn lines(report: &StoreReport) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {}, epoch {}, position {}, checkpoint at {}, {} segments",
        report.name,
        if report.refuses_open() {
            "DAMAGED"
        } else {
            "ok"
        },
        number(report.epoch),
        number(report.position),
        number(report.checkpoint),
        report.segments,
    )];
    lines.extend(
        report
            .rows
            .iter()
            .map(|(table, rows)| format!("  {rows} rows of {table} at the checkpoint")),
    );
    for queue in &report.queues {
        let name = match &queue.name {
            Some(name) => name.clone(),
            None => format!("without a name, id {}", queue.id),
        };
        let kind = if queue.dynamic {
            "dynamic queue"
        } else {
            "queue"
        };
        let closed = if queue.closed {
            ", whose deletion is under way"
        } else {
            ""
        };
        lines.push(format!(
            "  {kind} {name}{closed}: {} messages, {} bytes",
            queue.messages, queue.bytes
        ));
    }
    if let Some(cut) = &report.torn_tail {
        lines.push(format!(
            "  torn tail, never acknowledged, cut off at the next start: {cut}"
        ));
    }
    for finding in &report.findings {
        let at = finding
            .offset
            .map_or_else(String::new, |offset| format!(" at byte {offset}"));
        let weight = if finding.refuses_open {
            "damage"
        } else {
            "remark"
        };
        lines.push(format!(
            "  {weight}: {}{at}: {}",
            finding.file, finding.what
        ));
    }
    lines
}
