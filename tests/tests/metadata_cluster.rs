//! The metadata of a whole cluster in one process: real TLS, real journals, real RocksDB, real sockets on this machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops where it fails"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrymq_authority::PeerPattern;
use ferrymq_journal::{Journal, JournalOptions, OsDisk};
use ferrymq_metadata::conformance::{Empty, raft_storage};
use ferrymq_metadata::{
    Committed, Connecting, InitializeError, Member, MembershipError, Metadata, MetadataConfig,
    PeerNetwork, ProposeError, Role, StateBatch, StateStore, VisitRow,
};
use ferrymq_objects::{Action, AttributeValue, Command, Definitions, ObjectKind};
use ferrymq_store::StoreError;
use ferrymq_store_rocksdb::{Durability, Kv, KvBatch, RocksOptions};
use ferrymq_tls::authority::{Authority, CertificatePaths, Validity, parse_subject};
use ferrymq_tls::{ClientVerification, RevocationPolicy, ServerRule, TlsFiles, TlsReloader};
use ferrymq_transport::{
    Listener, ListenerHandle, ListenerSecurity, PeerInfo, ServerLimits, Target, connect,
    server_builder,
};
use ferrymq_types::{QueueManagerId, QueueManagerName, ReasonCode, Timestamp};

/// Long enough for any machine: a test that waits so long has failed.
const LONG: Duration = Duration::from_secs(60);
const TABLE: &str = "definitions";

#[derive(Debug)]
struct RocksState(Kv);

impl StateStore for RocksState {
    fn scan(&self, visit: &mut VisitRow<'_>) -> Result<(), StoreError> {
        self.0.scan(TABLE, &[], None, visit)
    }

    fn write(&self, batch: StateBatch) -> Result<(), StoreError> {
        let mut out = KvBatch::new();
        for key in &batch.deletes {
            out.delete(TABLE, key);
        }
        for (key, value) in &batch.puts {
            out.put(TABLE, key, value);
        }
        self.0.write(&out, Durability::Synced)
    }
}

fn open_stores(directory: &Path) -> (Journal<OsDisk>, Arc<RocksState>) {
    let options = JournalOptions {
        segment_bytes: 256 * 1024,
        segments_max: 8,
        reserve_bytes: 0,
        ..JournalOptions::DEFAULTS
    };
    let log = Journal::open_directory(&directory.join("log"), options).unwrap();
    let kv = Kv::open(&directory.join("state"), &[TABLE], RocksOptions::default()).unwrap();
    (log, Arc::new(RocksState(kv)))
}

/// Certificates, and which nodes cannot hear each other.
struct Site {
    directory: tempfile::TempDir,
    authority: Authority,
    cut: Cut,
}

type Cut = Arc<Mutex<BTreeSet<(u64, u64)>>>;

fn validity() -> Validity {
    Validity {
        not_before: Timestamp::from_millis(1_700_000_000_000),
        not_after: Timestamp::from_millis(4_000_000_000_000),
    }
}

impl Site {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let paths = CertificatePaths::in_directory(directory.path(), "ca");
        Authority::create(
            &parse_subject("CN=Cluster CA,O=FerryMQ").unwrap(),
            validity(),
        )
        .unwrap()
        .write(&paths)
        .unwrap();
        Self {
            authority: Authority::load(&paths).unwrap(),
            directory,
            cut: Cut::default(),
        }
    }

    fn tls(&self, name: &str) -> Arc<TlsReloader> {
        let paths = CertificatePaths::in_directory(self.directory.path(), name);
        if !paths.key.exists() {
            let subject = parse_subject(&format!("CN={name},OU=Nodes,O=FerryMQ")).unwrap();
            let hosts = ["127.0.0.1".to_owned()];
            let issued = self.authority.issue_server(&subject, &hosts, validity());
            issued.unwrap().write(&paths).unwrap();
        }
        let files = TlsFiles {
            certificate: paths.certificate,
            key: paths.key,
            authorities: self.directory.path().join("ca.crt"),
            revocation_lists: Vec::new(),
            revocation: RevocationPolicy::default(),
        };
        Arc::new(TlsReloader::load(files, ClientVerification::Required).unwrap())
    }
}

/// Mutual TLS in which each node's certificate must carry its name.
struct TlsNetwork {
    node: u64,
    tls: Arc<TlsReloader>,
    cut: Cut,
    callers: Mutex<BTreeMap<u64, Vec<PeerInfo>>>,
}

impl std::fmt::Debug for TlsNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TlsNetwork({})", self.node)
    }
}

fn pattern(member: &Member) -> PeerPattern {
    PeerPattern::parse(&format!("CN={},OU=Nodes", member.name)).unwrap()
}

impl TlsNetwork {
    fn is_cut(&self, other: u64) -> bool {
        let pair = (self.node.min(other), self.node.max(other));
        self.cut.lock().unwrap().contains(&pair)
    }

    /// Ends what others have open to this node.
    fn hang_up(&self) {
        for peer in self.callers.lock().unwrap().values().flatten() {
            peer.disconnect();
        }
    }
}

impl PeerNetwork for TlsNetwork {
    fn connect(&self, member: &Member) -> Connecting {
        let cut = self.is_cut(member.id);
        let target: Target = member.address.parse().unwrap();
        let tls = self
            .tls
            .current()
            .client(ServerRule::HostNameAndName(pattern(member)));
        Box::pin(async move {
            if cut {
                return Err("the wire is cut".into());
            }
            Ok(connect(&[target], Some(&tls?), LONG).await?.channel())
        })
    }

    fn admit(&self, member: &Member, extensions: &tonic::Extensions) -> Result<(), String> {
        let peer = extensions.get::<PeerInfo>().ok_or("no connection")?;
        if self.is_cut(member.id) {
            peer.disconnect();
            return Err("the wire is cut".to_owned());
        }
        let certificate = peer.certificate.as_ref().ok_or("no certificate")?;
        let matched = pattern(member).matches(&certificate.subject, &certificate.serial);
        matched.map_err(|e| e.to_string())?;
        let mut callers = self.callers.lock().unwrap();
        let known = callers.entry(member.id).or_default();
        if !known.iter().any(|p| p.address == peer.address) {
            known.push(peer.clone());
        }
        Ok(())
    }
}

struct Node {
    metadata: Metadata,
    listener: ListenerHandle,
    network: Arc<TlsNetwork>,
}

impl Node {
    async fn stop(self) {
        self.metadata.shutdown().await;
        self.listener.stop().await.unwrap();
    }
}

/// A cluster, some of whose nodes run.
struct Cluster {
    site: Site,
    members: Vec<Member>,
    nodes: BTreeMap<u64, Node>,
    tune: fn(&mut MetadataConfig),
}

fn bind(tls: Arc<TlsReloader>, address: &str) -> Listener {
    let address: SocketAddr = address.parse().unwrap();
    Listener::bind(address, ListenerSecurity::Tls(tls), ServerLimits::default()).unwrap()
}

fn name(id: u64) -> String {
    format!("node{id}")
}

impl Cluster {
    /// Starts `count` nodes; the first makes the cluster.
    async fn start(count: u64, tune: fn(&mut MetadataConfig)) -> Self {
        let mut cluster = Self::cold(count, tune);
        let listeners = std::mem::take(&mut cluster.listeners);
        let mut cluster = cluster.cluster;
        for (id, listener) in (1..).zip(listeners) {
            cluster.run(id, listener).await;
        }
        let made = cluster.node(1).bootstrap().await;
        assert_eq!(made, Ok(true));
        for id in 1..=count {
            cluster.has_leader(id).await;
        }
        cluster
    }

    /// Binds listeners and starts nothing.
    fn cold(count: u64, tune: fn(&mut MetadataConfig)) -> Cold {
        let site = Site::new();
        let listeners: Vec<Listener> = (1..=count)
            .map(|id| bind(site.tls(&name(id)), "127.0.0.1:0"))
            .collect();
        let members = (1..)
            .zip(&listeners)
            .map(|(id, listener)| Member {
                id,
                name: name(id),
                address: listener.local_addr().to_string(),
            })
            .collect();
        Cold {
            cluster: Self {
                site,
                members,
                nodes: BTreeMap::new(),
                tune,
            },
            listeners,
        }
    }

    fn directory(&self, id: u64) -> PathBuf {
        self.site.directory.path().join(format!("data{id}"))
    }

    fn config(&self, id: u64) -> MetadataConfig {
        let members = self.members.clone();
        let mut config = MetadataConfig::new("harbour", id, members, self.directory(id));
        config.bootstrap = id == 1;
        config.propose_timeout = Duration::from_secs(20);
        (self.tune)(&mut config);
        config
    }

    async fn run(&mut self, id: u64, listener: Listener) {
        let config = self.config(id);
        self.run_as(id, listener, config, &name(id)).await;
    }

    async fn run_as(
        &mut self,
        id: u64,
        listener: Listener,
        config: MetadataConfig,
        certificate: &str,
    ) {
        let network = Arc::new(TlsNetwork {
            node: id,
            tls: self.site.tls(certificate),
            cut: Arc::clone(&self.site.cut),
            callers: Mutex::default(),
        });
        let (log, state) = open_stores(&self.directory(id));
        let peers = Arc::clone(&network) as Arc<dyn PeerNetwork>;
        let metadata = Metadata::open(config, log, state, peers).await.unwrap();
        let router = server_builder(&ServerLimits::default()).add_service(metadata.service());
        let node = Node {
            listener: listener.start(router),
            metadata,
            network,
        };
        self.nodes.insert(id, node);
    }

    fn rebind(&self, id: u64, certificate: &str) -> Listener {
        let member = self.members.iter().find(|m| m.id == id).unwrap();
        bind(self.site.tls(certificate), &member.address)
    }

    async fn restart(&mut self, id: u64) {
        let listener = self.rebind(id, &name(id));
        self.run(id, listener).await;
    }

    async fn stop(&mut self, id: u64) {
        self.nodes.remove(&id).unwrap().stop().await;
    }

    fn node(&self, id: u64) -> &Metadata {
        &self.nodes.get(&id).unwrap().metadata
    }

    async fn has_leader(&self, id: u64) -> u64 {
        let status = self
            .node(id)
            .wait_status(LONG, |s| s.leader.is_some())
            .await;
        status.unwrap().leader.unwrap()
    }

    /// The leader that these nodes agree on.
    async fn leader_of(&self, ids: &[u64]) -> u64 {
        for id in ids {
            let among =
                |s: &ferrymq_metadata::ClusterStatus| s.leader.is_some_and(|l| ids.contains(&l));
            self.node(*id).wait_status(LONG, among).await.unwrap();
        }
        self.has_leader(ids[0]).await
    }

    /// Hands leadership to a node, again if it does not take it: a node that is slow is passed over.
    async fn lead_by(&self, id: u64) {
        let led = async {
            loop {
                let leader = self.has_leader(id).await;
                if leader != id {
                    match self.node(leader).transfer_leader(id).await {
                        Ok(()) | Err(MembershipError::NotLeader(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                let leads = |s: &ferrymq_metadata::ClusterStatus| s.role == Role::Leader;
                let patience = Duration::from_secs(3);
                if self.node(id).wait_status(patience, leads).await.is_ok() {
                    return;
                }
            }
        };
        tokio::time::timeout(LONG, led).await.unwrap();
    }

    /// Cuts or heals every wire of a node.
    fn isolate(&self, id: u64, cut: bool) {
        for other in self.members.iter().map(|m| m.id).filter(|o| *o != id) {
            let pair = (id.min(other), id.max(other));
            let mut pairs = self.site.cut.lock().unwrap();
            if cut {
                pairs.insert(pair);
            } else {
                pairs.remove(&pair);
            }
        }
        if cut {
            for node in self.nodes.values() {
                node.network.hang_up();
            }
        }
    }

    /// Waits until all running nodes have applied the same, at least up to `index`, checks that it is the same, and returns it.
    async fn agreed(&self, index: u64) -> Arc<Definitions> {
        let mut wanted = index;
        loop {
            let mut all = Vec::new();
            for node in self.nodes.values() {
                node.metadata.wait_applied(wanted, LONG).await.unwrap();
                all.push(node.metadata.watch().borrow().clone());
            }
            let most = all.iter().map(|a| a.index).max().unwrap();
            if all.iter().all(|a| a.index == most) {
                let first = all.first().unwrap();
                assert!(all.iter().all(|a| a.definitions == first.definitions));
                return Arc::clone(&first.definitions);
            }
            wanted = most;
        }
    }

    async fn end(self) {
        for node in self.nodes.into_values() {
            node.stop().await;
        }
    }
}

struct Cold {
    cluster: Cluster,
    listeners: Vec<Listener>,
}

fn as_configured(_: &mut MetadataConfig) {}

fn impatient(config: &mut MetadataConfig) {
    config.propose_timeout = Duration::from_secs(3);
}

fn queue_manager() -> QueueManagerName {
    QueueManagerName::new("QM1").unwrap()
}

fn command(number: u32, action: Action) -> Command {
    let mut request = [0; 16];
    request[..4].copy_from_slice(&number.to_be_bytes());
    Command {
        version: Command::VERSION,
        queue_manager: queue_manager(),
        time: Timestamp::from_millis(1_800_000_000_000),
        request,
        action,
    }
}

fn create() -> Command {
    let id = QueueManagerId::new([7; 16]);
    command(0, Action::CreateQueueManager { id, node: 1 })
}

fn define(number: u32) -> Command {
    let attributes = [("DESCR", AttributeValue::Text(format!("queue {number}")))];
    command(
        number,
        Action::Define {
            kind: ObjectKind::LocalQueue,
            name: format!("Q{number}"),
            attributes: attributes.into_iter().collect(),
            like: None,
            replace: false,
        },
    )
}

fn has(definitions: &Definitions, number: u32) -> bool {
    let wanted = format!("Q{number}");
    definitions
        .queue_managers
        .get(&queue_manager())
        .is_some_and(|q| q.queues.keys().any(|name| name.as_str() == wanted))
}

/// Proposes until the cluster takes it: while it elects a leader, a change is refused or in doubt.
async fn taken(node: &Metadata, command: &Command) -> Committed {
    let asked = async {
        loop {
            match node.propose(command).await {
                Ok(done) => return done,
                Err(ProposeError::NoQuorum(_) | ProposeError::InDoubt(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
    };
    tokio::time::timeout(LONG, asked).await.unwrap()
}

/// Proposes until it is surely refused: while the lease of a leader runs, a change may be taken whose end is not known.
async fn surely_refused(node: &Metadata, command: &Command) -> ProposeError {
    let asked = async {
        loop {
            match node.propose(command).await.unwrap_err() {
                ProposeError::InDoubt(_) => {}
                refused => return refused,
            }
        }
    };
    tokio::time::timeout(LONG, asked).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn openraft_finds_its_storage_right_on_journal_and_rocksdb() {
    let run = raft_storage(|| {
        let guard = tempfile::tempdir().unwrap();
        let (log, state) = open_stores(guard.path());
        Empty {
            log,
            state,
            directory: guard.path().to_owned(),
            guard,
        }
    });
    run.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_r1_a_definition_made_anywhere_is_seen_everywhere_and_survives_the_leader() {
    let mut cluster = Cluster::start(3, as_configured).await;
    let leader = cluster.has_leader(1).await;
    let follower = (1..=3).find(|id| *id != leader).unwrap();
    cluster.node(follower).propose(&create()).await.unwrap();
    for id in 1..=3 {
        let done = cluster
            .node(id)
            .propose(&define(u32::try_from(id).unwrap()))
            .await
            .unwrap();
        // Who proposed sees it at once, and so does a current read anywhere.
        assert!(has(
            &cluster.node(id).definitions(),
            u32::try_from(id).unwrap()
        ));
        for other in 1..=3 {
            let current = cluster.node(other).current().await.unwrap();
            assert!(current.applied_index >= done.index);
        }
    }

    cluster.stop(leader).await;
    let left: Vec<u64> = cluster.nodes.keys().copied().collect();
    let fourth = cluster.node(follower).propose(&define(4)).await.unwrap();
    let next = cluster.leader_of(&left).await;
    assert_ne!(next, leader);
    cluster.agreed(fourth.index).await;

    cluster.restart(leader).await;
    let fifth = cluster.node(follower).propose(&define(5)).await.unwrap();
    let agreed = cluster.agreed(fifth.index).await;
    assert!((1..=5).all(|n| has(&agreed, n)));
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_i2_the_same_request_from_three_nodes_takes_effect_once() {
    let cluster = Cluster::start(3, as_configured).await;
    cluster.node(1).propose(&create()).await.unwrap();
    let command = define(1);
    let (one, two, three) = tokio::join!(
        cluster.node(1).propose(&command),
        cluster.node(2).propose(&command),
        cluster.node(3).propose(&command),
    );
    let one = one.unwrap();
    assert_eq!(two.unwrap(), one);
    assert_eq!(three.unwrap(), one);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_r3_without_a_majority_changes_are_refused_with_9001_and_reads_go_on() {
    let mut cluster = Cluster::start(3, impatient).await;
    cluster.node(1).propose(&create()).await.unwrap();
    let index = cluster.node(1).propose(&define(1)).await.unwrap().index;
    let before = cluster.agreed(index).await;
    let leader = cluster.has_leader(1).await;
    let others: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    // Once the leader is left alone, once a follower.
    for alone in [leader, others[0]] {
        for id in (1..=3).filter(|id| *id != alone) {
            cluster.stop(id).await;
        }
        let node = cluster.node(alone);
        let refused = surely_refused(node, &define(2)).await;
        assert_eq!(refused.reason(), ReasonCode::NO_QUORUM, "{refused}");
        assert!(has(&node.definitions(), 1));
        assert_eq!(
            node.current().await.unwrap_err().reason(),
            ReasonCode::NO_QUORUM
        );
        let status = node.members().await;
        assert!(!status.has_quorum);
        assert_eq!(status.members.iter().filter(|m| m.reachable).count(), 1);
        for id in (1..=3).filter(|id| *id != alone) {
            cluster.restart(id).await;
        }
        cluster.leader_of(&[1, 2, 3]).await;
        // Back again by itself.
        let number = 2 + u32::try_from(alone).unwrap();
        let again = taken(cluster.node(alone), &define(number)).await;
        assert!(has(&*cluster.agreed(again.index).await, 1));
    }
    assert!(has(&before, 1));
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_r5_a_leader_that_was_cut_off_serves_nothing_as_leader_and_follows_when_it_is_back() {
    let cluster = Cluster::start(3, impatient).await;
    cluster.node(1).propose(&create()).await.unwrap();
    let old = cluster.has_leader(1).await;
    let rest: Vec<u64> = (1..=3).filter(|id| *id != old).collect();
    cluster.isolate(old, true);
    cluster.leader_of(&rest).await;
    let new = taken(cluster.node(rest[0]), &define(1)).await;

    assert!(cluster.node(old).current().await.is_err());
    let refused = cluster.node(old).propose(&define(2)).await.unwrap_err();
    assert!(
        matches!(
            refused,
            ProposeError::NoQuorum(_) | ProposeError::InDoubt(_)
        ),
        "{refused}"
    );
    assert!(!has(&cluster.node(old).definitions(), 1));

    cluster.isolate(old, false);
    let agreed = cluster.agreed(new.index).await;
    assert!(has(&agreed, 1));
    cluster
        .node(old)
        .wait_status(LONG, |s| s.role == Role::Follower)
        .await
        .unwrap();
    cluster.end().await;
}

fn small_log(config: &mut MetadataConfig) {
    config.snapshot_every = 20;
    config.entries_kept = 2;
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_r6_a_node_that_lags_behind_the_log_gets_a_snapshot() {
    let mut cluster = Cluster::start(3, small_log).await;
    cluster.node(1).propose(&create()).await.unwrap();
    let leader = cluster.has_leader(1).await;
    let late = (1..=3).find(|id| *id != leader).unwrap();
    let had = cluster.node(late).status().last_index.unwrap();
    cluster.stop(late).await;
    let mut last = 0;
    for number in 1..=100 {
        last = cluster
            .node(leader)
            .propose(&define(number))
            .await
            .unwrap()
            .index;
    }
    let purged = |s: &ferrymq_metadata::ClusterStatus| s.purged_index > Some(had + 1);
    cluster
        .node(leader)
        .wait_status(LONG, purged)
        .await
        .unwrap();

    cluster.restart(late).await;
    let agreed = cluster.agreed(last).await;
    assert!((1..=100).all(|n| has(&agreed, n)));
    // It has no entry from where it stopped: those came as a snapshot.
    let status = cluster.node(late).wait_status(LONG, purged).await.unwrap();
    assert!(status.snapshot_index > Some(had + 1));

    // Everything is there after a restart of all, and goes on.
    for id in 1..=3 {
        cluster.stop(id).await;
    }
    for id in 1..=3 {
        cluster.restart(id).await;
        assert_eq!(cluster.node(id).definitions().applied_index, last);
    }
    cluster.leader_of(&[1, 2, 3]).await;
    let more = cluster.node(late).propose(&define(101)).await.unwrap();
    assert!(has(&*cluster.agreed(more.index).await, 101));
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inv_r4_an_emptied_data_directory_under_an_old_id_is_refused() {
    let mut cluster = Cluster::start(3, impatient).await;
    let done = cluster.node(1).propose(&create()).await.unwrap();
    cluster.agreed(done.index).await;
    cluster.stop(1).await;
    std::fs::remove_dir_all(cluster.directory(1)).unwrap();
    cluster.leader_of(&[2, 3]).await;

    // Node 1 is the one that would make a cluster.
    cluster.restart(1).await;
    let refused = cluster.node(1).bootstrap().await.unwrap_err();
    let InitializeError::DirectoryLost { node: 1, .. } = refused else {
        panic!("{refused}");
    };
    assert!(refused.to_string().contains("never used"), "{refused}");

    // It neither confirms nor votes: with one of the others gone there is no majority.
    let leader = cluster.leader_of(&[2, 3]).await;
    cluster.stop(5 - leader).await;
    let refused = surely_refused(cluster.node(leader), &define(1)).await;
    assert_eq!(refused.reason(), ReasonCode::NO_QUORUM);
    assert_eq!(cluster.node(1).definitions().applied_index, 0);
    let status = cluster.node(leader).members().await;
    let first = status.members.iter().find(|m| m.member.id == 1).unwrap();
    let problem = first.problem.as_deref().unwrap();
    assert!(problem.contains("another data directory"), "{problem}");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_another_cluster_or_with_anothers_certificate_is_refused() {
    let Cold {
        mut cluster,
        listeners,
    } = Cluster::cold(3, impatient);
    let mut listeners = listeners.into_iter();
    cluster.run(1, listeners.next().unwrap()).await;
    cluster.run(2, listeners.next().unwrap()).await;
    let mut stranger = cluster.config(3);
    stranger.cluster = "reef".to_owned();
    cluster
        .run_as(3, listeners.next().unwrap(), stranger, "node3")
        .await;
    assert_eq!(cluster.node(1).bootstrap().await, Ok(true));
    cluster.leader_of(&[1, 2]).await;
    cluster.node(2).propose(&create()).await.unwrap();
    let problem = problem_of_third(&cluster).await;
    assert!(problem.contains("not authorised"), "{problem}");
    assert_eq!(cluster.node(3).status().last_index, None);
    let answer = cluster.node(3).bootstrap().await;
    assert_eq!(answer, Ok(false));

    // The right cluster, but node 2's certificate.
    cluster.stop(3).await;
    std::fs::remove_dir_all(cluster.directory(3)).unwrap();
    let (listener, config) = (cluster.rebind(3, "node2"), cluster.config(3));
    cluster.run_as(3, listener, config, "node2").await;
    let problem = problem_of_third(&cluster).await;
    assert!(problem.contains("CN"), "{problem}");
    assert_eq!(cluster.node(3).status().last_index, None);
    cluster.stop(3).await;

    // As it should be.
    cluster.restart(3).await;
    let done = cluster.node(1).propose(&define(1)).await.unwrap();
    assert!(has(&*cluster.agreed(done.index).await, 1));
    cluster.end().await;
}

async fn problem_of_third(cluster: &Cluster) -> String {
    let status = cluster.node(1).members().await;
    let third = status
        .members
        .into_iter()
        .find(|m| m.member.id == 3)
        .unwrap();
    assert!(!third.reachable);
    third.problem.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_joins_as_a_learner_becomes_a_voter_and_takes_over() {
    let Cold {
        mut cluster,
        listeners,
    } = Cluster::cold(3, as_configured);
    for (id, listener) in (1..).zip(listeners) {
        cluster.run(id, listener).await;
    }
    let (two, third) = (cluster.members[..2].to_vec(), cluster.members[2].clone());
    cluster.node(1).initialize(&two).await.unwrap();
    let leader = cluster.leader_of(&[1, 2]).await;
    cluster.node(1).propose(&create()).await.unwrap();
    let follower = cluster.node(3 - leader);
    let refused = follower.add_learner(&third).await.unwrap_err();
    assert_eq!(refused, MembershipError::NotLeader(Some(leader)));

    cluster.node(leader).add_learner(&third).await.unwrap();
    let done = cluster.node(2).propose(&define(1)).await.unwrap();
    assert!(has(&*cluster.agreed(done.index).await, 1));
    let status = cluster
        .node(3)
        .wait_status(LONG, |s| s.role == Role::Learner)
        .await
        .unwrap();
    assert_eq!(status.members.iter().filter(|m| m.voter).count(), 2);
    // A node that only follows may be asked too.
    cluster.node(3).propose(&define(2)).await.unwrap();

    let promoted = async {
        loop {
            let leader = cluster.has_leader(1).await;
            match cluster.node(leader).set_voters([1, 2, 3]).await {
                Ok(()) => return,
                // Another leader meanwhile: it is asked next.
                Err(MembershipError::NotLeader(_) | MembershipError::InDoubt(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
    };
    tokio::time::timeout(LONG, promoted).await.unwrap();
    cluster.lead_by(3).await;
    cluster.stop(1).await;
    let done = cluster.node(3).propose(&define(3)).await.unwrap();
    assert!(has(&*cluster.agreed(done.index).await, 3));
    cluster.end().await;
}
