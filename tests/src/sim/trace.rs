//! What happened, in words; written only where somebody will read it.

use ferrymq_types::Timestamp;

/// Virtual time starts here: late enough that nothing is before the epoch.
pub(crate) const START: u64 = 1_800_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(on: bool) -> Self {
        Self {
            lines: on.then(Vec::new),
        }
    }

    /// Words for later, if somebody will read them.
    pub(crate) fn words(&self, what: impl FnOnce() -> String) -> String {
        if self.lines.is_some() {
            what()
        } else {
            String::new()
        }
    }

    pub(crate) fn add(&mut self, now: Timestamp, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            let mut what = what();
            if what.len() > 400 {
                let mut end = 400;
                while !what.is_char_boundary(end) {
                    end -= 1;
                }
                what.truncate(end);
                what.push('…');
            }
            let ms = now.as_millis().saturating_sub(START);
            lines.push(format!("{:4}.{:03} {what}", ms / 1000, ms % 1000));
        }
    }
}
