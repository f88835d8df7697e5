use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::messages::Queue;
use edge::queue::{Delay, MessageQueue};

use super::{Queues, Received, Settings, drain};

const QUEUE: Queue = Queue::ReserveNumbers;

fn queues(settings: Settings, messages: usize) -> Arc<Queues> {
    let queues = Arc::new(Queues::new(settings, 7));
    for i in 0..messages {
        queues.put_body(QUEUE, i.to_string(), "group".into());
    }
    queues
}

fn receive(queues: &Queues, batch_max: usize) -> SqsEvent {
    match queues.receive(QUEUE, batch_max) {
        Received::Batch(event) => event,
        Received::Wait | Received::Empty => panic!("nothing was received"),
    }
}

fn receipts(event: &SqsEvent) -> Vec<String> {
    event.records.iter().filter_map(|record| record.receipt_handle.clone()).collect()
}

const TAME: Settings =
    Settings { visibility: Duration::from_secs(30), receives_max: 3, duplicates: 0.0, out_of_order: 0.0, fair: false };

#[test]
fn what_is_done_is_deleted_and_what_is_not_comes_again_until_it_is_dead() {
    let queues = queues(TAME, 2);
    for round in 1..=3 {
        let event = receive(&queues, 10);
        assert_eq!(event.records.len(), if round == 1 { 2 } else { 1 });
        assert_eq!(event.records[0].attributes["ApproximateReceiveCount"], round.to_string());
        assert!(matches!(queues.receive(QUEUE, 10), Received::Wait), "in flight, and its worker is busy");
        queues.finish(QUEUE, &receipts(&event)[1..]);
    }
    assert!(matches!(queues.receive(QUEUE, 10), Received::Empty));
    assert_eq!(queues.dead(QUEUE), ["0"]);
}

#[tokio::test]
async fn a_delay_is_kept_and_time_jumps_to_it() {
    let queues = queues(TAME, 2);
    let event = receive(&queues, 10);
    let delays: Vec<Delay> = [20, 5]
        .into_iter()
        .zip(receipts(&event))
        .map(|(seconds, receipt_handle)| Delay { receipt_handle, time: Duration::from_secs(seconds) })
        .collect();
    assert!(queues.delay(QUEUE, &delays).await.iter().all(Result::is_ok));
    queues.finish(QUEUE, &[]);
    let first = receive(&queues, 10);
    assert_eq!(first.records[0].body.as_deref(), Some("1"), "after 5 seconds");
    assert_eq!(first.records.len(), 1);
    queues.finish(QUEUE, &receipts(&first));
    assert_eq!(receive(&queues, 10).records[0].body.as_deref(), Some("0"), "after 20 seconds");
    let unknown = [Delay { receipt_handle: "message-9/1".into(), time: Duration::ZERO }];
    assert!(queues.delay(QUEUE, &unknown).await[0].is_err());
}

#[tokio::test]
async fn several_workers_see_everything_some_of_it_twice_and_out_of_order() {
    let queues = queues(Settings { duplicates: 0.05, ..Settings::default() }, 500);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let handler_seen = Arc::clone(&seen);
    drain(&queues, QUEUE, 4, 10, move |event: SqsEvent| {
        let seen = Arc::clone(&handler_seen);
        async move {
            tokio::task::yield_now().await;
            let bodies = event.records.into_iter().filter_map(|record| record.body?.parse::<usize>().ok());
            seen.lock().unwrap().extend(bodies);
            Ok::<_, String>(SqsBatchResponse::default())
        }
    })
    .await;
    let seen = seen.lock().unwrap();
    let distinct: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), 500);
    assert!(seen.len() > 500, "some twice");
    assert!(!seen.is_sorted(), "not in order");
    assert_eq!(queues.len(QUEUE), 0);
}
