//! The last lines that a function wrote, kept so that a failure can show them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::leaks;

/// Lines kept of one function.
const LINES_MAX: usize = 2_000;

/// A function's log, shared by its instances.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    kept: VecDeque<String>,
    leaks: Vec<String>,
}

impl Log {
    /// Reads a process's output to its end. Each line is marked with the instance's number.
    pub(super) fn follow(&self, instance: u64, output: impl AsyncRead + Unpin + Send + 'static) {
        let log = self.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                log.push(format!("[{instance}] {line}"));
            }
        });
    }

    /// Adds a line.
    pub(super) fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap();
        if let Some(leak) = leaks::find(&line) {
            lines.leaks.push(format!("{leak}: {line}"));
        }
        if lines.kept.len() >= LINES_MAX {
            lines.kept.pop_front();
        }
        lines.kept.push_back(line);
    }

    /// Kept lines that contain a text.
    #[must_use]
    pub fn with(&self, text: &str) -> Vec<String> {
        self.0.lock().unwrap().kept.iter().filter(|line| line.contains(text)).cloned().collect()
    }

    /// Lines of all time that say what no log may say, and what that is.
    #[must_use]
    pub fn leaks(&self) -> Vec<String> {
        self.0.lock().unwrap().leaks.clone()
    }

    /// The last lines but metrics, oldest first.
    #[must_use]
    pub fn tail(&self, lines: usize) -> Vec<String> {
        let inner = self.0.lock().unwrap();
        let mut last: Vec<String> =
            inner.kept.iter().rev().filter(|line| !line.contains("_aws")).take(lines).cloned().collect();
        last.reverse();
        last
    }
}
