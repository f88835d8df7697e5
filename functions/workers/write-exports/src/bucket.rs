//! The bucket that files go to, as uploads in parts. The client is put together by hand, and only when the first part
//! is sent, as that of the queues.

use std::sync::OnceLock;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Region, RequestChecksumCalculation};
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use domain::{Error, Result};
use edge::config::ConfigError;
use edge::{Config, Environment};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// One attempt: a part of 8 MiB takes less than a second within a region.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// All attempts. Far less than `EXPORT_PART_TIME` and `EXPORT_CLAIM`.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(40);
const ATTEMPTS_MAX: u32 = 3;

/// What S3 says of an upload that it does not know, or whose parts are not those that it has.
const GONE: [&str; 4] = ["NoSuchUpload", "InvalidPart", "InvalidPartOrder", "EntityTooSmall"];

/// A bucket.
#[derive(Debug)]
pub struct Bucket {
    client: OnceLock<Client>,
    name: String,
    region: String,
    endpoint_url: Option<String>,
    credentials: Credentials,
}

/// What an upload answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept<T> {
    /// It was done.
    Yes(T),
    /// The upload is over, or not what we think: only another one helps.
    Gone,
}

impl Bucket {
    /// The bucket that TIRADA_EXPORTS_BUCKET names. Nothing is connected yet.
    ///
    /// # Errors
    /// [`ConfigError::Missing`]: the variable, the region, or credentials.
    pub fn from_config(config: &Config, environment: &Environment) -> Result<Self, ConfigError> {
        Ok(Self {
            client: OnceLock::new(),
            name: environment.required("TIRADA_EXPORTS_BUCKET")?,
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

    /// Begins an upload; its id.
    pub(crate) async fn begin(&self, key: &str, media_type: &str, file_name: &str) -> Result<String> {
        let begun = self
            .client()
            .create_multipart_upload()
            .bucket(&self.name)
            .key(key)
            .content_type(media_type)
            .content_disposition(format!("attachment; filename=\"{file_name}\""))
            .send()
            .await
            .map_err(|error| busy("an upload was not begun", &error))?;
        begun.upload_id().map(str::to_owned).ok_or_else(|| Error::fault("an upload without an id"))
    }

    /// Uploads a part; what S3 calls its content. The same number again replaces it.
    pub(crate) async fn put_part(
        &self,
        key: &str,
        upload_id: &str,
        number: i32,
        bytes: Vec<u8>,
    ) -> Result<Kept<String>> {
        let put = self
            .client()
            .upload_part()
            .bucket(&self.name)
            .key(key)
            .upload_id(upload_id)
            .part_number(number)
            .body(ByteStream::from(bytes));
        match put.send().await {
            Ok(part) => {
                let etag = part.e_tag().ok_or_else(|| Error::fault("a part without an ETag"))?;
                Ok(Kept::Yes(etag.to_owned()))
            }
            Err(error) if is_gone(&error) => Ok(Kept::Gone),
            Err(error) => Err(busy("a part was not uploaded", &error)),
        }
    }

    /// Makes an object of the parts.
    pub(crate) async fn complete(&self, key: &str, upload_id: &str, etags: &[String]) -> Result<Kept<()>> {
        let part = |(etag, number): (&String, i32)| CompletedPart::builder().part_number(number).e_tag(etag).build();
        let parts = etags.iter().zip(1..).map(part).collect();
        let upload = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
        let complete = self.client().complete_multipart_upload().bucket(&self.name).key(key).upload_id(upload_id);
        match complete.multipart_upload(upload).send().await {
            Ok(_) => Ok(Kept::Yes(())),
            Err(error) if is_gone(&error) => Ok(Kept::Gone),
            Err(error) => Err(busy("an upload was not completed", &error)),
        }
    }

    /// Whether there is an object. Its key is an export's own, so that it can only be that export's file.
    pub(crate) async fn has(&self, key: &str) -> Result<bool> {
        match self.client().head_object().bucket(&self.name).key(key).send().await {
            Ok(_) => Ok(true),
            // Without the right to list a bucket what is not there is forbidden.
            Err(error) if error.raw_response().is_some_and(|raw| matches!(raw.status().as_u16(), 403 | 404)) => {
                Ok(false)
            }
            Err(error) => Err(busy("the bucket did not say whether a file is there", &error)),
        }
    }

    /// Throws the parts of an upload away. The bucket does it by itself a day later.
    pub(crate) async fn abort(&self, key: &str, upload_id: &str) {
        let abort = self.client().abort_multipart_upload().bucket(&self.name).key(key).upload_id(upload_id);
        if let Err(error) = abort.send().await.map_err(|error| busy("an upload was not aborted", &error)) {
            tracing::warn!(error.message = error.chain(), "parts stay in the bucket for a day");
        }
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
                // A checksum of each part would have to be kept and named again when the upload is completed.
                .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
                // An address that is no AWS one has no host names for buckets.
                .force_path_style(self.endpoint_url.is_some());
            settings.set_endpoint_url(self.endpoint_url.clone());
            Client::from_conf(settings.build())
        })
    }
}

fn is_gone(error: &impl ProvideErrorMetadata) -> bool {
    error.code().is_some_and(|code| GONE.contains(&code))
}

/// Only the code of the error: its text may quote the request.
fn busy(what: &str, error: &impl ProvideErrorMetadata) -> Error {
    Error::busy(format!("{what}: S3: {}", error.code().unwrap_or("no answer")))
}
