//! Channel authentication records against partners.

use std::net::IpAddr;

use ferrymq_objects::{
    Action, AttributeValue, Attributes, ChannelRuleType, Command, Definitions, Enabled,
    QueueManager, RuleChange,
};
use ferrymq_types::{DistinguishedName, QueueManagerId, QueueManagerName, Timestamp};

use super::{SERIAL, name};
use crate::{AddressPattern, Applicant, Identity, PeerCertificateNames, admit, check_user};

struct Bench {
    definitions: Definitions,
    index: u64,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            definitions: Definitions::new(),
            index: 0,
        };
        let id = QueueManagerId::new([1; 16]);
        bench.apply(Action::CreateQueueManager { id, node: 1 });
        bench
    }

    fn apply(&mut self, action: Action) {
        self.index += 1;
        let mut request = [0; 16];
        request[..8].copy_from_slice(&self.index.to_be_bytes());
        let command = Command {
            version: Command::VERSION,
            queue_manager: QueueManagerName::new("QM1").unwrap(),
            time: Timestamp::from_millis(1),
            request,
            action,
        };
        self.definitions.apply(self.index, &command).unwrap();
    }

    /// `KEYWORD=value` pairs; values with a comma are lists.
    fn set(&mut self, profile: &str, rule_type: ChannelRuleType, pairs: &[(&str, &str)]) {
        let value = |keyword: &str, text: &str| match keyword {
            "USERLIST" | "ADDRLIST" => {
                AttributeValue::List(text.split(',').map(str::to_owned).collect())
            }
            "USERSRC" | "WARN" => AttributeValue::Word(text.to_owned()),
            _ => AttributeValue::text(text),
        };
        let attributes: Attributes = pairs.iter().map(|(k, v)| (*k, value(k, v))).collect();
        self.apply(Action::SetChannelRule {
            profile: profile.to_owned(),
            rule_type,
            attributes,
            change: RuleChange::Replace,
        });
    }

    fn qm1(&self) -> &QueueManager {
        &self.definitions.queue_managers[&QueueManagerName::new("QM1").unwrap()]
    }

    /// The user, `-` for as it is, `!` for refused.
    fn admitted(&self, applicant: &Applicant<'_>) -> String {
        match admit(self.qm1(), applicant) {
            Ok(admission) => admission.user.unwrap_or("-").to_owned(),
            Err(_) => "!".to_owned(),
        }
    }
}

fn client<'a>(channel: &'a str, address: &str, subject: &'a DistinguishedName) -> Applicant<'a> {
    Applicant {
        channel,
        address: address.parse().unwrap(),
        certificate: Some(PeerCertificateNames {
            subject,
            serial: SERIAL,
        }),
        issuer: None,
        identity: Identity::Client("ann"),
    }
}

#[test]
fn address_patterns_and_what_they_mean() {
    for (pattern, meant, not_meant) in [
        ("*", "192.0.2.1", ""),
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("192.0.2.1", "::ffff:192.0.2.1", "::1"),
        ("192.0.2.*", "192.0.2.255", "192.0.3.1"),
        ("192.*", "192.0.2.255", "193.0.2.1"),
        ("192.*.7", "192.0.2.7", "192.0.2.8"),
        ("10.1-8.*", "10.8.1.1", "10.9.1.1"),
        ("10.1.1.1-8", "10.1.1.8", "10.1.1.9"),
        ("2001:db8:*", "2001:db8::1", "2001:db9::1"),
        ("2001:*:1", "2001:db8::1", "2001:db8::2"),
        ("::1", "::1", "::2"),
        ("2001:db8:*", "2001:db8:1::", "192.0.2.1"),
    ] {
        let parsed = AddressPattern::parse(pattern).unwrap();
        assert!(parsed.matches(meant.parse().unwrap()), "{pattern} {meant}");
        if !not_meant.is_empty() {
            let address: IpAddr = not_meant.parse().unwrap();
            assert!(!parsed.matches(address), "{pattern} {not_meant}");
        }
    }
    for bad in [
        "",
        "192.0.2",
        "192.0.2.256",
        "192.0.2.1.1",
        "192.0.2.x",
        "host.example.net",
        "10.8-1.*",
        "10.+1.1.1",
        "1-",
        "2001:db8",
        "2001:12345:*",
        "1.2.3.4.*",
        "192.0.2.1/24",
        "a*",
    ] {
        assert!(AddressPattern::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn without_a_record_that_fits_a_partner_is_as_it_is() {
    let bench = Bench::new();
    let subject = name(&[("CN", "ann")]);
    assert_eq!(bench.admitted(&client("A.B", "192.0.2.1", &subject)), "-");
    assert_eq!(
        bench.admitted(&client("SYSTEM.DEF.SVRCONN", "192.0.2.1", &subject)),
        "!"
    );
    assert_eq!(
        bench.admitted(&client("SYSTEM.ADMIN.SVRCONN", "192.0.2.1", &subject)),
        "-"
    );
}

#[test]
fn the_most_specific_record_counts() {
    use ChannelRuleType::{Address, ClientUser, PeerName};
    let mut bench = Bench::new();
    let subject = name(&[("O", "Ferry"), ("CN", "ann")]);
    let other = name(&[("O", "Ferry"), ("CN", "bob")]);
    // Each further record beats those before it.
    for (profile, rule_type, pairs, user) in [
        ("*", Address, vec![("ADDRESS", "*"), ("MCAUSER", "a")], "a"),
        (
            "*",
            Address,
            vec![("ADDRESS", "192.*"), ("MCAUSER", "b")],
            "b",
        ),
        (
            "*",
            Address,
            vec![("ADDRESS", "192.0.2.*"), ("MCAUSER", "c")],
            "c",
        ),
        (
            "*",
            Address,
            vec![("ADDRESS", "192.0.2.1"), ("MCAUSER", "d")],
            "d",
        ),
        (
            "*",
            ClientUser,
            vec![("CLNTUSER", "ann"), ("MCAUSER", "e")],
            "e",
        ),
        (
            "*",
            ClientUser,
            vec![("CLNTUSER", "ann"), ("ADDRESS", "*"), ("MCAUSER", "f")],
            "f",
        ),
        (
            "*",
            PeerName,
            vec![("SSLPEER", "O=Fer*"), ("MCAUSER", "g")],
            "g",
        ),
        (
            "*",
            PeerName,
            vec![("SSLPEER", "O=Ferry"), ("MCAUSER", "h")],
            "h",
        ),
        (
            "*",
            PeerName,
            vec![("SSLPEER", "CN=ann,O=Ferry"), ("MCAUSER", "i")],
            "i",
        ),
        (
            "SHIP.*",
            Address,
            vec![("ADDRESS", "*"), ("MCAUSER", "j")],
            "j",
        ),
        (
            "SHIP.CLNT",
            Address,
            vec![("ADDRESS", "*"), ("USERSRC", "CHANNEL")],
            "-",
        ),
        (
            "SHIP.CLNT",
            PeerName,
            vec![("SSLPEER", "O=Ferry"), ("USERSRC", "NOACCESS")],
            "!",
        ),
    ] {
        bench.set(profile, rule_type, &pairs);
        let found = bench.admitted(&client("SHIP.CLNT", "192.0.2.1", &subject));
        assert_eq!(found, user, "{profile} {pairs:?}");
    }
    assert_eq!(
        bench.admitted(&client("SHIP.OTHER", "10.0.0.1", &other)),
        "j"
    );
    assert_eq!(bench.admitted(&client("OTHER", "10.0.0.1", &other)), "h");
}

#[test]
fn records_of_queue_managers_are_for_message_channels_and_those_of_users_for_clients() {
    let mut bench = Bench::new();
    bench.set(
        "*",
        ChannelRuleType::QueueManager,
        &[("QMNAME", "QM*"), ("MCAUSER", "q")],
    );
    bench.set(
        "*",
        ChannelRuleType::ClientUser,
        &[("CLNTUSER", "QM2"), ("USERSRC", "NOACCESS")],
    );
    let message_channel = Applicant {
        channel: "A.B",
        address: "192.0.2.1".parse().unwrap(),
        certificate: None,
        issuer: None,
        identity: Identity::QueueManager("QM2"),
    };
    assert_eq!(bench.admitted(&message_channel), "q");
    let of_client = Applicant {
        identity: Identity::Client("QM2"),
        ..message_channel
    };
    assert_eq!(bench.admitted(&of_client), "!");
    let another = Applicant {
        identity: Identity::QueueManager("SOUTH"),
        ..message_channel
    };
    assert_eq!(bench.admitted(&another), "-");
}

#[test]
fn addresses_are_blocked_whatever_maps_them_and_warnings_let_through() {
    let mut bench = Bench::new();
    let subject = name(&[("CN", "ann")]);
    let ann = client("A.B", "192.0.2.9", &subject);
    bench.set(
        "A.B",
        ChannelRuleType::PeerName,
        &[("SSLPEER", "CN=ann"), ("MCAUSER", "x")],
    );
    bench.set(
        "*",
        ChannelRuleType::BlockAddress,
        &[("ADDRLIST", "10.*,192.0.2.*")],
    );
    assert_eq!(bench.admitted(&ann), "!");
    bench.set(
        "*",
        ChannelRuleType::BlockAddress,
        &[("ADDRLIST", "192.0.2.*"), ("WARN", "YES")],
    );
    assert_eq!(bench.admitted(&ann), "x");
    assert_eq!(admit(bench.qm1(), &ann).unwrap().warned.len(), 1);
    bench.set(
        "A.B",
        ChannelRuleType::PeerName,
        &[
            ("SSLPEER", "CN=ann"),
            ("USERSRC", "NOACCESS"),
            ("WARN", "YES"),
        ],
    );
    assert_eq!(bench.admitted(&ann), "-");
    assert_eq!(admit(bench.qm1(), &ann).unwrap().warned.len(), 2);
}

#[test]
fn the_most_specific_ban_of_users_alone_counts() {
    let mut bench = Bench::new();
    let refused = |bench: &Bench, channel: &str, user: &str, administrator| {
        check_user(bench.qm1(), channel, user, administrator).is_err()
    };
    bench.set(
        "*",
        ChannelRuleType::BlockUser,
        &[("USERLIST", "*MQADMIN,eve")],
    );
    assert!(refused(&bench, "A.B", "eve", false));
    assert!(refused(&bench, "A.B", "ann", true));
    assert!(!refused(&bench, "A.B", "ann", false));
    bench.set("A.B", ChannelRuleType::BlockUser, &[("USERLIST", "nobody")]);
    assert!(!refused(&bench, "A.B", "ann", true));
    assert!(!refused(&bench, "A.B", "eve", false));
    assert!(refused(&bench, "A.C", "eve", false));
}

#[test]
fn chlauth_disabled_looks_at_no_record() {
    let mut bench = Bench::new();
    let subject = name(&[("CN", "ann")]);
    bench.set(
        "*",
        ChannelRuleType::Address,
        &[("ADDRESS", "*"), ("USERSRC", "NOACCESS")],
    );
    bench.set("*", ChannelRuleType::BlockUser, &[("USERLIST", "ann")]);
    let mut qmgr = bench.qm1().clone();
    let ann = client("A.B", "192.0.2.1", &subject);
    assert!(admit(&qmgr, &ann).is_err());
    qmgr.attributes.channel_authentication = Enabled::No;
    assert!(admit(&qmgr, &ann).is_ok());
    assert!(check_user(&qmgr, "A.B", "ann", false).is_ok());
}
