//! Products: made once, changed under the freezing rules.

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use domain::roles::Role;
use serde_json::{Value, json};
use tests::http::{Answer, ask, is};
use tests::look::{change, count};
use tests::seed::{order, product, quick};
use tests::staff::{Member, Office};
use uuid::Uuid;

use super::described;

async fn edit(office: &Office, member: &Member, id: &str, tag: Option<&str>, body: &Value) -> Answer {
    let mut request = ask("PATCH", &format!("/v1/admin/products/{id}")).header(AUTHORIZATION, &member.bearer);
    if let Some(tag) = tag {
        request = request.header("if-match", tag);
    }
    office.admin.send(request.header(CONTENT_TYPE, "application/json"), body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_is_made_once_per_key_and_sells() {
    let office = Office::open().await;
    let member = office.hire(Role::Operator).await;
    let make =
        async |key: &str, body: &Value| member.send_under(&office.admin, key, "POST", "/v1/admin/products", body).await;
    let made = make("first", &described()).await;
    assert_eq!((made.status, made.is_replay(), made.header("etag")), (201, false, "\"1\""), "{}", made.text());
    let body = made.json();
    let id = body["id"].as_str().unwrap();
    assert_eq!(made.header("location"), format!("/v1/admin/products/{id}"));
    assert_eq!(
        (&body["intake"], &body["reserving"], &body["price"]["amount"]),
        (&json!("open"), &json!("on"), &json!("250"))
    );
    let again = make("first", &described()).await;
    assert_eq!((again.status, again.is_replay(), again.json()), (201, true, body.clone()));
    let mut other = described();
    other["count"] = json!(7);
    assert_eq!(make("first", &other).await.refusal(), is(422, "key-reused"));
    assert_ne!(make("second", &described()).await.json()["id"], body["id"]);
    assert_eq!(count(&office.database, "select count(*) from products").await, 2);
    let owner = office.database.another_owner().await;
    let product = store::catalog::require_product(&owner, id.parse().unwrap()).await.unwrap();
    order(&owner, &product, Uuid::now_v7(), &quick(3)).await;

    let first = member.get(&office.admin, "/v1/admin/products?limit=1").await.json();
    let next = format!("/v1/admin/products?limit=1&cursor={}", first["next_cursor"].as_str().unwrap());
    let second = member.get(&office.admin, &next).await.json();
    assert_ne!(first["products"][0]["id"], second["products"][0]["id"]);
    assert_eq!(second["next_cursor"], json!(null));
    let bad = member.get(&office.admin, "/v1/admin/products?cursor=x").await;
    assert_eq!(bad.refusal(), is(422, "invalid"));
    office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_a_rule_is_named() {
    let office = Office::open().await;
    let member = office.hire(Role::Operator).await;
    for (pointer, value, field) in [
        ("/name", json!(""), "/name"),
        ("/name", json!("Spring\u{0}"), "/name"),
        ("/name", json!("Spring\nraffle"), "/name"),
        ("/name", json!(" \u{200b} "), "/name"),
        ("/name", json!("Spring \u{202e}elffar"), "/name"),
        ("/campaign", json!("Spring!"), "/campaign"),
        ("/count", json!(0), "/count"),
        ("/first", json!(-1), "/first"),
        ("/padding", json!(10), "/padding"),
        ("/price/amount", json!("-1"), "/price/amount"),
        ("/price/currency", json!("eur"), "/price/currency"),
        ("/closes_at", json!("2026-01-01T00:00:00Z"), "/closes_at"),
        ("/zone", json!("Mars/Olympus"), "/zone"),
        ("/hold_seconds", json!(1), "/hold_seconds"),
        ("/hold_seconds", json!(59), "/hold_seconds"),
        ("/hold_seconds", json!(604_801), "/hold_seconds"),
        ("/opens_at", json!("tomorrow"), "/opens_at"),
        // Moments that could be stored and never be written again, or not even be stored.
        ("/opens_at", json!("0000-01-01T00:00:00+00:01"), "/opens_at"),
        ("/closes_at", json!("9999-12-31T23:59:59-00:01"), "/closes_at"),
        ("/price/currency", json!("ZZZ"), "/price/currency"),
        ("/price/currency", json!("XAU"), "/price/currency"),
    ] {
        let mut body = described();
        *body.pointer_mut(pointer).unwrap() = value;
        let answer = member.send(&office.admin, "POST", "/v1/admin/products", &body).await;
        assert_eq!(answer.refusal(), is(422, "invalid"), "{pointer}");
        assert_eq!(answer.json()["errors"][0]["pointer"], field, "{}", answer.text());
    }
    let mut more = described();
    more["more"] = json!(1);
    assert_eq!(member.send(&office.admin, "POST", "/v1/admin/products", &more).await.refusal(), is(422, "invalid"));
    assert_eq!(count(&office.database, "select count(*) from products").await, 0);
    assert_eq!(count(&office.database, "select count(*) from audit_log").await, 0);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_has_room_for_so_many_numbers() {
    let office = Office::open().await;
    let member = office.hire(Role::Operator).await;
    let make =
        async |key: &str| member.send_under(&office.admin, key, "POST", "/v1/admin/products", &described()).await;
    assert_eq!(make("first").await.status, 201);
    let fill = "insert into products overriding system value select (p).* from (
            select jsonb_populate_record(q, jsonb_build_object('id', gen_random_uuid(), 'key', 1000 + i,
                'number_count', 10000000)) as p
            from products q cross join generate_series(1, 10) as i) as more";
    change(&office.database, fill, 10).await;
    assert_eq!(make("second").await.refusal(), is(422, "limit-exceeded"));
    assert_eq!(make("first").await.status, 201, "what was made is answered");
    change(&office.database, "delete from products where key > 1000", 10).await;
    assert_eq!(make("second").await.status, 201);
    assert_eq!(count(&office.database, "select count(*) from products").await, 2);
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_overwrites_what_they_have_not_seen() {
    let office = Office::open().await;
    let member = office.hire(Role::Owner).await;
    let made = member.send(&office.admin, "POST", "/v1/admin/products", &described()).await.json();
    let id = made["id"].as_str().unwrap();
    let body = json!({ "name": "Summer raffle", "price": { "amount": "300", "currency": "USD" }, "padding": 4 });
    assert_eq!(edit(&office, &member, id, None, &body).await.refusal(), is(428, "precondition-required"));
    for tag in ["\"2\"", "W/\"1\"", "\"2\", \"3\"", "1"] {
        assert_eq!(
            edit(&office, &member, id, Some(tag), &body).await.refusal(),
            is(412, "precondition-failed"),
            "{tag}"
        );
    }
    let edited = edit(&office, &member, id, Some("\"1\""), &body).await;
    assert_eq!((edited.status, edited.header("etag")), (200, "\"2\""), "{}", edited.text());
    let now = edited.json();
    assert_eq!(
        (&now["name"], &now["price"]["currency"], &now["count"]),
        (&json!("Summer raffle"), &json!("USD"), &json!(100))
    );
    assert_eq!(member.get(&office.admin, &format!("/v1/admin/products/{id}")).await.json(), now);
    assert_eq!(edit(&office, &member, id, Some("\"1\""), &body).await.refusal(), is(412, "precondition-failed"));
    let at_once = futures::future::join_all((0..8).map(|_| edit(&office, &member, id, Some("\"2\""), &body))).await;
    assert_eq!(at_once.iter().filter(|answer| answer.status == 200).count(), 1);
    assert!(at_once.iter().all(|answer| matches!(answer.status, 200 | 412)));
    for (tag, version) in [("\"2\", \"3\"", "\"4\""), ("*", "\"5\"")] {
        let edited = edit(&office, &member, id, Some(tag), &json!({ "name": "Autumn raffle" })).await;
        assert_eq!((edited.status, edited.header("etag")), (200, version), "{tag}: {}", edited.text());
    }
    let never = json!({ "closes_at": "9999-12-31T12:00:00-12:00" });
    let short = json!({ "hold_seconds": 59 });
    for body in [json!({ "count": 7 }), json!({ "first": 7 }), json!({ "name": "" }), never, short] {
        assert_eq!(edit(&office, &member, id, Some("\"5\""), &body).await.refusal(), is(422, "invalid"), "{body}");
    }
    office.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_freeze_what_a_number_means() {
    let office = Office::open().await;
    let member = office.hire(Role::Operator).await;
    let mut owner = office.database.another_owner().await;
    let soon = time::OffsetDateTime::now_utc() + time::Duration::hours(1);
    let later = soon + time::Duration::hours(1);
    let text = |at: time::OffsetDateTime| at.format(&time::format_description::well_known::Rfc3339).unwrap();
    let announced = product(office.tenant_id, 10).window(soon, soon + time::Duration::days(1)).insert(&mut owner).await;
    let id = announced.described.id.to_string();
    let moved = edit(&office, &member, &id, Some("\"1\""), &json!({ "opens_at": text(later) })).await;
    assert_eq!(moved.status, 200, "{}", moved.text());
    let selling = product(office.tenant_id, 10).insert(&mut owner).await;
    let placed = order(&owner, &selling, Uuid::now_v7(), &quick(1)).await;
    let id = selling.described.id.to_string();
    for body in [
        json!({ "price": { "amount": "250", "currency": "BRL" } }),
        json!({ "padding": 6 }),
        json!({ "opens_at": text(soon) }),
    ] {
        assert_eq!(edit(&office, &member, &id, Some("\"1\""), &body).await.refusal(), is(409, "frozen"), "{body}");
    }
    let body = json!({
        "price": { "amount": "999", "currency": "EUR" }, "hold_seconds": 60, "numbers_per_order_max": 2,
        "numbers_per_buyer_max": 3, "closes_at": text(later),
    });
    let edited = edit(&office, &member, &id, Some("\"1\""), &body).await;
    assert_eq!(edited.status, 200, "{}", edited.text());
    let kept = tests::look::order(&office.database, placed).await;
    assert_eq!(kept.unit_price_minor, 250, "it was accepted at the old price");
    office.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_ends_sooner_only_by_who_has_just_proved_who_they_are() {
    let office = Office::open().await;
    let member = office.hire(Role::Operator).await;
    let made = member.send(&office.admin, "POST", "/v1/admin/products", &described()).await.json();
    let id = made["id"].as_str().unwrap();
    let proof = async |until: &str| {
        let sql = format!("update staff_sessions set fresh_until = {until}");
        office.database.owner().execute(&sql, &[]).await.unwrap();
    };
    proof("now()").await;
    let sooner = json!({ "closes_at": "2098-01-01T00:00:00Z" });
    for body in [
        sooner.clone(),
        json!({ "price": { "amount": "0", "currency": "EUR" } }),
        json!({ "price": { "amount": "251", "currency": "EUR" } }),
        json!({ "price": { "amount": "250", "currency": "USD" } }),
        json!({ "name": "Another raffle", "opens_at": "2098-01-01T00:00:00Z" }),
        json!({ "hold_seconds": 899 }),
    ] {
        assert_eq!(edit(&office, &member, id, Some("\"1\""), &body).await.refusal(), is(403, "not-fresh"), "{body}");
    }
    let longer = json!({
        "name": "A longer raffle", "closes_at": "2099-06-01T00:00:00Z", "hold_seconds": 1_800,
        "price": { "amount": "250", "currency": "EUR" }, "numbers_per_order_max": 5,
    });
    assert_eq!(edit(&office, &member, id, Some("\"1\""), &longer).await.status, 200, "whatever stops nothing");
    proof("now() + interval '1 minute'").await;
    assert_eq!(edit(&office, &member, id, Some("\"2\""), &sooner).await.status, 200);
    office.database.finish().await;
}
