//! A copy of a journal that is in use: for backups.

use std::path::Path;
use std::sync::Arc;

use ferrymq_store::{RowCounts, StoreError};
use ferrymq_types::Position;

use crate::{
    disk::{Disk, DiskFile, OsDisk},
    guard::{self, Block, Named},
    meta,
    segment::{self, BLOCK, BLOCK_BYTES},
    shared::{JournalSync, Shared, lock},
};

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1024 * 1024;

/// A copy that was begun: as long as it lives no segment is recycled, so that everything behind the checkpoint of that moment can
/// be copied. Rows that are to go with it are copied after [`JournalSync::begin_copy`] and before [`JournalCopy::write`]: then the
/// journal reaches at least as far as they do.
#[derive(Debug)]
pub struct JournalCopy<D: Disk = OsDisk> {
    shared: Arc<Shared<D>>,
    checkpoint: Position,
    counts: RowCounts,
}

impl<D: Disk> JournalSync<D> {
    /// Begins a copy. From here on the journal fills up and nothing of it is used again, until the copy is dropped and
    /// [`ferrymq_store::RecordLog::recycle`] is called.
    ///
    /// # Errors
    /// [`StoreError::Failed`] after a failure that is final.
    pub fn begin_copy(&self) -> Result<JournalCopy<D>, StoreError> {
        let mut state = lock(&self.0.state);
        state.check()?;
        state.copies = state.copies.saturating_add(1);
        Ok(JournalCopy {
            shared: Arc::clone(&self.0),
            checkpoint: state.checkpoint,
            counts: state.counts.clone(),
        })
    }
}

impl<D: Disk> Drop for JournalCopy<D> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.copies = state.copies.saturating_sub(1);
    }
}

/// A segment that is to be copied.
struct Source<F> {
    named: Named,
    file: Arc<F>,
    end: u64,
}

impl<D: Disk> JournalCopy<D> {
    /// Copies everything up to the last position of this moment, which it returns, into a directory without a journal; all of it
    /// is durable there. `pace` is told after each piece how many bytes it had.
    ///
    /// # Errors
    /// What the disk says; [`StoreError::Failed`] after a failure that is final.
    pub fn write(
        &self,
        directory: &Path,
        pace: &mut dyn FnMut(usize),
    ) -> Result<Position, StoreError> {
        let to = OsDisk::create(directory)
            .map_err(|e| StoreError::io("create", directory.display(), e))?;
        let (position, epoch, sources) = {
            let state = lock(&self.shared.state);
            let segments = self
                .shared
                .segments
                .read()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut sources = Vec::with_capacity(state.live.len());
            // One without records was just taken, and may not be open to readers yet.
            for live in state.live.iter().filter(|live| live.end > 0) {
                let number = live.named.segment;
                let file = segments
                    .get(&number)
                    .map(|s| Arc::clone(&s.file))
                    .ok_or_else(|| {
                        let file = self.shared.disk.path(&segment::name(number));
                        StoreError::corrupt(file, None, "it is not open")
                    })?;
                sources.push(Source {
                    named: live.named,
                    file,
                    end: live.end,
                });
            }
            (state.appended, state.epoch, sources)
        };
        // What is copied counts as acknowledged: it must not vanish here and be there.
        self.shared.sync(&mut lock(&self.shared.serial))?;
        for source in &sources {
            self.segment(&to, source, pace)?;
        }
        let block = Block {
            generation: 1,
            guard: ferrymq_store::Guard {
                acknowledged: position,
                checkpoint: self.checkpoint,
                counts: self.counts.clone(),
            },
            epoch,
            segments: sources.iter().map(|s| s.named).collect(),
        };
        guard::create(&to, self.shared.secret, &block)?;
        // Last: a directory with it is a whole journal.
        let from = self.shared.disk.path(meta::NAME);
        let bytes = self
            .shared
            .disk
            .open_read_only(meta::NAME)
            .and_then(|file| segment::read_all(&file))
            .map_err(|e| StoreError::io("read", from, e))?;
        segment::create_file(&to, meta::NAME, 0, |file| file.write_at(&bytes, 0))?;
        Ok(position)
    }

    fn segment(
        &self,
        to: &OsDisk,
        source: &Source<D::File>,
        pace: &mut dyn FnMut(usize),
    ) -> Result<(), StoreError> {
        let name = segment::name(source.named.segment);
        let read_error = |e| StoreError::io("read", self.shared.disk.path(&name), e);
        let mut failed = None;
        let made = segment::create_file(to, &name, 0, |file| {
            let mut piece = vec![0; PIECE_BYTES];
            let mut offset = 0;
            while offset < source.end {
                let left = usize::try_from(source.end - offset).unwrap_or(usize::MAX);
                let length = left.min(PIECE_BYTES);
                let piece = &mut piece[..length];
                if let Err(error) = source.file.read_at(piece, offset) {
                    failed = Some(read_error(error));
                    return Err(std::io::Error::other("the segment cannot be read"));
                }
                file.write_at(piece, offset)?;
                pace(length);
                offset = offset.saturating_add(length as u64);
            }
            // As long as the others, and empty from here on.
            if source.end < self.shared.segment_bytes {
                let last = self.shared.segment_bytes.saturating_sub(BLOCK_BYTES);
                file.write_at(&[0; BLOCK], last)?;
            }
            Ok(())
        });
        match failed {
            Some(error) => Err(error),
            None => made.map(drop),
        }
    }
}
