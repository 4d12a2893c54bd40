//! Statements print as commands that parse to the same statements, and any text is read without a panic.

use ferrymq_objects::{
    AttributeForm, AttributeSpec, AttributeValue, Attributes, ChannelRuleType, DeleteKind,
    ObjectKind, RuleChange, channel_rule_attributes,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::{ScriptReader, Statement, parse};

fn name(max: usize) -> impl Strategy<Value = String> {
    vec(select(b"AZaz09./_%".to_vec()), 1..=max)
        .prop_map(|b| b.into_iter().map(char::from).collect())
}

/// Text without blanks at the end, which do not count.
fn description() -> impl Strategy<Value = String> {
    "[ -~äß'();,+*-]{0,60}".prop_map(|t| t.trim_end_matches(' ').to_owned())
}

fn value(spec: &'static AttributeSpec) -> BoxedStrategy<AttributeValue> {
    match spec.form {
        AttributeForm::Number { min, max } => (min..=max).prop_map(AttributeValue::Number).boxed(),
        AttributeForm::NumberOr { word, max } => prop_oneof![
            Just(AttributeValue::Word(word.to_owned())),
            (0..=max).prop_map(AttributeValue::Number),
        ]
        .boxed(),
        AttributeForm::Text { .. } if spec.keyword == "SSLCIPH" => {
            "[A-Za-z0-9_-]{0,30}".prop_map(AttributeValue::Text).boxed()
        }
        AttributeForm::Text { max: 0 } => Just(AttributeValue::text("")).boxed(),
        AttributeForm::Text { max } => description()
            .prop_map(move |t| t.chars().take(max).collect::<String>())
            .prop_map(|t| AttributeValue::text(t.trim_end_matches(' ')))
            .boxed(),
        AttributeForm::List { .. } => vec("[!-~]([ -~]{0,18}[!-~])?", 1..4)
            .prop_map(AttributeValue::List)
            .boxed(),
        AttributeForm::Words(words) => select(words)
            .prop_map(|w: &str| AttributeValue::Word(w.to_owned()))
            .boxed(),
        AttributeForm::Flag => any::<bool>().prop_map(AttributeValue::Flag).boxed(),
        AttributeForm::ApplicationType => prop_oneof![
            select(vec!["UNIX", "WINDOWSNT", "DEF"]).prop_map(|w| AttributeValue::Word(w.into())),
            (65_536_u64..=999_999_999).prop_map(AttributeValue::Number),
        ]
        .boxed(),
        AttributeForm::QueueName | AttributeForm::QueueManagerName | AttributeForm::ProcessName => {
            prop_oneof![Just(String::new()), name(48)]
                .prop_map(AttributeValue::Text)
                .boxed()
        }
        AttributeForm::ConnectionName => prop_oneof![
            Just(String::new()),
            "[a-z0-9.-]{1,20}\\([1-9][0-9]{0,3}\\)(,[a-z0-9.-]{1,20}){0,2}"
        ]
        .prop_map(AttributeValue::Text)
        .boxed(),
    }
}

fn attributes(specs: Vec<&'static AttributeSpec>) -> impl Strategy<Value = Attributes> {
    let settable: Vec<_> = specs.into_iter().filter(|s| s.settable).collect();
    vec(any::<Index>(), 0..6)
        .prop_flat_map(move |picks| {
            let chosen: Vec<_> = picks
                .iter()
                .map(|i| {
                    let spec = *i.get(&settable);
                    value(spec).prop_map(|v| (spec.keyword.to_owned(), v))
                })
                .collect();
            chosen
        })
        .prop_map(|pairs| pairs.into_iter().collect())
}

fn statement() -> impl Strategy<Value = Statement> {
    select(ObjectKind::ALL.to_vec()).prop_flat_map(|kind| {
        let max = if kind.is_channel() { 20 } else { 48 };
        let define = (
            name(max),
            attributes(kind.attributes()),
            proptest::option::of(name(max)),
            any::<bool>(),
        )
            .prop_map(move |(name, attributes, like, replace)| Statement::Define {
                kind,
                name,
                attributes,
                like,
                replace,
            });
        let alter = (name(max), attributes(kind.attributes()), any::<bool>()).prop_map(
            move |(name, attributes, force)| Statement::Alter {
                kind,
                name,
                attributes,
                force,
            },
        );
        let alter_qmgr = (
            attributes(ferrymq_objects::queue_manager_attributes().collect()),
            any::<bool>(),
        )
            .prop_map(|(attributes, force)| Statement::AlterQueueManager { attributes, force });
        let delete = (name(max), any::<bool>(), any::<bool>()).prop_map(
            move |(name, purge, ignore_state)| Statement::Delete {
                kind: if kind.is_channel() {
                    DeleteKind::Channel
                } else {
                    DeleteKind::Kind(kind)
                },
                name,
                purge: purge && kind == ObjectKind::LocalQueue,
                ignore_state,
            },
        );
        prop_oneof![4 => define, 2 => alter, 1 => alter_qmgr, 1 => delete, 1 => channel_rule()]
    })
}

fn channel_rule() -> impl Strategy<Value = Statement> {
    let action = select(RuleChange::ALL.to_vec());
    select(ChannelRuleType::ALL.to_vec()).prop_flat_map(move |rule_type| {
        let profile = if rule_type == ChannelRuleType::BlockAddress {
            Just("*".to_owned()).boxed()
        } else {
            "[A-Z.*]{1,20}".boxed()
        };
        let given = attributes(channel_rule_attributes(Some(rule_type)).collect());
        (profile, given, action.clone()).prop_map(move |(profile, attributes, change)| {
            Statement::SetChannelRule {
                profile,
                rule_type,
                attributes,
                change,
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_statement_prints_as_a_command_that_means_it(statement in statement()) {
        let text = statement.to_string();
        prop_assert_eq!(parse(&text), Ok(statement), "{}", text);
    }

    #[test]
    fn a_printed_statement_survives_a_script(statement in statement()) {
        let text = statement.to_string();
        let mut reader = ScriptReader::new();
        let commands = reader.feed(&text).commands;
        prop_assert_eq!(commands, vec![Ok(text)]);
        prop_assert!(reader.finish().is_ok());
    }

    #[test]
    fn any_display_that_is_understood_prints_as_one_that_means_it(
        noun in select(vec!["Q", "QL", "QR", "CHL", "QS", "CHS"]),
        generic in name(20),
        star in any::<bool>(),
        rest in vec(select(vec![
            "ALL", "CURDEPTH", "DESCR", "TYPE", "STATUS", "SAVED", "XMITQ", "XMITQ(A)", "MAXDEPTH", "CONNAME('h(1)')",
            "WHERE(CURDEPTH GT 5)", "WHERE(DESCR LK 'a''b*')", "WHERE(STATUS EQ 'RUNNING')", "CHLTYPE(SDR)", "CHLTYPE",
        ]), 0..4),
    ) {
        let star = if star { "*" } else { "" };
        let text = format!("DIS {noun}('{generic}{star}') {}", rest.join(" "));
        if let Ok(statement) = parse(&text)
            && !matches!(statement, Statement::NotSupported { .. })
        {
            prop_assert_eq!(parse(&statement.to_string()), Ok(statement), "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let mut reader = ScriptReader::new();
        for command in reader.feed(&text).commands.into_iter().flatten() {
            if let Err(error) = parse(&command) {
                prop_assert!(command.is_char_boundary(error.position), "{:?}", error);
            }
        }
    }

    #[test]
    fn anything_that_looks_like_mqsc_is_read_or_refused(
        words in vec(select(vec![
            "DEF", "ALTER", "DIS", "QL", "CHL", "Q", "QMGR", "(", ")", "'", "A", "''", ",", " ", "*", "REPLACE", "MAXDEPTH",
            "CHLTYPE", "SDR", "WHERE", "GT", "5", "ALL", "ö", "\t", "DESCR",
        ]), 0..40),
    ) {
        let text = words.concat();
        if let Err(error) = parse(&text) {
            prop_assert!(text.is_char_boundary(error.position), "{:?}", error);
        }
        let spaced = words.join(" ");
        if let Ok(statement) = parse(&spaced)
            && !matches!(statement, Statement::NotSupported { .. })
        {
            prop_assert_eq!(parse(&statement.to_string()), Ok(statement), "{}", spaced);
        }
    }
}
