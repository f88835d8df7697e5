//! The report: a table on the terminal, and the same as JSON with a description of the machine.

use std::fs;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value, json};

use crate::keys::{Floor, Key};
use crate::run::Samples;
use crate::settings::{
    BATCH, CODE_BATCH, CODE_BATCHES_PER_S, CODES_ASKED_PER_S, CONNECTIONS, FLOOD, NUMBERS_PER_ORDER, ORDERS_PER_BUYER,
};

/// Writes `report.json` into a folder.
pub(crate) fn write(folder: &Path, keys: &[Key], samples: &Samples, machine: &Value) {
    let mut report = Map::new();
    for key in keys {
        let value = samples.median(&key.name);
        let floor = floor_text(key.floor);
        let entry = json!({ "value": value, "unit": key.unit, "rounds": samples.rounds(&key.name), "floor": floor });
        report.insert(key.name.clone().into_owned(), entry);
    }
    report.insert("machine".into(), machine.clone());
    report.insert("load".into(), load());
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("report.json"), format!("{:#}\n", Value::Object(report))).unwrap();
}

/// What is measured, in words.
fn load() -> Value {
    json!({
        "orders": format!("1 to {NUMBERS_PER_ORDER} numbers, evenly; exact numbers and quick picks in turn"),
        "exact numbers": "no two orders name the same; one that a quick pick drew before is replaced",
        "buyers": format!("{ORDERS_PER_BUYER} orders each"),
        "reserving": format!("batches of {BATCH}, from the event's JSON to its response"),
        "intake": format!("{CONNECTIONS} environments with a connection each; a queue that only records"),
        "logins": format!(
            "beside intake {CODES_ASKED_PER_S} codes are asked for a second, and {} sends refused by the provider",
            CODE_BATCH * CODE_BATCHES_PER_S as usize
        ),
        "flood": format!("{FLOOD} orders for each of a quiet store, one worker, the batching window that is deployed"),
        "ceiling": "one insert from unnest in one transaction; binary COPY, which poolers do not let through, is reported beside it",
    })
}

/// The floors that were missed, one line each; empty when there are none.
pub(crate) fn missed(keys: &[Key], samples: &Samples) -> String {
    let missed = keys.iter().filter_map(|key| {
        let value = samples.median(&key.name).filter(|value| !key.floor.is_met(*value))?;
        Some(format!("MISSED: {} is {}, wanted {}\n", key.name, figure(value), floor_text(key.floor)))
    });
    missed.collect()
}

/// The table of every key that was measured.
pub(crate) fn table(keys: &[Key], samples: &Samples) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(["key", "value", "unit", "rounds", "floor", ""]);
    for key in keys {
        let Some(value) = samples.median(&key.name) else {
            table.add_row([&*key.name, "-", key.unit, "", &floor_text(key.floor), "NOT MEASURED"]);
            continue;
        };
        let rounds = samples.rounds(&key.name);
        let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let spread = format!("{} to {}", figure(least), figure(most));
        let verdict = match key.floor {
            Floor::Reported => "",
            floor if floor.is_met(value) => "met",
            _ => "MISSED",
        };
        table.add_row([&*key.name, &figure(value), key.unit, &spread, &floor_text(key.floor), verdict]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// What some figures of the last round consist of.
pub(crate) fn explained(samples: &Samples) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(["figure", "part", "bytes"]);
    for (title, parts) in &samples.parts {
        for (part, value) in parts {
            table.add_row([title, part.as_str(), &figure(*value)]);
        }
    }
    table
}

fn floor_text(floor: Floor) -> String {
    match floor {
        Floor::AtLeast(least) => format!("≥ {}", figure(least)),
        Floor::AtMost(most) => format!("≤ {}", figure(most)),
        Floor::Between(least, most) => format!("{} to {}", figure(least), figure(most)),
        Floor::Reported => String::new(),
    }
}

/// Three significant digits at least.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        small if small < 1.0 => format!("{value:.3}"),
        small if small < 10.0 => format!("{value:.2}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => thousands(value),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_at_least() {
        let figures = [0.0, 0.1234, 1.234, 12.34, 123.4, 1234.0, 1_234_567.0].map(figure);
        assert_eq!(figures, ["0", "0.123", "1.23", "12.3", "123", "1,234", "1,234,567"]);
    }
}
