//! The command line as its users see it: run in a home of its own, and judged by what it prints and how it ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use tempfile::TempDir;

use crate::cluster::binary;

/// A home without contexts, and the binary in it.
#[derive(Debug)]
pub struct Home {
    /// Where it is.
    pub directory: TempDir,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// An empty home.
    ///
    /// # Panics
    /// If there can be none.
    #[must_use]
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("create a temporary directory"),
        }
    }

    /// The binary with these arguments, not yet started.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).env_clear().stdin(Stdio::null());
        command.env("HOME", self.directory.path());
        command.env("TMPDIR", self.directory.path());
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("run ferrymq")
    }

    /// Runs it to its end with `input` on stdin.
    ///
    /// # Panics
    /// If it cannot be started, or does not read.
    #[must_use]
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("run ferrymq");
        child
            .stdin
            .take()
            .expect("stdin is piped")
            .write_all(input)
            .expect("write to ferrymq");
        child.wait_with_output().expect("wait for ferrymq")
    }

    /// A free port is nobody's at this moment; 1 is nobody's at all.
    #[must_use]
    pub const fn url_of_nobody() -> &'static str {
        "http://127.0.0.1:1"
    }
}

/// The exit code.
///
/// # Panics
/// If a signal ended it.
#[must_use]
pub fn code(output: &Output) -> i32 {
    output
        .status
        .code()
        .unwrap_or_else(|| panic!("ended by a signal: {output:?}"))
}

/// Output as text.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// What was printed on stdout and stderr, if it ended with `expected_code`.
///
/// # Panics
/// If it ended in another way.
#[track_caller]
pub fn check(output: &Output, expected_code: i32) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(code(output), expected_code, "stdout: {out}\nstderr: {err}");
    (out, err)
}

/// JSON that was printed.
///
/// # Panics
/// If it is none.
#[must_use]
#[track_caller]
pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// `ferrymq dev` on a free port, ended when this is dropped.
#[derive(Debug)]
pub struct Dev<'a> {
    home: &'a Home,
    child: Child,
    /// Kept open: a `dev` whose words nobody reads would end.
    _stdout: BufReader<ChildStdout>,
    /// Where it listens.
    pub url: String,
}

impl<'a> Dev<'a> {
    /// Starts it, and returns when it is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    #[must_use]
    pub fn start(home: &'a Home) -> Self {
        let mut command = home.command(&["dev", "--ephemeral", "--port", "0"]);
        command.stdout(Stdio::piped());
        let mut child = command.spawn().expect("run ferrymq dev");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        let mut url = String::new();
        // Until the line after which the context is known to be written.
        while !line.starts_with("context: ") {
            line.clear();
            let read = stdout.read_line(&mut line).expect("read what dev says");
            assert_ne!(read, 0, "dev ended: {:?}", child.wait());
            if let Some(address) = line.trim_end().strip_prefix("QM1 listens on ") {
                url = format!("http://{address}");
            }
        }
        assert_ne!(url, "", "dev said no address");
        Self {
            home,
            child,
            _stdout: stdout,
            url,
        }
    }

    /// Runs a command to its end and returns what was printed, if it ended with `expected_code`.
    ///
    /// # Panics
    /// If it ended in another way.
    #[track_caller]
    pub fn check(&self, arguments: &[&str], expected_code: i32) -> (String, String) {
        check(&self.home.run(arguments), expected_code)
    }
}

impl Drop for Dev<'_> {
    fn drop(&mut self) {
        // It may have ended by itself, which the test that needs it has reported.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
