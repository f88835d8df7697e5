//! What stands in front of the API (`infra/edge.yaml`) stands outside of the API's own bounds, and proves to it where
//! requests come from.

use std::time::Duration;

use domain::limits;
use domain::login::Share;
use serde_json::{Map, Value, json};
use tests::template::{Template, objects};

use super::application;
use crate::openapi::{documents, operations};

/// Buyers behind one address of a mobile carrier, at least.
const BUYERS: u64 = 1_000;

/// What `admin` takes for an answer, on the average and generously: a page of a hundred products is the slowest.
const ANSWERED_IN: Duration = Duration::from_millis(100);

const WEBHOOKS: &str = "/v1/webhooks/";

fn front() -> Template {
    Template::read("infra/edge.yaml")
}

fn rules(front: &Template) -> &Vec<Value> {
    front.resource("Wall").get("/Rules").as_array().unwrap()
}

/// Requests of one address that a rule lets through, and the seconds in which it counts them.
fn limit(front: &Template, name: &str) -> (u64, u64) {
    let rule = rules(front).iter().find(|rule| rule["Name"] == name).unwrap();
    let counted = &rule["Statement"]["RateBasedStatement"];
    assert_eq!(counted["AggregateKeyType"], "IP", "{name}");
    (counted["Limit"].as_u64().unwrap(), counted["EvaluationWindowSec"].as_u64().unwrap())
}

/// Messages that a pot gives in so many seconds.
fn most(share: Share, seconds: u64) -> u64 {
    u64::from(share.messages) + seconds / share.one_per.as_secs()
}

/// A throttle of the API's stage, in requests of so many seconds.
fn throttled(settings: &Value, seconds: u64) -> u64 {
    settings["ThrottlingRateLimit"].as_u64().unwrap() * seconds
}

#[test]
fn the_wall_lets_through_more_than_the_code() {
    let (front, template) = (front(), application());
    let stage = template.resource("ApiStage");
    let (login, window) = limit(&front, "login");
    let tries = u64::try_from(limits::LOGIN_TRIES_MAX).unwrap();
    assert!(login >= most(limits::CODES_PER_ADDRESS, window) * (1 + tries));

    let (staff, window) = limit(&front, "staff");
    let tries = u64::try_from(limits::STAFF_TRIES_MAX).unwrap();
    let links = most(limits::STAFF_LINKS_PER_ADDRESS, window) * (1 + tries);
    assert!(Duration::from_secs(window) < limits::ACCESS_TOKEN_LIVES, "or staff would refresh more than once");
    assert!(staff >= links + u64::try_from(limits::STAFF_PER_STORE_MAX).unwrap());

    let (admin, window) = limit(&front, "admin");
    assert!(admin >= most(limits::SALES_PER_STORE, window) * 3, "sold, looked at, booked");

    let (webhooks, window) = limit(&front, "webhooks");
    let route = &stage.get("/RouteSettings")["POST /v1/webhooks/{gateway}/{store}"];
    assert!(webhooks >= throttled(route, window));

    let (writes, _) = limit(&front, "writes");
    assert!(writes >= BUYERS * 3 * u64::try_from(limits::OPEN_ORDERS_MAX).unwrap(), "placed, paid, cancelled");

    let (everything, window) = limit(&front, "everything");
    let polls = window / limits::POLL_AFTER_MIN.as_secs();
    assert!(everything >= BUYERS * 2 * polls);
    assert!(everything * 5 <= throttled(stage.get("/DefaultRouteSettings"), window), "one address is not everybody");
}

/// Functions that all stores share have few environments: one address is let through far below what they serve.
#[test]
fn one_address_takes_neither_admin_nor_staff_from_the_others() {
    let (front, template) = (front(), application());
    let served = |function: &str, window: u64, one: Duration| {
        let environments = template.resource(function).number("/ReservedConcurrentExecutions");
        environments * window * 1_000 / u64::try_from(one.as_millis()).unwrap()
    };
    let (admin, window) = limit(&front, "admin");
    assert!(admin * 5 <= served("Admin", window, ANSWERED_IN));
    let (staff, window) = limit(&front, "staff");
    assert!(staff * 4 <= served("Staff", window, limits::STAFF_LINK_ANSWER_AFTER));
    let settings = template.resource("ApiStage").get("/RouteSettings").as_object().unwrap();
    let mut throttles = 0;
    for (route, throttle) in settings {
        let most = if route.contains(" /v1/admin/") {
            admin
        } else if route.contains(" /v1/staff/") || route.ends_with("/staff-links") {
            staff
        } else {
            continue;
        };
        assert!(throttled(throttle, window) >= most * 2, "one address uses {route} up");
        throttles += 1;
    }
    assert!(throttles > 15, "only {throttles} routes");
    let rule = rules(&front).iter().find(|rule| rule["Name"] == "admin").unwrap();
    let counted = &rule["Statement"]["RateBasedStatement"]["ScopeDownStatement"]["ByteMatchStatement"];
    assert_eq!(
        (&counted["SearchString"], &counted["PositionalConstraint"]),
        (&json!("/v1/admin/"), &json!("STARTS_WITH"))
    );
    for (function, document) in documents() {
        for (method, path, operation) in operations(&document) {
            let is_counted = ["/v1/admin/", "/v1/staff/"].iter().any(|prefix| path.starts_with(*prefix));
            let scheme = operation["security"][0].as_object().and_then(|one| one.keys().next());
            let bears = scheme.is_some_and(|scheme| scheme.starts_with("staff"));
            assert!(!bears || is_counted, "{function}: {method} {path} is counted by neither rule");
        }
    }
    let priorities: Vec<u64> = rules(&front).iter().map(|rule| rule["Priority"].as_u64().unwrap()).collect();
    assert_eq!(priorities, (0..u64::try_from(rules(&front).len()).unwrap()).collect::<Vec<_>>(), "one each, in order");
}

#[test]
fn webhooks_are_counted_apart_and_not_looked_into() {
    let front = front();
    let mut spared = 0;
    for rule in rules(&front) {
        let name = rule["Name"].as_str().unwrap();
        let mut excepted = false;
        objects(rule, &mut |members: &Map<String, Value>| {
            let path = members.get("NotStatement").and_then(|not| not.pointer("/Statement/ByteMatchStatement"));
            excepted |= path.is_some_and(|path| path["SearchString"] == WEBHOOKS);
        });
        spared += usize::from(excepted);
        assert_ne!(excepted, matches!(name, "login" | "staff" | "admin" | "webhooks"), "{name}");
    }
    assert_eq!(spared, rules(&front).len() - 4);
    let inspected = front.resource("Wall").get("/AssociationConfig/RequestBody/CLOUDFRONT/DefaultSizeInspectionLimit");
    let kibibytes: usize = inspected.as_str().unwrap().strip_prefix("KB_").unwrap().parse().unwrap();
    assert!(kibibytes * 1_024 >= limits::BODY_BYTES_MAX, "bodies are looked at to their end");
}

#[test]
fn the_origin_hears_the_address_and_the_secret() {
    let front = front();
    let distribution = front.resource("Distribution");
    let origins = distribution.get("/DistributionConfig/Origins").as_array().unwrap();
    assert_eq!(origins.len(), 1);
    assert_eq!(origins[0]["CustomOriginConfig"]["OriginProtocolPolicy"], "https-only");
    assert_eq!(origins[0]["OriginCustomHeaders"].as_array().unwrap().len(), 1);
    let header = &origins[0]["OriginCustomHeaders"][0];
    assert_eq!(header["HeaderName"], "x-origin-secret");
    let value = header["HeaderValue"]["Fn::Sub"].as_str().unwrap();
    assert_eq!(value, "{{resolve:secretsmanager:${OriginSecretArn}:SecretString:::${OriginSecretVersion}}}");
    let policy = front.resource("EverythingAndTheAddress").get("/OriginRequestPolicyConfig/HeadersConfig");
    let wanted =
        json!({ "HeaderBehavior": "allViewerAndWhitelistCloudFront", "Headers": ["CloudFront-Viewer-Address"] });
    assert_eq!(*policy, wanted);
    let others = distribution.get("/DistributionConfig/CacheBehaviors").as_array().unwrap();
    for behaviour in others.iter().chain([distribution.get("/DistributionConfig/DefaultCacheBehavior")]) {
        assert_eq!(behaviour["OriginRequestPolicyId"], json!({ "Ref": "EverythingAndTheAddress" }), "{behaviour}");
        assert_eq!(behaviour["ViewerProtocolPolicy"], "https-only", "{behaviour}");
    }
    let oldest = distribution.get("/DistributionConfig/ViewerCertificate/MinimumProtocolVersion");
    assert_eq!(*oldest, "TLSv1.2_2021");
}

#[test]
fn only_what_is_public_is_kept_and_no_error_is() {
    let front = front();
    let distribution = front.resource("Distribution");
    let policy = front.resource("AsTheHeadersSay").get("/CachePolicyConfig");
    assert_eq!((policy["MinTTL"].as_u64(), policy["DefaultTTL"].as_u64()), (Some(0), Some(0)), "as the headers say");
    // Amazon's CachingDisabled.
    let default = distribution.get("/DistributionConfig/DefaultCacheBehavior/CachePolicyId");
    assert_eq!(*default, "4135ea2d-6df8-44a3-9df3-4b5a84be39ad");
    let kept: Vec<&str> = distribution
        .get("/DistributionConfig/CacheBehaviors")
        .as_array()
        .unwrap()
        .iter()
        .map(|behaviour| behaviour["PathPattern"].as_str().unwrap().strip_suffix('*').unwrap())
        .collect();
    let mut public = 0;
    for (function, document) in documents() {
        for (method, path, operation) in operations(&document) {
            if method == "GET" && kept.iter().any(|prefix| path.starts_with(*prefix)) {
                assert!(operation["security"].is_null(), "{function}: GET {path} is somebody's own");
                public += 1;
            }
        }
    }
    assert!(public > kept.len(), "{kept:?}");
    let errors = distribution.get("/DistributionConfig/CustomErrorResponses").as_array().unwrap();
    let codes: Vec<u64> = errors.iter().map(|error| error["ErrorCode"].as_u64().unwrap()).collect();
    assert_eq!(codes, [400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504], "all that CloudFront would keep");
    assert!(errors.iter().all(|error| error["ErrorCachingMinTTL"] == 0), "{errors:?}");
}
