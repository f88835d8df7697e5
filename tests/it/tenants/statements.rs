//! Statements about tables with a tenant name it, or are known not to.

use std::collections::{BTreeMap, BTreeSet};

use tests::{TestDatabase, files};

/// Where the statements are.
const STORE: &str = "shared/store/src";

/// How many statements of a file name no tenant, and why that is right.
const WITHOUT_TENANT: &[(&str, usize, &str)] = &[
    ("audit.rs", 3, "goes through all products"),
    ("audit/money.rs", 1, "as audit.rs"),
    ("catalog.rs", 1, "a product by its id, which is public"),
    ("erasing/traces.rs", 1, "a part of statements about orders of a store"),
    ("exports/rows.rs", 1, "where a page of all orders ends; what is read of it names the tenant"),
    ("exports/work.rs", 1, "hands over what is due, of all stores"),
    ("findings.rs", 2, "of all products, for operators"),
    ("health.rs", 7, "queues by product, and all of them"),
    ("login/exchange.rs", 1, "by the store's slug"),
    ("login/send.rs", 1, "hands over what is due, of all stores"),
    ("login/sessions.rs", 4, "by the session that a refresh token names; the row says the tenant"),
    ("notices/due.rs", 2, "hands over what is due, of all stores"),
    ("notices/watch.rs", 3, "of all stores, for operators"),
    ("numbers/holdings.rs", 2, "by the small key of a product that was found"),
    ("numbers/mend.rs", 2, "by the small key of a product that was found"),
    ("numbers/release.rs", 2, "by a product that was found as its store's"),
    ("numbers/reserve/orders.rs", 2, "by a product that was found as its store's"),
    ("numbers/sweep.rs", 5, "what is due of all stores, then by product"),
    ("numbers/waiting.rs", 2, "by the small key of a product that was found"),
    ("outbox.rs", 3, "hands over what is due, of all stores"),
    ("payments/accounts.rs", 1, "sealed again for all stores"),
    ("payments/measure.rs", 1, "of all stores"),
    ("payments/overview.rs", 1, "a refund by its id, for operators"),
    ("prune.rs", 9, "what was kept long enough, of all stores"),
    ("staff/links.rs", 2, "by a link, which is known by its hash; the row says the tenant"),
    ("staff/sealed.rs", 1, "sealed again for all stores"),
    ("staff/sessions.rs", 3, "by the session that a refresh token names; the row says the tenant"),
    ("staff/sign_in.rs", 1, "by a link, which is known by its hash; the row says the tenant"),
    ("switches.rs", 1, "by the small key of a product that was found"),
    ("uploads.rs", 1, "hands over what is due, of all stores"),
];

/// The string literals of a source text, escapes as they are written.
fn literals(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        let (opening, after) = rest[at..].split_at(1);
        if opening == "/" {
            rest = if after.starts_with('/') { after.find('\n').map_or("", |end| &after[end..]) } else { after };
            continue;
        }
        let mut escaped = false;
        let end = after.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end.unwrap_or_else(|| panic!("a literal without an end: {after}"));
        found.push(&after[..end]);
        rest = &after[end + 1..];
    }
    found
}

/// Whether a text is a statement, or a part of one, about one of the tables.
fn is_about(text: &str, tables: &BTreeSet<String>) -> bool {
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).any(|pair| matches!(pair[0], "from" | "join" | "into" | "update") && tables.contains(pair[1]))
}

/// Whether it compares a tenant, or writes one.
fn names_tenant(text: &str) -> bool {
    text.contains("tenant_id = ") || (text.contains("insert into") && text.contains("tenant_id"))
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_name_their_tenant() {
    let database = TestDatabase::new().await;
    let sql = "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and a.attname = 'tenant_id'";
    let tables: BTreeSet<String> =
        database.owner().query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let mut without: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut with = 0;
    for path in files::below(STORE, "rs") {
        let text = files::read(&path);
        let file = path.strip_prefix(STORE).unwrap().display().to_string();
        for statement in literals(&text).into_iter().filter(|literal| is_about(literal, &tables)) {
            if names_tenant(statement) {
                with += 1;
            } else {
                let words: Vec<&str> = statement.split_whitespace().collect();
                without.entry(file.clone()).or_default().push(words.join(" "));
            }
        }
    }
    assert!(with > 80, "only {with} statements name a tenant: are they still found?");
    let counted: BTreeMap<&str, usize> = without.iter().map(|(file, found)| (file.as_str(), found.len())).collect();
    let known: BTreeMap<&str, usize> = WITHOUT_TENANT.iter().map(|(file, count, _)| (*file, *count)).collect();
    assert_eq!(counted, known, "{without:#?}");
    database.finish().await;
}

#[test]
fn statements_are_recognised() {
    let tables = BTreeSet::from(["orders".to_owned()]);
    let source = "let a = \"select id from orders where id = $1\"; // \"not this\"\n\
        let b = \"say \\\"from orders\\\"\"; b / 2";
    let found = literals(source);
    assert_eq!(found, ["select id from orders where id = $1", "say \\\"from orders\\\""]);
    assert!(is_about(found[0], &tables) && !names_tenant(found[0]));
    assert!(!is_about("select id from orders_of_buyer", &tables));
    assert!(names_tenant("update orders set version = 2 where id = $1 and tenant_id = $2"));
    assert!(!names_tenant("update orders set version = 2 where id = $1 returning tenant_id"));
}
