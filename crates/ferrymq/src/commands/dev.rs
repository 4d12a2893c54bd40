//! `ferrymq dev`: a queue manager to try things with.

use std::fs::DirBuilder;
use std::path::PathBuf;

use ferrymq_qmgr::dev::{self, DevOptions};
use ferrymq_qmgr::{Ready, logging};
use serde::Serialize;

use crate::cli::DevArgs;
use crate::commands::serve::until_told_to_stop;
use crate::context::{Context, DEV_CONTEXT};
use crate::failure::Failure;
use crate::invocation::{Invocation, fresh_unit_of_work_id};

/// The port if none is asked for.
const PORT_DEFAULT: u16 = 1414;

/// A try-out queue manager that is up, as JSON.
#[derive(Debug, Serialize)]
struct ReadyDocument<'a> {
    qmgr: &'static str,
    address: String,
    url: &'a str,
    data_dir: PathBuf,
    context: &'static str,
}

pub(crate) async fn run(invocation: &mut Invocation, args: DevArgs) -> Result<(), Failure> {
    let data_dir = match args.dir {
        Some(dir) => dir,
        None if args.ephemeral => temporary_directory()?,
        None => invocation.environment.data_directory()?.join("dev"),
    };
    let options = DevOptions {
        data_dir,
        port: args.port.unwrap_or(PORT_DEFAULT),
    };
    let mut log = dev::config(&options).log;
    log.level = Some(
        match (invocation.options.quiet, invocation.options.verbose) {
            (true, _) => "error",
            (false, true) => "debug",
            (false, false) => "warn",
        }
        .to_owned(),
    );
    logging::init(&log, "dev");
    let shutdown = until_told_to_stop()?;
    let told = shutdown.clone();
    let mut context = None;
    let mut not_told = None;
    let on_ready = |ready: Ready| {
        let url = format!("http://{}", ready.mq);
        let written = Context {
            url: Some(url.clone()),
            qmgr: Some(dev::QUEUE_MANAGER.to_owned()),
            ..Context::default()
        };
        let said = invocation
            .environment
            .write_context(DEV_CONTEXT, &written)
            .and_then(|()| say(invocation, &options, &ready, &url));
        context = Some(written);
        if let Err(failure) = said {
            not_told = Some(failure);
            told.cancel();
        }
    };
    let ended = Box::pin(dev::run(&options, shutdown, on_ready)).await;
    let mut result = ended
        .map_err(Failure::from)
        .and(not_told.map_or(Ok(()), Err));
    if let Some(context) = context {
        result = result.and(invocation.environment.remove_context(DEV_CONTEXT, &context));
    }
    if args.ephemeral {
        let removed = std::fs::remove_dir_all(&options.data_dir).map_err(|error| {
            Failure::System(format!("remove {}: {error}", options.data_dir.display()))
        });
        result = result.and(removed);
    }
    result
}

fn say(
    invocation: &mut Invocation,
    options: &DevOptions,
    ready: &Ready,
    url: &str,
) -> Result<(), Failure> {
    let output = &mut invocation.output;
    if output.is_text() {
        output.line(&format!("{} listens on {}", dev::QUEUE_MANAGER, ready.mq))?;
        output.line(&format!("data: {}", options.data_dir.display()))?;
        output.line(&format!("context: {DEV_CONTEXT}, used when none is chosen"))?;
    } else {
        output.document(&ReadyDocument {
            qmgr: dev::QUEUE_MANAGER,
            address: ready.mq.to_string(),
            url,
            data_dir: options.data_dir.clone(),
            context: DEV_CONTEXT,
        })?;
    }
    output.flush()
}

/// A directory that nobody else can look into.
fn temporary_directory() -> Result<PathBuf, Failure> {
    let path = std::env::temp_dir().join(format!("ferrymq-dev-{}", fresh_unit_of_work_id()?));
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(&path)
        .map_err(|error| Failure::System(format!("create {}: {error}", path.display())))?;
    Ok(path)
}
