use ferrymq_proto::raft_v1 as wire;
use openraft::raft::AppendEntriesRequest;

use super::{blank, define, entry, log_id};
use crate::network::append_to_proto;
use crate::service::append_from_proto;
use crate::types::{Entry, LogId, TypeConfig, vote_from_proto};
use ferrymq_proto::storage_v1 as pb;

fn request(previous: Option<LogId>, entries: Vec<Entry>) -> AppendEntriesRequest<TypeConfig> {
    AppendEntriesRequest {
        vote: vote_from_proto(&pb::RaftVote {
            term: 3,
            node_id: 2,
            committed: true,
        }),
        prev_log_id: previous,
        entries,
        leader_commit: Some(log_id(2, 4)),
    }
}

#[test]
fn entries_arrive_as_they_were_sent() {
    for (previous, entries) in [
        (None, vec![]),
        (None, vec![blank(1, 0), entry(3, 1, &define(1, "A"))]),
        (Some(log_id(2, 5)), vec![blank(2, 6), blank(3, 7)]),
    ] {
        let sent = request(previous, entries);
        let received = append_from_proto(append_to_proto(&sent)).unwrap();
        assert_eq!(received.vote, sent.vote);
        assert_eq!(received.prev_log_id, sent.prev_log_id);
        assert_eq!(received.entries, sent.entries);
        assert_eq!(received.leader_commit, sent.leader_commit);
    }
}

#[test]
fn entries_that_raft_would_stumble_over_are_refused() {
    for (previous, entries) in [
        // A hole, a repetition, a step back, an end of all indices.
        (Some(log_id(2, 5)), vec![blank(2, 7)]),
        (Some(log_id(2, 5)), vec![blank(2, 6), blank(2, 8)]),
        (Some(log_id(2, 5)), vec![blank(2, 5)]),
        (None, vec![blank(1, 1)]),
        (Some(log_id(2, u64::MAX)), vec![blank(2, 0)]),
        // A term that goes back, one after the leader's own.
        (Some(log_id(2, 5)), vec![blank(1, 6)]),
        (Some(log_id(2, 5)), vec![blank(4, 6)]),
    ] {
        let sent = append_to_proto(&request(previous, entries));
        assert!(append_from_proto(sent.clone()).is_err(), "{sent:?}");
    }
    assert!(append_from_proto(wire::StreamAppendRequest::default()).is_err());
}
