//! What is written about security is there: the tests of the threat table, the operator's commands, the reasons of what
//! scanners may overlook, and a version for every tool.

use std::collections::BTreeSet;

use clap::{CommandFactory, Parser};
use operator::Cli;
use tests::files;

/// Stands for the ids of the runbooks.
const ID: &str = "01995b1e-6c00-7a10-8f21-3b5c7d9e1f02";

/// Names of all tests.
fn names() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files::rust() {
        let text = files::read(&path);
        let mut lines = text.lines().map(str::trim_start);
        while let Some(line) = lines.next() {
            if !(line.starts_with("#[test]") || line.starts_with("#[tokio::test")) {
                continue;
            }
            // Other attributes may stand between.
            let function = lines.by_ref().find(|line| line.starts_with("fn ") || line.starts_with("async fn "));
            let name =
                function.and_then(|line| line.trim_start_matches("async ").strip_prefix("fn ")?.split('(').next());
            found.extend(name.map(str::to_owned));
        }
    }
    found
}

/// What stands in backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_threat_has_a_wall_and_a_test_that_is_there() {
    let text = files::read("ARCHITECTURE.md");
    let section = text.split("\n## Threats\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"))
        .skip(1)
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() > 20, "{} rows", rows.len());
    let known = names();
    for row in rows {
        let [what, who, wall, shown] = row[..] else { panic!("not four columns: {row:?}") };
        assert!(!what.is_empty() && !who.is_empty() && !wall.is_empty(), "{what}");
        let names = quoted(shown);
        assert!(!names.is_empty(), "{what}: {shown}");
        for name in names {
            assert!(known.contains(name), "{what}: there is no test {name}");
        }
    }
}

#[test]
fn commands_of_the_runbooks_are_the_operators() {
    let mut commands = 0;
    for path in ["SECURITY.md", "README.md", "infra/README.md"] {
        for line in files::read(path).lines().filter(|line| line.starts_with("tirada ")) {
            let line = line.split(" #").next().unwrap();
            let words = line.split('"').enumerate().flat_map(|(n, part)| {
                // What stands in quotes is one word.
                let words: Vec<&str> = if n % 2 == 1 { vec![part] } else { part.split_whitespace().collect() };
                words.into_iter().map(|word| if ["ID", "FINDING", "REFUND"].contains(&word) { ID } else { word })
            });
            let parsed = Cli::try_parse_from(words);
            assert!(parsed.is_ok(), "{path}: {line}: {}", parsed.unwrap_err());
            commands += 1;
        }
    }
    assert!(commands > 30, "{commands} commands");
}

/// Commands that do something, as they are written.
pub(crate) fn leaves(command: &clap::Command, before: &str, found: &mut Vec<String>) {
    for one in command.get_subcommands() {
        let name = format!("{before} {}", one.get_name());
        if one.has_subcommands() {
            leaves(one, &name, found);
        } else {
            found.push(name);
        }
    }
}

#[test]
fn every_command_of_the_operator_is_written_down() {
    let texts = ["SECURITY.md", "README.md", "infra/README.md"].map(files::read);
    let mut commands = Vec::new();
    leaves(&Cli::command(), "tirada", &mut commands);
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let is_shown =
            |line: &str| line.strip_prefix(&*command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        assert!(texts.iter().flat_map(|text| text.lines()).any(is_shown), "nowhere is shown how to use {command}");
    }
}

#[test]
fn what_a_scanner_overlooks_says_why() {
    let lint = files::read("local/lint.py");
    let steps = [
        r#""fmt", "--all", "--check""#,
        r#""--all-targets""#,
        r#""--test", "*""#,
        r#""cfn-lint""#,
        r#""validate", "--lint""#,
        r#""checkov": checkov"#,
        r#"[ruff, "check""#,
        r#"[ruff, "format""#,
        r#""-m", "unittest""#,
        "deploy.deployable()",
        "supply.check(",
    ];
    for step in steps {
        assert!(lint.contains(step), "make lint lacks {step}");
    }
    assert!(files::read("Makefile").contains("\nlint:"));
    assert!(files::read(".ci/run").contains("\nmake lint\nmake test-all\n"));
    let mut accepted = 0;
    for path in files::below("infra", "yaml").into_iter().chain(["template.yaml".into()]) {
        for line in files::read(&path).lines().filter(|line| line.contains("checkov:skip")) {
            let (_, rest) = line.split_once("# checkov:skip=").unwrap();
            let (id, reason) = rest.split_once(':').unwrap();
            assert!(id.starts_with("CKV") && !id.contains(','), "{}: {line}", path.display());
            assert!(reason.split(' ').count() >= 4, "{}: {line}", path.display());
            accepted += 1;
        }
    }
    assert!(accepted > 0);
}

#[test]
fn every_tool_has_one_version() {
    let requirements: Vec<_> = files::below("local", "txt");
    assert!(requirements.len() > 5);
    for path in requirements {
        for line in files::read(&path).lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let pin = line.split(" ;").next().unwrap();
            let version = pin.split_once("==").map(|(_, version)| version);
            let exact = version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()));
            assert!(exact && !pin.contains(['*', '<', '>', '~']), "{}: {line}", path.display());
        }
    }
    // What makes an environment takes its versions from there and from nowhere else.
    for path in files::below("local", "py") {
        let text = files::read(&path);
        let installs = text.contains("\"pip\"") || text.contains("cargo install");
        assert!(!installs || path.ends_with("tools.py"), "{}", path.display());
    }
}
