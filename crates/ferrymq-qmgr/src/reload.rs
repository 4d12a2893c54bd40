//! Certificates, keys and revocation lists are read again when their files change; connections stay as they are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ferrymq_tls::TlsReloader;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::channels::with_causes;

/// How often the files are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// When each file was changed; `None` for one that cannot be read at this moment.
type Seen = Vec<(PathBuf, Option<SystemTime>)>;

fn look(reloaders: &[Arc<TlsReloader>]) -> Seen {
    let mut seen = Seen::new();
    for reloader in reloaders {
        let files = reloader.files();
        let fixed = [&files.certificate, &files.key, &files.authorities];
        for path in fixed.into_iter().chain(&files.revocation_lists) {
            let changed = std::fs::metadata(path).and_then(|m| m.modified()).ok();
            seen.push((path.clone(), changed));
        }
    }
    seen
}

/// Watches the files until `shutdown`. A change is taken when two looks agree, so that files that are written one after another
/// come together; what cannot be loaded leaves the old in force, whole.
pub(crate) async fn run(reloaders: Vec<Arc<TlsReloader>>, shutdown: CancellationToken) {
    let mut in_force = look(&reloaders);
    let mut last = in_force.clone();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
        }
        let seen = look(&reloaders);
        let settled = seen == last;
        last.clone_from(&seen);
        if !settled || seen == in_force {
            continue;
        }
        in_force = seen;
        for reloader in &reloaders {
            if let Err(error) = reloader.reload() {
                let text = with_causes(&error);
                error!(
                    id = "FMQ9047E",
                    "changed TLS files are not taken, the old ones stay in force: {text}"
                );
            }
        }
    }
}
