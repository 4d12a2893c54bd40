//! A trigger monitor: it waits on an initiation queue, and empties the queue that a trigger message is about.

use ferrymq_engine::{Get, HandleId, InputUse, ObjectName, OpenOptions, Reply, Request, Source};

use crate::invariants::{Check, inv_t2_triggers};
use crate::sim::Fault;
use crate::sim::clients::queue_name;
use crate::sim::node::{Answer, What};
use crate::sim::world::{World, after};

pub(crate) const INITIATION_QUEUE: &str = "INIT.Q";
pub(crate) const TRIGGERED_QUEUE: &str = "TRIG.Q";
/// Where both are.
pub(crate) const NODE: usize = 1;

/// What the monitor is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Monitor {
    /// It opens the initiation queue.
    #[default]
    Begins,
    /// It waits for a trigger, through this handle.
    Waits(HandleId),
    /// It has one, and reads until nothing is there.
    Reads(HandleId),
    /// There was nothing any more.
    Ends(HandleId),
}

fn opened_for_input(queue: &str) -> Request {
    let options = OpenOptions {
        input: Some(InputUse::Shared),
        ..OpenOptions::default()
    };
    Request::Open {
        name: ObjectName::local(queue_name(queue)),
        options,
        dynamic_name: None,
        selector: None,
    }
}

impl World {
    /// What the monitor does next.
    pub(crate) fn monitor_request(&mut self, number: usize) -> (What, Request) {
        let handle = self.open_handle(number);
        match (self.monitor(number), handle) {
            (Monitor::Begins, _) => (What::OpenInitiation, opened_for_input(INITIATION_QUEUE)),
            (Monitor::Waits(initiation), _) => {
                let get = Get {
                    wait_until: Some(after(self.now, 2_000)),
                    ..Get::of(Source::Handle(initiation))
                };
                (What::Trigger, Request::Get(get))
            }
            (Monitor::Reads(_), None) => (What::OpenTriggered, opened_for_input(TRIGGERED_QUEUE)),
            (Monitor::Reads(_), Some(handle)) => {
                let get = Get {
                    wait_until: Some(after(self.now, self.dice.below(60))),
                    ..Get::of(Source::Handle(handle))
                };
                let what = What::Get {
                    node: NODE,
                    queue: TRIGGERED_QUEUE,
                    unit: None,
                };
                (what, Request::Get(get))
            }
            (Monitor::Ends(_), handle) => {
                let option = ferrymq_engine::CloseOption::None;
                let handle = handle.unwrap_or(HandleId(0));
                (What::CloseTriggered, Request::Close { handle, option })
            }
        }
    }

    /// The monitor hears an answer.
    pub(crate) fn monitor_heard(&mut self, number: usize, what: What, answer: &Answer) {
        let ignores = self.fault == Some(Fault::TriggersIgnored) && self.dice.percent(30);
        let next = match (self.monitor(number), what, answer) {
            (Monitor::Begins, What::OpenInitiation, Ok(Reply::Opened(opened))) => {
                Monitor::Waits(opened.handle)
            }
            (Monitor::Waits(initiation), What::Trigger, Ok(Reply::Got(_))) if !ignores => {
                self.statistics.triggers += 1;
                Monitor::Reads(initiation)
            }
            (Monitor::Reads(initiation), What::Get { .. }, Err(_)) => Monitor::Ends(initiation),
            (Monitor::Ends(initiation), What::CloseTriggered, _)
            | (Monitor::Reads(initiation), What::OpenTriggered, Err(_)) => {
                Monitor::Waits(initiation)
            }
            _ => return,
        };
        self.set_monitor(number, next);
    }

    /// Whether triggers have done their work, as far as they will: the monitor waits, and there is none for it.
    pub(crate) fn triggers_are_quiet(&self) -> bool {
        self.monitor_waits() && self.depth(NODE, INITIATION_QUEUE) == 0
    }

    pub(crate) fn triggers_at_rest(&self) -> Check {
        inv_t2_triggers::at_rest(self.depth(NODE, TRIGGERED_QUEUE))
    }
}
