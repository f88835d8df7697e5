//! The three tables.

use std::sync::atomic::AtomicU64;

use comfy_table::{Table, presets};

use crate::Options;
use crate::counts::Counts;
use crate::gateway::Webhooks;
use crate::sale::{CURRENCY, Measured, Returned, Takings, Verdict};

/// What happened at the opening.
pub(crate) fn opening(
    options: &Options,
    counts: &Counts,
    measured: &Measured,
    connections: i64,
    verdict: &Verdict,
) -> Table {
    let mut table = new_table("The opening");
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    row("buyers", options.buyers.to_string());
    row("requests to place an order", Counts::get(&counts.asked).to_string());
    row("orders accepted", Counts::get(&counts.accepted).to_string());
    row("repeated requests answered as before", Counts::get(&counts.replayed).to_string());
    row("buyers who hung up", Counts::get(&counts.disconnected).to_string());
    for (code, count) in counts.refusals() {
        row(&format!("refused, {code}"), count.to_string());
    }
    row("orders reserved", measured.orders.to_string());
    row("numbers reserved", measured.numbers.to_string());
    row("orders lost to contention", Counts::get(&counts.contended).to_string());
    row("numbers substituted", Counts::get(&counts.substituted).to_string());
    row("orders cancelled", Counts::get(&counts.cancelled).to_string());
    row("intake p50 / p99", format!("{:.0} / {:.0} ms", counts.intake_ms(0.5), counts.intake_ms(0.99)));
    row("longest wait in the queue", format!("{:.1} s", measured.longest_queue_s));
    row("opening to last decision", format!("{:.1} s", measured.drain_s));
    row("database connections, most / cap", format!("{connections} / {}", options.connections_max));
    row("acceptances that vanished", counts.lost().to_string());
    row("NUMBERS SOLD TWICE", verdict.sold_twice.to_string());
    row("auditors", verdict.text());
    table
}

/// What was paid, by the buyers' own account and by the gateway's.
pub(crate) fn money(counts: &Counts, refunds: usize, webhooks: &Webhooks, takings: &Takings) -> Table {
    let mut table = new_table("The money");
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    let seen = |counter: &AtomicU64| Counts::get(counter).to_string();
    let payments = &counts.payments;
    row("orders paid in time", seen(&payments.in_time));
    row("payments declined, tried again", seen(&payments.declined));
    row("orders left unpaid", seen(&payments.never));
    row("paid after the hold, before the sweep", seen(&payments.just_late));
    row("too late, the page was closed", seen(&payments.refused));
    row("payments the gateway did not answer", seen(&payments.unanswered));
    row("paid after expiring, numbers taken again", seen(&payments.retaken));
    row("paid after expiring, money back", seen(&payments.returned));
    row("orders refunded by staff, all or a part", refunds.to_string());
    let Webhooks { delivered, repeated, lost, .. } = webhooks;
    row("webhooks delivered / repeated / lost", format!("{delivered} / {repeated} / {lost}"));
    row("money captured", amount(takings.captured_minor));
    row("money refunded", amount(takings.refunded_minor));
    row("money kept", amount(takings.kept_minor));
    row("numbers sold, and their price", format!("{}, {}", takings.sold, amount(takings.price_minor)));
    let balance = if takings.is_balanced() { "to the cent" } else { "DOES NOT BALANCE" };
    row("gateway's ledger against the orders", format!("{balance} ({} payments)", takings.payments));
    table
}

/// An amount of the sale's currency, which has two decimals.
fn amount(minor: i64) -> String {
    format!("{CURRENCY} {}.{:02}", minor / 100, minor % 100)
}

/// What came back.
pub(crate) fn stock(returned: &Returned, verdict: &Verdict) -> Table {
    let mut table = new_table("After the holds ran out");
    table.add_row(["numbers still held after the opening".to_owned(), returned.held.to_string()]);
    table.add_row(["orders expired".to_owned(), returned.expired_orders.to_string()]);
    table.add_row(["numbers in stock / sold".to_owned(), format!("{} / {}", returned.available, returned.sold)]);
    table.add_row(["numbers missing".to_owned(), (returned.total - returned.available - returned.sold).to_string()]);
    table.add_row(["waited".to_owned(), format!("{:.0} s", returned.waited.as_secs_f64())]);
    table.add_row(["auditors, with the gateway's ledger".to_owned(), verdict.text()]);
    table
}

fn new_table(title: &str) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header([title, ""]);
    table
}
