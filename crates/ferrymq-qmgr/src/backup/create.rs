//! Making a backup, of a node that runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrymq_store::StoreError;
use tracing::info;

use super::{BackupError, BackupStore, Manifest, manifest, pace};
use crate::node::Node;
use crate::queue_manager;

/// Copies every queue manager of the node, then its definitions, which are then at least as new as what refers to them
/// (rule U15), into a directory that does not exist yet. The node goes on meanwhile.
///
/// # Errors
/// [`BackupError`]. What was copied so far stays, and is no backup without its manifest.
pub(crate) async fn create(node: &Arc<Node>, directory: PathBuf) -> Result<Manifest, BackupError> {
    let node = node.clone();
    let made = tokio::task::spawn_blocking(move || write(&node, &directory)).await;
    made.unwrap_or_else(|error| {
        let cause = format!("the thread that makes the backup ended: {error}");
        Err(StoreError::Failed { cause }.into())
    })
}

fn write(node: &Arc<Node>, directory: &Path) -> Result<Manifest, BackupError> {
    let refused = |what| BackupError::Target {
        path: directory.to_owned(),
        what,
    };
    if !directory.is_absolute() {
        return Err(refused(
            "the node needs an absolute path: it writes the backup on its own machine",
        ));
    }
    match std::fs::create_dir(directory) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(refused(
                "it exists; a backup is made in a directory of its own",
            ));
        }
        Err(e) => return Err(StoreError::io("create", directory.display(), e).into()),
    }
    let begun_ms = node.clock().now().as_millis();
    let mut stores = Vec::new();
    for local in node.all_local() {
        let name = local.handle.name();
        let to = queue_manager::directory(directory, name);
        let position = local.handle.copy_store(&to, &mut pace)?;
        info!(id = "FMQ9061I", qmgr = %name, position = %position, "copied for a backup");
        let inside = to.strip_prefix(directory).unwrap_or(&to);
        stores.push(BackupStore {
            qmgr: name.to_string(),
            directory: inside.display().to_string(),
            position: position.get(),
        });
    }
    node.copy_definitions()
        .copy(&directory.join("metadata"), &mut pace)?;
    let files = manifest::list(directory)?
        .iter()
        .map(|path| {
            manifest::describe(directory, path, &mut |piece| {
                pace(piece.len());
                Ok(())
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let config = node.config();
    let manifest = Manifest {
        format: Manifest::FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        node: config.node.name.clone(),
        node_id: config.node.id,
        cluster: config.cluster.name.clone(),
        members: config.cluster.peers.len().max(1),
        begun_ms,
        stores,
        files,
    };
    sync_directories(directory)?;
    manifest.write(directory)?;
    info!(
        id = "FMQ9062I", directory = %directory.display(), bytes = manifest.bytes(), files = manifest.files.len(),
        "the backup is complete"
    );
    Ok(manifest)
}

/// Makes the names durable; files are by now.
pub(super) fn sync_directories(directory: &Path) -> Result<(), StoreError> {
    let error = |e| StoreError::io("sync", directory.display(), e);
    for entry in std::fs::read_dir(directory).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.is_dir() {
            sync_directories(&path)?;
        } else {
            std::fs::File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(|e| StoreError::io("sync", path.display(), e))?;
        }
    }
    std::fs::File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(error)
}
