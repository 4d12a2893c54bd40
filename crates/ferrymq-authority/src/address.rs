//! Patterns for network addresses: `192.0.2.*`, `10.1-8.*.7`, `2001:db8:*`.

use core::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// A pattern for the address of a partner. `ADDRESS`, `ADDRLIST`.
///
/// An address by itself, or parts of one (four of IPv4, eight of IPv6) each of which is a number, a range `1-8`, or `*`. A `*` stands for one
/// part or more, so that `*` by itself is every address. An IPv4 address that came in over IPv6 is an IPv4 address.
///
/// Source: IBM MQ, "Generic IP addresses". Ours: host names are refused, since names are not looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressPattern {
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Any,
    One(IpAddr),
    Parts { v6: bool, parts: Vec<Part> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Range(u16, u16),
    Any,
}

/// Not a pattern for addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPatternError;

impl fmt::Display for AddressPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an IPv4 or IPv6 address whose parts may be ranges (1-8) or *, such as 192.0.2.*; host names are not looked up",
        )
    }
}

impl core::error::Error for AddressPatternError {}

impl AddressPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`AddressPatternError`] if it is none.
    pub fn parse(text: &str) -> Result<Self, AddressPatternError> {
        let text = text.trim_matches(' ');
        if text == "*" {
            return Ok(Self { kind: Kind::Any });
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self {
                kind: Kind::One(address.to_canonical()),
            });
        }
        let v6 = text.contains(':');
        let (separator, count, radix, max) = if v6 {
            (':', 8, 16, u16::MAX)
        } else {
            ('.', 4, 10, 255)
        };
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            u16::from_str_radix(digits, radix)
                .ok()
                .filter(|n| plain && *n <= max)
                .ok_or(AddressPatternError)
        };
        let mut parts = Vec::new();
        for part in text.split(separator) {
            parts.push(match part.split_once('-') {
                None if part == "*" => Part::Any,
                None => {
                    let number = number(part)?;
                    Part::Range(number, number)
                }
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return Err(AddressPatternError);
                    }
                    Part::Range(first, last)
                }
            });
            if parts.len() > count {
                return Err(AddressPatternError);
            }
        }
        // Parts that nothing stands for would match no address.
        if parts.len() < count && !parts.contains(&Part::Any) {
            return Err(AddressPatternError);
        }
        Ok(Self {
            kind: Kind::Parts { v6, parts },
        })
    }

    /// Whether an address is meant.
    #[must_use]
    pub fn matches(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match &self.kind {
            Kind::Any => true,
            Kind::One(one) => *one == address,
            Kind::Parts { v6, parts } => match address {
                IpAddr::V4(v4) if !v6 => covers(parts, &v4.octets().map(u16::from)),
                IpAddr::V6(v6_address) if *v6 => covers(parts, &Ipv6Addr::segments(&v6_address)),
                IpAddr::V4(_) | IpAddr::V6(_) => false,
            },
        }
    }

    /// How exact it is; the higher the more. Exact over pattern, then fewer `*`, then more that is said of the parts.
    pub(crate) fn rank(&self) -> (u8, usize, usize) {
        match &self.kind {
            Kind::Any => (0, 0, 0),
            Kind::One(_) => (2, 0, 0),
            Kind::Parts { parts, .. } => {
                let any = parts.iter().filter(|p| **p == Part::Any).count();
                let exact = |p: &&Part| matches!(p, Part::Range(first, last) if first == last);
                let said = parts.len().saturating_sub(any);
                let exact = parts.iter().filter(exact).count();
                (
                    1,
                    usize::MAX.saturating_sub(any),
                    said.saturating_mul(16).saturating_add(exact),
                )
            }
        }
    }
}

/// Whether parts cover all numbers, a `*` one or more of them. At most eight of each, so that trying is cheap.
fn covers(parts: &[Part], numbers: &[u16]) -> bool {
    match (parts.split_first(), numbers.split_first()) {
        (None, None) => true,
        (None, Some(_)) | (Some(_), None) => false,
        (Some((Part::Range(first, last), parts)), Some((number, numbers))) => {
            (first..=last).contains(&number) && covers(parts, numbers)
        }
        (Some((Part::Any, rest)), Some((_, others))) => {
            covers(rest, others) || covers(parts, others)
        }
    }
}
