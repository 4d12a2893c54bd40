//! Messages that the queue manager writes about itself, readable: events (`MQEVENT`) and trigger messages (`MQTRIG`).

use ferrymq_client::wire;
use ferrymq_types::{MessageDescriptor, PcfMessage, PcfValue, TriggerMessage};
use serde_json::{Map, Value};

/// What such a message says, name by name; `None` if it is no such message.
fn fields(d: &wire::MessageDescriptor, data: &[u8]) -> Option<Vec<(String, Value)>> {
    match d.format.as_str() {
        MessageDescriptor::FORMAT_EVENT => {
            let event = PcfMessage::read(data, d.encoding).ok()?;
            let reason = event.reason;
            let name = reason.name().map_or(Value::Null, Value::from);
            let mut fields = vec![
                ("reason".to_owned(), name),
                ("mqrc".to_owned(), reason.get().into()),
            ];
            let parameters = event.parameters.into_iter();
            fields.extend(parameters.map(|(parameter, v)| (parameter.to_string(), value(v))));
            Some(fields)
        }
        MessageDescriptor::FORMAT_TRIGGER => {
            let trigger = TriggerMessage::read(data).ok()?;
            let text = |name: &str, text: String| (name.to_owned(), Value::from(text));
            Some(vec![
                text("QName", trigger.queue),
                text("ProcessName", trigger.process),
                text("TriggerData", trigger.trigger_data),
                ("ApplType".to_owned(), trigger.application_type.into()),
                text("ApplId", trigger.application_id),
                text("EnvData", trigger.environment_data),
                text("UserData", trigger.user_data),
            ])
        }
        _ => None,
    }
}

fn value(value: PcfValue) -> Value {
    match value {
        PcfValue::Integer(number) => number.into(),
        PcfValue::Integers(numbers) => numbers.into(),
        PcfValue::Text(text) => text.into(),
        PcfValue::Texts(texts) => texts.into(),
        PcfValue::Bytes(bytes) => bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
            .into(),
    }
}

/// As JSON, with the fields in their order.
pub(crate) fn json(d: &wire::MessageDescriptor, data: &[u8]) -> Option<Value> {
    let fields: Map<String, Value> = fields(d, data)?.into_iter().collect();
    Some(Value::Object(fields))
}

/// In a line.
pub(crate) fn line(d: &wire::MessageDescriptor, data: &[u8]) -> Option<String> {
    let words: Vec<String> = fields(d, data)?
        .into_iter()
        .filter(|(_, value)| !value.is_null() && value.as_str() != Some(""))
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}({text})"),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => {
                format!("{name}({value})")
            }
        })
        .collect();
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrymq_types::{PCF_COMMAND_PERFORMANCE_EVENT, PcfParameter, ReasonCode};

    fn of(format: &str) -> wire::MessageDescriptor {
        wire::MessageDescriptor {
            format: format.to_owned(),
            encoding: 546,
            ..wire::MessageDescriptor::default()
        }
    }

    #[test]
    fn an_event_is_shown_by_its_reason_and_parameters() {
        let event = PcfMessage::event(PCF_COMMAND_PERFORMANCE_EVENT, 1, ReasonCode::new(2224))
            .text(PcfParameter::BASE_OBJECT_NAME, "ORDERS")
            .number(PcfParameter::HIGH_QUEUE_DEPTH, 8)
            .to_bytes();
        assert_eq!(
            line(&of("MQEVENT"), &event).unwrap(),
            "reason(MQRC_Q_DEPTH_HIGH) mqrc(2224) MQCA_BASE_OBJECT_NAME(ORDERS) MQIA_HIGH_Q_DEPTH(8)"
        );
        let json = json(&of("MQEVENT"), &event).unwrap();
        assert_eq!(json["mqrc"], 2224);
        assert_eq!(json["MQIA_HIGH_Q_DEPTH"], 8);
    }

    #[test]
    fn a_trigger_message_is_shown_by_its_fields() {
        let trigger = TriggerMessage {
            queue: "ORDERS".into(),
            application_id: "/usr/bin/orders".into(),
            application_type: 6,
            ..TriggerMessage::default()
        };
        let bytes = trigger.to_bytes();
        assert_eq!(
            line(&of("MQTRIG"), &bytes).unwrap(),
            "QName(ORDERS) ApplType(6) ApplId(/usr/bin/orders)"
        );
        assert_eq!(json(&of("MQTRIG"), &bytes).unwrap()["ProcessName"], "");
    }

    #[test]
    fn other_data_is_left_alone() {
        assert_eq!(line(&of("MQSTR"), b"text"), None);
        assert_eq!(line(&of("MQEVENT"), b"no event"), None);
        assert_eq!(line(&of("MQTRIG"), b"TM  "), None);
    }
}
