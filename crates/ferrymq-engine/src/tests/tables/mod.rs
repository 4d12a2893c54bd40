//! Tables of options and states for the calls, to be read beside IBM MQ's reason codes: what a call answers is said by its number.
//!
//! Groups have tables of their own (`groups.rs`), opens are in `handles.rs`, inquire and set in `inquire.rs`, dynamic queues in
//! `dynamic.rs`, selectors in `selectors.rs`.

mod browse;
mod get;
mod put;
mod units;

use std::time::Duration;

use bytes::Bytes;
use ferrymq_objects::Enabled;
use ferrymq_types::{ReasonCode, ReportOptions};

use super::handles::{ALL, opened};
use super::harness::{
    C1, C2, World, get, message_id, named, put, put_np, qmgr_name, queue_name, unit,
};
use crate::{
    Browse, BrowseStep, CloseOption, Context, ContextUse, Get, HandleId, Input, InputUse, Limits,
    MatchIds, Object, ObjectName, OpenOptions, Put, PutOptions, Reply, Request, Source,
};

/// What a call came to: `0`, the reason of a warning, or the reason of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    Warning(u32),
    Failed(u32),
    /// No answer yet.
    Waits,
}

pub(super) use Outcome::{Failed, Ok as Done, Waits, Warning};

pub(super) fn outcome(w: &mut World, request: Request) -> Outcome {
    let id = w.ask(C1, request);
    let warning = |reason: ReasonCode| match reason {
        ReasonCode::NONE => Done,
        other => Warning(other.get()),
    };
    match w.replies.get(&id) {
        None => Waits,
        Some((_, Err(failure))) => Failed(failure.reason.get()),
        Some((_, Ok(Reply::Put(done)))) => warning(done.warning),
        Some((_, Ok(Reply::Got(got)))) => warning(got.warning),
        Some((_, Ok(Reply::Closed { warning: reason }))) => warning(*reason),
        Some((_, Ok(_))) => Done,
    }
}

pub(super) type State = fn(&mut World);

pub(super) fn nothing(_: &mut World) {}

pub(super) fn put_inhibited(w: &mut World) {
    w.alter_local("A", |q| q.base.put = Enabled::No);
}

pub(super) fn get_inhibited(w: &mut World) {
    one_message(w);
    w.alter_local("A", |q| q.get = Enabled::No);
}

pub(super) fn full(w: &mut World) {
    w.alter_local("A", |q| q.max_depth = 1);
    w.put(put("A", "1"));
}

pub(super) fn full_of_uncommitted(w: &mut World) {
    w.alter_local("A", |q| q.max_depth = 1);
    w.begin(C2, unit(9));
    let inside = Put {
        syncpoint: Some(unit(9)),
        ..put("A", "1")
    };
    w.done_put(C2, Request::Put(Box::new(inside)));
}

pub(super) fn short_queue(w: &mut World) {
    w.alter_local("A", |q| q.max_message_length = 3);
}

pub(super) fn short_queue_manager(w: &mut World) {
    w.alter(|q| q.attributes.max_message_length = 3);
}

pub(super) fn no_space(w: &mut World) {
    w.input(Input::SpaceChanged {
        puts_allowed: false,
    });
}

pub(super) fn quiescing(w: &mut World) {
    w.input(Input::Quiesced);
}

pub(super) fn own_unit(w: &mut World) {
    w.begin(C1, unit(1));
}

pub(super) fn others_unit(w: &mut World) {
    w.begin(C2, unit(1));
}

pub(super) fn committed_unit(w: &mut World) {
    own_unit(w);
    w.commit(C1, unit(1));
}

pub(super) fn backed_out_unit(w: &mut World) {
    own_unit(w);
    w.back_out(C1, unit(1));
}

pub(super) fn full_unit(w: &mut World) {
    w.alter(|q| q.attributes.max_uncommitted_messages = 1);
    own_unit(w);
    w.put(Put {
        syncpoint: Some(unit(1)),
        ..put("B", "1")
    });
}

pub(super) fn one_message(w: &mut World) {
    w.put(put("A", "12345"));
}

pub(super) fn one_locked(w: &mut World) {
    one_message(w);
    w.begin(C2, unit(9));
    let id = w.ask(
        C2,
        Request::Get(Get {
            syncpoint: Some(unit(9)),
            ..get("A")
        }),
    );
    assert!(w.got(id).is_some());
}

pub(super) fn one_uncommitted(w: &mut World) {
    w.begin(C2, unit(9));
    let inside = Put {
        syncpoint: Some(unit(9)),
        ..put("A", "12345")
    };
    w.done_put(C2, Request::Put(Box::new(inside)));
}

pub(super) fn one_expired(w: &mut World) {
    let mut expiring = put("A", "12345");
    expiring.descriptor.expires_at = w.until(Duration::from_secs(1));
    w.put(expiring);
    w.now = w.now.saturating_add(Duration::from_secs(2));
}

pub(super) fn exclusive_elsewhere(w: &mut World) {
    one_message(w);
    let options = OpenOptions {
        input: Some(InputUse::Exclusive),
        ..OpenOptions::default()
    };
    opened(w, C2, "A", options);
}
