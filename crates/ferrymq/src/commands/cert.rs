//! `ferrymq cert`: a small certificate authority.

use std::path::{Path, PathBuf};

use ferrymq_tls::TlsError;
use ferrymq_tls::authority::{
    AUTHORITY_DAYS_DEFAULT, Authority, CertificatePaths, Issued, LEAF_DAYS_DEFAULT, Validity,
    parse_subject,
};
use serde::Serialize;

use crate::cli::{CertCommand, LeafArgs};
use crate::failure::Failure;
use crate::invocation::{Invocation, now};

/// The files of the authority in its directory: `ca.crt`, `ca.key`.
const AUTHORITY_NAME: &str = "ca";

#[derive(Debug, Serialize)]
struct CertificateDocument {
    certificate: PathBuf,
    key: PathBuf,
    subject: String,
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        Self::Usage(format!("{error}{}", cause.unwrap_or_default()))
    }
}

pub(crate) fn run(invocation: &mut Invocation, command: CertCommand) -> Result<(), Failure> {
    let (issued, paths, dn) = match command {
        CertCommand::Ca { dn, dir } => {
            create_directory(&dir)?;
            let validity = Validity::days(now(), AUTHORITY_DAYS_DEFAULT);
            let issued = Authority::create(&parse_subject(&dn)?, validity)?;
            (
                issued,
                CertificatePaths::in_directory(&dir, AUTHORITY_NAME),
                dn,
            )
        }
        CertCommand::Server { leaf, san } => {
            let issued = authority(&leaf)?.issue_server(
                &parse_subject(&leaf.dn)?,
                &san,
                Validity::days(now(), LEAF_DAYS_DEFAULT),
            )?;
            (issued, paths(&leaf, "server"), leaf.dn)
        }
        CertCommand::Client { leaf } => {
            let issued = authority(&leaf)?.issue_client(
                &parse_subject(&leaf.dn)?,
                Validity::days(now(), LEAF_DAYS_DEFAULT),
            )?;
            (issued, paths(&leaf, "client"), leaf.dn)
        }
    };
    write(invocation, &issued, paths, dn)
}

fn create_directory(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::System(format!("create {}: {error}", directory.display())))
}

fn authority(leaf: &LeafArgs) -> Result<Authority, Failure> {
    Ok(Authority::load(&CertificatePaths::in_directory(
        &leaf.dir,
        AUTHORITY_NAME,
    ))?)
}

/// `OUT.crt` and `OUT.key`.
fn paths(leaf: &LeafArgs, name: &str) -> CertificatePaths {
    match &leaf.out {
        None => CertificatePaths::in_directory(&leaf.dir, name),
        Some(out) => {
            let with = |extension: &str| {
                let mut path = out.clone().into_os_string();
                path.push(extension);
                PathBuf::from(path)
            };
            CertificatePaths {
                certificate: with(".crt"),
                key: with(".key"),
            }
        }
    }
}

fn write(
    invocation: &mut Invocation,
    issued: &Issued,
    paths: CertificatePaths,
    subject: String,
) -> Result<(), Failure> {
    if let Some(directory) = paths.certificate.parent() {
        create_directory(directory)?;
    }
    issued.write(&paths)?;
    let CertificatePaths { certificate, key } = paths;
    if invocation.output.is_text() {
        invocation.output.line(&certificate.display().to_string())?;
        invocation.output.line(&key.display().to_string())
    } else {
        invocation.output.document(&CertificateDocument {
            certificate,
            key,
            subject,
        })
    }
}
