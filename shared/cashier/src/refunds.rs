//! A refund made or looked at, and the answer written down.

use domain::Result;
use domain::limits::REFUND_KEY_ASKED_MAX;
use domain::payments::{Gateway, RefundState, key};
use gateways::{Failure, NewRefund, PaymentGateway};
use store::payments::{
    Attempt, MayAsk, Refund, RefundAnswer, find_refund, note_refund_asked, record_refund, renew_refund_key,
};

use crate::Cashier;
use crate::steps::{Asked, Freshness};

impl Cashier {
    /// Makes a refund that the gateway has not accepted yet, or looks at one that it has.
    ///
    /// # Errors
    /// Busy or fault from the database. A gateway that fails is not an error: the refund's next look is written down.
    pub async fn refund(&self, refund: &Refund, attempt: &Attempt) -> Result<()> {
        let Some(payment_id) = attempt.payment_id.as_deref() else {
            return self.write_refund(refund, RefundAnswer::Refused("no-payment")).await;
        };
        let Some(client) = self.client(attempt.tenant_id, attempt.gateway).await? else { return Ok(()) };
        if refund.state == RefundState::Pending {
            if let Some(fetched) = self.fetch(&client, attempt.tenant_id, payment_id).await {
                self.bring(attempt, fetched, Freshness::Now).await?;
            }
            return Ok(());
        }
        let account = (attempt.tenant_id, attempt.gateway);
        if self.silences.is_left_alone(account) {
            return Ok(());
        }
        let key = key(refund.tenant_id, refund.order_id, "refund", &format!("{}/{}", refund.key_of, refund.key_number));
        let new = NewRefund {
            refund_id: refund.id,
            amount_minor: refund.amount_minor,
            currency: &attempt.currency,
            key: &key,
        };
        let may_ask = note_refund_asked(&*self.database.client().await?, refund).await?;
        let is_wanted = match may_ask {
            // What staff hand out is known here and nowhere else.
            MayAsk::AfterALook if attempt.gateway != Gateway::Manual => {
                self.is_still_missing(refund, attempt, &client, payment_id).await?
            }
            MayAsk::AfterALook | MayAsk::Now => true,
            MayAsk::No => false,
        };
        if !is_wanted {
            return Ok(());
        }
        fail::fail_point!("refund.before_call");
        let question = self.silences.ask(account);
        let made = client.refund(payment_id, &new).await;
        if !matches!(made, Err(Failure::Unknown(_))) {
            question.answered();
        }
        fail::fail_point!("refund.after_call");
        match made {
            Ok(observed) => self.write_refund(refund, RefundAnswer::Observed(&observed)).await,
            Err(Failure::Unknown(cause)) => {
                tracing::warn!(refund.id = %refund.id, error.message = %cause, "no answer about a refund");
                self.look_for(refund, attempt, &client, payment_id).await
            }
            Err(failure) => self.explain(refund, attempt, &client, payment_id, &failure).await,
        }
    }

    /// Whether a refund that was asked for long ago has surely not been made. Without an answer nobody knows.
    async fn is_still_missing(
        &self,
        refund: &Refund,
        attempt: &Attempt,
        client: &gateways::GatewayClient,
        payment_id: &str,
    ) -> Result<bool> {
        match self.fetch(client, attempt.tenant_id, payment_id).await {
            None => return Ok(false),
            // Asking for it tells why.
            Some(Err(Failure::NotFound)) => return Ok(true),
            Some(fetched) => match self.bring(attempt, fetched, Freshness::Now).await? {
                Asked::Answered(_) => {}
                Asked::Unanswered | Asked::NotThere => return Ok(false),
            },
        }
        let now = find_refund(&*self.database.client().await?, refund.id).await?;
        Ok(now.is_some_and(|now| now.state == RefundState::Created))
    }

    /// A refund that was refused may have been made before, by a request without an answer or in the dashboard: the
    /// payment's own list tells. Only what is not there has failed.
    async fn explain(
        &self,
        refund: &Refund,
        attempt: &Attempt,
        client: &gateways::GatewayClient,
        payment_id: &str,
        failure: &Failure,
    ) -> Result<()> {
        tracing::error!(refund.id = %refund.id, error.message = %failure, "a gateway refuses a refund");
        match client.fetch(payment_id).await {
            Ok(observed) => {
                self.bring(attempt, Ok(observed.clone()), Freshness::Now).await?;
                // Has no effect if the list had it.
                let code = match failure {
                    Failure::Refused { code, .. } | Failure::Declined { code } => code.as_str(),
                    _ => "not-found",
                };
                self.write_refund(refund, RefundAnswer::Refused(code)).await?;
                // What was given back elsewhere fits only now that this one has failed.
                self.bring(attempt, Ok(observed), Freshness::Now).await.map(drop)
            }
            Err(Failure::NotFound) => self.write_refund(refund, RefundAnswer::Refused("not-found")).await,
            Err(_) => Ok(()),
        }
    }

    /// A refund without an answer may have been made: the payment's own list tells. One that is not there for long has
    /// an answer kept under its key that says nothing, and is asked for under another.
    async fn look_for(
        &self,
        refund: &Refund,
        attempt: &Attempt,
        client: &gateways::GatewayClient,
        payment_id: &str,
    ) -> Result<()> {
        let looked = client.fetch(payment_id).await;
        let listed = looked.as_ref().is_ok_and(|seen| seen.refunds.iter().any(|r| r.refund_id == Some(refund.id)));
        let is_told = looked.is_ok();
        self.bring(attempt, looked, Freshness::Now).await?;
        if is_told && !listed && refund.asked >= REFUND_KEY_ASKED_MAX {
            renew_refund_key(&*self.database.client().await?, refund).await?;
        }
        Ok(())
    }

    async fn write_refund(&self, refund: &Refund, answer: RefundAnswer<'_>) -> Result<()> {
        let mut client = self.database.client().await?;
        record_refund(&mut client, refund.tenant_id, refund.order_id, refund.id, answer).await
    }
}
