//! Chance that follows from a seed.

use ferrymq_store::memory::Random;

/// Draws numbers; the same seed draws the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Dice(Random);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub(crate) fn seed(&mut self) -> u64 {
        self.0.number()
    }

    /// Below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// True `percent` times in a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.0.below(length as u64)).unwrap_or(0)
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    pub(crate) fn bytes16(&mut self) -> [u8; 16] {
        let (a, b) = (u128::from(self.seed()), u128::from(self.seed()));
        (a << 64 | b).to_be_bytes()
    }
}
