#![allow(
    clippy::arithmetic_side_effects,
    reason = "tests count small collections"
)]

mod channel_rules;
mod client_authentication;
mod matching;
mod parsing;
mod second_matcher;

use ferrymq_types::{DistinguishedName, DnAttribute, DnAttributeType};

use crate::{MismatchKind, PeerPattern};

const SERIAL: &[u8] = &[0x78, 0x40, 0x26, 0x54, 0xE5, 0xD4, 0x80, 0xE4];

/// A name from `(keyword, value)`, each in a set of its own, in the order of the encoding.
fn name(attributes: &[(&str, &str)]) -> DistinguishedName {
    DistinguishedName {
        attributes: attributes
            .iter()
            .enumerate()
            .map(|(rdn, (keyword, value))| attribute(keyword, Some(value), rdn))
            .collect(),
    }
}

fn attribute(keyword: &str, value: Option<&str>, rdn: usize) -> DnAttribute {
    DnAttribute {
        kind: DnAttributeType::from_keyword(keyword).unwrap(),
        value: value.map(str::to_owned),
        rdn,
    }
}

fn pattern(text: &str) -> PeerPattern {
    match PeerPattern::parse(text) {
        Ok(pattern) => pattern,
        Err(error) => panic!("{text}: {error}"),
    }
}

#[track_caller]
fn check(text: &str, name: &DistinguishedName, expected: Result<(), MismatchKind>) {
    let got = pattern(text)
        .matches(name, SERIAL)
        .map_err(|mismatch| mismatch.kind);
    assert_eq!(got, expected, "{text} against {name}");
}

fn different(printed: &str) -> Result<(), MismatchKind> {
    Err(MismatchKind::Different(printed.to_owned()))
}
