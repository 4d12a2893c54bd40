//! From the names of an open to the queue that it means: first the queue manager, then the queue, with local knowledge only.
//!
//! Source: IBM MQ, "Name resolution".

use ferrymq_types::{QueueManagerName, QueueName, ReasonCode};

use crate::{AliasQueue, LocalQueue, Queue, QueueManager, Usage};

/// Never the default transmission queue.
const CLUSTER_TRANSMISSION_QUEUE: &str = "SYSTEM.CLUSTER.TRANSMIT.QUEUE";

/// Where a message goes that is put to a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution<'a> {
    /// The definitions gone through, in their order: a queue-manager alias, an alias, a remote definition, the local queue or
    /// transmission queue at the end. `PUT(DISABLED)` on any of them refuses the put; `DEFPRTY` and `DEFPSIST` are those of
    /// the first.
    pub path: Vec<&'a Queue>,
    /// The end of the path.
    pub target: Target<'a>,
}

/// The end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'a> {
    /// A queue here.
    Local(&'a LocalQueue),
    /// A queue elsewhere.
    Remote {
        /// Where the message waits for its channel.
        transmission_queue: &'a LocalQueue,
        /// `RemoteQName` of its transmission header.
        remote_queue: QueueName,
        /// `RemoteQMgrName` of its transmission header.
        remote_queue_manager: QueueManagerName,
    },
}

const fn as_local(queue: &Queue) -> Option<&LocalQueue> {
    match queue {
        Queue::Local(q) => Some(q),
        Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_) => None,
    }
}

impl QueueManager {
    fn is_me(&self, name: &QueueManagerName) -> bool {
        *name == self.attributes.name
    }

    /// Resolves the names of a put or of an open for output.
    ///
    /// The target of a queue-manager alias without RQMNAME is not known: 2087 (our own rule; IBM MQ does not say).
    ///
    /// # Errors
    /// 2085 for a queue that is not known; 2082, 2001 for an alias whose target is missing or is an alias; 2184 for a remote
    /// definition without RNAME; 2087 for a queue manager that is not known; 2091, 2092, 2196 for a transmission queue that is
    /// no local queue, has another USAGE, or is missing; 2197, 2198, 2199 for a bad default transmission queue.
    pub fn resolve_for_output(
        &self,
        queue: &QueueName,
        object_queue_manager: Option<&QueueManagerName>,
    ) -> Result<Resolution<'_>, ReasonCode> {
        let mut path = Vec::new();
        let target = match object_queue_manager {
            None => self.resolve_queue(queue, &mut path)?,
            Some(name) if self.is_me(name) => self.resolve_queue(queue, &mut path)?,
            Some(name) => self.resolve_queue_manager(queue, name, &mut path)?,
        };
        Ok(Resolution { path, target })
    }

    /// Step A: a queue manager that is not this one.
    fn resolve_queue_manager<'a>(
        &'a self,
        queue: &QueueName,
        name: &QueueManagerName,
        path: &mut Vec<&'a Queue>,
    ) -> Result<Target<'a>, ReasonCode> {
        let Some(found) = self.queues.get(&name.as_queue_name()) else {
            return self.remote(None, queue, name, path);
        };
        match found {
            Queue::Local(local) => {
                let transmission_queue = check_usage(local)?;
                path.push(found);
                Ok(Target::Remote {
                    transmission_queue,
                    remote_queue: queue.clone(),
                    remote_queue_manager: name.clone(),
                })
            }
            Queue::Alias(_) | Queue::Model(_) => Err(ReasonCode::UNKNOWN_REMOTE_Q_MGR),
            Queue::Remote(alias) => {
                let (None, Some(real)) = (&alias.remote_name, &alias.remote_queue_manager) else {
                    return Err(ReasonCode::UNKNOWN_REMOTE_Q_MGR);
                };
                path.push(found);
                if self.is_me(real) {
                    self.resolve_queue(queue, path)
                } else {
                    self.remote(alias.transmission_queue.as_ref(), queue, real, path)
                }
            }
        }
    }

    /// Step B: a queue, as this queue manager knows it.
    fn resolve_queue<'a>(
        &'a self,
        queue: &QueueName,
        path: &mut Vec<&'a Queue>,
    ) -> Result<Target<'a>, ReasonCode> {
        let found = self
            .queues
            .get(queue)
            .ok_or(ReasonCode::UNKNOWN_OBJECT_NAME)?;
        match found {
            Queue::Local(_) | Queue::Remote(_) => self.resolve_base(found, path),
            // Only an open makes a queue from it.
            Queue::Model(_) => Err(OPTION_NOT_VALID_FOR_TYPE),
            Queue::Alias(alias) => {
                path.push(found);
                let base = self.alias_base(alias)?;
                self.resolve_base(base, path)
            }
        }
    }

    /// What an alias points at. An alias leads one step.
    fn alias_base(&self, alias: &AliasQueue) -> Result<&Queue, ReasonCode> {
        alias
            .target
            .as_ref()
            .and_then(|t| self.queues.get(t))
            .ok_or(ReasonCode::UNKNOWN_ALIAS_BASE_Q)
    }

    /// A definition that an open or an alias came to.
    fn resolve_base<'a>(
        &'a self,
        found: &'a Queue,
        path: &mut Vec<&'a Queue>,
    ) -> Result<Target<'a>, ReasonCode> {
        match found {
            Queue::Alias(_) | Queue::Model(_) => Err(ReasonCode::ALIAS_BASE_Q_TYPE_ERROR),
            Queue::Local(local) => {
                path.push(found);
                Ok(Target::Local(local))
            }
            Queue::Remote(remote) => {
                let name = remote
                    .remote_name
                    .as_ref()
                    .ok_or(ReasonCode::REMOTE_Q_NAME_ERROR)?;
                let queue_manager = remote
                    .remote_queue_manager
                    .as_ref()
                    .filter(|n| !self.is_me(n))
                    .ok_or(ReasonCode::UNKNOWN_REMOTE_Q_MGR)?;
                path.push(found);
                self.remote(
                    remote.transmission_queue.as_ref(),
                    name,
                    queue_manager,
                    path,
                )
            }
        }
    }

    /// A queue at another queue manager: through the transmission queue that the definition names, else the one named like
    /// the queue manager, else the default one.
    fn remote<'a>(
        &'a self,
        named: Option<&QueueName>,
        queue: &QueueName,
        queue_manager: &QueueManagerName,
        path: &mut Vec<&'a Queue>,
    ) -> Result<Target<'a>, ReasonCode> {
        let found = match named {
            Some(name) => self.queues.get(name).ok_or(ReasonCode::UNKNOWN_XMIT_Q)?,
            None => match self.queues.get(&queue_manager.as_queue_name()) {
                Some(found) => found,
                None => return self.default_remote(queue, queue_manager, path),
            },
        };
        let local = as_local(found).ok_or(ReasonCode::XMIT_Q_TYPE_ERROR)?;
        let transmission_queue = check_usage(local)?;
        path.push(found);
        Ok(Target::Remote {
            transmission_queue,
            remote_queue: queue.clone(),
            remote_queue_manager: queue_manager.clone(),
        })
    }

    fn default_remote<'a>(
        &'a self,
        queue: &QueueName,
        queue_manager: &QueueManagerName,
        path: &mut Vec<&'a Queue>,
    ) -> Result<Target<'a>, ReasonCode> {
        let name = self
            .attributes
            .default_transmission_queue
            .as_ref()
            .ok_or(ReasonCode::UNKNOWN_REMOTE_Q_MGR)?;
        if name.as_str() == CLUSTER_TRANSMISSION_QUEUE {
            return Err(ReasonCode::DEF_XMIT_Q_USAGE_ERROR);
        }
        let found = self
            .queues
            .get(name)
            .ok_or(ReasonCode::UNKNOWN_DEF_XMIT_Q)?;
        let local = as_local(found).ok_or(ReasonCode::DEF_XMIT_Q_TYPE_ERROR)?;
        let transmission_queue =
            check_usage(local).map_err(|_| ReasonCode::DEF_XMIT_Q_USAGE_ERROR)?;
        path.push(found);
        Ok(Target::Remote {
            transmission_queue,
            remote_queue: queue.clone(),
            remote_queue_manager: queue_manager.clone(),
        })
    }

    /// Resolves the name of an open for input, browse or set: it must end at a local queue. With it comes the alias that led
    /// there, whose `GET` counts too.
    ///
    /// # Errors
    /// 2085 for a queue that is not known; 2082, 2001 for an alias whose target is missing or is an alias; 2045
    /// (`MQRC_OPTION_NOT_VALID_FOR_TYPE`) for a remote definition, directly or through an alias, and for a model.
    pub fn resolve_for_input(
        &self,
        queue: &QueueName,
    ) -> Result<(&LocalQueue, Option<&AliasQueue>), ReasonCode> {
        let found = self
            .queues
            .get(queue)
            .ok_or(ReasonCode::UNKNOWN_OBJECT_NAME)?;
        match found {
            Queue::Local(local) => Ok((local, None)),
            Queue::Remote(_) | Queue::Model(_) => Err(OPTION_NOT_VALID_FOR_TYPE),
            Queue::Alias(alias) => match self.alias_base(alias)? {
                Queue::Local(local) => Ok((local, Some(alias))),
                Queue::Remote(_) => Err(OPTION_NOT_VALID_FOR_TYPE),
                Queue::Alias(_) | Queue::Model(_) => Err(ReasonCode::ALIAS_BASE_Q_TYPE_ERROR),
            },
        }
    }

    /// The reply-to names that a put writes into the descriptor. With a queue manager given they stay; otherwise the name of a
    /// remote definition (a reply-to alias) is replaced by its RNAME and RQMNAME, and any other queue is one of this queue
    /// manager. A blank RNAME leaves the queue name, a blank RQMNAME means this queue manager.
    #[must_use]
    pub fn resolve_reply_to(
        &self,
        queue: &QueueName,
        queue_manager: Option<&QueueManagerName>,
    ) -> (QueueName, QueueManagerName) {
        if let Some(given) = queue_manager {
            return (queue.clone(), given.clone());
        }
        let me = &self.attributes.name;
        match self.queues.get(queue) {
            Some(Queue::Remote(alias)) => (
                alias.remote_name.as_ref().unwrap_or(queue).clone(),
                alias.remote_queue_manager.as_ref().unwrap_or(me).clone(),
            ),
            Some(Queue::Local(_) | Queue::Alias(_) | Queue::Model(_)) | None => {
                (queue.clone(), me.clone())
            }
        }
    }
}

/// `MQRC_OPTION_NOT_VALID_FOR_TYPE`.
const OPTION_NOT_VALID_FOR_TYPE: ReasonCode = ReasonCode::new(2045);

const fn check_usage(queue: &LocalQueue) -> Result<&LocalQueue, ReasonCode> {
    match queue.usage {
        Usage::Transmission => Ok(queue),
        Usage::Normal => Err(ReasonCode::XMIT_Q_USAGE_ERROR),
    }
}
