//! What is measured: every key with its unit and its floor.

use std::borrow::Cow;

use tests::template::Template;

/// What a value must reach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Floor {
    AtLeast(f64),
    AtMost(f64),
    Between(f64, f64),
    /// No bound: the figure is for the reader.
    Reported,
}

impl Floor {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Between(least, most) => (least..=most).contains(&value),
            Self::Reported => true,
        }
    }
}

/// Keys that are measured together, because they share a baseline or the state of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Group {
    /// Reserving against other ways.
    Reserve,
    /// Placing orders.
    Intake,
    /// Products of different sizes.
    Sizes,
    /// Relay, expiry, audit, rebuild.
    Repair,
    /// What gateways tell us.
    Payments,
    /// A store beside another.
    Tenants,
    /// What staff take away.
    Files,
    /// The bootstraps.
    Functions,
}

/// One key of the report.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) group: Group,
    pub(crate) name: Cow<'static, str>,
    pub(crate) unit: &'static str,
    pub(crate) floor: Floor,
}

const fn key(group: Group, name: &'static str, unit: &'static str, floor: Floor) -> Key {
    Key { group, name: Cow::Borrowed(name), unit, floor }
}

use Floor::{AtLeast, AtMost, Between, Reported};
use Group::{Files, Functions, Intake, Payments, Repair, Reserve, Sizes, Tenants};

/// Memory of a function, in bytes.
const RSS_MAX: f64 = 20e6;
/// The most that the writer of exports may ever hold, in bytes: some parts and pages, and nothing that grows with rows.
const EXPORT_RSS_MAX: f64 = 128e6;

/// Every key, in the order of the table: those of the functions last.
pub(crate) fn keys() -> Vec<Key> {
    let template = Template::read("template.yaml");
    let mut keys = KEYS.to_vec();
    for (measure, unit) in [("init_ms", "ms"), ("rss_bytes", "bytes"), ("bootstrap_bytes", "bytes")] {
        keys.extend(template.functions().map(|function| {
            let floor = match (measure, function.name()) {
                ("init_ms", "orders") => AtMost(20.0),
                ("init_ms", "reserve-numbers") => AtMost(10.0),
                ("rss_bytes", _) => AtMost(RSS_MAX),
                _ => Reported,
            };
            Key { group: Functions, name: format!("{measure}.{}", function.name()).into(), unit, floor }
        }));
    }
    keys
}

const KEYS: &[Key] = &[
    key(Reserve, "reserve_vs_hot_row", "ratio", AtLeast(20.0)),
    key(Reserve, "reserve_vs_plain_bitmap", "ratio", AtLeast(120.0)),
    key(Reserve, "reserve_vs_row_per_number", "ratio", AtLeast(6.0)),
    key(Reserve, "reserve_vs_insert_ceiling", "ratio", AtLeast(0.8)),
    key(Reserve, "wal_per_number_vs_ceiling", "ratio", AtMost(2.4)),
    key(Reserve, "reserve_small_batch", "ratio", AtLeast(0.13)),
    key(Reserve, "reserve_workers", "workers", Reported),
    key(Reserve, "reserve_orders_per_s", "orders/s", Reported),
    key(Reserve, "reserve_numbers_per_s", "numbers/s", Reported),
    key(Reserve, "reserve_small_batch_orders_per_s", "orders/s", Reported),
    key(Reserve, "reserve_wal_per_number", "bytes", Reported),
    key(Reserve, "reserve_small_batch_wal_per_number", "bytes", Reported),
    key(Reserve, "hot_row_orders_per_s", "orders/s", Reported),
    key(Reserve, "hot_row_in_one_statement_orders_per_s", "orders/s", Reported),
    key(Reserve, "plain_bitmap_orders_per_s", "orders/s", Reported),
    key(Reserve, "plain_bitmap_uncompressed_orders_per_s", "orders/s", Reported),
    key(Reserve, "plain_bitmap_wal_per_number", "bytes", Reported),
    key(Reserve, "row_per_number_numbers_per_s", "numbers/s", Reported),
    key(Reserve, "row_per_number_from_random_numbers_per_s", "numbers/s", Reported),
    key(Reserve, "insert_ceiling_numbers_per_s", "numbers/s", Reported),
    key(Reserve, "insert_ceiling_wal_per_number", "bytes", Reported),
    key(Reserve, "copy_numbers_per_s", "numbers/s", Reported),
    key(Reserve, "copy_wal_per_number", "bytes", Reported),
    key(Intake, "intake_vs_commit_ceiling", "ratio", AtLeast(0.4)),
    key(Intake, "intake_commits_per_order", "commits", Between(1.0, 1.05)),
    key(Intake, "intake_under_reserve", "ratio", AtMost(1.5)),
    key(Intake, "intake_waits_for_locks", "samples", AtMost(0.0)),
    key(Intake, "intake_under_polling", "ratio", AtMost(2.0)),
    key(Intake, "intake_login_failing", "ratio", AtMost(1.2)),
    key(Intake, "intake_fk_cost", "ratio", Reported),
    key(Intake, "intake_orders_per_s", "orders/s", Reported),
    key(Intake, "commits_per_s", "commits/s", Reported),
    key(Intake, "intake_p50_ms", "ms", Reported),
    key(Intake, "intake_paced_p50_ms", "ms", Reported),
    key(Intake, "intake_under_reserve_p50_ms", "ms", Reported),
    key(Intake, "intake_under_polling_p50_ms", "ms", Reported),
    key(Intake, "polls_per_s", "polls/s", AtLeast(1_900.0)),
    key(Intake, "intake_login_failing_p50_ms", "ms", Reported),
    key(Intake, "intake_between_logins_p50_ms", "ms", Reported),
    key(Intake, "codes_refused_per_s", "codes/s", AtLeast(100.0)),
    key(Sizes, "cost_10m_vs_1m.exact", "ratio", AtMost(1.3)),
    key(Sizes, "cost_10m_vs_1m.quick", "ratio", AtMost(1.3)),
    key(Sizes, "us_per_number.exact.1m", "us", Reported),
    key(Sizes, "us_per_number.exact.10m", "us", Reported),
    key(Sizes, "us_per_number.quick.1m", "us", Reported),
    key(Sizes, "us_per_number.quick.10m", "us", Reported),
    key(Sizes, "summary_ms.1m", "ms", AtMost(5.0)),
    key(Sizes, "summary_ms.10m", "ms", Reported),
    key(Sizes, "chunk_ms.1m", "ms", Reported),
    key(Sizes, "chunk_ms.10m", "ms", Reported),
    key(Sizes, "order_status_ms.1m", "ms", Reported),
    key(Sizes, "order_status_ms.10m", "ms", Reported),
    key(Repair, "relay_rows_per_s", "rows/s", Reported),
    key(Repair, "expire_numbers_per_s", "numbers/s", Reported),
    key(Repair, "audit_numbers_per_s", "numbers/s", Reported),
    key(Repair, "rebuild_ms", "ms", Reported),
    key(Payments, "webhook_vs_commit", "ratio", AtMost(3.0)),
    key(Payments, "webhook_p50_ms", "ms", Reported),
    key(Payments, "webhook_commit_p50_ms", "ms", Reported),
    key(Tenants, "tenant_flood", "ratio", AtMost(3.0)),
    key(Tenants, "tenant_flood_p50_ms", "ms", Reported),
    key(Tenants, "tenant_alone_p50_ms", "ms", Reported),
    key(Files, "export_memory.csv", "bytes", AtMost(EXPORT_RSS_MAX)),
    key(Files, "export_memory.xlsx", "bytes", AtMost(EXPORT_RSS_MAX)),
];
