//! What can be typed: commands, their arguments, the options that all of them have.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use ferrymq_types::{ChannelName, CorrelationId, MessageId, Property, QueueManagerName, QueueName};

use crate::parse;

/// Carries business messages between applications and between sites: queue managers and their tools.
#[derive(Debug, Parser)]
#[command(
    name = "ferrymq",
    version,
    max_term_width = 100,
    propagate_version = false
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command. Order: flag, environment, context file, built-in.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct GlobalOptions {
    /// Queue manager [env: FERRYMQ_QMGR; default: the context's, or the only one]
    #[arg(short = 'm', long = "qmgr", global = true, value_name = "NAME", value_parser = parse::name::<QueueManagerName>)]
    pub(crate) queue_manager: Option<QueueManagerName>,
    /// Named connection [env: FERRYMQ_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// http://127.0.0.1:1414 (plain text, this machine only) or https://host:port[,host:port...] [env: FERRYMQ_URL]
    #[arg(long, global = true)]
    pub(crate) url: Option<String>,
    /// Certificate authorities to trust, PEM [env: FERRYMQ_CA]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Own certificate, PEM [env: FERRYMQ_CERT]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// Key of the own certificate, PEM, mode 0600 [env: FERRYMQ_KEY]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Server-connection channel
    #[arg(long, global = true, value_name = "NAME", value_parser = parse::name::<ChannelName>)]
    pub(crate) channel: Option<ChannelName>,
    /// How to print the answer, and errors too
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) output: Format,
    /// Print no warnings and no progress
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more on stderr; for mqsc: check the commands and run none
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Time for the whole command, 0 is no limit [default: 30s, beside the time that get waits; mqsc: 30s for each command; dump, log, store, backup: none]
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Confirm what would be asked
    #[arg(long, global = true)]
    pub(crate) yes: bool,
    /// Colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For a person.
    #[default]
    Text,
    /// One JSON document, or one per line where answers come one after another.
    Json,
    /// JSON, one object per line.
    Ndjson,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node
    Serve(ServeArgs),
    /// Try FerryMQ: queue manager QM1 with DEV.* objects, on this machine only
    Dev(DevArgs),
    /// Run MQSC commands: from a file, from -e, from stdin, or in a shell
    Mqsc(MqscArgs),
    /// Put messages and print their ids
    Put(Box<PutArgs>),
    /// Get messages: each is removed once it is written out
    Get(GetArgs),
    /// Show messages and leave them on the queue
    Browse(BrowseArgs),
    /// Put a request, wait for its reply and write it out
    Request(Box<RequestArgs>),
    /// Get requests and put a reply to each, in one unit of work
    Reply(ReplyArgs),
    /// Channels: sugar over MQSC
    #[command(subcommand)]
    Channel(ChannelCommand),
    /// Definitions as code
    #[command(subcommand)]
    Config(ConfigCommand),
    /// The cluster
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Certificates for try-outs and small installations
    #[command(subcommand)]
    Cert(CertCommand),
    /// Explain a reason code: 2053, MQRC_Q_FULL, AMQ8147E
    Rc(RcArgs),
    /// Write every message of every queue as ndjson; reads and changes nothing
    Dump(DumpArgs),
    /// What was recorded
    #[command(subcommand)]
    Log(LogCommand),
    /// What a node has on disk
    #[command(subcommand)]
    Store(StoreCommand),
    /// Copies of a node, made while it runs
    #[command(subcommand)]
    Backup(BackupCommand),
    /// Load: how fast, how late, and whether every message arrives once
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Print the version
    Version,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the definitions of a queue manager as MQSC that makes them: for `ferrymq mqsc` on another one, or to keep
    Export,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Examine the data of a node that does not run: every file, record, row and checksum. Changes nothing; ends with 1 if the
    /// node would refuse to start with it
    Check {
        /// Data directory of the node, or of one queue manager
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Let a running node copy itself: its queue managers, each as of one position, and its definitions
    Create {
        /// Directory that does not exist yet, on the machine of the node
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// The backups in a directory, oldest first, as their manifests say; ends with 4 if there is none
    List {
        /// Directory that has backups in it, or one backup
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Compare a backup with its manifest and examine its stores; ends with 1 if it is damaged
    Verify {
        /// Directory of the backup
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Verify a backup and copy it into an empty directory, for a node to start with
    Restore {
        /// Directory of the backup
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Data directory (data_dir) of the node: empty, or not there yet
        #[arg(value_name = "DATA_DIR")]
        data_dir: PathBuf,
        /// Restore the definitions of a node that is one of several too: only if all of them are restored from backups
        #[arg(long)]
        definitions: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Put messages
    Put(BenchArgs),
    /// Get messages that are there, pushed and settled
    Get(BenchArgs),
    /// Put and get at the same time
    Putget(BenchArgs),
    /// Request and reply: requests to QUEUE, replies to QUEUE.REPLY.1 and so on
    Roundtrip(BenchArgs),
    /// What wire and disk allow: a server that appends what comes to a file, syncs it, and answers; with --cert, --key and --ca over mutual TLS
    Floor(FloorArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct BenchArgs {
    /// Queue, or with --queues the beginning of QUEUE.1, QUEUE.2 and so on; they must exist
    #[arg(long, value_name = "QUEUE", default_value = "BENCH", value_parser = parse::name::<QueueName>)]
    pub(crate) queue: QueueName,
    /// Connections that put, and as many that get
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,
    /// Queues, shared out among the clients
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) queues: u32,
    /// Length of a message in bytes, at least 32: 1024, 64KiB, 1MiB
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = parse::message_length)]
    pub(crate) size: usize,
    /// Messages of each client
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        conflicts_with = "duration"
    )]
    pub(crate) messages: u64,
    /// Put for so long instead
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) duration: Option<Duration>,
    /// Messages a second of all clients together [default: as many as go]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// Messages of a client that may be under way
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) window: u32,
    /// Messages survive a restart; this is the default
    #[arg(long, conflicts_with = "nonpersistent")]
    pub(crate) persistent: bool,
    /// Messages do not survive a restart
    #[arg(long)]
    pub(crate) nonpersistent: bool,
    /// Puts of a unit of work; without it each put is one by itself
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) syncpoint: Option<u32>,
    /// Wait no longer for messages when none came for so long after the last put
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse::duration)]
    pub(crate) idle: Duration,
    /// Check that every message arrives once and whole; ends with 1 if not
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print the result as comma-separated values with a heading
    #[arg(long)]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FloorArgs {
    /// Port on 127.0.0.1; 0 takes a free one and prints it
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// The file that is written
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Length of the file in bytes: it is written round and round
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = parse::byte_count)]
    pub(crate) length: usize,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Configuration of the node
    #[arg(
        long,
        value_name = "FILE",
        env = "FERRYMQ_CONFIG",
        default_value = "/etc/ferrymq/ferrymq.toml"
    )]
    pub(crate) config: PathBuf,
    /// Check the configuration and its files and ports, and stop
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Where to keep the data
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Port on 127.0.0.1; 0 takes a free one [default: 1414]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Keep the data in a temporary directory and remove it at the end
    #[arg(long, conflicts_with = "dir")]
    pub(crate) ephemeral: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MqscArgs {
    /// Queue manager; the same as -m
    #[arg(value_name = "QMGR", value_parser = parse::name::<QueueManagerName>)]
    pub(crate) queue_manager: Option<QueueManagerName>,
    /// Script
    #[arg(short, long, value_name = "FILE", conflicts_with = "execute")]
    pub(crate) file: Option<PathBuf>,
    /// One command; may be repeated
    #[arg(short, long, value_name = "COMMAND", action = ArgAction::Append)]
    pub(crate) execute: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// Queue, or QUEUE@QMGR for a queue of another queue manager
    #[arg(value_parser = parse::QueueAt::parse)]
    pub(crate) queue: parse::QueueAt,
    /// The data: text, @FILE for the bytes of a file, - for those of stdin [default: stdin; on a terminal: a message per line until a blank line]
    #[arg(value_name = "TEXT|@FILE|-")]
    pub(crate) body: Option<String>,
    /// Put the message so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,
    /// Put each line as a message
    #[arg(long, conflicts_with = "count")]
    pub(crate) lines: bool,
    /// Where replies go
    #[arg(long, value_name = "QUEUE[@QMGR]", value_parser = parse::QueueAt::parse)]
    pub(crate) reply_to: Option<parse::QueueAt>,
    #[command(flatten)]
    pub(crate) message: MessageOptions,
}

/// What a message that is put is like.
#[derive(Debug, Args)]
pub(crate) struct MessageOptions {
    /// 0 to 9 [default: as the queue says]
    #[arg(long, value_name = "0-9", value_parser = clap::value_parser!(u32).range(0..=9))]
    pub(crate) priority: Option<u32>,
    /// Discard the message if it is not got within this time [default: never]
    #[arg(long, value_name = "DURATION", value_parser = parse::expiry)]
    pub(crate) expiry: Option<u32>,
    /// Survives a restart [default: as the queue says]
    #[arg(long, conflicts_with = "nonpersistent")]
    pub(crate) persistent: bool,
    /// Does not survive a restart
    #[arg(long)]
    pub(crate) nonpersistent: bool,
    /// Correlation id, up to 48 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = parse::correlation_id)]
    pub(crate) correl: Option<CorrelationId>,
    /// Message id, up to 48 hexadecimal digits [default: generated]
    #[arg(long, value_name = "HEX", value_parser = parse::message_id)]
    pub(crate) msgid: Option<MessageId>,
    /// A message property; more than one may be given. TYPE is string, boolean, int8 to int64, float32, float64, bytes (hex
    /// digits) or null; without one it is string
    #[arg(long = "property", value_name = "NAME=VALUE[:TYPE]", value_parser = parse::property)]
    pub(crate) properties: Vec<Property>,
    /// Format name, up to 8 characters [default: MQSTR for text and lines, none for bytes]
    #[arg(long, value_name = "NAME", value_parser = parse::format_name)]
    pub(crate) format: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// Queue, or QUEUE@QMGR for a queue of another queue manager
    #[arg(value_parser = parse::QueueAt::parse)]
    pub(crate) queue: parse::QueueAt,
    /// The data: text, @FILE for the bytes of a file, - for those of stdin [default: stdin]
    #[arg(value_name = "TEXT|@FILE|-")]
    pub(crate) body: Option<String>,
    /// How long to wait for the reply
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse::duration)]
    pub(crate) wait: Duration,
    /// Model queue, from which the queue for the reply is made
    #[arg(long, value_name = "QUEUE", default_value = "SYSTEM.DEFAULT.MODEL.QUEUE", conflicts_with = "reply_queue", value_parser = parse::name::<QueueName>)]
    pub(crate) model: QueueName,
    /// Queue for the reply, which may have others' replies too
    #[arg(long, value_name = "QUEUE", value_parser = parse::name::<QueueName>)]
    pub(crate) reply_queue: Option<QueueName>,
    /// The reply is to have the message id of the request (MQRO_PASS_MSG_ID), not a new one
    #[arg(long)]
    pub(crate) pass_msgid: bool,
    /// The reply is to have the correlation id of the request (MQRO_PASS_CORREL_ID), not its message id
    #[arg(long)]
    pub(crate) pass_correl: bool,
    /// Give the data of the reply as it was put, instead of text in UTF-8
    #[arg(long)]
    pub(crate) no_convert: bool,
    #[command(flatten)]
    pub(crate) message: MessageOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReplyArgs {
    /// Queue
    #[arg(value_parser = parse::name::<QueueName>)]
    pub(crate) queue: QueueName,
    #[command(flatten)]
    pub(crate) with: ReplyWith,
    /// How many requests: a number, or all that come
    #[arg(long, value_name = "N|all", default_value = "all", value_parser = parse::Count::parse)]
    pub(crate) count: parse::Count,
    /// End when no request has come for so long [default: wait without end]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) wait: Option<Duration>,
    /// Only messages that satisfy this selector: "colour = 'red' AND Root.MQMD.Priority > 4"
    #[arg(long = "where", value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,
}

/// What replies say.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ReplyWith {
    /// Reply with the data and properties of the request
    #[arg(long)]
    pub(crate) echo: bool,
    /// Reply with this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Reply with what this shell command writes to stdout; it has the request's data on stdin. If it fails, the request is
    /// backed out
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Queue
    #[arg(value_parser = parse::name::<QueueName>)]
    pub(crate) queue: QueueName,
    /// How many messages: a number, or all
    #[arg(long, value_name = "N|all", default_value = "1", value_parser = parse::Count::parse)]
    pub(crate) count: parse::Count,
    /// How long to wait for each message
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse::duration)]
    pub(crate) wait: Duration,
    /// Only the message with this id
    #[arg(long, value_name = "HEX", value_parser = parse::message_id)]
    pub(crate) id: Option<MessageId>,
    /// Only messages with this correlation id
    #[arg(long, value_name = "HEX", value_parser = parse::correlation_id)]
    pub(crate) correl: Option<CorrelationId>,
    /// Only messages that satisfy this selector: "colour = 'red' AND Root.MQMD.Priority > 4"
    #[arg(long = "where", value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,
    /// Give the data as it was put, instead of text in UTF-8
    #[arg(long)]
    pub(crate) no_convert: bool,
    /// Write each message to a file of its own, named after its id
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BrowseArgs {
    /// Queue
    #[arg(value_parser = parse::name::<QueueName>)]
    pub(crate) queue: QueueName,
    /// Show at most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Show descriptor and data in full, the data in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
    /// Only the message with this id
    #[arg(long, value_name = "HEX", value_parser = parse::message_id)]
    pub(crate) id: Option<MessageId>,
    /// Only messages with this correlation id
    #[arg(long, value_name = "HEX", value_parser = parse::correlation_id)]
    pub(crate) correl: Option<CorrelationId>,
    /// Only messages that satisfy this selector: "colour = 'red' AND Root.MQMD.Priority > 4"
    #[arg(long = "where", value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChannelCommand {
    /// Channels and how they are: DISPLAY CHANNEL, DISPLAY CHSTATUS
    List,
    /// START CHANNEL
    Start {
        /// Channel
        #[arg(value_parser = parse::name::<ChannelName>)]
        name: ChannelName,
    },
    /// STOP CHANNEL
    Stop {
        /// Channel
        #[arg(value_parser = parse::name::<ChannelName>)]
        name: ChannelName,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// The nodes, as the one that answers sees them
    Members,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CertCommand {
    /// Create a certificate authority: DIR/ca.crt and DIR/ca.key
    Ca {
        /// Distinguished name, such as "CN=FerryMQ authority,O=Example"
        dn: String,
        /// Where to write it
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
    /// Create the certificate of a node
    Server {
        #[command(flatten)]
        leaf: LeafArgs,
        /// Host name or IP address that the certificate is for; may be repeated
        #[arg(long, value_name = "HOST", action = ArgAction::Append, required = true)]
        san: Vec<String>,
    },
    /// Create the certificate of an application or a person
    Client {
        #[command(flatten)]
        leaf: LeafArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LeafArgs {
    /// Distinguished name, such as CN=QM1,O=Example
    pub(crate) dn: String,
    /// Directory of the authority that signs: ca.crt, ca.key
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Write OUT.crt and OUT.key [default: DIR/server or DIR/client]
    #[arg(long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RcArgs {
    /// Number, name with or without MQRC_, or message id
    #[cfg_attr(
        feature = "crash-points",
        arg(required_unless_present = "crash_points")
    )]
    #[cfg_attr(not(feature = "crash-points"), arg(required = true))]
    pub(crate) code: Option<String>,
    /// List the places where FERRYMQ_CRASH_AT can stop the process
    #[cfg(feature = "crash-points")]
    #[arg(long)]
    pub(crate) crash_points: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// Every queue, system queues too
    #[arg(long, required = true)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Messages that left a queue by another way than a committed get: id, from, to, reason, who, when
    Account {
        /// Only entries from this time on: 2026-12-01T00:00:00Z, or 10m for the last ten minutes
        #[arg(long, value_name = "TIME", value_parser = parse::Since::parse)]
        since: Option<parse::Since>,
    },
}
