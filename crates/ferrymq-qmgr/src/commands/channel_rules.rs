//! SET CHLAUTH and DISPLAY CHLAUTH MATCH(RUNCHECK): what the definitions do not know by themselves.

use std::net::IpAddr;

use ferrymq_authority::{
    Applicant, Identity, PeerCertificateNames, admit, check_rule_texts, check_user,
    parse_distinguished_name,
};
use ferrymq_mqsc::{Answer, ChannelCheck, displayed_rule};
use ferrymq_objects::{
    Attributes, Channel, ChannelRule, ChannelRuleType, CommandError, OperatorMessage, QueueManager,
};
use ferrymq_types::{ChannelName, DistinguishedName, ReasonCode};

/// Addresses and distinguished names are checked when a record is set, not when somebody calls.
pub(super) fn check_rule(
    profile: &str,
    rule_type: ChannelRuleType,
    attributes: &Attributes,
) -> Result<(), Box<Answer>> {
    let rule = ChannelRule::from_command(profile, rule_type, attributes)
        .map_err(|error| Box::new(Answer::refused(&CommandError::from(error))))?;
    match check_rule_texts(&rule) {
        None => Ok(()),
        Some((keyword, why)) => Err(refused(keyword, &why)),
    }
}

fn refused(keyword: &str, why: &str) -> Box<Answer> {
    let message = OperatorMessage {
        id: "AMQ8405E",
        text: format!("Attribute {keyword} does not take this value: {why}."),
    };
    Box::new(Answer::message(&message, ReasonCode::new(4005)))
}

/// What the records would make of a partner, and which of them decides.
pub(super) fn check_channel(
    objects: &QueueManager,
    channel: &ChannelName,
    check: &ChannelCheck,
) -> Answer {
    let name = |keyword, text: &str| -> Result<Option<DistinguishedName>, Box<Answer>> {
        if text.is_empty() {
            return Ok(None);
        }
        let parsed = parse_distinguished_name(text);
        parsed
            .map(Some)
            .map_err(|error| refused(keyword, &error.to_string()))
    };
    let parsed = name("SSLPEER", &check.peer_name)
        .and_then(|subject| Ok((subject, name("SSLCERTI", &check.issuer_name)?)));
    let (subject, issuer) = match parsed {
        Ok(names) => names,
        Err(answer) => return *answer,
    };
    let Ok(address) = check.address.trim_matches(' ').parse::<IpAddr>() else {
        return *refused("ADDRESS", "an IPv4 or IPv6 address");
    };
    let applicant = Applicant {
        channel: channel.as_str(),
        address,
        certificate: subject.as_ref().map(|subject| PeerCertificateNames {
            subject,
            serial: &[],
        }),
        issuer: issuer.as_ref(),
        identity: if check.client_user.is_empty() {
            Identity::QueueManager(&check.queue_manager)
        } else {
            Identity::Client(&check.client_user)
        },
    };
    let refusal = |rule| {
        let message = OperatorMessage {
            id: "FMQ8003I",
            text: "Channel will be refused.".to_owned(),
        };
        Answer::channel_checked(&message, Some(displayed_rule(rule)))
    };
    let admission = match admit(objects, &applicant) {
        Ok(admission) => admission,
        Err(rule) => return refusal(rule),
    };
    let own = match objects.channels.get(channel) {
        Some(Channel::ServerConnection(c)) if !c.mca_user.is_empty() => c.mca_user.as_str(),
        Some(Channel::ServerConnection(_) | Channel::Sender(_) | Channel::Receiver(_)) | None => {
            check.client_user.as_str()
        }
    };
    let user = admission.user.unwrap_or(own);
    if let Err(rule) = check_user(objects, channel.as_str(), user, false)
        && !rule.warn
    {
        return refusal(rule);
    }
    let message = OperatorMessage {
        id: "AMQ9783I",
        text: format!("Channel will run using MCAUSER('{user}')."),
    };
    Answer::channel_checked(&message, admission.mapped_by.map(displayed_rule))
}
