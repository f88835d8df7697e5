//! Charts as SVG: horizontal bars that can be read on a light and on a dark page.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::report::figure;
use crate::run::Samples;
use crate::settings::NUMBERS_PER_ORDER;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 250.0;
const FIGURES: f64 = 90.0;
const TOP: f64 = 64.0;
const ROW: f64 = 34.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    /// Each grid line is ten times the one before.
    Logarithmic,
}

struct Bar {
    label: &'static str,
    value: f64,
    /// Ours, as opposed to what it is compared with.
    ours: bool,
}

/// A bar's label, its key, what its value is multiplied by, and whether it is ours.
type Row = (&'static str, &'static str, f64, bool);

/// Writes a chart for each group that was measured.
pub(crate) fn write(folder: &Path, samples: &Samples) {
    // A hot row and a bitmap sell orders; on average one has so many numbers.
    let numbers = f64::from(1 + NUMBERS_PER_ORDER) / 2.0;
    let reserve = [
        ("a transaction that only inserts", "insert_ceiling_numbers_per_s", 1.0, false),
        ("Tirada, batches of 500", "reserve_numbers_per_s", 1.0, true),
        ("Tirada, batches of 10", "reserve_small_batch_orders_per_s", numbers, true),
        ("a row per number", "row_per_number_numbers_per_s", 1.0, false),
        ("a hot counter row", "hot_row_orders_per_s", numbers, false),
        ("one bitmap per product", "plain_bitmap_orders_per_s", numbers, false),
    ];
    let intake = [
        ("alone", "intake_p50_ms", 1.0, true),
        ("beside a worker at half its pace", "intake_under_reserve_p50_ms", 1.0, true),
        ("beside 2,000 polls a second", "intake_under_polling_p50_ms", 1.0, true),
    ];
    let sizes = [
        ("exact numbers, 1 M", "us_per_number.exact.1m", 1.0, true),
        ("exact numbers, 10 M", "us_per_number.exact.10m", 1.0, true),
        ("quick picks, 1 M", "us_per_number.quick.1m", 1.0, true),
        ("quick picks, 10 M", "us_per_number.quick.10m", 1.0, true),
    ];
    let charts: [(&str, &str, Scale, &[Row]); 3] = [
        ("reserve", "Numbers sold per second, logarithmic", Scale::Logarithmic, &reserve),
        ("intake", "Median answer of intake in ms, 16 clients at once", Scale::Linear, &intake),
        ("sizes", "Microseconds per reserved number, by size of the product", Scale::Linear, &sizes),
    ];
    for (name, title, scale, rows) in charts {
        let bar =
            |(label, key, factor, ours): &Row| Some(Bar { label, value: samples.median(key)? * factor, ours: *ours });
        if let Some(bars) = rows.iter().map(bar).collect::<Option<Vec<Bar>>>() {
            fs::write(folder.join(format!("{name}.svg")), draw(title, scale, &bars)).unwrap();
        }
    }
}

fn draw(title: &str, scale: Scale, bars: &[Bar]) -> String {
    let bottom = TOP + ROW * bars.len() as f64;
    let height = bottom + 34.0;
    let lines = grid(scale, bars);
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    let place = |value: f64| {
        let part = match scale {
            Scale::Linear => (value - first) / (last - first),
            Scale::Logarithmic => (value / first).log10() / (last / first).log10(),
        };
        LABELS + part.clamp(0.0, 1.0) * (WIDTH - LABELS - FIGURES)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
        font-family=\"system-ui, sans-serif\" font-size=\"14\">\n<title>{title}</title>\n<style>\n\
        text {{ fill: #1f2328 }} .axis {{ fill: #59636e; font-size: 12px }} line {{ stroke: #d1d9e0 }}\n\
        .ours {{ fill: #0969da }} .other {{ fill: #9aa4ae }}\n@media (prefers-color-scheme: dark) {{\n\
        text {{ fill: #f0f6fc }} .axis {{ fill: #9198a1 }} line {{ stroke: #3d444d }}\n\
        .ours {{ fill: #4493f8 }} .other {{ fill: #656c76 }} }}\n</style>\n\
        <text x=\"16\" y=\"32\" font-size=\"17\" font-weight=\"600\">{title}</text>\n"
    );
    for line in &lines {
        let (x, text) = (place(*line), figure(*line).trim_end_matches(".00").trim_end_matches(".0").to_owned());
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/><text class=\"axis\" x=\"{x:.1}\" \
            y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            TOP - 12.0,
            bottom + 20.0
        );
    }
    for (row, bar) in (0_u32..).zip(bars) {
        let (y, end) = (TOP + ROW * f64::from(row), place(bar.value));
        let (class, middle) = (if bar.ours { "ours" } else { "other" }, y + 16.0);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text><rect class=\"{class}\" x=\"{LABELS}\" \
            y=\"{y:.1}\" width=\"{:.1}\" height=\"22\" rx=\"3\"/><text x=\"{:.1}\" y=\"{middle:.1}\">{}</text>",
            LABELS - 12.0,
            bar.label,
            (end - LABELS).max(2.0),
            end + 8.0,
            figure(bar.value)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The values of the grid's lines, from below the least bar to above the greatest.
fn grid(scale: Scale, bars: &[Bar]) -> Vec<f64> {
    let values = || bars.iter().map(|bar| bar.value.max(f64::MIN_POSITIVE));
    let most = values().fold(f64::MIN_POSITIVE, f64::max);
    match scale {
        Scale::Logarithmic => {
            let least = values().fold(f64::INFINITY, f64::min).log10().floor();
            let steps = (most.log10().ceil() - least).clamp(1.0, 12.0);
            (0_u32..).map(f64::from).take_while(|step| *step <= steps).map(|step| 10_f64.powf(least + step)).collect()
        }
        Scale::Linear => {
            let rough = most / 4.0;
            let power = 10_f64.powf(rough.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
            let step = step.unwrap_or(rough);
            let lines = (0_u32..).map(|line| f64::from(line) * step);
            lines.take_while(|value| *value < most + step).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(values: &[f64]) -> Vec<Bar> {
        values.iter().map(|value| Bar { label: "", value: *value, ours: true }).collect()
    }

    #[test]
    fn the_grid_holds_every_bar() {
        assert_eq!(grid(Scale::Linear, &bars(&[1.2, 7.5])), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(grid(Scale::Linear, &bars(&[0.04])), [0.0, 0.01, 0.02, 0.03, 0.04]);
        assert_eq!(grid(Scale::Logarithmic, &bars(&[150.0, 30_000.0])), [100.0, 1_000.0, 10_000.0, 100_000.0]);
    }
}
