//! The routes of the API are those that the functions document, each at its function.

use std::collections::BTreeSet;

use serde_json::json;
use tests::template::{Template, pascal};

use super::application;
use crate::openapi::{documents, operations};

/// `(route, function's logical id)` as deployed.
fn deployed(template: &Template) -> BTreeSet<(String, String)> {
    let routes = template.of_type("AWS::ApiGatewayV2::Route").map(|route| {
        let target = route.get("/Target")["Fn::Sub"].as_str().unwrap();
        let integration = target.strip_prefix("integrations/${").unwrap().strip_suffix('}').unwrap();
        let uri = template.resource(integration).get("/IntegrationUri")["Fn::Sub"].as_str().unwrap();
        let function = uri.rsplit_once("function:${").unwrap().1.strip_suffix("}:live");
        let function = function.expect("traffic enters by the alias").to_owned();
        (route.get("/RouteKey").as_str().unwrap().to_owned(), function)
    });
    routes.collect()
}

#[test]
fn routes_are_those_of_the_code_both_ways() {
    let mut documented = BTreeSet::new();
    for (function, document) in documents() {
        for (method, path, _) in operations(&document) {
            documented.insert((format!("{method} {path}"), pascal(function)));
        }
    }
    assert_eq!(deployed(&application()), documented);
}

#[test]
fn the_stage_adds_nothing_to_paths_and_throttles_what_writes() {
    let template = application();
    let stage = template.resource("ApiStage");
    assert_eq!(*stage.get("/StageName"), json!("$default"));
    assert!(stage.number("/DefaultRouteSettings/ThrottlingRateLimit") > 0);
    let routes: BTreeSet<String> = deployed(&template).into_iter().map(|(route, _)| route).collect();
    let settings = stage.get("/RouteSettings").as_object().unwrap();
    for route in settings.keys() {
        assert!(routes.contains(route), "settings of a route that is not there: {route}");
    }
    // Or an update that adds a route and its settings is refused while the stage knows the settings only.
    let before = stage.whole["DependsOn"].as_array().unwrap().iter().map(|id| template.resource(id.as_str().unwrap()));
    let before: BTreeSet<&str> = before.map(|route| route.get("/RouteKey").as_str().unwrap()).collect();
    assert_eq!(before, settings.keys().map(String::as_str).collect());
    for route in routes.iter().filter(|route| route.starts_with("POST")) {
        assert!(settings.contains_key(route), "{route} is not throttled");
    }
}

#[test]
fn the_gateway_may_invoke_what_it_integrates() {
    let template = application();
    let allowed: BTreeSet<String> = template
        .of_type("AWS::Lambda::Permission")
        .filter(|permission| permission.get("/Principal") == "apigateway.amazonaws.com")
        .map(|permission| permission.get("/FunctionName")["Ref"].as_str().unwrap().replace(".Alias", ""))
        .collect();
    let integrated: BTreeSet<String> = deployed(&template).into_iter().map(|(_, function)| function).collect();
    assert_eq!(allowed, integrated);
    for integration in template.of_type("AWS::ApiGatewayV2::Integration") {
        assert_eq!(*integration.get("/PayloadFormatVersion"), json!("2.0"), "{}", integration.id);
    }
}
