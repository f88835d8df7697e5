//! A schedule: invokes a job every period.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;

use super::function::Function;
use super::instance::Outcome;
use crate::files;

/// A schedule. It does nothing until it is started.
pub struct Schedule {
    function: Function,
    event: Value,
    settings: Mutex<(Duration, usize)>,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl Schedule {
    /// Invokes a job every `period` of the clock, `at_once` times.
    #[must_use]
    pub fn new(function: Function, period: Duration, at_once: usize) -> Self {
        let event = files::read(format!("events/scheduler-{}.json", function.name()));
        let event = serde_json::from_str(&event).expect("an event is JSON");
        Self { function, event, settings: Mutex::new((period, at_once)), running: Mutex::default() }
    }

    /// Changes period and number at once, from the next start.
    pub fn set(&self, period: Duration, at_once: usize) {
        *self.settings.lock().unwrap() = (period, at_once);
    }

    /// Invokes the job once, now, and waits for it.
    pub async fn run_once(&self) -> Outcome {
        self.function.invoke(self.event.clone()).await
    }

    /// Starts, unless it runs. As on AWS, what finds no free environment is not repeated.
    pub fn start(&self) {
        let (period, at_once) = *self.settings.lock().unwrap();
        let mut running = self.running.lock().unwrap();
        if running.is_none() {
            let (function, event) = (self.function.clone(), self.event.clone());
            *running = Some(tokio::spawn(async move {
                let mut ticks = tokio::time::interval(period);
                loop {
                    ticks.tick().await;
                    for _ in 0..at_once {
                        let (function, event) = (function.clone(), event.clone());
                        tokio::spawn(async move { function.invoke(event).await });
                    }
                }
            }));
        }
    }

    /// Stops. What runs ends on its own.
    pub fn stop(&self) {
        if let Some(task) = self.running.lock().unwrap().take() {
            task.abort();
        }
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.stop();
    }
}
