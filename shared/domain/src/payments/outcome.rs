//! What the recorded money makes of an order. Decided from rows only, under the order's lock: whoever comes again
//! finds the same, or nothing left to decide.

use crate::orders::State;

use super::{AttemptState, RefundCause};

/// What a capture counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is what the order was paid with. There is at most one.
    Payment,
    /// It goes back in full.
    Return,
}

impl Use {
    /// The word used in the database.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::Return => "return",
        }
    }

    /// The use with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Payment, Self::Return].into_iter().find(|used| used.word() == word)
    }
}

/// An attempt as far as its money goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// Where the attempt is.
    pub state: AttemptState,
    /// It was for the order's total, in its currency, and all of that was taken.
    pub is_exact: bool,
    /// What it counts as; none while nobody has decided.
    pub used: Option<Use>,
}

/// An order as far as its money goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderMoney {
    /// Where it is.
    pub state: State,
    /// Its buyer wants to cancel it.
    pub cancel_requested: bool,
    /// Whether its numbers can still be had, should it be late: asked under the locks of its chunks.
    pub can_retake: bool,
}

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// No attempt is open: the order holds its numbers and waits for another.
    BackToReserved,
    /// This attempt pays for the order.
    Paid(usize),
    /// This attempt pays for the order, whose numbers are taken again first.
    Retaken(usize),
    /// This attempt's money goes back in full.
    Returned(usize, RefundCause),
    /// This attempt pays for the order, which its buyer had cancelled: all goes back, numbers and money.
    PaidAndRefunded(usize),
}

/// The next thing to write for an order; asked again until it is nothing.
#[must_use]
pub fn outcome(order: OrderMoney, attempts: &[Capture]) -> Outcome {
    let undecided = attempts.iter().position(|a| a.state == AttemptState::Captured && a.used.is_none());
    let Some(position) = undecided else {
        let is_waiting = attempts.iter().any(|attempt| attempt.state.is_open());
        return if order.state == State::Paying && !is_waiting { Outcome::BackToReserved } else { Outcome::Nothing };
    };
    if !attempts[position].is_exact {
        return Outcome::Returned(position, RefundCause::WrongAmount);
    }
    if attempts.iter().any(|attempt| attempt.used == Some(Use::Payment)) {
        return Outcome::Returned(position, RefundCause::Duplicate);
    }
    match order.state {
        State::Reserved | State::Paying if order.cancel_requested => Outcome::PaidAndRefunded(position),
        State::Reserved | State::Paying => Outcome::Paid(position),
        State::Expired if order.can_retake => Outcome::Retaken(position),
        State::Cancelled => Outcome::Returned(position, RefundCause::Cancelled),
        // Without a payment of its own an order cannot be paid or refunding, unless it cost nothing.
        _ => Outcome::Returned(position, RefundCause::Late),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPTURED: Capture = Capture { state: AttemptState::Captured, is_exact: true, used: None };
    const OPEN: Capture = Capture { state: AttemptState::Open, is_exact: false, used: None };
    const DECLINED: Capture = Capture { state: AttemptState::Declined, is_exact: false, used: None };

    fn order(state: State) -> OrderMoney {
        OrderMoney { state, cancel_requested: false, can_retake: false }
    }

    #[test]
    fn money_in_time_pays_and_late_money_follows_the_policy() {
        assert_eq!(outcome(order(State::Paying), &[CAPTURED]), Outcome::Paid(0));
        assert_eq!(outcome(order(State::Reserved), &[DECLINED, CAPTURED]), Outcome::Paid(1));
        let late = Outcome::Returned(0, RefundCause::Late);
        assert_eq!(outcome(order(State::Expired), &[CAPTURED]), late);
        let can = OrderMoney { can_retake: true, ..order(State::Expired) };
        assert_eq!(outcome(can, &[CAPTURED]), Outcome::Retaken(0));
        let cancelled = Outcome::Returned(0, RefundCause::Cancelled);
        assert_eq!(outcome(order(State::Cancelled), &[CAPTURED]), cancelled);
        let leaving = OrderMoney { cancel_requested: true, ..order(State::Paying) };
        assert_eq!(outcome(leaving, &[CAPTURED]), Outcome::PaidAndRefunded(0));
    }

    #[test]
    fn an_order_is_reserved_again_when_nothing_is_open() {
        assert_eq!(outcome(order(State::Paying), &[DECLINED]), Outcome::BackToReserved);
        assert_eq!(outcome(order(State::Paying), &[DECLINED, OPEN]), Outcome::Nothing);
        assert_eq!(outcome(order(State::Reserved), &[DECLINED]), Outcome::Nothing);
    }

    /// Writes outcomes down as the store does, until there is none; how many it took.
    fn settle(order: &mut OrderMoney, attempts: &mut [Capture]) -> usize {
        for turn in 0.. {
            match outcome(*order, attempts) {
                Outcome::Nothing => return turn,
                Outcome::BackToReserved => order.state = State::Reserved,
                Outcome::Paid(position) | Outcome::Retaken(position) => {
                    attempts[position].used = Some(Use::Payment);
                    order.state = State::Paid;
                }
                Outcome::PaidAndRefunded(position) => {
                    attempts[position].used = Some(Use::Payment);
                    order.state = State::Refunding;
                }
                Outcome::Returned(position, cause) => {
                    attempts[position].used = Some(Use::Return);
                    if cause != RefundCause::WrongAmount && matches!(order.state, State::Expired | State::Cancelled) {
                        order.state = State::Refunding;
                    }
                }
            }
        }
        unreachable!()
    }

    fn captures() -> impl Strategy<Value = Vec<Capture>> {
        let one = (prop::sample::select(AttemptState::ALL), any::<bool>()).prop_map(|(state, is_exact)| Capture {
            state,
            is_exact: is_exact && state == AttemptState::Captured,
            used: None,
        });
        prop::collection::vec(one, 0..6)
    }

    proptest! {
        #[test]
        fn every_capture_is_decided_once_and_at_most_one_pays(
            state in prop::sample::select(&State::ALL[..]),
            cancel_requested: bool,
            can_retake: bool,
            mut attempts in captures(),
        ) {
            let mut order = OrderMoney { state, cancel_requested, can_retake };
            let turns = settle(&mut order, &mut attempts);
            prop_assert!(turns <= attempts.len() + 1);
            let decided = |used| attempts.iter().filter(|a| a.used == Some(used)).count();
            let captured = attempts.iter().filter(|a| a.state == AttemptState::Captured).count();
            prop_assert_eq!(decided(Use::Payment) + decided(Use::Return), captured);
            prop_assert!(decided(Use::Payment) <= 1);
            let exact = attempts.iter().any(|a| a.is_exact);
            let holds = matches!(state, State::Reserved | State::Paying) || (state == State::Expired && can_retake);
            prop_assert_eq!(decided(Use::Payment) == 1, exact && holds);
            prop_assert_eq!(settle(&mut order, &mut attempts), 0, "asked again, nothing is left");
        }
    }
}
