use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;
use crate::config::Kind;
use crate::environment::tests::of;

type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that speaks just enough HTTP to be SQS: remembers operation and body, answers what `answer` says.
fn sqs(answer: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
            std::thread::spawn(move || serve(stream.unwrap(), &seen, &*answer));
        }
    });
    (url, requests)
}

fn serve(mut stream: TcpStream, seen: &Requests, answer: &dyn Fn(&Value) -> (u16, Value)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut target) = (0, String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 || line == "\r\n" {
            break;
        }
        let (name, value) = line.trim().split_once(':').unwrap_or(("", ""));
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "x-amz-target" => target = value.trim().trim_start_matches("AmazonSQS.").to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let (status, text) = answer(&request);
    seen.lock().unwrap().push((target, request));
    let text = text.to_string();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.0\r\nconnection: close\r\n");
    write!(stream, "{head}content-length: {}\r\n\r\n{text}", text.len()).unwrap();
}

fn queue(endpoint: &str) -> SqsQueue {
    let environment = of(&[
        ("TIRADA_STAGE", "local"),
        ("TIRADA_DATABASE_URL", "postgres://x"),
        ("TIRADA_FUNCTION_TIMEOUT_MS", "60000"),
        ("TIRADA_QUEUE_RESERVE_NUMBERS_URL", "http://queues.test/1/reserve-numbers"),
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
    ]);
    let config = Config::read(&environment, Kind::Worker).unwrap();
    SqsQueue::new(&config, &environment, &[Queue::ReserveNumbers]).unwrap()
}

fn outgoing(count: usize) -> Vec<Outgoing> {
    (0..count).map(|n| Outgoing { body: format!("m{n}"), group: "tenant".into() }).collect()
}

/// Every entry succeeds but those whose body or handle is in `failing`, which fail with this `SenderFault`.
fn all_but(failing: &'static [(&'static str, bool)]) -> impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static {
    move |request| {
        let (mut successful, mut failed) = (vec![], vec![]);
        for entry in request["Entries"].as_array().unwrap() {
            let name = entry["MessageBody"].as_str().or(entry["ReceiptHandle"].as_str()).unwrap();
            match failing.iter().find(|(text, _)| *text == name) {
                Some((_, fault)) => failed.push(json!({"Id": entry["Id"], "SenderFault": fault, "Code": "Nope"})),
                None => successful.push(json!({"Id": entry["Id"], "MessageId": "x", "MD5OfMessageBody": "x"})),
            }
        }
        (200, json!({ "Successful": successful, "Failed": failed }))
    }
}

#[tokio::test]
async fn every_message_has_its_own_result() {
    let (url, requests) = sqs(all_but(&[("m3", false), ("m21", true)]));
    let results = queue(&url).send(Queue::ReserveNumbers, &outgoing(25)).await;
    assert_eq!(results.len(), 25);
    for (index, result) in results.iter().enumerate() {
        match index {
            3 => assert!(matches!(result, Err(Error::Busy(_)))),
            21 => assert!(matches!(result, Err(Error::Fault(_)))),
            _ => assert!(result.is_ok(), "{index}: {result:?}"),
        }
    }
    let requests = requests.lock().unwrap();
    let mut sizes: Vec<usize> = requests.iter().map(|(_, body)| body["Entries"].as_array().unwrap().len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [5, 10, 10]);
    for (target, body) in &*requests {
        assert_eq!(target, "SendMessageBatch");
        assert_eq!(body["QueueUrl"], "http://queues.test/1/reserve-numbers");
        assert_eq!(body["Entries"][0]["MessageGroupId"], "tenant");
    }
}

#[tokio::test]
async fn delays_are_whole_seconds_with_a_result_each() {
    let (url, requests) = sqs(all_but(&[("r1", true)]));
    let delays: Vec<Delay> =
        (0..12).map(|n| Delay { receipt_handle: format!("r{n}"), time: Duration::from_millis(2_900) }).collect();
    let results = queue(&url).delay(Queue::ReserveNumbers, &delays).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 11);
    assert!(matches!(results[1], Err(Error::Fault(_))));
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].0, "ChangeMessageVisibilityBatch");
    assert_eq!(requests[0].1["Entries"][0]["VisibilityTimeout"], 2);
}

#[tokio::test]
async fn an_outage_is_busy_for_every_entry_and_does_not_last() {
    let (url, requests) = sqs(|_| (503, json!({ "__type": "ServiceUnavailable" })));
    let started = std::time::Instant::now();
    let results = queue(&url).send(Queue::ReserveNumbers, &outgoing(2)).await;
    assert!(results.len() == 2 && results.iter().all(|result| matches!(result, Err(Error::Busy(_)))), "{results:?}");
    assert!(started.elapsed() < OPERATION_TIMEOUT + Duration::from_secs(1));
    assert!((1..=ATTEMPTS_MAX as usize).contains(&requests.lock().unwrap().len()));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let results = queue(&format!("http://{closed}")).send(Queue::ReserveNumbers, &outgoing(1)).await;
    assert!(matches!(results[..], [Err(Error::Busy(_))]));
}

#[tokio::test]
async fn a_server_that_says_nothing_is_left_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let started = std::time::Instant::now();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let results = queue(&url).send(Queue::ReserveNumbers, &outgoing(1)).await;
    assert!(matches!(results[..], [Err(Error::Busy(_))]));
    assert!(started.elapsed() < OPERATION_TIMEOUT + Duration::from_secs(1), "{:?}", started.elapsed());
}

#[tokio::test]
async fn nothing_is_sent_for_nothing_and_unknown_queues_are_faults() {
    let (url, requests) = sqs(all_but(&[]));
    assert!(queue(&url).send(Queue::ReserveNumbers, &[]).await.is_empty());
    let results = queue(&url).send(Queue::ReleaseNumbers, &outgoing(1)).await;
    assert!(matches!(results[..], [Err(Error::Fault(_))]));
    assert!(requests.lock().unwrap().is_empty());
}

#[test]
fn chunks_respect_both_limits() {
    assert!(chunks([].into_iter()).is_empty());
    assert_eq!(chunks(vec![1; 21].into_iter()), [0..10, 10..20, 20..21]);
    let half = BYTES_MAX / 2;
    assert_eq!(chunks(vec![half; 5].into_iter()), [0..2, 2..4, 4..5]);
    assert_eq!(chunks([1, 2 * BYTES_MAX, 1, 1].into_iter()), [0..1, 1..2, 2..4]);
}
