//! Points in time, as numbers: the core reads no clock.

use core::fmt;
use core::time::Duration;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The epoch.
    pub const ZERO: Self = Self(0);

    /// From milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This point moved on by `duration`; stops at the end of time.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
        )
    }

    /// How much later this point is than `earlier`; zero if it is not (a clock that stepped back).
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// `(year, month, day, hour, minute, second, hundredths)` in UTC, for the `YYYYMMDD` and `HHMMSSTH` forms of descriptors
    /// and headers.
    #[must_use]
    pub fn civil(self) -> (u64, u64, u64, u64, u64, u64, u64) {
        let (seconds, ms) = (self.0 / 1000, self.0 % 1000);
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // Days to a date of the proleptic Gregorian calendar, counted from 0000-03-01 in eras of 400 years.
        let z = days.saturating_add(719_468);
        let era = z / 146_097;
        let doe = z % 146_097;
        let yoe = doe
            .saturating_sub(doe / 1460)
            .saturating_add(doe / 36_524)
            .saturating_sub(doe / 146_096)
            / 365;
        let doy = doe.saturating_sub(
            yoe.saturating_mul(365)
                .saturating_add(yoe / 4)
                .saturating_sub(yoe / 100),
        );
        let mp = doy.saturating_mul(5).saturating_add(2) / 153;
        let day = doy
            .saturating_sub(mp.saturating_mul(153).saturating_add(2) / 5)
            .saturating_add(1);
        let month = if mp < 10 {
            mp.saturating_add(3)
        } else {
            mp.saturating_sub(9)
        };
        let year = yoe
            .saturating_add(era.saturating_mul(400))
            .saturating_add(u64::from(month <= 2));
        (
            year,
            month,
            day,
            rest / 3600,
            rest / 60 % 60,
            rest % 60,
            ms / 10,
        )
    }

    /// `YYYYMMDD` in UTC, the form of `PutDate`.
    #[must_use]
    pub fn date8(self) -> String {
        let (y, m, d, ..) = self.civil();
        format!("{y:04}{m:02}{d:02}")
    }

    /// `HHMMSSTH` in UTC, the form of `PutTime`.
    #[must_use]
    pub fn time8(self) -> String {
        let (_, _, _, h, m, s, th) = self.civil();
        format!("{h:02}{m:02}{s:02}{th:02}")
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (y, mo, d, h, mi, s, _) = self.civil();
        write!(
            f,
            "{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}.{:03}Z",
            self.0 % 1000
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates_are_those_of_the_calendar() {
        let check = |ms: u64, expected: &str| {
            assert_eq!(Timestamp::from_millis(ms).to_string(), expected);
        };
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_399_999, "2000-02-28T23:59:59.999Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_796_083_200_000, "2026-12-01T00:00:00.000Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn put_date_and_put_time_have_eight_digits() {
        let t = Timestamp::from_millis(951_782_399_991);
        assert_eq!(t.date8(), "20000228");
        assert_eq!(t.time8(), "23595999");
    }

    #[test]
    fn time_since_a_later_point_is_zero() {
        assert_eq!(
            Timestamp::ZERO.since(Timestamp::from_millis(5)),
            Duration::ZERO
        );
    }
}
