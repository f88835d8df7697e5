//! How long a buyer should wait before looking again, and how an estimate is rounded. Pure.
//!
//! Both are coarse on purpose: a representation that changed with every second would never be a 304.

use std::time::Duration;

use domain::limits::{PLACE_COUNT_MAX, POLL_AFTER_MAX, POLL_AFTER_MIN};
use domain::orders::State;
use store::orders::Place;

/// Seconds between looks at reserved numbers: nothing moves unless the buyer acts or the hold ends.
const WHILE_RESERVED: u64 = 5;

/// Seconds to wait before the next look; none once nothing will change.
pub(crate) fn poll_after(state: State, cancel_requested: bool, place: Option<&Place>) -> Option<u32> {
    let (shortest, longest) = (POLL_AFTER_MIN.as_secs(), POLL_AFTER_MAX.as_secs());
    let seconds = match state {
        state if state.is_terminal() => return None,
        State::Queued => place.map_or(shortest, queued),
        State::Reserved if !cancel_requested => WHILE_RESERVED,
        State::Refunding => longest,
        _ => shortest,
    };
    u32::try_from(seconds.clamp(shortest, longest)).ok()
}

/// Grows evenly with the place, unless the queue is so fast that the order's turn comes earlier.
fn queued(place: &Place) -> u64 {
    let (shortest, longest) = (POLL_AFTER_MIN.as_secs(), POLL_AFTER_MAX.as_secs());
    let (place_max, position) = (PLACE_COUNT_MAX.unsigned_abs(), place.position.max(0).unsigned_abs());
    let by_place = shortest + (longest - shortest) * position.min(place_max) / place_max;
    place.estimate.map_or(by_place, |estimate| by_place.min(estimate_seconds(estimate)))
}

/// An estimate in seconds, rounded up: to 5 s within a minute, to 30 s within ten, to whole minutes beyond.
pub(crate) fn estimate_seconds(estimate: Duration) -> u64 {
    let seconds = estimate.as_secs() + u64::from(estimate.subsec_nanos() > 0);
    let step = match seconds {
        0..=60 => 5,
        61..=600 => 30,
        _ => 60,
    };
    seconds.div_ceil(step).max(1) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(position: i64, estimate: Option<u64>) -> Place {
        Place { position, or_more: position > PLACE_COUNT_MAX, estimate: estimate.map(Duration::from_secs) }
    }

    fn queued_at(position: i64, estimate: Option<u64>) -> u32 {
        poll_after(State::Queued, false, Some(&place(position, estimate))).unwrap()
    }

    #[test]
    fn the_wait_grows_with_the_place_from_2_to_30_seconds() {
        let waits: Vec<u32> = (1..=1_001).map(|position| queued_at(position, None)).collect();
        assert!(waits.is_sorted());
        assert_eq!((waits[0], waits[499], waits[1_000]), (2, 16, 30));
        assert_eq!(poll_after(State::Queued, false, None), Some(2), "not known yet");
    }

    #[test]
    fn a_fast_queue_is_looked_at_earlier_and_a_slow_one_not_later() {
        assert_eq!(queued_at(1_001, Some(3)), 5);
        assert_eq!(queued_at(1_001, Some(3_600)), 30);
        assert_eq!(queued_at(1, Some(3_600)), 2);
    }

    #[test]
    fn every_state_has_an_answer_and_the_ended_ones_need_none() {
        for state in State::ALL {
            for cancel_requested in [false, true] {
                let wait = poll_after(state, cancel_requested, None);
                assert_eq!(wait.is_none(), state.is_terminal(), "{state:?}");
                assert!(wait.is_none_or(|wait| (2..=30).contains(&wait)));
            }
        }
        assert!(poll_after(State::Reserved, true, None) < poll_after(State::Reserved, false, None));
    }

    #[test]
    fn estimates_are_coarse_and_never_too_short() {
        let rounded = |millis| estimate_seconds(Duration::from_millis(millis));
        assert_eq!([0, 1, 5_000, 5_001, 59_000, 60_001].map(rounded), [5, 5, 5, 10, 60, 90]);
        assert_eq!([61_000, 600_000, 601_000, 3_601_000].map(rounded), [90, 600, 660, 3_660]);
        assert!((0..2_000_000).step_by(997).all(|millis| rounded(millis) * 1_000 >= millis));
    }
}
