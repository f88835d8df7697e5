//! What to ask a gateway next about an attempt. Pure: the caller asks, records the answer, and comes back.

use std::time::Duration;

use crate::limits::{CREATE_UNANSWERED_FOR, KEY_KEPT_FOR};
use crate::orders::State;

use super::AttemptState;

/// The order that an attempt wants to pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderView {
    /// Where it is.
    pub state: State,
    /// Its hold has ended.
    pub hold_over: bool,
    /// Its buyer wants to cancel it.
    pub cancel_requested: bool,
}

/// An attempt as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptView {
    /// Where it is.
    pub state: AttemptState,
    /// Since it was recorded.
    pub age: Duration,
    /// The gateway has refused a try.
    pub is_declined: bool,
    /// The buyer wants to pay another way.
    pub is_given_up: bool,
}

/// What to ask the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing now: somebody else is about to hear the answer.
    Wait,
    /// How it is.
    Fetch,
    /// To make it, with the same key and the same parameters as before.
    Create,
    /// Whether it exists, by our reference: the key is too old to be sent again, or nobody wants the payment any
    /// more. Definitely not found means abandoned.
    Find,
    /// To take the authorised money.
    Capture,
    /// To make sure that it is never paid.
    Void,
}

/// The next question. Asking does not change what is wanted: the answer is recorded, and then this is asked again.
#[must_use]
pub fn next_step(order: OrderView, attempt: AttemptView) -> Step {
    let is_wanted = matches!(order.state, State::Reserved | State::Paying)
        && !order.hold_over
        && !order.cancel_requested
        && !attempt.is_declined
        && !attempt.is_given_up;
    match attempt.state {
        AttemptState::Created if attempt.age < CREATE_UNANSWERED_FOR => Step::Wait,
        AttemptState::Created if is_wanted && attempt.age < KEY_KEPT_FOR => Step::Create,
        AttemptState::Created => Step::Find,
        AttemptState::Authorised if is_wanted => Step::Capture,
        AttemptState::Open | AttemptState::Processing if is_wanted => Step::Fetch,
        AttemptState::Open | AttemptState::Processing | AttemptState::Authorised => Step::Void,
        AttemptState::Declined | AttemptState::Cancelled | AttemptState::Abandoned | AttemptState::Captured => {
            Step::Fetch
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Duration = Duration::from_secs(3_600);

    fn order(state: State) -> OrderView {
        OrderView { state, hold_over: false, cancel_requested: false }
    }

    fn attempt(state: AttemptState, age: Duration) -> AttemptView {
        AttemptView { state, age, is_declined: false, is_given_up: false }
    }

    #[test]
    fn an_unanswered_attempt_is_left_to_its_request_then_sent_again_then_looked_for() {
        let ask = |age| next_step(order(State::Paying), attempt(AttemptState::Created, age));
        assert_eq!(ask(Duration::ZERO), Step::Wait);
        assert_eq!(ask(CREATE_UNANSWERED_FOR), Step::Create);
        assert_eq!(ask(KEY_KEPT_FOR), Step::Find, "a pruned key would make a second payment");
    }

    #[test]
    fn nothing_is_made_or_taken_for_an_order_that_is_gone() {
        let gone = [
            OrderView { hold_over: true, ..order(State::Paying) },
            OrderView { cancel_requested: true, ..order(State::Paying) },
            order(State::Expired),
            order(State::Cancelled),
            order(State::Paid),
            order(State::Refunded),
        ];
        for order in gone {
            for state in AttemptState::ALL {
                let step = next_step(order, attempt(*state, OLD));
                assert!(!matches!(step, Step::Create | Step::Capture), "{order:?} {state:?} {step:?}");
                assert_eq!(step == Step::Void || step == Step::Find, state.is_open(), "{order:?} {state:?} {step:?}");
            }
        }
    }

    #[test]
    fn a_refused_or_given_up_attempt_is_closed_before_another() {
        for state in [AttemptState::Open, AttemptState::Processing, AttemptState::Authorised] {
            let declined = AttemptView { is_declined: true, ..attempt(state, OLD) };
            let given_up = AttemptView { is_given_up: true, ..attempt(state, OLD) };
            assert_eq!(next_step(order(State::Paying), declined), Step::Void);
            assert_eq!(next_step(order(State::Paying), given_up), Step::Void);
        }
        assert_eq!(next_step(order(State::Paying), attempt(AttemptState::Authorised, OLD)), Step::Capture);
    }
}
