//! Any selector: print and parse, any bytes, and a second evaluator that shares nothing with the first.

use proptest::prelude::*;
use proptest::strategy::LazyJust;

use crate::tests::{Properties, properties};
use crate::{Selector, Truth, Value};

/// A condition and its text, made together.
#[derive(Debug, Clone)]
enum Made {
    Boolean(&'static str),
    Compare(Number, &'static str, Number),
    Between(Number, Number, Number, bool),
    Text(&'static str, bool, String),
    Like(&'static str, bool, Vec<Piece>),
    In(&'static str, bool, Vec<String>),
    Null(&'static str, bool),
    Not(Box<Made>),
    And(Box<Made>, Box<Made>),
    Or(Box<Made>, Box<Made>),
}

#[derive(Debug, Clone)]
enum Number {
    Exact(i32),
    Quarters(i16),
    Named(&'static str),
    Negated(Box<Number>),
    Joined(Box<Number>, char, Box<Number>),
}

#[derive(Debug, Clone)]
enum Piece {
    Any,
    One,
    Is(char),
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Number {
    fn text(&self) -> String {
        match self {
            Self::Exact(n) => n.to_string(),
            Self::Quarters(n) => format!("{:?}", f64::from(*n) / 4.0),
            Self::Named(name) => (*name).to_owned(),
            Self::Negated(inner) => format!("-({})", inner.text()),
            Self::Joined(a, op, b) => format!("({} {op} {})", a.text(), b.text()),
        }
    }

    /// Exact numbers as wide integers; approximate ones as doubles.
    fn value(&self, fields: &Properties) -> Option<Result<i128, f64>> {
        let narrow = |n: i128| i64::try_from(n).ok().map(|n| Ok(i128::from(n)));
        match self {
            Self::Exact(n) => Some(Ok(i128::from(*n))),
            Self::Quarters(n) => Some(Err(f64::from(*n) / 4.0)),
            Self::Named(name) => match fields.0.get(*name)? {
                Value::Integer(n) => Some(Ok(i128::from(*n))),
                Value::Float(n) => Some(Err(*n)),
                Value::Boolean(_) | Value::String(_) | Value::Bytes(_) => None,
            },
            Self::Negated(inner) => match inner.value(fields)? {
                Ok(n) => narrow(-n),
                Err(n) => Some(Err(-n)),
            },
            Self::Joined(a, op, b) => {
                let (a, b) = (a.value(fields)?, b.value(fields)?);
                if let (Ok(a), Ok(b)) = (a, b) {
                    return match op {
                        '+' => narrow(a + b),
                        '-' => narrow(a - b),
                        '*' => narrow(a * b),
                        _ => a.checked_div(b).and_then(narrow),
                    };
                }
                let (a, b) = (double(a), double(b));
                Some(Err(match op {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ => a / b,
                }))
            }
        }
    }
}

fn double(n: Result<i128, f64>) -> f64 {
    n.map_or_else(|n| n, |n| i64::try_from(n).unwrap() as f64)
}

fn compared(a: Option<Result<i128, f64>>, op: &str, b: Option<Result<i128, f64>>) -> Option<bool> {
    let (a, b) = (a?, b?);
    let order = match (a, b) {
        (Ok(a), Ok(b)) => Some(a.cmp(&b)),
        _ => double(a).partial_cmp(&double(b)),
    };
    Some(match op {
        "=" => order.is_some_and(|o| o.is_eq()),
        "<>" => !order.is_some_and(|o| o.is_eq()),
        "<" => order.is_some_and(|o| o.is_lt()),
        "<=" => order.is_some_and(|o| o.is_le()),
        ">" => order.is_some_and(|o| o.is_gt()),
        _ => order.is_some_and(|o| o.is_ge()),
    })
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    if a == Some(false) || b == Some(false) {
        return Some(false);
    }
    Some(a? && b?)
}

/// The slow way: try every split.
fn like(value: &[char], pattern: &[Piece]) -> bool {
    match pattern.split_first() {
        None => value.is_empty(),
        Some((Piece::Any, rest)) => (0..=value.len()).any(|n| like(&value[n..], rest)),
        Some((Piece::One, rest)) => !value.is_empty() && like(&value[1..], rest),
        Some((Piece::Is(c), rest)) => value.first() == Some(c) && like(&value[1..], rest),
    }
}

impl Made {
    fn text(&self) -> String {
        match self {
            Self::Boolean(name) => (*name).to_owned(),
            Self::Compare(a, op, b) => format!("{} {op} {}", a.text(), b.text()),
            Self::Between(v, a, b, negated) => {
                let (v, a, b) = (v.text(), a.text(), b.text());
                format!("{v} {}BETWEEN {a} AND {b}", not(*negated))
            }
            Self::Text(name, negated, text) => {
                format!(
                    "{name} {} {}",
                    if *negated { "<>" } else { "=" },
                    quoted(text)
                )
            }
            Self::Like(name, negated, pieces) => {
                let pieces = pieces.iter().map(|piece| match piece {
                    Piece::Any => "%".to_owned(),
                    Piece::One => "_".to_owned(),
                    Piece::Is(c) if "%_!".contains(*c) => format!("!{c}"),
                    Piece::Is(c) => c.to_string(),
                });
                let pattern = quoted(&pieces.collect::<String>());
                format!("{name} {}LIKE {pattern} ESCAPE '!'", not(*negated))
            }
            Self::In(name, negated, strings) => {
                let strings: Vec<_> = strings.iter().map(|s| quoted(s)).collect();
                format!("{name} {}IN ({})", not(*negated), strings.join(","))
            }
            Self::Null(name, negated) => format!("{name} IS {}NULL", not(*negated)),
            Self::Not(inner) => format!("NOT ({})", inner.text()),
            Self::And(a, b) => format!("({}) AND ({})", a.text(), b.text()),
            Self::Or(a, b) => format!("({}) OR ({})", a.text(), b.text()),
        }
    }

    fn value(&self, fields: &Properties) -> Option<bool> {
        let string = |name: &str, test: &dyn Fn(&str) -> bool| {
            Some(match fields.0.get(name)? {
                Value::String(text) => test(text),
                Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Bytes(_) => false,
            })
        };
        match self {
            Self::Boolean(name) => match fields.0.get(*name)? {
                Value::Boolean(value) => Some(*value),
                Value::Integer(_) | Value::Float(_) | Value::String(_) | Value::Bytes(_) => None,
            },
            Self::Compare(a, op, b) => compared_or_false(a, op, b, fields),
            Self::Between(v, a, b, negated) => {
                let inside = and(
                    compared_or_false(v, ">=", a, fields),
                    compared_or_false(v, "<=", b, fields),
                );
                inside.map(|inside| inside != *negated)
            }
            Self::Text(name, negated, text) => string(name, &|s| (s == text) != *negated),
            Self::Like(name, negated, pieces) => string(name, &|s| {
                like(&s.chars().collect::<Vec<_>>(), pieces) != *negated
            }),
            Self::In(name, negated, strings) => {
                string(name, &|s| strings.iter().any(|t| t == s) != *negated)
            }
            Self::Null(name, negated) => Some(fields.0.contains_key(*name) == *negated),
            Self::Not(inner) => inner.value(fields).map(|value| !value),
            Self::And(a, b) => and(a.value(fields), b.value(fields)),
            Self::Or(a, b) => {
                let neither = and(
                    a.value(fields).map(|value| !value),
                    b.value(fields).map(|value| !value),
                );
                neither.map(|value| !value)
            }
        }
    }
}

fn compared_or_false(a: &Number, op: &str, b: &Number, fields: &Properties) -> Option<bool> {
    compared(a.value(fields), op, b.value(fields))
}

fn number() -> impl Strategy<Value = Number> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Number::Exact),
        (-9..9).prop_map(Number::Exact),
        any::<i16>().prop_map(Number::Quarters),
        proptest::sample::select(vec!["i", "f", "x", "Root.MQMD.Priority"]).prop_map(Number::Named),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let operator = proptest::sample::select(vec!['+', '-', '*', '/']);
        prop_oneof![
            inner.clone().prop_map(|n| Number::Negated(Box::new(n))),
            (inner.clone(), operator, inner).prop_map(|(a, op, b)| Number::Joined(
                Box::new(a),
                op,
                Box::new(b)
            )),
        ]
    })
}

fn made() -> impl Strategy<Value = Made> {
    let operator = proptest::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let name = || proptest::sample::select(vec!["s", "pct", "x", "i", "t"]);
    let text = || prop_oneof![Just("red".to_owned()), "[a-f'é%_]{0,4}"];
    let piece = prop_oneof![
        LazyJust::new(|| Piece::Any),
        LazyJust::new(|| Piece::One),
        proptest::sample::select("redx50%_!\\'é".chars().collect::<Vec<_>>()).prop_map(Piece::Is),
    ];
    let leaf = prop_oneof![
        proptest::sample::select(vec!["t", "n", "x", "s"]).prop_map(Made::Boolean),
        (number(), operator, number()).prop_map(|(a, op, b)| Made::Compare(a, op, b)),
        (number(), number(), number(), any::<bool>())
            .prop_map(|(v, a, b, n)| Made::Between(v, a, b, n)),
        (name(), any::<bool>(), text()).prop_map(|(name, n, t)| Made::Text(name, n, t)),
        (
            name(),
            any::<bool>(),
            proptest::collection::vec(piece, 0..6)
        )
            .prop_map(|(name, n, p)| Made::Like(name, n, p)),
        (
            name(),
            any::<bool>(),
            proptest::collection::vec(text(), 1..4)
        )
            .prop_map(|(name, n, t)| Made::In(name, n, t)),
        (name(), any::<bool>()).prop_map(|(name, n)| Made::Null(name, n)),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|m| Made::Not(Box::new(m))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Made::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner).prop_map(|(a, b)| Made::Or(Box::new(a), Box::new(b))),
        ]
    })
}

fn truth(value: Option<bool>) -> Truth {
    match value {
        Some(value) => Truth::from(value),
        None => Truth::Unknown,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn both_evaluators_agree_and_what_is_printed_parses_to_the_same(made in made()) {
        let text = made.text();
        let expected = truth(made.value(&properties()));
        match Selector::parse(&text) {
            Ok(selector) => {
                prop_assert_eq!(selector.evaluate(&properties()), expected, "{}", text);
                let printed = selector.to_string();
                prop_assert_eq!(Selector::parse(&printed), Ok(selector), "{}: {}", text, printed);
            }
            Err(error) => {
                prop_assert_eq!(error.reason().get(), 2504, "{}: {}", text, error);
                prop_assert_ne!(expected, Truth::True);
            }
        }
    }

    #[test]
    fn any_text_is_a_selector_or_an_error_at_a_place_in_it(text in "\\PC{0,60}") {
        if let Err(error) = Selector::parse(&text) {
            prop_assert!(error.position >= 1);
            prop_assert!(error.position <= text.chars().count() + 1);
        }
    }

    #[test]
    fn any_words_are_a_selector_or_an_error(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "a", "'b'", "\"0x00\"", "1", "2.5", "-", "+", "*", "/", "=", "<>", "<", "(", ")", ",",
            "AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE",
        ]), 0..14)) {
        if let Ok(selector) = Selector::parse(&words.join(" ")) {
            let printed = selector.to_string();
            prop_assert_eq!(Selector::parse(&printed), Ok(selector), "{}", printed);
        }
    }
}
