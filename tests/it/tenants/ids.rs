//! Ids of another store, ids one bit off, and ids of nothing: nobody can tell them apart, and nothing moves.

use std::collections::BTreeSet;

use axum::http::header::AUTHORIZATION;
use rand::RngExt;
use serde_json::{Value, json};
use tests::http::{Answer, Buyer, ask, is};
use tests::{randomness, seed};
use uuid::Uuid;

use super::furnished::{Furnished, NUMBER, digest};
use crate::roles::{Target, World};

/// How many bits of every id are tried, one at a time.
const BITS: usize = 8;

/// Two stores in one database; the staff of the first asks.
async fn furnish(world: &World) -> (Furnished, Furnished) {
    let database = &world.office.database;
    let elsewhere = seed::store(database.owner()).await;
    let ours = Furnished::new(database, world.office.tenant_id, "+34600000001").await;
    (ours, Furnished::new(database, elsewhere, "+34600000002").await)
}

/// What a store has, as what requests are about; its ids may be changed.
fn target(of: &Furnished, id: impl Fn(Uuid) -> Uuid) -> Target {
    Target {
        product: id(of.product.described.id),
        order: id(of.order),
        member: id(of.member.id),
        session: id(of.member.session_id),
        export: id(of.export),
        upload: id(of.upload),
        one_time_password: "000000".into(),
    }
}

/// What an answer says, without what differs between any two.
fn said(answer: &Answer) -> (u16, BTreeSet<String>, Value) {
    let mut body = answer.json_or_null();
    body.as_object_mut().map(|members| members.remove("instance"));
    (answer.status, answer.headers.keys().map(ToString::to_string).collect(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_another_store_are_ids_of_nothing() {
    let world = World::open().await;
    let (ours, theirs) = furnish(&world).await;
    let owner = world.office.database.owner();
    let before = (digest(owner, ours.tenant_id).await, digest(owner, theirs.tenant_id).await);
    let mut rng = randomness::stream(randomness::seed(), 0);
    for route in world.routes.iter().filter(|route| route.path.contains('{')) {
        let mut targets = vec![target(&ours, |_| Uuid::now_v7()), target(&theirs, |id| id)];
        for _ in 0..BITS {
            let bit = 1_u128 << rng.random_range(0..128_u32);
            targets.extend([&ours, &theirs].map(|of| target(of, |id| Uuid::from_u128(id.as_u128() ^ bit))));
        }
        let mut first = None;
        for target in &targets {
            // Another each time, so that none of them polls too early.
            let buyer = Buyer::new(ours.tenant_id);
            let bearer = if route.scheme == "buyer" { &buyer.bearer } else { &ours.member.bearer };
            let answer = world.send(route, Some(bearer), target).await;
            let name = format!("{} of {:?}: {}", route.action.word(), target.ids(), answer.text());
            assert_eq!(answer.refusal(), is(404, "not-found"), "{name}");
            let said = said(&answer);
            assert_eq!(*first.get_or_insert_with(|| said.clone()), said, "{name}");
        }
    }
    let after = (digest(owner, ours.tenant_id).await, digest(owner, theirs.tenant_id).await);
    assert_eq!(after, before, "nothing was changed, on neither side");
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_searches_show_ones_own() {
    let world = World::open().await;
    let (ours, theirs) = furnish(&world).await;
    let foreign = theirs.ids().map(|id| id.to_string());
    for route in world.routes.iter().filter(|route| route.method == "GET" && !route.path.contains('{')) {
        let bearer = if route.scheme == "buyer" { &ours.buyer.bearer } else { &ours.member.bearer };
        for cursor in &foreign {
            let request = ask("GET", &format!("{}?limit=100&cursor={cursor}", route.path));
            let answer = world.apis[route.function].send(request.header(AUTHORIZATION, bearer), "").await;
            let name = format!("{} after {cursor}: {}", route.action.word(), answer.text());
            assert_eq!(answer.status, 200, "{name}");
            assert!(foreign.iter().all(|id| !answer.text().contains(id.as_str())), "{name}");
        }
    }
    for (found, store) in [(1, &ours), (0, &theirs)] {
        for body in [
            json!({ "code": store.order }),
            json!({ "phone": store.phone }),
            json!({ "product": store.product.described.id, "number": NUMBER }),
        ] {
            let answer = ours.member.send(&world.apis["admin"], "POST", "/v1/admin/orders/search", &body).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.json()["orders"].as_array().unwrap().len(), found, "{body}");
        }
    }
    world.finish().await;
}
