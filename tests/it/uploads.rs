//! Images that staff upload: what becomes public, and what does not.

use std::sync::Arc;
use std::time::Duration;

use domain::messages::{Queue, UploadMessage};
use domain::roles::Role;
use domain::uploads::{Image, public_key, quarantine_key};
use edge::Deadline;
use edge::queue::MessageQueue;
use serde_json::{Value, json};
use tests::bucket::FakeBucket;
use tests::chain::Chain;
use tests::http::{Api, admin_with, is};
use tests::look::{change, count};
use tests::queue::drain;
use tests::randomness;
use tests::staff::{Member, Office};
use uuid::Uuid;

/// A picture of one dot.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\
    \x00\x00\x00\x0aIDAT\x78\x9c\x63\x00\x01\x00\x00\x05\x00\x01\x0d\x0a\x2d\xb4\x00\x00\x00\x00IEND\xae\x42\x60\x82";
const PAGE: &[u8] = b"<!doctype html><html><body><script>alert(document.domain)</script></body></html>";
const DRAWING: &[u8] = b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"><circle r=\"9\"/></svg>";

/// A store with somebody who describes its products, and a bucket.
struct Gallery {
    office: Office,
    member: Member,
    api: Api,
    chain: Chain,
    bucket: FakeBucket,
}

impl Gallery {
    async fn open() -> Self {
        let office = Office::open().await;
        let member = office.hire(Role::Operator).await;
        let chain = Chain::new(&office.database, 1, 10, randomness::seed());
        let bucket = FakeBucket::start().await;
        let api = admin_with(office.database.app(2), &bucket.endpoint());
        Self { office, member, api, chain, bucket }
    }

    /// Begins the upload of a PNG; what is shown of it.
    async fn begin(&self) -> Value {
        let body = json!({ "media_type": "image/png" });
        let answer = self.member.send(&self.api, "POST", "/v1/admin/uploads", &body).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        assert_eq!(answer.header("cache-control"), "no-store");
        answer.json()
    }

    async fn show(&self, id: Uuid) -> Value {
        let answer = self.member.get(&self.api, &format!("/v1/admin/uploads/{id}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn quarantined(&self, id: Uuid) -> String {
        quarantine_key(self.office.tenant_id, id)
    }

    fn published(&self, id: Uuid) -> String {
        public_key(self.office.tenant_id, id, Image::Png)
    }

    /// Sends bytes as the form of an upload would, and tells as the bucket does.
    async fn send(&self, id: Uuid, bytes: &[u8]) {
        self.bucket.send(&self.quarantined(id), bytes, "image/png");
        self.tell(&self.quarantined(id));
        self.work().await;
    }

    fn tell(&self, key: &str) {
        let body = json!({ "Records": [{ "s3": { "bucket": { "name": "b" }, "object": { "key": key } } }] });
        self.chain.queues.put_body(Queue::CheckUploads, body.to_string(), String::new());
    }

    async fn work(&self) {
        let queue = Arc::clone(&self.chain.queues) as Arc<dyn MessageQueue>;
        let state = check_uploads::State::new(self.office.database.app(2), self.bucket.looker(), queue);
        let state = Arc::new(state);
        let handle = move |event| {
            let state = Arc::clone(&state);
            async move { check_uploads::handle(&state, event, Deadline::after(Duration::from_secs(52))).await }
        };
        drain(&self.chain.queues, Queue::CheckUploads, 2, 10, handle).await;
    }
}

fn id_of(upload: &Value) -> Uuid {
    upload["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_becomes_public_once() {
    let gallery = Gallery::open().await;
    let upload = gallery.begin().await;
    let id = id_of(&upload);
    assert_eq!((&upload["state"], &upload["path"]), (&json!("waiting"), &json!(null)));
    let form = &upload["form"];
    assert_eq!(form["fields"]["key"], json!(gallery.quarantined(id)), "the key is ours to choose");
    assert_eq!(form["fields"]["Content-Type"], "image/png");
    assert_eq!((&form["bytes_min"], &form["bytes_max"]), (&json!(64), &json!(5_242_880)));
    gallery.send(id, PNG).await;
    let shown = gallery.show(id).await;
    assert_eq!(
        (&shown["state"], &shown["bytes"], &shown["form"]),
        (&json!("accepted"), &json!(PNG.len()), &json!(null))
    );
    assert_eq!(shown["path"], json!(format!("/{}", gallery.published(id))));
    let files = gallery.bucket.files();
    let file = &files[&gallery.published(id)];
    assert_eq!(
        (file.bytes.as_slice(), file.media_type.as_str(), file.disposition.as_str()),
        (PNG, "image/png", "inline")
    );
    assert_eq!(files.len(), 1, "nothing is left in quarantine");
    // The form is good for five minutes, and what comes by it later is not heard.
    gallery.send(id, PAGE).await;
    gallery.send(id, &[PNG, PAGE].concat()).await;
    assert_eq!(gallery.bucket.files(), files);
    assert_eq!(gallery.show(id).await["state"], "accepted");
    gallery.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_image_is_deleted_unseen() {
    let gallery = Gallery::open().await;
    let jpeg = [&b"\xff\xd8\xff\xe0"[..], &[0; 80], b"\xff\xd9"].concat();
    let large = vec![0; 5 * 1_024 * 1_024 + 1];
    // The same picture, which says that it is 65,535 pixels wide and high.
    let bomb = [&PNG[..16], b"\x00\x00\xff\xff\x00\x00\xff\xff", &PNG[24..]].concat();
    let cases: [(&[u8], &str); 9] = [
        (PAGE, "wrong-kind"),
        (DRAWING, "wrong-kind"),
        (&jpeg, "wrong-kind"),
        (&[PNG, PAGE].concat(), "more-than-an-image"),
        (&[PNG, b"PK\x03\x04"].concat(), "more-than-an-image"),
        (&bomb, "too-many-pixels"),
        (&PNG[..20], "wrong-size"),
        (b"", "wrong-size"),
        (&large, "wrong-size"),
    ];
    for (bytes, refusal) in cases {
        let id = id_of(&gallery.begin().await);
        gallery.send(id, bytes).await;
        let shown = gallery.show(id).await;
        assert_eq!((&shown["state"], &shown["refusal"]), (&json!("rejected"), &json!(refusal)), "{refusal}");
        assert_eq!((&shown["path"], &shown["form"]), (&json!(null), &json!(null)));
        assert_eq!(gallery.bucket.files().len(), 0, "{refusal}");
        gallery.send(id, PNG).await;
        assert_eq!(gallery.show(id).await["state"], "rejected", "what was decided stays");
    }
    gallery.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_come_between_a_look_and_its_end_are_looked_at_too() {
    let gallery = Gallery::open().await;
    let id = id_of(&gallery.begin().await);
    gallery.bucket.send_in_between(&[PNG, PAGE].concat());
    gallery.send(id, PNG).await;
    let shown = gallery.show(id).await;
    assert_eq!((&shown["state"], &shown["refusal"]), (&json!("rejected"), &json!("more-than-an-image")));
    assert_eq!(gallery.bucket.files().len(), 0);
    gallery.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_bucket_does_not_tell_is_looked_at_all_the_same() {
    let gallery = Gallery::open().await;
    let (silent, empty) = (id_of(&gallery.begin().await), id_of(&gallery.begin().await));
    gallery.bucket.send(&gallery.quarantined(silent), PNG, "image/png");
    assert_eq!(gallery.chain.reconcile().await.uploads, 0, "their time is not over");
    let over = "update uploads set expires_at = now() - interval '2 minutes', look_at = now()";
    change(&gallery.office.database, over, 2).await;
    assert_eq!(gallery.show(empty).await["form"], json!(null), "the form is no longer good");
    assert_eq!(gallery.chain.reconcile().await.uploads, 2);
    gallery.work().await;
    assert_eq!(gallery.show(silent).await["state"], "accepted");
    assert_eq!(gallery.show(empty).await["state"], "expired");
    assert_eq!(gallery.chain.reconcile().await.uploads, 0);
    gallery.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_keys_and_other_stores_are_nothing_to_us() {
    let gallery = Gallery::open().await;
    let id = id_of(&gallery.begin().await);
    let elsewhere = quarantine_key(Uuid::now_v7(), id);
    for key in ["quarantine/x", "public/x.png", &elsewhere] {
        gallery.bucket.send(key, PNG, "image/png");
        gallery.tell(key);
    }
    gallery.work().await;
    assert_eq!(gallery.show(id).await["state"], "waiting");
    let left: Vec<String> = gallery.bucket.files().into_keys().collect();
    assert_eq!(left, ["public/x.png", "quarantine/x"], "an upload that nobody began is deleted");
    let message = UploadMessage::new(Uuid::now_v7(), id);
    let body = serde_json::to_string(&message).unwrap();
    gallery.chain.queues.put_body(Queue::CheckUploads, body, message.tenant_id.to_string());
    gallery.work().await;
    assert_eq!(gallery.show(id).await["state"], "waiting");
    assert_eq!(gallery.chain.queues.dead(Queue::CheckUploads), Vec::<String>::new());
    gallery.office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_begun_once_per_key_and_only_for_images() {
    let gallery = Gallery::open().await;
    let begin = async |key: &str, media_type: &str| {
        let body = json!({ "media_type": media_type });
        gallery.member.send_under(&gallery.api, key, "POST", "/v1/admin/uploads", &body).await
    };
    let (first, again) = (begin("a", "image/png").await, begin("a", "image/png").await);
    assert_eq!((first.status, first.is_replay(), again.status, again.is_replay()), (201, false, 201, true));
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(first.json()["expires_at"], again.json()["expires_at"], "asking again buys no time");
    assert_eq!(begin("a", "image/webp").await.refusal(), is(422, "key-reused"));
    // Its key is forgotten after a day, what was made under it is not.
    change(&gallery.office.database, "delete from idempotency_keys", 1).await;
    assert_eq!(begin("a", "image/png").await.refusal(), is(422, "key-reused"));
    for bad in ["image/svg+xml", "text/html", "image/gif", "image/png; charset=utf-8", "IMAGE/PNG", ""] {
        assert_eq!(begin("b", bad).await.refusal(), is(422, "invalid"), "{bad}");
    }
    assert_eq!(count(&gallery.office.database, "select count(*) from uploads").await, 1);
    let logged = "select count(*) from audit_log where action = 'begin_upload' and subject = 'upload'";
    assert_eq!(count(&gallery.office.database, logged).await, 1);
    let unknown = gallery.member.get(&gallery.api, &format!("/v1/admin/uploads/{}", Uuid::now_v7())).await;
    assert_eq!(unknown.refusal(), is(404, "not-found"));
    gallery.office.database.finish().await;
}
