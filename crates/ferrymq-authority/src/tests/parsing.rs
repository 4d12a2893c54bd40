use super::pattern;
use crate::{PATTERN_LENGTH_MAX, PatternErrorKind, PeerPattern, parse_distinguished_name};

#[track_caller]
fn check_refused(text: &str, position: usize, kind: &PatternErrorKind) {
    match PeerPattern::parse(text) {
        Ok(parsed) => panic!("{text:?} was accepted as {parsed}"),
        Err(error) => {
            assert_eq!((error.position, &error.kind), (position, kind), "{text:?}");
            assert_eq!(error.reason().get(), 4093);
        }
    }
}

#[test]
fn sec_p7_bad_patterns_are_refused_at_definition() {
    use PatternErrorKind::*;
    let unknown = |word: &str| UnknownType(word.to_owned());
    for (text, position, kind) in [
        ("", 1, Empty),
        ("   ", 1, Empty),
        ("*", 1, unknown("*")),
        ("CN", 3, MissingEquals),
        ("CN =a", 3, MissingEquals),
        ("cn=a", 1, unknown("cn")),
        ("XX=a", 1, unknown("XX")),
        ("2.5.4.3=a", 1, unknown("2.5.4.3")),
        ("=a", 1, MissingType),
        (",CN=a", 1, MissingType),
        ("CN=a,", 6, MissingType),
        ("CN=a,,O=b", 6, MissingType),
        ("CN=a;;O=b", 6, MissingType),
        ("CN=", 4, EmptyValue),
        ("CN=  ", 6, EmptyValue),
        ("CN=,O=b", 4, EmptyValue),
        ("CN=\"\"", 4, EmptyValue),
        ("CN=a,CN=b", 6, Repeated("CN")),
        ("ST=a,SP=b", 6, Repeated("ST (or SP, S)")),
        ("S=a,O=x,ST=b", 9, Repeated("ST (or SP, S)")),
        ("MAIL=a,E=b", 8, Repeated("MAIL (or E)")),
        ("UID=a,USERID=b", 7, Repeated("UID (or USERID)")),
        ("CN=\"a", 4, OpenQuote),
        ("CN=\"a\\\"", 4, OpenQuote),
        ("CN=a\"b\"", 5, StrayQuote),
        ("CN=\"a\"b", 7, AfterQuote),
        ("CN=a\\", 5, BadEscape),
        ("CN=a\\q", 5, BadEscape),
        ("CN=a\\4", 5, BadEscape),
        ("CN=\\FF", 4, NotUtf8),
        ("CN=\\C3", 4, NotUtf8),
        ("CN=\\ED\\A0\\80", 4, NotUtf8),
        ("CN=a\\00", 5, Invisible),
        ("CN=a\\0Ab", 5, Invisible),
        ("CN=a\\E2\\80\\AEb", 5, Invisible),
        ("CN=a\nb", 5, Invisible),
        ("CN=a\u{200b}", 5, Invisible),
        ("CN=a+OU=b", 5, Set),
        ("CN=a + OU=b", 6, Set),
        ("SERIALNUMBER=7", 14, BadSerial),
        ("SERIALNUMBER=784", 14, BadSerial),
        ("SERIALNUMBER=78:4G", 14, BadSerial),
        ("SERIALNUMBER=78::40", 14, BadSerial),
    ] {
        check_refused(text, position, &kind);
    }
}

#[test]
fn the_longest_pattern_is_1024_characters() {
    let fits = format!("CN={}", "é".repeat(PATTERN_LENGTH_MAX - 3));
    pattern(&fits);
    check_refused(&format!("{fits}x"), 1025, &PatternErrorKind::TooLong);
}

#[test]
fn blank_means_no_pattern_for_an_attribute_and_nothing_else_does() {
    assert_eq!(PeerPattern::parse_attribute(""), Ok(None));
    assert_eq!(PeerPattern::parse_attribute("    "), Ok(None));
    assert!(PeerPattern::parse_attribute("\t").is_err());
    assert_eq!(
        PeerPattern::parse_attribute("CN=a"),
        Ok(Some(pattern("CN=a")))
    );
}

#[test]
fn equal_meanings_are_equal_patterns() {
    for (left, right) in [
        ("CN=a,O=b", " CN=a ; O=b "),
        ("CN=a", "CN= a"),
        ("CN=a", "CN=\"a\""),
        ("CN=a", "CN=\\61"),
        ("CN=a\\,b", "CN=\"a,b\""),
        ("CN=a\\2Cb", "CN=\"a,b\""),
        ("CN=\\ a\\ ", "CN=\" a \""),
        ("ST=a", "SP=a"),
        ("ST=a", "S=a"),
        ("MAIL=a", "E=a"),
        ("UID=a", "USERID=a"),
        ("CN=*", "CN=**"),
        ("CN=\"*\"", "CN=*"),
        ("CN=M\\C3\\BCller", "CN=Müller"),
        ("SERIALNUMBER=00:ab:0C", "SERIALNUMBER=AB:0C"),
        ("CN=a+b", "CN=a\\+b"),
    ] {
        assert_eq!(pattern(left), pattern(right), "{left} and {right}");
    }
}

#[test]
fn a_pattern_prints_as_itself() {
    for (text, printed) in [
        ("CN=QM1, OU=SSL For MQ ;O=IBM", "CN=QM1,OU=SSL For MQ,O=IBM"),
        ("CN=\"a,b;c\"", "CN=a\\,b\\;c"),
        ("CN=\\*a\\**", "CN=\\*a\\**"),
        ("CN=a*b", "CN=a*b"),
        ("SP=\" x \"", "ST=\\ x\\ "),
        ("CN=*", "CN=**"),
    ] {
        assert_eq!(pattern(text).to_string(), printed);
        assert_eq!(pattern(printed), pattern(text));
    }
}

#[test]
fn a_written_name_is_a_pattern_of_itself_and_prints_as_written() {
    for text in [
        "CN=QM1,OU=Queue Managers,O=FerryMQ",
        "CN=app,OU=Trade,OU=Payments,O=Bank,C=DE",
        "CN=app,DC=com,DC=example",
        "CN=Smith\\, John,O=a\\+b",
        "CN=\\ x\\ ,ST=y",
    ] {
        let name = parse_distinguished_name(text).unwrap();
        assert_eq!(name.to_string(), text);
        assert_eq!(pattern(text).matches(&name, &[1]), Ok(()), "{text}");
    }
    let name = parse_distinguished_name("CN=app,OU=Trade,OU=Payments,O=Bank").unwrap();
    let levels: Vec<_> = name
        .attributes
        .iter()
        .map(|a| a.value.as_deref().unwrap())
        .collect();
    assert_eq!(levels, ["Bank", "Trade", "Payments", "app"]);
}

#[test]
fn a_plus_joins_attributes_of_a_written_name() {
    for text in ["CN=app+UID=7,O=Bank", "CN=\"app\" + UID=7 , O=Bank"] {
        let name = parse_distinguished_name(text).unwrap();
        assert_eq!(name.to_string(), "CN=app+UID=7,O=Bank");
    }
}

#[test]
fn a_bad_name_is_refused_with_its_position() {
    for (text, position) in [
        ("", 1),
        ("QM1", 1),
        ("CN=QM1,", 8),
        ("CN=a,CN=b", 6),
        ("CN=a+CN=b", 6),
        ("SERIALNUMBER=01,CN=a", 1),
        ("CN=a\n", 5),
    ] {
        let error = parse_distinguished_name(text).unwrap_err();
        assert_eq!(error.position, position, "{text:?}: {error}");
    }
}
