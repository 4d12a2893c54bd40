//! Channel authentication records at work: whether a partner may start an inbound channel, and as which user.

use std::net::IpAddr;

use ferrymq_objects::{ChannelRule, ChannelRuleType, QueueManager, UserSource};
use ferrymq_types::DistinguishedName;

use crate::address::AddressPattern;
use crate::client_authentication::PeerCertificateNames;
use crate::pattern::PeerPattern;

/// Every administrator of the node, in `USERLIST`.
const ADMINISTRATORS: &str = "*MQADMIN";

/// Who wants to start an inbound channel. It has passed the channel's own SSLPEER and SSLCAUTH.
#[derive(Debug, Clone, Copy)]
pub struct Applicant<'a> {
    /// The channel.
    pub channel: &'a str,
    /// Where it comes from.
    pub address: IpAddr,
    /// Whom its certificate names, if it has one.
    pub certificate: Option<PeerCertificateNames<'a>>,
    /// Who issued that.
    pub issuer: Option<&'a DistinguishedName>,
    /// What it says it is.
    pub identity: Identity<'a>,
}

/// What a partner says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity<'a> {
    /// A queue manager, by this name.
    QueueManager(&'a str),
    /// An application of this user.
    Client(&'a str),
}

/// What the records say of a partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission<'a> {
    /// The user that a record makes of it; `None`: as it would be without records.
    pub user: Option<&'a str>,
    /// The record that maps it, if one does.
    pub mapped_by: Option<&'a ChannelRule>,
    /// Records with WARN(YES) that would have refused it.
    pub warned: Vec<&'a ChannelRule>,
}

/// How well a record fits a channel: exact over pattern, then the longer beginning without a `*`.
fn profile_rank(profile: &str) -> (usize, usize) {
    let plain = profile.chars().filter(|c| *c != '*').count();
    (profile.find('*').unwrap_or(usize::MAX), plain)
}

/// Whether a text matches a pattern with `*` anywhere. Linear in both for patterns with few `*`; both are names, at most 48 bytes.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else {
        return rest.is_empty();
    };
    for piece in middle {
        match rest.find(piece) {
            Some(at) => {
                rest = rest
                    .get(at.saturating_add(piece.len())..)
                    .unwrap_or_default()
            }
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// How exactly a record recognises a partner: the kind of identity, how much is said of it, the address. `None`: not at all.
type Rank = ((usize, usize), u8, (usize, usize), (u8, usize, usize));

fn rank(rule: &ChannelRule, applicant: &Applicant<'_>) -> Option<Rank> {
    let address = if rule.address.is_empty() {
        (0, 0, 0)
    } else {
        let pattern = AddressPattern::parse(&rule.address).ok()?;
        if !pattern.matches(applicant.address) {
            return None;
        }
        // Above a record that says nothing of the address.
        let (kind, any, said) = pattern.rank();
        (kind.saturating_add(1), any, said)
    };
    let (identity, said) = match (rule.rule_type, applicant.identity) {
        (ChannelRuleType::PeerName, _) => {
            let certificate = applicant.certificate?;
            let pattern = PeerPattern::parse(&rule.peer_name).ok()?;
            pattern
                .matches(certificate.subject, certificate.serial)
                .ok()?;
            let issuer = PeerPattern::parse_attribute(&rule.issuer_name).ok()?;
            if let Some(issuer) = &issuer {
                issuer.matches(applicant.issuer?, &[]).ok()?;
            }
            let (elements, exact) = pattern.rank();
            let issued = issuer.map_or(0, |i| i.rank().0);
            (3, (elements.saturating_add(issued), exact))
        }
        (ChannelRuleType::ClientUser, Identity::Client(user)) => {
            (rule.client_user == user).then_some((2, (1, 0)))?
        }
        (ChannelRuleType::QueueManager, Identity::QueueManager(name)) => {
            matches_pattern(&rule.queue_manager, name)
                .then_some((2, profile_rank(&rule.queue_manager)))?
        }
        (ChannelRuleType::Address, _) => (1, (0, 0)),
        (ChannelRuleType::ClientUser, Identity::QueueManager(_))
        | (ChannelRuleType::QueueManager, Identity::Client(_))
        | (ChannelRuleType::BlockAddress | ChannelRuleType::BlockUser, _) => return None,
    };
    Some((profile_rank(&rule.profile), identity, said, address))
}

fn rules(queue_manager: &QueueManager) -> impl Iterator<Item = &ChannelRule> {
    let enabled = match queue_manager.attributes.channel_authentication {
        ferrymq_objects::Enabled::Yes => true,
        ferrymq_objects::Enabled::No => false,
    };
    let all = enabled.then(|| queue_manager.channel_rules.values().flatten());
    all.into_iter().flatten()
}

/// Applies `BLOCKADDR` and the one record that fits best among those that map.
///
/// Of several the most specific one counts, compared in this order: the profile (exact over pattern, then the longer beginning
/// without `*`), what it recognises (a certificate's name over a user or queue manager over an address), how much it says of that, and
/// the address. Without any that fits a partner is let through as it is.
///
/// Source: IBM MQ, "Channel authentication records", and the order that its page on precedence gives.
///
/// # Errors
/// The record that refuses the partner.
pub fn admit<'a>(
    queue_manager: &'a QueueManager,
    applicant: &Applicant<'_>,
) -> Result<Admission<'a>, &'a ChannelRule> {
    let mut admission = Admission {
        user: None,
        mapped_by: None,
        warned: Vec::new(),
    };
    for rule in rules(queue_manager).filter(|r| r.rule_type == ChannelRuleType::BlockAddress) {
        let blocks = |text: &String| {
            // What cannot be read blocks: it was meant to.
            AddressPattern::parse(text).is_ok_and(|p| p.matches(applicant.address))
                || AddressPattern::parse(text).is_err()
        };
        if matches_pattern(&rule.profile, applicant.channel) && rule.addresses.iter().any(blocks) {
            if !rule.warn {
                return Err(rule);
            }
            admission.warned.push(rule);
        }
    }
    let fitting = rules(queue_manager)
        .filter(|r| r.rule_type.is_map())
        .filter(|r| matches_pattern(&r.profile, applicant.channel))
        .filter_map(|r| Some((rank(r, applicant)?, r)));
    let Some((_, best)) = fitting.max_by_key(|(rank, _)| *rank) else {
        return Ok(admission);
    };
    admission.mapped_by = Some(best);
    match best.user_source {
        UserSource::Map => admission.user = Some(&best.mca_user),
        UserSource::Channel => {}
        UserSource::NoAccess if best.warn => admission.warned.push(best),
        UserSource::NoAccess => return Err(best),
    }
    Ok(admission)
}

/// Applies `BLOCKUSER`, last, to the user that a partner has become: the record with the most specific profile alone counts.
///
/// # Errors
/// The record that refuses the user; whether it only warns says its `warn`.
pub fn check_user<'a>(
    queue_manager: &'a QueueManager,
    channel: &str,
    user: &str,
    administrator: bool,
) -> Result<(), &'a ChannelRule> {
    let fitting = rules(queue_manager)
        .filter(|r| r.rule_type == ChannelRuleType::BlockUser)
        .filter(|r| matches_pattern(&r.profile, channel));
    let Some(best) = fitting.max_by_key(|r| profile_rank(&r.profile)) else {
        return Ok(());
    };
    let blocked = best
        .users
        .iter()
        .any(|u| u == user || (administrator && u == ADMINISTRATORS));
    if blocked { Err(best) } else { Ok(()) }
}

/// What is wrong with the texts of a record that a command gives, in words; `None` if nothing is.
#[must_use]
pub fn check_rule_texts(rule: &ChannelRule) -> Option<(&'static str, String)> {
    let address = |text: &String| AddressPattern::parse(text).err().map(|e| e.to_string());
    let pattern = |text: &String| {
        let parsed = PeerPattern::parse_attribute(text);
        parsed.err().map(|e| e.to_string())
    };
    if let Some(why) = rule.addresses.iter().find_map(address) {
        return Some(("ADDRLIST", why));
    }
    if !rule.address.is_empty()
        && let Some(why) = address(&rule.address)
    {
        return Some(("ADDRESS", why));
    }
    if let Some(why) = pattern(&rule.peer_name) {
        return Some(("SSLPEER", why));
    }
    pattern(&rule.issuer_name).map(|why| ("SSLCERTI", why))
}
