//! What template.yaml says about functions, queues, mappings and schedules: the simulator repeats none of it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::mapping::Polling;
use crate::template::{Resource, Template, pascal};
use domain::messages::Queue;

/// A function's figures.
#[derive(Debug, Clone)]
pub(super) struct FunctionFigures {
    pub(super) timeout: Duration,
    pub(super) concurrency: usize,
    pub(super) variables: BTreeMap<String, String>,
}

/// A queue's figures, and those of the mapping behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueFigures {
    pub(super) visibility: Duration,
    pub(super) receives_max: u32,
    pub(super) batch_max: usize,
    pub(super) window: Duration,
    pub(super) concurrency: usize,
}

impl QueueFigures {
    pub(super) fn settings(self) -> crate::queue::Settings {
        let Self { visibility, receives_max, .. } = self;
        crate::queue::Settings { visibility, receives_max, ..crate::queue::Settings::default() }
    }

    pub(super) const fn polling(self) -> Polling {
        Polling { batch_max: self.batch_max, window: self.window, concurrency: self.concurrency }
    }
}

/// The template, read.
pub(super) struct Figures(Template);

impl Figures {
    pub(super) fn read() -> Self {
        Self(Template::read("template.yaml"))
    }

    /// The functions that serve: every one but the migration.
    pub(super) fn functions(&self) -> Vec<String> {
        self.0.functions().map(|one| one.name().to_owned()).filter(|name| name != "migrate").collect()
    }

    /// Functions on a schedule.
    pub(super) fn jobs(&self) -> Vec<String> {
        self.0.functions().filter(|one| one.schedule().is_some()).map(|one| one.name().to_owned()).collect()
    }

    /// A function's figures. `parameters` are the values of what its variables refer to.
    pub(super) fn function(&self, name: &str, parameters: &BTreeMap<String, String>) -> FunctionFigures {
        let function = self.0.function(name);
        FunctionFigures {
            timeout: Duration::from_secs(function.0.number("/Timeout")),
            concurrency: whole(function.0.number("/ReservedConcurrentExecutions")),
            variables: self.0.environment(function, parameters),
        }
    }

    pub(super) fn queue(&self, queue: Queue) -> QueueFigures {
        let id = pascal(queue.name());
        let queue_id = format!("{id}Queue");
        let own = self.0.resource(&queue_id);
        let function = self.0.resource(&id);
        let mapping = |name: &str| function.number(&format!("/Events/Messages/Properties/{name}"));
        QueueFigures {
            visibility: Duration::from_secs(own.number("/VisibilityTimeout")),
            receives_max: u32::try_from(own.number("/RedrivePolicy/maxReceiveCount")).expect("a small number"),
            batch_max: whole(mapping("BatchSize")),
            window: Duration::from_secs(mapping("MaximumBatchingWindowInSeconds")),
            concurrency: whole(mapping("ScalingConfig/MaximumConcurrency")),
        }
    }

    /// How often a job runs.
    pub(super) fn period(&self, name: &str) -> Duration {
        let id = pascal(name);
        let expression = self.0.resource(&id).get("/Events/Schedule/Properties/ScheduleExpression");
        assert_eq!(expression, "rate(1 minute)", "{name}");
        Duration::from_secs(60)
    }

    /// Routes: method and path pattern, and the function behind them.
    pub(super) fn routes(&self) -> Vec<(String, String)> {
        let routes = self.0.of_type("AWS::ApiGatewayV2::Route");
        let route = |route: Resource<'_>| {
            let target = route.get("/Target")["Fn::Sub"].as_str().expect("a target").to_owned();
            let integration = target.trim_start_matches("integrations/${").trim_end_matches('}').to_owned();
            let uri = self.0.resource(&integration).get("/IntegrationUri")["Fn::Sub"]
                .as_str()
                .expect("an address")
                .to_owned();
            let function =
                uri.rsplit("${").next().and_then(|rest| rest.split('}').next()).expect("a function").to_owned();
            (route.get("/RouteKey").as_str().expect("a route").to_owned(), kebab(&function))
        };
        routes.map(route).collect()
    }
}

fn whole(number: u64) -> usize {
    usize::try_from(number).expect("a small number")
}

fn kebab(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
