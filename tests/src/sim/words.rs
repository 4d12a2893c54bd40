//! Inputs, effects and changes in few words, without the bytes of messages.

use ferrymq_channel::{ReceiverEffect, ReceiverInput, SenderEffect, SenderFrame, SenderInput};
use ferrymq_engine::{Fetched, Input, Reply, Request};
use ferrymq_types::{Change, CorrelationId, Message, WriteSet};

use crate::oracle::{Uid, short};
use crate::sim::node::Answer;

fn uid(id: &CorrelationId) -> String {
    Uid::read(id).map_or("?".to_owned(), |uid| format!("#{}", uid.0))
}

fn message(m: &Message) -> String {
    let d = &m.descriptor;
    format!(
        "{} {:?} priority {}",
        uid(&d.correlation_id),
        d.persistence,
        d.priority
    )
}

pub(crate) fn input(input: &Input) -> String {
    match input {
        Input::Requests {
            connection,
            requests,
        } => {
            let requests = requests
                .iter()
                .map(|(id, request)| format!("{}: {}", id.0, self::request(request)));
            let requests = requests.collect::<Vec<_>>().join(", ");
            format!("of {}: {requests}", connection.0)
        }
        Input::Fetched { fetch, result } => match result {
            Fetched::Message(row, body) => format!(
                "fetched {fetch:?} {} with {} bytes",
                uid(&row.descriptor.correlation_id),
                body.len()
            ),
            Fetched::Damaged(what) => format!("fetched {fetch:?} damaged: {what}"),
        },
        Input::RowsRead { fetch, rows } => format!("{fetch:?} read {} rows", rows.len()),
        Input::ReadAhead { queue, messages } => {
            format!("read {} messages ahead of {queue}", messages.len())
        }
        Input::DefinitionsChanged(_) => "definitions changed".to_owned(),
        other => format!("{other:?}"),
    }
}

fn request(request: &Request) -> String {
    match request {
        Request::Put(put) => format!(
            "put {} to {:?} in {:?} token {:?}",
            uid(&put.descriptor.correlation_id),
            put.object,
            put.syncpoint.map(short),
            put.token.map(short)
        ),
        Request::Get(get) => format!(
            "get from {:?} in {:?} until {:?}",
            get.source,
            get.syncpoint.map(short),
            get.wait_until
        ),
        other => format!("{other:?}"),
    }
}

pub(crate) fn answer(answer: &Answer) -> String {
    match answer {
        Ok(Reply::Got(got)) => format!(
            "got {} place {} backout count {}",
            message(&got.message),
            got.sequence,
            got.backout_count
        ),
        Ok(Reply::Browsed(browsed)) => format!("browsed {}", message(&browsed.message)),
        Ok(Reply::Put(_)) => "put".to_owned(),
        Ok(Reply::Transmissions(all)) => {
            let all = all.iter().map(|t| {
                format!(
                    "{} place {} fast {}",
                    message(&t.message),
                    t.sequence,
                    t.fast
                )
            });
            format!("transmissions {:?}", all.collect::<Vec<_>>())
        }
        Ok(other) => format!("{other:?}"),
        Err(failure) => format!("{} {:?}", failure.reason, failure.object),
    }
}

pub(crate) fn changes(set: &WriteSet) -> String {
    let words = set.changes.iter().map(|change| match change {
        Change::SetMessage {
            queue,
            sequence,
            row,
        } => format!(
            "set {queue}/{sequence} {} body {}",
            uid(&row.descriptor.correlation_id),
            row.body
        ),
        Change::DeleteMessage { queue, sequence } => format!("delete {queue}/{sequence}"),
        Change::SetBody { id, body } => format!("set body {id} of {} bytes", body.len()),
        Change::DeleteBody { id } => format!("delete body {id}"),
        Change::SetUnitOfWork(row) => format!("unit of work {} {:?}", short(row.id), row.outcome),
        Change::SetAccount(entry) => format!(
            "account {} {} from {} to {:?} {:?}",
            entry.number,
            uid(&CorrelationId::new(*entry.message_id.as_bytes())),
            entry.from,
            entry.to,
            entry.reason
        ),
        other => format!("{other:?}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

pub(crate) fn sender_input(input: &SenderInput) -> String {
    match input {
        SenderInput::Answered { ask, result } => format!("answer {}: {}", ask.0, answer(result)),
        other => format!("{other:?}"),
    }
}

pub(crate) fn receiver_input(input: &ReceiverInput) -> String {
    match input {
        ReceiverInput::Answered { ask, result } => format!("answer {}: {}", ask.0, answer(result)),
        ReceiverInput::FrameReceived(frame) => sender_frame(frame),
        other => format!("{other:?}"),
    }
}

fn sender_frame(frame: &SenderFrame) -> String {
    match frame {
        SenderFrame::Message(m) => format!(
            "message {} of batch {}: {}",
            m.number,
            short(m.batch),
            message(&m.message)
        ),
        SenderFrame::Fast(m) => format!("fast message {}", message(&m.message)),
        other => format!("{other:?}"),
    }
}

pub(crate) fn sender_effect(effect: &SenderEffect) -> String {
    match effect {
        SenderEffect::Send(frame) => format!("send {}", sender_frame(frame)),
        SenderEffect::Ask { ask, request } => format!("ask {}: {}", ask.0, self::request(request)),
        other => format!("{other:?}"),
    }
}

pub(crate) fn receiver_effect(effect: &ReceiverEffect) -> String {
    match effect {
        ReceiverEffect::Ask { ask, request } => {
            format!("ask {}: {}", ask.0, self::request(request))
        }
        other => format!("{other:?}"),
    }
}
