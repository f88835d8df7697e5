//! How queues, outbox and auditor are doing, on one screen.

use domain::messages::Queue;
use edge::Environment;
use serde_json::{Value, json};
use store::Client;
use store::findings::{OpenFinding, close, count_open, list_open};
use store::health::{OutboxHealth, QUEUED_COUNT_MAX, QueueHealth, list_outbox, list_queues};
use uuid::Uuid;

use crate::failure::Failure;
use crate::output::{Output, age, instant, or_dash, table};
use crate::sqs;

/// Lines of each list.
const LINES_MAX: i64 = 50;

/// Messages of a queue and of its DLQ; none where the environment does not say where they are.
struct Depths {
    queue: Queue,
    waiting: Option<i64>,
    dead: Option<i64>,
}

/// `tirada queues`
pub(crate) async fn show(client: &Client, environment: &Environment) -> Result<Output, Failure> {
    let queues = list_queues(client, LINES_MAX).await?;
    let outbox = list_outbox(client).await?;
    let findings = list_open(client, None, LINES_MAX).await?;
    let findings_open = count_open(client).await?;
    let depths = depths(environment).await?;
    let text = [
        table(["PRODUCT", "NAME", "QUEUED", "OLDEST", "PACE", "MEASURED"], queues.iter().map(queue_row).collect()),
        table(
            ["QUEUE", "WAITING", "DLQ", "OUTBOX", "DUE", "OLDEST"],
            depths.iter().map(|d| depth_row(d, &outbox)).collect(),
        ),
        findings_text(findings_open, &findings),
    ]
    .join("\n\n");
    let json = json!({
        "products": queues.iter().map(queue_json).collect::<Vec<_>>(),
        "queues": depths.iter().map(|d| depth_json(d, &outbox)).collect::<Vec<_>>(),
        "findings": {"open": findings_open, "oldest": findings.iter().map(finding_json).collect::<Vec<_>>()},
    });
    Ok(Output::new(text, json))
}

/// `tirada finding close`
pub(crate) async fn close_finding(client: &mut Client, id: Uuid, reason: &str) -> Result<Output, Failure> {
    if !close(client, id, reason).await? {
        return Err(Failure::refused(format!("there is no open finding {id}")));
    }
    Ok(Output::new(format!("finding {id} is closed ({reason})"), json!({"finding": id, "reason": reason})))
}

async fn depths(environment: &Environment) -> Result<Vec<Depths>, Failure> {
    let urls = Queue::ALL.map(|queue| (queue, sqs::urls(queue, environment)));
    // Credentials are looked for only where there is something to ask.
    let asks = urls.iter().any(|(_, urls)| urls.iter().any(Option::is_some));
    let client = if asks { Some(sqs::client().await) } else { None };
    let mut depths = Vec::new();
    for (queue, [url, dlq_url]) in urls {
        let waiting = depth(client.as_ref(), url).await?;
        depths.push(Depths { queue, waiting, dead: depth(client.as_ref(), dlq_url).await? });
    }
    Ok(depths)
}

async fn depth(client: Option<&aws_sdk_sqs::Client>, url: Option<String>) -> Result<Option<i64>, Failure> {
    let (Some(client), Some(url)) = (client, url) else { return Ok(None) };
    sqs::depth(client, &url).await.map(Some)
}

fn queue_row(queue: &QueueHealth) -> [String; 6] {
    let or_more = if queue.queued == QUEUED_COUNT_MAX { "+" } else { "" };
    [
        queue.product_id.to_string(),
        queue.product_name.clone(),
        format!("{}{or_more}", queue.queued),
        age(queue.oldest_queued),
        queue.advance_per_second.map_or_else(|| "-".into(), |pace| format!("{pace:.2}")),
        age(queue.measured),
    ]
}

fn queue_json(queue: &QueueHealth) -> Value {
    json!({
        "product": queue.product_id, "name": queue.product_name, "queued": queue.queued,
        "queued_or_more": queue.queued == QUEUED_COUNT_MAX,
        "oldest_queued_seconds": queue.oldest_queued.map(|age| age.as_secs()),
        "advance_per_second": queue.advance_per_second,
        "measured_seconds_ago": queue.measured.map(|age| age.as_secs()),
    })
}

fn owed<'a>(depths: &Depths, outbox: &'a [OutboxHealth]) -> Option<&'a OutboxHealth> {
    outbox.iter().find(|owed| owed.queue == depths.queue.name())
}

fn depth_row(depths: &Depths, outbox: &[OutboxHealth]) -> [String; 6] {
    let owed = owed(depths, outbox);
    [
        depths.queue.name().to_owned(),
        or_dash(depths.waiting),
        or_dash(depths.dead),
        owed.map_or(0, |owed| owed.rows).to_string(),
        owed.map_or(0, |owed| owed.due).to_string(),
        age(owed.and_then(|owed| owed.oldest)),
    ]
}

fn depth_json(depths: &Depths, outbox: &[OutboxHealth]) -> Value {
    let owed = owed(depths, outbox);
    json!({
        "queue": depths.queue.name(), "waiting": depths.waiting, "dlq": depths.dead,
        "outbox": {
            "rows": owed.map_or(0, |owed| owed.rows), "due": owed.map_or(0, |owed| owed.due),
            "oldest_seconds": owed.and_then(|owed| owed.oldest).map(|age| age.as_secs()),
        },
    })
}

fn findings_text(open: i64, findings: &[OpenFinding]) -> String {
    if findings.is_empty() {
        return "findings open: 0".into();
    }
    let row = |finding: &OpenFinding| {
        let OpenFinding { id, product_id, chunk, invariant, detail, found_at } = finding;
        [id.to_string(), instant(*found_at), product_id.to_string(), invariant.clone(), or_dash(*chunk), detail.clone()]
    };
    let rows = findings.iter().map(row).collect();
    format!("findings open: {open}\n{}", table(["ID", "FOUND", "PRODUCT", "INVARIANT", "CHUNK", "FINDING"], rows))
}

fn finding_json(finding: &OpenFinding) -> Value {
    json!({
        "id": finding.id, "product": finding.product_id, "chunk": finding.chunk, "invariant": finding.invariant,
        "detail": finding.detail, "found_at": instant(finding.found_at),
    })
}
