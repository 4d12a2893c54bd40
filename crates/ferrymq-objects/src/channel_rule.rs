//! Channel authentication records: who may start which inbound channel, and as which user. `CHLAUTH`.
//!
//! Source: IBM MQ, "SET CHLAUTH", "Channel authentication records".

use ferrymq_types::{AttributeValue, ChannelName, DESCRIPTION_LENGTH_MAX, Timestamp};

use crate::attribute::{
    AttributeError, AttributeForm, AttributeProblem, AttributeSpec, Attributes,
};
use crate::table::{Words, mqsc_date, mqsc_time, stored, words};

/// Users of one `BLOCKUSER` record, addresses of one `BLOCKADDR` record. Source: IBM MQ allows 100 users.
pub const RULE_LIST_MAX: usize = 256;

/// Records of one profile.
pub const RULES_OF_PROFILE_MAX: usize = 4096;

/// What a record does, and by what it recognises a partner. `TYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelRuleType {
    /// `BLOCKADDR`: these addresses may use no channel.
    BlockAddress,
    /// `BLOCKUSER`: these users may not use the channel.
    BlockUser,
    /// `SSLPEERMAP`: by the name in the partner's certificate.
    PeerName,
    /// `ADDRESSMAP`: by its address.
    Address,
    /// `USERMAP`: by the user that a client says it is; of message channels never.
    ClientUser,
    /// `QMGRMAP`: by the name of the partner queue manager; of clients never.
    QueueManager,
}

/// Which user a partner becomes that a record recognises. `USERSRC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum UserSource {
    /// `MAP`: the one that `MCAUSER` of the record names.
    #[default]
    Map,
    /// `CHANNEL`: the one that it would be without a record.
    Channel,
    /// `NOACCESS`: none; it is refused.
    NoAccess,
}

words!(ChannelRuleType: "BLOCKADDR" = BlockAddress, "BLOCKUSER" = BlockUser, "SSLPEERMAP" = PeerName,
    "ADDRESSMAP" = Address, "USERMAP" = ClientUser, "QMGRMAP" = QueueManager);
words!(UserSource: "MAP" = Map, "CHANNEL" = Channel, "NOACCESS" = NoAccess);

impl ChannelRuleType {
    /// Every type.
    pub const ALL: [Self; 6] = [
        Self::BlockAddress,
        Self::BlockUser,
        Self::PeerName,
        Self::Address,
        Self::ClientUser,
        Self::QueueManager,
    ];

    /// The value of `TYPE`.
    #[must_use]
    pub fn type_word(self) -> &'static str {
        Words::word(self)
    }

    /// From the value of `TYPE`, in upper case.
    #[must_use]
    pub fn from_type_word(word: &str) -> Option<Self> {
        Words::from_word(word)
    }

    /// Whether it maps partners to users; the others block.
    #[must_use]
    pub const fn is_map(self) -> bool {
        match self {
            Self::BlockAddress | Self::BlockUser => false,
            Self::PeerName | Self::Address | Self::ClientUser | Self::QueueManager => true,
        }
    }

    /// The attribute without which there is no record of this type.
    const fn required(self) -> &'static str {
        match self {
            Self::BlockAddress => "ADDRLIST",
            Self::BlockUser => "USERLIST",
            Self::PeerName => "SSLPEER",
            Self::Address => "ADDRESS",
            Self::ClientUser => "CLNTUSER",
            Self::QueueManager => "QMNAME",
        }
    }
}

impl UserSource {
    /// The value of `USERSRC`.
    #[must_use]
    pub fn type_word(self) -> &'static str {
        Words::word(self)
    }
}

/// A channel authentication record.
///
/// The texts are as they were given: whether an address or a distinguished name makes sense is checked by whoever takes the command,
/// and a text that makes none matches nobody and blocks everybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelRule {
    /// The channels: a name, or a pattern with `*` anywhere.
    pub profile: String,
    /// `TYPE`.
    pub rule_type: ChannelRuleType,
    /// `ADDRESS`: of the partner; blank is any.
    pub address: String,
    /// `SSLPEER`: the partner's subject.
    pub peer_name: String,
    /// `SSLCERTI`: the issuer of its certificate; blank is any.
    pub issuer_name: String,
    /// `CLNTUSER`.
    pub client_user: String,
    /// `QMNAME`, perhaps with a `*` at its end.
    pub queue_manager: String,
    /// `ADDRLIST`.
    pub addresses: Vec<String>,
    /// `USERLIST`; `*MQADMIN` is every administrator of the node.
    pub users: Vec<String>,
    /// `USERSRC`.
    pub user_source: UserSource,
    /// `MCAUSER`.
    pub mca_user: String,
    /// `WARN(YES)`: who would be refused is let through, and the operator is told.
    pub warn: bool,
    /// `DESCR`, at most 64 characters.
    pub description: String,
    /// `ALTDATE`, `ALTTIME`.
    pub altered: Timestamp,
}

/// What `SET CHLAUTH` does with a record. `ACTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum RuleChange {
    /// `ADD`: a new record; of a record that blocks, more users or addresses.
    #[default]
    Add,
    /// `REPLACE`: a new record, or this one in place of the one that is there.
    Replace,
    /// `REMOVE`: the record; of a record that blocks, these users or addresses.
    Remove,
    /// `REMOVEALL`: every record of the type and the profile.
    RemoveAll,
}

words!(RuleChange: "ADD" = Add, "REPLACE" = Replace, "REMOVE" = Remove, "REMOVEALL" = RemoveAll);

impl RuleChange {
    /// Every action.
    pub const ALL: [Self; 4] = [Self::Add, Self::Replace, Self::Remove, Self::RemoveAll];

    /// The value of `ACTION`.
    #[must_use]
    pub fn type_word(self) -> &'static str {
        Words::word(self)
    }

    /// From the value of `ACTION`, in upper case.
    #[must_use]
    pub fn from_type_word(word: &str) -> Option<Self> {
        Words::from_word(word)
    }
}

/// Why a record cannot be set or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelRuleProblem {
    /// There is one like it.
    Exists,
    /// There is none like it.
    NotFound,
    /// The profile has as many records as it may have.
    TooMany,
}

const fn spec(keyword: &'static str, form: AttributeForm) -> AttributeSpec {
    AttributeSpec {
        keyword,
        synonyms: &[],
        form,
        kinds: &[],
        settable: true,
    }
}

const LIST: AttributeForm = AttributeForm::List {
    items: RULE_LIST_MAX,
    item: 264,
};
const MAPS: &[ChannelRuleType] = &[
    ChannelRuleType::PeerName,
    ChannelRuleType::Address,
    ChannelRuleType::ClientUser,
    ChannelRuleType::QueueManager,
];
const ALL: &[ChannelRuleType] = &ChannelRuleType::ALL;

/// The attributes, in the order of display, and the types that have them.
static SPECS: &[(AttributeSpec, &[ChannelRuleType])] = &[
    (
        spec(
            "DESCR",
            AttributeForm::Text {
                max: DESCRIPTION_LENGTH_MAX,
            },
        ),
        ALL,
    ),
    (spec("ADDRLIST", LIST), &[ChannelRuleType::BlockAddress]),
    (spec("USERLIST", LIST), &[ChannelRuleType::BlockUser]),
    (
        spec("CLNTUSER", AttributeForm::Text { max: 64 }),
        &[ChannelRuleType::ClientUser],
    ),
    (
        spec("QMNAME", AttributeForm::Text { max: 48 }),
        &[ChannelRuleType::QueueManager],
    ),
    (
        spec("SSLPEER", AttributeForm::Text { max: 1024 }),
        &[ChannelRuleType::PeerName],
    ),
    (
        spec("SSLCERTI", AttributeForm::Text { max: 1024 }),
        &[ChannelRuleType::PeerName],
    ),
    (spec("ADDRESS", AttributeForm::Text { max: 264 }), MAPS),
    (
        spec("USERSRC", AttributeForm::Words(UserSource::WORDS)),
        MAPS,
    ),
    (spec("MCAUSER", AttributeForm::Text { max: 64 }), MAPS),
    (spec("WARN", AttributeForm::Words(&["NO", "YES"])), ALL),
];

/// Source: IBM MQ, "SET CHLAUTH". `CHCKCLNT` asks for passwords, which FerryMQ does not know: partners prove who they are by
/// certificates.
const NOT_SUPPORTED: &[&str] = &["CHCKCLNT", "CMDSCOPE", "CUSTOM"];

/// The attribute that `word`, in upper case, means in a record of a type, or of any.
///
/// # Errors
/// [`AttributeProblem`]: not known, not supported, or of another type.
pub fn channel_rule_attribute(
    rule_type: Option<ChannelRuleType>,
    word: &str,
) -> Result<&'static AttributeSpec, AttributeProblem> {
    match SPECS.iter().find(|(spec, _)| spec.is(word)) {
        Some((spec, types)) if rule_type.is_none_or(|t| types.contains(&t)) => Ok(spec),
        Some(_) => Err(AttributeProblem::NotApplicable),
        None if NOT_SUPPORTED.contains(&word) => Err(AttributeProblem::NotSupported),
        None => Err(AttributeProblem::Unknown),
    }
}

/// The attributes of records of a type, or of any, in the order of display.
pub fn channel_rule_attributes(
    rule_type: Option<ChannelRuleType>,
) -> impl Iterator<Item = &'static AttributeSpec> {
    SPECS
        .iter()
        .filter(move |(_, types)| rule_type.is_none_or(|t| types.contains(&t)))
        .map(|(spec, _)| spec)
}

/// Whether `text` may be a profile: at most 20 characters of a channel name and `*`.
#[must_use]
pub fn is_channel_profile(text: &str) -> bool {
    let plain = text.replace('*', "A");
    ChannelName::new(&plain).is_ok()
}

impl ChannelRule {
    fn new(profile: &str, rule_type: ChannelRuleType) -> Self {
        Self {
            profile: profile.to_owned(),
            rule_type,
            address: String::new(),
            peer_name: String::new(),
            issuer_name: String::new(),
            client_user: String::new(),
            queue_manager: String::new(),
            addresses: Vec::new(),
            users: Vec::new(),
            user_source: UserSource::default(),
            mca_user: String::new(),
            warn: false,
            description: String::new(),
            altered: Timestamp::ZERO,
        }
    }

    fn set(&mut self, keyword: &str, value: &AttributeValue) -> Result<(), AttributeError> {
        let problem = |p| AttributeError::new(keyword, p);
        let spec = channel_rule_attribute(Some(self.rule_type), keyword).map_err(problem)?;
        spec.form.check(value).map_err(problem)?;
        let text = value.as_str().unwrap_or_default().to_owned();
        let list = match value {
            AttributeValue::List(items) => items.clone(),
            AttributeValue::Number(_)
            | AttributeValue::Text(_)
            | AttributeValue::Word(_)
            | AttributeValue::Flag(_) => Vec::new(),
        };
        match spec.keyword {
            "DESCR" => self.description = text,
            "ADDRLIST" => self.addresses = list,
            "USERLIST" => self.users = list,
            "CLNTUSER" => self.client_user = text,
            "QMNAME" => self.queue_manager = text,
            "SSLPEER" => self.peer_name = text,
            "SSLCERTI" => self.issuer_name = text,
            "ADDRESS" => self.address = text,
            "USERSRC" => self.user_source = UserSource::from_word(&text).unwrap_or_default(),
            "MCAUSER" => self.mca_user = text,
            "WARN" => self.warn = text == "YES",
            _ => return Err(problem(AttributeProblem::Unknown)),
        }
        Ok(())
    }

    fn get(&self, keyword: &str) -> AttributeValue {
        let word = |w: &str| AttributeValue::Word(w.to_owned());
        match keyword {
            "DESCR" => AttributeValue::text(&self.description),
            "ADDRLIST" => AttributeValue::List(self.addresses.clone()),
            "USERLIST" => AttributeValue::List(self.users.clone()),
            "CLNTUSER" => AttributeValue::text(&self.client_user),
            "QMNAME" => AttributeValue::text(&self.queue_manager),
            "SSLPEER" => AttributeValue::text(&self.peer_name),
            "SSLCERTI" => AttributeValue::text(&self.issuer_name),
            "ADDRESS" => AttributeValue::text(&self.address),
            "USERSRC" => self.user_source.value(),
            "MCAUSER" => AttributeValue::text(&self.mca_user),
            _ => word(if self.warn { "YES" } else { "NO" }),
        }
    }

    /// A record of these attributes.
    ///
    /// # Errors
    /// [`AttributeError`]: an attribute that it does not take, or one that it must have and has not.
    pub fn from_command(
        profile: &str,
        rule_type: ChannelRuleType,
        attributes: &Attributes,
    ) -> Result<Self, AttributeError> {
        let mut rule = Self::new(profile, rule_type);
        attributes
            .iter()
            .try_for_each(|(keyword, value)| rule.set(keyword, value))?;
        Ok(rule)
    }

    /// Whether everything is there that a record needs to be kept.
    fn check(&self) -> Result<(), AttributeError> {
        let required = |keyword| Err(AttributeError::new(keyword, AttributeProblem::Required));
        let identity = self.rule_type.required();
        let missing = match self.get(identity) {
            AttributeValue::List(items) => items.is_empty(),
            AttributeValue::Text(text) | AttributeValue::Word(text) => text.is_empty(),
            AttributeValue::Number(_) | AttributeValue::Flag(_) => false,
        };
        if missing {
            return required(identity);
        }
        match (self.rule_type.is_map(), self.user_source) {
            (true, UserSource::Map) if self.mca_user.is_empty() => required("MCAUSER"),
            (true, UserSource::Channel | UserSource::NoAccess) if !self.mca_user.is_empty() => {
                Err(AttributeError::new(
                    "MCAUSER",
                    AttributeProblem::Value {
                        given: self.mca_user.clone(),
                        allowed: "nothing unless USERSRC is MAP".to_owned(),
                    },
                ))
            }
            (true, _) | (false, _) => Ok(()),
        }
    }

    /// Whether it is the record that `other` means: of the same type and profile, recognising the same partners.
    fn is_same(&self, other: &Self) -> bool {
        self.rule_type == other.rule_type
            && self.address == other.address
            && self.peer_name == other.peer_name
            && self.issuer_name == other.issuer_name
            && self.client_user == other.client_user
            && self.queue_manager == other.queue_manager
    }

    /// What `DISPLAY CHLAUTH` shows besides the profile and the type.
    #[must_use]
    pub fn displayed(&self) -> Vec<(&'static str, AttributeValue)> {
        let mut all: Vec<_> = channel_rule_attributes(Some(self.rule_type))
            .filter(|s| s.keyword != "MCAUSER" || self.user_source == UserSource::Map)
            .map(|s| (s.keyword, self.get(s.keyword)))
            .collect();
        all.push(("ALTDATE", AttributeValue::Text(mqsc_date(self.altered))));
        all.push(("ALTTIME", AttributeValue::Text(mqsc_time(self.altered))));
        all
    }

    /// What a command has to say to make it.
    #[must_use]
    pub fn to_command(&self) -> Attributes {
        channel_rule_attributes(Some(self.rule_type))
            .map(|s| (s.keyword, self.get(s.keyword)))
            .filter(|(_, value)| match value {
                AttributeValue::List(items) => !items.is_empty(),
                AttributeValue::Text(text) => !text.is_empty(),
                AttributeValue::Number(_) | AttributeValue::Word(_) | AttributeValue::Flag(_) => {
                    true
                }
            })
            .collect()
    }

    /// Everything but the profile, for a snapshot: [`ChannelRule::from_attributes`] reads it back.
    #[must_use]
    pub fn to_attributes(&self) -> Attributes {
        let own = [
            (
                stored::TYPE.to_owned(),
                AttributeValue::text(self.rule_type.type_word()),
            ),
            (
                stored::ALTERED.to_owned(),
                AttributeValue::Number(self.altered.as_millis()),
            ),
        ];
        let all = self.to_command();
        let all = all.iter().map(|(k, v)| (k.to_owned(), v.clone()));
        own.into_iter().chain(all).collect()
    }

    /// Reads what [`ChannelRule::to_attributes`] made.
    ///
    /// # Errors
    /// [`AttributeError`] for what is not known, not allowed, or missing.
    pub fn from_attributes(profile: &str, attributes: &Attributes) -> Result<Self, AttributeError> {
        let rule_type = stored::required(attributes, stored::TYPE, |v| {
            ChannelRuleType::from_type_word(v.as_str()?)
        })?;
        let altered = stored::required(attributes, stored::ALTERED, AttributeValue::as_u64)?;
        let mut rule = Self::new(profile, rule_type);
        rule.altered = Timestamp::from_millis(altered);
        attributes
            .iter()
            .filter(|(k, _)| ![stored::TYPE, stored::ALTERED].contains(k))
            .try_for_each(|(k, v)| rule.set(k, v))?;
        Ok(rule)
    }

    /// The records that a new queue manager has.
    ///
    /// Source: IBM MQ, "Channel authentication records". IBM MQ has a third, which keeps administrators out; ours prove who they are by
    /// a certificate that the node's configuration names.
    pub(crate) fn built_in(created: Timestamp) -> Vec<Self> {
        let by_address = |profile, user_source| Self {
            address: "*".to_owned(),
            user_source,
            description: "Default rule".to_owned(),
            altered: created,
            ..Self::new(profile, ChannelRuleType::Address)
        };
        vec![
            by_address("SYSTEM.*", UserSource::NoAccess),
            by_address("SYSTEM.ADMIN.SVRCONN", UserSource::Channel),
        ]
    }
}

/// Changes the records of a profile as `SET CHLAUTH` asks.
pub(crate) fn change_rules(
    rules: &mut Vec<ChannelRule>,
    given: ChannelRule,
    change: RuleChange,
    sets_description: bool,
) -> Result<(), RuleError> {
    let place = rules.iter().position(|r| r.is_same(&given));
    match change {
        RuleChange::Add | RuleChange::Replace => {
            let rule = match (place.and_then(|at| rules.get(at)), change) {
                (Some(old), RuleChange::Add) if !given.rule_type.is_map() => {
                    let mut rule = old.clone();
                    add_to(&mut rule.users, given.users);
                    add_to(&mut rule.addresses, given.addresses);
                    if sets_description {
                        rule.description = given.description;
                    }
                    rule.warn |= given.warn;
                    rule.altered = given.altered;
                    rule
                }
                (Some(_), RuleChange::Add) => {
                    return Err(RuleError::Problem(ChannelRuleProblem::Exists));
                }
                (Some(_) | None, _) => given,
            };
            rule.check().map_err(RuleError::Attribute)?;
            if rule.users.len().max(rule.addresses.len()) > RULE_LIST_MAX
                || (place.is_none() && rules.len() >= RULES_OF_PROFILE_MAX)
            {
                return Err(RuleError::Problem(ChannelRuleProblem::TooMany));
            }
            match place.and_then(|at| rules.get_mut(at)) {
                Some(slot) => *slot = rule,
                None => rules.push(rule),
            }
        }
        RuleChange::Remove => {
            let Some(old) = place.and_then(|at| rules.get_mut(at)) else {
                return Err(RuleError::Problem(ChannelRuleProblem::NotFound));
            };
            let before = old.users.len().saturating_add(old.addresses.len());
            old.users.retain(|u| !given.users.contains(u));
            old.addresses.retain(|a| !given.addresses.contains(a));
            let left = old.users.len().saturating_add(old.addresses.len());
            old.altered = given.altered;
            if !given.rule_type.is_map() && left == before {
                return Err(RuleError::Problem(ChannelRuleProblem::NotFound));
            }
            if left == 0 {
                rules.retain(|r| !r.is_same(&given));
            }
        }
        RuleChange::RemoveAll => {
            let before = rules.len();
            rules.retain(|r| r.rule_type != given.rule_type);
            if rules.len() == before {
                return Err(RuleError::Problem(ChannelRuleProblem::NotFound));
            }
        }
    }
    Ok(())
}

/// Why a change of the records was refused.
pub(crate) enum RuleError {
    Problem(ChannelRuleProblem),
    Attribute(AttributeError),
}

fn add_to(list: &mut Vec<String>, more: Vec<String>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}
