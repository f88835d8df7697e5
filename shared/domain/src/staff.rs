//! Staff: their addresses, what a link in a message is for, and what the message says.
//!
//! Knows no key and no clock; who may do what is in [`crate::roles`].

use std::fmt;

use crate::login::Language;

/// Longest address, in bytes (RFC 5321).
const EMAIL_BYTES_MAX: usize = 254;
/// Longest part before the `@` (RFC 5321).
const LOCAL_BYTES_MAX: usize = 64;
/// Longest name of a store in a message, in characters.
const STORE_CHARS_MAX: usize = 80;

/// An address of electronic mail, in lower case. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    /// Reads an address: ASCII, one `@`, a domain with a dot. Whether it exists is found out by writing to it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (local, domain) = text.split_once('@')?;
        let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte);
        let is_label = |label: &str| {
            let inside = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            inside && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
        };
        let fits = text.len() <= EMAIL_BYTES_MAX && (1..=LOCAL_BYTES_MAX).contains(&local.len());
        let is_dotted = !local.starts_with('.') && !local.ends_with('.') && !local.contains("..");
        let good = local.bytes().all(is_local) && domain.contains('.') && domain.split('.').all(is_label);
        (fits && is_dotted && good).then(|| Self(text.to_ascii_lowercase()))
    }

    /// The address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email")
    }
}

/// What a one-time link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPurpose {
    /// To sign in, together with a one-time password.
    SignIn,
    /// To become staff: sets one-time passwords up.
    Invitation,
    /// To set them up again.
    Recovery,
}

impl LinkPurpose {
    const ALL: [Self; 3] = [Self::SignIn, Self::Invitation, Self::Recovery];

    /// The word used in the database.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SignIn => "sign-in",
            Self::Invitation => "invitation",
            Self::Recovery => "recovery",
        }
    }

    /// The purpose with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.word() == word)
    }

    /// Whether one-time passwords are set up with it.
    #[must_use]
    pub const fn enrols(self) -> bool {
        matches!(self, Self::Invitation | Self::Recovery)
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Its subject.
    pub subject: String,
    /// Its text.
    pub text: String,
}

/// The message with a link.
#[must_use]
pub fn link_mail(language: Language, purpose: LinkPurpose, store: &str, link: &str) -> Mail {
    let store: String = store.chars().filter(|c| !c.is_control()).take(STORE_CHARS_MAX).collect();
    let (subject, first, last) = match (language, purpose) {
        (Language::Es, LinkPurpose::SignIn) => (
            format!("Entrar en {store}"),
            "Abre este enlace para entrar. Vale 15 minutos y una sola vez:",
            "Si no lo has pedido tú, no hagas nada.",
        ),
        (Language::Es, LinkPurpose::Invitation) => (
            format!("Invitación a {store}"),
            "Abre este enlace para unirte al equipo. Vale 3 días y una sola vez:",
            "Necesitas una aplicación de claves de un solo uso en tu teléfono.",
        ),
        (Language::Es, LinkPurpose::Recovery) => (
            format!("Nuevas claves de un solo uso para {store}"),
            "Abre este enlace para configurar de nuevo tus claves. Vale 3 días y una sola vez:",
            "Si no lo has pedido tú, avisa al dueño de la tienda.",
        ),
        (Language::PtBr, LinkPurpose::SignIn) => (
            format!("Entrar em {store}"),
            "Abra este link para entrar. Vale por 15 minutos e uma única vez:",
            "Se não foi você que pediu, não faça nada.",
        ),
        (Language::PtBr, LinkPurpose::Invitation) => (
            format!("Convite para {store}"),
            "Abra este link para entrar na equipe. Vale por 3 dias e uma única vez:",
            "Você precisa de um aplicativo de senhas de uso único no celular.",
        ),
        (Language::PtBr, LinkPurpose::Recovery) => (
            format!("Novas senhas de uso único para {store}"),
            "Abra este link para configurar suas senhas de novo. Vale por 3 dias e uma única vez:",
            "Se não foi você que pediu, avise o dono da loja.",
        ),
        (Language::En, LinkPurpose::SignIn) => (
            format!("Sign in to {store}"),
            "Open this link to sign in. It is good for 15 minutes and once:",
            "If you did not ask for it, do nothing.",
        ),
        (Language::En, LinkPurpose::Invitation) => (
            format!("Invitation to {store}"),
            "Open this link to join the team. It is good for 3 days and once:",
            "You need an app for one-time passwords on your phone.",
        ),
        (Language::En, LinkPurpose::Recovery) => (
            format!("New one-time passwords for {store}"),
            "Open this link to set your one-time passwords up again. It is good for 3 days and once:",
            "If you did not ask for it, tell the store's owner.",
        ),
    };
    Mail { subject, text: format!("{first}\n\n{link}\n\n{last}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{INVITATION_LIVES, SIGN_IN_LINK_LIVES};

    #[test]
    fn addresses_are_read_strictly() {
        assert_eq!(Email::parse("Ana.B+x@Example.ORG").unwrap().as_str(), "ana.b+x@example.org");
        let long = format!("{}@example.org", "a".repeat(LOCAL_BYTES_MAX + 1));
        for bad in [
            "",
            "@",
            "a@",
            "@example.org",
            "a@b",
            "a b@example.org",
            "a@exam ple.org",
            "a@@example.org",
            "a@-x.org",
            "a@example..org",
            ".a@example.org",
            "a.@example.org",
            "a..b@example.org",
            "é@example.org",
            "a@example.org\r\nBcc: b@example.org",
            &long,
        ] {
            assert!(Email::parse(bad).is_none(), "{bad}");
        }
        assert!(!format!("{:?}", Email::parse("a@example.org")).contains("example"));
    }

    #[test]
    fn every_message_has_its_link_and_says_how_long_it_is_good() {
        for language in Language::ALL {
            for purpose in LinkPurpose::ALL {
                let mail = link_mail(language, purpose, "A store\r\nBcc: x", "https://store.example/#trl_1");
                assert!(mail.text.contains("\n\nhttps://store.example/#trl_1\n\n"), "{mail:?}");
                assert!(mail.subject.contains("A storeBcc: x"), "one line: {}", mail.subject);
                let days = INVITATION_LIVES.as_secs() / 86_400;
                let good = if purpose.enrols() { days } else { SIGN_IN_LINK_LIVES.as_secs() / 60 };
                assert!(mail.text.contains(&format!(" {good} ")), "{}", mail.text);
                assert_eq!(LinkPurpose::from_word(purpose.word()), Some(purpose));
            }
        }
    }
}
