//! Texts that somebody writes and others read: what stores, products and people are called.
//!
//! Names stand in mails, in messages to phones and on pages of ours. So they show something, hide nothing, and a
//! store's, by which its messages begin, leads nowhere.

use crate::limits::STORE_NAME_CHARS_MAX;
use crate::septets::spelled;

/// What stands between the labels of a host, or is taken for it.
const DOTS: [char; 5] = ['.', '\u{2024}', '\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// Whether a text can be a name of so many characters at most: on one line, something of it is seen, and nothing is in
/// it that is not seen but changes how the rest is read.
#[must_use]
pub fn is_name(text: &str, chars_max: usize) -> bool {
    (1..=chars_max).contains(&text.chars().count()) && !text.chars().any(is_hidden) && text.chars().any(is_seen)
}

/// Whether a text can be the name of a store: a name that holds no address, also when it is spelled for phones.
#[must_use]
pub fn is_store_name(text: &str) -> bool {
    is_name(text, STORE_NAME_CHARS_MAX) && !holds_address(text) && !holds_address(&spelled(text))
}

/// A text of which no program makes a link: a blank stands behind what would be read as one.
#[must_use]
pub fn unlinked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        shown.push(c);
        let leads = match rest.peek() {
            Some('/') => c == ':',
            Some(next) => DOTS.contains(&c) && next.is_alphabetic(),
            None => false,
        };
        if leads {
            shown.push(' ');
        }
    }
    shown
}

/// Controls, ends of lines, marks that turn the direction, and what has no width (Unicode 17, general categories Cc,
/// Cf, Zl and Zp, and the joiner of graphemes).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// Not a blank, not a letter that is drawn as one, not the choice of another form.
fn is_seen(c: char) -> bool {
    let is_blank =
        matches!(c, '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}');
    let chooses = matches!(c, '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
    !(c.is_whitespace() || is_blank || chooses || is_hidden(c))
}

/// Whether a program that shows the text may make a link of a part of it.
fn holds_address(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("://") || text.contains("www.") || text.split_whitespace().any(has_host)
}

/// Whether a word has a dot between what could be a name and a domain: something in front, two letters behind.
fn has_host(word: &str) -> bool {
    let parts: Vec<&str> = word.split(DOTS).collect();
    parts.windows(2).any(|pair| {
        let has_name = pair[0].ends_with(char::is_alphanumeric);
        has_name && pair[1].chars().take_while(|c| c.is_alphabetic()).count() >= 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_show_something_and_hide_nothing() {
        for good in ["A", "Núñez da Conceição", "李", "O'Neill-Ørsted", "Rifa 🎉", "❤\u{fe0f}", "عربي", "=1+1", " a"]
        {
            assert!(is_name(good, 20), "{good:?}");
        }
        let hidden = ["a\nb", "a\u{0}", "a\u{7f}", "a\u{85}b", "a\u{ad}b", "a\u{200b}b", "a\u{200d}b", "a\u{202e}b"];
        let more = ["a\u{2028}b", "a\u{2066}b", "a\u{feff}", "a\u{61c}b", "a\u{e0041}", "a\u{180e}b", "a\u{34f}b"];
        let blank = ["", " ", "\u{a0}\u{3000}", "\u{3164}", "\u{2800} \u{2800}", "\u{fe0f}", "\u{115f}"];
        for bad in hidden.into_iter().chain(more).chain(blank) {
            assert!(!is_name(bad, 20), "{bad:?}");
        }
        assert!(is_name(&"é".repeat(20), 20) && !is_name(&"é".repeat(21), 20), "characters, not bytes");
    }

    #[test]
    fn what_is_unlinked_leads_nowhere() {
        for (text, shown) in [
            ("Spring raffle 3.0", "Spring raffle 3.0"),
            ("see evil.example/login", "see evil. example/login"),
            ("https://evil", "https: //evil"),
            ("www.evil.co。uk.", "www. evil. co。 uk."),
            ("", ""),
        ] {
            assert_eq!(unlinked(text), shown);
            assert!(!shown.contains("://") && !shown.split_whitespace().any(has_host), "{text}");
        }
    }

    #[test]
    fn a_stores_name_leads_nowhere() {
        for good in [
            "La Gran Rifa",
            "Rifas S.A.",
            "D.J. Rifas, S.L.",
            "Sorteos 3.0",
            "1.000.000 de premios",
            "Rifa. Y más",
            "Fin...",
            "...y ya",
            "C/ Mayor 5",
            "Rifa & Co.",
        ] {
            assert!(is_store_name(good), "{good}");
        }
        for bad in [
            "http://evil.example",
            "x HTTPS://x",
            "tirada://x",
            "WWW.evil",
            "see evil.example",
            "evil.example/login NOW",
            "(evil.example)",
            "me@evil.example",
            "Evil.Com",
            "evil。com",
            "evil．com",
            "evil😀.😀com",
            "bücher.example",
            "почта.рф",
            "a.b.co",
            "evil.\u{200b}com",
            "",
            "\u{3164}",
        ] {
            assert!(!is_store_name(bad), "{bad}");
        }
        let long = "a".repeat(STORE_NAME_CHARS_MAX);
        assert!(is_store_name(&long) && !is_store_name(&format!("{long}a")));
    }
}
