//! One attempt to deliver a notice.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use positronic_core::record::Timestamp;
use positronic_core::runner::Client;
use positronic_core::store::StoreError;

use super::delivery::{Attempt, Delivery, DeliveryStatus};
use super::endpoint::{Disabled, Endpoint};
use super::leader::POLL;
use super::records::{DueDelivery, Records};
use super::retries::{pause, retry_after};
use super::transport::{OutgoingRequest, OutgoingResponse, TransportError, WebhookTransport};
use crate::webhooks::signature::{ID, SIGNATURE, TIMESTAMP, sign};

/// How long an endpoint may take to answer.
pub(super) const TIME_OUT: Duration = Duration::from_secs(20);
/// The status with which a receiver ends its subscription.
const GONE: u16 = 410;

/// An attempt to deliver.
pub(super) struct Send {
    pub(super) client: Client,
    pub(super) transport: Arc<dyn WebhookTransport>,
    pub(super) id: String,
    pub(super) endpoint: Endpoint,
    pub(super) due: DueDelivery,
}

/// What an attempt led to.
enum AttemptOutcome {
    Delivered(u16),
    Gone,
    Failed { status: Option<u16>, error: String, asked: Option<Duration> },
}

impl Send {
    /// Performs the attempt. If its outcome cannot be recorded, the delivery stays due.
    pub(super) async fn run(&self) {
        if let Err(error) = self.perform().await {
            tracing::warn!(endpoint = self.id, delivery = self.due.delivery, %error, "cannot record the attempt");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Sends the delivery if it is open and due, and records what came of it.
    async fn perform(&self) -> Result<(), StoreError> {
        let records = Records::new(self.client.clone());
        let delivery = records.delivery(&self.id, &self.due.delivery).await?.map(|stored| stored.value);
        let open = delivery.as_ref().and_then(Delivery::due);
        if let (Some(delivery), Some(due)) = (&delivery, open)
            && due <= self.client.now()
        {
            let (attempt, outcome) = self.attempt(delivery).await;
            self.record(&records, attempt, outcome).await?;
        } else if let Some(due) = open {
            // A server crashed before it made the next attempt due.
            records.make_due(&self.id, &self.due.delivery, due).await?;
        }
        records.remove_due(&self.due).await
    }

    async fn attempt(&self, delivery: &Delivery) -> (Attempt, AttemptOutcome) {
        let at = self.client.now();
        let outcome = match self.request(delivery, at) {
            None => {
                AttemptOutcome::Failed { status: None, error: "the endpoint's URL is invalid".to_owned(), asked: None }
            }
            Some(request) => match tokio::time::timeout(TIME_OUT, self.transport.send(&request)).await {
                Ok(answer) => {
                    if let Err(error) = &answer {
                        tracing::warn!(endpoint = self.id, delivery = self.due.delivery, %error, "cannot deliver");
                    }
                    outcome(answer, self.client.now())
                }
                Err(_) => {
                    let error = format!("the endpoint did not answer within {} s", TIME_OUT.as_secs());
                    AttemptOutcome::Failed { status: None, error, asked: None }
                }
            },
        };
        let duration_ms = u64::try_from(self.client.now().since(at).as_millis()).unwrap_or(u64::MAX);
        let (status, error) = match &outcome {
            AttemptOutcome::Delivered(status) => (Some(*status), None),
            AttemptOutcome::Gone => (Some(GONE), Some("the receiver has ended the subscription (410)".to_owned())),
            AttemptOutcome::Failed { status, error, .. } => (*status, Some(error.clone())),
        };
        (Attempt { at, duration_ms, status, error }, outcome)
    }

    /// Returns the signed request.
    fn request(&self, delivery: &Delivery, now: Timestamp) -> Option<OutgoingRequest> {
        let (id, seconds) = (&self.due.delivery, now.0.div_euclid(1_000_000).to_string());
        let body = serde_json::to_vec(&delivery.body).ok()?;
        let signature = sign(&self.endpoint.secrets, id, &seconds, &body);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in [(ID, id), (TIMESTAMP, &seconds), (SIGNATURE, &signature)] {
            if !value.is_empty() {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).ok()?);
            }
        }
        for (name, value) in self.endpoint.subscription.iter().flat_map(|subscription| &subscription.own.headers) {
            let mut value = HeaderValue::from_str(value).ok()?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
        }
        Some(OutgoingRequest { url: self.endpoint.parsed_url()?, headers, body: Bytes::from(body) })
    }

    async fn record(&self, records: &Records, attempt: Attempt, outcome: AttemptOutcome) -> Result<(), StoreError> {
        let now = self.client.now();
        let change = |delivery: &mut Delivery| {
            delivery.record(attempt.clone());
            if delivery.due().is_none() {
                // Another server has delivered it meanwhile.
                return;
            }
            delivery.status = match &outcome {
                AttemptOutcome::Delivered(_) => DeliveryStatus::Delivered { at: now },
                AttemptOutcome::Gone => DeliveryStatus::Failed { at: now },
                AttemptOutcome::Failed { asked, .. } => {
                    delivery.failures = delivery.failures.saturating_add(1);
                    match pause(delivery.failures, &self.due.delivery, *asked) {
                        Some(pause) => DeliveryStatus::Pending { due: now.after(pause) },
                        None => DeliveryStatus::Failed { at: now },
                    }
                }
            };
        };
        let changed = records.change_delivery(&self.id, &self.due.delivery, change).await?;
        if let Some(due) = changed.and_then(|delivery| delivery.due()) {
            records.make_due(&self.id, &self.due.delivery, due).await?;
        }
        if matches!(outcome, AttemptOutcome::Gone) {
            let reason = "the receiver answered 410 Gone".to_owned();
            let disabled = Disabled { reason, at: now, by_person: false };
            let disable = |stored: Option<Endpoint>| {
                let stored = stored.filter(|endpoint| endpoint.url == self.endpoint.url);
                Ok::<_, StoreError>(stored.map(|endpoint| Endpoint { disabled: Some(disabled.clone()), ..endpoint }))
            };
            records.put_endpoint(&self.id, disable).await?;
        }
        Ok(())
    }
}

fn outcome(answer: Result<OutgoingResponse, TransportError>, now: Timestamp) -> AttemptOutcome {
    match answer {
        Ok(OutgoingResponse { status: status @ 200..=299, .. }) => AttemptOutcome::Delivered(status),
        Ok(OutgoingResponse { status: GONE, .. }) => AttemptOutcome::Gone,
        Ok(OutgoingResponse { status, retry_after: asked }) => {
            let error = match status {
                300..=399 => format!("the receiver answered {status}; redirects are not followed"),
                _ => format!("the receiver answered {status}"),
            };
            let asked = asked.and_then(|asked| retry_after(&asked, now));
            AttemptOutcome::Failed { status: Some(status), error, asked }
        }
        Err(error) => {
            let error = match error {
                // What a name resolves to in the own network is for the log of the server.
                TransportError::NotPublic(_) => {
                    "the endpoint is not in the public internet; only public addresses are allowed".to_owned()
                }
                error => error.to_string(),
            };
            AttemptOutcome::Failed { status: None, error, asked: None }
        }
    }
}
