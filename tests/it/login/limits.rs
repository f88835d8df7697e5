//! Every message takes from five pots; an empty one says so, and how long to wait.

use domain::limits::{
    CODES_PER_ADDRESS, CODES_PER_PLATFORM, CODES_PER_PREFIX, CODES_PER_STORE, CODES_PER_STRANGERS_PHONE,
    CODES_PER_USERS_PHONE, SHARE_OF_STRANGERS,
};
use domain::login::{Phone, Pots, Share};
use serde_json::{Value, json};
use tests::http::{Answer, is};
use tests::login::{Door, HOME, keys};
use tests::look::{change, count};

use super::PHONE;

/// Makes a pot behind by so many messages, whatever it was.
async fn take(door: &Door, place: usize, is_known: bool, messages: f64) {
    let pots = Pots::new(&door.store, &Phone::parse(PHONE).unwrap(), HOME, is_known);
    let subject = keys().login.subjects(&pots)[place];
    let seconds = messages * pots.intervals()[place];
    let sql = "insert into login_limits (subject, full_until) values ($1, now() + make_interval(secs => $2))
        on conflict (subject) do update set full_until = excluded.full_until";
    door.database.owner().execute(sql, &[&subject, &seconds]).await.unwrap();
}

fn limited(answer: &Answer, name: &str, share: Option<Share>) {
    assert_eq!(answer.refusal(), is(429, "too-many-requests"));
    let wait = answer.retry_after().unwrap();
    assert_eq!(answer.header("ratelimit"), format!("\"{name}\";r=0;t={wait}"));
    let policy = share.map_or_else(String::new, |Share { messages, one_per }| {
        format!("\"{name}\";q={messages};w={}", one_per.as_secs() * u64::from(messages))
    });
    assert_eq!(answer.header("ratelimit-policy"), policy);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pot_limits_and_the_shared_ones_keep_a_part_for_users() {
    let door = Door::open().await;
    let session = door.log_in(PHONE).await;
    let (stranger, user) = (json!({ "phone": PHONE }), json!({ "phone": PHONE, "device": session["device"] }));
    let shared = [CODES_PER_PREFIX, CODES_PER_STORE, CODES_PER_PLATFORM];
    for (place, share) in shared.into_iter().enumerate().map(|(place, share)| (place + 2, share)) {
        let all = f64::from(share.messages);
        take(&door, place, false, all * SHARE_OF_STRANGERS - 3.0).await;
        assert_eq!(door.ask(&stranger).await.status, 202, "{place}");
        take(&door, place, false, all * SHARE_OF_STRANGERS + 1.0).await;
        limited(&door.ask(&stranger).await, "service", None);
        assert_eq!(door.ask(&user).await.status, 202, "{place}: a part is for those who have logged in before");
        take(&door, place, false, all + 1.0).await;
        limited(&door.ask(&user).await, "service", None);
        take(&door, place, false, 0.0).await;
    }
    take(&door, 1, false, f64::from(CODES_PER_ADDRESS.messages)).await;
    limited(&door.ask(&user).await, "address", Some(CODES_PER_ADDRESS));
    let other = door.ask_from("192.0.2.2", &[], &user).await;
    assert_eq!(other.status, 202, "another address has a pot of its own");
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_empty_only_the_pot_of_strangers() {
    let door = Door::open().await;
    let session = door.log_in(PHONE).await;
    let last = door.asking(PHONE).await;
    door.send().await;
    let code = door.phones.code(PHONE);
    let ask = async |device: &Value| door.ask(&json!({ "phone": PHONE, "device": device })).await;
    // The login and the asking after it took two.
    for _ in 2..CODES_PER_STRANGERS_PHONE.messages {
        assert_eq!(ask(&json!(null)).await.status, 202);
    }
    limited(&ask(&json!(null)).await, "phone", Some(CODES_PER_STRANGERS_PHONE));
    limited(&ask(&json!("trd_00")).await, "phone", Some(CODES_PER_STRANGERS_PHONE));
    let of_other = door.log_in("+34600000002").await;
    limited(&ask(&of_other["device"]).await, "phone", Some(CODES_PER_STRANGERS_PHONE));
    for _ in 0..CODES_PER_USERS_PHONE.messages {
        assert_eq!(ask(&session["device"]).await.status, 202, "its owner is asked for nothing by strangers");
    }
    limited(&ask(&session["device"]).await, "phone", Some(CODES_PER_USERS_PHONE));
    let answer = door.give(&json!({ "asking_session": last, "code": code })).await;
    assert_eq!(answer.status, 201, "a code that was sent stays good");
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_is_true_and_a_refusal_takes_nothing() {
    let door = Door::open().await;
    let all = f64::from(CODES_PER_STRANGERS_PHONE.messages);
    take(&door, 0, false, all).await;
    let sum = "select sum(extract(epoch from full_until))::int8 from login_limits";
    let before = count(&door.database, sum).await;
    let answer = door.ask(&json!({ "phone": PHONE })).await;
    let wait = answer.retry_after().unwrap();
    let one_per = CODES_PER_STRANGERS_PHONE.one_per.as_secs();
    assert!((one_per - 5..=one_per + 1).contains(&wait), "{wait}");
    assert_eq!(count(&door.database, sum).await, before, "a refusal writes nothing");
    assert_eq!(count(&door.database, "select count(*) from login_limits").await, 1);
    let pass = format!("update login_limits set full_until = full_until - interval '{wait} s'");
    change(&door.database, &pass, 1).await;
    assert_eq!(door.ask(&json!({ "phone": PHONE })).await.status, 202);
    limited(&door.ask(&json!({ "phone": PHONE })).await, "phone", Some(CODES_PER_STRANGERS_PHONE));
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resend_takes_from_the_pots_as_well() {
    let door = Door::open().await;
    let asking = door.asking(PHONE).await;
    let again = json!({ "phone": PHONE, "asking_session": asking });
    for _ in 1..CODES_PER_STRANGERS_PHONE.messages {
        assert_eq!(door.ask(&again).await.status, 202);
    }
    limited(&door.ask(&again).await, "phone", Some(CODES_PER_STRANGERS_PHONE));
    assert_eq!(
        count(&door.database, "select asked::int8 from login_codes").await,
        i64::from(CODES_PER_STRANGERS_PHONE.messages)
    );
    door.database.finish().await;
}
