//! Buckets, as far as they are signed for and not talked to: links to files that somebody else fetches, and forms by
//! which somebody else uploads them.
//!
//! No call to anybody. Who talks to a bucket has a client of its own.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use domain::{Error, Result};
use serde_json::json;

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
            endpoint_url: config.bucket_endpoint_url(environment),
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

    /// A form by which anybody can upload one object under exactly this key, of exactly this media type, of so many
    /// bytes, until then. The bucket refuses everything else, by the policy that is signed here.
    ///
    /// # Errors
    /// [`Error::Fault`] for a moment that cannot be written.
    pub fn form(
        &self,
        key: &str,
        media_type: &str,
        bytes: &RangeInclusive<u64>,
        until: SystemTime,
        now: SystemTime,
    ) -> Result<Form> {
        let date = moment(now)?.replace(['-', ':'], "");
        let day = date.get(..8).unwrap_or_default();
        let credential = format!("{}/{day}/{}/s3/aws4_request", self.credentials.access_key_id(), self.region);
        let mut fields = vec![
            ("key", key.to_owned()),
            ("Content-Type", media_type.to_owned()),
            ("x-amz-algorithm", "AWS4-HMAC-SHA256".to_owned()),
            ("x-amz-credential", credential),
            ("x-amz-date", date.clone()),
        ];
        if let Some(token) = self.credentials.session_token() {
            fields.push(("x-amz-security-token", token.to_owned()));
        }
        let mut conditions =
            vec![json!({ "bucket": self.name }), json!(["content-length-range", bytes.start(), bytes.end()])];
        conditions.extend(fields.iter().map(|(name, value)| json!(["eq", format!("${name}"), value])));
        let policy = json!({ "expiration": moment(until)?, "conditions": conditions }).to_string();
        let policy = aws_smithy_types::base64::encode(policy);
        let signature = self.signature(&policy, now);
        fields.extend([("policy", policy), ("x-amz-signature", signature)]);
        Ok(Form { url: self.url(), fields })
    }

    fn signature(&self, policy: &str, now: SystemTime) -> String {
        let key = v4::generate_signing_key(self.credentials.secret_access_key(), now, &self.region, "s3");
        v4::calculate_signature(key, policy.as_bytes())
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

/// A form, to be sent as `multipart/form-data` with these fields first and the file last, as `file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Where it is sent, by POST.
    pub url: String,
    /// Its fields.
    pub fields: Vec<(&'static str, String)>,
}

/// A moment to the second, ISO 8601 in UTC.
fn moment(at: SystemTime) -> Result<String> {
    let seconds = at.duration_since(UNIX_EPOCH).map_err(Error::fault)?.as_secs();
    let seconds = i64::try_from(seconds).map_err(Error::fault)?;
    DateTime::from_secs(seconds).fmt(Format::DateTime).map_err(Error::fault)
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
    fn a_policy_is_signed_as_in_the_documentation_of_s3() {
        // "Example: Browser-Based Upload using HTTP POST", for 2015-12-29T00:00:00Z; its lines end with CRLF.
        let policy = [
            r#"{ "expiration": "2015-12-30T12:00:00.000Z","#,
            r#"  "conditions": ["#,
            r#"    {"bucket": "sigv4examplebucket"},"#,
            r#"    ["starts-with", "$key", "user/user1/"],"#,
            r#"    {"acl": "public-read"},"#,
            r#"    {"success_action_redirect": "http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html"},"#,
            r#"    ["starts-with", "$Content-Type", "image/"],"#,
            r#"    {"x-amz-meta-uuid": "14365123651274"},"#,
            r#"    {"x-amz-server-side-encryption": "AES256"},"#,
            r#"    ["starts-with", "$x-amz-meta-tag", ""],"#,
            "",
            r#"    {"x-amz-credential": "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"},"#,
            r#"    {"x-amz-algorithm": "AWS4-HMAC-SHA256"},"#,
            r#"    {"x-amz-date": "20151229T000000Z" }"#,
            "  ]",
            "}",
        ];
        let policy = aws_smithy_types::base64::encode(policy.join("\r\n"));
        assert!(policy.starts_with("eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiLA0K"), "{policy}");
        let bucket = Bucket::new("sigv4examplebucket", "us-east-1", None, keys(None));
        assert_eq!(
            bucket.signature(&policy, at(1_451_347_200)),
            "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e"
        );
    }

    #[test]
    fn a_form_allows_one_key_one_type_and_a_size() {
        let bucket = Bucket::new("images", "us-east-1", None, keys(Some("token")));
        let now = at(1_451_347_200);
        let form =
            bucket.form("quarantine/a/b", "image/png", &(64..=1_000), now + Duration::from_secs(300), now).unwrap();
        assert_eq!(form.url, "https://images.s3.us-east-1.amazonaws.com");
        let field = |wanted: &str| {
            form.fields.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone()).unwrap()
        };
        let policy = aws_smithy_types::base64::decode(field("policy")).unwrap();
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&policy).unwrap(),
            json!({
                "expiration": "2015-12-29T00:05:00Z",
                "conditions": [
                    { "bucket": "images" },
                    ["content-length-range", 64, 1_000],
                    ["eq", "$key", "quarantine/a/b"],
                    ["eq", "$Content-Type", "image/png"],
                    ["eq", "$x-amz-algorithm", "AWS4-HMAC-SHA256"],
                    ["eq", "$x-amz-credential", "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"],
                    ["eq", "$x-amz-date", "20151229T000000Z"],
                    ["eq", "$x-amz-security-token", "token"],
                ],
            })
        );
        assert_eq!(field("x-amz-signature"), bucket.signature(&field("policy"), now));
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
