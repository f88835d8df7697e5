//! The end of a world: everything comes to rest, and then it is right.

use std::time::Duration;

use domain::messages::Queue;
use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use super::World;
use crate::gateway::ViolationKind;
use crate::simulator::function::Function;
use crate::{auditor, look};

/// Accepted requests that are repeated at the end.
const REPLAYS_MAX: usize = 50;
/// A queued order is nudged at ages of 2, 4 and 8 minutes: this far apart, and so often.
const NUDGES: [Duration; 3] = [Duration::from_secs(130), Duration::from_secs(130), Duration::from_secs(250)];

/// How long nothing may be left to do, twice, until it counts as rest.
const REST: Duration = Duration::from_millis(100);

/// Money that is under way here, or wants to be looked at now. A payment that its buyer may still make is not.
const MONEY: &str = "select (select count(*) from payment_attempts a join orders o on o.id = a.order_id
        where a.look_at <= now() or a.state in ('created', 'processing', 'authorised')
            or (a.state = 'open' and (o.state <> 'paying' or o.expires_at <= now()
                or o.cancel_requested_at is not null or a.given_up_at is not null or a.decline_code is not null)))
    + (select count(*) from refunds where state in ('created', 'pending'))
    + (select count(*) from inbox where processed_at is null)";
/// What is to be looked at later is looked at now.
const HASTEN: [&str; 5] = [
    "update payment_attempts set look_at = now() where id in (select id from payment_attempts
        where look_at > now() and state in ('created', 'open', 'processing', 'authorised') for no key update skip locked)",
    // Old enough for others than its request to ask about it.
    "update payment_attempts set created_at = created_at - interval '1 minute' where id in (
        select id from payment_attempts where state = 'created' for no key update skip locked)",
    // Old enough for another key.
    "update refunds set created_at = created_at - interval '5 minutes' where id in (
        select id from refunds where state = 'created' for no key update skip locked)",
    "update refunds set look_at = now() where id in (
        select id from refunds where look_at > now() for no key update skip locked)",
    "update inbox set look_at = now() where event_id in (
        select event_id from inbox where processed_at is null and look_at > now() for no key update skip locked)",
];

impl World {
    /// Calms down, looks at every payment, told or not, and stops mappings and schedules.
    pub async fn drain(&self, bound: Duration) {
        self.calm(bound).await;
        let all = "update payment_attempts set look_at = now() where look_at is not null and gateway <> 'manual'";
        if self.database.owner().execute(all, &[]).await.expect(all) > 0 {
            self.come_to_rest(bound).await;
        }
        self.note("everything has come to rest");
        self.halt();
    }

    /// Ends all faults, and lets mappings and schedules run until nothing is left to do. Whatever waits in the outbox
    /// is due at once, the queues' time jumps while nobody works, and orders that nobody has a message about grow older
    /// until they are nudged. Of payments only those that are under way are looked at.
    pub async fn calm(&self, bound: Duration) {
        self.note("all faults end");
        self.proxy.heal();
        self.sqs.heal();
        self.bank.heal();
        self.functions.values().for_each(Function::disarm);
        self.run();
        self.come_to_rest(bound).await;
        assert!(self.bank.settle().await, "the payment gateway does not come to rest");
    }

    async fn come_to_rest(&self, bound: Duration) {
        let (began, mut nudges) = (Instant::now(), NUDGES.iter());
        let mut quiet = 0;
        loop {
            let left = self.left().await;
            if left.is_nothing() {
                quiet += 1;
                if quiet >= 2 {
                    return;
                }
            } else {
                quiet = 0;
                assert!(began.elapsed() < bound, "after {bound:?} there is still something to do: {left:?}");
                self.hasten(&left, &mut nudges).await;
            }
            tokio::time::sleep(REST).await;
        }
    }

    async fn hasten(&self, left: &Left, nudges: &mut std::slice::Iter<'_, Duration>) {
        self.hurry("update outbox set next_attempt_at = now() where next_attempt_at > now()").await;
        if left.busy == 0 {
            self.sqs.skip();
        }
        if !left.only_silent() {
            return;
        }
        if left.money > 0 {
            for sql in HASTEN {
                self.hurry(sql).await;
            }
        } else if let Some(time) = nudges.next() {
            self.pass(*time).await;
        }
        // What is due now is owed now, not at the next turn of the clock.
        self.schedule("reconcile-orders").run_once().await;
    }

    /// Makes rows due. Their owners may hold some in another order: then the next turn tries again.
    async fn hurry(&self, sql: &str) {
        if let Err(error) = self.database.owner().execute(sql, &[]).await {
            assert_eq!(error.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED), "{sql}: {error}");
        }
    }

    /// Drains; then the auditor finds nothing, the payment gateway's ledger says the same about the money, clients saw
    /// nothing that is not so, nothing was logged that must not be, and no healthy message died.
    pub async fn finish(self, bound: Duration) {
        self.drain(bound).await;
        for queue in Queue::ALL {
            let dead = self.sqs.dead(queue);
            assert!(dead.is_empty(), "{} messages of {} died, the first is {}", dead.len(), queue.name(), dead[0]);
        }
        self.finish_with_dead().await;
    }

    /// As [`Self::finish`] for a world that has been drained, and whose dead messages were looked at.
    pub async fn finish_with_dead(mut self) {
        self.halt();
        let mut wrong = self.ledger.findings(&self.database).await;
        wrong.extend(self.replay().await);
        assert!(wrong.is_empty(), "clients saw what is not so: {wrong:#?}");
        self.functions.values().for_each(Function::reap);
        let leaks: Vec<String> = self.functions.values().flat_map(|function| function.log().leaks()).collect();
        assert!(
            leaks.is_empty(),
            "{} lines were logged that must not be: {:#?}",
            leaks.len(),
            &leaks[..leaks.len().min(5)]
        );
        let mut bank = self.bank.ledger();
        // When the gateway keeps an error under a capture's key it is asked again without one, and refuses. That money was
        // taken once is counted all the same.
        bank.violations.retain(|violation| violation.kind != ViolationKind::CapturedTwice);
        auditor::assert_balanced(&self.database, &bank).await;
        self.database.finish_in_place().await;
    }

    /// Repeats some of the accepted requests: what is not answered as the first time.
    async fn replay(&self) -> Vec<String> {
        let accepted = self.ledger.acceptances();
        let mut wrong = Vec::new();
        for acceptance in accepted.iter().step_by(accepted.len() / REPLAYS_MAX + 1) {
            let answer = acceptance.repeat(&self.gateway).await;
            if answer.status != 202 || answer.accepted() != acceptance.order_id || !answer.is_replay() {
                wrong.push(format!("{acceptance:?} is now answered {} {}", answer.status, answer.text()));
            }
        }
        wrong
    }

    async fn left(&self) -> Left {
        let count = |sql| look::count(&self.database, sql);
        Left {
            messages: Queue::ALL.into_iter().map(|queue| self.sqs.len(queue)).sum(),
            outbox: count("select count(*) from outbox").await,
            queued: count("select count(*) from orders where state = 'queued'").await,
            cancelling: count(
                "select count(*) from orders where state = 'reserved' and cancel_requested_at is not null",
            )
            .await,
            money: count(MONEY).await,
            busy: self.functions.values().map(Function::busy).sum(),
        }
    }
}

/// What still has to be done.
#[derive(Debug)]
struct Left {
    messages: usize,
    outbox: i64,
    queued: i64,
    cancelling: i64,
    money: i64,
    busy: usize,
}

impl Left {
    const fn is_nothing(&self) -> bool {
        self.messages == 0 && self.outbox == 0 && self.queued == 0 && self.cancelling == 0 && self.money == 0
    }

    /// Nobody has a message about what is queued or under way.
    const fn only_silent(&self) -> bool {
        self.messages == 0 && self.outbox == 0 && self.busy == 0
    }
}
