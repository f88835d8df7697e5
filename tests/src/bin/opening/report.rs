//! The two tables.

use comfy_table::{Table, presets};

use crate::Options;
use crate::counts::Counts;
use crate::sale::{Measured, Returned, Verdict};

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

/// What came back.
pub(crate) fn stock(returned: &Returned, verdict: &Verdict) -> Table {
    let mut table = new_table("After the holds ran out");
    table.add_row(["numbers that were held".to_owned(), returned.held.to_string()]);
    table.add_row(["orders expired".to_owned(), returned.expired_orders.to_string()]);
    table.add_row(["numbers back in stock".to_owned(), format!("{} of {}", returned.available, returned.total)]);
    table.add_row(["waited".to_owned(), format!("{:.0} s", returned.waited.as_secs_f64())]);
    table.add_row(["auditors".to_owned(), verdict.text()]);
    table
}

fn new_table(title: &str) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header([title, ""]);
    table
}
