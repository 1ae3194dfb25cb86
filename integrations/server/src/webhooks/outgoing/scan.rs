//! Reads the logs of runs that have grown, and writes a delivery for each notice and endpoint.
//!
//! The cursor is a time: the events before it have their deliveries. A scan begins [`OVERLAP`] earlier, because the clocks of
//! the machines that stamp events differ, and remembers how far it has read each run since. A notice that is found again has
//! the same key.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{Event, EventKind, RunId, RunSummary, Seq, Timestamp};
use positronic_core::runner::Client;
use positronic_core::store::{RunFilter, RunPages, StoreError};
use serde_json::{Value, json};
use url::Url;

use super::delivery::{Delivery, DeliveryStatus, delivery_id};
use super::event::{Meaning, meaning};
use super::{Endpoint, Records, WebhookEvent};
use crate::api::question_id;
use crate::time::{Time, earlier};

/// How much earlier than the cursor a scan begins.
const OVERLAP: Duration = Duration::from_mins(10);
/// How many events are read at once.
const PAGE: usize = 256;

/// The state of a scan.
pub(super) struct Scan {
    client: Client,
    records: Records,
    public_url: Option<Url>,
    /// The next event of each run that was read.
    read: HashMap<RunId, Seq>,
    /// Where the reading of other runs begins.
    from: Timestamp,
}

impl Scan {
    pub(super) fn new(client: Client, public_url: Option<Url>) -> Self {
        let records = Records::new(client.clone());
        Self { client, records, public_url, read: HashMap::new(), from: Timestamp(0) }
    }

    /// Reads all runs that have grown since the cursor, and moves the cursor.
    pub(super) async fn all(&mut self) -> Result<(), StoreError> {
        let now = self.client.now();
        let endpoints = self.records.endpoints().await?;
        let Some(earliest) = endpoints.iter().map(|(_, endpoint)| endpoint.since).min() else {
            // The first endpoint gets no notice of an event before it.
            self.read.clear();
            self.from = now;
            return Ok(());
        };
        let cursor = self.records.cursor().await?.unwrap_or(earliest).max(earliest).min(now);
        self.from = earlier(cursor, OVERLAP);
        let client = self.client.clone();
        let mut pages = RunPages::new(client.store(), RunFilter::builder().since(self.from).build());
        let mut rows = HashSet::new();
        while let Some(page) = pages.next().await? {
            for row in page {
                self.grown(&row).await?;
                rows.insert(row.run);
            }
        }
        // A run that grows again later is read from the cursor on.
        self.read.retain(|run, _| rows.contains(run));
        self.records.set_cursor(now).await
    }

    /// Reads a run that has grown.
    pub(super) async fn run(&mut self, run: &RunId) -> Result<(), StoreError> {
        match self.client.store().run(run).await {
            Ok(row) => self.grown(&row).await,
            // It was removed.
            Err(StoreError::NoSuchRun { .. }) => Ok(()),
            Err(error) => unreadable(run, error),
        }
    }

    async fn grown(&mut self, row: &RunSummary) -> Result<(), StoreError> {
        match self.read(row).await {
            Ok(()) => Ok(()),
            Err(error) => unreadable(&row.run, error),
        }
    }

    async fn read(&mut self, row: &RunSummary) -> Result<(), StoreError> {
        let mut next = match self.read.get(&row.run) {
            Some(next) => *next,
            None => self.first(row).await?,
        };
        while next < row.next {
            let events = self.client.store().read(&row.run, next, PAGE).await?;
            let Some(last) = events.last().map(|event| event.seq) else { break };
            self.announce(row, &events).await?;
            next = last.next();
            self.read.insert(row.run.clone(), next);
        }
        Ok(())
    }

    /// Finds the first event of a run from the beginning of the scan on. A log's times never decrease.
    async fn first(&self, row: &RunSummary) -> Result<Seq, StoreError> {
        // The events that a fork shares with its origin are not announced again.
        let mut low = row.forked_from.as_ref().map_or(0, |(_, at)| at.next().0);
        let mut high = row.next.0;
        while low < high {
            let middle = low + (high - low) / 2;
            let event = self.client.store().read(&row.run, Seq(middle), 1).await?;
            if event.first().is_some_and(|event| event.at < self.from) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(Seq(low))
    }

    /// Writes the deliveries of events.
    async fn announce(&self, row: &RunSummary, events: &[Arc<Event>]) -> Result<(), StoreError> {
        let mut notices = Vec::new();
        for event in events {
            match meaning(event) {
                Meaning::Notice(notice) => notices.push((notice, event)),
                Meaning::IfPerson(wait, notice) if self.asked_person(row, event, wait).await? => {
                    notices.push((notice, event));
                }
                Meaning::None | Meaning::IfPerson(..) => {}
            }
        }
        if notices.is_empty() {
            return Ok(());
        }
        // Listed after the events were read: an endpoint that is older than an event is in the list.
        let endpoints = self.records.endpoints().await?;
        for (notice, event) in notices {
            for (id, endpoint) in &endpoints {
                if endpoint.wants(notice, row, event.at)
                    && let Some(delivery) = self.delivery(row, notice, event, endpoint)
                {
                    self.records.add_delivery(id, &delivery_id(&row.run, event.seq, event.at), &delivery).await?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether a wait that has ended asked a person.
    async fn asked_person(&self, row: &RunSummary, ended: &Event, wait: u32) -> Result<bool, StoreError> {
        let mut end = ended.seq.0;
        while end > 0 {
            let begin = end.saturating_sub(PAGE as u64);
            let count = usize::try_from(end - begin).unwrap_or(PAGE);
            let events = self.client.store().read(&row.run, Seq(begin), count).await?;
            for event in events.iter().rev().filter(|event| event.path == ended.path) {
                if let EventKind::LoopWait { waits, .. } | EventKind::StageWait { waits, .. } = &event.kind {
                    let wait = usize::try_from(wait).ok().and_then(|wait| waits.get(wait));
                    // Without an index all of them have ended.
                    return Ok(wait.map_or_else(|| waits.iter().any(|wait| wait.person), |wait| wait.person));
                }
            }
            end = begin;
        }
        Ok(false)
    }

    /// Returns the delivery of a notice; `None` for a subscription without a body for it, which gets no other one.
    fn delivery(&self, row: &RunSummary, notice: WebhookEvent, event: &Event, endpoint: &Endpoint) -> Option<Delivery> {
        let body = match &endpoint.subscription {
            Some(subscription) => subscription.own.bodies.get(&notice)?.clone(),
            None => self.body(row, notice, event),
        };
        let due = self.client.now();
        Some(Delivery {
            event: notice,
            run: row.run.clone(),
            seq: event.seq,
            at: event.at,
            body,
            status: DeliveryStatus::Pending { due },
            failures: 0,
            attempts: Vec::new(),
        })
    }

    /// Returns the payload: ids, times and a link. What happened is in the API.
    fn body(&self, row: &RunSummary, notice: WebhookEvent, event: &Event) -> Value {
        let mut data = json!({ "run": row.run, "brain": row.brain, "seq": event.seq });
        let mut set = |name: &str, value: Option<String>| {
            if let (Some(value), Some(data)) = (value, data.as_object_mut()) {
                data.insert(name.to_owned(), value.into());
            }
        };
        set("user", row.user.clone());
        set("conversation", row.conversation.clone());
        set("call", (!event.path.is_root()).then(|| event.path.to_string()));
        set(
            "pending",
            (notice == WebhookEvent::DecisionPending).then(|| question_id(&row.run, &event.path, event.seq)),
        );
        set("url", self.link(&row.run, event.seq));
        json!({ "type": notice, "timestamp": Time(event.at), "data": data })
    }

    /// Returns the URL of an event in the inspector.
    fn link(&self, run: &RunId, seq: Seq) -> Option<String> {
        let mut url = self.public_url.clone()?;
        let segments = ["ui", "runs", run.as_str(), "events", &seq.to_string()].map(str::to_owned);
        url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
        Some(url.into())
    }
}

/// Skips a run that cannot be read, so that the others get their notices, and are removed.
pub(super) fn unreadable(run: &RunId, error: StoreError) -> Result<(), StoreError> {
    match error {
        StoreError::Corrupt { .. } | StoreError::Damaged { .. } | StoreError::NoSuchRun { .. } => {
            tracing::warn!(%run, %error, "cannot read the run for outgoing webhooks");
            Ok(())
        }
        error => Err(error),
    }
}

impl Endpoint {
    /// Returns the parsed URL. It was checked when the endpoint was stored.
    pub(super) fn parsed_url(&self) -> Option<Url> {
        Url::parse(&self.url).ok()
    }
}
