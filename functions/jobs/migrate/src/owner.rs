//! The owner's way into the database: a URL on a developer's machine, secrets on AWS.

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::config::{BehaviorVersion, Region};
use domain::{Error, Result};
use edge::Environment;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use store::{Settings, Tls};

/// Where and as whom to migrate, and the password that the functions' role gets.
pub(crate) struct Owner {
    pub(crate) settings: Settings,
    pub(crate) app_password: Option<SecretString>,
}

/// A database secret as RDS writes it.
#[derive(Deserialize)]
struct Credentials {
    username: String,
    password: SecretString,
}

impl Owner {
    /// Reads `TIRADA_OWNER_DATABASE_URL`, or host and secrets.
    pub(crate) async fn from_environment(environment: &Environment) -> Result<Self> {
        if let Some(url) = environment.optional("TIRADA_OWNER_DATABASE_URL") {
            let app_password = environment.optional("TIRADA_APP_PASSWORD").map(Into::into);
            return Ok(Self { settings: Settings::from_url(&url)?, app_password });
        }
        let host = required(environment, "TIRADA_OWNER_DATABASE_HOST")?;
        let port = environment.parsed("TIRADA_OWNER_DATABASE_PORT", "a port number").map_err(Error::fault)?;
        let name = required(environment, "TIRADA_OWNER_DATABASE_NAME")?;
        let owner = secret(environment, &required(environment, "TIRADA_OWNER_SECRET_ARN")?).await?;
        let app = secret(environment, &required(environment, "TIRADA_APP_SECRET_ARN")?).await?;
        let mut config = tokio_postgres::Config::new();
        config.host(&host).port(port.unwrap_or(5432)).dbname(&name).user(&owner.username);
        config.password(owner.password.expose_secret());
        let tls = Tls::with_roots(&environment.optional("TIRADA_DATABASE_CA_PEM").unwrap_or_default())?;
        let settings = Settings {
            config,
            tls,
            password: None,
            borrow_timeout: domain::limits::BORROW_TIMEOUT,
            connections_max: 1,
        };
        Ok(Self { settings, app_password: Some(app.password) })
    }
}

fn required(environment: &Environment, name: &str) -> Result<String> {
    environment.required(name).map_err(Error::fault)
}

async fn secret(environment: &Environment, arn: &str) -> Result<Credentials> {
    let mut settings = aws_sdk_secretsmanager::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(required(environment, "AWS_REGION")?))
        .credentials_provider(edge::iam::credentials(environment).map_err(Error::fault)?);
    settings.set_endpoint_url(environment.optional("AWS_ENDPOINT_URL"));
    let client = Client::from_conf(settings.build());
    let answer = client.get_secret_value().secret_id(arn).send().await.map_err(|error| Error::Busy(Box::new(error)))?;
    let text = answer.secret_string().ok_or_else(|| Error::fault("the secret has no text"))?;
    // The parser's message could quote the secret.
    serde_json::from_str(text).map_err(|_| Error::fault("the secret is not a database secret"))
}
