//! A code is good once, for five minutes and five tries, and is nowhere to be found.

use domain::limits::LOGIN_TRIES_MAX;
use futures::future::join_all;
use serde_json::json;
use tests::http::is;
use tests::login::Door;
use tests::look::{change, count};
use uuid::Uuid;

use super::PHONE;

/// Another code than this one.
fn wrong(code: &str, by: u32) -> String {
    format!("{:06}", (code.parse::<u32>().unwrap() + by) % 1_000_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_exchanges_at_once_give_one_session() {
    let door = Door::open().await;
    for round in 0..5 {
        let phone = format!("+3460000010{round}");
        let asking = door.asking(&phone).await;
        door.send().await;
        let body = json!({ "asking_session": asking, "code": door.phones.code(&phone) });
        let answers = join_all((0..20).map(|_| door.give(&body))).await;
        let logged_in = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(logged_in, 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
        assert!(answers.iter().all(|answer| matches!(answer.status, 201 | 422)));
    }
    assert_eq!(count(&door.database, "select count(*) from sessions").await, 5);
    assert_eq!(count(&door.database, "select count(*) from buyers").await, 5);
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_at_once_have_five_tries_together() {
    let door = Door::open().await;
    let asking = door.asking(PHONE).await;
    door.send().await;
    let code = door.phones.code(PHONE);
    let bodies: Vec<_> = (1..=20).map(|by| json!({ "asking_session": asking, "code": wrong(&code, by) })).collect();
    let answers = join_all(bodies.iter().map(|body| door.give(body))).await;
    let refusals: Vec<_> = answers.iter().map(|answer| answer.refusal()).collect();
    let tried = refusals.iter().filter(|refusal| **refusal == is(422, "code-wrong")).count();
    assert_eq!(tried, usize::try_from(LOGIN_TRIES_MAX).unwrap(), "{refusals:?}");
    assert!(refusals.iter().all(|one| [is(422, "code-wrong"), is(409, "too-many-attempts")].contains(one)));
    let right = door.give(&json!({ "asking_session": asking, "code": code })).await;
    assert_eq!(right.refusal(), is(409, "too-many-attempts"), "the right one comes too late");
    let again = door.ask(&json!({ "phone": PHONE, "asking_session": asking })).await;
    assert_eq!(again.refusal(), is(409, "too-many-attempts"), "it is not sent again, and gets no fresh tries");
    assert_ne!(door.asking(PHONE).await, asking, "a new asking session has a new code");
    assert_eq!(count(&door.database, "select count(*) from sessions").await, 0);
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resend_is_the_same_code_with_the_tries_that_are_left() {
    let door = Door::open().await;
    let asking = door.asking(PHONE).await;
    door.send().await;
    let code = door.phones.code(PHONE);
    for by in 1..=3 {
        let answer = door.give(&json!({ "asking_session": asking, "code": wrong(&code, by) })).await;
        assert_eq!(answer.refusal(), is(422, "code-wrong"));
    }
    change(&door.database, "update login_codes set expires_at = expires_at - interval '100 s'", 1).await;
    let answer = door.ask(&json!({ "phone": PHONE, "asking_session": asking })).await;
    assert_eq!((answer.status, &answer.json()["asking_session"]), (202, &json!(asking)));
    let left = answer.json()["expires_in"].as_u64().unwrap();
    assert!((190..=200).contains(&left), "it is good no longer for it: {left}");
    door.send().await;
    assert_eq!(door.phones.messages().len(), 2);
    assert_eq!(door.phones.code(PHONE), code);
    assert_eq!(count(&door.database, "select tries::int8 from login_codes").await, 3);
    for (by, wanted) in [(4, is(422, "code-wrong")), (5, is(422, "code-wrong")), (6, is(409, "too-many-attempts"))] {
        let answer = door.give(&json!({ "asking_session": asking, "code": wrong(&code, by) })).await;
        assert_eq!(answer.refusal(), wanted, "try {by}");
    }
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_good_and_ones_own_is_sent_again() {
    let door = Door::open().await;
    let used = door.asking(PHONE).await;
    door.send().await;
    let body = json!({ "asking_session": used, "code": door.phones.code(PHONE) });
    assert_eq!(door.give(&body).await.status, 201);
    assert_eq!(door.give(&body).await.refusal(), is(422, "code-wrong"), "once");
    let old = door.asking("+34600000003").await;
    door.send().await;
    let past = format!("update login_codes set expires_at = now() where id = '{old}'");
    change(&door.database, &past, 1).await;
    let code = door.phones.code("+34600000003");
    let answer = door.give(&json!({ "asking_session": old, "code": code })).await;
    assert_eq!(answer.refusal(), is(422, "code-wrong"), "five minutes");
    let unknown = door.give(&json!({ "asking_session": Uuid::now_v7(), "code": code })).await;
    assert_eq!(unknown.refusal(), is(422, "code-wrong"));
    let of_other = door.asking("+34600000004").await;
    for (phone, again) in [(PHONE, used), ("+34600000003", old), (PHONE, of_other), (PHONE, Uuid::now_v7())] {
        let answer = door.ask(&json!({ "phone": phone, "asking_session": again })).await;
        assert_eq!(answer.status, 202);
        assert_ne!(answer.json()["asking_session"], json!(again), "a new asking session");
    }
    door.send().await;
    let to_other = door.phones.messages().into_iter().filter(|(phone, _)| phone == "+34600000004").count();
    assert_eq!(to_other, 1, "nobody has other people's phones sent to");
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_stands_in_no_row_and_in_no_message() {
    let door = Door::open().await;
    let asking = door.asking(PHONE).await;
    let bodies = door.queues.bodies(domain::messages::Queue::SendLoginCode);
    assert_eq!(bodies.len(), 1);
    door.send().await;
    let code = door.phones.code(PHONE);
    let row: String =
        door.database.owner().query_one("select row_to_json(c)::text from login_codes c", &[]).await.unwrap().get(0);
    // Moments have six digits after the point: only whole runs of digits count.
    let runs = |text: &str| text.split(|c: char| !c.is_ascii_digit()).any(|run| run == code);
    let moments: Vec<&str> =
        row.split(',').filter(|member| !member.contains("_at\"") && !member.contains("until")).collect();
    assert!(!runs(&moments.join(",")) && !runs(&bodies[0].replace(&asking.to_string(), "")), "{row} {bodies:?}");
    assert!(!bodies[0].contains("600000001"));
    door.database.finish().await;
}
