use ferrymq_types::{DistinguishedName, DnAttributeType};

use super::{SERIAL, attribute, check, different, name, pattern};
use crate::{MismatchKind, PeerPattern, serial_text};

const MISSING: Result<(), MismatchKind> = Err(MismatchKind::Missing);

fn payments() -> DistinguishedName {
    name(&[
        ("C", "DE"),
        ("O", "Bank"),
        ("OU", "Trade"),
        ("OU", "Payments"),
        ("CN", "app"),
    ])
}

#[test]
fn rules_of_the_documentation_hold() {
    let display = name(&[
        ("C", "US"),
        ("ST", "MA"),
        ("O", "IBM"),
        ("OU", "SSL For MQ"),
        ("CN", "QM1"),
    ]);
    for text in [
        "SERIALNUMBER=78:40:26:54:E5:D4:80:E4,CN=QM1,OU=SSL For MQ,O=IBM,ST=MA,C=US",
        "SERIALNUMBER=78:40:26:54:e5:d4:80:e4",
        "SERIALNUMBER=78:40*",
        "O=IBM;CN=QM1",
        "CN=qm1",
        "CN=\"QM1\" , O=\"IBM\"",
        "SP=MA",
        "S=ma",
        "CN=QM*",
        "CN=*1",
        "CN=*M*",
        "CN=*",
        "OU=SSL*",
        "OU=\"SSL For *\"",
    ] {
        check(text, &display, Ok(()));
    }
    check("CN=QM", &display, different("CN=QM1"));
    check("CN=M1", &display, different("CN=QM1"));
    check("CN=QM12*", &display, different("CN=QM1"));
    check("OU=\" SSL For MQ\"", &display, different("OU=SSL For MQ"));
    check(
        "SERIALNUMBER=78",
        &display,
        different("78:40:26:54:E5:D4:80:E4"),
    );
    check("DC=x", &display, MISSING);
}

#[test]
fn the_mismatch_names_the_first_element_of_the_pattern_that_differs() {
    let mismatch = pattern("CN=app,O=Bonk,C=FR")
        .matches(&payments(), SERIAL)
        .unwrap_err();
    assert_eq!(mismatch.attribute, DnAttributeType::Organization);
    assert_eq!(mismatch.wanted, "Bonk");
    assert_eq!(mismatch.got(), "O=Bank");
    assert_eq!(mismatch.reason().get(), 2398);
}

#[test]
fn sec_p1_text_inside_a_value_is_not_an_attribute() {
    for forged in [
        "app, OU=Payments, O=Bank",
        "app + OU=Payments + O=Bank",
        "app/OU=Payments/O=Bank",
        "app,OU=Payments,O=Bank",
    ] {
        let forged = name(&[("CN", forged)]);
        check("OU=Payments,O=Bank", &forged, MISSING);
        assert!(
            pattern("CN=app,OU=Payments,O=Bank")
                .matches(&forged, SERIAL)
                .is_err()
        );
        check("CN=app*,O=*", &forged, MISSING);
    }
    // And a pattern with such a value in quotes is about one attribute.
    let inside = name(&[("CN", "app, OU=Payments")]);
    check("CN=\"app, OU=Payments\"", &inside, Ok(()));
    check("CN=\"app, OU=Payments\"", &payments(), different("CN=app"));
}

#[test]
fn sec_p2_units_match_from_the_highest_level_in_order() {
    let subject = payments();
    check("OU=Trade,OU=Payments", &subject, Ok(()));
    check("OU=Trade", &subject, Ok(()));
    check("OU=Payments,OU=Trade", &subject, different("OU=Trade"));
    check("OU=Payments", &subject, different("OU=Trade"));
    check("OU=Trade,OU=Payments,OU=Team", &subject, MISSING);
    check("OU=*,OU=Payments", &subject, Ok(()));
    check("OU=Trade,CN=app,OU=Payments,O=Bank", &subject, Ok(()));
    let domain = name(&[("DC", "com"), ("DC", "example")]);
    check("DC=com,DC=example", &domain, Ok(()));
    check("DC=example,DC=com", &domain, different("DC=com"));
}

#[test]
fn sec_p2_attributes_of_one_set_count_by_type_but_units_in_one_set_have_no_order() {
    let joined = DistinguishedName {
        attributes: vec![
            attribute("O", Some("Bank"), 0),
            attribute("CN", Some("app"), 1),
            attribute("OU", Some("Payments"), 1),
        ],
    };
    check("CN=app,OU=Payments,O=Bank", &joined, Ok(()));
    let unordered = DistinguishedName {
        attributes: vec![
            attribute("OU", Some("Payments"), 0),
            attribute("OU", Some("Trade"), 0),
        ],
    };
    check(
        "OU=Payments,OU=Trade",
        &unordered,
        Err(MismatchKind::Ambiguous(2)),
    );
    check("OU=Payments", &unordered, Err(MismatchKind::Ambiguous(2)));
}

#[test]
fn sec_p3_an_attribute_that_must_be_single_and_is_not_refuses() {
    for values in [["good", "bad"], ["bad", "good"], ["good", "good"]] {
        let twice = name(&[("CN", values[0]), ("O", "Bank"), ("CN", values[1])]);
        check("CN=good", &twice, Err(MismatchKind::Ambiguous(2)));
        check("CN=*", &twice, Err(MismatchKind::Ambiguous(2)));
        check("O=Bank", &twice, Ok(()));
    }
}

#[test]
fn sec_p4_control_and_invisible_characters_never_match() {
    for hidden in [
        "app\0",
        "\0app",
        "a\npp",
        "app\u{1b}[0m",
        "app\u{200f}",
        "app\u{202e}",
        "a\u{200b}pp",
        "app\u{feff}",
        "app\u{ad}",
        "app\u{7f}",
        "app\u{9b}",
        "app\u{e0041}",
    ] {
        let subject = name(&[("CN", hidden)]);
        for text in ["CN=app", "CN=app*", "CN=*app", "CN=*"] {
            let kind = pattern(text).matches(&subject, SERIAL).unwrap_err().kind;
            assert!(
                matches!(kind, MismatchKind::Unprintable(_)),
                "{text} against {hidden:?}: {kind:?}"
            );
        }
    }
}

#[test]
fn sec_p4_blanks_in_a_certificate_count() {
    for spaced in [" app", "app ", "a  pp"] {
        assert!(
            pattern("CN=app")
                .matches(&name(&[("CN", spaced)]), SERIAL)
                .is_err()
        );
    }
    check("CN=\" app\"", &name(&[("CN", " app")]), Ok(()));
    check("CN=a  b", &name(&[("CN", "a b")]), different("CN=a b"));
}

#[test]
fn sec_p5_an_undecodable_value_never_matches() {
    let subject = DistinguishedName {
        attributes: vec![
            attribute("CN", None, 0),
            attribute("OU", None, 1),
            attribute("OU", Some("b"), 2),
        ],
    };
    for text in ["CN=*", "CN=app", "OU=*", "OU=*,OU=b"] {
        check(text, &subject, Err(MismatchKind::Undecodable));
    }
}

#[test]
fn sec_p6_only_ascii_letters_fold() {
    for (wanted, other) in [
        ("APP", "ａｐｐ"),
        ("app", "аpp"), // Cyrillic a
        ("strasse", "straße"),
        ("STRASSE", "straße"),
        ("istanbul", "ıstanbul"),
        ("ISTANBUL", "İstanbul"),
        ("é", "É"),
        ("é", "e\u{301}"),
        ("kelvin", "\u{212a}elvin"),
        ("ſ", "s"),
    ] {
        assert!(
            pattern(&format!("CN={wanted}"))
                .matches(&name(&[("CN", other)]), SERIAL)
                .is_err(),
            "{wanted} must not match {other}"
        );
    }
    check("CN=aPp", &name(&[("CN", "ApP")]), Ok(()));
    check("CN=MÜLLER", &name(&[("CN", "mÜller")]), Ok(()));
}

#[test]
fn sec_p7_escapes_and_quotes_mean_characters() {
    for (text, value) in [
        (r"CN=a\,b", "a,b"),
        (r"CN=a\;b", "a;b"),
        (r"CN=a\+b", "a+b"),
        (r#"CN=a\"b"#, "a\"b"),
        (r"CN=a\\b", r"a\b"),
        (r"CN=a\2Cb", "a,b"),
        (r"CN=M\C3\BCller", "Müller"),
        (r#"CN="a,b;c+d""#, "a,b;c+d"),
        (r#"CN=" a ""#, " a "),
        (r"CN=a\ ", "a "),
        (r"CN=\*", "*"),
        (r"CN=a\*", "a*"),
        (r"CN=a*b", "a*b"),
        (r"CN=a=b", "a=b"),
        (r"CN=O'Brien (x) / y-z.", "O'Brien (x) / y-z."),
    ] {
        check(text, &name(&[("CN", value)]), Ok(()));
    }
    check(r"CN=\*", &name(&[("CN", "x")]), different("CN=x"));
    check(r"CN=a\*", &name(&[("CN", "abc")]), different("CN=abc"));
    check("CN=a*c", &name(&[("CN", "abc")]), different("CN=abc"));
    check(r"CN=\2A", &name(&[("CN", "abc")]), different("CN=abc"));
    check("CN=***", &name(&[("CN", "a*b")]), Ok(()));
    check("CN=***", &name(&[("CN", "ab")]), different("CN=ab"));
}

#[test]
fn sec_p8_wildcard_characters_in_a_certificate_are_characters() {
    for value in ["*", "?", "%", "a*", "*a"] {
        let subject = name(&[("CN", value)]);
        assert!(pattern("CN=app").matches(&subject, SERIAL).is_err());
        assert!(pattern("CN=a").matches(&subject, SERIAL).is_err());
    }
    assert!(
        pattern("CN=?")
            .matches(&name(&[("CN", "a")]), SERIAL)
            .is_err()
    );
    assert!(
        pattern("CN=%")
            .matches(&name(&[("CN", "a")]), SERIAL)
            .is_err()
    );
}

#[test]
fn sec_p9_an_empty_subject_or_a_missing_type_does_not_match() {
    let empty = DistinguishedName::default();
    check("CN=*", &empty, MISSING);
    check("OU=*", &empty, MISSING);
    check("O=*", &name(&[("CN", "app")]), MISSING);
}

#[test]
fn the_serial_number_attribute_of_a_subject_is_not_the_certificates() {
    let subject = DistinguishedName {
        attributes: vec![ferrymq_types::DnAttribute {
            kind: DnAttributeType::from_oid("2.5.4.5"),
            value: Some("AA:BB".to_owned()),
            rdn: 0,
        }],
    };
    check(
        "SERIALNUMBER=AA:BB",
        &subject,
        different("78:40:26:54:E5:D4:80:E4"),
    );
    assert_eq!(
        pattern("SERIALNUMBER=*")
            .matches(&subject, &[])
            .unwrap_err()
            .kind,
        MismatchKind::Missing
    );
}

#[test]
fn a_serial_number_loses_only_its_sign_byte() {
    for (bytes, text) in [
        (&[0x00, 0x80][..], "80"),
        (&[0x00], "00"),
        (&[0x01, 0x00], "01:00"),
        (&[], ""),
    ] {
        assert_eq!(serial_text(bytes), text);
    }
    let high = PeerPattern::parse("SERIALNUMBER=80:01").unwrap();
    assert_eq!(
        high.matches(&DistinguishedName::default(), &[0, 0x80, 1]),
        Ok(())
    );
}
