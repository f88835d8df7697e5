//! What goes wrong, and when: by an exact script, or by chance with a seed.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::account::Dialect;
use super::refunds::{Course, RefundState};

/// Kinds of calls, the same in every wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// A payment is made.
    Create,
    /// One payment is looked at.
    Fetch,
    /// Payments are listed or searched.
    Find,
    /// Authorised money is taken.
    Capture,
    /// A payment is cancelled or made to expire.
    Void,
    /// Money goes back.
    Refund,
    /// Refunds or disputes are looked at.
    FetchRefunds,
}

/// What happens to a call, an event or a refund. Times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Call: executed and answered only after this time, even if nobody listens any more.
    Delay(u64),
    /// Call: not executed; the connection is closed after this time, without an answer.
    NoEffectNoAnswer(u64),
    /// Call: executed; the connection is closed after this time, without an answer.
    EffectThenNoAnswer(u64),
    /// Call: not executed, as if another one with the same key were under way.
    Conflict409,
    /// Call: not executed, answered with 500. Stripe keeps that answer with the key.
    Error500,
    /// Call: executed, answered with 500. Stripe keeps that answer with the key.
    Error500AfterEffect,
    /// Call: not executed, too many requests.
    RateLimited429,
    /// Call: every key's result is forgotten first, as after a day.
    ForgetKeys,
    /// Call: a payment is paid the moment it is made, and the events arrive before the answer.
    PaidEarly,
    /// Call: a search does not know yet what has changed lately: it finds nothing.
    SearchBehind,
    /// Event: sent so many times more.
    Duplicate(u32),
    /// Event: sent only when another one has arrived, or after a second.
    Reordered,
    /// Event: sent after this time.
    Late(u64),
    /// Event: never sent.
    Never,
    /// Event: delivered before the call that caused it is answered.
    Early,
    /// Event: signed with another secret, on every try.
    BadlySigned,
    /// Event: signed ten minutes ago, on every try.
    OldTimestamp,
    /// Refund: pending, and succeeds after this time.
    PendingThenSucceeded(u64),
    /// Refund: pending, and fails after this time.
    PendingThenFailed(u64),
    /// Refund: succeeds, and fails after this time.
    FailsLater(u64),
}

/// What a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Concern {
    Call(Call),
    Event,
    Refund,
}

impl Fault {
    const fn is_about(self, concern: Concern) -> bool {
        match self {
            Self::Delay(_)
            | Self::NoEffectNoAnswer(_)
            | Self::EffectThenNoAnswer(_)
            | Self::Conflict409
            | Self::Error500
            | Self::Error500AfterEffect
            | Self::RateLimited429
            | Self::ForgetKeys => matches!(concern, Concern::Call(_)),
            Self::PaidEarly => matches!(concern, Concern::Call(Call::Create)),
            Self::SearchBehind => matches!(concern, Concern::Call(Call::Find)),
            Self::Duplicate(_)
            | Self::Reordered
            | Self::Late(_)
            | Self::Never
            | Self::Early
            | Self::BadlySigned
            | Self::OldTimestamp => matches!(concern, Concern::Event),
            Self::PendingThenSucceeded(_) | Self::PendingThenFailed(_) | Self::FailsLater(_) => {
                matches!(concern, Concern::Refund)
            }
        }
    }

    /// What becomes of a refund with this fault.
    pub(super) const fn course(self) -> Course {
        match self {
            Self::PendingThenSucceeded(ms) => {
                Course { first: RefundState::Pending, then: Some((ms, RefundState::Succeeded)) }
            }
            Self::PendingThenFailed(ms) => {
                Course { first: RefundState::Pending, then: Some((ms, RefundState::Failed)) }
            }
            Self::FailsLater(ms) => Course { first: RefundState::Succeeded, then: Some((ms, RefundState::Failed)) },
            _ => Course::STRAIGHT,
        }
    }
}

/// Which calls, events or refunds; what is not given matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Matcher {
    /// Calls of this kind.
    pub call: Option<Call>,
    /// Events of this type, such as `charge.refunded`.
    pub event: Option<String>,
    /// Of this wire format.
    pub gateway: Option<Dialect>,
    /// About this payment: an attempt's id, or one of the gateway's; in Stripe's format also the id of the order that a
    /// payment is made for.
    pub reference: Option<String>,
}

impl Matcher {
    /// Everything that the fault can happen to.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Calls of this kind.
    #[must_use]
    pub fn call(call: Call) -> Self {
        Self { call: Some(call), ..Self::default() }
    }

    /// Events of this type.
    #[must_use]
    pub fn event(kind: &str) -> Self {
        Self { event: Some(kind.into()), ..Self::default() }
    }

    /// Of those, only what is about this payment.
    #[must_use]
    pub fn about(self, reference: impl ToString) -> Self {
        Self { reference: Some(reference.to_string()), ..self }
    }

    /// Of those, only in this wire format.
    #[must_use]
    pub fn of(self, gateway: Dialect) -> Self {
        Self { gateway: Some(gateway), ..self }
    }

    /// Whether the fault can happen to anything that is meant.
    pub(super) fn allows(&self, fault: Fault) -> bool {
        self.call.is_none_or(|call| fault.is_about(Concern::Call(call)))
            && (self.event.is_none() || fault.is_about(Concern::Event))
    }

    fn fits(&self, happening: &Happening<'_>) -> bool {
        self.call.is_none_or(|call| happening.concern == Concern::Call(call))
            && self.event.as_deref().is_none_or(|kind| happening.event == Some(kind))
            && self.gateway.is_none_or(|gateway| happening.gateway == gateway)
            && self.reference.as_ref().is_none_or(|reference| happening.references.contains(reference))
    }
}

/// How often chance strikes, each 0.0 to 1.0, and how hard.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Part of the calls.
    pub calls: f64,
    /// Part of the events.
    pub events: f64,
    /// Part of the refunds.
    pub refunds: f64,
    /// Longest delay, in milliseconds.
    pub delay_ms_max: u64,
    /// How long a connection without an answer stays open, in milliseconds.
    pub hold_ms: u64,
}

impl Default for Rates {
    fn default() -> Self {
        Self { calls: 0.0, events: 0.0, refunds: 0.0, delay_ms_max: 500, hold_ms: 0 }
    }
}

impl Rates {
    /// Whether they are parts.
    pub(super) fn are_valid(&self) -> bool {
        [self.calls, self.events, self.refunds].iter().all(|rate| (0.0..=1.0).contains(rate))
    }
}

/// Something that a fault may happen to.
pub(super) struct Happening<'a> {
    pub(super) concern: Concern,
    pub(super) event: Option<&'a str>,
    pub(super) gateway: Dialect,
    pub(super) references: &'a [String],
}

struct Rule {
    matcher: Matcher,
    fault: Fault,
    left: u32,
}

/// The exact script, and behind it chance.
#[derive(Default)]
pub(super) struct Script {
    rules: Vec<Rule>,
    chance: Option<(u64, Rates)>,
    happened: HashMap<(Concern, Dialect), u64>,
}

impl Script {
    pub(super) fn add(&mut self, matcher: Matcher, fault: Fault, times: u32) {
        self.rules.push(Rule { matcher, fault, left: times });
    }

    pub(super) fn random(&mut self, seed: u64, rates: Rates) {
        (self.chance, self.happened) = (Some((seed, rates)), HashMap::new());
    }

    pub(super) fn heal(&mut self) {
        *self = Self::default();
    }

    /// What goes wrong with this one. The n-th call, event or refund of a kind has the same luck in every run with a
    /// seed.
    pub(super) fn next(&mut self, happening: &Happening<'_>) -> Option<Fault> {
        self.rules.retain(|rule| rule.left > 0);
        let fits = |rule: &&mut Rule| rule.fault.is_about(happening.concern) && rule.matcher.fits(happening);
        if let Some(rule) = self.rules.iter_mut().find(fits) {
            rule.left = if rule.left == u32::MAX { u32::MAX } else { rule.left - 1 };
            return Some(rule.fault);
        }
        let (seed, rates) = self.chance?;
        let count = self.happened.entry((happening.concern, happening.gateway)).or_default();
        *count += 1;
        chance(seed, rates, happening.concern, happening.gateway, *count)
    }
}

fn chance(seed: u64, rates: Rates, concern: Concern, gateway: Dialect, count: u64) -> Option<Fault> {
    let (kind, rate): (u64, f64) = match concern {
        Concern::Call(Call::Create) => (0, rates.calls),
        Concern::Call(Call::Fetch) => (1, rates.calls),
        Concern::Call(Call::Find) => (2, rates.calls),
        Concern::Call(Call::Capture) => (3, rates.calls),
        Concern::Call(Call::Void) => (4, rates.calls),
        Concern::Call(Call::Refund) => (5, rates.calls),
        Concern::Call(Call::FetchRefunds) => (6, rates.calls),
        Concern::Event => (7, rates.events),
        Concern::Refund => (8, rates.refunds),
    };
    let gateway = u64::from(gateway == Dialect::MercadoPago);
    let mut rng = StdRng::from_seed(key(seed, [count, kind, gateway]));
    let strikes = rng.random_bool(rate);
    strikes.then(|| pick(&mut rng, rates, concern))
}

/// The generator's seed for one draw, so that no two draws share a stream.
fn key(seed: u64, draw: [u64; 3]) -> [u8; 32] {
    let mut key = [0; 32];
    for (bytes, word) in key.chunks_exact_mut(8).zip([seed, draw[0], draw[1], draw[2]]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    key
}

fn pick(rng: &mut StdRng, rates: Rates, concern: Concern) -> Fault {
    let delay = rng.random_range(0..=rates.delay_ms_max);
    match (concern, rng.random_range(0..7)) {
        (Concern::Call(_), 0) => Fault::Delay(delay),
        (Concern::Call(_), 1) => Fault::NoEffectNoAnswer(rates.hold_ms),
        (Concern::Call(_), 2) => Fault::EffectThenNoAnswer(rates.hold_ms),
        (Concern::Call(_), 3) => Fault::Conflict409,
        (Concern::Call(_), 4) => Fault::Error500,
        (Concern::Call(_), 5) => Fault::Error500AfterEffect,
        (Concern::Call(_), _) => Fault::RateLimited429,
        (Concern::Event, 0) => Fault::Duplicate(2),
        (Concern::Event, 1) => Fault::Reordered,
        (Concern::Event, 2) => Fault::Late(delay),
        (Concern::Event, 3) => Fault::Never,
        (Concern::Event, 4) => Fault::Early,
        (Concern::Event, 5) => Fault::BadlySigned,
        (Concern::Event, _) => Fault::OldTimestamp,
        (Concern::Refund, 0..3) => Fault::PendingThenSucceeded(delay),
        (Concern::Refund, 3..5) => Fault::PendingThenFailed(delay),
        (Concern::Refund, _) => Fault::FailsLater(delay),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(call: Call, references: &[String]) -> Happening<'_> {
        Happening { concern: Concern::Call(call), event: None, gateway: Dialect::Stripe, references }
    }

    #[test]
    fn a_fault_fits_its_kind() {
        assert!(Matcher::call(Call::Create).allows(Fault::Conflict409) && Matcher::any().allows(Fault::Never));
        assert!(
            !Matcher::call(Call::Create).allows(Fault::Never) && !Matcher::call(Call::Fetch).allows(Fault::PaidEarly)
        );
        assert!(!Matcher::event("charge.refunded").allows(Fault::FailsLater(1)));
        assert!(!Rates { calls: 1.1, ..Rates::default() }.are_valid());
    }

    #[test]
    fn a_script_is_used_up_in_order_by_what_it_fits() {
        let (mut script, mine) = (Script::default(), vec!["mine".to_owned()]);
        script.add(Matcher::call(Call::Create).about("mine"), Fault::Conflict409, 1);
        script.add(Matcher::any().of(Dialect::Stripe), Fault::Delay(5), 1);
        script.add(Matcher::any(), Fault::Never, u32::MAX);
        assert_eq!(script.next(&call(Call::Create, &[])), Some(Fault::Delay(5)));
        assert_eq!(script.next(&call(Call::Fetch, &mine)), None);
        assert_eq!(script.next(&call(Call::Create, &mine)), Some(Fault::Conflict409));
        assert_eq!(script.next(&call(Call::Create, &mine)), None);
    }

    #[test]
    fn chance_repeats_with_its_seed_and_keeps_to_its_rate() {
        let run = |seed| {
            let mut script = Script::default();
            script.random(seed, Rates { calls: 0.3, ..Rates::default() });
            (0..1_000).map(|_| script.next(&call(Call::Create, &[]))).collect::<Vec<_>>()
        };
        let (first, again, other) = (run(7), run(7), run(8));
        assert_eq!(first, again);
        assert_ne!(first, other);
        let struck = first.iter().flatten().count();
        assert!((200..400).contains(&struck), "{struck} of 1000");
    }
}
