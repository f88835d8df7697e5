//! No route believes a bad token, neither one of buyers' routes nor one of staff's, and all refusals look the same.

use std::collections::BTreeSet;

use domain::roles::{Action, Role};
use serde_json::json;
use tests::http::{ISSUER, is};
use tests::staff::now;
use tests::tokens::{forged, signed, with};
use uuid::Uuid;

use super::{Target, World, caller};

#[tokio::test(flavor = "multi_thread")]
async fn no_route_believes_a_bad_token() {
    let world = World::open().await;
    let tenant_id = world.office.tenant_id;
    let (member, buyer, _) = caller(&world.office, tenant_id, Role::Owner).await;
    let target = Target::new(&world.office, tenant_id, buyer.id, &member).await;
    let buyers = json!({ "iss": ISSUER, "aud": "buyer", "sub": buyer.id, "tenant": tenant_id, "exp": now() + 600 });
    let staff = json!({
        "iss": format!("{ISSUER}/staff"), "aud": "staff", "sub": member.id, "tenant": tenant_id,
        "session": member.session_id, "exp": now() + 600,
    });
    for (action, claims) in [(Action::ListOrders, &buyers), (Action::ListStaffSessions, &staff)] {
        let route = world.routes.iter().find(|route| route.action == action).unwrap();
        let answer = world.send(route, Some(&format!("Bearer {}", signed(claims))), &target).await;
        assert_eq!(answer.status, 200, "the battery stands on good tokens: {}", answer.text());
    }

    let named = |what: &str, token: String| (what.to_owned(), token);
    let mut of_buyers = forged(&buyers);
    of_buyers.push(named("staff's token", signed(&staff)));
    let mut of_staff = forged(&staff);
    of_staff.push(named("a buyer's token", signed(&buyers)));
    for (what, changes) in [
        ("no session", json!({ "session": null })),
        ("a session that is none", json!({ "session": "x" })),
        ("a session of nobody", json!({ "session": Uuid::now_v7() })),
        ("somebody else's session", json!({ "sub": Uuid::now_v7() })),
        ("another store", json!({ "tenant": Uuid::now_v7() })),
        ("buyers' issuer", json!({ "iss": ISSUER })),
    ] {
        of_staff.push(named(what, signed(&with(&staff, &changes))));
    }
    let mut shapes = BTreeSet::new();
    for route in &world.routes {
        let bad = if route.scheme == "buyer" { &of_buyers } else { &of_staff };
        for (what, token) in bad {
            let answer = world.send(route, Some(&format!("Bearer {token}")), &target).await;
            assert_eq!(answer.refusal(), is(401, "unauthorized"), "{} with {what}", route.action.word());
            assert_eq!(answer.header("www-authenticate"), "Bearer");
            let mut problem = answer.json();
            problem.as_object_mut().unwrap().remove("instance");
            shapes.insert(problem.to_string());
        }
    }
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    world.finish().await;
}
