//! Effects as lines of text, so that whole lists can be compared.

use ferrymq_engine::Request;
use ferrymq_types::Timestamp;

use super::object_name;
use crate::{ReceiverEffect, ReceiverFrame, SenderEffect, SenderFrame};

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}

pub(super) fn request(request: &Request) -> String {
    match request {
        Request::Put(p) => format!(
            "Put {}{}{} {}",
            object_name(p).queue,
            object_name(p)
                .queue_manager
                .as_ref()
                .map(|m| format!("@{m}"))
                .unwrap_or_default(),
            if p.syncpoint.is_some() {
                " in batch"
            } else {
                ""
            },
            text(&p.body)
        ),
        Request::Begin { .. } => "Begin".into(),
        Request::BackOut { .. } => "BackOut".into(),
        Request::OpenSender { .. } => "OpenSender".into(),
        Request::SenderGet { messages_max, .. } => format!("Get {messages_max}"),
        Request::PrepareBatch {
            first_number,
            last_number,
            ..
        } => format!("Prepare {first_number}..{last_number}"),
        Request::SettleSender {
            last_committed,
            release,
            ..
        } => format!(
            "Settle {last_committed}{}",
            if *release { " release" } else { "" }
        ),
        Request::SenderDeadLetter {
            sequence, reason, ..
        } => format!("DeadLetter #{sequence} {}", reason.get()),
        Request::SenderDiscard {
            sequence, reason, ..
        } => format!("Discard #{sequence} {}", reason.get()),
        Request::CloseSender { .. } => "CloseSender".into(),
        Request::OpenReceiver { generation, .. } => format!("OpenReceiver {generation}"),
        Request::CommitReceived {
            first_number,
            last_number,
            ..
        } => format!("Commit {first_number}..{last_number}"),
        Request::ReceiverDiscard {
            queue, syncpoint, ..
        } => format!(
            "Account {queue}{}",
            if syncpoint.is_some() { " in batch" } else { "" }
        ),
        Request::SetChannelStopped { stopped, .. } => format!("SetStopped {stopped}"),
        other => panic!("no channel asks for {other:?}"),
    }
}

pub(super) fn sender_frame(frame: &SenderFrame) -> String {
    match frame {
        SenderFrame::Bind(b) => format!(
            "Bind {} {}..{}",
            b.generation, b.last_confirmed, b.last_sent
        ),
        SenderFrame::Message(m) => format!("Message {} {}", m.number, text(&m.message.body)),
        SenderFrame::BatchEnd(e) => format!("BatchEnd {}..{}", e.first_number, e.last_number),
        SenderFrame::Fast(m) => format!("Fast {}", text(&m.message.body)),
        SenderFrame::Withdraw(w) => format!("Withdraw {}", w.number),
        SenderFrame::Heartbeat { answer: true } => "heartbeat answer".into(),
        SenderFrame::Heartbeat { answer: false } => "heartbeat".into(),
        SenderFrame::Close(c) => format!("Close {:?}", c.reason),
    }
}

pub(super) fn receiver_frame(frame: &ReceiverFrame) -> String {
    match frame {
        ReceiverFrame::BindAccepted(a) => format!("BindAccepted {}", a.last_committed),
        ReceiverFrame::BatchConfirmed(c) => format!("Confirmed {}", c.last_number),
        ReceiverFrame::MessageRefused(r) => format!("Refused {} {}", r.number, r.reason.get()),
        ReceiverFrame::Heartbeat { answer: true } => "heartbeat answer".into(),
        ReceiverFrame::Heartbeat { answer: false } => "heartbeat".into(),
        ReceiverFrame::Close(c) => format!("Close {:?}", c.reason),
    }
}

pub(super) fn sender_line(now: Timestamp, effect: &SenderEffect) -> String {
    match effect {
        SenderEffect::Connect { address } => format!("connect {address}"),
        SenderEffect::Send(frame) => format!("send {}", sender_frame(frame)),
        SenderEffect::Disconnect => "disconnect".into(),
        SenderEffect::Ask { request: r, .. } => format!("ask {}", request(r)),
        SenderEffect::Cancel { .. } => "cancel".into(),
        SenderEffect::SetTimer { timer, at } => {
            format!("timer {timer:?} {}", at.since(now).as_millis())
        }
        SenderEffect::CancelTimer { timer } => format!("no timer {timer:?}"),
        SenderEffect::StateChanged(state) => format!("state {state}"),
        SenderEffect::Report(event) => format!("report {}", event.id()),
    }
}

pub(super) fn receiver_line(now: Timestamp, effect: &ReceiverEffect) -> String {
    match effect {
        ReceiverEffect::Send(frame) => format!("send {}", receiver_frame(frame)),
        ReceiverEffect::Disconnect => "disconnect".into(),
        ReceiverEffect::Ask { request: r, .. } => format!("ask {}", request(r)),
        ReceiverEffect::SetTimer { timer, at } => {
            format!("timer {timer:?} {}", at.since(now).as_millis())
        }
        ReceiverEffect::CancelTimer { timer } => format!("no timer {timer:?}"),
        ReceiverEffect::StateChanged(state) => format!("state {state}"),
        ReceiverEffect::Report(event) => format!("report {}", event.id()),
    }
}
