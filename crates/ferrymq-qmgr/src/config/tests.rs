use super::*;

fn load(files: &[(&str, &str)]) -> Result<NodeConfig, String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    NodeConfig::load(&dir.path().join(files[0].0)).map_err(|e| e.to_string())
}

const NODE: &str = "[node]\nname = \"n1\"\nqmgrs = [\"QM1\"]\n";

#[test]
fn a_short_file_is_enough() {
    let config = load(&[("n1.toml", NODE)]).unwrap();
    assert_eq!(config.listen.mq.port(), 1414);
    assert!(config.is_alone());
}

#[test]
fn a_wrong_key_is_named_with_its_place_and_the_nearest_one() {
    let error = load(&[(
        "n1.toml",
        &format!("{NODE}[listen]\nmg = \"127.0.0.1:1\"\n"),
    )])
    .unwrap_err();
    assert!(error.contains("n1.toml: line 5, column 1"), "{error}");
    assert!(error.contains("did you mean `mq`?"), "{error}");
}

#[test]
fn an_error_in_the_included_file_names_that_file() {
    let node = format!("include = \"cluster.toml\"\n{NODE}");
    let cluster = "[cluster]\nheartbeat = \"150\"\n";
    let error = load(&[("n1.toml", &node), ("cluster.toml", cluster)]).unwrap_err();
    assert!(
        error.contains("cluster.toml: line 2") && error.contains("no duration"),
        "{error}"
    );
}

#[test]
fn keys_that_disagree_are_both_named() {
    let check = |more: &str, words: &[&str]| {
        let error = load(&[("n1.toml", &format!("{NODE}{more}"))]).unwrap_err();
        for word in words {
            assert!(error.contains(word), "{error} should name {word}");
        }
    };
    check("[listen]\nmq = \"0.0.0.0:1414\"\n", &["listen.mq", "[tls]"]);
    check(
        "[cluster]\nheartbeat = \"1s\"\n",
        &["cluster.election_timeout", "cluster.heartbeat"],
    );
    check(
        "[storage]\njournal = \"256MiB\"\nmax_message = \"100MiB\"\n",
        &["storage.journal", "storage.max_message"],
    );
    check(
        "[storage]\nsegment = \"1MiB\"\n",
        &["storage.segment", "storage.journal"],
    );
    check(
        "[[cluster.peers]]\nid = 2\nname = \"n2\"\npeer = \"h:1\"\n",
        &["node.id", "cluster.peers"],
    );
    check("[auth]\nadmin_peers = [\"cn=x\"]\n", &["auth.admin_peers"]);
}

#[test]
fn sizes_and_durations_need_their_units() {
    assert_eq!(ByteSize::parse("64MiB"), Some(ByteSize(64 << 20)));
    assert_eq!(ByteSize::parse("64MB"), None);
    assert_eq!(ByteSize::parse("99999999999999TiB"), None);
    assert_eq!(Interval::parse("5m").map(|i| i.0.as_secs()), Some(300));
    assert_eq!(Interval::parse("5"), None);
}
