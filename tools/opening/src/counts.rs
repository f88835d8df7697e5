//! What the buyers saw, counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

/// Counters of a crowd. Everything is what clients saw, not what the database says.
pub(crate) struct Counts {
    /// Requests to place an order, repeated ones and retries too.
    pub(crate) asked: AtomicU64,
    /// Orders accepted.
    pub(crate) accepted: AtomicU64,
    /// Answers that said "the same as before".
    pub(crate) replayed: AtomicU64,
    /// Orders seen reserved.
    pub(crate) reserved: AtomicU64,
    /// Orders seen rejected because others were faster.
    pub(crate) contended: AtomicU64,
    /// Numbers that stand in for lost ones.
    pub(crate) substituted: AtomicU64,
    /// Orders seen cancelled.
    pub(crate) cancelled: AtomicU64,
    /// Requests whose buyer hung up before the answer.
    pub(crate) disconnected: AtomicU64,
    /// Buyers who have finished, but for late ones who come back.
    pub(crate) finished: AtomicU64,
    /// How they paid.
    pub(crate) payments: Payments,
    refused: Mutex<BTreeMap<String, u64>>,
    lost: Mutex<Vec<String>>,
    intake: Mutex<Histogram<u64>>,
}

/// How orders were paid.
#[derive(Default)]
pub(crate) struct Payments {
    /// Paid while the hold lasted.
    pub(crate) in_time: AtomicU64,
    /// Refused by the buyer's bank.
    pub(crate) declined: AtomicU64,
    /// Left unpaid on purpose.
    pub(crate) never: AtomicU64,
    /// Paid after the hold ran out and before the payment was closed.
    pub(crate) just_late: AtomicU64,
    /// Tried on a page that was closed by then.
    pub(crate) refused: AtomicU64,
    /// Asked for, and the gateway did not answer.
    pub(crate) unanswered: AtomicU64,
    /// Money for an expired order, which got its numbers again.
    pub(crate) retaken: AtomicU64,
    /// Money for an expired order, which went back.
    pub(crate) returned: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            asked: zero(),
            accepted: zero(),
            replayed: zero(),
            reserved: zero(),
            contended: zero(),
            substituted: zero(),
            cancelled: zero(),
            disconnected: zero(),
            finished: zero(),
            payments: Payments::default(),
            refused: Mutex::default(),
            lost: Mutex::default(),
            intake: Mutex::new(
                Histogram::new_with_bounds(1, 120_000_000, 3).unwrap_or_else(|_| unreachable!("valid bounds")),
            ),
        }
    }
}

impl Counts {
    /// Adds one.
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// The value.
    pub(crate) fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    /// A request that was refused, by code.
    pub(crate) fn refuse(&self, code: &str) {
        *locked(&self.refused).entry(code.to_owned()).or_default() += 1;
    }

    /// How long an accepting answer took.
    pub(crate) fn time_intake(&self, took: Duration) {
        let _ = locked(&self.intake).record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// An acceptance that later vanished, or an order that never ended: must not happen.
    pub(crate) fn lose(&self, what: String) {
        locked(&self.lost).push(what);
    }

    /// How many were lost.
    pub(crate) fn lost(&self) -> usize {
        let lost = locked(&self.lost);
        for what in lost.iter().take(10) {
            eprintln!("LOST: {what}");
        }
        lost.len()
    }

    /// Refusals by code.
    pub(crate) fn refusals(&self) -> BTreeMap<String, u64> {
        locked(&self.refused).clone()
    }

    /// Intake latency at a quantile, in milliseconds.
    #[allow(clippy::cast_precision_loss, reason = "latencies are far below 2^52 µs")]
    pub(crate) fn intake_ms(&self, quantile: f64) -> f64 {
        locked(&self.intake).value_at_quantile(quantile) as f64 / 1_000.0
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
