//! An ordered map that keeps its items close together: millions of small ones at the cost of their own bytes.
//!
//! Items lie sorted in chunks of at most [`CHUNK_ITEMS`]; a B-tree holds the chunks by a lower bound of their keys. What comes in
//! ascending order fills its chunks to the last place (a B-tree alone leaves them half empty), and what goes from the front
//! moves nothing. Every operation looks at one chunk, or at two.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// Items of a chunk at most. Larger ones make the tree of chunks smaller and an insertion in the middle dearer.
const CHUNK_ITEMS: usize = 128;

type Chunk<K, V> = VecDeque<(K, V)>;

/// A map in the order of its keys.
#[derive(Debug, Clone)]
pub(crate) struct Ordered<K, V> {
    /// By a key that none of the chunk's is below and that is above all of the chunks before. None is empty, but the last one
    /// left may be: a queue that is drained as fast as it fills needs no new memory.
    chunks: BTreeMap<K, Chunk<K, V>>,
    len: usize,
}

enum Side {
    First,
    Last,
    Middle,
}

impl<K: Ord + Copy, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self {
            chunks: BTreeMap::new(),
            len: 0,
        }
    }
}

impl<K: Ord + Copy, V> Ordered<K, V> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the chunk is that holds `key` if any does. Most of what is asked for is at one of the ends.
    fn side_of(&self, key: K) -> Option<Side> {
        let (first, chunk) = self.chunks.first_key_value()?;
        if key < *first {
            return None;
        }
        if chunk.back().is_some_and(|(last, _)| key <= *last) {
            return Some(Side::First);
        }
        let (last, _) = self.chunks.last_key_value()?;
        Some(if *last <= key {
            Side::Last
        } else {
            Side::Middle
        })
    }

    fn chunk(&self, key: K) -> Option<(K, &Chunk<K, V>)> {
        let found = match self.side_of(key)? {
            Side::First => self.chunks.first_key_value(),
            Side::Last => self.chunks.last_key_value(),
            Side::Middle => self.chunks.range(..=key).next_back(),
        };
        found.map(|(bound, chunk)| (*bound, chunk))
    }

    fn chunk_mut(&mut self, key: K) -> Option<(K, &mut Chunk<K, V>, &mut usize)> {
        let side = self.side_of(key)?;
        let Self { chunks, len } = self;
        let (bound, chunk) = match side {
            Side::First => {
                let first = chunks.first_entry()?;
                (*first.key(), first.into_mut())
            }
            Side::Last => {
                let last = chunks.last_entry()?;
                (*last.key(), last.into_mut())
            }
            Side::Middle => {
                let (bound, chunk) = chunks.range_mut(..=key).next_back()?;
                (*bound, chunk)
            }
        };
        Some((bound, chunk, len))
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        let (_, chunk) = self.chunk(key)?;
        chunk.get(search(chunk, key).ok()?).map(|(_, value)| value)
    }

    pub(crate) fn first(&self) -> Option<(K, &V)> {
        let (_, chunk) = self.chunks.first_key_value()?;
        chunk.front().map(|(k, v)| (*k, v))
    }

    /// The items from a bound on, in order.
    pub(crate) fn range(&self, from: Bound<K>) -> impl Iterator<Item = (K, &V)> {
        let start = match from {
            Bound::Included(key) | Bound::Excluded(key) => self.chunk(key).map(|(k, _)| k),
            Bound::Unbounded => None,
        };
        let chunks = self.chunks.range((
            start.map_or(Bound::Unbounded, Bound::Included),
            Bound::Unbounded,
        ));
        let skip = move |chunk: &Chunk<K, V>| match from {
            Bound::Included(key) => chunk.partition_point(|(k, _)| *k < key),
            Bound::Excluded(key) => chunk.partition_point(|(k, _)| *k <= key),
            Bound::Unbounded => 0,
        };
        chunks.flat_map(move |(_, chunk)| chunk.range(skip(chunk)..).map(|(k, v)| (*k, v)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.range(Bound::Unbounded)
    }

    /// Adds an item; gives back the one that was there under the same key.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.chunks.last_entry() {
            None => {
                self.new_chunk(key, value);
                return None;
            }
            // Most of what comes goes to the end.
            Some(mut last)
                if last.get().back().is_none_or(|(k, _)| *k < key) && *last.key() <= key =>
            {
                if last.get().len() < CHUNK_ITEMS {
                    self.len = self.len.saturating_add(1);
                    last.get_mut().push_back((key, value));
                } else {
                    self.new_chunk(key, value);
                }
                return None;
            }
            Some(_) => {}
        }
        let Some((bound, chunk, len)) = self.chunk_mut(key) else {
            self.insert_before(key, None, value);
            return None;
        };
        match search(chunk, key) {
            Ok(at) => chunk
                .get_mut(at)
                .map(|(_, old)| std::mem::replace(old, value)),
            Err(at) if chunk.len() < CHUNK_ITEMS => {
                chunk.insert(at, (key, value));
                *len = len.saturating_add(1);
                None
            }
            Err(at) if at == chunk.len() => {
                self.insert_before(key, Some(bound), value);
                None
            }
            Err(at) => {
                let mut behind = chunk.split_off(CHUNK_ITEMS / 2);
                match at.checked_sub(chunk.len()) {
                    Some(at) => behind.insert(at, (key, value)),
                    None => chunk.insert(at, (key, value)),
                }
                *len = len.saturating_add(1);
                if let Some((bound, _)) = behind.front() {
                    self.chunks.insert(*bound, behind);
                }
                None
            }
        }
    }

    /// Adds an item that belongs behind the full chunk `behind` (or in front of all) and before the next one: to that if it
    /// has room, else to a chunk of its own.
    fn insert_before(&mut self, key: K, behind: Option<K>, value: V) {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.chunks.range((from, Bound::Unbounded)).next();
        if let Some((&bound, chunk)) = next
            && chunk.len() < CHUNK_ITEMS
            && let Some(mut chunk) = self.chunks.remove(&bound)
        {
            chunk.push_front((key, value));
            self.chunks.insert(key, chunk);
            self.len = self.len.saturating_add(1);
        } else {
            self.new_chunk(key, value);
        }
    }

    fn new_chunk(&mut self, key: K, value: V) {
        self.chunks.insert(key, VecDeque::from([(key, value)]));
        self.len = self.len.saturating_add(1);
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let last_one = self.chunks.len() == 1;
        let (bound, chunk, len) = self.chunk_mut(key)?;
        let at = search(chunk, key).ok()?;
        let (_, value) = chunk.remove(at)?;
        *len = len.saturating_sub(1);
        let (left, room) = (chunk.len(), chunk.capacity());
        if left == 0 && !last_one {
            self.chunks.remove(&bound);
        } else if room > 8 && left <= room / 4 && at != 0 {
            // Thinned out, not drained from its front: what stays may stay for long.
            chunk.shrink_to(room / 2);
        }
        Some(value)
    }

    pub(crate) fn pop_first(&mut self) -> Option<(K, V)> {
        let mut first = self.chunks.first_entry()?;
        let item = first.get_mut().pop_front()?;
        let empty = first.get().is_empty();
        self.len = self.len.saturating_sub(1);
        if empty && self.chunks.len() > 1 {
            self.chunks.pop_first();
        }
        Some(item)
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = (K, V)> {
        self.chunks.into_values().flatten()
    }
}

/// The place of a key in a chunk, or the one where it would be. What is delivered is the first, mostly.
fn search<K: Ord + Copy, V>(chunk: &Chunk<K, V>, key: K) -> Result<usize, usize> {
    match chunk.front() {
        Some((first, _)) if *first < key => chunk.binary_search_by(|(k, _)| k.cmp(&key)),
        Some((first, _)) if *first == key => Ok(0),
        Some(_) | None => Err(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What must hold whatever was done.
    fn check(map: &Ordered<u64, u64>, model: &BTreeMap<u64, u64>) {
        assert_eq!(map.len(), model.len());
        assert!(map.iter().eq(model.iter().map(|(k, v)| (*k, v))));
        let mut before = None;
        for (bound, chunk) in &map.chunks {
            assert!(chunk.len() <= CHUNK_ITEMS);
            assert!(!chunk.is_empty() || map.chunks.len() == 1);
            for (key, _) in chunk {
                assert!(bound <= key && before < Some(*key));
                before = Some(*key);
            }
        }
    }

    fn random(seed: &mut u64, below: u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        seed.checked_rem(below).unwrap()
    }

    #[test]
    fn random_changes_agree_with_a_map() {
        for start in 1..60u64 {
            let mut seed = start.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // From dense keys, which meet each other, to sparse ones.
            let keys = [64, 1_000, 100_000][usize::try_from(start % 3).unwrap()];
            let mut map = Ordered::default();
            let mut model = BTreeMap::new();
            let mut next = 0;
            for step in 0..3_000 {
                // Waves: filling, then emptying.
                let fills = (step / 500) % 2 == 0;
                let key = random(&mut seed, keys);
                match random(&mut seed, 10) {
                    0..=2 if fills => {
                        next += 1;
                        let key = keys + next;
                        assert_eq!(map.insert(key, step), model.insert(key, step));
                    }
                    3..=4 if fills => assert_eq!(map.insert(key, step), model.insert(key, step)),
                    0..=4 => assert_eq!(map.pop_first(), model.pop_first()),
                    5..=7 => assert_eq!(map.remove(key), model.remove(&key)),
                    _ => {
                        assert_eq!(map.get(key), model.get(&key));
                        let first = model.first_key_value().map(|(k, v)| (*k, v));
                        assert_eq!(map.first(), first);
                        for from in [Bound::Included(key), Bound::Excluded(key)] {
                            let of_model = model.range((from, Bound::Unbounded));
                            assert!(map.range(from).eq(of_model.map(|(k, v)| (*k, v))));
                        }
                    }
                }
                if step % 50 == 0 {
                    check(&map, &model);
                }
            }
            check(&map, &model);
        }
    }

    #[test]
    fn ascending_keys_fill_their_chunks_and_a_drained_map_keeps_one() {
        let mut map = Ordered::default();
        for key in 0..10_000u64 {
            map.insert(key, ());
        }
        assert_eq!(map.chunks.len(), 10_000usize.div_ceil(CHUNK_ITEMS));
        for key in 0..10_000 {
            assert_eq!(map.remove(key), Some(()));
        }
        assert_eq!((map.len(), map.chunks.len()), (0, 1));
    }

    #[test]
    fn what_comes_back_in_descending_order_makes_no_crumbs() {
        let mut map = Ordered::default();
        for key in (0..CHUNK_ITEMS as u64).chain(10_000..20_000) {
            map.insert(key, ());
        }
        for key in (CHUNK_ITEMS as u64..10_000).rev() {
            map.insert(key, ());
        }
        assert!(map.chunks.len() <= 20_000usize.div_ceil(CHUNK_ITEMS) + 2);
        for key in 20_000..30_000 {
            map.insert(key, ());
        }
        assert!(map.iter().map(|(key, &())| key).eq(0..30_000));
    }

    #[test]
    fn what_is_thinned_out_gives_memory_back() {
        let mut map = Ordered::default();
        for key in 0..100_000u64 {
            map.insert(key, ());
        }
        for key in (0..100_000).filter(|key| key % 16 != 0) {
            map.remove(key);
        }
        let room: usize = map.chunks.values().map(VecDeque::capacity).sum();
        assert!(room <= map.len() * 4, "{room} places for {}", map.len());
    }
}
