//! Every route that bears a token, for every role, at one's own store and at another's, against the one table.

mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, IF_MATCH};
use cashier::Cashier;
use domain::roles::{Action, Role};
use edge::Stage;
use edge::http::IDEMPOTENCY_KEY;
use edge::sealing::{DEVELOPMENT_KEYS, SealingKeys};
use gateways::{Endpoints, Gateways};
use serde_json::{Value, json};
use tests::http::{self, Answer, Api, Buyer, ask, is};
use tests::queue::{Queues, Settings};
use tests::seed::{product, quick};
use tests::staff::{Member, Office, hire, keys, now};
use tests::{randomness, seed};
use uuid::Uuid;

use crate::openapi::{documents, operations};

/// A route that bears a token.
pub(crate) struct Route {
    pub(crate) function: &'static str,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) action: Action,
    pub(crate) scheme: String,
}

/// All of them. Those of refresh tokens are no action: they are for whoever has one.
fn routes() -> Vec<Route> {
    let mut routes = Vec::new();
    for (function, document) in documents() {
        for (method, path, operation) in operations(&document) {
            let Some(scheme) = operation["security"][0].as_object().and_then(|one| one.keys().next()) else { continue };
            if scheme.ends_with("refresh") {
                continue;
            }
            let id = operation["operationId"].as_str().unwrap();
            let action = Action::from_word(id).unwrap_or_else(|| panic!("{method} {path}: {id} is in no table"));
            routes.push(Route { function, method, path, action, scheme: scheme.clone() });
        }
    }
    routes
}

#[test]
fn the_table_has_every_route_and_nothing_else() {
    let routes = routes();
    let named: BTreeSet<&str> = routes.iter().map(|route| route.action.word()).collect();
    let table: BTreeSet<&str> = Action::ALL.iter().map(|action| action.word()).collect();
    assert_eq!(named, table);
    for Route { action, scheme, .. } in &routes {
        assert_eq!(scheme == "buyer", action.roles() == [Role::Buyer], "{}", action.word());
    }
}

/// An environment of every function that has such routes.
pub(crate) struct World {
    pub(crate) office: Office,
    pub(crate) apis: BTreeMap<&'static str, Api>,
    pub(crate) routes: Vec<Route>,
}

impl World {
    pub(crate) async fn open() -> Self {
        let office = Office::open().await;
        let database = &office.database;
        let queues = Arc::new(Queues::new(Settings::default(), randomness::seed()));
        let sealing = SealingKeys::from_json(DEVELOPMENT_KEYS, Stage::Local).unwrap();
        let cashier = Cashier::new(database.app(2), Gateways::new(Endpoints::default()).unwrap(), sealing);
        let apis = [
            ("orders", http::orders(database.app(2), queues)),
            ("order-status", http::order_status(database.app(2))),
            ("payments", http::payments(database.app(2), cashier)),
            ("staff", http::staff(database.app(2), keys(), office.mailbox.post())),
            ("admin", http::admin(database.app(2))),
        ];
        Self { apis: apis.into(), routes: routes(), office }
    }

    pub(crate) async fn send(&self, route: &Route, bearer: Option<&str>, target: &Target) -> Answer {
        let path = route
            .path
            .replace("{product}", &target.product.to_string())
            .replace("{order}", &target.order.to_string())
            .replace("{member}", &target.member.to_string())
            .replace("{session}", &target.session.to_string())
            .replace("{export}", &target.export.to_string())
            .replace("{upload}", &target.upload.to_string());
        assert!(!path.contains('{'), "{path} names what no target has");
        let mut request = ask(&route.method, &path)
            .header(CONTENT_TYPE, "application/json")
            .header(IDEMPOTENCY_KEY, Uuid::now_v7().to_string())
            .header(IF_MATCH, "\"1\"");
        if let Some(bearer) = bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        self.apis[route.function].send(request, target.body(route.action).to_string()).await
    }

    pub(crate) async fn finish(self) {
        self.office.database.finish_under_way().await;
    }
}

/// What requests are about: one of each kind, of one store.
pub(crate) struct Target {
    pub(crate) product: Uuid,
    pub(crate) order: Uuid,
    pub(crate) member: Uuid,
    pub(crate) session: Uuid,
    pub(crate) export: Uuid,
    pub(crate) upload: Uuid,
    pub(crate) one_time_password: String,
}

impl Target {
    /// A new one of everything; the order is this buyer's, the session is this member's.
    async fn new(office: &Office, tenant_id: Uuid, buyer: Uuid, caller: &Member) -> Self {
        let mut owner = office.database.another_owner().await;
        let product = product(tenant_id, 10).insert(&mut owner).await;
        let order = seed::order(&owner, &product, buyer, &quick(1)).await;
        let member = hire(&office.database, tenant_id, Role::Viewer).await;
        let session = Uuid::now_v7();
        let sql = "insert into staff_sessions (id, tenant_id, staff_id, device_id, expires_at, fresh_until)
            values ($1, $2, $3, $1, now() + interval '1 hour', now())";
        owner.execute(sql, &[&session, &caller.tenant_id, &caller.id]).await.unwrap();
        let export = Uuid::now_v7();
        let sql =
            "insert into exports (id, tenant_id, product_id, staff_id, kind, format, language, state, finished_at,
                expires_at)
            values ($1, $2, $3, $4, 'orders', 'csv', 'en', 'ready', now(), now() + interval '1 hour')";
        owner.execute(sql, &[&export, &tenant_id, &product.described.id, &member.id]).await.unwrap();
        let upload = Uuid::now_v7();
        let sql = "insert into uploads (id, tenant_id, staff_id, media_type, expires_at, look_at)
            values ($1, $2, $3, 'image/png', now() + interval '5 minutes', now() + interval '6 minutes')";
        owner.execute(sql, &[&upload, &tenant_id, &member.id]).await.unwrap();
        let one_time_password = caller.secret.password(now());
        Self { product: product.described.id, order, member: member.id, session, export, upload, one_time_password }
    }

    pub(crate) fn ids(&self) -> [String; 6] {
        [self.product, self.order, self.member, self.session, self.export, self.upload].map(|id| id.to_string())
    }

    fn body(&self, action: Action) -> Value {
        let reason = "it was asked for";
        match action {
            Action::PlaceOrder => json!({ "quantity": 1 }),
            Action::PayOrder => json!({ "method": "card" }),
            Action::RenewStaffSession => json!({ "one_time_password": self.one_time_password }),
            Action::InviteStaff => json!({ "email": format!("{}@example.org", self.order), "role": "viewer" }),
            Action::ChangeStaff => json!({ "role": "support" }),
            Action::CreateProduct => json!({
                "name": "A raffle", "campaign": "spring", "price": { "amount": "250", "currency": "EUR" },
                "first": 1, "count": 10, "padding": 2, "opens_at": "2026-01-01T00:00:00Z",
                "closes_at": "2099-01-01T00:00:00Z", "zone": "Europe/Madrid", "hold_seconds": 900,
                "numbers_per_order_max": 10, "numbers_per_buyer_max": 10,
            }),
            Action::EditStore => json!({ "name": "A store" }),
            Action::EditProduct => json!({ "name": "Another raffle" }),
            Action::SetProductIntake | Action::SetStoreIntake => json!({ "intake": "open", "reason": reason }),
            Action::SetReserving => json!({ "reserving": "halted", "reason": reason }),
            Action::BlockNumbers | Action::UnblockNumbers => json!({ "numbers": [1], "reason": reason }),
            Action::SearchOrders => json!({ "code": self.order }),
            Action::ExportProduct => json!({ "kind": "numbers", "format": "csv", "language": "es" }),
            Action::BeginUpload => json!({ "media_type": "image/webp" }),
            Action::SellNumbers => json!({ "phone": "+34600000001", "name": "A person", "quantity": 1 }),
            Action::ExtendHold => json!({ "seconds": 60, "reason": reason }),
            Action::CloseProduct | Action::ReleaseOrder | Action::BookPayment | Action::RefundOrder => {
                json!({ "reason": reason })
            }
            _ => json!({}),
        }
    }
}

/// Whoever asks, with the value of their `Authorization` header.
async fn caller(office: &Office, tenant_id: Uuid, role: Role) -> (Member, Buyer, String) {
    let buyer = Buyer::new(tenant_id);
    // A buyer has no member: this one only keeps the shape.
    let member = hire(&office.database, tenant_id, if role == Role::Buyer { Role::Viewer } else { role }).await;
    let bearer = if role == Role::Buyer { buyer.bearer.clone() } else { member.bearer.clone() };
    (member, buyer, bearer)
}

/// What a role gets, whatever the rules then say of the request itself.
fn refusal(route: &Route, role: Role) -> Option<(u16, String)> {
    if (role == Role::Buyer) != (route.scheme == "buyer") {
        // A token of the other kind is none.
        return Some(is(401, "unauthorized"));
    }
    (!role.may(route.action)).then(|| is(403, "forbidden"))
}

#[tokio::test(flavor = "multi_thread")]
async fn at_home_a_role_does_what_the_table_says() {
    let world = World::open().await;
    let tenant_id = world.office.tenant_id;
    // Somebody who stays, whatever becomes of the others.
    let owner = world.office.hire(Role::Owner).await;
    for route in &world.routes {
        for role in Role::ALL {
            let (member, buyer, bearer) = caller(&world.office, tenant_id, role).await;
            let target = Target::new(&world.office, tenant_id, buyer.id, &member).await;
            let answer = world.send(route, Some(&bearer), &target).await;
            let name = format!("{} as {}: {}", route.action.word(), role.word(), answer.text());
            match refusal(route, role) {
                Some(refusal) => assert_eq!(answer.refusal(), refusal, "{name}"),
                None => assert!(answer.status < 500 && !matches!(answer.status, 400..=404 | 415), "{name}"),
            }
        }
    }
    assert_eq!(owner.get(&world.apis["staff"], "/v1/admin/staff").await.status, 200);
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_another_store_nothing_exists() {
    let world = World::open().await;
    let elsewhere = seed::store(world.office.database.owner()).await;
    for route in &world.routes {
        for role in Role::ALL {
            let (_, _, bearer) = caller(&world.office, world.office.tenant_id, role).await;
            let (theirs, their_buyer, _) = caller(&world.office, elsewhere, Role::Owner).await;
            let target = Target::new(&world.office, elsewhere, their_buyer.id, &theirs).await;
            let answer = world.send(route, Some(&bearer), &target).await;
            let name = format!("{} as {}: {}", route.action.word(), role.word(), answer.text());
            match refusal(route, role) {
                Some(refusal) => assert_eq!(answer.refusal(), refusal, "{name}"),
                None if route.path.contains('{') => assert_eq!(answer.refusal(), is(404, "not-found"), "{name}"),
                None => {
                    let mut said = answer.json_or_null();
                    // What was made now is one's own.
                    said.as_object_mut().map(|members| members.remove("id"));
                    assert!(target.ids().iter().all(|id| !said.to_string().contains(id)), "{name}");
                }
            }
        }
    }
    let moved = "select count(*) from audit_log l join staff s on s.id = l.staff_id where s.tenant_id <> l.tenant_id";
    assert_eq!(tests::look::count(&world.office.database, moved).await, 0);
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_nobody_is_anybody() {
    let world = World::open().await;
    let (member, buyer, _) = caller(&world.office, world.office.tenant_id, Role::Owner).await;
    let target = Target::new(&world.office, world.office.tenant_id, buyer.id, &member).await;
    let ended = world.office.hire(Role::Owner).await;
    let sql = "update staff_sessions set ended_at = now(), ended_by = 'staff' where id = $1";
    world.office.database.owner().execute(sql, &[&ended.session_id]).await.unwrap();
    // A session of another is no session of theirs.
    let borrowed = tests::staff::bearer(member.tenant_id, member.id, world.office.hire(Role::Owner).await.session_id);
    for route in &world.routes {
        let bearers = [None, Some("Bearer"), Some("Bearer x"), Some(&*ended.bearer), Some(&*borrowed)];
        for bearer in bearers {
            let answer = world.send(route, bearer, &target).await;
            assert_eq!(answer.refusal(), is(401, "unauthorized"), "{}", route.action.word());
        }
    }
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_proof_is_not_enough_for_what_wants_a_fresh_one() {
    let world = World::open().await;
    let sql = "update staff_sessions set fresh_until = now() - interval '1 second' where id = $1";
    for route in world.routes.iter().filter(|route| route.scheme == "staff") {
        let (member, buyer, bearer) = caller(&world.office, world.office.tenant_id, Role::Owner).await;
        let target = Target::new(&world.office, world.office.tenant_id, buyer.id, &member).await;
        world.office.database.owner().execute(sql, &[&member.session_id]).await.unwrap();
        let answer = world.send(route, Some(&bearer), &target).await;
        let is_refused = answer.status == 403;
        assert_eq!(is_refused, route.action.wants_fresh(), "{}: {}", route.action.word(), answer.text());
        assert!(!is_refused || answer.refusal() == is(403, "not-fresh"));
    }
    world.finish().await;
}
