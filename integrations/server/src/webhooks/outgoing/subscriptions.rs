//! Endpoints of one run: what has happened before they were created, and their end.

use std::time::Duration;

use positronic_core::record::{Seq, Timestamp};
use positronic_core::store::StoreError;

use super::delivery::{Delivery, DeliveryStatus, delivery_id};
use super::event::{Meaning, meaning};
use super::{Endpoint, Records};

/// How long after its end a run keeps its endpoints. By then the sender has read the end.
const KEPT: Duration = Duration::from_hours(1);

impl Records {
    /// Stores the delivery of the last notice that the run of a new endpoint has led to. The scan finds the later ones.
    pub(crate) async fn catch_up(&self, id: &str, endpoint: &Endpoint, now: Timestamp) -> Result<(), StoreError> {
        let Some(subscription) = endpoint.subscription.as_ref().filter(|_| endpoint.disabled.is_none()) else { return Ok(()) };
        let events = self.client().events(&subscription.run, Seq(0)).await?;
        let last = events.iter().rev().find_map(|event| match meaning(event) {
            Meaning::Notice(notice) | Meaning::IfPerson(_, notice) => Some((notice, event)),
            Meaning::None => None,
        });
        let Some((notice, event)) = last else { return Ok(()) };
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

    /// Removes the endpoints of runs that have ended, once their notices are delivered.
    pub(super) async fn remove_ended(&self, now: Timestamp) -> Result<(), StoreError> {
        for (id, endpoint) in self.endpoints().await? {
            let Some(subscription) = &endpoint.subscription else { continue };
            let has_ended = match self.client().store().run(&subscription.run).await {
                Ok(row) => row.status.is_over() && now.since(row.at) >= KEPT,
                Err(StoreError::NoSuchRun { .. }) => true,
                Err(error) => return Err(error),
            };
            if has_ended && self.due(&id, 1).await?.is_empty() {
                self.remove_endpoint(&id).await?;
            }
        }
        Ok(())
    }
}
