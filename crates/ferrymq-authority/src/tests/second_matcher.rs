//! The matcher against another one, written from the rules in another way: it walks the pattern's text with a small
//! backtracking glob and knows nothing of the parsed form.

use ferrymq_types::{DistinguishedName, DnAttribute, DnAttributeType};
use proptest::prelude::*;

use super::SERIAL;
use crate::PeerPattern;

/// Short, so that collisions happen.
const KEYWORDS: [&str; 5] = ["CN", "OU", "DC", "O", "ST"];

#[derive(Debug, Clone)]
struct Wanted {
    keyword: &'static str,
    start: bool,
    text: String,
    end: bool,
    quoted: bool,
}

impl Wanted {
    /// The element as an operator would write it.
    fn written(&self) -> String {
        let mut text = String::new();
        let count = self.text.chars().count();
        for (index, c) in self.text.chars().enumerate() {
            let at_end = index == 0 || index + 1 == count;
            let escape = match c {
                '"' | '\\' => true,
                ',' | ';' | '+' => !self.quoted,
                '*' => at_end,
                ' ' => at_end && !self.quoted,
                _ => false,
            };
            if escape {
                text.push('\\');
            }
            text.push(c);
        }
        let star = |yes| if yes { "*" } else { "" };
        let value = format!("{}{text}{}", star(self.start), star(self.end));
        if self.quoted {
            format!("{}=\"{value}\"", self.keyword)
        } else {
            format!("{}={value}", self.keyword)
        }
    }

    fn glob(&self) -> Vec<Option<char>> {
        let mut glob = Vec::new();
        if self.start {
            glob.push(None);
        }
        glob.extend(self.text.chars().map(|c| Some(c.to_ascii_lowercase())));
        if self.end {
            glob.push(None);
        }
        glob
    }
}

fn glob_matches(glob: &[Option<char>], value: &[char]) -> bool {
    match glob.split_first() {
        None => value.is_empty(),
        Some((None, rest)) => (0..=value.len()).any(|skip| glob_matches(rest, &value[skip..])),
        Some((Some(c), rest)) => {
            value.first().map(char::to_ascii_lowercase) == Some(*c)
                && glob_matches(rest, &value[1..])
        }
    }
}

fn naive(wanted: &[Wanted], name: &DistinguishedName) -> bool {
    KEYWORDS.iter().all(|keyword| {
        let kind = DnAttributeType::from_keyword(keyword).unwrap();
        let asked: Vec<&Wanted> = wanted.iter().filter(|w| w.keyword == *keyword).collect();
        if asked.is_empty() {
            return true;
        }
        let have: Vec<&DnAttribute> = name.attributes.iter().filter(|a| a.kind == kind).collect();
        let ordered = *keyword == "OU" || *keyword == "DC";
        let mut sets: Vec<usize> = have.iter().map(|a| a.rdn).collect();
        sets.dedup();
        if have.len() < asked.len()
            || (!ordered && have.len() != 1)
            || (ordered && sets.len() != have.len())
        {
            return false;
        }
        asked
            .iter()
            .zip(have)
            .all(|(asked, have)| match &have.value {
                None => false,
                Some(value) => {
                    let chars: Vec<char> = value.chars().collect();
                    !chars.contains(&'\0') && glob_matches(&asked.glob(), &chars)
                }
            })
    })
}

fn wanted() -> impl Strategy<Value = Wanted> {
    (
        prop::sample::select(&KEYWORDS[..]),
        any::<bool>(),
        "[aAb*,;+\" \\\\é=]{0,4}",
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(keyword, start, text, end, quoted)| Wanted {
            keyword,
            start: start || text.is_empty(),
            text,
            end,
            quoted,
        })
}

fn wanted_list() -> impl Strategy<Value = Vec<Wanted>> {
    prop::collection::vec(wanted(), 1..5).prop_map(|mut list| {
        let mut seen: Vec<&str> = Vec::new();
        list.retain(|w| {
            let fresh = w.keyword == "OU" || w.keyword == "DC" || !seen.contains(&w.keyword);
            seen.push(w.keyword);
            fresh
        });
        list
    })
}

fn certificate() -> impl Strategy<Value = DistinguishedName> {
    let value = prop_oneof![
        8 => "[aAb*,;+\" \\\\é=]{0,4}".prop_map(Some),
        1 => Just(None),
        1 => Just(Some("a\0".to_owned())),
    ];
    prop::collection::vec(
        (
            prop::sample::select(&KEYWORDS[..]),
            value,
            prop::bool::weighted(0.8),
        ),
        0..6,
    )
    .prop_map(|list| {
        let mut rdn = 0;
        let attributes = list
            .into_iter()
            .map(|(keyword, value, next)| {
                if next {
                    rdn += 1;
                }
                DnAttribute {
                    kind: DnAttributeType::from_keyword(keyword).unwrap(),
                    value,
                    rdn,
                }
            })
            .collect();
        DistinguishedName { attributes }
    })
}

/// A name that was made to fit, with a fair chance: what a pattern asks for, its open ends filled.
fn fitting(wanted: &[Wanted], fill: &str) -> DistinguishedName {
    DistinguishedName {
        attributes: wanted
            .iter()
            .enumerate()
            .map(|(rdn, w)| DnAttribute {
                kind: DnAttributeType::from_keyword(w.keyword).unwrap(),
                value: Some(format!(
                    "{}{}{}",
                    if w.start { fill } else { "" },
                    w.text.to_ascii_uppercase(),
                    if w.end { fill } else { "" }
                )),
                rdn,
            })
            .collect(),
    }
}

fn text_of(wanted: &[Wanted]) -> String {
    wanted
        .iter()
        .map(Wanted::written)
        .collect::<Vec<_>>()
        .join(" , ")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn sec_j8_two_matchers_agree(wanted in wanted_list(), name in certificate()) {
        let pattern = PeerPattern::parse(&text_of(&wanted)).unwrap();
        prop_assert_eq!(pattern.matches(&name, SERIAL).is_ok(), naive(&wanted, &name));
    }

    #[test]
    fn sec_j8_a_name_made_to_fit_matches_in_both(wanted in wanted_list(), fill in "[ab,]{0,3}") {
        let name = fitting(&wanted, &fill);
        let pattern = PeerPattern::parse(&text_of(&wanted)).unwrap();
        prop_assert!(naive(&wanted, &name));
        prop_assert_eq!(pattern.matches(&name, SERIAL), Ok(()));
    }

    #[test]
    fn sec_j8_a_pattern_prints_and_parses_back(wanted in wanted_list()) {
        let pattern = PeerPattern::parse(&text_of(&wanted)).unwrap();
        prop_assert_eq!(PeerPattern::parse(&pattern.to_string()), Ok(pattern));
    }

    #[test]
    fn sec_j8_any_text_is_a_pattern_or_an_error_inside_it(text in "(CN|OU|O|SERIALNUMBER|[a-zA-Z]|[=,;*+\"\\\\ ]|[0-9A-F]{2}|\\PC){0,20}") {
        match PeerPattern::parse(&text) {
            Ok(pattern) => prop_assert_eq!(PeerPattern::parse(&pattern.to_string()), Ok(pattern)),
            Err(error) => prop_assert!(error.position >= 1 && error.position <= text.chars().count() + 1),
        }
    }
}
