//! A small Lambda: the real bootstraps as processes, with API Gateway, SQS, event source mappings and
//! schedules around them, a proxy before Postgres, and faults everywhere.
//!
//! Modelled: cold starts, reuse and freezing of environments, reserved concurrency and throttling, function timeouts,
//! crashes, the documented semantics of standard queues and of partial batch responses, one runtime API per process.
//! Not modelled: memory limits, retries of asynchronous invocations, scaling of pollers, network latency, IAM. Figures
//! come from template.yaml; time in queues and schedules is shortened by one factor.

mod figures;
mod function;
mod gateway;
mod instance;
mod ledger;
mod log;
mod mapping;
mod postgres;
mod proxy;
mod schedule;
mod shopper;
mod signals;
mod sqs;
pub mod time;
mod world;

pub use function::{Counts, Function, Gate, Settings as FunctionSettings, bootstrap};
pub use gateway::{Gateway, HttpRequest};
pub use instance::Outcome;
pub use ledger::{Acceptance, Ledger};
pub use log::Log;
pub use mapping::{Mapping, Polling};
pub use postgres::{OwnPostgres, Stop};
pub use proxy::{Proxy, Upstream};
pub use schedule::Schedule;
pub use shopper::{Shopper, code, wish};
pub use sqs::{Call, Fault, Sqs};
pub use world::{Setup, World};
