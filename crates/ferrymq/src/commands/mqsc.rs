//! `ferrymq mqsc`: scripts, single commands, a shell.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ferrymq_client::admin_wire::{DisplayedObject, RunMqscResponse};
use ferrymq_mqsc::{Answer, Report, ScriptError, ScriptReader, Statement, parse};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::cli::MqscArgs;
use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::input;
use crate::invocation::{Connected, Invocation, Retry};

/// The name of the queue manager in the report if nobody said it.
const UNNAMED: &str = "(default)";

/// A context with this label makes the shell ask before it destroys.
const PRODUCTION: &str = "prod";

/// The report as JSON.
#[derive(Debug, Serialize)]
struct ReportDocument {
    qmgr: Option<String>,
    commands: Vec<CommandDocument>,
    failed: usize,
    exit: u8,
}

#[derive(Debug, Serialize)]
struct CommandDocument {
    command: String,
    mqcc: u32,
    mqrc: u32,
    reason: Option<&'static str>,
    syntax_error: bool,
    lines: Vec<String>,
    objects: Vec<Map<String, Value>>,
}

/// Where the lines of the script come from.
enum Lines {
    Given(std::vec::IntoIter<String>),
    File(BufReader<File>),
    Stdin(mpsc::Receiver<Result<Vec<u8>, Failure>>),
}

impl Lines {
    async fn next(&mut self) -> Result<Option<String>, Failure> {
        let line = match self {
            Self::Given(lines) => return Ok(lines.next()),
            Self::File(file) => input::next_line(file)?,
            Self::Stdin(lines) => lines.recv().await.transpose()?,
        };
        // What is not UTF-8 becomes a character that no command allows, and is reported with its line.
        Ok(line.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

pub(crate) async fn run(invocation: &mut Invocation, args: MqscArgs) -> Result<(), Failure> {
    if let Some(name) = args.queue_manager {
        invocation.options.queue_manager = Some(name);
    }
    let is_shell = args.file.is_none() && args.execute.is_empty() && input::is_terminal();
    let lines = match &args.file {
        Some(path) => Lines::File(open(path).map_err(could_not_run)?),
        None if !args.execute.is_empty() => Lines::Given(args.execute.into_iter()),
        None => Lines::Stdin(input::lines()),
    };
    let check_only = invocation.options.verbose && !is_shell;
    let connected = if check_only {
        None
    } else {
        // A missing context or a wrong address is a usage error as for every command.
        match invocation.connect(Retry::Yes, TIMEOUT_DEFAULT).await {
            Ok(connected) => Some(connected),
            Err(failure @ Failure::Usage(_)) => return Err(failure),
            Err(failure) => return Err(could_not_run(failure)),
        }
    };
    let mut script = Script {
        reader: ScriptReader::new(),
        report: Report::new(&name(invocation, connected.as_ref())),
        connected,
        commands: Vec::new(),
        ended: false,
        asks: is_shell,
    };
    if is_shell {
        shell(invocation, &mut script, lines).await
    } else {
        whole(invocation, &mut script, lines).await
    }
}

fn could_not_run(failure: Failure) -> Failure {
    Failure::ScriptNotRun(Box::new(failure))
}

fn name(invocation: &Invocation, connected: Option<&Connected>) -> String {
    let said = connected
        .and_then(Connected::queue_manager_if_said)
        .map(str::to_owned);
    said.or_else(|| {
        invocation
            .options
            .queue_manager
            .as_ref()
            .map(ToString::to_string)
    })
    .unwrap_or_else(|| UNNAMED.to_owned())
}

fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    File::open(path)
        .map(BufReader::new)
        .map_err(|error| Failure::Usage(format!("open {}: {error}", path.display())))
}

struct Script {
    reader: ScriptReader,
    report: Report,
    /// None if commands are checked and not run.
    connected: Option<Connected>,
    commands: Vec<CommandDocument>,
    /// `END` was read.
    ended: bool,
    /// Whether a person is there to be asked.
    asks: bool,
}

/// Runs a script and prints its report.
async fn whole(
    invocation: &mut Invocation,
    script: &mut Script,
    mut lines: Lines,
) -> Result<(), Failure> {
    let is_text = invocation.output.is_text();
    let only_failures = invocation.options.quiet;
    if only_failures {
        script.report.take();
    }
    while !script.ended {
        let Some(line) = lines.next().await? else {
            break;
        };
        let fed = script.reader.feed(&line);
        script.report.echo(fed.number, &line);
        let nothing_ended = fed.commands.is_empty();
        for command in fed.commands {
            let done = script
                .perform(invocation, command)
                .await
                .map_err(|failure| {
                    if script.commands.is_empty() {
                        could_not_run(failure)
                    } else {
                        failure
                    }
                })?;
            if only_failures && done {
                script.report.take();
            }
            if script.ended {
                break;
            }
        }
        // With -q an echo waits for its command to fail.
        if only_failures && nothing_ended && !script.reader.is_continued() {
            script.report.take();
        }
        if is_text && !(only_failures && script.reader.is_continued()) {
            print(invocation, &mut script.report)?;
        }
    }
    if let Err(error) = script.reader.finish() {
        script.answer(String::new(), &Answer::script(error));
    }
    if !only_failures {
        script.report.closing();
    }
    if is_text {
        print(invocation, &mut script.report)?;
    } else {
        let commands = core::mem::take(&mut script.commands);
        invocation.output.document(&ReportDocument {
            qmgr: invocation
                .options
                .queue_manager
                .as_ref()
                .map(ToString::to_string),
            failed: commands.iter().filter(|c| c.mqcc != 0).count(),
            commands,
            exit: script.report.return_code(),
        })?;
    }
    match script.report.return_code() {
        0 => Ok(()),
        _ => Err(Failure::SomeCommandsFailed),
    }
}

fn print(invocation: &mut Invocation, report: &mut Report) -> Result<(), Failure> {
    for line in report.take() {
        invocation.output.line(&line)?;
    }
    Ok(())
}

/// Reads commands from a person until `END` or the end of the input.
async fn shell(
    invocation: &mut Invocation,
    script: &mut Script,
    mut lines: Lines,
) -> Result<(), Failure> {
    print(invocation, &mut script.report)?;
    let prompt = format!("{}> ", name(invocation, script.connected.as_ref()));
    let is_production = script
        .connected
        .as_ref()
        .is_some_and(|c| c.destination.label.as_deref() == Some(PRODUCTION));
    while !script.ended {
        invocation.output.flush()?;
        let continued = format!("{:>width$}", "> ", width = prompt.len());
        invocation.output.ask(if script.reader.is_continued() {
            &continued
        } else {
            &prompt
        });
        let Some(line) = lines.next().await? else {
            break;
        };
        for command in script.reader.feed(&line).commands {
            let destroys = command.as_deref().is_ok_and(destroys);
            if is_production && destroys && script.asks && !invocation.options.yes {
                invocation
                    .output
                    .ask("This is production. Type yes to go on: ");
                if lines
                    .next()
                    .await?
                    .is_none_or(|answer| answer.trim() != "yes")
                {
                    continue;
                }
            }
            script.perform(invocation, command).await?;
            print(invocation, &mut script.report)?;
            if script.ended {
                break;
            }
        }
    }
    Ok(())
}

/// Whether a command removes messages, or settles what only a person can judge.
fn destroys(command: &str) -> bool {
    let mut words = command
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty());
    let verb = words.next().unwrap_or_default().to_ascii_uppercase();
    match verb.as_str() {
        "CLEAR" | "RESET" | "RESOLVE" => true,
        "DELETE" => words.any(|word| word.eq_ignore_ascii_case("PURGE")),
        _ => false,
    }
}

impl Script {
    /// Runs, or checks, one command. Returns whether it was done.
    async fn perform(
        &mut self,
        invocation: &mut Invocation,
        command: Result<String, ScriptError>,
    ) -> Result<bool, Failure> {
        let command = match command {
            Ok(command) => command,
            Err(error) => {
                self.answer(String::new(), &Answer::script(error));
                return Ok(false);
            }
        };
        match parse(&command) {
            Ok(Statement::End) => {
                self.ended = true;
                return Ok(true);
            }
            Err(error) if self.connected.is_none() => {
                let answer = Answer::syntax(&command, &error);
                self.answer(command, &answer);
                return Ok(false);
            }
            // What is valid is for the queue manager to say.
            Ok(_) | Err(_) => {}
        }
        let Some(connected) = &self.connected else {
            self.keep(command, &RunMqscResponse::default());
            return Ok(true);
        };
        let client = match invocation.deadline() {
            Some(_) => connected.client.clone(),
            None if invocation.options.timeout.is_some() => connected.client.clone(),
            None => connected.client.clone().with_timeout(Some(TIMEOUT_DEFAULT)),
        };
        let response = client
            .admin()
            .run_mqsc(&connected.queue_manager(), &command)
            .await?;
        let done = response.reason == 0 && !response.syntax_error;
        self.keep(command, &response);
        Ok(done)
    }

    fn answer(&mut self, command: String, answer: &Answer) {
        let response = RunMqscResponse {
            lines: answer.lines.clone(),
            completion_code: if answer.is_done() { 0 } else { 2 },
            reason: answer.reason.get(),
            syntax_error: answer.syntax_error,
            objects: Vec::new(),
        };
        self.keep(command, &response);
    }

    fn keep(&mut self, command: String, response: &RunMqscResponse) {
        let failed = response.reason != 0 || response.completion_code == 2;
        self.report
            .lines(&response.lines, response.syntax_error, failed);
        if self.asks {
            return;
        }
        self.commands.push(CommandDocument {
            command,
            mqcc: response.completion_code,
            mqrc: response.reason,
            reason: (response.reason != 0)
                .then(|| ferrymq_types::ReasonCode::new(response.reason).name())
                .flatten(),
            syntax_error: response.syntax_error,
            lines: response.lines.clone(),
            objects: response.objects.iter().map(object).collect(),
        });
    }
}

/// A displayed object with its keywords in lower case. A word that stands alone is true.
fn object(object: &DisplayedObject) -> Map<String, Value> {
    let attribute = |a: &ferrymq_client::admin_wire::Attribute| {
        let value = match &a.value {
            None => Value::Bool(true),
            Some(text) => match text.parse::<i64>() {
                Ok(number) if a.number => Value::from(number),
                Ok(_) | Err(_) => Value::from(text.trim_end()),
            },
        };
        (a.keyword.to_ascii_lowercase(), value)
    };
    object.attributes.iter().map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use ferrymq_client::admin_wire::Attribute;

    use super::*;

    #[test]
    fn commands_that_destroy_are_known() {
        for command in [
            "CLEAR QLOCAL(A)",
            "clear ql(A)",
            " RESET CHANNEL(X)",
            "RESOLVE CHANNEL(X) ACTION(COMMIT)",
            "DELETE QLOCAL(A) PURGE",
        ] {
            assert!(destroys(command), "{command}");
        }
        for command in [
            "DELETE QLOCAL(A)",
            "DISPLAY QLOCAL(CLEAR)",
            "",
            "ALTER QMGR DESCR('PURGE')",
        ] {
            assert!(!destroys(command), "{command}");
        }
    }

    #[test]
    fn displayed_attributes_keep_their_kind() {
        let attribute = |keyword: &str, value: Option<&str>, number| Attribute {
            keyword: keyword.to_owned(),
            value: value.map(str::to_owned),
            number,
        };
        let displayed = DisplayedObject {
            heading: "AMQ8409I: Display Queue details.".into(),
            attributes: vec![
                attribute("QUEUE", Some("1"), false),
                attribute("CURDEPTH", Some("1"), true),
                attribute("SHARE", None, false),
                attribute("DESCR", Some(" "), false),
            ],
        };
        let json = Value::Object(object(&displayed));
        assert_eq!(json["queue"], "1");
        assert_eq!(json["curdepth"], 1);
        assert_eq!(json["share"], true);
        assert_eq!(json["descr"], "");
    }
}
