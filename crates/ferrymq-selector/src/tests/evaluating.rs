//! Element by value: true, false or unknown.

use crate::Truth::{False, True, Unknown};
use crate::tests::properties;
use crate::{Selector, Truth};

fn check(table: &[(&str, Truth)]) {
    let fields = properties();
    for (text, expected) in table {
        let selector = Selector::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(selector.evaluate(&fields), *expected, "{text}");
        assert_eq!(selector.matches(&fields), *expected == True, "{text}");
        let opposite = Selector::parse(&format!("NOT ({text})"));
        let turned = match expected {
            True => False,
            False => True,
            Unknown => Unknown,
        };
        if let Ok(opposite) = opposite {
            assert_eq!(opposite.evaluate(&fields), turned, "NOT ({text})");
        }
    }
}

#[test]
fn numbers_compare_exact_and_approximate() {
    check(&[
        ("i = 5", True),
        ("i <> 5", False),
        ("i < 5", False),
        ("i <= 5", True),
        ("i > 4.5", True),
        ("i >= 0x5", True),
        ("i = 05", True),
        ("i = 5L", True),
        ("f = 2.5", True),
        ("f = 25E-1", True),
        ("f < i", True),
        ("i = 5.0", True),
        ("i = +5", True),
        ("i = -5", False),
        ("-i = -5", True),
        ("i = 010 - 3", True),
        ("Root.MQMD.Priority = 7", True),
        ("root.mqmd.priority = 7", Unknown),
        ("x = 1", Unknown),
        ("x <> 1", Unknown),
        ("x = y", Unknown),
    ]);
}

#[test]
fn operators_bind_as_in_the_table_of_precedence() {
    check(&[
        ("i + 1 * 2 = 7", True),
        ("(i + 1) * 2 = 12", True),
        ("i - 1 - 1 = 3", True),
        ("i - (1 - 1) = 5", True),
        ("20 / i / 2 = 2", True),
        ("-i + 6 = 1", True),
        ("- (i + 1) * 2 = -12", True),
        ("t OR t AND n", True),
        ("(t OR t) AND n", False),
        ("NOT n AND n", False),
        ("NOT (n AND n)", True),
        ("NOT i = 4", True),
        ("i BETWEEN 1 AND 9 AND n", False),
        ("i + 1 BETWEEN 3 + 3 AND 2 * 3", True),
    ]);
}

#[test]
fn arithmetic_without_a_result_is_unknown() {
    check(&[
        ("i / 0 = 1", Unknown),
        ("i * 9223372036854775807 = 1", Unknown),
        ("i + x > 0", Unknown),
        ("s + 1 = 1", Unknown),
        ("-s = 1", Unknown),
        ("i / 2 = 2", True),
        ("i / 2.0 = 2.5", True),
        ("f / 0 > 1e300", True),
        ("-9223372036854775808 < i", True),
    ]);
}

#[test]
fn three_values_join_as_sql_has_it() {
    let value = |truth| match truth {
        True => "t",
        False => "n",
        Unknown => "x = 1",
    };
    for left in [True, False, Unknown] {
        for right in [True, False, Unknown] {
            let and = match (left, right) {
                (False, _) | (_, False) => False,
                (True, True) => True,
                (Unknown, _) | (_, Unknown) => Unknown,
            };
            let or = match (left, right) {
                (True, _) | (_, True) => True,
                (False, False) => False,
                (Unknown, _) | (_, Unknown) => Unknown,
            };
            check(&[
                (&format!("{} AND {}", value(left), value(right)), and),
                (&format!("{} OR {}", value(left), value(right)), or),
            ]);
        }
    }
}

#[test]
fn unlike_types_compare_false_and_what_is_no_boolean_is_unknown() {
    check(&[
        ("s = 'red'", True),
        ("s = 'Red'", False),
        ("s <> 'blue'", True),
        ("s = 5", False),
        ("s <> 5", False),
        ("s < 5", False),
        ("i = '5'", False),
        ("t = TRUE", True),
        ("t <> FALSE", True),
        ("t = 'TRUE'", False),
        ("b = \"0x2F1C\"", True),
        ("b = \"0x2f1c00\"", False),
        ("b <> \"0x2f1c00\"", True),
        ("b = '2F1C'", False),
        ("t", True),
        ("n", False),
        ("s", Unknown),
        ("i", Unknown),
        ("x", Unknown),
    ]);
}

#[test]
fn between_in_like_and_null() {
    check(&[
        ("i BETWEEN 5 AND 5", True),
        ("i BETWEEN 6 AND 5", False),
        ("i NOT BETWEEN 6 AND 7", True),
        ("x BETWEEN 1 AND 2", Unknown),
        ("i BETWEEN x AND 4", False),
        ("i BETWEEN x AND 9", Unknown),
        ("i NOT BETWEEN x AND 4", True),
        ("s IN ('blue', 'red')", True),
        ("s NOT IN ('blue', 'red')", False),
        ("s IN ('it''s')", False),
        ("x IN ('a')", Unknown),
        ("x NOT IN ('a')", Unknown),
        ("i IN ('5')", False),
        ("i NOT IN ('5')", False),
        ("x IS NULL", True),
        ("x IS NOT NULL", False),
        ("i IS NULL", False),
        ("i IS NOT NULL", True),
        ("x LIKE 'a'", Unknown),
        ("s LIKE 'red'", True),
        ("s LIKE 'r%'", True),
        ("s LIKE '%d'", True),
        ("s LIKE '%e%'", True),
        ("s LIKE '%'", True),
        ("s LIKE '_e_'", True),
        ("s LIKE '__'", False),
        ("s LIKE '____'", False),
        ("s LIKE 'r%d%d'", False),
        ("s NOT LIKE 'r%'", False),
        ("s LIKE ''", False),
        ("i LIKE '5'", False),
        ("pct LIKE '50!%!_%' ESCAPE '!'", True),
        ("pct LIKE '50\\%%\\\\' ESCAPE '\\'", True),
        ("pct LIKE '%!%' ESCAPE '!'", False),
    ]);
}

#[test]
fn what_names_no_property_matches_all_or_is_refused() {
    for text in ["TRUE", "1 < 2", "'a' = 'a'", "NOT FALSE", "TRUE OR FALSE"] {
        let selector = Selector::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(selector.matches(&properties()), "{text}");
        assert_eq!(selector.to_string(), "TRUE", "{text}");
    }
    for text in [
        "FALSE",
        "1 > 2",
        "'a' = 'b'",
        "NOT TRUE",
        "1 / 0 = 1",
        "'a' = 1",
    ] {
        let error = Selector::parse(text).unwrap_err();
        assert_eq!(error.reason().get(), 2504, "{text}: {error}");
    }
}

#[test]
fn like_takes_linear_time() {
    // Exponential, or even quadratic with this many parts, for a matcher that steps back.
    let value = "a".repeat(1_000_000);
    let mut fields = properties();
    fields
        .0
        .insert("a".into(), crate::Value::String(value.into()));
    for part in ["%a", "%a_", "%_a"] {
        let pattern = format!("a LIKE '{}%b'", part.repeat(2_000));
        assert!(!Selector::parse(&pattern).unwrap().matches(&fields));
        let pattern = format!("a LIKE '{}%b%'", part.repeat(2_000));
        assert!(!Selector::parse(&pattern).unwrap().matches(&fields));
    }
}
