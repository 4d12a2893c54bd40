//! START, STOP, RESET, RESOLVE and PING CHANNEL, from words.

use ferrymq_types::QueueManagerName;

use crate::SyntaxError;
use crate::lex::Clause;
use crate::parse::{Clauses, bad_name, channel_name, choice, once, value, wrong, yes_no};
use crate::statement::{ResolveAction, Statement, StopMode, StopStatus};

/// Highest `SEQNUM`.
const SEQUENCE_MAX: u32 = 999_999_999;
/// Lowest and highest `DATALEN`.
const PING_LENGTHS: core::ops::RangeInclusive<u32> = 16..=32_768;
/// `DATALEN` where none is given.
const PING_LENGTH: u32 = 64;

pub(crate) fn start_channel(second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let name = channel_name(second)?;
    let mut ignore = None;
    for clause in rest {
        if clause.keyword == "IGNSTATE" {
            once(&mut ignore, &clause, yes_no(&clause)?)?;
        } else {
            return Err(wrong(&clause, "not a word of START CHANNEL").suggest(["IGNSTATE"]));
        }
    }
    Ok(Statement::StartChannel {
        name,
        ignore_state: ignore.unwrap_or(false),
    })
}

pub(crate) fn stop_channel(second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let name = channel_name(second)?;
    let (mut mode, mut status, mut connection, mut partner, mut ignore) =
        (None, None, None, None, None);
    for clause in rest {
        match clause.keyword.as_str() {
            "MODE" => once(
                &mut mode,
                &clause,
                choice(&clause, &StopMode::ALL, StopMode::word)?,
            )?,
            "STATUS" => {
                let chosen = choice(&clause, &StopStatus::ALL, StopStatus::word)?;
                once(&mut status, &clause, chosen)?;
            }
            "CONNAME" => once(&mut connection, &clause, value(&clause)?.text.clone())?,
            "QMNAME" => {
                let item = value(&clause)?;
                let name = QueueManagerName::new(&item.text).map_err(|e| bad_name(item, &e))?;
                once(&mut partner, &clause, name)?;
            }
            "IGNSTATE" => once(&mut ignore, &clause, yes_no(&clause)?)?,
            _ => {
                let words = ["MODE", "STATUS", "CONNAME", "QMNAME", "IGNSTATE"];
                return Err(wrong(&clause, "not a word of STOP CHANNEL").suggest(words));
            }
        }
    }
    // One partner alone cannot be disabled: the channel is.
    let one_partner = connection.is_some() || partner.is_some();
    if one_partner && status == Some(StopStatus::Stopped) {
        let message = "STATUS(STOPPED) does not go with CONNAME or QMNAME";
        return Err(SyntaxError::at(second.end, "", message));
    }
    let default = if one_partner {
        StopStatus::Inactive
    } else {
        StopStatus::Stopped
    };
    Ok(Statement::StopChannel {
        name,
        mode: mode.unwrap_or_default(),
        status: status.unwrap_or(default),
        connection_name: connection,
        queue_manager: partner,
        ignore_state: ignore.unwrap_or(false),
    })
}

/// A number within limits.
fn number(clause: &Clause, limits: core::ops::RangeInclusive<u32>) -> Result<u32, SyntaxError> {
    let item = value(clause)?;
    item.text
        .parse()
        .ok()
        .filter(|n| limits.contains(n))
        .ok_or_else(|| {
            let message = format!("allowed is {} to {}", limits.start(), limits.end());
            SyntaxError::at(item.end, &item.text, message)
        })
}

/// Source: IBM MQ, "RESET CHANNEL".
pub(crate) fn reset_channel(second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let name = channel_name(second)?;
    let mut sequence = None;
    for clause in rest {
        if clause.keyword == "SEQNUM" {
            once(&mut sequence, &clause, number(&clause, 1..=SEQUENCE_MAX)?)?;
        } else {
            return Err(wrong(&clause, "not a word of RESET CHANNEL").suggest(["SEQNUM"]));
        }
    }
    Ok(Statement::ResetChannel {
        name,
        number: sequence.unwrap_or(1),
    })
}

/// Source: IBM MQ, "RESOLVE CHANNEL".
pub(crate) fn resolve_channel(second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let name = channel_name(second)?;
    let mut action = None;
    for clause in rest {
        if clause.keyword == "ACTION" {
            let chosen = choice(&clause, &ResolveAction::ALL, ResolveAction::word)?;
            once(&mut action, &clause, chosen)?;
        } else {
            return Err(wrong(&clause, "not a word of RESOLVE CHANNEL").suggest(["ACTION"]));
        }
    }
    let action =
        action.ok_or_else(|| SyntaxError::at(second.end, "", "RESOLVE CHANNEL needs an ACTION"))?;
    Ok(Statement::ResolveChannel { name, action })
}

/// Source: IBM MQ, "PING CHANNEL".
pub(crate) fn ping_channel(second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let name = channel_name(second)?;
    let mut length = None;
    for clause in rest {
        if clause.keyword == "DATALEN" {
            once(&mut length, &clause, number(&clause, PING_LENGTHS)?)?;
        } else {
            return Err(wrong(&clause, "not a word of PING CHANNEL").suggest(["DATALEN"]));
        }
    }
    Ok(Statement::PingChannel {
        name,
        data_length: length.unwrap_or(PING_LENGTH),
    })
}
