//! Finding a payment at Stripe by our reference, when its id never reached us.

use domain::limits::{CLOCKS_DIFFER, KEY_KEPT_FOR};
use domain::payments::Observed;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::StripeClient;
use super::answers::{Intent, List, Listed, Session};
use crate::Failure;
use crate::http_client::Operation;

/// Pages of a list that are looked through: three hundred payments. In a bigger sale asking again under the key is
/// cheaper than looking.
const PAGES_MAX: usize = 3;

/// How far behind Stripe's search can be, doubled. Normally it is less than a minute.
const SEARCH_LAG: Duration = Duration::hours(2);

/// A session can be paid for a day at most.
const SESSION_LASTS: Duration = Duration::hours(24);

impl StripeClient {
    /// The search knows what is older than its lag, the list of payments the rest. A session that was never submitted
    /// has no payment yet and cannot be searched for, so the open ones are listed; expired ones can never be paid.
    /// Nothing is listed from when the key was not sent any more, nor what is known to be too long while the key can
    /// still tell.
    pub(crate) async fn find(
        &self,
        attempt_id: Uuid,
        created_after: OffsetDateTime,
    ) -> Result<Option<Observed>, Failure> {
        let operation = self.http.begin();
        let is_ours = |intent: &Intent| intent.attempt_id() == Some(attempt_id);
        let (now, sent_until) = (OffsetDateTime::now_utc(), created_after + 2 * CLOCKS_DIFFER + KEY_KEPT_FOR);
        let (found, listed_since) = match self.search(&operation, attempt_id).await {
            Ok(Some(found)) => (Some(found), created_after),
            Ok(None) => {
                let since = created_after.max(now - SEARCH_LAG);
                if now < created_after + KEY_KEPT_FOR && self.crowd.is_known_since(since) {
                    return Err(Failure::TooMany);
                }
                (None, since)
            }
            // Not every account has a search.
            Err(Failure::Refused { .. } | Failure::NotFound) => (None, created_after),
            Err(failure) => return Err(failure),
        };
        let intent = match found {
            Some(intent) => Some(intent),
            None if listed_since > sent_until => None,
            None => {
                let newest = self.newest::<Intent>(&operation, "/v1/payment_intents", listed_since, &[], is_ours).await;
                if matches!(newest, Err(Failure::TooMany)) {
                    self.crowd.note_since(listed_since);
                }
                newest?
            }
        };
        if let Some(intent) = intent {
            let id = self.session_of(&operation, &intent).await?.unwrap_or(intent.id);
            return self.look_and_complete(&operation, &id).await.map(Some);
        }
        if now > sent_until + SESSION_LASTS {
            return Ok(None);
        }
        let is_ours = |session: &Session| session.attempt_id() == Some(attempt_id);
        let open = [("status", "open")];
        match self.newest(&operation, "/v1/checkout/sessions", created_after, &open, is_ours).await? {
            Some(session) => self.look_and_complete(&operation, session.id()).await.map(Some),
            None => Ok(None),
        }
    }

    /// If there should be several, the one whose state counts most.
    async fn search(&self, operation: &Operation<'_>, attempt_id: Uuid) -> Result<Option<Intent>, Failure> {
        let query = format!("metadata['attempt_id']:'{attempt_id}'");
        let pairs = [("query", query.as_str()), ("limit", "10")];
        let page: List<Intent> = self.get(operation, "/v1/payment_intents/search", &pairs).await?;
        let mut best: Option<(u8, Intent)> = None;
        for intent in page.data.into_iter().filter(|intent| intent.attempt_id() == Some(attempt_id)) {
            let rank = intent.state()?.rank();
            if best.as_ref().is_none_or(|(best, _)| rank > *best) {
                best = Some((rank, intent));
            }
        }
        Ok(best.map(|(_, intent)| intent))
    }

    async fn session_of(&self, operation: &Operation<'_>, intent: &Intent) -> Result<Option<String>, Failure> {
        if !intent.is_of_session() {
            return Ok(None);
        }
        let pairs = [("payment_intent", intent.id.as_str()), ("limit", "1")];
        let page: List<Session> = self.get(operation, "/v1/checkout/sessions", &pairs).await?;
        Ok(page.data.into_iter().next().map(|session| session.id))
    }

    /// The newest of a list that is ours. A list that is not there leaves everything open.
    async fn newest<T: Listed>(
        &self,
        operation: &Operation<'_>,
        path: &str,
        since: OffsetDateTime,
        filter: &[(&str, &str)],
        is_ours: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, Failure> {
        let since = since.unix_timestamp().to_string();
        let filter = [filter, &[("created[gte]", since.as_str())]].concat();
        match self.list(operation, path, &filter, PAGES_MAX, &is_ours).await {
            Ok(Some(all)) => Ok(all.into_iter().find(is_ours)),
            Ok(None) => Err(Failure::TooMany),
            Err(Failure::NotFound) => Err(Failure::unknown("a list is not there")),
            Err(failure) => Err(failure),
        }
    }
}
