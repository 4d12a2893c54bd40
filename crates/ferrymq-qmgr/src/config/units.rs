//! Durations and sizes as text with units: `"30s"`, `"64MiB"`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// A length of time, written `250ms`, `30s`, `5m`, `2h` or `1d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval(pub Duration);

/// A number of bytes, written `512`, `4KiB`, `64MiB` or `1GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    Some((digits.parse().ok()?, unit.trim()))
}

impl Interval {
    /// Reads `text`; `None` if it has no unit or is no number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (n, unit) = split(text.trim())?;
        let ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        Some(Self(Duration::from_millis(n.checked_mul(ms)?)))
    }
}

impl ByteSize {
    /// Reads `text`; `None` if the unit is not known or it is no number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (n, unit) = split(text.trim())?;
        let factor: u64 = match unit {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            _ => return None,
        };
        n.checked_mul(factor).map(Self)
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "{text:?} is no duration; write 250ms, 30s, 5m, 2h or 1d"
            ))
        })
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "{text:?} is no size; write 512, 4KiB, 64MiB or 1GiB"
            ))
        })
    }
}
