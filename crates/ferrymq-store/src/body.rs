//! Payloads of records, and bodies: in a record of the log behind its batch, or in parts of the log that the record names, and in
//! the row store in chunks.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

use ferrymq_proto::storage::{EncodedBatch, FormatError, decode_write_sets};
use ferrymq_types::{BodyId, WriteSet};

use crate::{LogRead, Place, Record, RowKey, RowStore, StoreError, Table, overlay::BodyPlace};

/// Bytes of a body in one row: large enough that a row costs little, small enough that a batch stays bounded.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// Length and checksum in front of the first chunk.
const HEADER_BYTES: usize = 12;

pub(crate) fn checksum(body: &[u8]) -> u64 {
    xxh3_64(body)
}

/// Bytes of a record in front of its bodies: the length of the batch, and the batch.
pub(crate) fn payload_head(encoded: &EncodedBatch) -> Result<[u8; 4], StoreError> {
    u32::try_from(encoded.batch.len())
        .ok()
        .filter(|length| *length != IN_PARTS)
        .map(u32::to_le_bytes)
        .ok_or(StoreError::TooLarge {
            bytes: encoded.batch.len() as u64,
            max: u64::from(u32::MAX),
        })
}

pub(crate) fn payload_bytes(encoded: &EncodedBatch) -> u64 {
    encoded
        .bodies
        .iter()
        .map(|b| b.bytes.len() as u64)
        .fold(encoded.batch.len() as u64, u64::saturating_add)
        .saturating_add(4)
}

/// In place of the length of a batch: what follows are the places of the parts that the payload is in.
const IN_PARTS: u32 = u32::MAX;

/// Bytes of a place in a record.
const PLACE_BYTES: usize = 24;

/// The payload of a record whose real payload is in parts of the log.
pub(crate) fn parts_to_payload(places: &[Place]) -> Vec<u8> {
    let mut out = Vec::with_capacity(places.len().saturating_mul(PLACE_BYTES).saturating_add(4));
    out.put_u32_le(IN_PARTS);
    for place in places {
        out.put_u32_le(place.segment);
        out.put_u64_le(place.incarnation);
        out.put_u64_le(place.offset);
        out.put_u32_le(place.length);
    }
    out
}

/// Where the parts of a payload are, if it is in parts.
fn parts_of_payload(payload: &[u8]) -> Option<Places> {
    let (mark, mut rest) = payload.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*mark) != IN_PARTS || rest.len() % PLACE_BYTES != 0 {
        return None;
    }
    let mut places = Vec::with_capacity(rest.len() / PLACE_BYTES);
    while rest.has_remaining() {
        places.push(Place {
            segment: rest.get_u32_le(),
            incarnation: rest.get_u64_le(),
            offset: rest.get_u64_le(),
            length: rest.get_u32_le(),
        });
    }
    Some(Places::Several(places.into()))
}

/// Where a run of bytes is in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Places {
    One(Place),
    /// One after the other; at least one.
    Several(Arc<[Place]>),
}

impl Places {
    fn all(&self) -> &[Place] {
        match self {
            Self::One(place) => core::slice::from_ref(place),
            Self::Several(places) => places,
        }
    }

    /// The first of them, for messages to an operator.
    pub(crate) fn first(&self) -> Place {
        self.all().first().copied().unwrap_or(Place {
            segment: 0,
            incarnation: 0,
            offset: 0,
            length: 0,
        })
    }

    pub(crate) fn length(&self) -> u64 {
        let lengths = self.all().iter().map(|p| u64::from(p.length));
        lengths.fold(0, u64::saturating_add)
    }

    /// A part of these bytes, `offset` from their start. `None` if it is not inside.
    pub(crate) fn part(&self, offset: u64, length: u64) -> Option<Self> {
        let end = offset.checked_add(length)?;
        let (mut start, mut found) = (0_u64, Vec::new());
        for place in self.all() {
            let next = start.checked_add(u64::from(place.length))?;
            let (from, to) = (offset.max(start), end.min(next));
            // Of no bytes at all there is a place too.
            if from < to || (length == 0 && from == to && found.is_empty()) {
                let length = u32::try_from(to.checked_sub(from)?).ok()?;
                found.push(place.part(from.checked_sub(start)?, length)?);
            }
            start = next;
        }
        if end > start {
            return None;
        }
        match found[..] {
            [] => None,
            [one] => Some(Self::One(one)),
            [_, ..] => Some(Self::Several(found.into())),
        }
    }

    /// The bytes; `None` if a segment was recycled since.
    pub(crate) fn read(&self, log: &impl LogRead) -> Result<Option<Bytes>, StoreError> {
        let places = match self {
            Self::One(place) => return log.read(place),
            Self::Several(places) => places,
        };
        let length = usize::try_from(self.length()).unwrap_or(usize::MAX);
        let mut bytes = BytesMut::with_capacity(length);
        for place in &**places {
            let Some(part) = log.read(place)? else {
                return Ok(None);
            };
            bytes.put_slice(&part);
        }
        Ok(Some(bytes.freeze()))
    }
}

/// Bodies of a record, in order.
pub(crate) type BodyPlaces = Vec<(BodyId, BodyPlace)>;

/// Takes a record apart: its write sets, and each body with its place. The bytes of bodies are not read.
pub(crate) fn read_payload(
    record: &Record,
    log: &impl LogRead,
) -> Result<(Vec<WriteSet>, BodyPlaces), StoreError> {
    let place = record.place;
    let what = || {
        format!(
            "record in segment {} at byte {}",
            place.segment, place.offset
        )
    };
    let corrupt = |why: &str| StoreError::corrupt(what(), None, why);
    let short = || corrupt("shorter than its batch");
    let parts = parts_of_payload(&record.payload);
    let read = |offset: u64, length: u64| match &parts {
        None => {
            let end = offset.saturating_add(length);
            let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
            let inside = range.filter(|(_, end)| *end <= record.payload.len());
            inside
                .map(|(start, end)| record.payload.slice(start..end))
                .ok_or_else(short)
        }
        Some(parts) => parts
            .part(offset, length)
            .ok_or_else(short)?
            .read(log)?
            .ok_or_else(|| corrupt("its parts are gone")),
    };
    let mut head = read(0, 4)?;
    let length = head.get_u32_le();
    let batch = read(4, u64::from(length))?;
    let (sets, bodies) = decode_write_sets(&batch).map_err(|source| StoreError::Format {
        what: what(),
        source,
    })?;
    let whole = parts.unwrap_or(Places::One(place));
    let start = u64::from(length).saturating_add(4);
    let expected = bodies
        .iter()
        .fold(0, |sum: u64, b| sum.saturating_add(u64::from(b.length)));
    let found = whole.length().saturating_sub(start);
    if expected != found {
        return Err(StoreError::Format {
            what: what(),
            source: FormatError::Bodies { expected, found },
        });
    }
    let named = bodies
        .iter()
        .map(|b| (b.id, u64::from(b.length), b.checksum));
    let places = body_places(named, &whole, start).ok_or_else(short)?;
    Ok((sets, places))
}

/// Where the bodies are, given by id, length and checksum, that begin `start` bytes behind the start of `whole`.
pub(crate) fn body_places(
    bodies: impl Iterator<Item = (BodyId, u64, u64)>,
    whole: &Places,
    start: u64,
) -> Option<BodyPlaces> {
    let mut offset = start;
    bodies
        .map(|(id, length, checksum)| {
            let places = whole.part(offset, length)?;
            offset = offset.saturating_add(length);
            Some((id, BodyPlace { places, checksum }))
        })
        .collect()
}

/// The rows of a body. The first chunk is put first and deleted last: whenever any chunk is there, it is.
pub(crate) fn rows(id: BodyId, body: &Bytes, checksum: u64) -> Vec<(RowKey, Bytes)> {
    let first = body.slice(..body.len().min(CHUNK_BYTES));
    let mut head = BytesMut::with_capacity(HEADER_BYTES.saturating_add(first.len()));
    // A body is as long as a `Place` can say.
    head.put_u32_le(u32::try_from(body.len()).unwrap_or(u32::MAX));
    head.put_u64_le(checksum);
    head.put_slice(&first);
    let others = (first.len()..body.len()).step_by(CHUNK_BYTES).map(|start| {
        let end = start.saturating_add(CHUNK_BYTES).min(body.len());
        body.slice(start..end)
    });
    (0_u32..)
        .zip(core::iter::once(head.freeze()).chain(others))
        .map(|(chunk, value)| (RowKey::body(id, chunk), value))
        .collect()
}

struct Head {
    length: usize,
    checksum: u64,
}

/// Reads the head of the first row of a body.
fn head<R: RowStore>(rows: &R, id: BodyId, row: &[u8]) -> Result<Head, StoreError> {
    let parts = row
        .split_first_chunk::<4>()
        .and_then(|(length, rest)| Some((length, rest.split_first_chunk::<8>()?.0)));
    let Some((length, checksum)) = parts else {
        return Err(StoreError::corrupt(
            table_file(rows, Table::Bodies),
            None,
            format!("the first row of body {id} is too short"),
        ));
    };
    Ok(Head {
        length: u32::from_le_bytes(*length) as usize,
        checksum: u64::from_le_bytes(*checksum),
    })
}

fn chunks(length: usize) -> u32 {
    // At most 2^32 bytes in chunks of 2^18.
    u32::try_from(length.div_ceil(CHUNK_BYTES).max(1)).unwrap_or(u32::MAX)
}

/// For each of some bodies how many rows it has in the row store; 0 if it is not there.
pub(crate) fn row_counts<R: RowStore>(rows: &R, ids: &[BodyId]) -> Result<Vec<u32>, StoreError> {
    let keys: Vec<RowKey> = ids.iter().map(|id| RowKey::body(*id, 0)).collect();
    let heads = rows.peek(Table::Bodies, &keys, HEADER_BYTES)?;
    ids.iter()
        .zip(heads)
        .map(|(id, row)| row.map_or(Ok(0), |row| Ok(chunks(head(rows, *id, &row)?.length))))
        .collect()
}

/// A body in the row store; `None` if it is not there.
pub(crate) fn read<R: RowStore>(rows: &R, id: BodyId) -> Result<Option<Bytes>, StoreError> {
    let Some(row) = rows.get(Table::Bodies, &RowKey::body(id, 0))? else {
        return Ok(None);
    };
    let head = head(rows, id, &row)?;
    let first = row.slice(HEADER_BYTES..);
    let corrupt = |what: &str| {
        StoreError::corrupt(
            table_file(rows, Table::Bodies),
            None,
            format!("body {id} {what}"),
        )
    };
    let body = if head.length <= CHUNK_BYTES {
        first
    } else {
        let mut all = BytesMut::with_capacity(head.length);
        all.put_slice(&first);
        for chunk in 1..chunks(head.length) {
            let row = rows
                .get(Table::Bodies, &RowKey::body(id, chunk))?
                .ok_or_else(|| corrupt("misses a part"))?;
            all.put_slice(&row);
        }
        all.freeze()
    };
    if body.len() != head.length || checksum(&body) != head.checksum {
        return Err(corrupt("does not pass its checksum"));
    }
    Ok(Some(body))
}

pub(crate) fn table_file<R: RowStore + ?Sized>(rows: &R, table: Table) -> String {
    format!("{} (table {table})", rows.name())
}

pub(crate) fn format_error<R: RowStore + ?Sized>(
    rows: &R,
    table: Table,
    key: &RowKey,
    source: FormatError,
) -> StoreError {
    StoreError::Format {
        what: format!("row {key:?} of {}", table_file(rows, table)),
        source,
    }
}
