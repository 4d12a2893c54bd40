//! Real nodes in a network that fails: each `ferrymq serve` is a host of its own, and a relay carries what they say to each
//! other.
//!
//! Three queue managers, a channel between each two in either direction, half of them with `NPMSPEED(FAST)`; producers and
//! consumers that go on through every fault. At the end everything is healed and drained, and what was seen is judged.

pub mod checker;
pub mod fault;
pub mod history;
pub mod namespace;
pub mod packet;
pub mod relay;
pub mod report;
pub mod workload;

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ferrymq_client::Client;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::cluster::{Nodes, PATIENCE};
use fault::{NetworkFault, ProcessFault};
use history::{Flow, Name, Remaining};
use namespace::Namespace;
use relay::Relay;
use report::{Injected, Report};
use workload::World;

/// Queue managers.
pub const HOSTS: usize = 3;

/// Longest time that a process stands still.
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// How long messages may take to flow everywhere again after everything is healed.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// How long queues may take to be drained at the end.
const DRAIN_MAX: Duration = Duration::from_secs(120);

/// A run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Chooses faults, sizes, moments. Threads and the network are not repeated exactly.
    pub seed: u64,
    /// How long faults go on.
    pub time: Duration,
    /// A binary with crash points, if there is one.
    pub crash_points: Option<PathBuf>,
}

/// The address of a host: 0 is where clients are.
fn address(number: usize) -> Ipv4Addr {
    let last = u8::try_from(number).expect("few hosts");
    Ipv4Addr::new(10, 99, 0, last + 1)
}

/// Runs real nodes through faults.
///
/// # Errors
/// The system allows no network namespaces.
///
/// # Panics
/// If nodes cannot be started at all, or do not come to rest when everything is healed.
pub fn run(plan: &Plan) -> io::Result<Report> {
    let mut devices = Vec::new();
    let mut hosts = Vec::new();
    for number in 0..=HOSTS {
        let (host, device) = Namespace::create(address(number))?;
        devices.push((host.address(), device));
        hosts.push(host);
    }
    let relay = Relay::start(devices, plan.seed)?;
    let clients = hosts.remove(0);
    let plan = plan.clone();
    let over = clients.run(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(run_in(plan, hosts, relay))
    });
    Ok(over.expect("the run came to its end"))
}

/// All flows: each queue manager to each other, persistent and not.
fn flows() -> impl Iterator<Item = Flow> {
    let pairs = (1..=HOSTS).flat_map(|from| (1..=HOSTS).map(move |to| (from, to)));
    pairs
        .filter(|(from, to)| from != to)
        .flat_map(|(from, to)| {
            [true, false].map(|persistent| Flow {
                from,
                to,
                persistent,
            })
        })
}

/// Whether non-persistent messages travel fast on a channel.
fn is_fast(from: usize, to: usize) -> bool {
    to == from % HOSTS + 1
}

async fn run_in(plan: Plan, hosts: Vec<Namespace>, relay: Relay) -> Report {
    let mut nodes = Nodes::prepare_on(hosts.into_iter().map(Some).collect(), false).await;
    for number in 1..=HOSTS {
        nodes.start(number);
    }
    for number in 1..=HOSTS {
        nodes.wait_up(number).await;
    }
    for flow in flows().filter(|flow| flow.persistent) {
        link(&nodes, flow.from, flow.to).await;
    }
    let options = (1..=HOSTS).map(|n| (n, nodes.application(n))).collect();
    let world = Arc::new(World::new(options, plan.seed));
    let producers: Vec<_> = flows()
        .map(|flow| tokio::spawn(workload::produce(Arc::clone(&world), flow)))
        .collect();
    let consumers: Vec<_> = (1..=HOSTS)
        .map(|number| tokio::spawn(workload::consume(Arc::clone(&world), number)))
        .collect();
    let mut chaos = Chaos {
        random: StdRng::seed_from_u64(plan.seed),
        plan,
        world,
        relay,
        injected: BTreeMap::new(),
        longest_recovery: Duration::ZERO,
    };
    chaos.recover(&mut nodes).await;
    while chaos.world.now() < chaos.plan.time {
        chaos.round(&mut nodes).await;
    }
    chaos.world.stop_producers();
    for producer in producers {
        join(producer, "a producer").await;
    }
    chaos.drain(&nodes).await;
    chaos.world.stop_consumers();
    for consumer in consumers {
        join(consumer, "a consumer").await;
    }
    chaos.dump(&nodes).await;
    chaos.report()
}

async fn join(task: tokio::task::JoinHandle<()>, who: &str) {
    let ended = tokio::time::timeout(PATIENCE, task).await;
    let ended = ended.unwrap_or_else(|_| panic!("{who} does not come to its end"));
    ended.unwrap_or_else(|error| panic!("{who}: {error}"));
}

async fn link(nodes: &Nodes, from: usize, to: usize) {
    nodes.link(from, to).await;
    let speed = if is_fast(from, to) { "FAST" } else { "NORMAL" };
    for (on, kind) in [(from, "SDR"), (to, "RCVR")] {
        let channel = format!("ALTER CHANNEL(QM{from}.TO.QM{to}) CHLTYPE({kind})");
        nodes
            .define(on, &format!("{channel} HBINT(3) NPMSPEED({speed})"))
            .await;
    }
}

struct Chaos {
    plan: Plan,
    random: StdRng,
    world: Arc<World>,
    relay: Relay,
    injected: BTreeMap<&'static str, Injected>,
    longest_recovery: Duration,
}

impl Chaos {
    /// One or two faults, healing, and recovery.
    async fn round(&mut self, nodes: &mut Nodes) {
        let which = self.random.random_range(0..3);
        let network = (which != 0).then(|| NetworkFault::choose(&mut self.random));
        let crash_points = self.plan.crash_points.clone();
        // A short run has time for short pauses only.
        let pause_max = PAUSE_MAX.min(self.plan.time / 6);
        let process = (which != 1)
            .then(|| ProcessFault::choose(&mut self.random, crash_points.is_some(), pause_max));
        let before = self.relay.counts().touched();
        if let Some(fault) = &network {
            eprintln!("{:7.1?} {fault:?}", self.world.now());
            fault.begin(&self.relay);
        }
        let hold = Duration::from_millis(self.random.random_range(500..6_000));
        if let Some(fault) = &process {
            tokio::time::sleep(hold / 4).await;
            eprintln!("{:7.1?} {fault:?}", self.world.now());
            let took_hold =
                tokio::task::block_in_place(|| fault.happen(nodes, crash_points.as_deref()));
            self.injected
                .entry(fault.kind())
                .or_default()
                .count(took_hold);
        }
        if let Some(fault) = &network {
            tokio::time::sleep(hold).await;
            self.relay.heal();
            let took_hold = self.relay.counts().touched() > before;
            self.injected
                .entry(fault.kind())
                .or_default()
                .count(took_hold);
        }
        self.recover(nodes).await;
        let quiet = Duration::from_millis(self.random.random_range(0..2_000));
        tokio::time::sleep(quiet).await;
    }

    /// Waits until messages of every flow arrive again, which takes no longer than [`RECOVERY_MAX`].
    async fn recover(&mut self, nodes: &mut Nodes) {
        let healed = self.world.now();
        loop {
            let reached = self.world.reached();
            let late: Vec<String> = flows()
                .filter(|flow| reached.get(flow).is_none_or(|at| *at < healed))
                .map(|flow| flow.to_string())
                .collect();
            if late.is_empty() {
                let took = self.world.now().saturating_sub(healed);
                self.longest_recovery = self.longest_recovery.max(took);
                return;
            }
            for number in 1..=HOSTS {
                if !nodes.runs(number) {
                    self.world
                        .complain(format!("node {number} ended by itself"));
                    nodes.start(number);
                }
            }
            if self.world.now().saturating_sub(healed) > RECOVERY_MAX {
                self.world.complain(format!(
                    "after {RECOVERY_MAX:?} without a fault nothing of {late:?} arrives"
                ));
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until nothing is on its way. A message is first on a transmission queue, then on its queue.
    async fn drain(&self, nodes: &Nodes) {
        let start = self.world.now();
        for (from, to) in flows().filter(|f| f.persistent).map(|f| (f.from, f.to)) {
            self.wait_empty(nodes, from, &format!("QM{to}"), start)
                .await;
        }
        for number in 1..=HOSTS {
            self.wait_empty(nodes, number, "IN", start).await;
        }
    }

    async fn wait_empty(&self, nodes: &Nodes, number: usize, queue: &str, start: Duration) {
        let display = format!("DISPLAY QLOCAL({queue}) CURDEPTH");
        loop {
            let depth = nodes.attribute(number, &display, "CURDEPTH").await;
            if depth.as_deref() == Some("0") {
                return;
            }
            if self.world.now().saturating_sub(start) > DRAIN_MAX {
                self.world
                    .complain(format!("{queue} of QM{number} is not drained: {depth:?}"));
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Writes down what is on all queues.
    async fn dump(&self, nodes: &Nodes) {
        for number in 1..=HOSTS {
            let client = Client::connect(&nodes.administrator(number)).await;
            let client = client.expect("connected");
            let dump = client.admin().dump(&format!("QM{number}")).await;
            let mut dump = dump.expect("a dump");
            while let Some(item) = dump.next().await.expect("the whole dump") {
                // Events of the queue manager are there, too.
                if item.queue.starts_with("SYSTEM.") {
                    continue;
                }
                let data = item.message.unwrap_or_default().data;
                let Some(name) = name_in(&data) else {
                    self.world.complain(format!(
                        "C6: {} of QM{number} has a message that nobody put",
                        item.queue
                    ));
                    continue;
                };
                self.world.history().remaining.push(Remaining {
                    queue_manager: number,
                    queue: item.queue,
                    name,
                });
            }
        }
    }

    fn report(self) -> Report {
        let history = std::mem::take(&mut *self.world.history());
        Report {
            violations: checker::check(&history),
            history,
            injected: self.injected,
            longest_recovery: self.longest_recovery,
            packets: self.relay.counts(),
            seed: self.plan.seed,
            time: self.world.now(),
        }
    }
}

/// The message whose data this is, perhaps behind a header (dead-letter, transmission).
fn name_in(data: &[u8]) -> Option<Name> {
    const HEADERS_MAX: usize = 2_000;
    (0..data.len().min(HEADERS_MAX)).find_map(|at| Name::of(&data[at..]))
}
