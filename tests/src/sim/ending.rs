//! The end of a run: everything is healed, channels drain, both nodes are dumped, lose power once more and are dumped again.

use ferrymq_engine::{ConnectionId, Effect, Input, Reply, Request, RequestId};
use ferrymq_types::{Message, QueueName};

use crate::invariants::{
    self, Check, Dump, Dumped, Violation, inv_c3_no_invention, inv_c6_bytes_intact, violated,
};
use crate::sim::channel::Link;
use crate::sim::reports::is_report;
use crate::sim::triggers::INITIATION_QUEUE;
use crate::sim::world::{Phase, World};
use crate::sim::{QMGRS, XMITQ};

/// A request that only the harness makes: far above those of the nodes.
const REQUEST: RequestId = RequestId(u64::MAX);

impl World {
    /// Nothing fails any more, and nothing stands in the way.
    pub(crate) fn heal(&mut self) -> Check {
        self.trace
            .add(self.now, || "everything is healed".to_owned());
        self.phase = Phase::Healing;
        self.metadata.heal();
        for node in [0, 1] {
            self.nodes[node].crash_in = None;
            self.start(node)?;
            self.definitions_changed(node);
            self.space(node, true);
        }
        for node in [1, 0] {
            self.start_channel(node)?;
        }
        self.start_again()
    }

    pub(crate) fn depth(&self, node: usize, queue: &str) -> u64 {
        let name = QueueName::new(queue).expect("a constant that is a name");
        let running = self.nodes[node].running.as_ref();
        running
            .and_then(|r| r.engine.depth(&name))
            .unwrap_or(u64::MAX)
    }

    /// Whether all is delivered, settled and answered.
    pub(crate) fn is_quiet(&self) -> bool {
        self.depth(0, XMITQ) == 0
            && self.triggers_are_quiet()
            && !self.links.values().any(Link::carries)
            && self.nodes.iter().all(|node| {
                node.running.as_ref().is_some_and(|r| {
                    r.engine.open_units_of_work() == 0
                        && r.inbox.is_empty()
                        && r.held.is_empty()
                        && r.write_sets.is_empty()
                        && r.durable == r.store.position()
                        && !r.receivers.values().any(|end| end.waits())
                })
            })
    }

    /// How things stand, in a line.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!("{} messages wait for the channel", self.depth(0, XMITQ));
        for (node, name) in self.nodes.iter().zip(QMGRS) {
            match &node.running {
                None => text += &format!("; {name} is down"),
                Some(r) => {
                    text += &format!(
                        "; {name} has {} open units of work, {} waiting requests, {} held answers",
                        r.engine.open_units_of_work(),
                        r.engine.waiting_requests(),
                        r.held.len()
                    );
                    if let Some(sender) = &r.sender {
                        let status = sender.machine.status();
                        text += &format!(", its sender is {} {}", status.state, status.last_error);
                    }
                }
            }
        }
        text
    }

    pub(crate) fn end(&mut self) -> Check {
        let dump = self.dump()?;
        self.statistics.reports += dump.reports.len() as u64;
        invariants::at_rest(&self.oracle, &dump)?;
        self.triggers_at_rest()?;
        self.dynamics_at_rest(false)?;
        for node in [0, 1] {
            self.crash(node);
        }
        for node in [0, 1] {
            self.start(node)?;
        }
        let mut dump = self.dump()?;
        dump.restarted = true;
        self.dynamics_at_rest(true)?;
        invariants::at_rest(&self.oracle, &dump)
    }

    /// Looks at both nodes in the middle of a run.
    pub(crate) fn look(&mut self) -> Check {
        if self.phase != Phase::Working || self.nodes.iter().any(|n| n.running.is_none()) {
            return Ok(());
        }
        self.trace
            .add(self.now, || "both nodes are dumped".to_owned());
        let dump = self.dump()?;
        invariants::at_any_time(&self.oracle, &dump)
    }

    /// Asks an engine and changes nothing.
    fn inspect(&mut self, node: usize, request: Request) -> Result<Reply, Violation> {
        let now = self.now;
        let Some(running) = &mut self.nodes[node].running else {
            return violated("inv_l1_drains", format!("{} is down", QMGRS[node]));
        };
        let input = Input::Requests {
            connection: ConnectionId(u64::MAX),
            requests: vec![(REQUEST, request)],
        };
        let mut effects = Vec::new();
        running.engine.step(now, input, &mut effects);
        match effects.pop() {
            Some(Effect::Reply {
                reply: Ok(reply), ..
            }) if effects.is_empty() => Ok(reply),
            other => violated(
                "inv_c8_depth",
                format!(
                    "{} answers a look with {other:?} and {effects:?}",
                    QMGRS[node]
                ),
            ),
        }
    }

    fn dump(&mut self) -> Result<Dump, Violation> {
        let mut dump = Dump::default();
        for node in [0, 1] {
            // The reader sees what was appended.
            if let Some(run) = self.nodes[node].running.as_ref().map(|r| r.number) {
                self.nodes[node].crash_in = None;
                self.append(node, run)?;
            }
            self.dump_node(node, &mut dump)?;
            let mut after = 0;
            loop {
                let since = ferrymq_types::Timestamp::ZERO;
                let request = Request::Account {
                    after,
                    since,
                    limit: 100,
                };
                let Reply::Account(page) = self.inspect(node, request)? else {
                    break;
                };
                let Some(last) = page.last() else { break };
                after = last.number;
                dump.accounts
                    .extend(page.iter().map(|e| (node, (**e).clone())));
            }
            let Reply::Queues(queues) = self.inspect(node, Request::QueueStatistics)? else {
                continue;
            };
            for (queue, statistics) in queues {
                let items = dump.items.iter();
                let count = items.filter(|i| i.node == node && i.queue == queue).count() as u64;
                let reports = dump.reports_on.get(&(node, queue.clone()));
                let count = count + reports.copied().unwrap_or_default();
                let depth = (statistics.depth, statistics.uncommitted, count);
                dump.depths.insert((node, queue), depth);
            }
        }
        Ok(dump)
    }

    fn dump_node(&mut self, node: usize, dump: &mut Dump) -> Check {
        let mut after = None;
        loop {
            let Reply::Dump(page) = self.inspect(node, Request::Dump { after, limit: 50 })? else {
                return Ok(());
            };
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some((last.queue.0, last.sequence));
            for item in page {
                let name = item.queue.1.clone();
                if name.as_str() == INITIATION_QUEUE {
                    // The queue manager's own.
                    *dump.reports_on.entry((node, name)).or_default() += 1;
                    continue;
                }
                let stored = match &item.message {
                    Some(message) => (**message).clone(),
                    None => self.stored(node, &item)?,
                };
                if is_report(&stored.descriptor) {
                    let uid = inv_c3_no_invention::reported(&self.oracle, &stored)?;
                    let feedback = stored.descriptor.feedback;
                    *dump.reports.entry((uid, feedback)).or_default() += 1;
                    *dump.reports_on.entry((node, name)).or_default() += 1;
                    continue;
                }
                let sight = self.sight(node, name.as_str(), &stored, item.backout_count);
                let put = inv_c3_no_invention::known(&self.oracle, &sight)?;
                inv_c6_bytes_intact::seen(put, &sight)?;
                dump.items.push(Dumped {
                    node,
                    queue: name,
                    held: item.held,
                    uid: put.uid,
                });
            }
        }
    }

    fn stored(&self, node: usize, item: &ferrymq_engine::DumpItem) -> Result<Message, Violation> {
        let reader = self.nodes[node].running.as_ref().map(|r| r.store.reader());
        match reader.map(|r| r.fetch(item.queue.0, item.sequence)) {
            Some(Ok(Some((row, body)))) => Ok(Message {
                descriptor: row.descriptor,
                header: row.header,
                body,
            }),
            other => violated(
                "inv_c1_no_loss",
                format!("{item:?} of {} cannot be read: {other:?}", QMGRS[node]),
            ),
        }
    }
}
