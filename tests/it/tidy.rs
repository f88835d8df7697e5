//! Rules about the repository that can be checked are checked here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tests::files;

const LINES_MAX: usize = 400;

/// Files that carry statements.
fn with_statements() -> Vec<std::path::PathBuf> {
    let all = files::rust().into_iter();
    all.filter(|path| path.starts_with("shared") || path.starts_with("functions") || path.starts_with("operator"))
        .collect()
}

fn cargo(arguments: &[&str]) -> Vec<u8> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo).args(arguments).arg("--offline").current_dir(files::root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn metadata() -> Value {
    serde_json::from_slice(&cargo(&["metadata", "--format-version", "1", "--no-deps"])).unwrap()
}

/// Our packages, each with the names of what it depends on: normal dependencies, and those of tests.
fn packages() -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let metadata = metadata();
    let names = |package: &Value, dev: bool| {
        let all = package["dependencies"].as_array().unwrap().iter().filter(|one| (one["kind"] == "dev") == dev);
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| (package["name"].as_str().unwrap().to_owned(), (names(package, false), names(package, true))))
        .collect()
}

fn functions() -> BTreeSet<String> {
    let mains = files::below("functions", "rs").into_iter().filter(|path| path.ends_with("src/lib.rs"));
    mains.map(|path| path.ancestors().nth(2).unwrap().file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn dependencies_point_inwards() {
    let packages = packages();
    let ours: BTreeSet<&String> = packages.keys().collect();
    let uses = |name: &str| -> BTreeSet<&str> {
        let (normal, dev) = &packages[name];
        normal.union(dev).filter(|name| ours.contains(name)).map(String::as_str).collect()
    };
    assert_eq!(uses("domain"), BTreeSet::new());
    assert_eq!(uses("store"), ["domain"].into());
    assert_eq!(uses("edge"), ["domain"].into());
    assert_eq!(uses("gateways"), ["domain"].into());
    assert_eq!(uses("cashier"), ["domain", "edge", "gateways", "store"].into());
    assert_eq!(uses("wiring"), ["domain", "edge", "store"].into());
    assert_eq!(uses("access"), ["domain", "edge", "store"].into());
    assert_eq!(uses("senders"), ["domain", "edge"].into());
    let functions = functions();
    assert_eq!(functions.len(), 18);
    for function in &functions {
        let allowed = ["access", "cashier", "domain", "edge", "gateways", "senders", "store", "wiring"].into();
        assert!(uses(function).is_subset(&allowed), "{function} uses {:?}", uses(function));
    }
    // It must not share a misreading with what it audits.
    assert_eq!(uses("auditor"), ["fake-gateway"].into());
    assert_eq!(uses("fake-gateway"), BTreeSet::new());
    assert!(uses("operator").is_disjoint(&functions.iter().map(String::as_str).collect()), "operator is no function");
}

#[test]
fn heavy_and_foreign_crates_stay_where_they_belong() {
    let packages = packages();
    let users = |wanted: &str| -> BTreeSet<&str> {
        let with = packages.iter().filter(|(_, (normal, _))| normal.iter().any(|name| name == wanted));
        with.map(|(name, _)| name.as_str()).collect()
    };
    assert_eq!(users("aws-sdk-s3"), ["check-uploads", "write-exports"].into());
    assert_eq!(users("rust_xlsxwriter"), ["write-exports"].into());
    assert_eq!(users("aws-sdk-sns"), ["senders"].into());
    assert_eq!(users("aws-sdk-sesv2"), ["senders"].into());
    assert_eq!(users("deadpool-postgres"), ["store"].into());
    assert_eq!(users("jsonwebtoken").difference(&["tests"].into()).copied().collect::<Vec<_>>(), ["edge"]);
    let (domain, _) = &packages["domain"];
    for foreign in ["tokio", "tokio-postgres", "axum", "aws-sdk-sqs", "tracing", "lambda_runtime"] {
        assert!(!domain.contains(foreign), "domain is pure and does not use {foreign}");
    }
    for name in ["lambda_runtime", "lambda_http", "axum", "aws-sdk-sqs"] {
        assert!(!users(name).contains("store"), "store knows nothing of {name}");
    }
}

#[test]
fn packages_share_versions_and_lints() {
    for path in files::FOLDERS.into_iter().flat_map(|folder| files::below(folder, "toml")) {
        if path.file_name().unwrap() != "Cargo.toml" {
            continue;
        }
        let text = files::read(&path);
        assert!(text.contains("\n[lints]\nworkspace = true\n"), "{} does not share the lints", path.display());
        let dependencies =
            text.split("\n[").filter(|part| part.starts_with("dependencies]") || part.starts_with("dev-dependencies]"));
        for line in dependencies.flat_map(|part| part.lines().skip(1)).filter(|line| line.contains('=')) {
            assert!(line.contains("workspace = true"), "{}: {line} has a version of its own", path.display());
        }
    }
    let workspace = files::read("Cargo.toml");
    let toolchain = files::read("rust-toolchain.toml");
    let pinned = toolchain.lines().find_map(|line| line.strip_prefix("channel = \"")).unwrap().trim_end_matches('"');
    let (least, _) = pinned.rsplit_once('.').unwrap();
    assert!(workspace.contains(&format!("rust-version = \"{least}\"\n")), "rust-toolchain.toml pins {pinned}");
    assert!(workspace.contains("unsafe_code = \"forbid\"") && workspace.contains("panic = \"unwind\""));
}

/// Every crate of the build with its features; one that build scripts use may have two sets.
fn crates(edges: &str) -> BTreeMap<String, BTreeSet<String>> {
    let arguments = ["tree", "--workspace", "--locked", "--prefix", "none", "--format", "{p}|{f}|", "--edges", edges];
    let printed = String::from_utf8(cargo(&arguments)).unwrap();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in printed.lines() {
        let mut parts = line.split('|').map(str::to_owned);
        if let (Some(name), Some(features)) = (parts.next(), parts.next()) {
            found.entry(name).or_default().insert(features);
        }
    }
    found
}

#[test]
fn tests_compile_no_dependency_again() {
    // A feature that only a dev-dependency switches on would make two builds of the crate and of all that use it.
    let (programs, tests) = (crates("normal,build"), crates("normal,build,dev"));
    assert!(programs.len() > 300, "cargo names {} crates", programs.len());
    for (name, features) in programs {
        assert_eq!(tests[&name], features, "features of {name}: move the dev-dependency to `tests`");
    }
}

fn has_tests(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap();
    ["#[test]", "#[tokio::test", "proptest!"].into_iter().any(|word| text.contains(word))
}

/// Files of a target: those of its folder, without what a binary beside a library does not include.
fn sources(target: &Value, has_lib: bool) -> Vec<PathBuf> {
    let root = PathBuf::from(target["src_path"].as_str().unwrap());
    let is_lib = target["kind"][0] == "lib";
    if !is_lib && has_lib {
        return vec![root];
    }
    let folder = root.parent().unwrap().strip_prefix(files::root()).unwrap().display().to_string();
    let all = files::below(&folder, "rs").into_iter().map(|path| files::root().join(path));
    all.filter(|path| !is_lib || !path.ends_with("src/main.rs")).collect()
}

#[test]
fn only_targets_with_tests_are_linked_as_tests() {
    // A harness without tests costs a link; a test in a target without a harness never runs.
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        let targets = package["targets"].as_array().unwrap();
        let has_lib = targets.iter().any(|target| target["kind"][0] == "lib");
        for target in targets.iter().filter(|target| target["kind"][0] == "lib" || target["kind"][0] == "bin") {
            let tested = sources(target, has_lib).iter().any(|path| has_tests(path));
            assert_eq!(target["test"], tested, "`test` of {} {}", target["kind"][0], target["name"]);
            assert_eq!(target["doctest"], false, "`doctest` of {}", target["name"]);
        }
    }
    for path in files::rust() {
        let text = files::read(&path);
        let example = text.lines().map(str::trim_start).find(|line| {
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            comment.is_some_and(|text| text.trim_start().starts_with("```"))
        });
        assert_eq!(example, None, "{}: documentation tests do not run here", path.display());
    }
}

#[test]
fn statements_are_typed() {
    // Named statements break transaction poolers and pin sessions of RDS Proxy.
    let untyped = [
        ".query(",
        ".query_one(",
        ".query_opt(",
        ".query_raw(",
        ".execute(",
        ".execute_raw(",
        ".prepare",
        ".simple_query",
        ".copy_in",
        ".copy_out",
    ];
    for path in with_statements() {
        let text = files::read(&path);
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim_start().starts_with("//")) {
            // The query of an address is no statement.
            let line = line.replace(".query()", "");
            let found = untyped.iter().find(|call| line.contains(**call));
            assert_eq!(found, None, "{}:{number}: {line}", path.display());
            let scripts = line.contains(".batch_execute(");
            assert!(
                !scripts || path == Path::new("shared/store/src/migrations.rs"),
                "{}:{number}: {line}",
                path.display()
            );
        }
    }
    for path in
        files::rust().into_iter().filter(|path| path.starts_with("functions") || path.starts_with("shared/edge"))
    {
        let text = files::read(&path);
        assert!(
            !text.contains("query_typed") && !text.contains("execute_typed"),
            "{}: statements belong to store",
            path.display()
        );
    }
}

#[test]
fn transactions_are_opened_by_the_client() {
    for path in with_statements().into_iter().filter(|path| path != Path::new("shared/store/src/migrations.rs")) {
        // rows::may_scan is for the audit: a job with one connection, which may be pinned.
        let text = files::read(&path).to_lowercase().replace("set_config('enable_seqscan', 'on', true)", "");
        for word in [
            "\"begin\"",
            "\"begin ",
            "\"begin;",
            "\"commit\"",
            "\"set ",
            "set_config(",
            "pg_advisory_lock(",
            "nextval(",
            "listen ",
        ] {
            let found = text.lines().find(|line| line.contains(word) && !line.trim_start().starts_with("//"));
            assert_eq!(found, None, "{}: {word} pins a session or outlives a dropped future", path.display());
        }
    }
}

#[test]
fn row_locks_leave_foreign_keys_alone() {
    for path in with_statements().into_iter().chain(files::below("migrations", "sql")) {
        let text = files::read(&path).to_lowercase().replace("for no key update", "");
        for lock in ["for update", "for share", "for key share"] {
            assert!(!text.contains(lock), "{}: `{lock}` blocks, or is blocked by, foreign-key checks", path.display());
        }
    }
}

#[test]
fn sql_is_lower_case_and_lists_its_columns() {
    let keywords =
        ["SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", " WHERE ", " FROM ", "VALUES (", "CREATE TABLE"];
    for path in with_statements().into_iter().chain(files::below("migrations", "sql")) {
        let text = files::read(&path);
        for (line, number) in text.lines().zip(1..) {
            let code = !line.trim_start().starts_with("//") && !line.trim_start().starts_with("--");
            let shouted = keywords.iter().find(|keyword| code && line.contains(**keyword));
            assert_eq!(shouted, None, "{}:{number}: {line}", path.display());
            assert!(!code || !line.contains("select *"), "{}:{number}: {line}", path.display());
        }
    }
}

#[test]
fn rights_are_where_the_hash_of_the_migrations_covers_them() {
    let words = ["grant ", "revoke ", "alter role", "create role", "alter default privileges", "alter user"];
    let migrate = files::below("functions/jobs/migrate/src", "rs");
    let mut found = Vec::new();
    for path in migrate.into_iter().chain(["shared/store/src/migrations.rs".into()]) {
        let text = files::read(&path);
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            let included = line.split_once("include_str!(").map(|(_, file)| file);
            assert!(
                included.is_none_or(|file| file.starts_with("\"../../../migrations/")),
                "{}: {line} is not in the hash",
                path.display()
            );
            let lower = line.to_lowercase();
            if words.iter().any(|word| lower.contains(word)) {
                found.push(line.to_owned());
            }
        }
    }
    // The password comes from outside: a run of the migrations sets it, whatever the hash.
    assert_eq!(found, [r#"format!("alter role {APP_ROLE} password '{verifier}';")"#]);
}

#[test]
fn files_are_short_and_say_what_they_own() {
    for path in files::rust() {
        let text = files::read(&path);
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
        // Unit tests in a file of their own need no introduction.
        let is_tests = path.file_name().unwrap() == "tests.rs";
        let introduced = text.lines().next().is_some_and(|line| line.len() > 12 && line.starts_with("//! "));
        assert!(introduced || is_tests, "{} does not open with what it owns", path.display());
    }
}

#[test]
fn the_architecture_names_all_its_sections_at_the_beginning() {
    let text = files::read("ARCHITECTURE.md");
    let (contents, _) = text.split_once("\n## ").unwrap();
    let named: Vec<&str> = contents.split("](#").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
    let sections: BTreeSet<String> =
        headings.map(|heading| heading.to_lowercase().replace(':', "").replace(' ', "-")).collect();
    assert_eq!(named.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), sections);
    assert_eq!(named.len(), sections.len(), "each once");
}

#[test]
fn nothing_unfinished_is_left_behind() {
    // Put together here, so that this file does not name what it looks for.
    let unfinished = [["to", "do!"], ["db", "g!"], ["unimpl", "emented!"], ["FIX", "ME"], ["TO", "DO"], ["XX", "X"]]
        .map(|halves| halves.concat());
    for path in files::rust().into_iter().chain(files::below("migrations", "sql")).chain(files::below("local", "py")) {
        let text = files::read(&path);
        let found = unfinished.iter().find(|word| text.contains(word.as_str()));
        assert_eq!(found, None, "{}", path.display());
    }
}

#[test]
fn tests_are_modules_of_their_binary() {
    for path in files::below("tests/it", "rs").into_iter().filter(|path| !path.ends_with("main.rs")) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let folder = path.parent().unwrap();
        let parent =
            if folder == Path::new("tests/it") { "tests/it/main.rs".into() } else { folder.with_extension("rs") };
        assert!(files::read(&parent).contains(&format!("mod {name};")), "{} runs nowhere", path.display());
    }
}
