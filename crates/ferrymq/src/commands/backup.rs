//! `ferrymq backup`.

use std::path::Path;

use ferrymq_client::admin_wire::CreateBackupResponse;
use ferrymq_qmgr::{BackupError, BackupReport, Manifest, restore_backup, verify_backup};
use serde::Serialize;

use crate::cli::BackupCommand;
use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Invocation, Retry};

#[derive(Debug, Serialize)]
struct BackupDocument<'a> {
    directory: String,
    node: Option<&'a str>,
    begun_ms: Option<u64>,
    stores: Vec<StoreDocument>,
    files: u64,
    bytes: u64,
    /// Where it was restored.
    data_dir: Option<String>,
}

#[derive(Debug, Serialize)]
struct StoreDocument {
    qmgr: String,
    position: u64,
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        let text = error.to_string();
        match error {
            BackupError::Target { .. }
            | BackupError::NoBackup(_)
            | BackupError::OneOfSeveral { .. } => Self::Usage(text),
            BackupError::Manifest { .. }
            | BackupError::Damaged(_)
            | BackupError::Store(_)
            | BackupError::Check(_) => Self::System(text),
        }
    }
}

pub(crate) async fn run(
    invocation: &mut Invocation,
    command: BackupCommand,
) -> Result<(), Failure> {
    match command {
        BackupCommand::Create { directory } => create(invocation, &directory).await,
        BackupCommand::Verify { directory } => {
            let report = verify_backup(&directory)?;
            say(invocation, &directory, &report, None)
        }
        BackupCommand::Restore {
            directory,
            data_dir,
            definitions,
        } => {
            let report = restore_backup(&directory, &data_dir, definitions)?;
            say(invocation, &directory, &report, Some(&data_dir))
        }
    }
}

async fn create(invocation: &mut Invocation, directory: &Path) -> Result<(), Failure> {
    let directory = std::path::absolute(directory)
        .map_err(|error| Failure::Usage(format!("{}: {error}", directory.display())))?;
    let directory = directory.display().to_string();
    let connected = invocation.connect(Retry::No, TIMEOUT_DEFAULT).await?;
    let made = connected.client.admin().create_backup(&directory).await?;
    let CreateBackupResponse {
        stores,
        files,
        bytes,
    } = made;
    let stores: Vec<StoreDocument> = stores
        .into_iter()
        .map(|store| StoreDocument {
            qmgr: store.queue_manager,
            position: store.position,
        })
        .collect();
    let output = &mut invocation.output;
    if !output.is_text() {
        return output.document(&BackupDocument {
            directory,
            node: None,
            begun_ms: None,
            stores,
            files,
            bytes,
            data_dir: None,
        });
    }
    for store in &stores {
        output.line(&format!(
            "{}: everything up to position {}",
            store.qmgr, store.position
        ))?;
    }
    output.line(&format!(
        "{directory}: complete, {files} files, {bytes} bytes"
    ))
}

fn say(
    invocation: &mut Invocation,
    directory: &Path,
    report: &BackupReport,
    data_dir: Option<&Path>,
) -> Result<(), Failure> {
    let manifest: &Manifest = &report.manifest;
    let (files, bytes) = (manifest.files.len() as u64, manifest.bytes());
    let output = &mut invocation.output;
    if !output.is_text() {
        let stores = manifest.stores.iter().map(|store| StoreDocument {
            qmgr: store.qmgr.clone(),
            position: store.position,
        });
        return output.document(&BackupDocument {
            directory: directory.display().to_string(),
            node: Some(&manifest.node),
            begun_ms: Some(manifest.begun_ms),
            stores: stores.collect(),
            files,
            bytes,
            data_dir: data_dir.map(|d| d.display().to_string()),
        });
    }
    output.line(&format!(
        "node {} of cluster {}: {files} files, {bytes} bytes, as in the manifest",
        manifest.node, manifest.cluster
    ))?;
    for store in &report.stores {
        for line in super::store::lines(store) {
            output.line(&line)?;
        }
    }
    match data_dir {
        Some(data_dir) => output.line(&format!("restored to {}", data_dir.display())),
        None => Ok(()),
    }
}
