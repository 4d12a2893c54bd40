//! Clients that make dynamic queues from models, use them, and close or lose them; and what is known of whether a queue is there.

use ferrymq_engine::{
    CloseOption, Get, InputUse, Object, ObjectName, OpenOptions, Reply, Request, Source,
};
use ferrymq_types::ReasonCode;

use crate::invariants::{Check, inv_q1_dynamic_queues};
use crate::oracle::Existence;
use crate::sim::clients::queue_name;
use crate::sim::node::{Answer, What};
use crate::sim::world::{World, after};

/// A model, and the name of the queue that is made from it. One client alone uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dynamic {
    pub(crate) model: &'static str,
    pub(crate) name: &'static str,
    /// `DEFTYPE(PERMDYN)`.
    pub(crate) permanent: bool,
}

pub(crate) const TEMPORARY: Dynamic = Dynamic {
    model: "TEMP.MODEL",
    name: "DYN.TEMP",
    permanent: false,
};

pub(crate) const PERMANENT: Dynamic = Dynamic {
    model: "PERM.MODEL",
    name: "DYN.PERM",
    permanent: true,
};

/// Where both are.
pub(crate) const NODE: usize = 1;

impl World {
    /// What such a client does next.
    pub(crate) fn dynamic_request(&mut self, number: usize, dynamic: Dynamic) -> (What, Request) {
        let Some(handle) = self.open_handle(number) else {
            // A permanent one is known to be there, or thought not to be.
            let by_name = dynamic.permanent && self.oracle.dynamic != Existence::No;
            let by_name = by_name && self.dice.percent(80);
            let name = if by_name { dynamic.name } else { dynamic.model };
            let options = OpenOptions {
                input: Some(InputUse::Shared),
                output: true,
                ..OpenOptions::default()
            };
            let open = Request::Open {
                name: ObjectName::local(queue_name(name)),
                options,
                dynamic_name: (!by_name).then(|| dynamic.name.to_owned()),
                selector: None,
            };
            return (What::OpenDynamic { dynamic, by_name }, open);
        };
        if self.dice.percent(8) {
            let options = [
                CloseOption::None,
                CloseOption::Delete,
                CloseOption::DeletePurge,
            ];
            let option = if dynamic.permanent {
                self.dice.pick(&options)
            } else {
                CloseOption::None
            };
            let deletes = option != CloseOption::None;
            let what = What::CloseDynamic { dynamic, deletes };
            return (what, Request::Close { handle, option });
        }
        let wait = self.dice.below(600);
        let get = Get {
            wait_until: (wait > 400).then(|| after(self.now, wait)),
            ..Get::of(Source::Handle(handle))
        };
        let what = What::Get {
            node: NODE,
            queue: dynamic.name,
            unit: None,
        };
        (what, Request::Get(get))
    }

    /// Where such a client puts, if it has its queue open.
    pub(crate) fn dynamic_object(&self, number: usize) -> Option<Object> {
        self.open_handle(number).map(Object::Handle)
    }

    /// The engine answered; nobody has heard of it.
    pub(crate) fn dynamic_answered(&mut self, what: What, answer: &Answer) -> Check {
        let (what, unsure) = match what {
            What::OpenDynamic { dynamic, by_name } if dynamic.permanent => {
                let known = self.oracle.dynamic;
                match answer {
                    Ok(_) if by_name => inv_q1_dynamic_queues::found(known)?,
                    Ok(_) => inv_q1_dynamic_queues::made(known)?,
                    Err(failure) if failure.reason == ReasonCode::UNKNOWN_OBJECT_NAME => {
                        inv_q1_dynamic_queues::missing(known)?;
                        self.oracle.dynamic = Existence::No;
                    }
                    Err(failure) if failure.reason == ReasonCode::OBJECT_ALREADY_EXISTS => {
                        inv_q1_dynamic_queues::found(known)?;
                    }
                    Err(_) => {}
                }
                (what, answer.is_ok() && !by_name)
            }
            What::OpenDynamic { .. } => {
                inv_q1_dynamic_queues::temporary(answer.as_ref().err().map(|f| f.reason))?;
                (what, false)
            }
            What::CloseDynamic { dynamic, deletes } => {
                (what, dynamic.permanent && deletes && answer.is_ok())
            }
            other => (other, false),
        };
        if unsure {
            self.trace.add(self.now, || {
                format!("{what:?} may have changed whether it is there")
            });
            self.oracle.dynamic = Existence::Maybe;
        }
        Ok(())
    }

    /// An answer leaves the node: what it says is durable.
    pub(crate) fn dynamic_left(&mut self, what: What, answer: &Answer) {
        match (what, answer) {
            (What::OpenDynamic { dynamic, .. }, Ok(_)) if dynamic.permanent => {
                self.oracle.dynamic = Existence::Yes;
            }
            (
                What::CloseDynamic {
                    dynamic,
                    deletes: true,
                },
                Ok(_),
            ) if dynamic.permanent => {
                self.oracle.dynamic = Existence::No;
            }
            _ => {}
        }
    }

    /// A client hears that its queue is open, or closed.
    pub(crate) fn dynamic_heard(&mut self, number: usize, what: What, answer: &Answer) {
        let made = matches!(what, What::OpenDynamic { by_name: false, .. }) && answer.is_ok();
        self.statistics.dynamic_queues += u64::from(made);
        match (what, answer) {
            (What::OpenDynamic { .. } | What::OpenTriggered, Ok(Reply::Opened(opened))) => {
                self.set_open_handle(number, Some(opened.handle));
            }
            (What::CloseDynamic { .. } | What::CloseTriggered, Ok(_)) => {
                self.set_open_handle(number, None);
            }
            _ => {}
        }
    }

    /// Whether the dynamic queues are there that should be, and no others.
    pub(crate) fn dynamics_at_rest(&self, restarted: bool) -> Check {
        let running = self.nodes[NODE].running.as_ref();
        let there = |dynamic: Dynamic| {
            running.is_some_and(|r| r.engine.queue_id(&queue_name(dynamic.name)).is_some())
        };
        let open = self.has_open_handle(TEMPORARY);
        inv_q1_dynamic_queues::at_rest(
            self.oracle.dynamic,
            there(PERMANENT),
            there(TEMPORARY) && (restarted || !open),
        )
    }
}
