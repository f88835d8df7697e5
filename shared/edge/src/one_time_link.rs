//! One-time links: 256 random bits that are mailed once, of which only a hash is kept.

use aws_lc_rs::digest::{SHA256, digest};
use domain::Result;

use crate::random;

/// How they begin, so that people and scanners of logs know them.
const LINK: &str = "trl_";
const SECRET_BYTES: usize = 32;

/// What a link bears. Not shown by `Debug`.
pub struct OneTimeLink(String);

impl std::fmt::Debug for OneTimeLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OneTimeLink")
    }
}

impl OneTimeLink {
    /// A new one.
    ///
    /// # Errors
    /// A fault when there is no randomness.
    pub fn new() -> Result<Self> {
        let secret: [u8; SECRET_BYTES] = random::bytes()?;
        let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("{LINK}{digits}")))
    }

    /// One that somebody brings, if it has the form of ours.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(LINK)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        (digits.len() == 2 * SECRET_BYTES && is_hex).then(|| Self(text.to_owned()))
    }

    /// The address that is mailed. The secret stands behind a `#`, which browsers send to nobody.
    #[must_use]
    pub fn address(&self, page: &str) -> String {
        format!("{page}#{}", self.0)
    }

    /// What is kept of it. Nobody guesses 256 bits, so that it needs no key.
    #[must_use]
    pub fn hash(&self) -> Vec<u8> {
        digest(&SHA256, self.0.as_bytes()).as_ref().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_comes_back_as_it_was_made() {
        let link = OneTimeLink::new().unwrap();
        let address = link.address("https://staff.example/sign-in");
        let (page, token) = address.split_once('#').unwrap();
        assert_eq!(page, "https://staff.example/sign-in");
        assert_eq!(OneTimeLink::read(token).unwrap().hash(), link.hash());
        assert_ne!(OneTimeLink::new().unwrap().hash(), link.hash());
        assert!(!format!("{link:?}").contains(&token[4..]));
        let longer = format!("{token}0");
        for bad in ["", "trl_", &token[1..], &token[..token.len() - 1], &longer, &token.to_uppercase()] {
            assert!(OneTimeLink::read(bad).is_none(), "{bad}");
        }
    }
}
