//! Bodies: in a record of the log behind its batch, and in the row store in chunks.

use bytes::{BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

use ferrymq_proto::storage::{EncodedBatch, FormatError, StoredBody, decode_write_sets};
use ferrymq_types::{BodyId, WriteSet};

use crate::{Place, RowKey, RowStore, StoreError, Table, overlay::BodyPlace};

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
        .map(u32::to_le_bytes)
        .map_err(|_| StoreError::TooLarge {
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

/// Bodies of a record, in order.
pub(crate) type BodyPlaces = Vec<(BodyId, BodyPlace)>;

/// Takes a record apart: its write sets, and each body with its place.
pub(crate) fn read_payload(
    payload: &Bytes,
    place: Place,
) -> Result<(Vec<WriteSet>, BodyPlaces), StoreError> {
    let what = || {
        format!(
            "record in segment {} at byte {}",
            place.segment, place.offset
        )
    };
    let short = || StoreError::corrupt(what(), None, "shorter than its batch");
    let (length, rest) = payload.split_first_chunk::<4>().ok_or_else(short)?;
    let length = u32::from_le_bytes(*length) as usize;
    let batch = rest.get(..length).ok_or_else(short)?;
    let start = length.saturating_add(4);
    let (sets, bodies) =
        decode_write_sets(batch, &payload.slice(start..)).map_err(|source| StoreError::Format {
            what: what(),
            source,
        })?;
    let places = body_places(&bodies, place, start as u64).ok_or_else(short)?;
    Ok((sets, places))
}

/// Where the bodies are that begin `start` bytes behind the start of `place`.
pub(crate) fn body_places(bodies: &[StoredBody], place: Place, start: u64) -> Option<BodyPlaces> {
    let mut offset = start;
    bodies
        .iter()
        .map(|b| {
            let length = u32::try_from(b.bytes.len()).ok()?;
            let place = place.part(offset, length)?;
            offset = offset.saturating_add(u64::from(length));
            Some((
                b.id,
                BodyPlace {
                    place,
                    checksum: b.checksum,
                },
            ))
        })
        .collect()
}

/// The rows of a body. The first chunk comes first here and last in [`keys`]: whenever any chunk is there, it is.
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
    first: Bytes,
}

fn head<R: RowStore>(rows: &R, id: BodyId) -> Result<Option<Head>, StoreError> {
    let Some(row) = rows.get(Table::Bodies, &RowKey::body(id, 0))? else {
        return Ok(None);
    };
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
    Ok(Some(Head {
        length: u32::from_le_bytes(*length) as usize,
        checksum: u64::from_le_bytes(*checksum),
        first: row.slice(HEADER_BYTES..),
    }))
}

fn chunks(length: usize) -> u32 {
    // At most 2^32 bytes in chunks of 2^18.
    u32::try_from(length.div_ceil(CHUNK_BYTES).max(1)).unwrap_or(u32::MAX)
}

/// The keys of a body that is in the row store, in the order in which to delete them; empty if it is not.
pub(crate) fn keys<R: RowStore>(rows: &R, id: BodyId) -> Result<Vec<RowKey>, StoreError> {
    Ok(head(rows, id)?.map_or_else(Vec::new, |head| {
        (0..chunks(head.length))
            .rev()
            .map(|chunk| RowKey::body(id, chunk))
            .collect()
    }))
}

/// A body in the row store; `None` if it is not there.
pub(crate) fn read<R: RowStore>(rows: &R, id: BodyId) -> Result<Option<Bytes>, StoreError> {
    let Some(head) = head(rows, id)? else {
        return Ok(None);
    };
    let corrupt = |what: &str| {
        StoreError::corrupt(
            table_file(rows, Table::Bodies),
            None,
            format!("body {id} {what}"),
        )
    };
    let body = if head.length <= CHUNK_BYTES {
        head.first
    } else {
        let mut all = BytesMut::with_capacity(head.length);
        all.put_slice(&head.first);
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
