//! The context of messages: who caused them and where they come from. A put leaves it to the queue manager, passes on what a
//! message had that was got through a handle, or sets it.
//!
//! Source: IBM MQ, "Message context", "Context options" of MQPMO, "Options (MQLONG)" of MQOO.

use ferrymq_types::{
    AccountingToken, ApplicationType, MessageDescriptor, QueueName, ReasonCode, Timestamp,
};

use crate::engine::Step;
use crate::{ConnectionId, Context, Engine, Failure, HandleId, Object, OpenOptions, Put};

/// The context of a message.
#[derive(Debug, Clone)]
pub(crate) struct MessageContext {
    user_identifier: String,
    accounting_token: AccountingToken,
    application_identity_data: String,
    put_application_type: ApplicationType,
    put_application_name: String,
    put_time: Timestamp,
    application_origin_data: String,
}

impl MessageContext {
    pub(crate) fn of(d: &MessageDescriptor) -> Self {
        Self {
            user_identifier: d.user_identifier.clone(),
            accounting_token: d.accounting_token,
            application_identity_data: d.application_identity_data.clone(),
            put_application_type: d.put_application_type,
            put_application_name: d.put_application_name.clone(),
            put_time: d.put_time,
            application_origin_data: d.application_origin_data.clone(),
        }
    }

    fn give_identity(&self, d: &mut MessageDescriptor) {
        d.user_identifier.clone_from(&self.user_identifier);
        d.accounting_token = self.accounting_token;
        d.application_identity_data
            .clone_from(&self.application_identity_data);
    }

    fn give_origin(&self, d: &mut MessageDescriptor) {
        d.put_application_type = self.put_application_type;
        d.put_application_name
            .clone_from(&self.put_application_name);
        d.put_time = self.put_time;
        d.application_origin_data
            .clone_from(&self.application_origin_data);
    }
}

/// Whether a queue is opened with context options that fit what else is asked: 2046 if not.
pub(crate) fn check_open(options: &OpenOptions, name: &QueueName) -> Result<(), Failure> {
    let context = options.context;
    let sets = context.pass_identity || context.pass_all || context.set_identity || context.set_all;
    if (context.save_all && options.input.is_none()) || (sets && !options.output) {
        return Err(Failure::of(ReasonCode::OPTIONS_ERROR, name));
    }
    Ok(())
}

impl Engine {
    /// Gives the descriptor of a put its context. A put by name is its own open: it may ask for any.
    pub(crate) fn set_context(
        &self,
        step: &Step<'_>,
        connection: ConnectionId,
        put: &mut Put,
    ) -> Result<(), Failure> {
        if let Object::Handle(handle) = put.object {
            self.check_handle_context(connection, handle, put.context)?;
        }
        let d = &mut put.descriptor;
        match put.context {
            Context::Default | Context::SetIdentity => d.put_time = step.now,
            Context::None => {
                let none = MessageContext::of(&MessageDescriptor::default());
                none.give_identity(d);
                none.give_origin(d);
                d.put_time = step.now;
            }
            Context::PassIdentity(from) => {
                self.saved_context(connection, from)?.give_identity(d);
                d.put_time = step.now;
            }
            Context::PassAll(from) => {
                let saved = self.saved_context(connection, from)?;
                saved.give_identity(d);
                saved.give_origin(d);
            }
            Context::SetAll => {}
        }
        Ok(())
    }

    /// What a put through a handle wants with a context, its open must have said: 2093 to 2096.
    fn check_handle_context(
        &self,
        connection: ConnectionId,
        handle: HandleId,
        context: Context,
    ) -> Result<(), Failure> {
        let open = self.handle(connection, handle)?;
        let opened = open.options.context;
        let (allowed, reason) = match context {
            Context::Default | Context::None => return Ok(()),
            Context::PassIdentity(_) => (
                opened.pass_identity || opened.pass_all || opened.set_identity || opened.set_all,
                ReasonCode::NOT_OPEN_FOR_PASS_IDENT,
            ),
            Context::PassAll(_) => (
                opened.pass_all || opened.set_all,
                ReasonCode::NOT_OPEN_FOR_PASS_ALL,
            ),
            Context::SetIdentity => (
                opened.set_identity || opened.set_all,
                ReasonCode::NOT_OPEN_FOR_SET_IDENT,
            ),
            Context::SetAll => (opened.set_all, ReasonCode::NOT_OPEN_FOR_SET_ALL),
        };
        if allowed {
            Ok(())
        } else {
            Err(Failure::of(reason, &open.name.queue))
        }
    }

    /// 2097 if the handle keeps no contexts, 2098 if it has none yet.
    fn saved_context(
        &self,
        connection: ConnectionId,
        handle: HandleId,
    ) -> Result<&MessageContext, Failure> {
        let open = self
            .handle(connection, handle)
            .map_err(|_| Failure::from(ReasonCode::CONTEXT_HANDLE_ERROR))?;
        if !open.options.context.save_all {
            let reason = ReasonCode::CONTEXT_HANDLE_ERROR;
            return Err(Failure::of(reason, &open.name.queue));
        }
        open.saved_context
            .as_deref()
            .ok_or_else(|| Failure::of(ReasonCode::CONTEXT_NOT_AVAILABLE, &open.name.queue))
    }

    /// A message was got through a handle: its context can be passed on, if the handle keeps it.
    pub(crate) fn save_context(
        &mut self,
        connection: ConnectionId,
        handle: HandleId,
        descriptor: &MessageDescriptor,
    ) {
        if let Some(open) = self.handles.get_mut(&(connection, handle))
            && open.options.context.save_all
        {
            open.saved_context = Some(Box::new(MessageContext::of(descriptor)));
        }
    }

    /// The queue manager is to stop: gets that wait and asked for it end.
    pub(crate) fn quiesce(&mut self, step: &mut Step<'_>) {
        self.quiescing = true;
        self.end_gets(step, |p| {
            let ends = p.get.fail_if_quiescing;
            ends.then(|| ReasonCode::Q_MGR_QUIESCING.into())
        });
    }

    /// 2161 for a call that is not to be done while the queue manager quiesces.
    pub(crate) fn check_quiescing(&self, fail_if_quiescing: bool) -> Result<(), Failure> {
        if self.quiescing && fail_if_quiescing {
            return Err(ReasonCode::Q_MGR_QUIESCING.into());
        }
        Ok(())
    }
}
