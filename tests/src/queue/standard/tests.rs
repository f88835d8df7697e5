use std::time::Duration;

use super::{Refusal, Settings, StandardQueue};
use crate::randomness;

const TAME: Settings =
    Settings { visibility: Duration::from_secs(30), receives_max: 3, duplicates: 0.0, out_of_order: 0.0, fair: false };

fn queue(settings: Settings, messages: usize) -> StandardQueue {
    let mut queue = StandardQueue::new("reserve-numbers", settings, randomness::stream(7, 0));
    for i in 0..messages {
        queue.send(Duration::ZERO, i.to_string(), "group".into(), Duration::ZERO).unwrap();
    }
    queue
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn receipt(record: &aws_lambda_events::sqs::SqsMessage) -> &str {
    record.receipt_handle.as_deref().unwrap()
}

/// Amazon SQS Developer Guide, "Amazon SQS visibility timeout": a received message stays in the queue, hidden for the
/// timeout; if it is not deleted by then, it becomes visible and may be received again.
#[test]
fn a_received_message_is_hidden_and_comes_again_unless_it_is_deleted() {
    let mut queue = queue(TAME, 1);
    let first = queue.receive(at(0)).unwrap();
    assert!(queue.receive(at(29)).is_none());
    let second = queue.receive(at(30)).unwrap();
    assert_eq!(first.message_id, second.message_id);
    assert_ne!(first.receipt_handle, second.receipt_handle, "each receive has a handle of its own");
    queue.delete(receipt(&second));
    assert!(queue.receive(at(1_000)).is_none() && queue.is_empty());
}

/// Amazon SQS API Reference, `DeleteMessage`: with another than the most recent receipt handle the request succeeds,
/// but the message might not be deleted. Here it is not.
#[test]
fn an_old_receipt_deletes_nothing() {
    let mut queue = queue(TAME, 1);
    let old = queue.receive(at(0)).unwrap();
    queue.receive(at(30)).unwrap();
    queue.delete(receipt(&old));
    assert_eq!(queue.len(), 1);
}

/// Amazon SQS API Reference, `ChangeMessageVisibility`: counts from now, at most 12 hours; `MessageNotInflight` and
/// `ReceiptHandleIsInvalid` are its errors.
#[test]
fn visibility_is_changed_only_in_flight_and_by_the_latest_receipt() {
    let mut queue = queue(TAME, 1);
    let first = queue.receive(at(0)).unwrap();
    assert_eq!(queue.change_visibility(at(10), receipt(&first), at(5)), Ok(()));
    assert!(queue.receive(at(14)).is_none());
    assert_eq!(queue.change_visibility(at(15), receipt(&first), at(5)), Err(Refusal::MessageNotInflight));
    let second = queue.receive(at(15)).unwrap();
    let change = |queue: &mut StandardQueue, receipt: &str, time| queue.change_visibility(at(16), receipt, time);
    assert_eq!(change(&mut queue, receipt(&first), at(5)), Err(Refusal::ReceiptHandleIsInvalid));
    assert_eq!(change(&mut queue, "nonsense", at(5)), Err(Refusal::ReceiptHandleIsInvalid));
    assert_eq!(change(&mut queue, receipt(&second), at(43_201)), Err(Refusal::InvalidParameterValue));
    assert_eq!(change(&mut queue, receipt(&second), at(0)), Ok(()));
    assert!(queue.receive(at(16)).is_some(), "zero makes it visible at once");
}

/// Amazon SQS API Reference, `SendMessage`: `DelaySeconds` is 0 to 900.
#[test]
fn a_delayed_message_appears_after_its_delay() {
    let mut queue = queue(TAME, 0);
    let mut send = |seconds| queue.send(at(0), "late".into(), "group".into(), at(seconds)).map(|_| ());
    assert_eq!(send(901), Err(Refusal::InvalidParameterValue));
    assert_eq!(send(900), Ok(()));
    assert!(queue.receive(at(899)).is_none());
    assert_eq!(queue.receive(at(900)).unwrap().attributes["ApproximateReceiveCount"], "1");
}

/// Amazon SQS Developer Guide, "Using dead-letter queues": when the receive count exceeds `maxReceiveCount`, the
/// message moves to the dead-letter queue. A redrive makes it a new message.
#[test]
fn a_message_received_too_often_is_dead_until_it_is_redriven() {
    let mut queue = queue(TAME, 2);
    for round in 1..=3 {
        let now = at(30 * round);
        let records = [queue.receive(now).unwrap(), queue.receive(now).unwrap()];
        assert!(records.iter().all(|record| record.attributes["ApproximateReceiveCount"] == round.to_string()));
    }
    assert!(queue.receive(at(120)).is_none());
    assert_eq!((queue.dead(), queue.len()), (vec!["0".to_owned(), "1".into()], 0));
    assert_eq!((queue.redrive(at(121)), queue.len()), (2, 2));
    assert_eq!(queue.receive(at(121)).unwrap().attributes["ApproximateReceiveCount"], "1");
}

/// Amazon SQS Developer Guide, "Amazon SQS standard queues": at-least-once delivery, best-effort ordering.
#[test]
fn some_messages_come_twice_at_once_some_survive_their_deletion_and_the_order_is_loose() {
    let mut queue = queue(Settings { duplicates: 0.2, out_of_order: 0.2, ..TAME }, 500);
    let mut received = Vec::new();
    while let Some(record) = queue.receive(at(0)) {
        received.push(record);
    }
    assert!((510..2_000).contains(&received.len()), "{} receives", received.len());
    let bodies: Vec<usize> = received.iter().map(|record| record.body.as_deref().unwrap().parse().unwrap()).collect();
    assert!(!bodies.is_sorted());
    received.iter().for_each(|record| queue.delete(receipt(record)));
    assert!((10..250).contains(&queue.len()), "{} survive", queue.len());
}

/// Amazon SQS Developer Guide, "Amazon SQS fair queues": a group of which many messages are in flight is a noisy
/// neighbour, and those of others are delivered first. Nobody's messages are held back when nobody else has any.
#[test]
fn a_noisy_group_lets_others_go_first() {
    let mut queue = queue(Settings { fair: true, ..TAME }, 10);
    let quiet = |queue: &mut StandardQueue, now| queue.send(at(now), "quiet".into(), "other".into(), at(0)).unwrap();
    let next = |queue: &mut StandardQueue, now| queue.receive(at(now)).unwrap().body.unwrap();
    quiet(&mut queue, 1);
    assert_eq!([1, 1, 1].map(|now| next(&mut queue, now)), ["0", "quiet", "1"]);
    quiet(&mut queue, 2);
    assert_eq!([2, 2].map(|now| next(&mut queue, now)), ["quiet", "2"]);
    assert_eq!([31, 31].map(|now| next(&mut queue, now)), ["3", "quiet"], "what is visible again counts no longer");
}
