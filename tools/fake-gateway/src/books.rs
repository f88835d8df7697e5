//! Everything that the gateway remembers, and every change of it. One lock guards it; nothing here waits.

use std::collections::{BTreeMap, HashMap};

use time::{Duration, OffsetDateTime};

use super::account::{Account, Dialect};
use super::faults::{Concern, Happening, Script};
use super::keys::Keys;
use super::ledger::{Violation, ViolationKind};
use super::payments::{CAPTURE_WINDOW, Kind, Payment, PaymentState, Refusal};
use super::refunds::{Course, Dispute, DisputeState, Refund, RefundState, Wanted};
use super::webhooks::Event;
use super::{mercado_pago, stripe};

/// What has just happened to a payment. Refunds and disputes by their position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Created,
    Authorised,
    Paid,
    Captured,
    Declined,
    Cancelled,
    Expired,
    Refunded(usize),
    RefundUpdated(usize),
    RefundFailed(usize),
    DisputeOpened(usize),
    DisputeClosed(usize),
}

/// What is to happen by itself.
#[derive(Debug, Clone, Copy)]
enum Due {
    Deadline(usize),
    Refund(usize, usize, RefundState),
}

pub(super) struct Books {
    pub(super) accounts: Vec<Account>,
    pub(super) payments: Vec<Payment>,
    pub(super) keys: Keys,
    pub(super) script: Script,
    pub(super) violations: Vec<Violation>,
    /// The gateway's own address, for the pages that it sends buyers to.
    pub(super) base: String,
    by_number: HashMap<u64, usize>,
    by_attempt: HashMap<String, Vec<usize>>,
    events: Vec<Event>,
    dues: BTreeMap<(OffsetDateTime, u64), Due>,
    last_number: u64,
    pub(super) ahead: Duration,
}

impl Books {
    pub(super) fn new(base: String) -> Self {
        // Ids of different runs differ, as long as one makes fewer than a thousand in a millisecond.
        let millis = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
        Self {
            accounts: Vec::new(),
            payments: Vec::new(),
            keys: Keys::default(),
            script: Script::default(),
            violations: Vec::new(),
            base,
            by_number: HashMap::new(),
            by_attempt: HashMap::new(),
            events: Vec::new(),
            dues: BTreeMap::new(),
            last_number: u64::try_from(millis).expect("the clock is past 1970") * 1_000,
            ahead: Duration::ZERO,
        }
    }

    /// The gateway's clock.
    pub(super) fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc() + self.ahead
    }

    /// Moves the gateway's clock.
    pub(super) fn advance(&mut self, time: Duration) {
        self.ahead += time;
        self.tick();
    }

    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The account that carries this key.
    pub(super) fn account(&self, dialect: Dialect, key: &str) -> Option<usize> {
        self.accounts.iter().position(|account| account.dialect == dialect && account.key == key)
    }

    pub(super) fn dialect(&self, payment: usize) -> Dialect {
        self.accounts[self.payments[payment].account].dialect
    }

    /// The account's payment with this id of the gateway's.
    pub(super) fn find(&self, account: usize, id: &str) -> Option<usize> {
        let index = self.by_id(id)?;
        (self.payments[index].account == account).then_some(index)
    }

    /// The latest payment with this name, of any account: an attempt's id or one of the gateway's.
    pub(super) fn find_any(&self, name: &str) -> Option<usize> {
        let of_attempt = self.by_attempt.get(name).and_then(|indexes| indexes.last().copied());
        of_attempt.or_else(|| self.by_id(name))
    }

    fn by_id(&self, id: &str) -> Option<usize> {
        let number = id.rsplit('_').next()?.parse().ok()?;
        let index = *self.by_number.get(&number)?;
        self.payments[index].is_called(id).then_some(index)
    }

    /// Takes a new payment in.
    pub(super) fn add(&mut self, payment: Payment) -> usize {
        let index = self.payments.len();
        if let Some(at) = payment.expires_at {
            self.schedule(at, Due::Deadline(index));
        }
        self.by_number.insert(payment.number, index);
        if let Some(attempt_id) = payment.attempt_id() {
            self.by_attempt.entry(attempt_id.clone()).or_default().push(index);
        }
        self.payments.push(payment);
        self.note(index, Change::Created);
        self.look_for_twins(index);
        index
    }

    /// The buyer pays.
    pub(super) fn pay(&mut self, index: usize, late: bool) -> Result<(), Refusal> {
        let now = self.now();
        self.payments[index].pay(late, now)?;
        if self.payments[index].state == PaymentState::Authorised {
            self.schedule(now + CAPTURE_WINDOW, Due::Deadline(index));
            self.note(index, Change::Authorised);
        } else {
            self.note(index, Change::Paid);
        }
        self.look_for_twins(index);
        Ok(())
    }

    /// A try to pay is refused.
    pub(super) fn decline(&mut self, index: usize, code: &str) -> Result<(), Refusal> {
        let now = self.now();
        self.payments[index].decline(code, now)?;
        self.note(index, Change::Declined);
        Ok(())
    }

    /// The merchant takes authorised money.
    pub(super) fn capture(&mut self, index: usize, amount_minor: Option<i64>) -> Result<(), Refusal> {
        let (now, payment) = (self.now(), &mut self.payments[index]);
        let (is_second, id) = (payment.is_manual && payment.captures > 0, payment.id());
        let captured = payment.capture(amount_minor, now);
        if is_second {
            self.violate(ViolationKind::CapturedTwice, format!("{id} was to be captured again"));
        }
        captured?;
        self.note(index, Change::Captured);
        Ok(())
    }

    /// The merchant cancels it.
    pub(super) fn cancel(&mut self, index: usize) -> Result<(), Refusal> {
        let now = self.now();
        self.payments[index].end(PaymentState::Cancelled, now)?;
        self.note(index, Change::Cancelled);
        Ok(())
    }

    /// The merchant makes a Checkout Session expire.
    pub(super) fn expire(&mut self, index: usize) -> Result<(), Refusal> {
        let (now, payment) = (self.now(), &mut self.payments[index]);
        if payment.state != PaymentState::Open {
            return Err(Refusal::State);
        }
        payment.end(PaymentState::Expired, now)?;
        self.note(index, Change::Expired);
        Ok(())
    }

    /// Money goes back; the refund's position.
    pub(super) fn refund(&mut self, index: usize, wanted: Wanted) -> Result<usize, Refusal> {
        let now = self.now();
        let refundable = self.payments[index].refundable(wanted.amount_minor);
        if matches!(refundable, Err(Refusal::TooMuch | Refusal::AlreadyRefunded)) {
            let detail = format!("{:?} of {} were to go back", wanted.amount_minor, self.payments[index].id());
            self.violate(ViolationKind::RefundOverCaptured, detail);
        }
        let (amount_minor, course, number) = (refundable?, self.course(index), self.number());
        let Wanted { key, metadata, reason, .. } = wanted;
        let refund = Refund { number, key, metadata, amount_minor, state: course.first, reason, created: now };
        let payment = &mut self.payments[index];
        payment.updated = now;
        payment.refunds.push(refund);
        let position = payment.refunds.len() - 1;
        if let Some((ms, state)) = course.then {
            let wait = Duration::milliseconds(i64::try_from(ms).expect("a time that ends"));
            self.schedule(now + wait, Due::Refund(index, position, state));
        }
        self.note(index, Change::Refunded(position));
        Ok(position)
    }

    fn course(&mut self, index: usize) -> Course {
        let (gateway, references) = (self.dialect(index), self.references(index));
        let happening = Happening { concern: Concern::Refund, event: None, gateway, references: &references };
        self.script.next(&happening).map_or(Course::STRAIGHT, |fault| fault.course())
    }

    /// The buyer's bank takes money back until a decision. With Pix it is always about all that is left.
    pub(super) fn dispute(&mut self, index: usize, amount_minor: Option<i64>) -> Result<(), Refusal> {
        let (now, number, payment) = (self.now(), self.number(), &self.payments[index]);
        let amount_minor = payment.refundable(amount_minor.filter(|_| payment.kind != Kind::Pix))?;
        let payment = &mut self.payments[index];
        payment.updated = now;
        payment.disputes.push(Dispute { number, amount_minor, state: DisputeState::Open, created: now });
        let position = payment.disputes.len() - 1;
        self.note(index, Change::DisputeOpened(position));
        Ok(())
    }

    /// The open dispute is decided.
    pub(super) fn close_dispute(&mut self, index: usize, is_won: bool) -> Result<(), Refusal> {
        let (now, payment) = (self.now(), &mut self.payments[index]);
        let position = payment.disputes.iter().position(|dispute| dispute.state == DisputeState::Open);
        let position = position.ok_or(Refusal::State)?;
        payment.disputes[position].state = if is_won { DisputeState::Won } else { DisputeState::Lost };
        payment.updated = now;
        self.note(index, Change::DisputeClosed(position));
        Ok(())
    }

    /// Does what is due by the gateway's clock.
    pub(super) fn tick(&mut self) {
        let now = self.now();
        while let Some(entry) = self.dues.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                Due::Deadline(index) => self.meet_deadline(index),
                Due::Refund(index, refund, state) => self.move_refund(index, refund, state),
            }
        }
    }

    /// Whether a refund has yet to change.
    pub(super) fn is_moving(&self) -> bool {
        self.dues.values().any(|due| matches!(due, Due::Refund(..)))
    }

    fn meet_deadline(&mut self, index: usize) {
        let (now, payment) = (self.now(), &mut self.payments[index]);
        let (ends, change) = match payment.state {
            PaymentState::Open => (payment.end(PaymentState::Expired, now), Change::Expired),
            PaymentState::Authorised if now - payment.updated >= CAPTURE_WINDOW => {
                payment.cancellation_reason = Some("automatic".into());
                (payment.end(PaymentState::Cancelled, now), Change::Cancelled)
            }
            _ => return,
        };
        if ends.is_ok() {
            self.note(index, change);
        }
    }

    fn move_refund(&mut self, index: usize, position: usize, state: RefundState) {
        let now = self.now();
        self.payments[index].refunds[position].state = state;
        self.payments[index].updated = now;
        self.note(index, Change::RefundUpdated(position));
        if state == RefundState::Failed {
            self.note(index, Change::RefundFailed(position));
        }
    }

    fn schedule(&mut self, at: OffsetDateTime, due: Due) {
        let number = self.number();
        self.dues.insert((at, number), due);
    }

    /// Records something that a sound merchant never does.
    pub(super) fn violate(&mut self, kind: ViolationKind, detail: String) {
        self.violations.push(Violation { kind, detail });
    }

    fn look_for_twins(&mut self, index: usize) {
        let Some(attempt_id) = self.payments[index].attempt_id().cloned() else { return };
        let all = self.by_attempt[&attempt_id].iter().map(|index| &self.payments[*index]);
        let ids: Vec<String> = all.filter(|one| one.state.is_live()).map(Payment::id).collect();
        if ids.len() > 1 {
            self.violate(ViolationKind::TwoLivePayments, format!("attempt {attempt_id} has {}", ids.join(", ")));
        }
    }

    /// The names by which faults and people mean a payment.
    pub(super) fn references(&self, index: usize) -> Vec<String> {
        let payment = &self.payments[index];
        let names = [Some(payment.id()), payment.intent_id(), payment.attempt_id().cloned()];
        names.into_iter().flatten().collect()
    }

    fn note(&mut self, index: usize, change: Change) {
        let number = self.number();
        let (now, payment) = (self.now(), &self.payments[index]);
        let (account, data_id) = (payment.account, payment.id());
        let bodies = match payment.kind {
            Kind::Pix => vec![mercado_pago::event(payment, change, number, now)],
            Kind::Intent | Kind::Session => stripe::events(payment, change, number, now, &self.base),
        };
        for (kind, id, body) in bodies {
            let (references, gateway) = (self.references(index), self.accounts[account].dialect);
            let happening = Happening { concern: Concern::Event, event: Some(kind), gateway, references: &references };
            let fault = self.script.next(&happening);
            let (account, data_id) = (self.accounts[account].clone(), data_id.clone());
            self.events.push(Event { id, kind, account, data_id, number, body, fault });
        }
    }

    /// What has to be sent.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}
