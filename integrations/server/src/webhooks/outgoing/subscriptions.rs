//! Endpoints of one run: what has happened before they were created, and their end.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::machine::pending;
use positronic_core::record::{Event, RunId, Seq, Timestamp};
use positronic_core::store::StoreError;

use super::delivery::{Delivery, DeliveryStatus, delivery_id};
use super::event::{Meaning, meaning};
use super::scan::unreadable;
use super::{Endpoint, Records, WebhookEvent};

/// How long after its end a run keeps its endpoints. By then the sender has read the end.
const RETENTION: Duration = Duration::from_hours(1);

impl Records {
    /// Stores the delivery of what a new endpoint has missed: the end of its run, or its open question. The scan finds later notices.
    pub(crate) async fn catch_up(&self, id: &str, endpoint: &Endpoint, now: Timestamp) -> Result<(), StoreError> {
        let Some(subscription) = endpoint.subscription.as_ref().filter(|_| endpoint.disabled.is_none()) else {
            return Ok(());
        };
        let Some((notice, event)) = self.missed(&subscription.run).await? else { return Ok(()) };
        let Some(body) = subscription.own.bodies.get(&notice) else { return Ok(()) };
        let delivery = Delivery {
            event: notice,
            run: subscription.run.clone(),
            seq: event.seq,
            at: event.at,
            body: body.clone(),
            status: DeliveryStatus::Pending { due: now },
            failures: 0,
            attempts: Vec::new(),
        };
        self.add_delivery(id, &delivery_id(&subscription.run, event.seq, event.at), &delivery).await
    }

    /// Returns the event that ended a run, or else the last one that asked a person who has not answered yet.
    async fn missed(&self, run: &RunId) -> Result<Option<(WebhookEvent, Arc<Event>)>, StoreError> {
        use WebhookEvent as W;
        let state = self.client().state(run).await?;
        if state.has_ended() {
            let events = self.client().events(run, Seq(0)).await?;
            return Ok(events.into_iter().rev().find_map(|event| match meaning(&event) {
                Meaning::Notice(end @ (W::RunCompleted | W::RunFailed | W::RunCancelled)) => Some((end, event)),
                _ => None,
            }));
        }
        let asked = pending(&state).into_iter().filter(|item| item.kind.is_for_person()).map(|item| item.since).max();
        let Some(asked) = asked else { return Ok(None) };
        let events = self.client().store().read(run, asked, 1).await?;
        Ok(events.into_iter().next().map(|event| (W::DecisionPending, event)))
    }

    /// Removes the endpoints of runs that have ended, once their notices are delivered; a disabled endpoint delivers none.
    pub(super) async fn remove_ended(&self, now: Timestamp) -> Result<(), StoreError> {
        for (id, endpoint) in self.endpoints().await? {
            let Some(subscription) = &endpoint.subscription else { continue };
            let has_ended = match self.client().store().run(&subscription.run).await {
                Ok(row) => row.status.is_over() && now.since(row.at) >= RETENTION,
                Err(StoreError::NoSuchRun { .. }) => true,
                Err(error) => {
                    unreadable(&subscription.run, error)?;
                    false
                }
            };
            if has_ended && (endpoint.disabled.is_some() || self.due(&id, 1).await?.is_empty()) {
                self.remove_endpoint(&id).await?;
            }
        }
        Ok(())
    }
}
