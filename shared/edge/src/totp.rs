//! One-time passwords by time (RFC 6238): SHA-1, six digits, steps of thirty seconds, which is what every app has.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key, sign};
use domain::Result;

use crate::random;

/// Bytes of a secret: as many as the hash has (RFC 4226, 4).
const SECRET_BYTES: usize = 20;
/// Seconds for which a password is shown.
const STEP_SECONDS: i64 = 30;
/// Steps by which a phone's clock may differ, either way.
const SKEW: i64 = 1;
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A secret that somebody's app knows as well. Not shown by `Debug`.
pub struct TotpSecret(Vec<u8>);

impl std::fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TotpSecret")
    }
}

impl TotpSecret {
    /// A new one.
    ///
    /// # Errors
    /// A fault when there is no randomness.
    pub fn new() -> Result<Self> {
        Ok(Self(random::bytes::<SECRET_BYTES>()?.to_vec()))
    }

    /// One that was kept.
    #[must_use]
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// To be kept, sealed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As people type it into their app: base32 without padding.
    #[must_use]
    pub fn base32(&self) -> String {
        let mut text = String::new();
        for group in self.0.chunks(5) {
            let mut five = [0; 5];
            five[..group.len()].copy_from_slice(group);
            let bits = five.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
            let digits = (group.len() * 8).div_ceil(5);
            let digit = |place: usize| char::from(BASE32[usize::try_from(bits >> (35 - 5 * place) & 31).unwrap_or(0)]);
            text.extend((0..digits).map(digit));
        }
        text
    }

    /// As apps read it from a picture. Issuer and account are shown beside the password.
    #[must_use]
    pub fn address(&self, issuer: &str, account: &str) -> String {
        let (issuer, account) = (encoded(issuer), encoded(account));
        format!("otpauth://totp/{issuer}:{account}?secret={}&issuer={issuer}", self.base32())
    }

    /// The password that is shown at a moment, in seconds since 1970.
    #[must_use]
    pub fn password(&self, now: i64) -> String {
        self.of_step(now / STEP_SECONDS)
    }

    /// The step around a moment whose password this is. Takes as long for wrong ones as for right ones.
    #[must_use]
    pub fn step_of(&self, password: &str, now: i64) -> Option<i64> {
        let here = now / STEP_SECONDS;
        let is_right =
            |step: &i64| verify_slices_are_equal(self.of_step(*step).as_bytes(), password.as_bytes()).is_ok();
        (here - SKEW..=here + SKEW).filter(is_right).max()
    }

    /// RFC 4226, 5.3.
    fn of_step(&self, step: i64) -> String {
        let tag = sign(&Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0), &step.to_be_bytes());
        let hash = tag.as_ref();
        let at = usize::from(hash.last().copied().unwrap_or(0) & 15);
        let number = hash[at..at + 4].iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        format!("{:06}", (number & 0x7fff_ffff) % 1_000_000)
    }
}

/// Percent-encoded, all but what RFC 3986 leaves alone everywhere.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> TotpSecret {
        TotpSecret::from_bytes(b"12345678901234567890".to_vec())
    }

    /// RFC 6238, appendix B, the last six of its eight digits.
    #[test]
    fn passwords_are_those_of_the_standard() {
        for (now, password) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(secret().password(now), password, "{now}");
            assert_eq!(secret().step_of(password, now), Some(now / 30));
        }
    }

    #[test]
    fn a_clock_may_differ_by_one_step() {
        let password = secret().password(900);
        for (now, good) in [(869, false), (870, true), (900, true), (959, true), (960, false)] {
            assert_eq!(secret().step_of(&password, now), good.then_some(30), "{now}");
        }
        for bad in ["", "12345", "1234567", "287 82", "28708２"] {
            assert_eq!(secret().step_of(bad, 59), None, "{bad}");
        }
    }

    #[test]
    fn secrets_are_written_as_apps_read_them() {
        // RFC 4648, 10, without padding.
        for (bytes, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(TotpSecret::from_bytes(bytes.as_bytes().to_vec()).base32(), text, "{bytes}");
        }
        assert_eq!(TotpSecret::new().unwrap().base32().len(), 32);
        assert_eq!(
            secret().address("A store & more", "a+b@example.org"),
            "otpauth://totp/A%20store%20%26%20more:a%2Bb%40example.org?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=A%20store%20%26%20more"
        );
        assert!(!format!("{:?}", secret()).contains("123"));
    }
}
