//! How long there is left to work.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::limits::DEADLINE_MARGIN;
use lambda_runtime::Context;
use tokio::time::Instant;

/// The moment by which work has to be put down, `DEADLINE_MARGIN` before Lambda would end the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline of an invocation. One without a deadline of its own has passed at once.
    #[must_use]
    pub fn of(context: &Context) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let left = Duration::from_millis(context.deadline).saturating_sub(now);
        Self::after(left.saturating_sub(DEADLINE_MARGIN))
    }

    /// The deadline this far from now.
    #[must_use]
    pub fn after(left: Duration) -> Self {
        Self(Instant::now() + left)
    }

    /// The moment, for `tokio::time::timeout_at`.
    #[must_use]
    pub fn instant(self) -> Instant {
        self.0
    }

    /// Time left; zero once it has passed.
    #[must_use]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether nothing new should be started.
    #[must_use]
    pub fn has_passed(self) -> bool {
        self.left().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_taken_off() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut context = Context::default();
        context.deadline = u64::try_from((now + Duration::from_secs(60)).as_millis()).unwrap();
        let left = Deadline::of(&context).left();
        assert!(left <= Duration::from_secs(52) && left > Duration::from_secs(50), "{left:?}");
        context.deadline -= 55_000;
        assert!(Deadline::of(&context).has_passed());
        assert!(Deadline::of(&Context::default()).has_passed());
    }
}
