//! Early polls, answered from memory.
//!
//! What one instance remembers is enough: it is a brake on the database, not a promise. Bounded; what is forgotten is
//! simply answered. Times are those of the wall clock, because a frozen environment's monotonic clock may stand still.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use domain::limits::POLLS_REMEMBERED_MAX;
use uuid::Uuid;

/// A buyer and an order; the buyer too, so that nobody's guess slows anybody down.
pub(crate) type Poll = (Uuid, Uuid);

/// The last answers of this instance.
#[derive(Debug, Default)]
pub(crate) struct Polls(Mutex<HashMap<Poll, Answered>>);

#[derive(Debug, Clone, Copy)]
struct Answered {
    at: SystemTime,
    poll_after: Duration,
    /// An early poll was let through since: somebody who has just cancelled wants to see it.
    excused: bool,
}

impl Answered {
    /// What is left of the wait, while less than half of it is over. A clock set back ends the wait.
    fn rest(&self, now: SystemTime) -> Option<Duration> {
        let waited = now.duration_since(self.at).ok()?;
        (waited < self.poll_after / 2).then(|| self.poll_after - waited)
    }
}

impl Polls {
    /// Seconds that this poll should still have waited, if it comes too early for the second time in a row.
    pub(crate) fn wait(&self, poll: Poll, now: SystemTime) -> Option<u32> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = answers.get_mut(&poll)?;
        let rest = answered.rest(now)?;
        if !std::mem::replace(&mut answered.excused, true) {
            return None;
        }
        u32::try_from(rest.as_secs() + u64::from(rest.subsec_nanos() > 0)).ok()
    }

    /// Remembers an answer that asked to wait; forgets the order when it has ended.
    pub(crate) fn remember(&self, poll: Poll, poll_after: Option<u32>, now: SystemTime) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seconds) = poll_after else {
            answers.remove(&poll);
            return;
        };
        if answers.len() >= POLLS_REMEMBERED_MAX && !answers.contains_key(&poll) {
            answers.retain(|_, answered| answered.rest(now).is_some());
            // Full of waits that are still running: those stay, this one goes unwatched.
            if answers.len() >= POLLS_REMEMBERED_MAX {
                return;
            }
        }
        // An answer to an excused poll does not excuse the next one.
        let excused = answers.get(&poll).is_some_and(|before| before.excused && before.rest(now).is_some());
        answers.insert(poll, Answered { at: now, poll_after: Duration::from_secs(seconds.into()), excused });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Poll = (Uuid::from_u128(1), Uuid::from_u128(2));

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000) + Duration::from_millis(millis)
    }

    #[test]
    fn a_poll_before_half_of_the_wait_is_early_and_says_what_is_left() {
        let polls = Polls::default();
        assert_eq!(polls.wait(POLL, at(0)), None, "the first poll");
        polls.remember(POLL, Some(10), at(0));
        assert_eq!(polls.wait(POLL, at(0)), None, "the first early one is excused");
        polls.remember(POLL, Some(10), at(0));
        assert_eq!(polls.wait(POLL, at(0)), Some(10));
        assert_eq!(polls.wait(POLL, at(4_999)), Some(6));
        assert_eq!(polls.wait(POLL, at(5_000)), None);
        assert_eq!(polls.wait((POLL.1, POLL.1), at(1)), None, "another buyer");
        assert_eq!(polls.wait((POLL.0, POLL.0), at(1)), None, "another order");
        assert_eq!(polls.wait(POLL, SystemTime::UNIX_EPOCH), None, "the clock was set back");
    }

    #[test]
    fn an_ended_order_may_be_read_at_will() {
        let polls = Polls::default();
        polls.remember(POLL, Some(10), at(0));
        polls.remember(POLL, None, at(1));
        assert_eq!(polls.wait(POLL, at(2)), None);
    }

    #[test]
    fn memory_is_bounded_and_running_waits_are_kept() {
        let polls = Polls::default();
        let poll = |n: usize| (Uuid::from_u128(1), Uuid::from_u128(n as u128));
        for n in 0..POLLS_REMEMBERED_MAX + 10 {
            polls.remember(poll(n), Some(10), at(0));
        }
        assert_eq!(polls.0.lock().unwrap().len(), POLLS_REMEMBERED_MAX);
        assert_eq!((polls.wait(poll(0), at(1)), polls.wait(poll(0), at(1))), (None, Some(10)));
        assert_eq!(polls.wait(poll(POLLS_REMEMBERED_MAX + 1), at(1)), None);
        polls.remember(poll(POLLS_REMEMBERED_MAX + 1), Some(10), at(5_000));
        assert_eq!(polls.0.lock().unwrap().len(), 1, "waits that are over make room");
    }
}
