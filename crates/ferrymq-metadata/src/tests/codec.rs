use bytes::Bytes;
use prost::Message as _;

use ferrymq_objects::{
    Action, AttributeValue, Attributes, Command, CommandError, DeleteKind, ObjectKind, Remembered,
};
use ferrymq_proto::storage::FormatError;
use ferrymq_proto::storage_v1 as pb;

use super::{command, create, define};
use crate::codec::{
    decode_command, decode_request, encode_command, encode_request, outcome_from_proto,
    outcome_to_proto,
};

fn attributes() -> Attributes {
    [
        ("DESCR", AttributeValue::Text("a 'b' é".to_owned())),
        (
            "LIST",
            AttributeValue::List(vec!["x".to_owned(), String::new()]),
        ),
        ("MAXDEPTH", AttributeValue::Number(u64::MAX)),
        ("TRIGGER", AttributeValue::Flag(false)),
        ("USAGE", AttributeValue::Word("XMITQ".to_owned())),
    ]
    .into_iter()
    .collect()
}

fn every_action() -> Vec<Command> {
    let name = "A.B".to_owned();
    let mut actions = vec![
        Action::AlterQueueManager {
            attributes: attributes(),
        },
        Action::SetChannelRule {
            profile: "SHIP.*".into(),
            rule_type: ferrymq_objects::ChannelRuleType::BlockUser,
            attributes: [(
                "USERLIST",
                AttributeValue::List(vec!["nobody".into(), "*MQADMIN".into()]),
            )]
            .into_iter()
            .collect(),
            change: ferrymq_objects::RuleChange::Add,
        },
        Action::Delete {
            kind: DeleteKind::Channel,
            name: name.clone(),
        },
    ];
    for kind in ObjectKind::ALL {
        for (like, replace) in [
            (None, false),
            (Some(String::new()), true),
            (Some(name.clone()), false),
        ] {
            actions.push(Action::Define {
                kind,
                name: name.clone(),
                attributes: attributes(),
                like,
                replace,
            });
        }
        actions.push(Action::Alter {
            kind,
            name: name.clone(),
            attributes: Attributes::new(),
        });
        actions.push(Action::Delete {
            kind: DeleteKind::Kind(kind),
            name: name.clone(),
        });
    }
    let mut commands = vec![create(1)];
    commands.extend(actions.into_iter().map(|action| command(2, action)));
    commands
}

#[test]
fn every_command_reads_back_as_it_was() {
    for command in every_action() {
        assert_eq!(decode_command(&encode_command(&command)), Ok(command));
    }
}

#[test]
fn a_command_of_another_version_is_refused() {
    let mut newer = define(1, "Q");
    newer.version = Command::VERSION + 1;
    let refused = decode_command(&encode_command(&newer));
    assert_eq!(
        refused,
        Err(FormatError::Value {
            field: "version",
            value: newer.version.to_string(),
        })
    );
}

#[test]
fn a_command_that_lacks_something_is_refused() {
    let good = pb::DefinitionProposal::decode(encode_command(&create(1))).unwrap();
    let check = |change: &dyn Fn(&mut pb::DefinitionProposal)| {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(
            decode_command(&Bytes::from(bad.encode_to_vec())).is_err(),
            "{bad:?}"
        );
    };
    check(&|p| p.action = None);
    check(&|p| p.request_id = Bytes::from_static(&[1; 15]));
    check(&|p| p.queue_manager = "no such name!".to_owned());
    check(&|p| {
        let create = pb::CreateQueueManager {
            id: Bytes::from_static(&[1; 17]),
            node: 1,
        };
        p.action = Some(pb::definition_proposal::Action::CreateQueueManager(create));
    });
    check(&|p| {
        let alter = pb::AlterQueueManager {
            attributes: vec![pb::DefinitionAttribute::default()],
        };
        p.action = Some(pb::definition_proposal::Action::AlterQueueManager(alter));
    });
    check(&|p| {
        let delete = pb::DeleteObject {
            kind: "QCLUSTER".to_owned(),
            name: "A".to_owned(),
        };
        p.action = Some(pb::definition_proposal::Action::Delete(delete));
    });
    assert!(decode_command(&Bytes::from_static(b"\xff\xff\xff")).is_err());
    assert!(decode_command(&Bytes::new()).is_err());
}

#[test]
fn answers_read_back_as_they_were() {
    let refused = CommandError::NotFound {
        class: ferrymq_objects::ObjectClass::Queue,
        name: "Q".to_owned(),
    };
    for outcome in [
        Ok(ferrymq_objects::Applied::QueueManagerAltered),
        Err(refused),
    ] {
        let remembered = Remembered {
            request: [9; 16],
            outcome,
        };
        let stored = encode_request(12, &remembered);
        assert_eq!(decode_request(&stored), Ok((12, remembered.clone())));
        let sent = outcome_to_proto(12, &remembered);
        assert_eq!(outcome_from_proto([9; 16], &sent), Ok(remembered.outcome));
    }
    assert!(decode_request(b"").is_err());
}
