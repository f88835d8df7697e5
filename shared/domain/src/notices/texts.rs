//! The texts of notices, one table for all languages.
//!
//! Those for phones use the characters that all phones have (GSM 03.38) and fit one message, or each would cost twice
//! as much: names are spelled with these, and of long lists of numbers the first are named. Mail has it all.

use std::fmt::Write;

use crate::catalog::minor_digits;
use crate::errors::Reason;
use crate::login::Language;
use crate::schedule::WallTime;
use crate::septets::spelled;
use crate::staff::Mail;
use crate::text::unlinked;

/// Longest text for a phone, in characters: one message.
const TEXT_CHARS_MAX: usize = 160;
/// Longest names of a store and a product in a notice, in characters: the rest must fit beside them.
const NAME_CHARS_MAX: usize = 24;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// What a notice says, as far as it varies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Name of the store.
    pub store: String,
    /// Name of the product.
    pub product: String,
    /// What happened.
    pub event: Event,
}

/// What happened to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Its numbers are held.
    Reserved {
        /// As they are printed.
        numbers: Vec<String>,
        /// By the clocks of the product's zone.
        until: WallTime,
    },
    /// It is paid.
    Paid {
        /// Its numbers, as they are printed.
        numbers: Vec<String>,
    },
    /// It was refused.
    Rejected {
        /// Why.
        reason: Reason,
    },
    /// Its hold ran out.
    Expired,
    /// Money goes back.
    Refunded {
        /// All that goes back so far, in minor units.
        minor: i64,
        /// ISO 4217.
        currency: String,
    },
}

impl Event {
    fn numbers(&self) -> &[String] {
        match self {
            Self::Reserved { numbers, .. } | Self::Paid { numbers } => numbers,
            Self::Rejected { .. } | Self::Expired | Self::Refunded { .. } => &[],
        }
    }
}

/// The text for a phone: one message, with as many numbers as fit.
#[must_use]
pub fn notice_text(language: Language, facts: &Facts) -> String {
    let mut shown = facts.event.numbers().len();
    loop {
        let text = said(language, facts, shown, cheap_name);
        if text.chars().count() <= TEXT_CHARS_MAX || shown <= 1 {
            return text;
        }
        shown -= 1;
    }
}

/// The mail, with all numbers.
#[must_use]
pub fn notice_mail(language: Language, facts: &Facts) -> Mail {
    let subject = format!("{}: {}", name(&facts.store), title(language, &facts.event));
    Mail { subject, text: format!("{}\n", said(language, facts, facts.event.numbers().len(), name)) }
}

fn said(language: Language, facts: &Facts, shown: usize, spell: fn(&str) -> String) -> String {
    let numbers = list(facts.event.numbers(), shown);
    format!("{} ({}): {}", spell(&facts.store), spell(&facts.product), sentence(language, &facts.event, &numbers))
}

/// The first so many, and how many more there are.
fn list(numbers: &[String], shown: usize) -> String {
    let mut text = numbers.iter().take(shown).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = numbers.len().saturating_sub(shown);
    if more > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, " (+{more})");
    }
    text
}

fn name(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    unlinked(&name).chars().take(NAME_CHARS_MAX).collect()
}

fn cheap_name(text: &str) -> String {
    name(&spelled(text))
}

fn sentence(language: Language, event: &Event, numbers: &str) -> String {
    match (language, event) {
        (Language::Es, Event::Reserved { until, .. }) => {
            let WallTime { month, day, hour, minute } = until;
            format!(
                "reservado hasta el {day}/{month} a las {hour}:{minute:02}: {numbers}. Paga antes o vuelve a la venta."
            )
        }
        (Language::Es, Event::Paid { .. }) => format!("pago recibido. Tienes {numbers}."),
        (Language::Es, Event::Rejected { reason }) => format!("no ha podido ser: {}.", why(language, *reason)),
        (Language::Es, Event::Expired) => "tu reserva ha vencido sin pago y vuelve a la venta.".to_owned(),
        (Language::Es, Event::Refunded { minor, currency }) => {
            format!("te devolvemos {} por donde pagaste.", amount(*minor, currency, ','))
        }
        (Language::PtBr, Event::Reserved { until, .. }) => {
            let WallTime { month, day, hour, minute } = until;
            format!("reservado até {day}/{month} às {hour}:{minute:02}: {numbers}. Pague antes ou volta à venda.")
        }
        (Language::PtBr, Event::Paid { .. }) => format!("pagamento recebido. Agora é seu: {numbers}."),
        (Language::PtBr, Event::Rejected { reason }) => format!("seu pedido foi recusado: {}.", why(language, *reason)),
        (Language::PtBr, Event::Expired) => "sua reserva venceu sem pagamento e voltou à venda.".to_owned(),
        (Language::PtBr, Event::Refunded { minor, currency }) => {
            format!("devolvemos {} pelo mesmo meio do pagamento.", amount(*minor, currency, ','))
        }
        (Language::En, Event::Reserved { until, .. }) => {
            let WallTime { month, day, hour, minute } = until;
            let month = usize::try_from(month - 1).ok().and_then(|index| MONTHS.get(index));
            let month = month.copied().unwrap_or_default();
            format!(
                "reserved until {hour}:{minute:02} on {day} {month}: {numbers}. Pay before, or it goes back on sale."
            )
        }
        (Language::En, Event::Paid { .. }) => format!("payment received. Yours: {numbers}."),
        (Language::En, Event::Rejected { reason }) => format!("your order was refused: {}.", why(language, *reason)),
        (Language::En, Event::Expired) => "your reservation ended unpaid and is back on sale.".to_owned(),
        (Language::En, Event::Refunded { minor, currency }) => {
            format!("we are sending {} back the way you paid.", amount(*minor, currency, '.'))
        }
    }
}

/// Why a worker refuses orders; those are the reasons of a rejected one.
const fn why(language: Language, reason: Reason) -> &'static str {
    match (language, reason) {
        (Language::Es, Reason::NumbersTaken) => "otros han sido antes",
        (Language::Es, Reason::SoldOut) => "todo estaba vendido",
        (Language::Es, Reason::LimitExceeded) => "supera lo permitido por persona",
        (Language::Es, Reason::SaleEnded) => "la venta ha terminado",
        (Language::Es, Reason::QueuedTooLong) => "la espera ha sido demasiado larga",
        (Language::Es, _) => "no era posible",
        (Language::PtBr, Reason::NumbersTaken) => "outros chegaram antes",
        (Language::PtBr, Reason::SoldOut) => "tudo foi vendido",
        (Language::PtBr, Reason::LimitExceeded) => "passa do limite por pessoa",
        (Language::PtBr, Reason::SaleEnded) => "a venda terminou",
        (Language::PtBr, Reason::QueuedTooLong) => "a espera foi longa demais",
        (Language::PtBr, _) => "algo deu errado",
        (Language::En, Reason::NumbersTaken) => "others came first",
        (Language::En, Reason::SoldOut) => "everything is sold",
        (Language::En, Reason::LimitExceeded) => "over the limit per person",
        (Language::En, Reason::SaleEnded) => "the sale has ended",
        (Language::En, Reason::QueuedTooLong) => "it waited too long",
        (Language::En, _) => "it was not possible",
    }
}

const fn title(language: Language, event: &Event) -> &'static str {
    match (language, event) {
        (Language::Es, Event::Reserved { .. }) => "tus números están reservados",
        (Language::Es, Event::Paid { .. }) => "tus números están pagados",
        (Language::Es, Event::Rejected { .. }) => "tu pedido no ha podido ser",
        (Language::Es, Event::Expired) => "tu reserva ha vencido",
        (Language::Es, Event::Refunded { .. }) => "te devolvemos tu dinero",
        (Language::PtBr, Event::Reserved { .. }) => "seus números estão reservados",
        (Language::PtBr, Event::Paid { .. }) => "seus números estão pagos",
        (Language::PtBr, Event::Rejected { .. }) => "seu pedido foi recusado",
        (Language::PtBr, Event::Expired) => "sua reserva venceu",
        (Language::PtBr, Event::Refunded { .. }) => "devolvemos seu dinheiro",
        (Language::En, Event::Reserved { .. }) => "your numbers are reserved",
        (Language::En, Event::Paid { .. }) => "your numbers are paid",
        (Language::En, Event::Rejected { .. }) => "your order was refused",
        (Language::En, Event::Expired) => "your reservation has ended",
        (Language::En, Event::Refunded { .. }) => "we are sending your money back",
    }
}

/// An amount with its currency in front, which every phone can show.
fn amount(minor: i64, currency: &str, point: char) -> String {
    let digits = minor_digits(currency).unwrap_or(2);
    let unit = 10_i64.pow(digits);
    let (whole, rest) = (minor / unit, minor % unit);
    match digits {
        0 => format!("{currency} {whole}"),
        _ => format!("{currency} {whole}{point}{rest:0width$}", width = digits as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTIL: WallTime = WallTime { month: 12, day: 31, hour: 23, minute: 5 };

    /// GSM 03.38, the characters of one septet that a text of ours could have.
    fn is_cheap(c: char) -> bool {
        c.is_ascii_alphanumeric() || " .,:;!?'\"()-+/&@éàñ".contains(c)
    }

    fn facts(event: Event) -> Facts {
        Facts { store: "M".repeat(100), product: format!("São João 😀 ñandú {}", "P".repeat(100)), event }
    }

    fn longest() -> Vec<Event> {
        let numbers: Vec<String> = (900_000_000..900_000_100).map(|number| number.to_string()).collect();
        let mut events = vec![
            Event::Reserved { numbers: numbers.clone(), until: UNTIL },
            Event::Paid { numbers },
            Event::Expired,
            Event::Refunded { minor: 100_000_000_000_000, currency: "BRL".into() },
        ];
        events.extend(Reason::ALL.iter().map(|reason| Event::Rejected { reason: *reason }));
        events
    }

    #[test]
    fn texts_fit_one_message_of_any_phone() {
        for language in Language::ALL {
            for event in longest() {
                let facts = facts(event);
                let text = notice_text(language, &facts);
                assert!(text.chars().count() <= TEXT_CHARS_MAX, "{text}");
                assert!(text.chars().all(is_cheap) && text.contains("(Sao Joao  ñandu P"), "{text}");
                let has_numbers = !facts.event.numbers().is_empty();
                assert_eq!(has_numbers, text.contains("900000000"), "one number at least: {text}");
            }
        }
    }

    #[test]
    fn mail_names_every_number_and_its_subject_is_one_line() {
        for language in Language::ALL {
            for event in longest() {
                let all = event.numbers().to_vec();
                let facts = Facts { store: "A store\r\nBcc: x".into(), product: "São João".into(), event };
                let mail = notice_mail(language, &facts);
                assert!(all.iter().all(|number| mail.text.contains(number)), "{}", mail.text);
                assert!(mail.text.contains(" (São João): "), "{}", mail.text);
                assert!(mail.subject.starts_with("A storeBcc: x: "), "{}", mail.subject);
            }
        }
    }

    #[test]
    fn what_a_product_is_called_is_no_link() {
        for product in ["evil.example/x", "evil😀.😀example/x"] {
            let facts = Facts { store: "Joe".into(), product: product.into(), event: Event::Expired };
            for text in [notice_text(Language::En, &facts), notice_mail(Language::En, &facts).text] {
                assert!(!text.contains("evil.example"), "{text}");
            }
        }
    }

    #[test]
    fn what_matters_is_said() {
        let numbers = vec!["00007".to_owned(), "00077".to_owned()];
        let text =
            |language, event| notice_text(language, &Facts { store: "Joe".into(), product: "A raffle".into(), event });
        let reserved = Event::Reserved { numbers: numbers.clone(), until: UNTIL };
        assert_eq!(
            text(Language::Es, reserved.clone()),
            "Joe (A raffle): reservado hasta el 31/12 a las 23:05: 00007, 00077. Paga antes o vuelve a la venta."
        );
        assert!(text(Language::En, reserved).contains("until 23:05 on 31 Dec: 00007, 00077."));
        assert!(text(Language::PtBr, Event::Paid { numbers }).contains("Agora é seu: 00007, 00077."));
        let refund = |minor, currency: &str| Event::Refunded { minor, currency: currency.into() };
        for (minor, currency, said) in
            [(1_250, "EUR", "EUR 12.50"), (5, "BRL", "BRL 0.05"), (990, "CLP", "CLP 990"), (1_250, "TND", "TND 1.250")]
        {
            assert!(text(Language::En, refund(minor, currency)).contains(said), "{said}");
        }
        assert!(text(Language::PtBr, refund(1_250, "BRL")).contains("BRL 12,50"));
    }

    #[test]
    fn every_reason_of_a_worker_is_explained() {
        for language in Language::ALL {
            let plain = why(language, Reason::Invalid);
            let reasons = [
                Reason::NumbersTaken,
                Reason::SoldOut,
                Reason::LimitExceeded,
                Reason::SaleEnded,
                Reason::QueuedTooLong,
            ];
            assert!(reasons.iter().all(|reason| why(language, *reason) != plain));
        }
    }
}
