//! An order with everything that is known about its money, under the order's lock.
//!
//! All changes are made in memory and written at the end, so that the lock order is kept: whatever moves numbers comes
//! before the rows of attempts, refunds and disputes.

mod write;

use std::collections::BTreeSet;

use domain::orders::{Fallback, State};
use domain::payments::{DisputeState, Gateway, RefundCause, RefundState, Use};
use domain::{Error, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

use super::attempts::{Attempt, COLUMNS, attempt_from};
use super::disputes::{Dispute, dispute_from};
use super::refunds::{self, Refund, refund_from};
use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::UUID;

/// A locked order and its money.
pub(super) struct Money {
    pub(super) order: LockedOrder,
    pub(super) attempts: Vec<Attempt>,
    pub(super) refunds: Vec<Refund>,
    pub(super) disputes: Vec<Dispute>,
    /// Transitions to be written: state after, cause.
    steps: Vec<(State, &'static str)>,
    changed_attempts: BTreeSet<Uuid>,
    changed_refunds: BTreeSet<Uuid>,
    new_refunds: BTreeSet<Uuid>,
    /// Payments that took an attempt's money a second time: nothing here can give it back.
    pub(super) strays: Vec<Stray>,
}

/// A second payment of one attempt.
pub(super) struct Stray {
    pub(super) attempt_id: Uuid,
    pub(super) payment_id: String,
    /// Minor units.
    pub(super) captured_minor: i64,
}

/// The order, as locked and as changed since.
pub(super) struct LockedOrder {
    pub(super) id: Uuid,
    pub(super) tenant_id: Uuid,
    pub(super) product_id: Uuid,
    pub(super) buyer_id: Uuid,
    pub(super) state: State,
    pub(super) fallback: Fallback,
    pub(super) numbers: Vec<i32>,
    pub(super) substitutes: Vec<i32>,
    pub(super) given_up: Vec<i32>,
    pub(super) unit_price_minor: i64,
    pub(super) total_minor: i64,
    pub(super) currency: String,
    pub(super) cancel_requested: bool,
    version: i32,
    state_before: State,
    numbers_changed: bool,
}

impl LockedOrder {
    /// Numbers that are its buyer's, or held for him.
    pub(super) fn owned(&self) -> Vec<i32> {
        self.numbers.iter().copied().filter(|number| !self.given_up.contains(number)).collect()
    }
}

impl Money {
    /// Locks a store's order and reads its money; none when there is no such order.
    pub(super) async fn lock(tx: &Transaction<'_>, tenant_id: Uuid, order_id: Uuid) -> Result<Option<Self>> {
        let sql = "select id, tenant_id, product_id, buyer_id, state, fallback, numbers,
                coalesce(substitutes, '{}') as substitutes, coalesce(given_up, '{}') as given_up, unit_price_minor,
                coalesce(total_minor, 0) as total_minor, currency, cancel_requested_at is not null as cancelled, version
            from orders where id = $1 and tenant_id = $2 for no key update";
        let params: [(&(dyn ToSql + Sync), _); 2] = [(&order_id, UUID), (&tenant_id, UUID)];
        let Some(row) = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)? else {
            return Ok(None);
        };
        let order = order_from(&row)?;
        let attempts =
            format!("select {COLUMNS} from payment_attempts where order_id = $1 and tenant_id = $2 order by number");
        let refunds =
            format!("select {} from refunds where order_id = $1 and tenant_id = $2 order by id", refunds::COLUMNS);
        let disputes = "select id, attempt_id, gateway_dispute_id, amount_minor, state, numbers,
                extract(epoch from now() - created_at)::float8 as age from disputes
            where order_id = $1 and tenant_id = $2 order by id";
        let (attempts, refunds, disputes) = futures::future::try_join3(
            tx.query_typed(&attempts, &params),
            tx.query_typed(&refunds, &params),
            tx.query_typed(disputes, &params),
        )
        .await
        .map_err(from_postgres)?;
        Ok(Some(Self {
            order,
            attempts: attempts.iter().map(attempt_from).collect::<Result<_>>()?,
            refunds: refunds.iter().map(refund_from).collect::<Result<_>>()?,
            disputes: disputes.iter().map(dispute_from).collect::<Result<_>>()?,
            steps: Vec::new(),
            changed_attempts: BTreeSet::new(),
            changed_refunds: BTreeSet::new(),
            new_refunds: BTreeSet::new(),
            strays: Vec::new(),
        }))
    }

    /// Moves the order on. The domain's table decides whether it may.
    pub(super) fn step(&mut self, to: State, cause: &'static str) -> Result<()> {
        if !self.order.state.may_become(to) {
            return Err(Error::fault(format!("{} must not become {}", self.order.state.word(), to.word())));
        }
        self.order.state = to;
        self.steps.push((to, cause));
        Ok(())
    }

    /// The attempt.
    pub(super) fn attempt(&self, id: Uuid) -> Result<&Attempt> {
        let found = self.attempts.iter().find(|attempt| attempt.id == id);
        found.ok_or_else(|| Error::fault("an attempt of another order"))
    }

    /// The attempt, about to be changed.
    pub(super) fn attempt_mut(&mut self, id: Uuid) -> Result<&mut Attempt> {
        self.changed_attempts.insert(id);
        let found = self.attempts.iter_mut().find(|attempt| attempt.id == id);
        found.ok_or_else(|| Error::fault("an attempt of another order"))
    }

    /// The refund, about to be changed.
    pub(super) fn refund_mut(&mut self, id: Uuid) -> Result<&mut Refund> {
        self.changed_refunds.insert(id);
        self.refunds.iter_mut().find(|refund| refund.id == id).ok_or_else(|| Error::fault("a refund of another order"))
    }

    /// Adds a refund to be written.
    pub(super) fn add_refund(&mut self, refund: Refund) {
        self.new_refunds.insert(refund.id);
        self.refunds.push(refund);
    }

    /// The order's numbers that stand for nothing that goes back: neither for a refund nor for a lost dispute.
    pub(super) fn staying(&self) -> Vec<i32> {
        let refunded =
            |number: &i32| self.refunds.iter().any(|r| r.state != RefundState::Failed && r.numbers.contains(number));
        let lost = |number: &i32| self.disputes.iter().any(|dispute| dispute.numbers.contains(number));
        self.order.owned().into_iter().filter(|number| !refunded(number) && !lost(number)).collect()
    }

    /// Marks numbers as given up, or replaces the order's numbers; written with the order.
    pub(super) fn give_up(&mut self, numbers: &[i32]) {
        self.order.given_up.extend(numbers);
        self.order.given_up.sort_unstable();
        self.order.numbers_changed = true;
    }

    /// Other numbers than before, some of them substitutes.
    pub(super) fn replace_numbers(&mut self, numbers: Vec<i32>, substitutes: Vec<i32>) {
        self.order.numbers = numbers;
        self.order.substitutes = substitutes;
        self.order.numbers_changed = true;
    }

    /// Money that is on its way back or was given back by refunds of an attempt; failed ones do not count.
    pub(super) fn going_back(&self, attempt_id: Uuid) -> i64 {
        let live = |refund: &&Refund| refund.attempt_id == attempt_id && refund.state != RefundState::Failed;
        self.refunds.iter().filter(live).map(|refund| refund.amount_minor).sum()
    }

    /// What staff have booked they also hand back: no gateway counts it, the refunds that have succeeded do.
    pub(super) fn count_handed_back(&mut self) {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.gateway == Gateway::Manual) {
            let back = |refund: &&Refund| refund.attempt_id == attempt.id && refund.state == RefundState::Succeeded;
            let back: i64 = self.refunds.iter().filter(back).map(|refund| refund.amount_minor).sum();
            if back != attempt.refunded_minor {
                attempt.refunded_minor = back;
                self.changed_attempts.insert(attempt.id);
            }
        }
    }

    /// What is left of an attempt's money: neither going back nor lost to a dispute.
    pub(super) fn rest(&self, attempt: &Attempt) -> i64 {
        let lost = |dispute: &&Dispute| dispute.attempt_id == attempt.id && dispute.state == DisputeState::Lost;
        let lost: i64 = self.disputes.iter().filter(lost).map(|dispute| dispute.amount_minor).sum();
        attempt.captured_minor - self.going_back(attempt.id) - lost
    }

    /// Failed refunds of money of which nothing is left: somebody else gave it back, nobody is owed any more.
    pub(super) fn forgive(&mut self) {
        let empty: Vec<Uuid> =
            self.attempts.iter().filter(|attempt| self.rest(attempt) <= 0).map(|attempt| attempt.id).collect();
        let failed = |refund: &&Refund| {
            refund.state == RefundState::Failed && !refund.is_retried && empty.contains(&refund.attempt_id)
        };
        let made_good: Vec<Uuid> = self.refunds.iter().filter(failed).map(|refund| refund.id).collect();
        for refund in self.refunds.iter_mut().filter(|refund| made_good.contains(&refund.id)) {
            refund.is_retried = true;
        }
        self.changed_refunds.extend(made_good);
    }

    /// Gives back what was taken beyond what is decided about: more of a payment that goes back in full, or more than
    /// the order costs. A refund that failed waits for staff and is not made again here.
    pub(super) fn return_excess(&mut self) {
        let mut excess = Vec::new();
        for (position, attempt) in self.attempts.iter().enumerate() {
            let of_attempt = self.refunds.iter().filter(|refund| refund.attempt_id == attempt.id);
            let waits = |refund: &&Refund| refund.state == RefundState::Failed && !refund.is_retried;
            let (amount, cause) = match attempt.used {
                None => continue,
                Some(Use::Return) => {
                    let ours = |refund: &&Refund| refund.cause != RefundCause::Elsewhere;
                    let cause = of_attempt.clone().find(ours).map(|refund| refund.cause);
                    let waiting: i64 = of_attempt.filter(waits).map(|refund| refund.amount_minor).sum();
                    (self.rest(attempt) - waiting, cause.unwrap_or(RefundCause::WrongAmount))
                }
                Some(Use::Payment) => {
                    let counts = |refund: &&Refund| {
                        refund.cause == RefundCause::WrongAmount
                            && (refund.state != RefundState::Failed || waits(refund))
                    };
                    let returned: i64 = of_attempt.filter(counts).map(|refund| refund.amount_minor).sum();
                    let beyond = attempt.captured_minor - self.order.total_minor - returned;
                    (beyond.min(self.rest(attempt)), RefundCause::WrongAmount)
                }
            };
            if amount > 0 {
                excess.push((position, amount, cause));
            }
        }
        for (position, amount, cause) in excess {
            let refund = Refund::new(&self.attempts[position], amount, Vec::new(), cause);
            self.add_refund(refund);
        }
    }

    /// A refund of what is left of an attempt's money.
    pub(super) fn return_rest(&mut self, position: usize, cause: RefundCause, numbers: Vec<i32>) {
        let attempt = &self.attempts[position];
        let rest = self.rest(attempt);
        if rest > 0 {
            let refund = Refund::new(attempt, rest, numbers, cause);
            self.add_refund(refund);
        }
    }

    /// What was asked for to go back is never over the money.
    pub(super) fn check(&self) -> Result<()> {
        if self.attempts.iter().any(|attempt| self.going_back(attempt.id) > attempt.captured_minor) {
            return Err(Error::fault("more would go back than was captured"));
        }
        Ok(())
    }
}

fn order_from(row: &Row) -> Result<LockedOrder> {
    let state = one_word(row, "state", State::from_word)?;
    Ok(LockedOrder {
        id: column(row, "id")?,
        tenant_id: column(row, "tenant_id")?,
        product_id: column(row, "product_id")?,
        buyer_id: column(row, "buyer_id")?,
        state,
        fallback: one_word(row, "fallback", Fallback::from_word)?,
        numbers: column(row, "numbers")?,
        substitutes: column(row, "substitutes")?,
        given_up: column(row, "given_up")?,
        unit_price_minor: column(row, "unit_price_minor")?,
        total_minor: column(row, "total_minor")?,
        currency: column(row, "currency")?,
        cancel_requested: column(row, "cancelled")?,
        version: column(row, "version")?,
        state_before: state,
        numbers_changed: false,
    })
}
