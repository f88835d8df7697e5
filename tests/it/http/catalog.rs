//! Public reads: stores, products and counters, cacheable and honest about their age.

use std::time::Duration;

use domain::catalog::Intake;
use serde_json::{Value, json};
use store::switches::{Switch, set_intake};
use tests::http::{self, Answer, Api, ask, is};
use tests::look::change;
use tests::operator;
use tests::seed::product;
use tests::writes::Writes;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::Shop;

const LIVE: &str = "public, max-age=1, stale-while-revalidate=5";
const SETTLED: &str = "public, max-age=30";

async fn conditional(api: &Api, path: &str, etag: &str) -> Answer {
    api.send(ask("GET", path).header("if-none-match", etag), "").await
}

fn fresh(shop: &Shop) -> Api {
    http::catalog(shop.database.app(2))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_is_the_databases() {
    let shop = Shop::open().await;
    let answer = fresh(&shop).get("/v1/time").await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"));
    let shown = OffsetDateTime::parse(answer.json()["now"].as_str().unwrap(), &Rfc3339).unwrap();
    let now = store::catalog::now(shop.database.owner()).await.unwrap();
    assert!(shown <= now && now - shown < time::Duration::seconds(2), "{shown} and {now}");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_with_its_counters() {
    let shop = Shop::with(|tenant| product(tenant, 20_000).first(77)).await;
    let mut client = shop.database.another_owner().await;
    operator::block(&mut client, &shop.product, &[77, 78, 20_076].into()).await.unwrap();
    shop.order(&shop.buyer(), r#"{"numbers":[100,9000,15000]}"#).await;
    shop.chain.run().await;
    let path = format!("/v1/products/{}", shop.product_id());
    let answer = fresh(&shop).get(&path).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, LIVE));
    let body = answer.json();
    assert_eq!(body["counters"], json!({"available": 19_994, "reserved": 3, "paid": 0, "blocked": 3}));
    assert_eq!((&body["first"], &body["count"], &body["padding"]), (&json!(77), &json!(20_000), &json!(5)));
    assert_eq!(body["price"], json!({"amount": "250", "currency": "EUR"}));
    assert_eq!((&body["zone"], &body["intake"]), (&json!("Europe/Madrid"), &json!("open")));
    assert_eq!(
        (&body["availability"]["chunk_count"], &body["availability"]["bit_order"]),
        (&json!(3), &json!("lsb-first"))
    );
    for name in ["opens_at", "closes_at"] {
        assert!(OffsetDateTime::parse(body[name].as_str().unwrap(), &Rfc3339).unwrap().offset().is_utc());
    }
    for hidden in ["key", "tenant_id", "reserving"] {
        assert_eq!(body[hidden], Value::Null, "{hidden} is nobody's business");
    }
    let unchanged = conditional(&fresh(&shop), &path, answer.header("etag")).await;
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    for sql in ["update products set price_minor = 300, version = version + 1", "update tenants set intake = 'paused'"]
    {
        change(&shop.database, sql, 1).await;
        assert_eq!(conditional(&fresh(&shop), &path, answer.header("etag")).await.status, 200, "{sql}");
    }
    for path in [format!("/v1/products/{}", Uuid::now_v7()), "/v1/products/7".into()] {
        assert_eq!(fresh(&shop).get(&path).await.refusal(), is(404, "not-found"));
    }
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_at_most_a_second_old() {
    let shop = Shop::open().await;
    let path = format!("/v1/products/{}/availability", shop.product_id());
    let api = fresh(&shop);
    let first = api.get(&path).await;
    shop.order(&shop.buyer(), r#"{"quantity":10}"#).await;
    shop.chain.run().await;
    // Within the second the answer may be old, but then its tag is old too.
    let second = api.get(&path).await;
    assert_eq!(second.header("etag") == first.header("etag"), second.body == first.body);
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    let third = conditional(&api, &path, first.header("etag")).await;
    assert_eq!((third.status, &third.json()["counters"]["reserved"]), (200, &json!(10)));
    let (old, new) = (first.json()["version"].as_i64(), third.json()["version"].as_i64());
    assert!(old < new, "{old:?} to {new:?}");
    assert_eq!(conditional(&api, &path, third.header("etag")).await.status, 304);
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_and_their_products_in_pages() {
    let shop = Shop::open().await;
    let mut client = shop.database.another_owner().await;
    let mut expected = vec![shop.product_id()];
    for hours in 1..6 {
        let opens_at = OffsetDateTime::now_utc() + time::Duration::hours(hours);
        let later = product(shop.tenant, 10).window(opens_at, opens_at + time::Duration::hours(1));
        expected.push(later.insert(&mut client).await.described.id);
    }
    let elsewhere = tests::seed::store(&client).await;
    product(elsewhere, 10).insert(&mut client).await;
    let slug: String =
        client.query_one("select slug from tenants where id = $1", &[&shop.tenant]).await.unwrap().get(0);
    let api = fresh(&shop);
    let store = api.get(&format!("/v1/stores/{slug}")).await;
    assert_eq!((store.status, store.header("cache-control")), (200, SETTLED));
    assert_eq!(store.json(), json!({"id": shop.tenant, "slug": slug, "name": "A store", "intake": "open"}));

    let list = async |query: &str| api.get(&format!("/v1/stores/{slug}/products{query}")).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for length in [4, 2] {
        let page = list(&format!("?limit=4{cursor}")).await.json();
        let products = page["products"].as_array().unwrap();
        assert_eq!(products.len(), length);
        seen.extend(products.iter().map(|one| one["id"].as_str().unwrap().parse::<Uuid>().unwrap()));
        cursor = page["next_cursor"].as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
    }
    assert_eq!((seen, cursor.as_str()), (expected, ""));
    for query in ["?limit=0", "?limit=101", "?limit=x", "?cursor=x", "?page=2"] {
        assert_eq!(list(query).await.refusal(), is(422, "invalid"), "{query}");
    }
    set_intake(&client, Switch::Platform, Intake::Paused, None).await.unwrap();
    let paused = conditional(&api, &format!("/v1/stores/{slug}"), store.header("etag")).await;
    assert_eq!((paused.status, &paused.json()["intake"]), (200, &json!("paused")));
    assert_eq!(list("").await.json()["products"][5]["intake"], "paused");
    for slug in ["nobody", "UPPER", "a%20b", "%27", "..", &"x".repeat(5_000)] {
        assert_eq!(api.get(&format!("/v1/stores/{slug}")).await.refusal(), is(404, "not-found"), "{slug}");
        assert_eq!(api.get(&format!("/v1/stores/{slug}/products")).await.refusal(), is(404, "not-found"), "{slug}");
    }
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_writes_nothing_and_other_methods_are_refused() {
    let shop = Shop::open().await;
    let api = fresh(&shop);
    let writes = Writes::watch(&shop.database).await;
    let product = format!("/v1/products/{}", shop.product_id());
    for path in ["", "/availability", "/availability/0", "/numbers/7"].map(|rest| format!("{product}{rest}")) {
        assert_eq!(api.get(&path).await.status, 200, "{path}");
        let head = api.send(ask("HEAD", &path), "").await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        for method in ["POST", "PUT", "DELETE"] {
            assert_eq!(api.send(ask(method, &path), "{}").await.refusal(), is(405, "method-not-allowed"), "{path}");
        }
    }
    assert_eq!(writes.take().await, Vec::<Vec<String>>::new());
    shop.finish().await;
}
