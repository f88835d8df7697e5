//! The functions of the application's template, with what they are given.

use std::collections::BTreeMap;

use edge::Kind;
use serde_json::{Map, Value};

use super::{Resource, Template};

/// A function.
#[derive(Debug, Clone, Copy)]
pub struct Function<'a>(pub Resource<'a>);

impl<'a> Function<'a> {
    /// Its name: the folder of its build.
    #[must_use]
    pub fn name(self) -> &'a str {
        let folder = self.0.get("/CodeUri").as_str().and_then(|uri| uri.strip_prefix("target/lambda/"));
        folder.unwrap_or_else(|| panic!("{} has no build", self.0.id))
    }

    /// Its own variables, without the globals, as they stand in the template.
    #[must_use]
    pub fn variables(self) -> &'a Map<String, Value> {
        self.0.get("/Environment/Variables").as_object().expect("every function has variables")
    }

    /// Its SQS event, if it is a worker.
    #[must_use]
    pub fn messages(self) -> Option<Resource<'a>> {
        self.event("SQS")
    }

    /// Its schedule, if it is a job.
    #[must_use]
    pub fn schedule(self) -> Option<Resource<'a>> {
        self.event("ScheduleV2")
    }

    /// What calls it. The migration, which CloudFormation calls, counts as HTTP.
    #[must_use]
    pub fn kind(self) -> Kind {
        let worker = self.messages().is_some() || self.schedule().is_some();
        if worker { Kind::Worker } else { Kind::Http }
    }

    fn event(self, kind: &str) -> Option<Resource<'a>> {
        let events = self.0.get("/Events").as_object()?;
        events.iter().map(|(id, whole)| Resource { id, whole }).find(|event| event.whole["Type"] == kind)
    }
}

impl Template {
    /// Every function.
    pub fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        self.of_type("AWS::Serverless::Function").map(Function)
    }

    /// The function of that name.
    #[must_use]
    pub fn function(&self, name: &str) -> Function<'_> {
        self.functions().find(|one| one.name() == name).unwrap_or_else(|| panic!("there is no function {name}"))
    }

    /// The variables that CloudFormation would set for a function, the globals included. `given` are values of
    /// parameters and resources by their logical ids, `Stage` among them; other parameters have their defaults.
    #[must_use]
    pub fn environment(&self, function: Function<'_>, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let globals = self.0["Globals"]["Function"]["Environment"]["Variables"].as_object().into_iter().flatten();
        let all = globals.chain(function.variables());
        all.map(|(name, value)| (name.clone(), self.resolved(value, given))).collect()
    }

    fn resolved(&self, value: &Value, given: &BTreeMap<String, String>) -> String {
        if let Some(text) = value.as_str() {
            return text.to_owned();
        }
        if let Some(name) = value["Ref"].as_str() {
            return self.value_of(name, given);
        }
        if let Some(text) = value["Fn::Sub"].as_str() {
            return self.substituted(text, given);
        }
        match value["Fn::If"].as_array().map(Vec::as_slice) {
            Some([condition, yes, no]) => {
                let is_so = match condition.as_str() {
                    Some("OnAws") => given["Stage"] != "local",
                    Some("HasOriginSecret") => !self.value_of("OriginSecretArn", given).is_empty(),
                    _ => panic!("a variable depends on {condition}"),
                };
                self.resolved(if is_so { yes } else { no }, given)
            }
            _ => panic!("a variable is {value}"),
        }
    }

    fn substituted(&self, text: &str, given: &BTreeMap<String, String>) -> String {
        let mut parts = text.split("${");
        let mut done = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap_or_else(|| panic!("{text} does not end"));
            done += &self.value_of(name, given);
            done += rest;
        }
        done
    }

    fn value_of(&self, name: &str, given: &BTreeMap<String, String>) -> String {
        if let Some(value) = given.get(name) {
            return value.clone();
        }
        match &self.0["Parameters"][name]["Default"] {
            Value::Null => panic!("{name} has no value"),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}
