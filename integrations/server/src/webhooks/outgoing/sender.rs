//! The task that sends outgoing webhooks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{RunId, Timestamp};
use positronic_core::runner::Client;
use positronic_core::store::{GrownRuns, StoreError};
use tokio::task::{Id, JoinHandle, JoinSet};
use url::Url;

use super::Records;
use super::leader::{LeaderCandidate, POLL};
use super::scan::Scan;
use super::send::Send;
use super::transport::WebhookTransport;
use crate::time::earlier;

/// How many deliveries of an endpoint are under way at once, so that a slow one does not delay the others.
const PER_ENDPOINT: usize = 4;
/// How often all runs that have grown are listed, and the cursor moves. In between, the store reports runs that grow.
const SCAN: Duration = Duration::from_mins(1);
/// How often old deliveries are removed.
const SWEEP: Duration = Duration::from_hours(1);
/// How long to wait for more events after one.
const GATHER: Duration = Duration::from_millis(20);
/// How long deliveries are listed by default.
const KEEP: Duration = Duration::from_hours(30 * 24);

/// Sends notices about runs to the endpoints in the store.
///
/// Every server of a store may have one: one of them sends, and another one takes over when it ends.
///
/// ```no_run
/// use positronic_core::runner::Client;
/// use positronic_server::webhooks::{HttpTransport, PrivateAddresses, WebhookSender};
///
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let sender = WebhookSender::builder()
///     .client(client)
///     .transport(HttpTransport::new(PrivateAddresses::Refuse)?)
///     .public_url("https://agents.example.com".parse()?)
///     .build();
/// let service = sender.spawn();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct WebhookSender {
    /// The client of the store's runs. Its clock decides what is due.
    client: Client,
    /// Sends the requests.
    #[builder(setter(transform = |transport: impl WebhookTransport| Arc::new(transport) as Arc<dyn WebhookTransport>))]
    transport: Arc<dyn WebhookTransport>,
    /// The URL under which people reach the inspector, for the links in notices.
    #[builder(default, setter(strip_option))]
    public_url: Option<Url>,
    /// How long deliveries are listed after their event: 30 days by default. Open ones stay.
    #[builder(default = KEEP)]
    keep: Duration,
}

impl WebhookSender {
    /// Sends in the background until the result is dropped.
    #[must_use = "dropping it stops sending"]
    pub fn spawn(&self) -> WebhookService {
        let sender = self.clone();
        WebhookService { task: tokio::spawn(async move { sender.run().await }) }
    }

    /// Sends until the future is dropped.
    pub async fn run(&self) {
        loop {
            if let Err(error) = self.lead().await {
                tracing::warn!(%error, "the sender of webhooks begins again");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until this server is the leader, and sends as long as it is.
    async fn lead(&self) -> Result<(), StoreError> {
        let records = Records::new(self.client.clone());
        while records.endpoints().await?.is_empty() {
            tokio::time::sleep(POLL).await;
        }
        let candidate = LeaderCandidate::new(self.client.clone()).await?;
        let work = async {
            while !candidate.leads().await? {
                tokio::time::sleep(POLL).await;
            }
            Leader::new(self, &candidate).work().await
        };
        tokio::select! {
            lapsed = candidate.renewals() => Err(lapsed),
            result = work => result,
        }
    }
}

impl fmt::Debug for WebhookSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSender").field("public_url", &self.public_url).finish_non_exhaustive()
    }
}

/// Sends webhooks until it is dropped.
#[derive(Debug)]
pub struct WebhookService {
    task: JoinHandle<()>,
}

impl Drop for WebhookService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Leader<'a> {
    sender: &'a WebhookSender,
    candidate: &'a LeaderCandidate,
    records: Records,
    scan: Scan,
    grown: Arc<GrownRuns>,
    scanned: Option<Timestamp>,
    swept: Option<Timestamp>,
    /// The attempts under way: the endpoint and the delivery of each.
    busy: HashMap<Id, (String, String)>,
    jobs: JoinSet<()>,
}

impl<'a> Leader<'a> {
    fn new(sender: &'a WebhookSender, candidate: &'a LeaderCandidate) -> Self {
        let client = sender.client.clone();
        let grown = GrownRuns::of(client.store());
        Self {
            sender,
            candidate,
            records: Records::new(client.clone()),
            scan: Scan::new(client, sender.public_url.clone()),
            grown,
            scanned: None,
            swept: None,
            busy: HashMap::new(),
            jobs: JoinSet::new(),
        }
    }

    /// Works until another server leads.
    async fn work(&mut self) -> Result<(), StoreError> {
        while self.candidate.leads().await? {
            let next = match self.poll().await {
                Ok(next) => next,
                Err(error) => {
                    tracing::warn!(%error, "cannot read what is to be sent");
                    POLL
                }
            };
            tokio::select! {
                () = self.grown.wait() => tokio::time::sleep(GATHER).await,
                Some(ended) = self.jobs.join_next_with_id() => {
                    // A transport that panics has failed; its delivery stays due.
                    let task = ended.map_or_else(|error| error.id(), |(task, ())| task);
                    self.busy.remove(&task);
                }
                () = tokio::time::sleep(next) => {}
            }
        }
        Ok(())
    }

    /// Writes the deliveries of new events and sends what is due. Returns how long until the next poll.
    async fn poll(&mut self) -> Result<Duration, StoreError> {
        let now = self.sender.client.now();
        let is_due = |last: Option<Timestamp>, pause| last.is_none_or(|last| now.since(last) >= pause || last > now);
        let grown = self.grown.take();
        let is_complete = is_due(self.scanned, SCAN);
        if let Err(error) = self.read(is_complete, &grown).await {
            self.grown.put_back(grown);
            self.scanned = None;
            return Err(error);
        }
        if is_complete {
            self.scanned = Some(now);
        }
        if is_due(self.swept, SWEEP) {
            self.swept = Some(now);
            self.records.remove_ended(now).await?;
            self.records.sweep(earlier(now, self.sender.keep)).await?;
        }
        self.start().await
    }

    /// Reads all runs since the cursor, or only those that have grown.
    async fn read(&mut self, is_complete: bool, grown: &BTreeSet<RunId>) -> Result<(), StoreError> {
        if is_complete {
            self.scan.all().await?;
        }
        for run in grown {
            self.scan.run(run).await?;
        }
        Ok(())
    }

    /// Starts the attempts that are due.
    async fn start(&mut self) -> Result<Duration, StoreError> {
        let mut pause = POLL;
        for (id, endpoint) in self.records.endpoints().await? {
            let busy: HashSet<_> =
                self.busy.values().filter(|(of, _)| *of == id).map(|(_, delivery)| delivery.clone()).collect();
            let free = PER_ENDPOINT.saturating_sub(busy.len());
            if endpoint.disabled.is_some() || free == 0 {
                continue;
            }
            let now = self.sender.client.now();
            let due = self.records.due(&id, PER_ENDPOINT + busy.len()).await?;
            for due in due.into_iter().filter(|due| !busy.contains(&due.delivery)).take(free) {
                if due.at > now {
                    pause = pause.min(due.at.since(now));
                    break;
                }
                let delivery = due.delivery.clone();
                let (client, transport) = (self.sender.client.clone(), Arc::clone(&self.sender.transport));
                let send = Send { client, transport, id: id.clone(), endpoint: endpoint.clone(), due };
                let task = self.jobs.spawn(async move { send.run().await });
                self.busy.insert(task.id(), (id.clone(), delivery));
            }
        }
        Ok(pause)
    }
}
