//! Every figure that is tuned, in one place: how much is measured, and with how many at once.

use std::time::Duration;

/// Numbers of the product that most keys are measured on.
pub(crate) const NUMBERS: i32 = 1_000_000;
/// Connections of the baselines and of intake.
pub(crate) const CONNECTIONS: usize = 16;
/// Orders that each environment has placed before it is measured: a plan is kept from the sixth on.
pub(crate) const WARM_UP: usize = 8;
/// Most numbers of an order; orders have 1 to so many, evenly.
pub(crate) const NUMBERS_PER_ORDER: i32 = 10;
/// Orders of each buyer.
pub(crate) const ORDERS_PER_BUYER: usize = 2;
/// Messages in a batch.
pub(crate) const BATCH: usize = 500;
/// Messages in a small batch.
pub(crate) const SMALL_BATCH: usize = 10;
/// Workers that are tried; the best count is used.
pub(crate) const WORKERS: [usize; 3] = [1, 2, 4];
/// Rows that one buyer takes in the baseline with a row per number.
pub(crate) const ROWS_AT_ONCE: i32 = 5;
/// What one invocation of a worker or job may take.
pub(crate) const BUDGET: Duration = Duration::from_secs(120);

/// Part of what intake can take that it takes while something else goes on.
pub(crate) const PACE: f64 = 0.25;
/// Looks of buyers at their orders, beside intake.
pub(crate) const POLLS_PER_S: u32 = 2_000;
/// How often it is looked for backends that wait for a lock.
pub(crate) const LOCKS_SEEN_EVERY: Duration = Duration::from_millis(5);
/// Reads of each kind.
pub(crate) const READS: usize = 200;
/// Turns of intake alone and beside logins that fail.
pub(crate) const LOGIN_TURNS: u32 = 4;
/// Login codes that people ask for beside intake, 6,000 a minute: an attack that has come past the throttle.
pub(crate) const CODES_ASKED_PER_S: u32 = 100;
/// Phones in each turn, of which each asks once.
pub(crate) const PHONES_PER_TURN: u32 = 100_000;
/// Batches of codes that the provider refuses: what two workers can try while it takes a tenth of a second to refuse.
pub(crate) const CODE_BATCHES_PER_S: u32 = 20;
/// Codes in such a batch.
pub(crate) const CODE_BATCH: usize = 10;
/// Orders of a store that floods the queue for each one of a quiet store.
pub(crate) const FLOOD: usize = 50;
/// How often the quiet store has an order: with the flood it is about what one worker can serve.
pub(crate) const QUIET_EVERY: Duration = Duration::from_micros(2_500);
/// Webhooks in a round.
pub(crate) const WEBHOOKS: usize = 300;
/// Starts of each function in a round.
pub(crate) const STARTS: usize = 20;
/// Longest wait for something that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Volumes {
    /// Orders that are reserved in batches of `BATCH`.
    pub(crate) orders: usize,
    /// Orders that are reserved in batches of `SMALL_BATCH`.
    pub(crate) small_batch_orders: usize,
    /// How long a baseline is measured that is a rate.
    pub(crate) rate_for: Duration,
    /// Orders that intake takes in each measurement.
    pub(crate) intake_orders: usize,
    /// Orders that wait for the worker beside it: more than it can serve meanwhile.
    pub(crate) waiting_orders: usize,
    /// Orders that are reserved for each size and kind of numbers.
    pub(crate) sizes_orders: usize,
    /// Orders that are relayed, audited and expired.
    pub(crate) repair_orders: usize,
    /// Orders of a quiet store, alone and beside the flood.
    pub(crate) quiet_orders: usize,
}

impl Volumes {
    /// What a full run measures.
    pub(crate) const FULL: Self = Self {
        orders: 30_000,
        small_batch_orders: 6_000,
        rate_for: Duration::from_millis(2_500),
        intake_orders: 8_000,
        waiting_orders: 30_000,
        sizes_orders: 8_000,
        repair_orders: 20_000,
        quiet_orders: 400,
    };
    /// Enough to see that everything can be measured.
    pub(crate) const SMOKE: Self = Self {
        orders: 6_000,
        small_batch_orders: 1_000,
        rate_for: Duration::from_millis(500),
        intake_orders: 1_600,
        waiting_orders: 8_000,
        sizes_orders: 2_000,
        repair_orders: 4_000,
        quiet_orders: 100,
    };
}
