//! Files that staff take away: what is in them, and that they come to be whatever happens meanwhile.

mod cells;
mod erased;
mod requests;
mod resume;
mod workbooks;

use std::sync::Arc;
use std::time::Duration;

use domain::messages::Queue;
use domain::roles::Role;
use edge::Deadline;
use edge::queue::MessageQueue;
use serde_json::{Value, json};
use store::catalog::Product;
use tests::bucket::{FakeBucket, File};
use tests::chain::Chain;
use tests::http::{Api, admin_with};
use tests::queue::drain;
use tests::randomness;
use tests::seed::{exact, order, product};
use tests::staff::{Member, Office};
use uuid::Uuid;

const PHONE: &str = "+34600000001";

/// What one invocation of the worker has.
const BUDGET: Duration = Duration::from_secs(290);

/// A store with a product of six digits, somebody who looks after its money, and a bucket.
struct Archive {
    office: Office,
    member: Member,
    api: Api,
    product: Product,
    chain: Chain,
    bucket: FakeBucket,
    part_bytes: usize,
}

impl Archive {
    async fn open() -> Self {
        let office = Office::open().await;
        let member = office.hire(Role::Finance).await;
        let made = product(office.tenant_id, 1_000).insert(&mut office.database.another_owner().await).await;
        office.database.owner().execute("update products set padding = 6", &[]).await.unwrap();
        let product = store::catalog::require_product(office.database.owner(), made.described.id).await.unwrap();
        let chain = Chain::new(&office.database, 1, 10, randomness::seed());
        let bucket = FakeBucket::start().await;
        let api = admin_with(office.database.app(2), &bucket.endpoint());
        Self { office, member, api, product, chain, bucket, part_bytes: 8 * 1_024 * 1_024 }
    }

    /// An order of a buyer who has logged in, for numbers, which it gets.
    async fn reserved(&self, numbers: &[i32]) -> Uuid {
        let buyer = self.buyer().await;
        let id = order(self.office.database.owner(), &self.product, buyer, &exact(numbers)).await;
        self.chain.put(&self.product, id);
        self.chain.run().await;
        id
    }

    async fn buyer(&self) -> Uuid {
        let sql = "insert into buyers (id, tenant_id, phone) values ($1, $2, $3)
            on conflict on constraint buyers_phone_unique do update set phone = excluded.phone returning id";
        let id = Uuid::now_v7();
        let owner = self.office.database.owner();
        owner.query_one(sql, &[&id, &self.office.tenant_id, &PHONE]).await.unwrap().get(0)
    }

    fn path(&self) -> String {
        format!("/v1/admin/products/{}/exports", self.product.described.id)
    }

    /// Asks for an export.
    async fn ask(&self, kind: &str, format: &str, language: &str) -> Uuid {
        let body = json!({ "kind": kind, "format": format, "language": language });
        let answer = self.member.send(&self.api, "POST", &self.path(), &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        let id: Uuid = answer.json()["id"].as_str().unwrap().parse().unwrap();
        assert_eq!(answer.header("location"), format!("/v1/admin/exports/{id}"));
        id
    }

    async fn show(&self, id: Uuid) -> Value {
        let answer = self.member.get(&self.api, &format!("/v1/admin/exports/{id}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// Lets the reconciler owe what is due, and the worker write until its queue is empty.
    async fn work(&self) {
        self.chain.reconcile().await;
        self.drain().await;
    }

    async fn drain(&self) {
        let queue = Arc::clone(&self.chain.queues) as Arc<dyn MessageQueue>;
        let state = write_exports::State::new(self.office.database.app(2), self.bucket.writer(), queue);
        let state = Arc::new(state.with_part_bytes(self.part_bytes));
        let handle = move |event| {
            let state = Arc::clone(&state);
            async move { write_exports::handle(&state, event, Deadline::after(BUDGET)).await }
        };
        drain(&self.chain.queues, Queue::WriteExports, 2, 10, handle).await;
    }

    /// The file of an export that is ready.
    async fn file(&self, id: Uuid) -> File {
        let shown = self.show(id).await;
        assert_eq!((&shown["state"], &shown["percent"]), (&json!("ready"), &json!(100)), "{shown}");
        let files = self.bucket.files();
        let (_, file) = files.into_iter().find(|(key, _)| key.contains(&id.to_string())).expect("a file");
        assert_eq!(shown["bytes"], json!(file.bytes.len()));
        file
    }

    /// An export, asked for and written.
    async fn export(&self, kind: &str, format: &str, language: &str) -> File {
        let id = self.ask(kind, format, language).await;
        self.work().await;
        self.file(id).await
    }
}

/// Whoever fetches files.
fn browser() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// The lines of a CSV file as they stand there, without the mark at its beginning.
fn lines(file: &File) -> Vec<Vec<String>> {
    let text = String::from_utf8(file.bytes.clone()).unwrap();
    let text = text.strip_prefix('\u{feff}').expect("a byte order mark");
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map(|line| line.unwrap().iter().map(str::to_owned).collect()).collect()
}
