//! Which queue manager is meant: flags, environment, context files, built-in, in this order.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ferrymq_client::{ClientFiles, RevocationPolicy, ServerUrl};
use ferrymq_types::{ChannelName, QueueManagerName};
use serde::{Deserialize, Serialize};

use crate::cli::GlobalOptions;
use crate::failure::Failure;

/// Where a queue manager is if nothing says otherwise.
const URL_DEFAULT: &str = "http://127.0.0.1:1414";

/// The context that `ferrymq dev` writes, used when none is chosen.
pub(crate) const DEV_CONTEXT: &str = "dev";

/// Characters of a context's name.
const NAME_LENGTH_MAX: usize = 64;

/// A named connection: a file `NAME.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Context {
    /// As `--url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// As `--qmgr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) qmgr: Option<String>,
    /// As `--channel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) channel: Option<String>,
    /// As `--ca`; relative to the file's directory, as the next two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
    /// As `--cert`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cert: Option<PathBuf>,
    /// As `--key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<PathBuf>,
    /// What it is for; `prod` makes the MQSC shell ask before it destroys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
}

/// The value of an environment variable.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Environment variables, as values.
pub(crate) struct Environment {
    lookup: Box<Lookup>,
}

impl core::fmt::Debug for Environment {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}

impl Environment {
    /// That of the process.
    pub(crate) fn of_process() -> Self {
        Self {
            lookup: Box::new(|name| std::env::var(name).ok()),
        }
    }

    /// The value of a variable; an empty one counts as not set.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }

    /// A directory of the XDG specification: as a variable says, or below the home directory.
    fn base_directory(&self, variable: &str, below_home: &str) -> Result<PathBuf, Failure> {
        let absolute = |name: &str| {
            self.get(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        absolute(variable)
            .or_else(|| absolute("HOME").map(|home| home.join(below_home)))
            .map(|base| base.join("ferrymq"))
            .ok_or_else(|| Failure::Usage(format!("neither {variable} nor HOME names a directory")))
    }

    /// Where data is kept if nothing says otherwise.
    pub(crate) fn data_directory(&self) -> Result<PathBuf, Failure> {
        self.base_directory("XDG_DATA_HOME", ".local/share")
    }

    fn context_file(&self, name: &str) -> Result<PathBuf, Failure> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let valid = !name.is_empty()
            && name.len() <= NAME_LENGTH_MAX
            && !name.starts_with('.')
            && name.chars().all(fits);
        if !valid {
            return Err(Failure::Usage(format!(
                "`{name}` cannot be the name of a context"
            )));
        }
        let directory = self
            .base_directory("XDG_CONFIG_HOME", ".config")?
            .join("contexts");
        Ok(directory.join(format!("{name}.toml")))
    }

    /// Writes a context, mode 0600, in place of one that is there.
    pub(crate) fn write_context(&self, name: &str, context: &Context) -> Result<(), Failure> {
        let path = self.context_file(name)?;
        let text = toml::to_string(context).map_err(|e| Failure::System(e.to_string()))?;
        replace_private(&path, text.as_bytes())
            .map_err(|e| Failure::System(format!("write {}: {e}", path.display())))
    }

    /// Removes a context if it still is as `context` says.
    pub(crate) fn remove_context(&self, name: &str, context: &Context) -> Result<(), Failure> {
        let path = self.context_file(name)?;
        if read_context(&path)?.as_ref() == Some(context) {
            fs::remove_file(&path)
                .map_err(|e| Failure::System(format!("remove {}: {e}", path.display())))?;
        }
        Ok(())
    }
}

/// Written beside and moved into place, so that no reader sees half of it.
fn replace_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let fresh = path.with_extension(format!("toml.{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&fresh)?.write_all(bytes)?;
    fs::rename(&fresh, path)
}

/// Reads a context file; `None` if there is none.
fn read_context(path: &Path) -> Result<Option<Context>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Failure::Usage(format!(
                "read context {}: {error}",
                path.display()
            )));
        }
    };
    let mut context: Context = toml::from_str(&text)
        .map_err(|e| Failure::Usage(format!("context {}: {}", path.display(), e.message())))?;
    if let Some(directory) = path.parent() {
        for file in [&mut context.ca, &mut context.cert, &mut context.key]
            .into_iter()
            .flatten()
        {
            *file = directory.join(&file);
        }
    }
    Ok(Some(context))
}

/// The queue manager that is meant, and the way to it.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) server: ServerUrl,
    pub(crate) queue_manager: Option<QueueManagerName>,
    pub(crate) channel: Option<ChannelName>,
    pub(crate) tls: Option<ClientFiles>,
    pub(crate) label: Option<String>,
    /// Whether nobody said where it is, so that a `ferrymq dev` that starts just now may still say so.
    pub(crate) is_guess: bool,
}

/// Finds out which queue manager is meant.
///
/// A context that a flag names goes before the environment; one that the environment names goes after it.
pub(crate) fn resolve(
    options: &GlobalOptions,
    environment: &Environment,
) -> Result<Destination, Failure> {
    let chosen = options
        .context
        .clone()
        .or_else(|| environment.get("FERRYMQ_CONTEXT"));
    let context = match &chosen {
        Some(name) => Some(
            read_context(&environment.context_file(name)?)?
                .ok_or_else(|| Failure::Usage(format!("there is no context `{name}`")))?,
        ),
        None if options.url.is_none() && environment.get("FERRYMQ_URL").is_none() => {
            // Without a home there are no contexts to look for.
            match environment.context_file(DEV_CONTEXT) {
                Ok(path) => read_context(&path)?,
                Err(_) => None,
            }
        }
        None => None,
    };
    let by_flag = options.context.is_some();
    let context = context.unwrap_or_default();
    let pick = |flag: Option<String>, variable: &str, from_context: Option<String>| {
        let environment = || environment.get(variable);
        flag.or_else(|| match (by_flag, from_context) {
            (true, Some(value)) => Some(value),
            (_, from_context) => environment().or(from_context),
        })
    };
    let text = |path: &Option<PathBuf>| path.as_ref().map(|p| p.to_string_lossy().into_owned());
    let url = pick(options.url.clone(), "FERRYMQ_URL", context.url);
    let is_guess =
        chosen.is_none() && options.url.is_none() && environment.get("FERRYMQ_URL").is_none();
    let ca = pick(text(&options.ca), "FERRYMQ_CA", text(&context.ca));
    let cert = pick(text(&options.cert), "FERRYMQ_CERT", text(&context.cert));
    let key = pick(text(&options.key), "FERRYMQ_KEY", text(&context.key));
    let queue_manager = pick(
        options.queue_manager.as_ref().map(ToString::to_string),
        "FERRYMQ_QMGR",
        context.qmgr,
    );
    let channel = options
        .channel
        .as_ref()
        .map(ToString::to_string)
        .or(context.channel);
    Ok(Destination {
        server: url
            .as_deref()
            .unwrap_or(URL_DEFAULT)
            .parse()
            .map_err(usage)?,
        queue_manager: queue_manager
            .map(|name| QueueManagerName::new(&name))
            .transpose()
            .map_err(usage)?,
        channel: channel
            .map(|name| ChannelName::new(&name))
            .transpose()
            .map_err(usage)?,
        tls: tls_files(ca, cert, key)?,
        label: context.label,
        is_guess,
    })
}

fn usage(error: impl core::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

fn tls_files(
    ca: Option<String>,
    cert: Option<String>,
    key: Option<String>,
) -> Result<Option<ClientFiles>, Failure> {
    let certificate_and_key = match (cert, key) {
        (Some(cert), Some(key)) => Some((cert.into(), key.into())),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(usage(
                "a certificate and its key go together: --cert and --key",
            ));
        }
    };
    Ok(ca.map(|ca| ClientFiles {
        certificate_and_key,
        authorities: ca.into(),
        revocation_lists: Vec::new(),
        revocation: RevocationPolicy::default(),
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Home {
        directory: tempfile::TempDir,
    }

    impl Home {
        fn new() -> Self {
            Self {
                directory: tempfile::tempdir().unwrap(),
            }
        }

        fn environment(&self, variables: &[(&str, &str)]) -> Environment {
            let mut all: BTreeMap<String, String> = variables
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect();
            all.insert(
                "HOME".into(),
                self.directory.path().to_str().unwrap().into(),
            );
            Environment {
                lookup: Box::new(move |name| all.get(name).cloned()),
            }
        }

        fn context(&self, name: &str, url: &str) {
            let context = Context {
                url: Some(url.into()),
                qmgr: Some("QM1".into()),
                ..Context::default()
            };
            self.environment(&[]).write_context(name, &context).unwrap();
        }
    }

    fn url(options: &GlobalOptions, environment: &Environment) -> String {
        resolve(options, environment).unwrap().server.to_string()
    }

    #[test]
    fn flag_goes_before_environment_before_context_before_built_in() {
        let home = Home::new();
        home.context("c", "http://127.0.0.1:3");
        let flag = GlobalOptions {
            url: Some("http://127.0.0.1:1".into()),
            ..Default::default()
        };
        let none = GlobalOptions::default();
        let both = home.environment(&[
            ("FERRYMQ_URL", "http://127.0.0.1:2"),
            ("FERRYMQ_CONTEXT", "c"),
        ]);
        assert_eq!(url(&flag, &both), "http://127.0.0.1:1");
        assert_eq!(url(&none, &both), "http://127.0.0.1:2");
        assert_eq!(
            url(&none, &home.environment(&[("FERRYMQ_CONTEXT", "c")])),
            "http://127.0.0.1:3"
        );
        assert_eq!(
            url(&none, &home.environment(&[("FERRYMQ_URL", "")])),
            URL_DEFAULT
        );
        let named = GlobalOptions {
            context: Some("c".into()),
            ..Default::default()
        };
        assert_eq!(url(&named, &both), "http://127.0.0.1:3");
    }

    #[test]
    fn an_unknown_context_is_an_error_and_never_a_fallback() {
        let home = Home::new();
        home.context(DEV_CONTEXT, "http://127.0.0.1:3");
        for name in ["nowhere", "", "../dev", ".dev", "a/b"] {
            let options = GlobalOptions {
                context: Some(name.into()),
                ..Default::default()
            };
            let failure = resolve(&options, &home.environment(&[])).unwrap_err();
            assert_eq!(failure.exit().code(), 2, "{name}");
        }
    }

    #[test]
    fn the_context_of_dev_is_used_when_nothing_else_is_said() {
        let home = Home::new();
        home.context(DEV_CONTEXT, "http://127.0.0.1:3");
        let environment = home.environment(&[]);
        let found = resolve(&GlobalOptions::default(), &environment).unwrap();
        assert_eq!(found.server.to_string(), "http://127.0.0.1:3");
        assert_eq!(found.queue_manager.unwrap().as_str(), "QM1");
        assert!(found.is_guess);
        let said = home.environment(&[("FERRYMQ_URL", "http://127.0.0.1:2")]);
        let found = resolve(&GlobalOptions::default(), &said).unwrap();
        assert!(!found.is_guess && found.queue_manager.is_none());
    }

    #[test]
    fn a_context_is_private_and_removed_only_by_who_wrote_it() {
        let home = Home::new();
        home.context("c", "http://127.0.0.1:3");
        let environment = home.environment(&[]);
        let path = environment.context_file("c").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        environment
            .remove_context("c", &Context::default())
            .unwrap();
        assert!(path.exists());
        let written = read_context(&path).unwrap().unwrap();
        environment.remove_context("c", &written).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn an_unknown_key_and_half_an_identity_are_errors() {
        let home = Home::new();
        let environment = home.environment(&[("FERRYMQ_CERT", "c.pem")]);
        assert_eq!(
            resolve(&GlobalOptions::default(), &environment)
                .unwrap_err()
                .exit()
                .code(),
            2
        );
        home.context("c", "http://127.0.0.1:3");
        let environment = home.environment(&[("FERRYMQ_CONTEXT", "c")]);
        fs::write(environment.context_file("c").unwrap(), "password = 'x'").unwrap();
        let failure = resolve(&GlobalOptions::default(), &environment).unwrap_err();
        assert!(failure.text("x").contains("password"), "{failure:?}");
    }
}
