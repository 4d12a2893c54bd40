//! Syntax error by position.

use ferrymq_types::PROPERTY_NAME_LENGTH_MAX;

use crate::{NESTING_MAX, SELECTOR_LENGTH_MAX, Selector};

/// Text, position, and a part of what is said.
const REFUSED: &[(&str, usize, &str)] = &[
    (
        "",
        1,
        "expected a property name, a value or (, found the end",
    ),
    ("   ", 4, "found the end"),
    (
        "a =",
        4,
        "expected a property name, a value or (, found the end",
    ),
    ("a = = 1", 5, "found ="),
    ("a = 1 b", 7, "expected an operator or the end, found b"),
    ("(a = 1", 7, "expected an operator or ), found the end"),
    ("a = 1)", 6, "found )"),
    ("a = \"red\"", 5, "a string has single quotes"),
    ("a = \"0x2F1\"", 5, "pairs of hex digits"),
    ("a = 'red", 5, "not closed"),
    ("é = 'ö' ü", 9, "found ü"),
    ("a = 09", 6, "an octal digit"),
    ("a = 0x", 7, "a hex digit"),
    ("a = 1e", 7, "a digit of the exponent"),
    ("a = 12abc", 7, "its end"),
    ("a = 1.2.3", 8, "its end"),
    ("a = .", 6, "a digit"),
    ("a = 1e999", 5, "too large"),
    ("a = 9223372036854775808", 5, "too large"),
    ("a = 99999999999999999999", 5, "too large"),
    ("a ; b", 3, "no meaning"),
    ("a != 1", 3, "no meaning"),
    ("a. = 1", 3, "a dot"),
    ("a..b = 1", 3, "a dot"),
    ("and = 1", 1, "found and"),
    ("NULL = a", 1, "found NULL"),
    ("a = NULL", 5, "found NULL"),
    ("a IS 1", 6, "NULL or NOT NULL"),
    ("a IS NOT", 9, "expected NULL"),
    ("a NOT = 1", 7, "BETWEEN, IN or LIKE"),
    ("1 IS NULL", 1, "a property name before IS"),
    ("'a' LIKE 'b'", 1, "a property name before LIKE"),
    ("a + 1 IN ('b')", 1, "a property name before IN"),
    ("a IN 'b'", 6, "( and strings"),
    ("a IN ()", 7, "a string"),
    ("a IN ('b',)", 11, "a string"),
    ("a IN (1)", 7, "a string"),
    ("a IN ('b' 'c')", 11, ", or )"),
    ("a LIKE b", 8, "a pattern"),
    ("a LIKE 'b' ESCAPE 'xy'", 19, "one character"),
    ("a LIKE 'b' ESCAPE ''", 19, "one character"),
    ("a LIKE 'a!b' ESCAPE '!'", 8, "goes before %, _ or itself"),
    ("a LIKE 'b!' ESCAPE '!'", 8, "goes before"),
    ("a BETWEEN 1 OR 2", 13, "AND and the upper bound"),
    (
        "a BETWEEN 'b' AND 'c'",
        11,
        "expected a number, found a string",
    ),
    ("a < 'b'", 5, "expected a number, found a string"),
    ("TRUE > a", 1, "expected a number, found a boolean"),
    ("a + 'b' = 1", 5, "expected a number"),
    ("-'b' = 1", 2, "expected a number"),
    ("a + 1", 6, "a comparison"),
    ("5", 2, "a comparison"),
    ("a + 1 AND b", 1, "expected a condition, found a value"),
    ("(a = 1) = TRUE", 1, "expected a value, found a condition"),
    ("(a = 1) + 1 = 2", 1, "expected a value"),
    ("a = 1 = 2", 7, "found ="),
    ("- (-9223372036854775808) = a", 1, "too large"),
];

#[test]
fn an_error_says_where_and_what_was_expected() {
    for (text, position, part) in REFUSED {
        let error = Selector::parse(text).expect_err(text);
        assert_eq!(error.position, *position, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert_eq!(error.reason().get(), 2459, "{text}: {error}");
    }
}

#[test]
fn a_selector_of_100_kib_is_refused_unparsed() {
    let text = "(".repeat(100 * 1024);
    assert_eq!(Selector::parse(&text).unwrap_err().reason().get(), 2519);
    let longest = format!("a = '{}'", "b".repeat(SELECTOR_LENGTH_MAX - 6));
    assert!(Selector::parse(&longest).is_ok());
    assert!(Selector::parse(&format!("{longest} ")).is_err());
}

#[test]
fn nesting_is_bounded() {
    let nested = |open: &str, close: &str, n: usize| {
        Selector::parse(&format!("{}a{}", open.repeat(n), close.repeat(n)))
    };
    for (open, close) in [("(", ")"), ("NOT ", ""), ("NOT(", ")")] {
        let levels = open.matches(['(', 'N']).count();
        assert!(nested(open, close, NESTING_MAX / levels).is_ok());
        let error = nested(open, close, NESTING_MAX).map(|_| ());
        if levels > 1 {
            assert!(error.unwrap_err().to_string().contains("deeper"));
        }
        let error = nested(open, close, NESTING_MAX + 1).unwrap_err();
        assert!(error.to_string().contains("deeper"), "{error}");
        assert!(nested(open, close, 2_500).is_err());
    }
    let signs = format!("{}a = 1", "-".repeat(10_000));
    assert!(Selector::parse(&signs).is_err());
    // Width is not depth.
    let wide = vec!["a"; 1_700].join(" OR ");
    assert!(Selector::parse(&wide).is_ok());
    let wide = format!("a = {}", vec!["b"; 2_500].join(" + "));
    assert!(Selector::parse(&wide).is_ok());
}

#[test]
fn long_names_and_patterns_are_refused() {
    assert!(Selector::parse(&"a".repeat(PROPERTY_NAME_LENGTH_MAX)).is_ok());
    assert!(Selector::parse(&"a".repeat(PROPERTY_NAME_LENGTH_MAX + 1)).is_err());
    let pattern = |part: &str| Selector::parse(&format!("a LIKE '%{part}%'"));
    assert!(pattern(&"_".repeat(crate::LIKE_PART_LENGTH_MAX)).is_ok());
    assert!(pattern(&"_".repeat(crate::LIKE_PART_LENGTH_MAX + 1)).is_err());
    assert!(pattern(&"b".repeat(crate::LIKE_PART_LENGTH_MAX + 1)).is_ok());
}

#[test]
fn keywords_know_no_case_and_names_do() {
    let selector = Selector::parse("a is not null and Not B in ('x') or c between 1 And 2");
    let text = "a IS NOT NULL AND NOT B IN ('x') OR c BETWEEN 1 AND 2";
    assert_eq!(selector.unwrap().to_string(), text);
}
