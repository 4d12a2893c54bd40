//! What the machine allows without any server: appending with a sync each, and a round trip over loopback.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::middle;

/// Length of the file that is written round and round.
const FILE_LENGTH: usize = 64 << 20;

/// What a sync covers: a message of 1 KiB fills a block; windows of 64 and 1024 messages.
const BYTES_PER_SYNC: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];

/// How long each limit is measured.
const TIME: Duration = Duration::from_millis(500);

/// A message of the load.
const MESSAGE: usize = 1024;

/// Measures and prints `runs` times each; medians are shown.
pub(super) fn measure(directory: &Path, runs: u64) -> Result<Value, String> {
    let path = directory.join("limits");
    let wrong = |error: io::Error| format!("measure the limits of the machine: {error}");
    let file = prepared(&path).map_err(wrong)?;
    let mut syncs = Vec::new();
    for bytes in BYTES_PER_SYNC {
        let samples: io::Result<Vec<f64>> = (0..runs).map(|_| sync_rate(&file, bytes)).collect();
        let rate = middle(samples.map_err(wrong)?);
        println!(
            "limit: append and fdatasync of {bytes:>7} bytes   {rate:>7.0}/s, {:.0} us each",
            1e6 / rate
        );
        syncs.push(json!({ "bytes": bytes, "rate": rate }));
    }
    let samples: io::Result<Vec<f64>> = (0..runs).map(|_| round_trip_rate()).collect();
    let rate = middle(samples.map_err(wrong)?);
    println!(
        "limit: loopback round trip of {MESSAGE} bytes      {rate:>7.0}/s, {:.0} us each",
        1e6 / rate
    );
    Ok(json!({ "append_and_sync": syncs, "loopback_round_trips": rate }))
}

/// A file that was written before: one that grows costs more for each sync.
fn prepared(path: &Path) -> io::Result<File> {
    let file = File::create(path)?;
    let zeros = vec![0; 1 << 20];
    for at in (0..FILE_LENGTH).step_by(zeros.len()) {
        file.write_all_at(&zeros, at as u64)?;
    }
    file.sync_all()?;
    Ok(file)
}

#[allow(clippy::cast_precision_loss, reason = "a rate, not a sum")]
fn rate_of(mut step: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let began = Instant::now();
    let mut count: u64 = 0;
    while began.elapsed() < TIME {
        step()?;
        count = count.saturating_add(1);
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

fn sync_rate(file: &File, bytes: usize) -> io::Result<f64> {
    let data = vec![1; bytes];
    let mut at = 0;
    rate_of(|| {
        file.write_all_at(&data, at as u64)?;
        at = (at + bytes) % FILE_LENGTH;
        file.sync_data()
    })
}

fn round_trip_rate() -> io::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut here = TcpStream::connect(listener.local_addr()?)?;
    let (mut there, _) = listener.accept()?;
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    let echo = std::thread::spawn(move || {
        let mut data = [0; MESSAGE];
        // Until the other end has what it wants and closes.
        while there.read_exact(&mut data).is_ok() && there.write_all(&data).is_ok() {}
    });
    let mut data = [0; MESSAGE];
    let rate = rate_of(|| {
        here.write_all(&data)?;
        here.read_exact(&mut data)
    });
    drop(here);
    echo.join()
        .map_err(|_| io::Error::other("the echo has panicked"))?;
    rate
}
