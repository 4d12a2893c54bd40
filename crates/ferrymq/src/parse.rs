//! Values that are typed: durations, names, ids, counts, times.

use core::fmt;
use core::str::FromStr;
use std::time::Duration;

use ferrymq_types::{
    CorrelationId, MessageId, Property, PropertyValue, QueueManagerName, QueueName, Timestamp,
};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Highest expiry, in tenths of a second.
///
/// Source: IBM MQ, "Expiry (MQLONG)".
const EXPIRY_TENTHS_MAX: u128 = 999_999_999;

/// Characters of a format name.
const FORMAT_LENGTH_MAX: usize = 8;

/// A duration with its unit: `500ms`, `10s`, `5m`, `2h`, `30d`; `0` needs none.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let wrong = || format!("`{text}` is no duration: write 500ms, 10s, 5m, 2h or 30d");
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(unit_ms)
        .map(Duration::from_millis)
        .ok_or_else(wrong)
}

/// A number of bytes: `1024`, `64KiB`, `1MiB`, `2GiB`.
pub(crate) fn byte_count(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is no number of bytes: write 1024, 64KiB, 1MiB or 2GiB");
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: usize = number.parse().map_err(|_| wrong())?;
    let unit: usize = match unit {
        "" => 1,
        "KiB" => 1024,
        "MiB" => 1024 * 1024,
        "GiB" => 1024 * 1024 * 1024,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

/// The length of a message that says who sent it and when.
pub(crate) fn message_length(text: &str) -> Result<usize, String> {
    let length = byte_count(text)?;
    let longest = ferrymq_types::MESSAGE_LENGTH_MAX as usize;
    if (crate::commands::bench::BODY_LENGTH_MIN..=longest).contains(&length) {
        Ok(length)
    } else {
        Err(format!(
            "a message of the load has {} to {longest} bytes",
            crate::commands::bench::BODY_LENGTH_MIN
        ))
    }
}

/// An expiry: a duration, as tenths of a second.
pub(crate) fn expiry(text: &str) -> Result<u32, String> {
    let tenths = duration(text)?.as_millis().div_ceil(100);
    match u32::try_from(tenths) {
        Ok(tenths) if tenths > 0 && u128::from(tenths) <= EXPIRY_TENTHS_MAX => Ok(tenths),
        Ok(_) | Err(_) => Err("expiry is more than 0 and at most 99999999s".to_owned()),
    }
}

/// A name of IBM MQ's: its own type knows the rules.
pub(crate) fn name<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn not_an_id(text: &str) -> String {
    format!("`{text}` is no id: write up to 48 hexadecimal digits, two for each byte")
}

/// A message id in hexadecimal digits.
pub(crate) fn message_id(text: &str) -> Result<MessageId, String> {
    MessageId::from_hex(text).ok_or_else(|| not_an_id(text))
}

/// A correlation id in hexadecimal digits.
pub(crate) fn correlation_id(text: &str) -> Result<CorrelationId, String> {
    CorrelationId::from_hex(text).ok_or_else(|| not_an_id(text))
}

/// `name=value`, or `name=value:type`; what follows the last colon and is no type belongs to the value.
pub(crate) fn property(text: &str) -> Result<Property, String> {
    const TYPES: [&str; 10] = [
        "null", "boolean", "bytes", "int8", "int16", "int32", "int64", "float32", "float64",
        "string",
    ];
    let (name, rest) = text
        .split_once('=')
        .ok_or_else(|| "expected NAME=VALUE or NAME=VALUE:TYPE".to_owned())?;
    let (value, type_name) = match rest.rsplit_once(':') {
        Some((value, type_name)) if TYPES.contains(&type_name) => (value, type_name),
        Some(_) | None => (rest, "string"),
    };
    let value = PropertyValue::parse(value, type_name)
        .map_err(|_| format!("{value:?} is no value of type {type_name}"))?;
    Ok(Property {
        name: name.to_owned(),
        value,
    })
}

/// The name of a format.
pub(crate) fn format_name(text: &str) -> Result<String, String> {
    if text.len() > FORMAT_LENGTH_MAX || !text.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
        return Err(format!(
            "a format has at most {FORMAT_LENGTH_MAX} printable characters"
        ));
    }
    Ok(text.trim_end().to_owned())
}

/// A queue, here or at another queue manager: `QUEUE[@QMGR]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueAt {
    pub(crate) queue: QueueName,
    pub(crate) queue_manager: Option<QueueManagerName>,
}

impl QueueAt {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (queue, queue_manager) = match text.split_once('@') {
            Some((queue, queue_manager)) => (queue, Some(name(queue_manager)?)),
            None => (text, None),
        };
        Ok(Self {
            queue: name(queue)?,
            queue_manager,
        })
    }
}

impl fmt::Display for QueueAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.queue_manager {
            Some(queue_manager) => write!(f, "{}@{queue_manager}", self.queue),
            None => write!(f, "{}", self.queue),
        }
    }
}

/// How many messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// Exactly so many.
    Exactly(u64),
    /// As many as there are.
    All,
}

impl Count {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            number => match number.parse() {
                Ok(number) if number > 0 => Ok(Self::Exactly(number)),
                Ok(_) | Err(_) => Err(format!("`{text}` is neither a number above 0 nor `all`")),
            },
        }
    }

    /// Whether `done` messages are enough.
    pub(crate) fn is_reached_by(self, done: u64) -> bool {
        match self {
            Self::Exactly(count) => done >= count,
            Self::All => false,
        }
    }
}

/// The beginning of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// From this time on.
    At(Timestamp),
    /// So long before now.
    Ago(Duration),
}

impl Since {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(ago) = duration(text) {
            return Ok(Self::Ago(ago));
        }
        let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| {
            format!(
                "`{text}` is neither a time such as 2026-12-01T00:00:00Z nor a duration such as 10m"
            )
        })?;
        let ms = at.unix_timestamp_nanos() / 1_000_000;
        Ok(Self::At(Timestamp::from_millis(
            u64::try_from(ms).unwrap_or(0),
        )))
    }

    /// The time that is meant, seen from `now`.
    pub(crate) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => {
                let ago_ms = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
                Timestamp::from_millis(now.as_millis().saturating_sub(ago_ms))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let check = |text, ms| assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        check("0", 0);
        check("0s", 0);
        check("500ms", 500);
        check("10s", 10_000);
        check("5m", 300_000);
        check("2h", 7_200_000);
        check("30d", 2_592_000_000);
        for bad in [
            "",
            "10",
            "s",
            "-1s",
            "1.5s",
            "10 s",
            "1w",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_property_has_a_name_a_value_and_perhaps_a_type() {
        let read = |text: &str| property(text).map(|p| (p.name, p.value));
        let string = |text: &str| PropertyValue::String(text.to_owned());
        assert_eq!(read("a=b"), Ok(("a".to_owned(), string("b"))));
        assert_eq!(read("a=b=c"), Ok(("a".to_owned(), string("b=c"))));
        assert_eq!(read("a=12:30"), Ok(("a".to_owned(), string("12:30"))));
        assert_eq!(
            read("a=12:int8:string"),
            Ok(("a".to_owned(), string("12:int8")))
        );
        assert_eq!(
            read("a=12:int8"),
            Ok(("a".to_owned(), PropertyValue::Int8(12)))
        );
        assert_eq!(read("a=:null"), Ok(("a".to_owned(), PropertyValue::Null)));
        assert!(read("a").is_err() && read("a=300:int8").is_err());
    }

    #[test]
    fn expiry_is_in_tenths_and_never_none() {
        assert_eq!(expiry("10m"), Ok(6000));
        assert_eq!(expiry("1ms"), Ok(1));
        for bad in ["0", "0s", "2000d"] {
            assert!(expiry(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_queue_may_be_at_another_queue_manager() {
        let here = QueueAt::parse("A.B").unwrap();
        assert_eq!(
            (here.queue.as_str(), here.queue_manager.as_ref()),
            ("A.B", None)
        );
        let there = QueueAt::parse("A@QM2").unwrap();
        assert_eq!(
            there.queue_manager.as_ref().map(|q| q.as_str()),
            Some("QM2")
        );
        assert_eq!(there.to_string(), "A@QM2");
        for bad in ["", "@QM2", "A@", "A B", "A@B@C"] {
            assert!(QueueAt::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_are_hexadecimal_and_padded() {
        assert_eq!(message_id("0aFF").unwrap().as_bytes()[..3], [0x0a, 0xff, 0]);
        for bad in ["0", "xy", &"00".repeat(25)] {
            assert!(
                message_id(bad).is_err() && correlation_id(bad).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn counts_are_numbers_above_zero_or_all() {
        assert_eq!(Count::parse("all"), Ok(Count::All));
        assert_eq!(Count::parse("3"), Ok(Count::Exactly(3)));
        for bad in ["0", "-1", "", "ALL", "x"] {
            assert!(Count::parse(bad).is_err(), "{bad}");
        }
        assert!(Count::Exactly(2).is_reached_by(2) && !Count::Exactly(2).is_reached_by(1));
        assert!(!Count::All.is_reached_by(u64::MAX));
    }

    #[test]
    fn a_period_begins_at_a_time_or_some_time_ago() {
        let now = Timestamp::from_millis(1_000_000);
        assert_eq!(
            Since::parse("10m").unwrap().at(now),
            Timestamp::from_millis(400_000)
        );
        assert_eq!(Since::parse("1d").unwrap().at(now), Timestamp::ZERO);
        let at = Since::parse("2000-02-29T01:00:00+01:00").unwrap();
        assert_eq!(at.at(now), Timestamp::from_millis(951_782_400_000));
        assert!(Since::parse("yesterday").is_err());
    }

    #[test]
    fn a_format_has_eight_characters() {
        assert_eq!(format_name("MQSTR   "), Ok("MQSTR".to_owned()));
        assert!(format_name("ninechars").is_err() && format_name("\u{e9}").is_err());
    }
}
