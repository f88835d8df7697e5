//! Files at the deployed stack: an export is written and fetched; the bucket of uploads takes what a form allows and
//! nothing else, and what it takes is looked at.

use std::time::{Duration, Instant, SystemTime};

use aws_credential_types::Credentials;
use domain::roles::Role;
use domain::uploads::quarantine_key;
use edge::storage::Bucket;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cloud::{Cloud, variable};

/// The schedule sends messages of exports once a minute.
const PATIENCE: Duration = Duration::from_secs(90);

/// A picture of one dot.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\
    \x00\x00\x00\x0aIDAT\x78\x9c\x63\x00\x01\x00\x00\x05\x00\x01\x0d\x0a\x2d\xb4\x00\x00\x00\x00IEND\xae\x42\x60\x82";
const PAGE: &[u8] = b"<!doctype html><html><body><script>alert(document.domain)</script></body></html>";
const DRAWING: &[u8] = b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"><circle r=\"9\"/></svg>";

/// Reads until a state that is not one of these.
async fn left(cloud: &Cloud, bearer: &str, path: &str, states: &[&str]) -> Value {
    let began = Instant::now();
    loop {
        let answer = cloud.as_staff(bearer, path, None).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let shown = answer.json();
        if !states.contains(&shown["state"].as_str().unwrap()) {
            return shown;
        }
        assert!(began.elapsed() < PATIENCE, "still {shown}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_written_and_fetched() {
    let cloud = Cloud::open().await;
    let buyer = cloud.buyer();
    let order = cloud.place(&buyer, "k", &json!({ "numbers": [42] })).await.order();
    cloud.until(&buyer, order, "reserved").await;
    let bearer = cloud.hire(Role::Finance).await;
    let path = format!("/v1/admin/products/{}/exports", cloud.product_id());
    for (format, begins) in [("csv", &b"\xef\xbb\xbf\"N"[..]), ("xlsx", &b"PK\x03\x04"[..])] {
        let body = json!({ "kind": "numbers", "format": format, "language": "es" });
        let asked = cloud.as_staff(&bearer, &path, Some(&body)).await;
        assert_eq!(asked.status, 202, "{asked:?}");
        let location = asked.headers["location"].to_str().unwrap().to_owned();
        let shown = left(&cloud, &bearer, &location, &["queued", "writing"]).await;
        assert_eq!((&shown["state"], &shown["rows"]), (&json!("ready"), &json!(1)), "{shown}");
        let link = shown["download"].as_str().unwrap();
        let file = cloud.fetch(link).await;
        assert_eq!((file.status, file.body.starts_with(begins)), (200, true), "{format}");
        assert_eq!(json!(file.body.len()), shown["bytes"]);
        let disposition = file.headers["content-disposition"].to_str().unwrap();
        assert!(disposition.starts_with("attachment; filename=\"numbers-"), "{disposition}");
        let forged = link.replace(&location[location.len() - 12..], "000000000000");
        assert_ne!(cloud.fetch(&forged).await.status, 200, "the link is for one file");
    }
    cloud.finish().await;
}

type Fields = Vec<(String, String)>;

/// A form as fields, with some of them changed.
fn fields(form: &Value, changes: &[(&str, &str)]) -> Fields {
    let all = form["fields"].as_object().unwrap().iter();
    let value = |name: &str, value: &Value| {
        let change = changes.iter().find(|(changed, _)| *changed == name);
        change.map_or_else(|| value.as_str().unwrap().to_owned(), |(_, to)| (*to).to_owned())
    };
    all.map(|(name, old)| (name.clone(), value(name, old))).collect()
}

async fn begin(cloud: &Cloud, bearer: &str) -> (Uuid, Value) {
    let body = json!({ "media_type": "image/png" });
    let begun = cloud.as_staff(bearer, "/v1/admin/uploads", Some(&body)).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    let upload = begun.json();
    (upload["id"].as_str().unwrap().parse().unwrap(), upload["form"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_allows_one_image_and_nothing_else() {
    let cloud = Cloud::open().await;
    let bearer = cloud.hire(Role::Operator).await;
    let (id, form) = begin(&cloud, &bearer).await;
    let url = form["url"].as_str().unwrap();
    let large = vec![0; 5 * 1_024 * 1_024 + 1];
    let refused: [(&str, Fields, &[u8]); 6] = [
        ("another type", fields(&form, &[("Content-Type", "text/html")]), PNG),
        ("another drawing", fields(&form, &[("Content-Type", "image/svg+xml")]), DRAWING),
        ("another key", fields(&form, &[("key", "public/picture.png")]), PNG),
        ("another upload", fields(&form, &[("key", &quarantine_key(cloud.tenant, Uuid::now_v7()))]), PNG),
        ("too short", fields(&form, &[]), &PNG[..20]),
        ("too long", fields(&form, &[]), &large),
    ];
    for (what, fields, file) in refused {
        let status = cloud.send_form(url, &fields, file).await;
        assert!((400..500).contains(&status), "{what}: {status}");
    }
    let (base, bucket) = url.rsplit_once('/').unwrap();
    let elsewhere = format!("{base}/{}", bucket.replace("-uploads-", "-exports-"));
    assert_ne!(elsewhere, url);
    let status = cloud.send_form(&elsewhere, &fields(&form, &[]), PNG).await;
    assert!((400..500).contains(&status), "another bucket: {status}");
    let keys = Credentials::new("test", "test", None, None, "tests");
    let signer = Bucket::new(bucket, "us-east-1", Some(variable("AWS_ENDPOINT_URL")), keys);
    let (second, past) = (Duration::from_secs(1), SystemTime::now() - Duration::from_secs(301));
    let key = quarantine_key(cloud.tenant, id);
    let old = signer.form(&key, "image/png", &(64..=1_000), SystemTime::now() - second, past).unwrap();
    let old: Fields = old.fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let status = cloud.send_form(url, &old, PNG).await;
    assert!((400..500).contains(&status), "expired: {status}");

    assert_eq!(cloud.send_form(url, &fields(&form, &[]), PNG).await, 204);
    let path = format!("/v1/admin/uploads/{id}");
    let shown = left(&cloud, &bearer, &path, &["waiting"]).await;
    assert_eq!((&shown["state"], &shown["bytes"]), (&json!("accepted"), &json!(PNG.len())));
    // The form is still good, and nobody listens.
    assert_eq!(cloud.send_form(url, &fields(&form, &[]), PAGE).await, 204);
    assert_eq!(cloud.as_staff(&bearer, &path, None).await.json()["state"], "accepted");
    cloud.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_claims_to_be_an_image_is_rejected() {
    let cloud = Cloud::open().await;
    let bearer = cloud.hire(Role::Operator).await;
    let both = [PNG, PAGE].concat();
    for (file, refusal) in [(PAGE, "wrong-kind"), (DRAWING, "wrong-kind"), (both.as_slice(), "more-than-an-image")] {
        let (id, form) = begin(&cloud, &bearer).await;
        assert_eq!(cloud.send_form(form["url"].as_str().unwrap(), &fields(&form, &[]), file).await, 204);
        let shown = left(&cloud, &bearer, &format!("/v1/admin/uploads/{id}"), &["waiting"]).await;
        assert_eq!((&shown["state"], &shown["refusal"]), (&json!("rejected"), &json!(refusal)));
        assert_eq!(shown["path"], json!(null));
    }
    cloud.finish().await;
}
