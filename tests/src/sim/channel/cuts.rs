//! Connections that are cut: what was under way may arrive late or not at all, and either end may not notice for long.

use ferrymq_types::Timestamp;

use super::{Direction, Moment};
use crate::sim::world::{Event, Phase, World, after};

impl World {
    /// A connection will be cut soon.
    pub(crate) fn cut_soon(&mut self) {
        self.cut_when = Some(match self.dice.below(4) {
            0 => Moment::BatchEnd,
            1 => Moment::Confirmation,
            _ => Moment::Frames(self.dice.below(20)),
        });
    }

    /// A frame was sent: perhaps it is the one after which the connection is cut.
    pub(super) fn cut_after(&mut self, link: Option<u64>, moment: Option<Moment>) {
        if self.phase != Phase::Working {
            return;
        }
        match self.cut_when {
            Some(Moment::Frames(0)) => {}
            Some(Moment::Frames(left)) => {
                self.cut_when = Some(Moment::Frames(left - 1));
                return;
            }
            Some(wanted) if Some(wanted) == moment => {}
            Some(Moment::BatchEnd | Moment::Confirmation) | None => return,
        }
        if let Some(link) = link.filter(|l| self.links.get(l).is_some_and(|l| !l.cut)) {
            self.cut_when = None;
            self.cut(link);
        }
    }

    /// Cuts a connection: what is under way may arrive late or not at all, and either end may not notice for long.
    fn cut(&mut self, number: u64) {
        self.statistics.cuts += 1;
        self.conversation_ends();
        let (early, late) = (
            after(self.now, self.dice.below(5)),
            after(self.now, self.dice.below(8_000)),
        );
        let quick = self.dice.percent(75);
        let ends = match self.dice.below(4) {
            0 => [Some(early), Some(early)],
            1 => [None, Some(early)],
            _ => [Some(late), Some(early)],
        };
        // A sender that notices nothing waits for its silence limit.
        let back = if quick { ends[1] } else { None };
        self.cut_link(number, [late, early], [ends[0], back]);
        if let Some(link) = self.links.get_mut(&number) {
            link.lurks = self.dice.percent(60);
        }
    }

    /// A bind was answered: what is late of older connections arrives now.
    pub(super) fn bind_answered(&mut self) {
        let numbers: Vec<u64> = self
            .links
            .iter()
            .filter(|(_, l)| l.lurks)
            .map(|(n, _)| *n)
            .collect();
        for number in numbers {
            let at = after(self.now, self.dice.below(2 * self.profile.latency + 10));
            let Some(link) = self.links.get_mut(&number) else {
                continue;
            };
            link.lurks = false;
            let items = link.forward.items.len();
            for (time, _) in &mut link.forward.items {
                *time = at;
            }
            for _ in 0..items {
                self.at(at, Event::Deliver(number, Direction::Forward));
            }
        }
    }

    fn cut_link(&mut self, number: u64, arrivals: [Timestamp; 2], ends: [Option<Timestamp>; 2]) {
        let Some(link) = self.links.get(&number) else {
            return;
        };
        let kept =
            [link.forward.items.len(), link.backward.items.len()].map(|n| self.dice.index(n + 1));
        let Some(link) = self.links.get_mut(&number) else {
            return;
        };
        link.cut = true;
        let forward = link.forward.cut(kept[0], arrivals[0], ends[0]);
        let backward = link.backward.cut(kept[1], arrivals[1], ends[1]);
        self.trace.add(self.now, || {
            format!("link {number} is cut: forward {forward:?} backward {backward:?}")
        });
        for at in forward {
            self.at(at, Event::Deliver(number, Direction::Forward));
        }
        for at in backward {
            self.at(at, Event::Deliver(number, Direction::Backward));
        }
    }

    /// What a node had sent may still arrive; what was on its way to it is gone.
    pub(crate) fn links_of_crashed(&mut self, node: usize) {
        self.conversation_ends();
        let numbers: Vec<u64> = self.links.keys().copied().collect();
        for number in numbers {
            let noticed = self.dice.percent(70) || self.phase == Phase::Healing;
            let at = after(self.now, self.dice.below(1_000));
            let end = noticed.then_some(at);
            if node == 0 {
                self.cut_link(number, [at, self.now], [end, None]);
            } else {
                self.cut_link(number, [self.now, at], [None, end]);
            }
        }
        self.links
            .retain(|_, l| !(l.forward.items.is_empty() && l.backward.items.is_empty()));
    }
}
