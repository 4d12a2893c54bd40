//! The attributes of channels.

use core::time::Duration;

use ferrymq_types::{
    ATTRIBUTE_MAX, ChannelName, DESCRIPTION_LENGTH_MAX, MESSAGE_LENGTH_DEFAULT, MESSAGE_LENGTH_MAX,
    ObjectId, QueueName, Timestamp,
};

use crate::attribute::{
    AttributeError, AttributeForm, AttributeProblem, AttributeSpec, Attributes,
};
use crate::table::{
    Row, Tabled, Words, find_spec, milliseconds, milliseconds_value, mqsc_date, mqsc_time,
    queue_name, seconds, seconds_value, specs, stored, text,
};
use crate::{
    Channel, ChannelBase, MessageSpeed, ObjectKind, ReceiverChannel, SenderChannel,
    ServerConnectionChannel, SslClientAuthentication, UseDlq,
};
use ferrymq_types::AttributeValue;

const SENDER: &[ObjectKind] = &[ObjectKind::SenderChannel];
const RECEIVER: &[ObjectKind] = &[ObjectKind::ReceiverChannel];
const SERVER: &[ObjectKind] = &[ObjectKind::ServerConnectionChannel];
const MESSAGE: &[ObjectKind] = &[ObjectKind::SenderChannel, ObjectKind::ReceiverChannel];
const ACCEPTING: &[ObjectKind] = &[
    ObjectKind::ReceiverChannel,
    ObjectKind::ServerConnectionChannel,
];
const EVERY: &[ObjectKind] = &[
    ObjectKind::SenderChannel,
    ObjectKind::ReceiverChannel,
    ObjectKind::ServerConnectionChannel,
];

/// Stands for a blank `XMITQ`: only the default sender has one, and a new sender must name its own.
const TRANSMISSION_QUEUE_BLANK: &str = "SYSTEM.XMITQ.NOT.SET";

/// Longest `SSLPEER`, in characters.
///
/// Source: IBM MQ, `MQ_SSL_PEER_NAME_LENGTH`.
const SSL_PEER_LENGTH_MAX: usize = 1024;

/// Longest `SSLCIPH`, in characters.
const SSL_CIPHER_LENGTH_MAX: usize = 64;

/// Longest `MCAUSER`, in characters.
const MCA_USER_LENGTH_MAX: usize = 64;

const NINES: AttributeForm = AttributeForm::Number {
    min: 0,
    max: ATTRIBUTE_MAX as u64,
};

/// Intervals in seconds: 0 to 999999.
const SECONDS: AttributeForm = AttributeForm::Number {
    min: 0,
    max: 999_999,
};

const fn sender(channel: &Channel) -> Option<&SenderChannel> {
    match channel {
        Channel::Sender(c) => Some(c),
        Channel::Receiver(_) | Channel::ServerConnection(_) => None,
    }
}

const fn sender_mut(channel: &mut Channel) -> Option<&mut SenderChannel> {
    match channel {
        Channel::Sender(c) => Some(c),
        Channel::Receiver(_) | Channel::ServerConnection(_) => None,
    }
}

const fn receiver(channel: &Channel) -> Option<&ReceiverChannel> {
    match channel {
        Channel::Receiver(c) => Some(c),
        Channel::Sender(_) | Channel::ServerConnection(_) => None,
    }
}

const fn receiver_mut(channel: &mut Channel) -> Option<&mut ReceiverChannel> {
    match channel {
        Channel::Receiver(c) => Some(c),
        Channel::Sender(_) | Channel::ServerConnection(_) => None,
    }
}

const fn server(channel: &Channel) -> Option<&ServerConnectionChannel> {
    match channel {
        Channel::ServerConnection(c) => Some(c),
        Channel::Sender(_) | Channel::Receiver(_) => None,
    }
}

const fn server_mut(channel: &mut Channel) -> Option<&mut ServerConnectionChannel> {
    match channel {
        Channel::ServerConnection(c) => Some(c),
        Channel::Sender(_) | Channel::Receiver(_) => None,
    }
}

const fn spec(
    keyword: &'static str,
    kinds: &'static [ObjectKind],
    form: AttributeForm,
) -> AttributeSpec {
    AttributeSpec {
        keyword,
        synonyms: &[],
        form,
        kinds,
        settable: true,
    }
}

const fn shown(keyword: &'static str) -> AttributeSpec {
    AttributeSpec {
        keyword,
        synonyms: &[],
        form: AttributeForm::Text { max: 48 },
        kinds: EVERY,
        settable: false,
    }
}

macro_rules! row {
    ($spec:expr, $get:expr, $set:expr) => {
        Row {
            spec: $spec,
            get: $get,
            set: $set,
        }
    };
}

/// An attribute that both ends of a message channel have in a field of the same name.
macro_rules! at_both_ends {
    ($spec:expr, $field:ident, $get:expr, $set:expr) => {
        row!(
            $spec,
            |c| match c {
                Channel::Sender(c) => Some($get(c.$field)),
                Channel::Receiver(c) => Some($get(c.$field)),
                Channel::ServerConnection(_) => None,
            },
            |c, v| {
                match c {
                    Channel::Sender(c) => c.$field = $set(v)?,
                    Channel::Receiver(c) => c.$field = $set(v)?,
                    Channel::ServerConnection(_) => return None,
                }
                Some(())
            }
        )
    };
}

/// An attribute that one type of channel has.
macro_rules! of_one {
    ($spec:expr, $of:ident, $of_mut:ident, $field:ident, $get:expr, $set:expr) => {
        row!($spec, |c| $of(c).map(|c| $get(c.$field)), |c, v| {
            $of_mut(c)?.$field = $set(v)?;
            Some(())
        })
    };
}

fn never(_: &mut Channel, _: &AttributeValue) -> Option<()> {
    None
}

/// Source: IBM MQ, "DEFINE CHANNEL": defaults and ranges by channel type.
static ROWS: &[Row<Channel>] = &[
    row!(
        shown("ALTDATE"),
        |c| Some(AttributeValue::Text(mqsc_date(c.base().altered))),
        never
    ),
    row!(
        shown("ALTTIME"),
        |c| Some(AttributeValue::Text(mqsc_time(c.base().altered))),
        never
    ),
    of_one!(
        spec("BATCHINT", SENDER, NINES),
        sender,
        sender_mut,
        batch_interval,
        milliseconds_value,
        milliseconds
    ),
    of_one!(
        spec("BATCHLIM", SENDER, SECONDS),
        sender,
        sender_mut,
        batch_data_limit,
        AttributeValue::number,
        AttributeValue::as_u32
    ),
    at_both_ends!(
        spec(
            "BATCHSZ",
            MESSAGE,
            AttributeForm::Number { min: 1, max: 9999 }
        ),
        batch_size,
        AttributeValue::number,
        AttributeValue::as_u32
    ),
    row!(
        spec("CONNAME", SENDER, AttributeForm::ConnectionName),
        |c| Some(AttributeValue::text(&sender(c)?.connection_name)),
        |c, v| {
            sender_mut(c)?.connection_name = text(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "DESCR",
            EVERY,
            AttributeForm::Text {
                max: DESCRIPTION_LENGTH_MAX
            }
        ),
        |c| Some(AttributeValue::text(&c.base().description)),
        |c, v| {
            c.base_mut().description = text(v)?;
            Some(())
        }
    ),
    of_one!(
        spec("DISCINT", SENDER, SECONDS),
        sender,
        sender_mut,
        disconnect_interval,
        seconds_value,
        seconds
    ),
    row!(
        spec("HBINT", EVERY, SECONDS),
        |c| Some(AttributeValue::number(c.base().heartbeat_interval)),
        |c, v| {
            c.base_mut().heartbeat_interval = v.as_u32()?;
            Some(())
        }
    ),
    of_one!(
        spec("LONGRTY", SENDER, NINES),
        sender,
        sender_mut,
        long_retry_count,
        AttributeValue::number,
        AttributeValue::as_u32
    ),
    of_one!(
        spec("LONGTMR", SENDER, SECONDS),
        sender,
        sender_mut,
        long_retry_interval,
        seconds_value,
        seconds
    ),
    of_one!(
        spec("MAXINST", SERVER, NINES),
        server,
        server_mut,
        max_instances,
        AttributeValue::number,
        AttributeValue::as_u32
    ),
    row!(
        spec(
            "MAXMSGL",
            EVERY,
            AttributeForm::Number {
                min: 0,
                max: MESSAGE_LENGTH_MAX as u64
            }
        ),
        |c| Some(AttributeValue::number(c.base().max_message_length)),
        |c, v| {
            c.base_mut().max_message_length = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        spec(
            "MCAUSER",
            SERVER,
            AttributeForm::Text {
                max: MCA_USER_LENGTH_MAX
            }
        ),
        |c| Some(AttributeValue::text(&server(c)?.mca_user)),
        |c, v| {
            server_mut(c)?.mca_user = text(v)?;
            Some(())
        }
    ),
    of_one!(
        spec("MRRTY", RECEIVER, NINES),
        receiver,
        receiver_mut,
        message_retry_count,
        AttributeValue::number,
        AttributeValue::as_u32
    ),
    of_one!(
        spec("MRTMR", RECEIVER, NINES),
        receiver,
        receiver_mut,
        message_retry_interval,
        milliseconds_value,
        milliseconds
    ),
    at_both_ends!(
        spec(
            "NPMSPEED",
            MESSAGE,
            AttributeForm::Words(MessageSpeed::WORDS)
        ),
        non_persistent_message_speed,
        Words::value,
        MessageSpeed::from_value
    ),
    at_both_ends!(
        spec(
            "SEQWRAP",
            MESSAGE,
            AttributeForm::Number {
                min: 100,
                max: ATTRIBUTE_MAX as u64
            }
        ),
        sequence_wrap,
        AttributeValue::number,
        AttributeValue::as_u32
    ),
    of_one!(
        spec("SHORTRTY", SENDER, NINES),
        sender,
        sender_mut,
        short_retry_count,
        AttributeValue::number,
        AttributeValue::as_u32
    ),
    of_one!(
        spec("SHORTTMR", SENDER, SECONDS),
        sender,
        sender_mut,
        short_retry_interval,
        seconds_value,
        seconds
    ),
    row!(
        spec(
            "SSLCAUTH",
            ACCEPTING,
            AttributeForm::Words(SslClientAuthentication::WORDS)
        ),
        |c| match c {
            Channel::Receiver(c) => Some(c.ssl_client_authentication.value()),
            Channel::ServerConnection(c) => Some(c.ssl_client_authentication.value()),
            Channel::Sender(_) => None,
        },
        |c, v| {
            let value = SslClientAuthentication::from_value(v)?;
            match c {
                Channel::Receiver(c) => c.ssl_client_authentication = value,
                Channel::ServerConnection(c) => c.ssl_client_authentication = value,
                Channel::Sender(_) => return None,
            }
            Some(())
        }
    ),
    row!(
        spec(
            "SSLCIPH",
            EVERY,
            AttributeForm::Text {
                max: SSL_CIPHER_LENGTH_MAX
            }
        ),
        |c| Some(AttributeValue::text(&c.base().ssl_cipher)),
        |c, v| {
            let name = text(v)?;
            let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
            if !name.bytes().all(good) {
                return None;
            }
            c.base_mut().ssl_cipher = name;
            Some(())
        }
    ),
    row!(
        spec(
            "SSLPEER",
            EVERY,
            AttributeForm::Text {
                max: SSL_PEER_LENGTH_MAX
            }
        ),
        |c| Some(AttributeValue::text(&c.base().ssl_peer_name)),
        |c, v| {
            c.base_mut().ssl_peer_name = text(v)?;
            Some(())
        }
    ),
    // There is one transport; scripts name it.
    row!(
        spec("TRPTYPE", EVERY, AttributeForm::Words(&["TCP"])),
        |_| Some(AttributeValue::Word("TCP".to_owned())),
        |_, _| Some(())
    ),
    at_both_ends!(
        spec("USEDLQ", MESSAGE, AttributeForm::Words(UseDlq::WORDS)),
        use_dead_letter_queue,
        Words::value,
        UseDlq::from_value
    ),
    row!(
        spec("XMITQ", SENDER, AttributeForm::QueueName),
        |c| {
            let name = sender(c)?.transmission_queue.as_str();
            Some(AttributeValue::text(if name == TRANSMISSION_QUEUE_BLANK {
                ""
            } else {
                name
            }))
        },
        |c, v| {
            sender_mut(c)?.transmission_queue =
                queue_name(v)?.unwrap_or_else(transmission_queue_blank);
            Some(())
        }
    ),
];

fn transmission_queue_blank() -> QueueName {
    QueueName::new(TRANSMISSION_QUEUE_BLANK).expect("a constant that is a name")
}

/// Source: IBM MQ, "DEFINE CHANNEL".
const NOT_SUPPORTED: &[&str] = &[
    "AFFINITY", "AMQPKA", "BATCHHB", "CERTLABL", "CLNTWGHT", "CLUSNL", "CLUSTER", "CLWLPRTY",
    "CLWLRANK", "CLWLWGHT", "COMPHDR", "COMPMSG", "CONVERT", "DEFCDISP", "DEFRECON", "JAASCFG",
    "KAINT", "LOCLADDR", "MAXINSTC", "MCANAME", "MCATYPE", "MODENAME", "MONCHL", "MRDATA",
    "MREXIT", "MSGDATA", "MSGEXIT", "NETPRTY", "PASSWORD", "PORT", "PROPCTL", "PUTAUT", "QMNAME",
    "RCVDATA", "RCVEXIT", "RESETSEQ", "SCYDATA", "SCYEXIT", "SENDDATA", "SENDEXIT", "SHARECNV",
    "SPLPROT", "STATCHL", "TPNAME", "TPROOT", "USERID", "USECLTID",
];

impl Tabled for Channel {
    fn rows() -> &'static [Row<Self>] {
        ROWS
    }

    fn not_supported() -> &'static [&'static str] {
        NOT_SUPPORTED
    }

    fn object_kind(&self) -> Option<ObjectKind> {
        Some(self.kind())
    }
}

/// The attribute of a channel that `word`, in upper case, means; with no `kind`, of a channel of any type.
pub(crate) fn channel_attribute(
    kind: Option<ObjectKind>,
    word: &str,
) -> Result<&'static AttributeSpec, AttributeProblem> {
    find_spec::<Channel>(kind, word)
}

pub(crate) fn channel_attributes(
    kind: Option<ObjectKind>,
) -> impl Iterator<Item = &'static AttributeSpec> {
    specs::<Channel>(kind)
}

fn base(name: ChannelName) -> ChannelBase {
    ChannelBase {
        id: ObjectId::ZERO,
        name,
        description: String::new(),
        ssl_cipher: String::new(),
        ssl_peer_name: String::new(),
        max_message_length: MESSAGE_LENGTH_DEFAULT,
        heartbeat_interval: 300,
        altered: Timestamp::ZERO,
    }
}

impl SenderChannel {
    /// A channel with IBM MQ's defaults, id and times zero. A usable one has a connection name too.
    #[must_use]
    pub fn with_defaults(name: ChannelName, transmission_queue: QueueName) -> Self {
        Self {
            base: base(name),
            connection_name: String::new(),
            transmission_queue,
            batch_size: 50,
            batch_interval: Duration::ZERO,
            batch_data_limit: 5000,
            disconnect_interval: Duration::from_secs(6000),
            short_retry_count: 10,
            short_retry_interval: Duration::from_secs(60),
            long_retry_count: ATTRIBUTE_MAX,
            long_retry_interval: Duration::from_secs(1200),
            non_persistent_message_speed: MessageSpeed::Fast,
            use_dead_letter_queue: UseDlq::Yes,
            sequence_wrap: ATTRIBUTE_MAX,
        }
    }
}

impl ReceiverChannel {
    /// A channel with IBM MQ's defaults, id and times zero.
    #[must_use]
    pub fn with_defaults(name: ChannelName) -> Self {
        Self {
            base: base(name),
            batch_size: 50,
            message_retry_count: 10,
            message_retry_interval: Duration::from_millis(1000),
            non_persistent_message_speed: MessageSpeed::Fast,
            use_dead_letter_queue: UseDlq::Yes,
            sequence_wrap: ATTRIBUTE_MAX,
            ssl_client_authentication: SslClientAuthentication::Required,
        }
    }
}

impl ServerConnectionChannel {
    /// A channel with IBM MQ's defaults, id and times zero.
    #[must_use]
    pub fn with_defaults(name: ChannelName) -> Self {
        Self {
            base: base(name),
            ssl_client_authentication: SslClientAuthentication::Required,
            mca_user: String::new(),
            max_instances: ATTRIBUTE_MAX,
        }
    }
}

impl Channel {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ObjectKind {
        match self {
            Self::Sender(_) => ObjectKind::SenderChannel,
            Self::Receiver(_) => ObjectKind::ReceiverChannel,
            Self::ServerConnection(_) => ObjectKind::ServerConnectionChannel,
        }
    }

    pub(crate) const fn base_mut(&mut self) -> &mut ChannelBase {
        match self {
            Self::Sender(c) => &mut c.base,
            Self::Receiver(c) => &mut c.base,
            Self::ServerConnection(c) => &mut c.base,
        }
    }

    /// A channel of `kind` with IBM MQ's defaults; `None` if it is no kind of channel.
    pub(crate) fn with_defaults(kind: ObjectKind, name: ChannelName) -> Option<Self> {
        match kind {
            ObjectKind::SenderChannel => Some(Self::Sender(SenderChannel::with_defaults(
                name,
                transmission_queue_blank(),
            ))),
            ObjectKind::ReceiverChannel => {
                Some(Self::Receiver(ReceiverChannel::with_defaults(name)))
            }
            ObjectKind::ServerConnectionChannel => Some(Self::ServerConnection(
                ServerConnectionChannel::with_defaults(name),
            )),
            ObjectKind::LocalQueue
            | ObjectKind::RemoteQueue
            | ObjectKind::AliasQueue
            | ObjectKind::ModelQueue
            | ObjectKind::Process => None,
        }
    }

    /// That a sender names its transmission queue and its partner. The default sender need not.
    pub(crate) fn check_required(&self) -> Result<(), AttributeError> {
        let Some(c) = sender(self) else {
            return Ok(());
        };
        let required = |k| Err(AttributeError::new(k, AttributeProblem::Required));
        if c.base.name.as_str() == ObjectKind::SenderChannel.default_object() {
            Ok(())
        } else if c.transmission_queue.as_str() == TRANSMISSION_QUEUE_BLANK {
            required("XMITQ")
        } else if c.connection_name.is_empty() {
            required("CONNAME")
        } else {
            Ok(())
        }
    }

    /// What commands can set, with its values.
    #[must_use]
    pub fn settings(&self) -> Attributes {
        self.settable().collect()
    }

    /// What `DISPLAY` shows besides name and type, alphabetically.
    #[must_use]
    pub fn displayed(&self) -> Vec<(&'static str, AttributeValue)> {
        self.all()
    }

    /// Everything, for a snapshot: [`Channel::from_attributes`] reads it back.
    #[must_use]
    pub fn to_attributes(&self) -> Attributes {
        let base = self.base();
        [
            (stored::CHANNEL, AttributeValue::text(base.name.as_str())),
            (
                stored::TYPE,
                AttributeValue::Word(self.kind().type_word().to_owned()),
            ),
            (stored::ID, AttributeValue::Number(base.id.get())),
            (
                stored::ALTERED,
                AttributeValue::Number(base.altered.as_millis()),
            ),
        ]
        .into_iter()
        .chain(self.settable())
        .collect()
    }

    /// Reads what [`Channel::to_attributes`] made. An attribute that is missing, because it came later, has its default.
    ///
    /// # Errors
    /// [`AttributeError`] for an attribute that is not known (a newer format), a value that is not allowed, or a missing
    /// name, type, id or time.
    pub fn from_attributes(attributes: &Attributes) -> Result<Self, AttributeError> {
        let name = stored::required(attributes, stored::CHANNEL, |v| {
            ChannelName::new(v.as_str()?).ok()
        })?;
        let kind = stored::required(attributes, stored::TYPE, |v| {
            ObjectKind::from_type_word(v.as_str()?)
        })?;
        let mut channel = Self::with_defaults(kind, name)
            .ok_or_else(|| AttributeError::new(stored::TYPE, AttributeProblem::NotApplicable))?;
        channel.base_mut().id = ObjectId::new(stored::required(
            attributes,
            stored::ID,
            AttributeValue::as_u64,
        )?);
        channel.base_mut().altered = Timestamp::from_millis(stored::required(
            attributes,
            stored::ALTERED,
            AttributeValue::as_u64,
        )?);
        attributes
            .iter()
            .filter(|(k, _)| !stored::KEYS.contains(k))
            .try_for_each(|(k, v)| channel.set(k, v))?;
        Ok(channel)
    }
}
