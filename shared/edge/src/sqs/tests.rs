use std::sync::Mutex;

use domain::Error;
use futures::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::queue::Outgoing;
use crate::telemetry::tests::Memory;

/// Remembers what was delayed; answers with `fails`, or never.
#[derive(Default)]
struct Delays {
    seen: Mutex<Vec<Delay>>,
    fails: bool,
    hangs: bool,
}

impl MessageQueue for Delays {
    fn send<'a>(&'a self, _: Queue, _: &'a [Outgoing]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        unreachable!("workers' adapters send nothing")
    }

    fn delay<'a>(&'a self, _: Queue, delays: &'a [Delay]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        Box::pin(async move {
            self.seen.lock().unwrap().extend_from_slice(delays);
            if self.hangs {
                std::future::pending::<()>().await;
            }
            delays.iter().map(|_| if self.fails { Err(Error::busy("away")) } else { Ok(()) }).collect()
        })
    }
}

fn body(order: u128) -> String {
    OrderMessage::new(Uuid::from_u128(order), Uuid::from_u128(1), Uuid::from_u128(2)).body()
}

/// Messages `m0`, `m1` and so on with these bodies, received for the third time.
fn event(bodies: &[&str]) -> SqsEvent {
    let record = |(index, body): (usize, &&str)| {
        json!({
            "messageId": format!("m{index}"), "receiptHandle": format!("r{index}"), "body": body,
            "attributes": {"ApproximateReceiveCount": "3", "MessageGroupId": "tenant"},
            "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:us-east-1:1:q", "awsRegion": "us-east-1",
        })
    };
    let records: Vec<_> = bodies.iter().enumerate().map(record).collect();
    serde_json::from_value(json!({ "Records": records })).unwrap()
}

fn orders(count: u128) -> SqsEvent {
    let bodies: Vec<String> = (0..count).map(body).collect();
    event(&bodies.iter().map(String::as_str).collect::<Vec<_>>())
}

fn ids(response: &SqsBatchResponse) -> Vec<&str> {
    response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect()
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

async fn run(queues: &Delays, event: SqsEvent, outcomes: &[Outcome]) -> SqsBatchResponse {
    run_batch(queues, Queue::ReserveNumbers, event, soon(), |_: Vec<Record>, _| async { outcomes.to_vec() })
        .await
        .unwrap()
}

#[tokio::test]
async fn only_what_was_not_done_is_reported_and_only_retries_are_delayed() {
    let queues = Delays::default();
    let exactly = Outcome::Retry { after: Some(Duration::from_secs(9)) };
    let outcomes = [Outcome::Done, exactly, Outcome::Failed, Outcome::RETRY];
    let response = run(&queues, orders(4), &outcomes).await;
    assert_eq!(ids(&response), ["m1", "m2", "m3"]);
    let delays = queues.seen.lock().unwrap();
    assert_eq!(delays[0], Delay { receipt_handle: "r1".into(), time: Duration::from_secs(9) });
    assert_eq!(delays[1].receipt_handle, "r3");
    // Third receive: eight seconds, jittered down to four.
    assert!((4.0..=8.0).contains(&delays[1].time.as_secs_f64()), "{delays:?}");
    assert_eq!(delays.len(), 2);
}

#[tokio::test]
async fn an_unreadable_body_fails_alone_and_is_logged_once() {
    let memory = Memory::default();
    let guard = memory.capture("warn");
    let good = body(7);
    let event = event(&["{", &good, "", "{\"v\":9}"]);
    let queues = Delays::default();
    let response = run_batch(&queues, Queue::ReserveNumbers, event, soon(), |records: Vec<Record>, _| async move {
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].message.order_id, records[0].receive_count), (Uuid::from_u128(7), 3));
        assert_eq!((records[0].message_id.as_str(), records[0].group.as_deref()), ("m1", Some("tenant")));
        vec![Outcome::Done]
    });
    assert_eq!(ids(&response.await.unwrap()), ["m0", "m2", "m3"]);
    assert!(queues.seen.lock().unwrap().is_empty(), "nothing to wait for");
    drop(guard);
    assert_eq!(memory.lines().len(), 3);
}

#[tokio::test]
async fn a_panicking_or_miscounting_worker_gets_everything_again() {
    let queues = Delays::default();
    let panicking = run_batch(&queues, Queue::ReserveNumbers, orders(2), soon(), |_: Vec<Record>, _| async {
        panic!("on purpose")
    });
    assert_eq!(ids(&panicking.await.unwrap()), ["m0", "m1"]);
    let early = run_batch(&queues, Queue::ReserveNumbers, orders(2), soon(), |records: Vec<Record>, _| {
        assert!(records.is_empty(), "on purpose, before the future exists");
        async { vec![] }
    });
    assert_eq!(ids(&early.await.unwrap()), ["m0", "m1"]);
    assert_eq!(ids(&run(&queues, orders(2), &[Outcome::Done]).await), ["m0", "m1"]);
    assert_eq!(queues.seen.lock().unwrap().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_stop_is_stopped_with_time_to_answer() {
    let queues = Delays { hangs: true, ..Delays::default() };
    let started = tokio::time::Instant::now();
    let deadline = Deadline::after(Duration::from_secs(3));
    let response =
        run_batch(&queues, Queue::ReserveNumbers, orders(2), deadline, |_: Vec<Record>, _| std::future::pending());
    assert_eq!(ids(&response.await.unwrap()), ["m0", "m1"]);
    assert!(started.elapsed() < Duration::from_secs(3) + DEADLINE_MARGIN);
}

#[tokio::test]
async fn messages_that_cannot_be_delayed_are_reported_all_the_same() {
    let memory = Memory::default();
    let guard = memory.capture("warn");
    let queues = Delays { fails: true, ..Delays::default() };
    let response = run(&queues, orders(3), &[Outcome::RETRY; 3]).await;
    drop(guard);
    assert_eq!(ids(&response), ["m0", "m1", "m2"]);
    let lines = memory.lines();
    assert_eq!((lines.len(), &lines[0]["delay.failed"]), (1, &3.into()));
}

#[tokio::test]
async fn ids_are_neither_empty_nor_repeated() {
    let queues = Delays::default();
    let mut twice = orders(2);
    twice.records[1].message_id = twice.records[0].message_id.clone();
    assert_eq!(ids(&run(&queues, twice, &[Outcome::Failed; 2]).await), ["m0"]);
    for missing in [None, Some(String::new())] {
        let mut event = orders(2);
        event.records[1].message_id = missing;
        let run = |outcomes: [Outcome; 2]| {
            run_batch(&queues, Queue::ReserveNumbers, event.clone(), soon(), move |_: Vec<Record>, _| async move {
                outcomes.to_vec()
            })
        };
        assert!(run([Outcome::Done, Outcome::Failed]).await.is_err(), "the whole batch comes again");
        assert_eq!(ids(&run([Outcome::Failed, Outcome::Done]).await.unwrap()), ["m0"]);
    }
    assert!(ids(&run(&queues, orders(0), &[]).await).is_empty());
}

#[test]
fn backoff_grows_within_its_bounds() {
    let mut rng = rng();
    for count in [0, 1, 2, 5, 10, u32::MAX] {
        let times: Vec<Duration> = (0..100).map(|_| backoff(count, &mut rng)).collect();
        let most = Duration::from_secs(1 << count.clamp(1, 5)).min(RETRY_BACKOFF_MAX);
        assert!(times.iter().all(|time| (RETRY_BACKOFF_MIN..=most).contains(time)), "{count}: {times:?}");
        assert!(times.iter().any(|time| *time != times[0]), "jitter");
    }
}
