use std::path::Path;
use std::sync::Arc;

use ferrymq_objects::{Applied, CommandError};
use ferrymq_store::memory::{MemoryDisk, MemoryOptions};
use ferrymq_types::ReasonCode;

use super::{LONG, MemoryState, NoNetwork, config, create, define};
use crate::config::{COMMAND_BYTES_MAX, Member};
use crate::error::{InitializeError, OpenError, ProposeError};
use crate::handle::Metadata;
use crate::status::Role;

struct Node {
    disk: MemoryDisk,
    rows: MemoryState,
    directory: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        Self {
            disk: MemoryDisk::new(),
            rows: MemoryState::default(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    async fn open(&self) -> Metadata {
        self.try_open(config(self.path())).await.unwrap()
    }

    async fn try_open(&self, config: crate::MetadataConfig) -> Result<Metadata, OpenError> {
        Metadata::open(
            config,
            self.disk.open_log(MemoryOptions::default()),
            Arc::new(self.rows.clone()),
            Arc::new(NoNetwork),
        )
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_alone_defines_restarts_and_still_has_it() {
    let node = Node::new();
    let metadata = node.open().await;
    let created = metadata.propose(&create(1)).await.unwrap();
    assert!(matches!(
        created.applied,
        Applied::QueueManagerCreated { .. }
    ));
    let defined = metadata.propose(&define(2, "A")).await.unwrap();
    assert!(defined.index > created.index);
    let before = metadata.definitions();
    assert_eq!(metadata.current().await.unwrap(), before);
    let mut term = metadata.status().term;
    metadata.shutdown().await;

    for seed in 0..3 {
        node.disk.crash(seed);
        let metadata = node.open().await;
        assert_eq!(metadata.definitions(), before);
        let current = metadata.current().await.unwrap();
        assert_eq!(current, before);
        let status = metadata.members().await;
        assert_eq!((status.role, status.leader), (Role::Leader, Some(1)));
        assert!(status.has_quorum);
        // It has been elected anew (invariant R5).
        assert!(status.term > term);
        term = status.term;
        metadata.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_i2_a_repeated_request_gets_the_same_answer_and_one_effect() {
    let node = Node::new();
    let metadata = node.open().await;
    metadata.propose(&create(1)).await.unwrap();
    let first = metadata.propose(&define(2, "A")).await.unwrap();
    assert_eq!(metadata.propose(&define(2, "A")).await.unwrap(), first);
    let exists = metadata.propose(&define(3, "A")).await.unwrap_err();
    let ProposeError::Refused(CommandError::Exists { .. }) = exists else {
        panic!("{exists}");
    };
    assert_eq!(exists.reason(), ReasonCode::new(4001));
    metadata.shutdown().await;

    let metadata = node.open().await;
    assert_eq!(metadata.propose(&define(2, "A")).await.unwrap(), first);
    assert_eq!(metadata.propose(&define(3, "A")).await.unwrap_err(), exists);
    metadata.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_too_large_is_refused_before_it_travels() {
    let node = Node::new();
    let metadata = node.open().await;
    let large = define(1, &"A".repeat(COMMAND_BYTES_MAX));
    let refused = metadata.propose(&large).await.unwrap_err();
    assert!(matches!(refused, ProposeError::TooLarge { .. }));
    assert_eq!(refused.reason(), ReasonCode::LIMIT_EXCEEDED);
    let mut newer = define(1, "A");
    newer.version = 99;
    let refused = metadata.propose(&newer).await.unwrap_err();
    assert!(matches!(refused, ProposeError::Format(_)));
    metadata.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_s2_a_failed_sync_stops_the_metadata_of_this_node() {
    let node = Node::new();
    let metadata = node.open().await;
    metadata.propose(&create(1)).await.unwrap();
    let before = metadata.definitions();
    node.disk.fail_next_sync();
    let failed = metadata.propose(&define(2, "A")).await.unwrap_err();
    assert!(matches!(failed, ProposeError::InDoubt(_)), "{failed}");
    let why = tokio::time::timeout(LONG, metadata.stopped())
        .await
        .unwrap();
    assert!(why.contains("the test asked for it"), "{why}");
    let refused = metadata.propose(&define(3, "B")).await.unwrap_err();
    assert_eq!(refused.reason(), ReasonCode::STOPPING);
    // What it had can still be read.
    assert_eq!(metadata.definitions(), before);
    metadata.shutdown().await;

    let metadata = node.open().await;
    metadata.propose(&define(2, "A")).await.unwrap();
    metadata.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_its_peers_refuses_changes_with_9001_and_reads_on() {
    let node = Node::new();
    let mut config = config(node.path());
    config.members.push(Member {
        id: 2,
        name: "two".to_owned(),
        address: "127.0.0.1:1".to_owned(),
    });
    config.members[0].address = "127.0.0.1:2".to_owned();
    config.bootstrap = true;
    config.propose_timeout = std::time::Duration::from_millis(300);
    let metadata = node.try_open(config).await.unwrap();
    let refused = metadata.propose(&create(1)).await.unwrap_err();
    assert_eq!(refused.reason(), ReasonCode::NO_QUORUM);
    assert_eq!(metadata.bootstrap().await, Ok(true));
    let refused = metadata.propose(&create(1)).await.unwrap_err();
    assert!(matches!(refused, ProposeError::NoQuorum(_)), "{refused}");
    assert_eq!(
        metadata.current().await.unwrap_err().reason(),
        ReasonCode::NO_QUORUM
    );
    assert!(metadata.definitions().queue_managers.is_empty());
    let status = metadata.members().await;
    assert!(!status.has_quorum);
    assert_eq!(status.members.len(), 2);
    assert!(!status.members[1].reachable);
    metadata.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_make_no_sense_are_refused() {
    let node = Node::new();
    let metadata = node.open().await;
    // It has made its cluster already: nothing to do.
    assert_eq!(metadata.initialize(&[]).await, Ok(()));
    metadata.shutdown().await;

    let other = Node::new();
    let mut twice = config(other.path());
    twice.members.push(twice.members[0].clone());
    assert!(matches!(
        other.try_open(twice).await,
        Err(OpenError::Config(_))
    ));
    let mut missing = config(other.path());
    missing.node = 9;
    assert!(matches!(
        other.try_open(missing).await,
        Err(OpenError::Config(_))
    ));
    let mut hasty = config(other.path());
    hasty.election_timeout = hasty.heartbeat;
    assert!(matches!(
        other.try_open(hasty).await,
        Err(OpenError::Config(_))
    ));
    let error = InitializeError::ClusterExists { peer: 2 };
    assert!(error.to_string().contains("add this node there"));
}
