//! SET CHLAUTH and REFRESH SECURITY, from words.

use ferrymq_objects::{
    ChannelRuleType, RuleChange, channel_rule_attribute, channel_rule_attributes,
    is_channel_profile,
};

use crate::SyntaxError;
use crate::lex::Clause;
use crate::parse::{Clauses, Collector, choice, once, value, wrong};
use crate::statement::{Statement, settable_words};

/// A profile: a channel name, or a pattern with `*`.
pub(crate) fn profile(clause: &Clause) -> Result<String, SyntaxError> {
    let item = value(clause)?;
    if is_channel_profile(&item.text) {
        return Ok(item.text.clone());
    }
    let message = "not a channel name of at most 20 characters, nor a pattern of them with *";
    Err(SyntaxError::at(item.end, &item.text, message))
}

pub(crate) fn rule_type(clause: &Clause) -> Result<ChannelRuleType, SyntaxError> {
    choice(clause, &ChannelRuleType::ALL, ChannelRuleType::type_word)
}

pub(crate) fn set_channel_rule(second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    let profile = profile(second)?;
    let (mut found, mut change) = (None, None);
    let mut attributes = Vec::new();
    for clause in rest {
        match clause.keyword.as_str() {
            "TYPE" => once(&mut found, &clause, rule_type(&clause)?)?,
            "ACTION" => {
                let chosen = choice(&clause, &RuleChange::ALL, RuleChange::type_word)?;
                once(&mut change, &clause, chosen)?;
            }
            _ => attributes.push(clause),
        }
    }
    let Some(rule_type) = found else {
        return Err(SyntaxError::at(second.end, "", "TYPE is required"));
    };
    if rule_type == ChannelRuleType::BlockAddress && profile != "*" {
        let message = "TYPE(BLOCKADDR) is for all channels: CHLAUTH('*')";
        return Err(wrong(second, message));
    }
    let mut collector = Collector::new("CHLAUTH".to_owned());
    for clause in &attributes {
        // What it says if nothing is asked for.
        let asks_nothing =
            clause.keyword == "CHCKCLNT" && value(clause)?.text.eq_ignore_ascii_case("ASQMGR");
        if !asks_nothing {
            collector.read(
                clause,
                |w| channel_rule_attribute(Some(rule_type), w),
                || {
                    let mut words = settable_words(channel_rule_attributes(Some(rule_type)));
                    words.extend(["TYPE", "ACTION"]);
                    words
                },
            )?;
        }
    }
    Ok(collector.finish(|attributes| Statement::SetChannelRule {
        profile,
        rule_type,
        attributes,
        change: change.unwrap_or_default(),
    }))
}

/// `REFRESH SECURITY`: nothing is cached that a change of definitions does not change, and certificates are looked at again whenever
/// their files change.
pub(crate) fn refresh_security(second: &Clause, rest: Clauses) -> Result<Statement, SyntaxError> {
    if second.items.is_some() && value(second)?.text != "*" {
        return Err(wrong(second, "SECURITY takes * or nothing"));
    }
    let mut found = None;
    for clause in rest {
        if clause.keyword != "TYPE" {
            return Err(wrong(&clause, "not a word of REFRESH SECURITY").suggest(["TYPE"]));
        }
        let types = ["AUTHSERV", "CONNAUTH", "SSL"];
        let chosen = choice(&clause, &types, core::convert::identity)?;
        once(&mut found, &clause, chosen)?;
    }
    Ok(Statement::RefreshSecurity)
}
