use domain::limits::DEVICE_KNOWN_FOR;
use domain::login::{Phone, Pots};

use super::*;

const OTHER: &str = r#"{"keys":[{"id":"new","key":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}]}"#;
const NOW: u64 = 1_790_000_000;

fn keys(text: &str) -> LoginKeys {
    LoginKeys::from_json(text, Stage::Local).unwrap()
}

/// The new key derives, the development key is still recognised.
fn both() -> LoginKeys {
    let known = &DEVELOPMENT_KEYS.trim()[DEVELOPMENT_KEYS.find("{\"id\"").unwrap()..];
    keys(&(OTHER.replace("}]}", "},") + known))
}

fn phone() -> Phone {
    Phone::parse("+34600000001").unwrap()
}

#[test]
fn a_code_belongs_to_its_asking_session_and_key() {
    let keys = keys(DEVELOPMENT_KEYS);
    let asking = Uuid::from_u128(1);
    let code = keys.code("development", asking).unwrap();
    assert_eq!(code.len(), 6);
    assert_eq!(keys.matching(asking, &code), ["development"]);
    assert_eq!(both().matching(asking, &code), ["development"], "an old key still stands for its codes");
    assert_eq!((both().current_id(), both().code("gone", asking)), ("new", None));
    assert_ne!(both().code("new", asking), Some(code.clone()));
    assert_ne!(keys.code("development", Uuid::from_u128(2)), Some(code.clone()));
    for wrong in ["", "0", &code[..5], &format!("{code}0"), "000000"] {
        assert_eq!(keys.matching(asking, wrong), Vec::<&str>::new(), "{wrong}");
    }
}

#[test]
fn codes_are_spread_over_all_numbers() {
    let keys = keys(DEVELOPMENT_KEYS);
    let mut tens = [0; 10];
    for n in 0..10_000 {
        let code = keys.code("development", Uuid::from_u128(n)).unwrap();
        tens[usize::from(code.as_bytes()[0] - b'0')] += 1;
    }
    assert!(tens.iter().all(|count| (850..1_150).contains(count)), "{tens:?}");
}

#[test]
fn every_changed_character_of_a_token_is_noticed() {
    let keys = keys(DEVELOPMENT_KEYS);
    let refresh = Refresh { session_id: Uuid::from_u128(7), generation: 3 };
    let device = keys.device_token(Uuid::from_u128(8), "demo", &phone(), NOW);
    let token = keys.refresh_token(refresh);
    assert_eq!(keys.read_refresh(&token), Some(refresh));
    assert_eq!(keys.read_device(&device, NOW).unwrap().id, Uuid::from_u128(8));
    for good in [&token, &device] {
        let read = |text: &str| keys.read_refresh(text).is_some() || keys.read_device(text, NOW).is_some();
        assert!(read(good));
        for at in 0..good.len() {
            let mut changed = good.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            assert!(!read(&String::from_utf8(changed).unwrap()), "changed at {at}");
            assert!(!read(&good[..at]), "cut at {at}");
        }
        for bad in [good.to_uppercase(), format!("{good}0"), format!("{good}00"), good.repeat(50), "trr_é".into()] {
            assert!(!read(&bad), "{bad}");
        }
    }
    assert_eq!(keys.read_refresh(&device.replace("trd_", "trr_")), None, "one kind is not the other");
}

#[test]
fn tokens_outlive_a_rotation_and_end_with_their_key() {
    let refresh = Refresh { session_id: Uuid::from_u128(7), generation: 1 };
    let old = keys(DEVELOPMENT_KEYS).refresh_token(refresh);
    assert_eq!(both().read_refresh(&old), Some(refresh));
    assert_ne!(both().refresh_token(refresh), old);
    assert_eq!(keys(OTHER).read_refresh(&old), None);
}

#[test]
fn a_device_is_known_for_its_phone_at_its_store_and_not_for_ever() {
    let old = keys(DEVELOPMENT_KEYS);
    let token = old.device_token(Uuid::from_u128(8), "demo", &phone(), NOW);
    for keys in [&old, &both()] {
        let device = keys.read_device(&token, NOW).unwrap();
        assert!(keys.is_known(&device, "demo", &phone()));
        assert!(!keys.is_known(&device, "other", &phone()));
        assert!(!keys.is_known(&device, "demo", &Phone::parse("+34600000002").unwrap()));
    }
    let last = NOW + DEVICE_KNOWN_FOR.as_secs();
    assert!(old.read_device(&token, last).is_some() && old.read_device(&token, last + 1).is_none());
}

#[test]
fn names_of_limits_say_nothing_and_differ() {
    let keys = keys(DEVELOPMENT_KEYS);
    let subjects = |store: &str, address: &str, known| keys.subjects(&Pots::new(store, &phone(), address, known));
    let mut all = subjects("demo", "192.0.2.1", true);
    assert_eq!(all, subjects("demo", "192.0.2.1", true));
    all.extend(subjects("other", "192.0.2.2", false));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 8, "only the country and the platform are the same");
}

#[test]
fn the_development_key_is_for_local_use_and_bad_ones_are_refused() {
    for stage in [Stage::Dev, Stage::Staging, Stage::Prod] {
        let error = LoginKeys::from_json(DEVELOPMENT_KEYS, stage).unwrap_err().to_string();
        assert!(error.contains("the development login key"), "{error}");
        assert!(LoginKeys::from_json(OTHER, stage).is_ok());
    }
    let twice = OTHER.replace("}]}", "},{\"id\":\"new\",\"key\":\"AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\"}]}");
    for bad in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"id":"a","key":"AQE="}]}"#, &OTHER.replace("new", ""), &twice]
    {
        let error = LoginKeys::from_json(bad, Stage::Local).unwrap_err().to_string();
        assert!(error.starts_with("TIRADA_LOGIN_KEYS "), "{bad}: {error}");
    }
}
