//! Batch ids without chance: the seed comes in.

use ferrymq_types::{ChannelName, UnitOfWorkId};

/// Makes ids from a seed that is random and fresh for each run of a queue manager. Two lanes of SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Generator {
    lanes: [u64; 2],
}

impl Generator {
    pub(crate) fn new(seed: u128, channel: &ChannelName) -> Self {
        // FNV-1a of the name, so that channels that were given one seed by mistake do not share ids.
        let name = channel
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let [high, low] = halves(seed);
        Self {
            lanes: [high ^ name, low.wrapping_add(name)],
        }
    }

    fn next_u64(lane: &mut u64) -> u64 {
        *lane = lane.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *lane;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A new id, never all zeros.
    pub(crate) fn next_id(&mut self) -> UnitOfWorkId {
        loop {
            let [high, low] = &mut self.lanes;
            let value = (u128::from(Self::next_u64(high)) << 64) | u128::from(Self::next_u64(low));
            let id = UnitOfWorkId::new(value.to_be_bytes());
            if !id.is_none() {
                return id;
            }
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the two halves of 128 bits"
)]
const fn halves(seed: u128) -> [u64; 2] {
    [(seed >> 64) as u64, seed as u64]
}

/// An id for a put that may be repeated after a crash: the same put has the same id. FNV-1a, 128 bits.
pub(crate) fn repeatable_id(parts: &[&[u8]]) -> UnitOfWorkId {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for part in parts {
        let length = u128::try_from(part.len()).unwrap_or(u128::MAX);
        hash = (hash ^ length).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        for byte in *part {
            hash =
                (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
    UnitOfWorkId::new(hash.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_seed_and_channel_alone() {
        let name = |n: &str| ChannelName::new(n).unwrap();
        let ids = |seed, channel: &str| {
            let mut g = Generator::new(seed, &name(channel));
            [g.next_id(), g.next_id(), g.next_id()]
        };
        assert_eq!(ids(7, "A"), ids(7, "A"));
        assert_ne!(ids(7, "A"), ids(8, "A"));
        assert_ne!(ids(7, "A"), ids(7, "B"));
        let [a, b, c] = ids(0, "A");
        assert!(a != b && b != c && a != c);
    }

    #[test]
    fn repeatable_ids_depend_on_every_part_and_its_length() {
        assert_eq!(repeatable_id(&[b"ab", b"c"]), repeatable_id(&[b"ab", b"c"]));
        assert_ne!(repeatable_id(&[b"ab", b"c"]), repeatable_id(&[b"a", b"bc"]));
        assert_ne!(repeatable_id(&[b"ab"]), repeatable_id(&[b"ac"]));
    }
}
