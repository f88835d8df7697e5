//! Buckets, as far as they are signed for and not talked to: links to files that somebody else fetches.
//!
//! No call to anybody. Who talks to a bucket has a client of its own.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use domain::{Error, Result};

use crate::config::Config;
use crate::environment::{ConfigError, Environment};
use crate::iam::encoded;

/// A bucket and what is signed with.
#[derive(Debug, Clone)]
pub struct Bucket {
    name: String,
    region: String,
    endpoint_url: Option<String>,
    credentials: Credentials,
}

impl Bucket {
    /// The bucket that a variable names.
    ///
    /// # Errors
    /// [`ConfigError::Missing`]: the variable, the region, or credentials.
    pub fn from_config(config: &Config, environment: &Environment, variable: &str) -> Result<Self, ConfigError> {
        Ok(Self {
            name: environment.required(variable)?,
            region: config.region.clone().ok_or_else(|| ConfigError::Missing("AWS_REGION".into()))?,
            endpoint_url: config.endpoint_url.clone(),
            credentials: crate::iam::credentials(environment)?,
        })
    }

    /// A bucket. Without an address it is where AWS has it.
    #[must_use]
    pub fn new(name: &str, region: &str, endpoint_url: Option<String>, credentials: Credentials) -> Self {
        Self { name: name.to_owned(), region: region.to_owned(), endpoint_url, credentials }
    }

    /// Where the bucket is, without a slash at the end.
    fn url(&self) -> String {
        match &self.endpoint_url {
            Some(url) => format!("{}/{}", url.trim_end_matches('/'), self.name),
            None => format!("https://{}.s3.{}.amazonaws.com", self.name, self.region),
        }
    }

    /// A link by which anybody can fetch an object for so long, if it is there.
    ///
    /// # Errors
    /// [`Error::Fault`] when it cannot be signed.
    pub fn link(&self, key: &str, lives: Duration, now: SystemTime) -> Result<String> {
        let path: Vec<String> = key.split('/').map(encoded).collect();
        self.signed(format!("{}/{}", self.url(), path.join("/")), lives, now)
    }

    fn signed(&self, mut url: String, lives: Duration, now: SystemTime) -> Result<String> {
        let mut settings = SigningSettings::default();
        settings.expires_in = Some(lives);
        settings.signature_location = SignatureLocation::QueryParams;
        // S3 takes paths as they are sent.
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let identity = self.credentials.clone().into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(self.region.as_str())
            .name("s3")
            .time(now)
            .settings(settings)
            .build()
            .map_err(|error| Error::Fault(Box::new(error)))?
            .into();
        let request = SignableRequest::new("GET", &url, std::iter::empty(), SignableBody::UnsignedPayload)
            .map_err(|error| Error::Fault(Box::new(error)))?;
        let (instructions, _) = sign(request, &parameters).map_err(|error| Error::Fault(Box::new(error)))?.into_parts();
        let mut mark = '?';
        for (name, value) in instructions.params() {
            url.push_str(&format!("{mark}{name}={}", encoded(value)));
            mark = '&';
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of AWS's own examples.
    fn keys(session: Option<&str>) -> Credentials {
        Credentials::new(
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            session.map(str::to_owned),
            None,
            "test",
        )
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_link_equals_the_one_in_the_documentation_of_s3() {
        // "Authenticating Requests: Using Query Parameters", for 2013-05-24T00:00:00Z.
        let bucket = Bucket::new("examplebucket", "us-east-1", None, keys(None));
        let url = "https://examplebucket.s3.amazonaws.com/test.txt".to_owned();
        let link = bucket.signed(url, Duration::from_secs(86_400), at(1_369_353_600)).unwrap();
        let (start, query) = link.split_once('?').unwrap();
        let mut parameters: Vec<&str> = query.split('&').collect();
        parameters.sort_unstable();
        assert_eq!(start, "https://examplebucket.s3.amazonaws.com/test.txt");
        assert_eq!(
            parameters,
            [
                "X-Amz-Algorithm=AWS4-HMAC-SHA256",
                "X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request",
                "X-Amz-Date=20130524T000000Z",
                "X-Amz-Expires=86400",
                "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
                "X-Amz-SignedHeaders=host",
            ]
        );
    }

    #[test]
    fn a_link_leads_to_where_the_bucket_is() {
        let aws = Bucket::new("files", "sa-east-1", None, keys(Some("session/token==")));
        let link = aws.link("exports/a b.csv", Duration::from_secs(300), at(1_369_353_600)).unwrap();
        assert!(link.starts_with("https://files.s3.sa-east-1.amazonaws.com/exports/a%20b.csv?"), "{link}");
        assert!(link.contains("X-Amz-Security-Token=session%2Ftoken%3D%3D") && link.contains("X-Amz-Expires=300"));
        let local = Bucket::new("files", "us-east-1", Some("http://127.0.0.1:4566/".into()), keys(None));
        let link = local.link("exports/a.csv", Duration::from_secs(300), at(1_369_353_600)).unwrap();
        assert!(link.starts_with("http://127.0.0.1:4566/files/exports/a.csv?X-Amz-"), "{link}");
        assert!(!format!("{local:?}").contains("wJalrXUtnFEMI"));
    }
}
