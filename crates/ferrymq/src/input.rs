//! What is typed or piped in.

use std::io::{self, BufRead, IsTerminal as _, Read as _};

use ferrymq_types::MESSAGE_LENGTH_MAX;
use tokio::sync::mpsc;

use crate::failure::Failure;

/// Lines that are read ahead.
const LINES_AHEAD: usize = 64;

/// Whether a person types.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Lines of stdin, without their line ends, read by a thread of its own: a terminal has no other way to be waited for and
/// given up.
pub(crate) fn lines() -> mpsc::Receiver<Result<Vec<u8>, Failure>> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut stdin = io::stdin().lock();
        while let Some(line) = next_line(&mut stdin).transpose() {
            let failed = line.is_err();
            if sender.blocking_send(line).is_err() || failed {
                return;
            }
        }
    });
    receiver
}

/// The next line without its line end; `None` at the end.
pub(crate) fn next_line(from: &mut impl BufRead) -> Result<Option<Vec<u8>>, Failure> {
    let mut line = Vec::new();
    let limit = u64::from(MESSAGE_LENGTH_MAX) + 1;
    let read = from.take(limit).read_until(b'\n', &mut line);
    if read.map_err(|error| Failure::System(format!("read input: {error}")))? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 == limit {
        let text = format!("a line of the input is longer than {MESSAGE_LENGTH_MAX} bytes");
        return Err(Failure::Usage(text));
    }
    Ok(Some(line))
}

/// All of stdin.
pub(crate) async fn all() -> Result<Vec<u8>, Failure> {
    let reading = tokio::task::spawn_blocking(|| at_most_one_message("stdin", io::stdin().lock()));
    reading
        .await
        .map_err(|error| Failure::System(format!("read stdin: {error}")))?
}

/// All of a file, or of stdin, as long as it can be one message.
pub(crate) fn at_most_one_message(name: &str, from: impl io::Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    from.take(u64::from(MESSAGE_LENGTH_MAX) + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Usage(format!("read {name}: {error}")))?;
    if bytes.len() as u64 > u64::from(MESSAGE_LENGTH_MAX) {
        let text = format!("{name} is longer than {MESSAGE_LENGTH_MAX} bytes");
        return Err(Failure::Usage(text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_bytes_and_the_last_needs_no_end() {
        let mut input: &[u8] = b"a\r\n\n\xff";
        let mut next = || next_line(&mut input).unwrap();
        assert_eq!(next().as_deref(), Some(&b"a\r"[..]));
        assert_eq!(next().as_deref(), Some(&b""[..]));
        assert_eq!(next().as_deref(), Some(&b"\xff"[..]));
        assert_eq!(next(), None);
    }
}
