//! The definitions of a queue manager as the commands that make them: what `dmpmqcfg` gives.

use ferrymq_objects::{Attributes, ObjectKind, QueueManager, RuleChange};

use crate::statement::{quote, write_attribute};

/// Every object that commands made, a command each: the queue manager, queues of all kinds by name, processes, channels, channel
/// authentication records. Applied to a queue manager that has nothing else, it exports the same lines.
///
/// Every attribute is named, so that it does not matter what the default objects say where it is applied. What cannot be set, such as
/// `ALTDATE`, is not there, and neither are dynamic queues.
///
/// Source: IBM MQ, `dmpmqcfg`: one attribute a line, three blanks in, ` +` at its end.
#[must_use]
pub fn export(queue_manager: &QueueManager) -> Vec<String> {
    let mut lines = Vec::new();
    command(
        &mut lines,
        "ALTER QMGR",
        &queue_manager.attributes.settings(),
        "FORCE",
    );
    for queue in queue_manager.queues.values() {
        let begin = define(queue.kind(), queue.base().name.as_str());
        command(&mut lines, &begin, &queue.settings(), "REPLACE");
    }
    for process in queue_manager.processes.values() {
        let begin = define(ObjectKind::Process, process.name.as_str());
        command(&mut lines, &begin, &process.settings(), "REPLACE");
    }
    for channel in queue_manager.channels.values() {
        let begin = define(channel.kind(), channel.base().name.as_str());
        command(&mut lines, &begin, &channel.settings(), "REPLACE");
    }
    for rule in queue_manager.channel_rules.values().flatten() {
        let (profile, of_type) = (quote(&rule.profile), rule.rule_type.type_word());
        let begin = format!("SET CHLAUTH({profile}) TYPE({of_type})");
        let end = format!("ACTION({})", RuleChange::Replace.type_word());
        command(&mut lines, &begin, &rule.to_command(), &end);
    }
    lines
}

fn define(kind: ObjectKind, name: &str) -> String {
    let mut text = format!("DEFINE {}({})", kind.noun(), quote(name));
    if kind.is_channel() {
        text.push_str(&format!(" CHLTYPE({})", kind.type_word()));
    }
    text
}

/// A command over several lines.
fn command(lines: &mut Vec<String>, begin: &str, attributes: &Attributes, end: &str) {
    lines.push(format!("{begin} +"));
    for (keyword, value) in attributes.iter() {
        lines.push(format!("  {} +", Attribute(keyword, value)));
    }
    lines.push(format!("   {end}"));
}

/// ` KEYWORD(value)`.
struct Attribute<'a>(&'a str, &'a ferrymq_objects::AttributeValue);

impl core::fmt::Display for Attribute<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write_attribute(f, self.0, self.1)
    }
}
