//! G1: a group that is got in logical order, and only when all of it is there, comes whole, in the order of its numbers, and with
//! nothing in between; what a handle puts in logical order is one group after the other, each numbered from 1 without a gap.

use ferrymq_types::{ReasonCode, Timestamp};

use crate::invariants::{Check, Violation, violated};
use crate::oracle::{Fate, GroupPlace, Oracle, Put, Uid};
use crate::sim::Member;

const ID: &str = "inv_g1_groups";

/// None of a client's own calls contradicts another.
pub(crate) fn refused(reason: ReasonCode) -> Check {
    let own = [
        ReasonCode::INCONSISTENT_PERSISTENCE,
        ReasonCode::CALL_IN_PROGRESS,
        ReasonCode::INCOMPLETE_GROUP,
        ReasonCode::INCONSISTENT_UOW,
        ReasonCode::MATCH_OPTIONS_ERROR,
        ReasonCode::MSG_SEQ_NUMBER_ERROR,
    ];
    if own.contains(&reason) {
        return violated(
            ID,
            format!("a call in logical order is refused with {reason}"),
        );
    }
    Ok(())
}

pub(crate) fn closed(current: Option<Member>, warning: ReasonCode) -> Check {
    let incomplete = warning == ReasonCode::INCOMPLETE_GROUP;
    if incomplete != current.is_some() {
        return violated(
            ID,
            format!("a handle that is at {current:?} is closed with {warning}"),
        );
    }
    Ok(())
}

pub(crate) fn put(oracle: &Oracle, uid: Uid, member: Member, current: Option<Member>) -> Check {
    let fine = match current {
        Some((group, number)) => member == (group, number + 1),
        None => member.1 == 1 && !member.0.is_none() && !oracle.groups.contains_key(&member.0),
    };
    if fine {
        return Ok(());
    }
    violated(
        ID,
        format!(
            "{} is {member:?} behind {current:?}",
            oracle.put(uid).name()
        ),
    )
}

/// Which message of which group was got, and whether it is the last.
pub(crate) fn got(
    oracle: &Oracle,
    uid: Option<Uid>,
    current: Option<Member>,
    now: Timestamp,
) -> Result<(Member, bool), Violation> {
    let put = uid.and_then(|uid| oracle.puts.get(&uid));
    let Some((put, place)) = put.and_then(|put| Some((put, put.group?))) else {
        return violated(ID, format!("{uid:?} is in no group"));
    };
    let fine = match current {
        Some((group, number)) => place.member == (group, number + 1),
        None => place.member.1 == 1 && is_whole(oracle, put, &place, now),
    };
    if !fine {
        return violated(
            ID,
            format!("{} comes behind {current:?}: {place:?}", put.name()),
        );
    }
    Ok((place.member, place.last))
}

/// Whether every message of a group is where one can get it. One that has expired may be there still.
fn is_whole(oracle: &Oracle, first: &Put, place: &GroupPlace, now: Timestamp) -> bool {
    let all = oracle.groups.get(&place.member.0);
    let members = all.into_iter().flatten().map(|uid| oracle.put(*uid));
    let there: Vec<(u32, bool)> = members
        .filter(|put| {
            let visible = put
                .unit
                .and_then(|unit| oracle.units.get(&unit))
                .is_none_or(|unit| unit.committing);
            let expired = put.expires_at.is_some_and(|at| at <= now);
            let free = put.held_by.is_none() || put.uid == first.uid;
            let taken = put.shown.iter().any(|shown| {
                matches!(oracle.get_fate(shown), Fate::Done)
                    || (shown.unit.is_none() && shown.fate == Fate::Asked)
            });
            oracle.put_fate(put) != Fate::Refused && visible && (expired || (free && !taken))
        })
        .filter_map(|put| put.group.map(|place| (place.member.1, place.last)))
        .collect();
    let last = there.iter().find(|(_, last)| *last).map(|(n, _)| *n);
    last.is_some_and(|last| (1..=last).all(|n| there.iter().any(|(m, _)| *m == n)))
}
