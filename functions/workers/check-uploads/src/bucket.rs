//! The bucket that uploads are in: reads them, publishes them, deletes them. The client is put together by hand, and
//! only when the first upload is read, as that of the queues.

use std::sync::OnceLock;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Region, RequestChecksumCalculation};
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::types::MetadataDirective;
use domain::{Error, Result};
use edge::config::ConfigError;
use edge::{Config, Environment};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// All attempts; three calls of it fit into `UPLOAD_TIME`.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(9);
const ATTEMPTS_MAX: u32 = 3;

/// Images never change under their key.
const CACHED: &str = "public, max-age=31536000, immutable";

/// A bucket.
#[derive(Debug)]
pub struct Bucket {
    client: OnceLock<Client>,
    name: String,
    region: String,
    endpoint_url: Option<String>,
    credentials: Credentials,
}

/// What lies under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// More than was asked for.
    TooMuch,
    /// These bytes.
    Bytes {
        /// All of them.
        bytes: Vec<u8>,
        /// What the bucket calls this content, to tell it from what may be sent later.
        etag: String,
    },
}

impl Bucket {
    /// The bucket that TIRADA_UPLOADS_BUCKET names. Nothing is connected yet.
    ///
    /// # Errors
    /// [`ConfigError::Missing`]: the variable, the region, or credentials.
    pub fn from_config(config: &Config, environment: &Environment) -> Result<Self, ConfigError> {
        Ok(Self {
            client: OnceLock::new(),
            name: environment.required("TIRADA_UPLOADS_BUCKET")?,
            region: config.region.clone().ok_or_else(|| ConfigError::Missing("AWS_REGION".into()))?,
            endpoint_url: config.bucket_endpoint_url(environment),
            credentials: edge::iam::credentials(environment)?,
        })
    }

    /// A bucket at an address.
    #[must_use]
    pub fn at(name: &str, endpoint_url: String, credentials: Credentials) -> Self {
        Self {
            client: OnceLock::new(),
            name: name.to_owned(),
            region: "us-east-1".to_owned(),
            endpoint_url: Some(endpoint_url),
            credentials,
        }
    }

    /// Reads an object of so many bytes at most.
    pub(crate) async fn read(&self, key: &str, bytes_max: u64) -> Result<Found> {
        let object = match self.client().get_object().bucket(&self.name).key(key).send().await {
            Ok(object) => object,
            // Without the right to list a bucket what is not there is forbidden.
            Err(error) if error.raw_response().is_some_and(|raw| matches!(raw.status().as_u16(), 403 | 404)) => {
                return Ok(Found::Nothing);
            }
            Err(error) => return Err(busy("an upload was not read", &error)),
        };
        let size = object.content_length().and_then(|size| u64::try_from(size).ok());
        if size.is_none_or(|size| size > bytes_max) {
            return Ok(Found::TooMuch);
        }
        let etag = object.e_tag().ok_or_else(|| Error::fault("an object without an ETag"))?.to_owned();
        let bytes = object.body.collect().await.map_err(|_| Error::busy("an upload was not read to its end"))?;
        Ok(Found::Bytes { bytes: bytes.to_vec(), etag })
    }

    /// Copies an object that was read to where everybody sees it, as of this media type. False when other bytes have
    /// come in the meantime.
    pub(crate) async fn publish(&self, from: &str, etag: &str, to: &str, media_type: &str) -> Result<bool> {
        let copy = self
            .client()
            .copy_object()
            .bucket(&self.name)
            .key(to)
            .copy_source(format!("{}/{from}", self.name))
            .copy_source_if_match(etag)
            .metadata_directive(MetadataDirective::Replace)
            .content_type(media_type)
            .cache_control(CACHED)
            .content_disposition("inline");
        match copy.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("PreconditionFailed") => Ok(false),
            Err(error) => Err(busy("an image was not published", &error)),
        }
    }

    /// Deletes an object, if it is there.
    pub(crate) async fn delete(&self, key: &str) -> Result<()> {
        let delete = self.client().delete_object().bucket(&self.name).key(key);
        delete.send().await.map_err(|error| busy("an upload was not deleted", &error))?;
        Ok(())
    }

    fn client(&self) -> &Client {
        self.client.get_or_init(|| {
            let timeouts = TimeoutConfig::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                .operation_timeout(OPERATION_TIMEOUT)
                .build();
            let mut settings = aws_sdk_s3::Config::builder()
                .behavior_version(BehaviorVersion::latest())
                .region(Region::new(self.region.clone()))
                .credentials_provider(self.credentials.clone())
                .timeout_config(timeouts)
                .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS_MAX))
                .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
                // An address that is no AWS one has no host names for buckets.
                .force_path_style(self.endpoint_url.is_some());
            settings.set_endpoint_url(self.endpoint_url.clone());
            Client::from_conf(settings.build())
        })
    }
}

/// Only the code of the error: its text may quote the request.
fn busy(what: &str, error: &impl ProvideErrorMetadata) -> Error {
    Error::busy(format!("{what}: S3: {}", error.code().unwrap_or("no answer")))
}
