//! `ferrymq backup`.

use std::path::Path;

use ferrymq_client::admin_wire::CreateBackupResponse;
use ferrymq_qmgr::{
    BackupError, BackupReport, Manifest, list_backups, restore_backup, verify_backup,
};
use ferrymq_types::Timestamp;
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

/// A line of `backup list`.
#[derive(Debug, Serialize)]
struct ListedDocument<'a> {
    directory: String,
    node: Option<&'a str>,
    cluster: Option<&'a str>,
    version: Option<&'a str>,
    begun: Option<String>,
    stores: Vec<StoreDocument>,
    files: Option<u64>,
    bytes: Option<u64>,
    /// Why it is no backup that can be restored.
    problem: Option<String>,
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
        BackupCommand::List { directory } => list(invocation, &directory),
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

fn list(invocation: &mut Invocation, directory: &Path) -> Result<(), Failure> {
    let backups = list_backups(directory)?;
    let output = &mut invocation.output;
    for backup in &backups {
        let manifest = backup.manifest.as_ref();
        let known = manifest.ok();
        let document = ListedDocument {
            directory: backup.directory.display().to_string(),
            node: known.map(|m| m.node.as_str()),
            cluster: known.map(|m| m.cluster.as_str()),
            version: known.map(|m| m.version.as_str()),
            begun: known.map(|m| Timestamp::from_millis(m.begun_ms).to_string()),
            stores: known.map(stores_of).unwrap_or_default(),
            files: known.map(|m| m.files.len() as u64),
            bytes: known.map(Manifest::bytes),
            problem: manifest.err().map(ToString::to_string),
        };
        if output.is_text() {
            output.line(&listed_line(&document))?;
        } else {
            output.record(&document)?;
        }
    }
    if backups.is_empty() {
        return Err(Failure::NothingThere(format!(
            "no backup in {}",
            directory.display()
        )));
    }
    Ok(())
}

fn listed_line(backup: &ListedDocument<'_>) -> String {
    if let Some(problem) = &backup.problem {
        return format!("{}: NOT WHOLE: {problem}", backup.directory);
    }
    let stores = backup.stores.iter();
    let stores = stores.map(|s| format!("{} up to position {}", s.qmgr, s.position));
    format!(
        "{}: {}, node {} of cluster {}, {}, {} files, {} bytes",
        backup.directory,
        backup.begun.as_deref().unwrap_or_default(),
        backup.node.unwrap_or_default(),
        backup.cluster.unwrap_or_default(),
        stores.collect::<Vec<_>>().join(", "),
        backup.files.unwrap_or(0),
        backup.bytes.unwrap_or(0),
    )
}

fn stores_of(manifest: &Manifest) -> Vec<StoreDocument> {
    let stores = manifest.stores.iter().map(|store| StoreDocument {
        qmgr: store.qmgr.clone(),
        position: store.position,
    });
    stores.collect()
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
        return output.document(&BackupDocument {
            directory: directory.display().to_string(),
            node: Some(&manifest.node),
            begun_ms: Some(manifest.begun_ms),
            stores: stores_of(manifest),
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
