//! Events on their way to the merchants: signed, sent again when they are not taken, and whatever the script wants.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::account::{Account, Dialect};
use super::faults::Fault;
use super::{Shared, signatures};

/// Tries of one event, and the wait before the second; it doubles.
const TRIES: u32 = 6;
const BACKOFF: Duration = Duration::from_millis(50);
/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How long an event lets another one pass.
const OVERTAKEN_MAX: Duration = Duration::from_secs(1);
/// How old an old signature is, in seconds.
const OLD: i64 = 600;

/// An event for one account.
pub(super) struct Event {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) account: Account,
    /// The payment, for a signature that covers its id.
    pub(super) data_id: String,
    pub(super) number: u64,
    pub(super) body: String,
    pub(super) fault: Option<Fault>,
}

/// One try to deliver an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delivery {
    /// The event's id.
    pub event_id: String,
    /// Its type.
    pub kind: String,
    /// The try, from 1; a duplicate begins again.
    pub attempt: u32,
    /// The answer's status; none when there was no answer.
    pub status: Option<u16>,
}

/// Sends events and counts what is under way.
pub(super) struct Post {
    client: reqwest::Client,
    pending: AtomicUsize,
    arrived: watch::Sender<u64>,
    log: Mutex<Vec<Delivery>>,
}

impl Post {
    pub(super) fn new() -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(ANSWER_MAX).build().expect("a plain client");
        Self { client, pending: AtomicUsize::new(0), arrived: watch::Sender::new(0), log: Mutex::default() }
    }

    /// Events that are neither delivered nor given up.
    pub(super) fn pending(&self) -> usize {
        self.pending.load(Ordering::SeqCst)
    }

    /// Every try so far.
    pub(super) fn log(&self) -> Vec<Delivery> {
        self.log.lock().unwrap().clone()
    }
}

/// Sends events, each on its own; called under the lock of the books, so that nothing is ever neither there nor under
/// way. Gives back those that something waits for.
pub(super) fn send(shared: &Arc<Shared>, events: Vec<Event>, all_early: bool) -> Vec<JoinHandle<()>> {
    let mut early = Vec::new();
    for event in events {
        if event.account.webhook_url.is_empty() || event.fault == Some(Fault::Never) {
            continue;
        }
        let is_early = all_early || event.fault == Some(Fault::Early);
        shared.post.pending.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(shared);
        let sending = tokio::spawn(async move {
            let _pending = Pending(&shared.post);
            deliver(&shared.post, &event).await;
        });
        if is_early {
            early.push(sending);
        }
    }
    early
}

struct Pending<'a>(&'a Post);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn deliver(post: &Post, event: &Event) {
    let copies = match event.fault {
        Some(Fault::Duplicate(more)) => 1 + more,
        _ => 1,
    };
    match event.fault {
        Some(Fault::Late(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
        Some(Fault::Reordered) => {
            let mut arrived = post.arrived.subscribe();
            // When no other event comes, it goes alone.
            let _ = tokio::time::timeout(OVERTAKEN_MAX, arrived.changed()).await;
        }
        _ => {}
    }
    for _ in 0..copies {
        let mut wait = BACKOFF;
        for attempt in 1..=TRIES {
            let status = request(post, event).await;
            let (event_id, kind) = (event.id.clone(), event.kind.to_owned());
            post.log.lock().unwrap().push(Delivery { event_id, kind, attempt, status });
            if status.is_some_and(|status| (200..300).contains(&status)) {
                post.arrived.send_modify(|count| *count += 1);
                break;
            }
            if attempt < TRIES {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
        }
    }
}

/// One try; the status of its answer.
async fn request(post: &Post, event: &Event) -> Option<u16> {
    let (account, now) = (&event.account, OffsetDateTime::now_utc().unix_timestamp());
    let now = if event.fault == Some(Fault::OldTimestamp) { now - OLD } else { now };
    let wrong = format!("not-{}", account.webhook_secret);
    let secret = if event.fault == Some(Fault::BadlySigned) { &wrong } else { &account.webhook_secret };
    let mut url = reqwest::Url::parse(&account.webhook_url).ok()?;
    let mut headers = vec![("content-type", "application/json".to_owned())];
    match account.dialect {
        Dialect::Stripe => headers.push(("stripe-signature", signatures::stripe(secret, now, &event.body))),
        Dialect::MercadoPago => {
            url.query_pairs_mut().append_pair("data.id", &event.data_id).append_pair("type", "payment");
            let request_id = Uuid::now_v7().to_string();
            // Both units are seen in practice.
            let ts = if event.number.is_multiple_of(2) { now } else { now * 1_000 };
            headers.push(("x-signature", signatures::mercado_pago(secret, &event.data_id, &request_id, ts)));
            headers.push(("x-request-id", request_id));
        }
    }
    let request = post.client.post(url).body(event.body.clone());
    let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
    Some(request.send().await.ok()?.status().as_u16())
}
