//! The texts of messages, one table for all languages.
//!
//! The texts of codes use the characters that all phones have (GSM 03.38), or a message would cost twice as much: names
//! of stores are spelled with these.

use crate::septets::spelled;

/// A language that we write to people in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Spanish.
    Es,
    /// Portuguese of Brazil.
    PtBr,
    /// English.
    En,
}

/// Longest name of a store in a message, in characters: the rest of the message must fit beside it.
const STORE_CHARS_MAX: usize = 40;

impl Language {
    /// Every language.
    pub const ALL: [Self; 3] = [Self::Es, Self::PtBr, Self::En];

    /// Its tag (BCP 47), in the database and in JSON.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Es => "es",
            Self::PtBr => "pt-BR",
            Self::En => "en",
        }
    }

    /// The language with this tag.
    #[must_use]
    pub fn from_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.tag() == tag)
    }
}

/// The message with a code. The code comes first, where a locked screen shows it.
#[must_use]
pub fn code_text(language: Language, code: &str, store: &str) -> String {
    let store: String = spelled(store).chars().take(STORE_CHARS_MAX).collect();
    match language {
        Language::Es => format!("{code} es tu clave para {store}. Vale 5 minutos. Nunca se la digas a nadie."),
        Language::PtBr => format!("{code} é sua senha para {store}. Vale 5 minutos. Nunca a diga a ninguém."),
        Language::En => format!("{code} is your code for {store}. It is good for 5 minutes. Never tell it to anybody."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LOGIN_CODE_LIVES;

    /// GSM 03.38, the characters of one septet that a text of ours could have.
    fn is_cheap(c: char) -> bool {
        c.is_ascii_alphanumeric() || " .,:;!?'\"()-+/&@é".contains(c)
    }

    #[test]
    fn every_text_fits_one_message_and_says_how_long_the_code_is_good() {
        let minutes = format!(" {} ", LOGIN_CODE_LIVES.as_secs() / 60);
        for language in Language::ALL {
            let text = code_text(language, "000042", &"M".repeat(100));
            assert!(text.chars().all(is_cheap) && text.chars().count() <= 160, "{text}");
            assert!(text.starts_with("000042 ") && text.contains(&minutes), "{text}");
            assert!(!text.contains(&"M".repeat(STORE_CHARS_MAX + 1)));
            assert_eq!(Language::from_tag(language.tag()), Some(language));
        }
        assert!(!code_text(Language::En, "000042", "a\nb").contains('\n'));
        let text = code_text(Language::PtBr, "000042", "Ações São João 😀");
        assert!(text.chars().all(is_cheap) && text.contains("para Acoes Sao Joao . "), "{text}");
        assert_eq!(Language::from_tag("pt"), None);
    }
}
