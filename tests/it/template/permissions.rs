//! Least privilege: a role for each function, with what its code uses and nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::files;
use tests::template::{Template, objects};

use super::application;

/// Objects that functions may touch.
const OBJECTS: [&str; 3] =
    ["${ExportsBucket.Arn}/exports/*", "${UploadsBucket.Arn}/quarantine/*", "${UploadsBucket.Arn}/public/*"];

/// One or many.
fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |entries| entries.iter().collect())
}

/// Every statement of every policy in a template, with the resource that holds it.
fn statements(template: &Template) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for resource in template.resources() {
        let properties = resource.get("");
        let mut policy = |members: &serde_json::Map<String, Value>| {
            if members.contains_key("Effect") {
                found.push((resource.id.to_owned(), Value::Object(members.clone())));
            }
        };
        objects(properties, &mut policy);
    }
    found
}

#[test]
fn no_wildcards_beyond_what_aws_demands() {
    let infra = files::below("infra", "yaml").into_iter().map(|path| path.to_str().unwrap().to_owned());
    for path in infra.chain(["template.yaml".to_owned()]) {
        let template = Template::read(&path);
        for (id, statement) in statements(&template) {
            // The policy of an endpoint gives nothing to anybody: it only narrows what may pass, here to our own account.
            if id == "S3Endpoint" && !statement["Condition"]["StringEquals"]["aws:ResourceAccount"].is_null() {
                continue;
            }
            for action in list(&statement["Action"]) {
                assert!(!action.to_string().contains('*'), "{path} {id}: {action}");
            }
            assert!(statement["NotAction"].is_null() && statement["NotResource"].is_null(), "{path} {id}");
            if id == "NetworkInterfacesPolicy" {
                // Lambda checks these at creation against every resource.
                assert!(list(&statement["Action"]).iter().all(|action| action.as_str().unwrap().starts_with("ec2:")));
                continue;
            }
            // A phone has no ARN. Topics, which have one, are denied.
            if matches!(id.as_str(), "SendLoginCodeRole" | "SendNoticeRole") && statement["Action"] == "sns:Publish" {
                let effects: BTreeSet<String> = statements(&template)
                    .into_iter()
                    .filter(|(holder, one)| *holder == id && one["Action"] == "sns:Publish")
                    .map(|(_, one)| format!("{} {}", one["Effect"], one["Resource"]))
                    .collect();
                let topics = r#""Deny" {"Fn::Sub":"arn:${AWS::Partition}:sns:*:*:*"}"#.to_owned();
                assert_eq!(effects, [r#""Allow" "*""#.to_owned(), topics].into());
                continue;
            }
            for resource in list(&statement["Resource"]).into_iter().filter(|_| statement["Effect"] == "Allow") {
                // Where answers of custom resources go: a bucket of CloudFormation's own in each region.
                let answers =
                    id == "S3Endpoint" && resource.to_string().contains(":cloudformation-custom-resource-response-");
                // Objects below a prefix have no other name.
                let objects = resource["Fn::Sub"].as_str().is_some_and(|text| OBJECTS.contains(&text));
                assert!(answers || objects || !resource.to_string().contains('*'), "{path} {id}: {resource}");
            }
        }
    }
}

#[test]
fn what_lambda_needs_is_denied_to_the_code_inside() {
    let template = application();
    let policy: Vec<Value> = statements(&template)
        .into_iter()
        .filter(|(id, _)| id == "NetworkInterfacesPolicy")
        .map(|(_, statement)| statement)
        .collect();
    let actions = |effect: &str| -> Vec<&Value> {
        policy.iter().filter(|one| one["Effect"] == effect).flat_map(|one| list(&one["Action"])).collect()
    };
    assert!(!actions("Allow").is_empty());
    assert_eq!(actions("Allow"), actions("Deny"));
    let deny = policy.iter().find(|one| one["Effect"] == "Deny").unwrap();
    assert!(!deny["Condition"]["ArnLike"]["lambda:SourceFunctionArn"].is_null());
}

#[test]
fn roles_are_not_shared_and_say_what_the_variables_say() {
    let template = application();
    let mut roles = BTreeSet::new();
    for function in template.functions() {
        let (id, name) = (function.0.id, function.name());
        let role = function.0.get("/Role")["Fn::GetAtt"][0].as_str().unwrap();
        assert!(roles.insert(role), "{role} is shared");
        let own: Vec<Value> =
            statements(&template).into_iter().filter(|(holder, _)| holder == role).map(|(_, one)| one).collect();
        let allowed = |action: &str| -> BTreeSet<String> {
            let with = own.iter().filter(|one| list(&one["Action"]).contains(&&json!(action)));
            let resources = with.flat_map(|one| list(&one["Resource"]));
            resources.map(|one| one["Fn::GetAtt"][0].as_str().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(allowed("logs:PutLogEvents"), [format!("{id}Logs")].into(), "{name}");
        let queues: BTreeSet<String> = function
            .variables()
            .iter()
            .filter(|(variable, _)| variable.starts_with("TIRADA_QUEUE_"))
            .map(|(_, value)| value["Ref"].as_str().unwrap().to_owned())
            .collect();
        let reads = function.messages().is_some();
        let sends = if reads { BTreeSet::new() } else { queues.clone() };
        assert_eq!(allowed("sqs:SendMessage"), sends, "{name}");
        for action in
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"]
        {
            assert_eq!(allowed(action), if reads { queues.clone() } else { BTreeSet::new() }, "{name} {action}");
        }
        let publishes = own.iter().any(|one| one["Action"] == "sns:Publish");
        assert_eq!(publishes, matches!(name, "send-login-code" | "send-notice"), "{name}");
        let mails = own.iter().any(|one| one["Action"] == "ses:SendEmail");
        assert_eq!(mails, matches!(name, "staff" | "send-notice"), "{name}");
        let secrets = own.iter().any(|one| one["Action"] == "secretsmanager:GetSecretValue");
        assert_eq!(secrets, name == "migrate", "{name}: only migrations are made as the owner");
        let managed = template.resource(role).get("/ManagedPolicyArns").to_string();
        assert_eq!(managed.contains("ConnectToDatabasePolicy"), name != "migrate", "{name}");
    }
}

#[test]
fn functions_touch_the_objects_that_their_code_does_and_no_other_service() {
    let template = application();
    let all = statements(&template);
    let [exports, quarantine, public] = OBJECTS;
    for function in template.functions() {
        let name = function.name();
        // Who signs forms writes to quarantine only, and only who looks at uploads publishes.
        let wanted: BTreeSet<(&str, &str)> = match name {
            "admin" => [("s3:GetObject", exports), ("s3:PutObject", quarantine)].into(),
            "write-exports" => {
                ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"].map(|action| (action, exports)).into()
            }
            "check-uploads" => {
                [("s3:DeleteObject", quarantine), ("s3:GetObject", quarantine), ("s3:PutObject", public)].into()
            }
            _ => BTreeSet::new(),
        };
        let mut touched = BTreeSet::new();
        for (_, one) in all.iter().filter(|(holder, _)| *holder == format!("{}Role", function.0.id)) {
            for action in list(&one["Action"]) {
                let action = action.as_str().unwrap();
                let service = action.split(':').next().unwrap();
                let known = ["logs", "s3", "secretsmanager", "ses", "sns", "sqs", "sts"];
                assert!(known.contains(&service), "{name} may {action}, which no test looks at");
                for object in list(&one["Resource"]).into_iter().filter(|_| service == "s3") {
                    touched.insert((action, object["Fn::Sub"].as_str().unwrap()));
                }
            }
        }
        assert_eq!(touched, wanted, "{name}");
    }
}

#[test]
fn only_who_asks_gateways_has_a_way_out() {
    let template = application();
    for function in template.functions() {
        let network = function.0.get("/VpcConfig").to_string();
        let asks = matches!(function.name(), "payments" | "settle-payment");
        for parameter in ["GatewaySubnetIds", "GatewaySecurityGroupIds"] {
            assert_eq!(network.contains(parameter), asks, "{}", function.name());
        }
    }
}

#[test]
fn the_database_is_reached_by_the_proxy_and_migrations_the_proxy_by_functions_and_operators() {
    let network = Template::read("infra/network.yaml");
    let name = |value: &Value| value["Ref"].as_str().unwrap_or_default().to_owned();
    let sources = |group: &str| -> BTreeSet<String> {
        let rules = network.of_type("AWS::EC2::SecurityGroupIngress");
        let into = rules.filter(|rule| name(rule.get("/GroupId")) == group);
        into.map(|rule| name(rule.get("/SourceSecurityGroupId"))).collect()
    };
    let groups = |names: &[&str]| names.iter().map(|name| format!("{name}SecurityGroup")).collect::<BTreeSet<_>>();
    assert_eq!(sources("DatabaseSecurityGroup"), groups(&["Proxy", "Migrate"]));
    assert_eq!(sources("ProxySecurityGroup"), groups(&["Functions", "Gateways", "Operators"]));
    for group in network.of_type("AWS::EC2::SecurityGroup") {
        assert!(group.get("/SecurityGroupIngress").is_null(), "{}: rules stand by themselves", group.id);
        let has_a_way_out = group.get("/SecurityGroupEgress").to_string().contains("0.0.0.0/0");
        assert_eq!(has_a_way_out, group.id == "GatewaysSecurityGroup", "{}", group.id);
    }
}

#[test]
fn functions_connect_as_one_role_and_only_as_that() {
    let template = application();
    let connect: Vec<String> = statements(&template)
        .into_iter()
        .filter(|(_, one)| one["Action"] == "rds-db:connect")
        .map(|(_, one)| one["Resource"]["Fn::Sub"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(connect.len(), 1);
    assert!(connect[0].ends_with(&format!("/{}", store::migrations::APP_ROLE)), "{connect:?}");
    let user = &template.0["Globals"]["Function"]["Environment"]["Variables"]["TIRADA_DATABASE_USER"];
    assert_eq!(*user, store::migrations::APP_ROLE);
}
