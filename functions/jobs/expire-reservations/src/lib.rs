//! Overdue holds go back to stock, without anybody's help.
//!
//! Loops over bounded passes until nothing is due or the deadline comes. Whether an order may still be paid is
//! judged by its hold, never by whether this has run.

use std::collections::HashSet;
use std::time::Duration;

use domain::Result;
use edge::Deadline;
use edge::metrics::{self, Metric, Unit};
use serde::Serialize;
use store::Database;
use store::numbers::{find_due_products, sweep, sweep_lag};

/// What one run did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Orders whose numbers went back.
    pub orders: u64,
    /// Numbers that went back.
    pub numbers: u64,
    /// Orders that failed and are tried again later.
    pub failed: u64,
    /// Products that could not be swept at all; the next run tries again.
    pub products_failed: u64,
    /// Passes made.
    pub passes: u64,
    /// Age of the oldest hold that is still overdue, in milliseconds; 0 when there is none.
    pub lag_ms: u64,
}

/// Frees what is due, product by product in turn, until the deadline. A product that is busy or broken is left to
/// the next run; it is nobody else's business.
///
/// # Errors
/// Busy or fault from the database. What was freed before stays freed.
pub async fn run(database: &Database, deadline: Deadline) -> Result<Report> {
    let mut report = Report::default();
    let mut left_out = HashSet::new();
    loop {
        let mut moved = 0;
        // There is one connection: it goes back before the next borrow.
        let due = find_due_products(&*database.client().await?).await?;
        for product in due {
            let id = product.described.id;
            if deadline.has_passed() || left_out.contains(&id) {
                continue;
            }
            let swept = sweep(&mut *database.client().await?, &product).await;
            match swept {
                Ok(swept) => {
                    report.passes += 1;
                    report.orders += swept.orders;
                    report.numbers += swept.numbers;
                    report.failed += swept.failed;
                    moved += swept.orders + swept.failed + swept.done;
                }
                Err(error) => {
                    tracing::error!(product.id = %id, error.message = error.chain(), "product not swept");
                    report.products_failed += 1;
                    left_out.insert(id);
                }
            }
        }
        if moved == 0 || deadline.has_passed() {
            break;
        }
    }
    report.lag_ms = millis(sweep_lag(&*database.client().await?).await?);
    Ok(report)
}

fn millis(lag: Option<Duration>) -> u64 {
    lag.map_or(0, |lag| u64::try_from(lag.as_millis()).unwrap_or(u64::MAX))
}

/// Emits the run's metrics; the lag at every run, because its silence is an alarm too.
#[allow(clippy::cast_precision_loss, reason = "metrics are approximate above 2^52")]
pub fn emit(report: &Report) {
    let metric = |name, value, unit| Metric { name, value, unit };
    metrics::emit(
        &[
            metric("sweep_lag_ms", report.lag_ms as f64, Unit::Milliseconds),
            metric("holds_expired", report.orders as f64, Unit::Count),
            metric("holds_failed", report.failed as f64, Unit::Count),
            metric("products_not_swept", report.products_failed as f64, Unit::Count),
        ],
        &[],
    );
}
