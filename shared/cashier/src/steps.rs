//! One question to a gateway about an attempt, and its answer written down.

use std::time::Duration;

use domain::Result;
use domain::limits::{CLOCKS_DIFFER, KEY_KEPT_FOR, UNANSWERED_FOR_MAX};
use domain::payments::{AttemptState, Gateway, Observed, Step, Use, key};
use edge::metrics::{self, Metric, Unit};
use gateways::{Failure, GatewayClient, NewPayment, PaymentGateway};
use store::payments::{Answer, Attempt, record};
use uuid::Uuid;

use crate::Cashier;

/// Age up to which an attempt cannot have been asked for before.
const JUST_RECORDED: Duration = Duration::from_millis(500);

/// What an answer about a payment shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// How it is now.
    Now,
    /// How it is, or was when the same key was sent first.
    MayBeKept,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// The answer is written down; the attempt as it is now.
    Answered(Box<Attempt>),
    /// There was no answer that says anything. Nothing was written.
    Unanswered,
    /// The gateway knows no such payment, or it is not this attempt's. Nothing was written.
    NotThere,
}

impl Cashier {
    /// Takes a step, unless it is to wait.
    ///
    /// # Errors
    /// Busy or fault from the database. A gateway that fails is not an error: it is [`Asked::Unanswered`].
    pub async fn take(&self, step: Step, attempt: &Attempt, description: &str) -> Result<Asked> {
        if step == Step::Wait {
            return Ok(Asked::Unanswered);
        }
        // What staff booked is known here and nowhere else.
        if attempt.gateway == Gateway::Manual && step != Step::Create {
            // Booked in one go, or not at all.
            let answer = if step == Step::Find { Answer::Unknown } else { Answer::Nothing };
            return self.write(attempt, answer).await;
        }
        let Some(client) = self.client(attempt.tenant_id, attempt.gateway).await? else {
            return self.without_account(step, attempt).await;
        };
        let account = (attempt.tenant_id, attempt.gateway);
        if self.silences.is_left_alone(account) {
            return Ok(Asked::Unanswered);
        }
        let question = self.silences.ask(account);
        let asked = match (step, attempt.payment_id.as_deref()) {
            (Step::Create, _) => self.create(&client, attempt, description).await,
            (Step::Capture, Some(payment_id)) => self.capture(&client, attempt, payment_id).await,
            (Step::Void, Some(payment_id)) => {
                match client.void(payment_id, &key_about(attempt, "void", payment_id)).await {
                    Err(Failure::NotFound) => self.find(&client, attempt, description).await,
                    voided => self.bring(attempt, voided, Freshness::MayBeKept).await,
                }
            }
            (Step::Fetch, Some(payment_id)) => match client.fetch(payment_id).await {
                // Known once and unknown now: another account, perhaps. By our reference, before anybody waits for ever.
                Err(Failure::NotFound) if attempt.state.is_open() => self.find(&client, attempt, description).await,
                fetched => self.bring(attempt, fetched, Freshness::Now).await,
            },
            _ => self.find(&client, attempt, description).await,
        };
        count(asked.as_ref().ok());
        // A database that fails is none of the gateway's silence.
        if !matches!(asked, Ok(Asked::Unanswered)) {
            question.answered();
        }
        asked
    }

    /// A store without credentials that work: nobody can be asked. What was recorded a moment ago was never asked for.
    async fn without_account(&self, step: Step, attempt: &Attempt) -> Result<Asked> {
        if step == Step::Create && attempt.age <= JUST_RECORDED {
            return self.write(attempt, Answer::Unknown).await;
        }
        Ok(Asked::Unanswered)
    }

    async fn create(&self, client: &GatewayClient, attempt: &Attempt, description: &str) -> Result<Asked> {
        let key = key_of(attempt, "create");
        let new = new_payment(attempt, &key, description);
        fail::fail_point!("payment.before_create");
        let mut created = client.create(&new).await;
        fail::fail_point!("payment.after_create");
        if matches!(created, Err(Failure::Refused { status: 401 | 403, .. }))
            && let Some(again) = self.client_again(attempt).await?
        {
            created = again.create(&new).await;
        }
        match created {
            Ok(observed) => self.write(attempt, Answer::Observed(&observed)).await,
            Err(Failure::Declined { code }) => self.write(attempt, Answer::Declined(&code)).await,
            // A try before this one may have been heard: a refusal of this one says nothing about it.
            Err(failure @ (Failure::Refused { .. } | Failure::NotFound)) if attempt.age > JUST_RECORDED => {
                tracing::error!(attempt.id = %attempt.id, error.message = %failure, "a gateway refuses to make a payment again");
                self.find(client, attempt, description).await
            }
            // Understood and not made: there is nothing there that could be paid.
            Err(failure @ (Failure::Refused { .. } | Failure::NotFound)) => {
                tracing::error!(attempt.id = %attempt.id, error.message = %failure, "a gateway refuses to make a payment");
                self.write(attempt, Answer::Unknown).await
            }
            Err(failure) => Ok(unanswered(attempt, &failure)),
        }
    }

    /// The gateway with credentials read anew: they may have been rotated since.
    async fn client_again(&self, attempt: &Attempt) -> Result<Option<GatewayClient>> {
        let credentials = self.credentials_again(attempt.tenant_id, attempt.gateway).await?;
        credentials.map(|credentials| self.gateways.client(&credentials)).transpose()
    }

    /// By our reference. Definitely not found means that nobody will ever pay it, unless a request of ours is still
    /// under way; whatever that brings is late money.
    async fn find(&self, client: &GatewayClient, attempt: &Attempt, description: &str) -> Result<Asked> {
        match client.find(attempt.id, attempt.created_at - CLOCKS_DIFFER).await {
            Ok(Some(observed)) => self.write(attempt, Answer::Observed(&observed)).await,
            Ok(None) => self.write(attempt, Answer::Unknown).await,
            Err(Failure::TooMany) if attempt.age < KEY_KEPT_FOR => self.replay(client, attempt, description).await,
            // Its key must not be sent any more, and it would be looked for in vain for ever.
            Err(failure @ Failure::TooMany) if attempt.state == AttemptState::Created => {
                self.give_up(attempt, &failure).await
            }
            Err(failure) => Ok(unanswered(attempt, &failure)),
        }
    }

    /// Too many to look through: the same request under the same key gets the payment that it made, if it did, and
    /// else makes one that can be closed. A refusal means that none was made, for what is kept under a key is given
    /// again before anything is checked. If even that says nothing, because an error is kept there, the attempt is given
    /// up after a while: nobody was ever told how to pay it.
    async fn replay(&self, client: &GatewayClient, attempt: &Attempt, description: &str) -> Result<Asked> {
        let key = key_of(attempt, "create");
        match client.create(&new_payment(attempt, &key, description)).await {
            Ok(observed) => self.write(attempt, Answer::Observed(&observed)).await,
            Err(Failure::Declined { code }) => self.write(attempt, Answer::Declined(&code)).await,
            Err(Failure::Refused { status: 400 | 404, .. }) => self.write(attempt, Answer::Unknown).await,
            Err(failure) if attempt.age >= UNANSWERED_FOR_MAX => self.give_up(attempt, &failure).await,
            Err(failure) => Ok(unanswered(attempt, &failure)),
        }
    }

    /// Nobody was ever told how to pay it. Should it be paid all the same, that is late money.
    async fn give_up(&self, attempt: &Attempt, failure: &Failure) -> Result<Asked> {
        tracing::error!(attempt.id = %attempt.id, error.message = %failure, "given up without an answer");
        self.write(attempt, Answer::Unknown).await
    }

    /// What cannot be captured any more shows why when it is looked at.
    async fn capture(&self, client: &GatewayClient, attempt: &Attempt, payment_id: &str) -> Result<Asked> {
        let key = key_about(attempt, "capture", payment_id);
        match client.capture(payment_id, attempt.amount_minor, &key).await {
            Ok(observed) => self.write(attempt, Answer::Observed(&observed)).await,
            Err(failure @ Failure::Unknown(_)) => Ok(unanswered(attempt, &failure)),
            Err(failure) => {
                tracing::warn!(attempt.id = %attempt.id, error.message = %failure, "not captured");
                self.bring(attempt, client.fetch(payment_id).await, Freshness::Now).await
            }
        }
    }

    /// Asks about a payment that is known to be an attempt's, under whatever id the gateway used for it.
    ///
    /// # Errors
    /// As [`Cashier::take`].
    pub async fn hear(&self, attempt: &Attempt, payment_id: &str) -> Result<Asked> {
        let Some(client) = self.client(attempt.tenant_id, attempt.gateway).await? else { return Ok(Asked::Unanswered) };
        let Some(fetched) = self.fetch(&client, attempt.tenant_id, payment_id).await else {
            return Ok(Asked::Unanswered);
        };
        match fetched {
            Err(Failure::NotFound) => Ok(Asked::NotThere),
            fetched => self.bring(attempt, fetched, Freshness::Now).await,
        }
    }

    /// How a payment is; none when its account is left alone now.
    pub(crate) async fn fetch(
        &self,
        client: &GatewayClient,
        tenant_id: Uuid,
        payment_id: &str,
    ) -> Option<std::result::Result<Observed, Failure>> {
        let account = (tenant_id, client.gateway());
        if self.silences.is_left_alone(account) {
            return None;
        }
        let question = self.silences.ask(account);
        let fetched = client.fetch(payment_id).await;
        if !matches!(fetched, Err(Failure::Unknown(_))) {
            question.answered();
        }
        Some(fetched)
    }

    /// Decides about an attempt from the rows, without asking anybody.
    ///
    /// # Errors
    /// Busy or fault from the database.
    pub async fn decide(&self, attempt: &Attempt) -> Result<Asked> {
        self.write(attempt, Answer::Nothing).await
    }

    /// Which attempt a payment of a store's account names; inside, none when it is not ours. None at all when there was
    /// no answer.
    ///
    /// # Errors
    /// Busy or fault from the database.
    pub async fn reference(&self, tenant_id: Uuid, gateway: Gateway, payment_id: &str) -> Result<Option<Option<Uuid>>> {
        let Some(client) = self.client(tenant_id, gateway).await? else { return Ok(None) };
        let Some(fetched) = self.fetch(&client, tenant_id, payment_id).await else { return Ok(None) };
        match fetched {
            Ok(observed) => Ok(Some(observed.attempt_id)),
            Err(Failure::NotFound) => Ok(Some(None)),
            Err(failure) => {
                tracing::warn!(gateway = gateway.word(), error.message = %failure, "no answer about a payment");
                Ok(None)
            }
        }
    }

    /// Writes down an answer about a payment that the gateway knows.
    pub(crate) async fn bring(
        &self,
        attempt: &Attempt,
        answer: std::result::Result<Observed, Failure>,
        freshness: Freshness,
    ) -> Result<Asked> {
        match answer {
            Ok(observed) if observed.attempt_id.is_some_and(|id| id != attempt.id) => {
                tracing::error!(attempt.id = %attempt.id, "the gateway's payment names another attempt");
                Ok(Asked::NotThere)
            }
            Ok(observed) => {
                let answer = match freshness {
                    // It was read before it was asked about.
                    Freshness::Now => Answer::Looked(&observed, attempt.read_at()),
                    Freshness::MayBeKept => Answer::Observed(&observed),
                };
                self.write(attempt, answer).await
            }
            Err(failure) => Ok(unanswered(attempt, &failure)),
        }
    }

    async fn write(&self, attempt: &Attempt, answer: Answer<'_>) -> Result<Asked> {
        let now = {
            let mut client = self.database.client().await?;
            record(&mut client, attempt.tenant_id, attempt.id, answer).await?
        };
        meter(attempt, &now, answer);
        if let Some(observed) = answer.observed()
            && observed.state.is_open()
            && !now.state.is_open()
        {
            self.close_needless(&now, &observed.payment_id).await;
        }
        Ok(Asked::Answered(Box::new(now)))
    }

    /// A payment that came into being after its attempt had been given up: a request that was still under way when
    /// nobody found it. Nobody has been told how to pay it; closing it is only tidy. Should it be paid all the same,
    /// that is late money.
    async fn close_needless(&self, attempt: &Attempt, payment_id: &str) {
        let Ok(Some(client)) = self.client(attempt.tenant_id, attempt.gateway).await else { return };
        if let Err(failure) = client.void(payment_id, &key_about(attempt, "void", payment_id)).await {
            tracing::warn!(attempt.id = %attempt.id, error.message = %failure, "a needless payment was not closed");
        }
    }
}

/// What changed, for metrics.
fn meter(before: &Attempt, now: &Attempt, answer: Answer<'_>) {
    if let Some(observed) = answer.observed()
        && observed.state.rank() < before.state.rank()
    {
        metrics::count("payment_answers_out_of_order", &[]);
    }
    if now.state == AttemptState::Captured && before.state != AttemptState::Captured {
        #[allow(clippy::cast_precision_loss, reason = "milliseconds of a payment")]
        let value = now.age.as_millis() as f64;
        metrics::emit(&[Metric { name: "payment_latency_ms", value, unit: Unit::Milliseconds }], &[]);
    }
    if now.used == Some(Use::Return) && before.used.is_none() {
        metrics::count("payments_returned", &[]);
    }
}

fn unanswered(attempt: &Attempt, failure: &Failure) -> Asked {
    tracing::warn!(attempt.id = %attempt.id, gateway = attempt.gateway.word(), error.message = %failure, "no answer about a payment");
    Asked::Unanswered
}

/// The same for every try, because everything comes from the recorded attempt.
fn new_payment<'a>(attempt: &'a Attempt, key: &'a str, description: &'a str) -> NewPayment<'a> {
    NewPayment {
        attempt_id: attempt.id,
        order_id: attempt.order_id,
        tenant_id: attempt.tenant_id,
        key,
        amount_minor: attempt.amount_minor,
        currency: &attempt.currency,
        method: attempt.method,
        capture: attempt.capture,
        expires_at: attempt.expires_at,
        description,
        return_url: attempt.return_url.as_deref(),
        payer_email: None,
    }
}

/// The same for every try of the same thing with a payment. A payment may have two ids, and a key is for one request.
fn key_about(attempt: &Attempt, operation: &str, payment_id: &str) -> String {
    key(attempt.tenant_id, attempt.order_id, operation, &format!("{}/{payment_id}", attempt.number))
}

/// The same for every try of the same thing, so that it is done once.
fn key_of(attempt: &Attempt, operation: &str) -> String {
    key(attempt.tenant_id, attempt.order_id, operation, &attempt.number.to_string())
}

fn count(asked: Option<&Asked>) {
    let outcome = match asked {
        Some(Asked::Answered(now)) => now.state.word(),
        Some(Asked::Unanswered) => "unanswered",
        Some(Asked::NotThere) => "not-there",
        None => "failed",
    };
    metrics::count("payment_answers", &[(metrics::Dimension::Outcome, outcome)]);
}
