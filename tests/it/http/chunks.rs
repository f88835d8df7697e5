//! The bitmap as the public reads it: the database's own bytes, and buckets that a naive count confirms.

use std::collections::BTreeSet;

use rand::RngExt;
use serde_json::{Value, json};
use tests::http::{self, ask, is};
use tests::operator;
use tests::randomness;
use tests::seed::product;

use super::Shop;

const FIRST: i32 = 77;
const COUNT: i32 = 20_000;

/// A product of three chunks, some of its numbers taken at random.
async fn half_sold() -> (Shop, BTreeSet<i32>) {
    let shop = Shop::with(|tenant| product(tenant, COUNT).first(FIRST)).await;
    let mut rng = randomness::stream(randomness::seed(), 3);
    let blocked: BTreeSet<i32> = (0..2_000).map(|_| rng.random_range(FIRST..FIRST + COUNT)).collect();
    let mut client = shop.database.another_owner().await;
    operator::block(&mut client, &shop.product, &blocked).await.unwrap();
    for _ in 0..5 {
        shop.order(&shop.buyer(), r#"{"quantity":100}"#).await;
    }
    shop.chain.run().await;
    let rows = client.query("select number from taken_numbers", &[]).await.unwrap();
    let taken: BTreeSet<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(taken.len(), blocked.len() + 500);
    (shop, taken)
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_are_the_databases_bytes_and_say_what_the_rows_say() {
    let (shop, taken) = half_sold().await;
    let api = http::catalog(shop.database.app(2));
    let path = |chunk: &str| format!("/v1/products/{}/availability/{chunk}", shop.product_id());
    let rows =
        shop.database.owner().query("select bits, version from number_chunks order by chunk", &[]).await.unwrap();
    let mut seen = BTreeSet::new();
    for (chunk, row) in (0..).zip(&rows) {
        let answer = api.get(&path(&format!("{chunk}"))).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "application/octet-stream"));
        assert_eq!(answer.header("cache-control"), "public, max-age=1, stale-while-revalidate=5");
        assert_eq!(answer.header("etag"), format!("W/\"{}\"", row.get::<_, i64>("version")));
        assert_eq!((answer.body.len(), &answer.body), (1_024, &row.get("bits")));
        let set = |i: &i32| answer.body[usize::try_from(i / 8).unwrap()] & (1 << (i % 8)) != 0;
        seen.extend((0..8_192).filter(set).map(|i| FIRST + chunk * 8_192 + i));
    }
    let padding: BTreeSet<i32> = (FIRST + COUNT..FIRST + 3 * 8_192).collect();
    assert_eq!(seen, taken.union(&padding).copied().collect());

    for chunk in ["3", "-1", "2147483647"] {
        assert_eq!(api.get(&path(chunk)).await.refusal(), is(422, "out-of-range"), "{chunk}");
    }
    for chunk in ["x", "1.0", "2147483648", "0/0"] {
        assert_eq!(api.get(&path(chunk)).await.refusal(), is(404, "not-found"), "{chunk}");
    }
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_chunk_costs_nothing() {
    let shop = Shop::with(|tenant| product(tenant, COUNT)).await;
    let api = http::catalog(shop.database.app(2));
    let read = async |chunk: i32, etag: &str| {
        let path = format!("/v1/products/{}/availability/{chunk}", shop.product_id());
        api.send(ask("GET", &path).header("if-none-match", etag), "").await
    };
    let (first, third) = (read(0, "").await, read(2, "").await);
    for etag in [first.header("etag"), first.header("etag").strip_prefix("W/").unwrap(), "*", "W/\"x\", W/\"1\""] {
        let same = read(0, etag).await;
        assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, first.header("etag")), "{etag}");
    }
    shop.order(&shop.buyer(), r#"{"numbers":[5]}"#).await;
    shop.chain.run().await;
    let changed = read(0, first.header("etag")).await;
    assert_eq!((changed.status, changed.body[0]), (200, 1 << 4), "at once: a chunk is not cached in the function");
    assert_eq!(read(2, third.header("etag")).await.status, 304, "another chunk has not changed");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_equal_a_naive_count() {
    let (shop, taken) = half_sold().await;
    let answer =
        http::catalog(shop.database.app(2)).get(&format!("/v1/products/{}/availability", shop.product_id())).await;
    let body = answer.json();
    assert_eq!((&body["product_id"], &body["first"]), (&json!(shop.product_id()), &json!(FIRST)));
    assert_eq!((&body["numbers_per_chunk"], &body["chunk_count"]), (&json!(8_192), &json!(3)));
    let width = usize::try_from(body["bucket_width"].as_i64().unwrap()).unwrap();
    let numbers: Vec<i32> = (FIRST..FIRST + COUNT).collect();
    let naive: Vec<usize> =
        numbers.chunks(width).map(|bucket| bucket.iter().filter(|n| !taken.contains(n)).count()).collect();
    assert_eq!(body["buckets"], json!(naive));
    assert!((100..=1_024).contains(&naive.len()), "about a thousand: {}", naive.len());
    let available = body["counters"]["available"].as_u64().unwrap();
    assert_eq!(available, body["buckets"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>());
    let in_all: i64 =
        ["available", "reserved", "paid", "blocked"].iter().filter_map(|k| body["counters"][k].as_i64()).sum();
    assert_eq!(in_all, i64::from(COUNT));
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_number() {
    let (shop, taken) = half_sold().await;
    let api = http::catalog(shop.database.app(2));
    let path = |number: &str| format!("/v1/products/{}/numbers/{number}", shop.product_id());
    for number in (FIRST..FIRST + COUNT).step_by(997).chain([FIRST + COUNT - 1]) {
        let answer = api.get(&path(&number.to_string())).await;
        let expected =
            json!({"number": number, "label": format!("{number:05}"), "available": !taken.contains(&number)});
        assert_eq!((answer.status, answer.json()), (200, expected));
        let request = ask("GET", &path(&number.to_string())).header("if-none-match", answer.header("etag"));
        assert_eq!(api.send(request, "").await.status, 304);
    }
    for number in [FIRST - 1, FIRST + COUNT, 0, -5, i32::MAX] {
        assert_eq!(api.get(&path(&number.to_string())).await.refusal(), is(422, "out-of-range"), "{number}");
    }
    assert_eq!(api.get(&path("seven")).await.refusal(), is(404, "not-found"));
    shop.finish().await;
}
