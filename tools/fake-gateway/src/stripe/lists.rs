//! Lists, newest first, and the search.

use serde_json::{Value, json};

use super::charges::{payment_of, plain};
use super::errors::{invalid, missing, no_such, not_expandable};
use super::form::Form;
use super::intents::check_expand;
use super::objects::{charge, dispute, intent, refund, session, session_status};
use crate::books::Books;
use crate::calls::Answer;
use crate::payments::{Kind, Payment};

/// Objects of a page: by default, and at most.
const PAGE: i64 = 10;
const PAGE_MAX: i64 = 100;

pub(super) fn intents(books: &Books, account: usize, form: &Form) -> Result<Value, Answer> {
    form.allow(&["created", "customer", "ending_before", "limit", "starting_after"])?;
    check_expand(form, "data.")?;
    let expand = below_data(form);
    let found = newest_first(books, account).filter(|payment| payment.intent_id().is_some());
    let all = found.filter_map(|payment| Some(Item::new(payment, payment.intent_id()?))).collect();
    list("/v1/payment_intents", page(form, all)?, |item| intent(item.payment, &expand))
}

pub(super) fn search(books: &Books, account: usize, form: &Form) -> Result<Value, Answer> {
    form.allow(&["limit", "page", "query"])?;
    check_expand(form, "data.")?;
    let (name, value) = wanted(form.required("query")?)?;
    let expand = below_data(form);
    let found = newest_first(books, account)
        .filter(|payment| payment.intent_id().is_some() && payment.metadata.get(&name) == Some(&value));
    let (found, has_more) =
        page(form, found.filter_map(|payment| Some(Item::new(payment, payment.intent_id()?))).collect())?;
    let data: Vec<Value> = found.iter().map(|item| intent(item.payment, &expand)).collect();
    Ok(json!({ "object": "search_result", "url": "/v1/payment_intents/search", "data": data, "has_more": has_more,
        "next_page": null }))
}

/// The one clause that is served: `metadata['name']:'value'`, with either kind of quotes.
pub(super) fn wanted(query: &str) -> Result<(String, String), Answer> {
    let parts = || {
        let (name, value) = query.trim().strip_prefix("metadata[")?.split_once("]:")?;
        let unquoted = |text: &str| {
            let inner = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
            inner('\'').or_else(|| inner('"')).filter(|inner| !inner.contains(['\'', '"'])).map(str::to_owned)
        };
        Some((unquoted(name)?, unquoted(value)?))
    };
    parts().ok_or_else(|| invalid("query", "parameter_invalid_string", "Not a query that is served here"))
}

pub(super) fn sessions(books: &Books, account: usize, form: &Form) -> Result<Value, Answer> {
    let known = &["created", "customer", "ending_before", "limit", "payment_intent", "starting_after", "status"];
    form.allow(known)?;
    let paths =
        ["data.payment_intent", "data.payment_intent.latest_charge", "data.payment_intent.latest_charge.refunds"];
    if let Some(path) = form.expand().into_iter().find(|path| !paths.contains(path)) {
        return Err(not_expandable(path));
    }
    let expand = below_data(form);
    let fits = |payment: &&Payment| {
        payment.kind == Kind::Session
            && form.get("status").is_none_or(|status| session_status(payment) == status)
            && form.get("payment_intent").is_none_or(|id| payment.intent_id().is_some_and(|own| own == id))
    };
    let found = newest_first(books, account).filter(fits);
    let all = found.map(|payment| Item::new(payment, payment.id())).collect();
    list("/v1/checkout/sessions", page(form, all)?, |item| session(item.payment, &expand, &books.base))
}

pub(super) fn charges(books: &Books, account: usize, form: &Form) -> Result<Value, Answer> {
    form.allow(&["created", "ending_before", "limit", "payment_intent", "starting_after"])?;
    if let Some(path) = form.expand().into_iter().find(|path| *path != "data.refunds") {
        return Err(not_expandable(path));
    }
    let (one, expand) = (payment_of(books, account, form)?, below_data(form));
    let found = of(books, account, one);
    let all = found.filter_map(|payment| Some(Item::new(payment, payment.charge_id()?))).collect();
    list("/v1/charges", page(form, all)?, |item| charge(item.payment, &expand))
}

pub(super) fn refunds(books: &Books, account: usize, form: &Form) -> Result<Value, Answer> {
    form.allow(&["charge", "created", "ending_before", "limit", "payment_intent", "starting_after"])?;
    plain(form)?;
    let one = payment_of(books, account, form)?;
    let all = of(books, account, one).flat_map(refunds_of).collect();
    list("/v1/refunds", page(form, all)?, |item| refund(item.payment, item.position))
}

pub(super) fn disputes(books: &Books, account: usize, form: &Form) -> Result<Value, Answer> {
    form.allow(&["charge", "created", "ending_before", "limit", "payment_intent", "starting_after"])?;
    plain(form)?;
    let one = payment_of(books, account, form)?;
    let all = of(books, account, one).flat_map(disputes_of).collect();
    list("/v1/disputes", page(form, all)?, |item| dispute(item.payment, item.position))
}

/// What a list has an entry for, before it is written out.
struct Item<'a> {
    payment: &'a Payment,
    /// Of the refund or the dispute.
    position: usize,
    id: String,
    created: i64,
}

impl<'a> Item<'a> {
    fn new(payment: &'a Payment, id: String) -> Self {
        Self { payment, position: 0, id, created: payment.created.unix_timestamp() }
    }
}

fn refunds_of(payment: &Payment) -> impl Iterator<Item = Item<'_>> {
    let newest_first = payment.refunds.iter().enumerate().rev();
    newest_first.map(move |(position, one)| {
        let (id, created) = (one.id(payment.kind), one.created.unix_timestamp());
        Item { payment, position, id, created }
    })
}

fn disputes_of(payment: &Payment) -> impl Iterator<Item = Item<'_>> {
    let newest_first = payment.disputes.iter().enumerate().rev();
    newest_first.map(move |(position, one)| {
        let (id, created) = (one.id(payment.kind), one.created.unix_timestamp());
        Item { payment, position, id, created }
    })
}

fn newest_first(books: &Books, account: usize) -> impl Iterator<Item = &Payment> {
    books.payments.iter().rev().filter(move |payment| payment.account == account && payment.kind != Kind::Pix)
}

fn of(books: &Books, account: usize, one: Option<usize>) -> impl Iterator<Item = &Payment> {
    let number = one.map(|index| books.payments[index].number);
    newest_first(books, account).filter(move |payment| number.is_none_or(|number| payment.number == number))
}

fn below_data(form: &Form) -> Vec<&str> {
    form.expand().into_iter().filter_map(|path| path.strip_prefix("data.")).collect()
}

/// The page that is asked for, and whether there are more.
fn page<'a>(form: &Form, mut all: Vec<Item<'a>>) -> Result<(Vec<Item<'a>>, bool), Answer> {
    for (name, fits) in [
        ("created[gt]", i64::gt as fn(&i64, &i64) -> bool),
        ("created[gte]", i64::ge),
        ("created[lt]", i64::lt),
        ("created[lte]", i64::le),
        ("created", i64::eq),
    ] {
        if let Some(bound) = form.integer(name)? {
            all.retain(|item| fits(&item.created, &bound));
        }
    }
    if form.get("ending_before").is_some() {
        return Err(invalid("ending_before", "parameter_unknown", "Not served here"));
    }
    if let Some(id) = form.get("starting_after") {
        let position = all.iter().position(|item| item.id == id).ok_or_else(|| no_such("starting_after", id))?;
        all.drain(..=position);
    }
    let limit = form.integer("limit")?.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(invalid("limit", "parameter_invalid_integer", "1 to 100"));
    }
    let limit = usize::try_from(limit).map_err(|_| missing("limit"))?;
    let has_more = all.len() > limit;
    all.truncate(limit);
    Ok((all, has_more))
}

fn list<'a>(
    url: &str,
    (items, has_more): (Vec<Item<'a>>, bool),
    write: impl Fn(&Item<'a>) -> Value,
) -> Result<Value, Answer> {
    let data: Vec<Value> = items.iter().map(write).collect();
    Ok(json!({ "object": "list", "url": url, "data": data, "has_more": has_more }))
}
