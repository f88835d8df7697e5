//! The log: JSON lines on standard output, dotted field names, one line per thing that went wrong.
//!
//! Crates that log parameters, credentials or bodies below the level info are held there, whatever is asked for.

use std::panic::PanicHookInfo;

use lambda_runtime::tracing::subscriber;
use subscriber::filter::{LevelFilter, Targets};
use subscriber::fmt::MakeWriter;
use subscriber::prelude::*;
use tracing::Subscriber;

/// Crates whose debug lines hold other people's data.
const HELD_AT_INFO: [&str; 7] = [
    "tokio_postgres",
    "aws_sigv4",
    "aws_runtime",
    "aws_smithy_runtime",
    "aws_smithy_runtime_api",
    "lambda_runtime",
    "lambda_http",
];

/// Starts logging at the level of RUST_LOG, or else of Lambda's own setting, or else info. Panics become log lines too.
/// Calling it again does nothing.
pub fn init() {
    let wanted = ["RUST_LOG", "AWS_LAMBDA_LOG_LEVEL"].into_iter().find_map(|name| std::env::var(name).ok());
    if lines(filter(wanted.as_deref().unwrap_or_default()), std::io::stdout).try_init().is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
}

/// A subscriber that writes JSON lines.
pub fn lines<W>(filter: Targets, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = subscriber::fmt::layer().json().flatten_event(true).with_span_list(false).with_writer(writer);
    subscriber::registry().with(layer).with(filter)
}

/// Levels per target from text such as `info` or `warn,store=debug`. Text that means nothing means info.
pub fn filter(wanted: &str) -> Targets {
    let wanted: Targets = match wanted.trim() {
        "" => Targets::new().with_default(LevelFilter::INFO),
        text => text.to_lowercase().parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO)),
    };
    let default = wanted.default_level().unwrap_or(LevelFilter::OFF);
    let is_held = |target: &str| HELD_AT_INFO.iter().any(|held| target.starts_with(held));
    let held = HELD_AT_INFO.map(|target| (target.to_owned(), default.min(LevelFilter::INFO)));
    let own = wanted.into_iter().map(|(target, level)| {
        let level = if is_held(&target) { level.min(LevelFilter::INFO) } else { level };
        (target, level)
    });
    // Later entries replace earlier ones of the same target.
    Targets::new().with_default(default).with_targets(held).with_targets(own)
}

/// The one line about a panic, with the span it happened in. Whoever catches it logs nothing about the panic itself.
fn log_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(panic.message = info.payload_as_str().unwrap_or("no text"), panic.location = place, "panicked");
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing::Level;

    use super::*;

    /// Log lines kept in memory.
    #[derive(Clone, Default)]
    pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Memory {
        pub(crate) fn lines(&self) -> Vec<serde_json::Value> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }

        /// Logs of this thread go here while the guard lives.
        pub(crate) fn capture(&self, level: &str) -> tracing::subscriber::DefaultGuard {
            let memory = self.clone();
            tracing::subscriber::set_default(lines(filter(level), move || memory.clone()))
        }
    }

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn levels_follow_the_text_but_some_crates_stay_at_info() {
        let would = |text: &str, target: &str, level: Level| filter(text).would_enable(target, &level);
        assert!(would("", "orders", Level::INFO) && !would("", "orders", Level::DEBUG));
        assert!(would("DEBUG", "orders", Level::DEBUG));
        assert!(would("???=!", "orders", Level::INFO), "nonsense means info");
        assert!(would("warn,store=debug", "store::pool", Level::DEBUG));
        assert!(!would("warn,store=debug", "orders", Level::INFO));
        for text in
            ["debug", "trace", "tokio_postgres=trace", "tokio_postgres::query=trace", "warn,tokio_postgres=debug"]
        {
            assert!(!would(text, "tokio_postgres::query", Level::DEBUG), "{text}");
        }
        assert!(!would("trace", "aws_sigv4::http_request", Level::DEBUG));
        assert!(!would("error", "tokio_postgres", Level::INFO), "held down, never raised");
    }

    #[test]
    fn a_line_is_flat_json_with_dotted_names() {
        let memory = Memory::default();
        let guard = memory.capture("info");
        tracing::info!(order.id = 7, queue.age_ms = 12, "queued");
        tracing::debug!("unseen");
        drop(guard);
        let lines = memory.lines();
        assert_eq!(lines.len(), 1);
        assert_eq!(
            (&lines[0]["message"], &lines[0]["order.id"], &lines[0]["level"]),
            (&"queued".into(), &7.into(), &"INFO".into())
        );
        assert!(lines[0]["timestamp"].is_string());
    }
}
