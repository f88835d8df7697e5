//! SQS as an operator uses it.

use aws_config::BehaviorVersion;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use domain::messages::Queue;
use edge::Environment;

use crate::failure::Failure;

/// A client with the credentials, region and endpoint of the environment.
pub(crate) async fn client() -> Client {
    Client::new(&aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await)
}

/// What SQS answered, as something to try again. Its own words come last in the chain of causes.
pub(crate) fn failed(what: &str, error: impl std::error::Error) -> Failure {
    let mut text = format!("{what}: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    Failure::busy(text)
}

/// The variables that name a queue and its DLQ.
pub(crate) fn variables(queue: Queue) -> [String; 2] {
    let name = queue.name().to_uppercase().replace('-', "_");
    [format!("TIRADA_QUEUE_{name}_URL"), format!("TIRADA_QUEUE_{name}_DLQ_URL")]
}

/// Where a queue and its DLQ are, as far as the environment says.
pub(crate) fn urls(queue: Queue, environment: &Environment) -> [Option<String>; 2] {
    variables(queue).map(|name| environment.optional(&name))
}

/// Messages waiting, roughly; those being worked on are not among them.
pub(crate) async fn depth(client: &Client, url: &str) -> Result<i64, Failure> {
    let name = QueueAttributeName::ApproximateNumberOfMessages;
    let asked = client.get_queue_attributes().queue_url(url).attribute_names(name.clone()).send().await;
    let answer = asked.map_err(|error| failed("the queue's depth", error))?;
    let text = answer.attributes().and_then(|attributes| attributes.get(&name));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| Failure::busy("the queue did not tell its depth"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_named_by_their_variables() {
        let lookup = |name: &str| (name == "TIRADA_QUEUE_RELEASE_NUMBERS_DLQ_URL").then(|| "x".to_owned());
        let environment = Environment::from_lookup(lookup);
        assert_eq!(urls(Queue::ReleaseNumbers, &environment), [None, Some("x".into())]);
        assert_eq!(urls(Queue::ReserveNumbers, &environment), [None, None]);
    }
}
