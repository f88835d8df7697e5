//! Finds what fell between two commits, and repairs it.
//!
//! Each step is bounded and idempotent, two runs at once do no harm, and a step that fails does not keep the others
//! from running. What cannot be repaired here is recorded as a finding, which raises an alarm.

mod exports;
mod login;
mod notices;
mod payments;
mod relay;
mod uploads;

use std::sync::Arc;
use std::time::Duration;

use domain::Result;
use edge::Deadline;
use edge::metrics::{self, Dimension, Metric, Unit};
use edge::queue::MessageQueue;
use serde::Serialize;
use store::{Database, audit, findings, health, orders, outbox, prune};

/// Products whose stock one run measures.
const PRODUCTS_MEASURED_MAX: i64 = 200;

/// What one run did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Orders that had been silent and got a new message.
    pub nudged: u64,
    /// Outbox rows that nobody needed any more.
    pub needless: u64,
    /// Orders that were owed a look at their gateway.
    pub looks: u64,
    /// Events of gateways that nobody had processed in time, sent again.
    pub events: u64,
    /// Login codes that should have been sent by now, owed again.
    pub login_codes: u64,
    /// Notices that were handed to their queue.
    pub notices: u64,
    /// Notices that were too old to be of use.
    pub notices_late: u64,
    /// Owed notices that a provider has refused.
    pub notices_failing: u64,
    /// Age of the oldest notice that is owed, in milliseconds.
    pub notices_age_ms: u64,
    /// Exports that are due, owed to their worker.
    pub exports: u64,
    /// Uploads whose time is over, owed a look.
    pub uploads: u64,
    /// Age of the oldest payment that no gateway has answered for, in milliseconds.
    pub unanswered_age_ms: u64,
    /// Age of the oldest event that nobody has processed, in milliseconds.
    pub inbox_age_ms: u64,
    /// Age of the oldest refund that is not over, in milliseconds.
    pub refund_age_ms: u64,
    /// Refunds that no gateway has accepted yet.
    pub refunds_created: u64,
    /// Refunds that a gateway has accepted and not finished.
    pub refunds_pending: u64,
    /// Refunds that failed and were not tried again.
    pub refunds_failed: u64,
    /// Messages sent.
    pub published: u64,
    /// Messages that the queue did not take; their rows stay.
    pub unpublished: u64,
    /// Queued orders refused because they waited too long or their sale ended.
    pub rejected: u64,
    /// Chunks audited.
    pub audited_chunks: u64,
    /// Orders whose money was audited.
    pub audited_orders: u64,
    /// Findings that nobody has resolved yet.
    pub findings: u64,
    /// Rows pruned.
    pub pruned: u64,
    /// Age of the oldest unpublished message, in milliseconds.
    pub outbox_age_ms: u64,
    /// Age of the oldest queued order, in milliseconds.
    pub queue_age_ms: u64,
    /// Steps that failed; their errors are in the log.
    pub failed_steps: Vec<&'static str>,
}

/// Runs every step once; the relay until the outbox is empty or the deadline comes.
pub async fn run(database: &Database, queue: &Arc<dyn MessageQueue>, deadline: Deadline) -> Report {
    let mut report = Report::default();
    let step = reject_overdue(database, &mut report).await;
    note(&mut report, "reject-overdue", step);
    let step = nudge(database, &mut report).await;
    note(&mut report, "nudge", step);
    let step = payments::owe(database, queue, &mut report).await;
    note(&mut report, "payments", step);
    let step = login::owe(database, queue, &mut report).await;
    note(&mut report, "login-codes", step);
    let step = exports::owe(database, queue, &mut report).await;
    note(&mut report, "exports", step);
    let step = uploads::owe(database, queue, &mut report).await;
    note(&mut report, "uploads", step);
    let step = relay::run(database, queue, deadline, &mut report).await;
    note(&mut report, "relay", step);
    let step = notices::owe(database, queue, deadline, &mut report).await;
    note(&mut report, "notices", step);
    let step = measure(database, &mut report).await;
    note(&mut report, "measure", step);
    let step = notices::measure(database, &mut report).await;
    note(&mut report, "measure-notices", step);
    let step = payments::measure(database, &mut report).await;
    note(&mut report, "measure-payments", step);
    let step = audit(database, &mut report).await;
    note(&mut report, "audit", step);
    let step = prune(database, &mut report).await;
    note(&mut report, "prune", step);
    report
}

fn note(report: &mut Report, name: &'static str, outcome: Result<()>) {
    if let Err(error) = outcome {
        tracing::error!(step = name, error.message = error.chain(), "a step failed");
        report.failed_steps.push(name);
    }
}

async fn reject_overdue(database: &Database, report: &mut Report) -> Result<()> {
    report.rejected = orders::reject_overdue(&*database.client().await?).await?;
    Ok(())
}

async fn nudge(database: &Database, report: &mut Report) -> Result<()> {
    report.nudged = outbox::owe_silent(&*database.client().await?).await?;
    Ok(())
}

async fn measure(database: &Database, report: &mut Report) -> Result<()> {
    let client = database.client().await?;
    report.outbox_age_ms = millis(health::measure_outbox(&client).await?);
    report.queue_age_ms = millis(health::measure_queues(&client).await?);
    for stock in health::list_stock(&client, PRODUCTS_MEASURED_MAX).await? {
        emit_stock(&stock);
    }
    Ok(())
}

async fn audit(database: &Database, report: &mut Report) -> Result<()> {
    let mut client = database.client().await?;
    let passed = audit::pass(&mut client).await;
    let money = audit::money_pass(&client).await;
    report.findings = u64::try_from(findings::count_open(&client).await?).unwrap_or(0);
    report.audited_orders = money?;
    report.audited_chunks = passed?.chunks;
    Ok(())
}

async fn prune(database: &Database, report: &mut Report) -> Result<()> {
    report.pruned = prune::prune(&*database.client().await?).await?;
    Ok(())
}

fn millis(age: Option<Duration>) -> u64 {
    age.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
}

/// Emits the run's metrics, zeros included: silence is an alarm too.
#[allow(clippy::cast_precision_loss, reason = "metrics are approximate above 2^52")]
pub fn emit(report: &Report) {
    let metric = |name, value, unit| Metric { name, value, unit };
    metrics::emit(
        &[
            metric("outbox_age_ms", report.outbox_age_ms as f64, Unit::Milliseconds),
            metric("queue_age_ms", report.queue_age_ms as f64, Unit::Milliseconds),
            metric("audit_findings", report.findings as f64, Unit::Count),
            metric("outbox_published", report.published as f64, Unit::Count),
            metric("payments_unanswered_age_ms", report.unanswered_age_ms as f64, Unit::Milliseconds),
            metric("inbox_age_ms", report.inbox_age_ms as f64, Unit::Milliseconds),
            metric("refund_age_ms", report.refund_age_ms as f64, Unit::Milliseconds),
            metric("refunds_created", report.refunds_created as f64, Unit::Count),
            metric("refunds_pending", report.refunds_pending as f64, Unit::Count),
            metric("refunds_failed", report.refunds_failed as f64, Unit::Count),
            metric("exports_owed", report.exports as f64, Unit::Count),
            metric("login_codes_owed", report.login_codes as f64, Unit::Count),
            metric("notices_owed", report.notices as f64, Unit::Count),
            metric("notices_failing", report.notices_failing as f64, Unit::Count),
            metric("notices_age_ms", report.notices_age_ms as f64, Unit::Milliseconds),
            metric("notices_lost", report.notices_late as f64, Unit::Count),
            metric("orders_nudged", report.nudged as f64, Unit::Count),
            metric("reconcile_steps_failed", report.failed_steps.len() as f64, Unit::Count),
        ],
        &[],
    );
}

#[allow(clippy::cast_precision_loss, reason = "a product has at most ten million numbers")]
fn emit_stock(stock: &health::Stock) {
    let metric = |name, value, unit| Metric { name, value, unit };
    metrics::emit(
        &[
            metric("numbers_available", stock.available as f64, Unit::Count),
            metric("numbers_held", stock.held as f64, Unit::Count),
            metric("oldest_hold_ms", millis(stock.oldest_hold) as f64, Unit::Milliseconds),
        ],
        &[(Dimension::Store, &stock.store), (Dimension::Campaign, &stock.campaign)],
    );
}
