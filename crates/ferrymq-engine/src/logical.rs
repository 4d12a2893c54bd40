//! Groups in logical order: what a handle keeps of a group between calls, and what becomes of a call that does not fit it.
//!
//! A handle keeps three things apart: where its puts, its gets and its browses are in a group. The last successful call of each
//! kind says it, whether that asked for logical order or not: so an application that begins anew in the middle of a group puts
//! or gets one message by its number and goes on in logical order. A unit of work that is backed out takes its handles back to
//! where they were before it.
//!
//! Source: IBM MQ, "Options (MQLONG)" of MQPMO and MQGMO, "MQBACK", "Physical order on a queue".

use ferrymq_types::{
    CorrelationId, MESSAGE_SEQUENCE_NUMBER_MAX, Persistence, QueueName, ReasonCode, UnitOfWorkId,
};

use crate::groups::Member;
use crate::queue::{Entry, Wanted};
use crate::{
    Browse, BrowseStep, ConnectionId, Cursor, Engine, Failure, Get, HandleId, MatchIds, Object,
    Put, RequestId, Source,
};

/// A message's place in a group that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    member: Member,
    /// Whether it was put or got in a unit of work.
    syncpoint: bool,
    persistence: Persistence,
}

/// Where one kind of calls of a handle is.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// The last message of the group that is under way.
    current: Option<Place>,
    /// Whether the last call asked for logical order.
    logical: bool,
    /// The open unit of work that moved it, and where it was before.
    before: Option<(UnitOfWorkId, Option<Place>)>,
}

/// Where the browse of a handle is.
#[derive(Debug, Clone, Copy, Default)]
struct BrowseProgress {
    current: Option<Member>,
    logical: bool,
    /// Where the last group began, or the last message that was in none: the next one is behind it.
    start: Option<Cursor>,
}

/// What a handle keeps of groups.
#[derive(Debug, Default)]
pub(crate) struct Grouping {
    puts: Progress,
    gets: Progress,
    browse: BrowseProgress,
    /// The last get in logical order that may still wait.
    getting: Option<RequestId>,
}

/// How far a successful call moves its handle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    handle: HandleId,
    syncpoint: Option<UnitOfWorkId>,
    logical: bool,
    /// `None`: the message is in no group.
    place: Option<Place>,
}

/// How far a browse moves its handle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrowseMove {
    logical: bool,
    /// Whether it finds the beginning of a group, or a message in none.
    begins: bool,
    /// What is asked of the message that is next in its group: if it is not so, 2247.
    ids: MatchIds,
}

impl BrowseMove {
    /// Whether a message that is next in its group is the one that is asked for.
    pub(crate) const fn matched(&self) -> Option<MatchIds> {
        if self.logical && !self.begins {
            Some(self.ids)
        } else {
            None
        }
    }
}

impl Place {
    /// The message after it.
    fn next(&self) -> MatchIds {
        next_of(&self.member)
    }
}

fn next_of(member: &Member) -> MatchIds {
    MatchIds {
        group_id: Some(member.group),
        message_sequence_number: Some(member.number.saturating_add(1)),
        ..MatchIds::default()
    }
}

/// The first message of a group, or one in none, with these ids: 2247 if they ask for another number.
fn beginning(ids: MatchIds) -> Result<MatchIds, ReasonCode> {
    match ids.message_sequence_number {
        None | Some(1) => Ok(MatchIds {
            message_sequence_number: Some(1),
            ..ids
        }),
        Some(_) => Err(ReasonCode::MATCH_OPTIONS_ERROR),
    }
}

/// What a get or browse wants that goes on in its group: nothing else may be asked for than what comes (2247). Ids of the
/// message itself are compared when it is at hand.
fn going_on(next: MatchIds, ids: MatchIds) -> Result<MatchIds, ReasonCode> {
    let wanted = Wanted::new(ids).ids;
    let group = wanted.group_id.is_none_or(|id| Some(id) == next.group_id);
    let number = wanted.message_sequence_number;
    if group && (number.is_none() || number == next.message_sequence_number) {
        Ok(next)
    } else {
        Err(ReasonCode::MATCH_OPTIONS_ERROR)
    }
}

/// 2250 if a number is none that a message in a group can have.
fn check_number(ids: &MatchIds) -> Result<(), ReasonCode> {
    let numbers = 1..=MESSAGE_SEQUENCE_NUMBER_MAX;
    match ids.message_sequence_number {
        Some(number) if !numbers.contains(&number) => Err(ReasonCode::MSG_SEQ_NUMBER_ERROR),
        Some(_) | None => Ok(()),
    }
}

impl Progress {
    /// What a call that does not ask for logical order is told, if the one before it did and left a group incomplete.
    fn warning(&self, to: &Move) -> ReasonCode {
        let Some(current) = self.current.filter(|_| self.logical && !to.logical) else {
            return ReasonCode::NONE;
        };
        let same = |place: &Place| place.member.group == current.member.group;
        match to.place.filter(same) {
            Some(next) if next.persistence != current.persistence => {
                ReasonCode::INCONSISTENT_PERSISTENCE
            }
            Some(next) if next.syncpoint != current.syncpoint => ReasonCode::INCONSISTENT_UOW,
            Some(_) | None => ReasonCode::INCOMPLETE_GROUP,
        }
    }

    /// Whether a call in logical order goes on as the group began. What two open units of work did is not kept apart: a second
    /// one is refused.
    fn check_unit(&self, unit: Option<UnitOfWorkId>) -> Result<(), ReasonCode> {
        let other = self
            .before
            .is_some_and(|(open, _)| unit.is_some_and(|unit| unit != open));
        let changes = self
            .current
            .is_some_and(|current| current.syncpoint != unit.is_some());
        if other || changes {
            return Err(ReasonCode::INCONSISTENT_UOW);
        }
        Ok(())
    }

    fn advance(&mut self, to: &Move) {
        self.before = match (to.syncpoint, self.before) {
            (Some(unit), Some((open, before))) if open == unit => Some((unit, before)),
            (Some(unit), _) => Some((unit, self.current)),
            // Outside a unit of work nothing takes it back.
            (None, _) => None,
        };
        self.current = to.place.filter(|place| !place.member.last);
        self.logical = to.logical;
    }

    fn ended(&mut self, unit: UnitOfWorkId, committed: bool) {
        if let Some((open, before)) = self.before
            && open == unit
        {
            self.before = None;
            if !committed {
                self.current = before;
            }
        }
    }
}

impl Grouping {
    /// Whether a handle that is closed leaves a group incomplete.
    pub(crate) fn is_incomplete(&self) -> bool {
        let open = |p: &Progress| p.logical && p.current.is_some();
        open(&self.puts) || open(&self.gets)
    }

    /// A unit of work that moved it has ended.
    pub(crate) fn unit_ended(&mut self, unit: UnitOfWorkId, committed: bool) {
        self.puts.ended(unit, committed);
        self.gets.ended(unit, committed);
    }
}

/// The handle of a source.
const fn handle_of(source: &Source) -> Option<HandleId> {
    match source {
        Source::Queue(_) => None,
        Source::Handle(handle) | Source::UnderCursor(handle) => Some(*handle),
    }
}

impl Engine {
    /// Gives a message that is put its place in its group. `None`: its handle keeps nothing of groups, and need not.
    pub(crate) fn group_of_put(
        &mut self,
        connection: ConnectionId,
        put: &mut Put,
        persistence: Persistence,
    ) -> Result<Option<Move>, ReasonCode> {
        let handle = match &put.object {
            Object::Handle(handle) => Some(*handle),
            Object::Named(_) => None,
        };
        let (logical, in_group) = (put.logical_order, put.descriptor.is_in_group());
        if logical && (handle.is_none() || put.token.is_some()) {
            return Err(ReasonCode::OPTIONS_ERROR);
        }
        let kept = handle
            .and_then(|handle| self.grouping(connection, handle))
            .map(|grouping| grouping.puts);
        if kept.is_none() && !logical && !in_group {
            put.descriptor.leave_group();
            return Ok(None);
        }
        let kept = kept.unwrap_or_default();
        if logical {
            self.next_of_group(&kept, put, persistence)?;
        } else if in_group {
            self.named_group(put)?;
        }
        if !in_group {
            put.descriptor.leave_group();
        }
        let place = Member::of(&put.descriptor).map(|member| Place {
            member,
            syncpoint: put.syncpoint.is_some(),
            persistence,
        });
        Ok(handle.map(|handle| Move {
            handle,
            syncpoint: put.syncpoint,
            logical,
            place,
        }))
    }

    /// A put in logical order: the queue manager says which message of which group it is.
    fn next_of_group(
        &mut self,
        kept: &Progress,
        put: &mut Put,
        persistence: Persistence,
    ) -> Result<(), ReasonCode> {
        let in_group = put.descriptor.is_in_group();
        if kept.current.is_some() && !in_group {
            return Err(ReasonCode::INCOMPLETE_GROUP);
        }
        kept.check_unit(put.syncpoint)?;
        let (group, number) = match kept.current {
            Some(current) if current.persistence != persistence => {
                return Err(ReasonCode::INCONSISTENT_PERSISTENCE);
            }
            Some(current) if current.member.number >= MESSAGE_SEQUENCE_NUMBER_MAX => {
                return Err(ReasonCode::MSG_SEQ_NUMBER_ERROR);
            }
            Some(current) => (
                current.member.group,
                current.member.number.saturating_add(1),
            ),
            None if in_group => (self.next_group_id(), 1),
            None => return Ok(()),
        };
        put.descriptor.group_id = group;
        put.descriptor.message_sequence_number = number;
        put.descriptor.offset = 0;
        Ok(())
    }

    /// A put in physical order: the application says which message of which group it is; without an id it begins a group.
    fn named_group(&mut self, put: &mut Put) -> Result<(), ReasonCode> {
        let d = &mut put.descriptor;
        check_number(&MatchIds {
            message_sequence_number: Some(d.message_sequence_number),
            ..MatchIds::default()
        })?;
        if d.group_id.is_none() {
            // A put that may be repeated cannot be told another time which id it was given.
            if put.token.is_some() {
                return Err(ReasonCode::GROUP_ID_ERROR);
            }
            put.descriptor.group_id = self.next_group_id();
        }
        Ok(())
    }

    fn next_group_id(&mut self) -> CorrelationId {
        CorrelationId::new(*self.next_message_id().as_bytes())
    }

    /// A put succeeded: its handle is there now. Returns the warning that the put is answered with.
    pub(crate) fn moved_by_put(&mut self, connection: ConnectionId, to: &Move) -> ReasonCode {
        let Some(grouping) = self.grouping_or_new(connection, to.handle) else {
            return ReasonCode::NONE;
        };
        let warning = grouping.puts.warning(to);
        grouping.puts.advance(to);
        self.unit_moves(to);
        warning
    }

    /// A unit of work takes the handle back if it is backed out.
    fn unit_moves(&mut self, to: &Move) {
        if let Some(unit) = to.syncpoint.and_then(|unit| self.unit(unit)) {
            unit.moved_handles.insert(to.handle);
        }
    }

    /// What a get wants, of groups too. Checks that it goes on as its group began.
    pub(crate) fn wanted_by_get(
        &mut self,
        connection: ConnectionId,
        id: RequestId,
        get: &Get,
    ) -> Result<Wanted, ReasonCode> {
        check_number(&get.matching)?;
        let handle = handle_of(&get.source);
        let under_cursor = match get.source {
            Source::Queue(_) | Source::Handle(_) => false,
            Source::UnderCursor(_) => true,
        };
        let kept = handle.and_then(|handle| self.grouping(connection, handle));
        let (progress, getting) = kept.map_or((Progress::default(), None), |grouping| {
            (grouping.gets, grouping.getting)
        });
        if getting.is_some_and(|getting| self.pending.contains_key(&getting)) {
            // What it will find says what this one is to find.
            return Err(ReasonCode::CALL_IN_PROGRESS);
        }
        let asked = if under_cursor {
            MatchIds::default()
        } else {
            get.matching
        };
        if !get.logical_order {
            let mut wanted = Wanted::new(asked);
            wanted.complete = get.all_messages_available && !under_cursor;
            return Ok(wanted);
        }
        let Some(handle) = handle.filter(|_| get.many.is_none()) else {
            return Err(ReasonCode::OPTIONS_ERROR);
        };
        progress.check_unit(get.syncpoint)?;
        let wanted = match progress.current {
            Some(current) => Wanted::new(going_on(current.next(), asked)?),
            None => {
                let mut wanted = Wanted::new(beginning(asked)?);
                wanted.complete = get.all_messages_available;
                wanted
            }
        };
        if let Some(grouping) = self.grouping_or_new(connection, handle) {
            grouping.getting = Some(id);
        }
        Ok(wanted)
    }

    /// What is asked of a message that is next in its group: if it is not so, 2247.
    pub(crate) fn matched_in_order(&self, connection: ConnectionId, get: &Get) -> Option<Wanted> {
        let handle = match get.source {
            Source::Handle(handle) if get.logical_order => handle,
            Source::Handle(_) | Source::UnderCursor(_) | Source::Queue(_) => return None,
        };
        let grouping = self.grouping(connection, handle)?;
        grouping.gets.current.map(|_| Wanted::new(get.matching))
    }

    /// A get succeeded: its handle is there now. Returns the warning that the get is answered with.
    pub(crate) fn moved_by_get(
        &mut self,
        connection: ConnectionId,
        get: &Get,
        entry: &Entry,
    ) -> ReasonCode {
        let Some(handle) = handle_of(&get.source) else {
            return ReasonCode::NONE;
        };
        if entry.group.is_none() && self.grouping(connection, handle).is_none() {
            return ReasonCode::NONE;
        }
        let place = entry.group.map(|member| Place {
            member,
            syncpoint: get.syncpoint.is_some(),
            persistence: entry.persistence,
        });
        let to = Move {
            handle,
            syncpoint: get.syncpoint,
            logical: get.logical_order,
            place,
        };
        let Some(grouping) = self.grouping_or_new(connection, handle) else {
            return ReasonCode::NONE;
        };
        let warning = grouping.gets.warning(&to);
        grouping.gets.advance(&to);
        self.unit_moves(&to);
        warning
    }

    /// What a browse wants, of groups too, and where in the order of delivery it goes on.
    pub(crate) fn wanted_by_browse(
        &self,
        connection: ConnectionId,
        browse: &Browse,
        name: &QueueName,
        cursor: Option<Cursor>,
    ) -> Result<(Wanted, Option<Cursor>, BrowseMove), Failure> {
        let refused = |reason| Failure::of(reason, name);
        check_number(&browse.matching).map_err(refused)?;
        let (handle, next) = match browse.step {
            BrowseStep::First(_) | BrowseStep::After(..) => (None, false),
            BrowseStep::FirstOf(handle) => (Some(handle), false),
            BrowseStep::Next(handle) => (Some(handle), true),
            BrowseStep::UnderCursor(handle) => (Some(handle), false),
        };
        let kept = handle
            .and_then(|handle| self.grouping(connection, handle))
            .map(|grouping| grouping.browse)
            .unwrap_or_default();
        if next && cursor.is_some() && kept.logical != browse.logical_order {
            return Err(refused(ReasonCode::INCONSISTENT_BROWSE));
        }
        let mut to = BrowseMove {
            logical: browse.logical_order,
            begins: true,
            ids: browse.matching,
        };
        let mut wanted = Wanted::new(browse.matching);
        wanted.complete = browse.all_messages_available;
        if !browse.logical_order {
            return Ok((wanted, cursor, to));
        }
        if handle.is_none() {
            return Err(refused(ReasonCode::OPTIONS_ERROR));
        }
        if let (true, Some(member)) = (next, kept.current) {
            let ids = going_on(next_of(&member), browse.matching).map_err(refused)?;
            to.begins = false;
            return Ok((Wanted::new(ids), None, to));
        }
        let ids = beginning(browse.matching).map_err(refused)?;
        wanted = Wanted {
            complete: wanted.complete,
            ..Wanted::new(ids)
        };
        Ok((wanted, kept.start.filter(|_| next), to))
    }

    /// A browse found a message: its handle is there now.
    pub(crate) fn moved_by_browse(
        &mut self,
        connection: ConnectionId,
        handle: HandleId,
        to: &BrowseMove,
        entry: &Entry,
        cursor: Cursor,
    ) {
        if !to.logical && self.grouping(connection, handle).is_none() {
            return;
        }
        let Some(grouping) = self.grouping_or_new(connection, handle) else {
            return;
        };
        let browse = &mut grouping.browse;
        browse.current = entry.group.filter(|member| !member.last);
        browse.logical = to.logical;
        if to.begins {
            browse.start = Some(cursor);
        }
    }
}
