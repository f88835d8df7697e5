//! Functions of a world: what the template says, what Lambda adds.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::messages::Queue;

use crate::TestDatabase;
use crate::bucket::FakeBucket;
use crate::database::APP_PASSWORD;
use crate::gateway::{Dialect, FakeGateway};
use crate::http::BUCKET;
use crate::login::Phones;
use crate::simulator::figures::Figures;
use crate::simulator::function::{Function, Gate, Settings as FunctionSettings, bootstrap};
use crate::simulator::proxy::Proxy;
use crate::simulator::sqs::Sqs;
use crate::template::pascal;

/// Values of what the template's variables refer to, where they are not the defaults.
pub(super) fn parameters(database: &TestDatabase, proxy: &Proxy, sqs: &Sqs) -> BTreeMap<String, String> {
    let name = database.app_config().get_dbname().expect("a name").to_owned();
    let role = store::migrations::APP_ROLE;
    let url = format!("postgres://{role}:{APP_PASSWORD}@127.0.0.1:{}/{name}", proxy.port());
    let parameters = [
        ("Stage", "local".to_owned()),
        ("DatabaseUrl", url),
        ("TokenKeys", edge::auth::development::JWKS.to_owned()),
        ("TokenIssuer", crate::http::ISSUER.to_owned()),
        ("SealingKeys", edge::sealing::DEVELOPMENT_KEYS.to_owned()),
        ("SigningKeys", edge::auth::development::SIGNING_KEYS.to_owned()),
        ("LoginKeys", edge::login_keys::DEVELOPMENT_KEYS.to_owned()),
        ("PhonesFile", Phones::of(database).path()),
        ("MailsFile", "/dev/null".to_owned()),
        ("ExportsBucket", BUCKET.to_owned()),
        ("UploadsBucket", BUCKET.to_owned()),
    ];
    let queues = Queue::ALL.map(|queue| (format!("{}Queue", pascal(queue.name())), sqs.url(queue)));
    parameters.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(queues).collect()
}

/// A function as the template describes it, and as Lambda would start it.
pub(super) fn function(
    figures: &Figures,
    name: &str,
    parameters: &BTreeMap<String, String>,
    (sqs, bank, bucket, gate): (&Sqs, &FakeGateway, &FakeBucket, &Gate),
    freezes: bool,
) -> Function {
    let figures = figures.function(name, parameters);
    let mut variables = figures.variables;
    // What Lambda itself sets, and where a test's payment gateway is.
    for (variable, value) in [
        ("AWS_LAMBDA_FUNCTION_NAME", name),
        ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_ENDPOINT_URL", &sqs.endpoint()),
        ("AWS_ENDPOINT_URL_S3", &bucket.endpoint()),
        ("TIRADA_STRIPE_URL", &bank.url(Dialect::Stripe)),
        ("TIRADA_MERCADO_PAGO_URL", &bank.url(Dialect::MercadoPago)),
    ] {
        variables.insert(variable.to_owned(), value.to_owned());
    }
    let (timeout, concurrency) = (figures.timeout, figures.concurrency);
    let program = bootstrap(name);
    let settings = FunctionSettings { program, variables, timeout, concurrency, freezes, skew_s: 0 };
    Function::new(name, settings, Arc::clone(gate))
}
