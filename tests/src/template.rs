//! CloudFormation templates as JSON: `!Ref X` reads as `{"Ref": "X"}`, `!GetAtt A.B` as `{"Fn::GetAtt": ["A", "B"]}`.

mod functions;

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

use crate::files;
pub use functions::Function;

/// A template of this repository.
#[derive(Debug, Clone)]
pub struct Template(pub Value);

/// One resource of a template.
#[derive(Debug, Clone, Copy)]
pub struct Resource<'a> {
    /// Its logical id.
    pub id: &'a str,
    /// All of it.
    pub whole: &'a Value,
}

impl Template {
    /// Reads a template, by its path from the root.
    #[must_use]
    pub fn read(path: &str) -> Self {
        let text = files::read(path);
        let documents = Yaml::load_from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self(json_of(&documents[0]))
    }

    /// Resources of a type.
    pub fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = Resource<'a>> {
        self.resources().filter(move |resource| resource.whole["Type"] == kind)
    }

    /// Every resource.
    pub fn resources(&self) -> impl Iterator<Item = Resource<'_>> {
        self.0["Resources"].as_object().unwrap().iter().map(|(id, whole)| Resource { id, whole })
    }

    /// The resource with a logical id.
    #[must_use]
    pub fn resource<'a>(&'a self, id: &'a str) -> Resource<'a> {
        let whole = &self.0["Resources"][id];
        assert!(!whole.is_null(), "there is no resource {id}");
        Resource { id, whole }
    }
}

impl<'a> Resource<'a> {
    /// A property, by a JSON pointer below `Properties`.
    #[must_use]
    pub fn get(self, pointer: &str) -> &'a Value {
        self.whole["Properties"].pointer(pointer).unwrap_or(&Value::Null)
    }

    /// A property that is a number, or text that is one.
    #[must_use]
    pub fn number(self, pointer: &str) -> u64 {
        let value = self.get(pointer);
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        number.unwrap_or_else(|| panic!("{}{pointer} is {value}", self.id))
    }
}

/// `reserve-numbers` as a logical id.
#[must_use]
pub fn pascal(name: &str) -> String {
    name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// Every object inside a value, the value itself included.
pub fn objects(value: &Value, found: &mut dyn FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            found(members);
            members.values().for_each(|member| objects(member, found));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| objects(entry, found)),
        _ => {}
    }
}

fn json_of(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => json!(value),
        Yaml::Value(Scalar::Integer(value)) => json!(value),
        Yaml::Value(Scalar::FloatingPoint(value)) => json!(value.into_inner()),
        Yaml::Value(Scalar::String(value)) => json!(value),
        Yaml::Sequence(entries) => entries.iter().map(json_of).collect(),
        Yaml::Mapping(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| (key.as_str().expect("a key is text").to_owned(), json_of(value)))
                .collect(),
        ),
        Yaml::Tagged(tag, value) => intrinsic(&tag.suffix, json_of(value)),
        other => panic!("a template does not hold {other:?}"),
    }
}

fn intrinsic(name: &str, argument: Value) -> Value {
    match name {
        "Ref" | "Condition" => json!({ name: argument }),
        "GetAtt" => {
            let text = argument.as_str().expect("!GetAtt takes text");
            json!({ "Fn::GetAtt": text.splitn(2, '.').collect::<Vec<_>>() })
        }
        _ => json!({ format!("Fn::{name}"): argument }),
    }
}
