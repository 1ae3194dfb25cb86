//! Outgoing webhooks: what arrives, when, and after which crashes.

mod arrivals;
mod crashes;
mod http;
mod retries;
mod subscriptions;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Path, RunId, Timestamp};
use positronic_core::runner::{Client, Clock, Settled};
use positronic_core::store::{EventStore, MemoryStore, StoreError};
use positronic_core::testing::TestClock;
use positronic_net::{AddressGuard, PrivateAddresses, SystemResolver};
use serde_json::{Value, json};

use super::*;
use crate::time::earlier;
use crate::webhooks::signature::{ID, SIGNATURE, TIMESTAMP};
use crate::webhooks::{SignatureScheme as _, SignedRequest, StandardWebhooks, WebhookSecret};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A request that arrived.
#[derive(Debug, Clone)]
struct Arrived {
    url: String,
    id: String,
    /// How long after the beginning of the test.
    after: Duration,
    body: Value,
}

type Behaviour = Arc<dyn Fn(usize, &str) -> Answer + Send + Sync>;

/// What a receiver does with a request.
#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Status(u16),
    RetryAfter(u16, &'static str),
    /// It takes this long.
    Slow(Duration),
    Never,
    Unreachable,
    /// Its name resolves to 10.0.0.7.
    Internal,
}

/// A receiver in this process, which checks signatures.
#[derive(Clone)]
struct Receiver {
    clock: TestClock,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    behaviour: Behaviour,
}

impl Receiver {
    fn all(&self) -> Vec<Arrived> {
        self.arrived.lock().clone()
    }

    /// Returns the types of the notices, in the order of their ids, and each once.
    fn types(&self) -> Vec<String> {
        let mut all = self.all();
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all.dedup_by(|one, other| one.id == other.id);
        all.iter().map(|arrived| arrived.body["type"].as_str().unwrap().to_owned()).collect()
    }
}

impl WebhookTransport for Receiver {
    fn send<'a>(&'a self, request: &'a OutgoingRequest) -> BoxFuture<'a, Result<OutgoingResponse, TransportError>> {
        Box::pin(async move {
            let now = self.clock.now();
            let scheme = StandardWebhooks::new(SECRET).unwrap();
            scheme.verify(&SignedRequest::new(&request.headers, &request.body, now)).unwrap();
            assert!(request.headers.contains_key(TIMESTAMP) && request.headers.contains_key(SIGNATURE));
            let count = {
                let mut arrived = self.arrived.lock();
                arrived.push(Arrived {
                    url: request.url.to_string(),
                    id: request.headers[ID].to_str().unwrap().to_owned(),
                    after: now.since(TestClock::BEGIN),
                    body: serde_json::from_slice(&request.body).unwrap(),
                });
                arrived.len()
            };
            match (self.behaviour)(count, request.url.as_str()) {
                Answer::Status(status) => Ok(OutgoingResponse { status, retry_after: None }),
                Answer::RetryAfter(status, after) => {
                    Ok(OutgoingResponse { status, retry_after: Some(after.to_owned()) })
                }
                Answer::Slow(time) => {
                    tokio::time::sleep(time).await;
                    Ok(OutgoingResponse { status: 200, retry_after: None })
                }
                Answer::Never => std::future::pending().await,
                Answer::Internal => {
                    let guard = AddressGuard::new(Arc::new(SystemResolver), PrivateAddresses::Refuse);
                    Err(guard.check(&"https://10.0.0.7/".parse().unwrap()).unwrap_err().into())
                }
                Answer::Unreachable => Err(TransportError::Unreachable { reason: "connection refused".to_owned() }),
            }
        })
    }
}

/// A store, whose servers and workers share a clock.
struct Bench {
    store: MemoryStore,
    clock: TestClock,
    receiver: Receiver,
}

impl Bench {
    fn new(behaviour: impl Fn(usize, &str) -> Answer + Send + Sync + 'static) -> Self {
        let clock = TestClock::default();
        _ = clock.now();
        let behaviour: Behaviour = Arc::new(behaviour);
        let receiver = Receiver { clock: clock.clone(), arrived: Arc::default(), behaviour };
        Self { store: MemoryStore::new(), clock, receiver }
    }

    /// A receiver that accepts everything.
    fn accepting() -> Self {
        Self::new(|_, _| Answer::Status(200))
    }

    fn runner(&self) -> Runner {
        runner_of(self.store.clone(), self.clock.clone())
    }

    fn client(&self) -> Client {
        self.runner().client()
    }

    fn records(&self) -> Records {
        Records::new(self.client())
    }

    /// Starts the sender of a server.
    fn server(&self) -> WebhookService {
        self.server_of(self.client())
    }

    fn server_of(&self, client: Client) -> WebhookService {
        let sender = WebhookSender::builder().client(client).transport(self.receiver.clone());
        sender.public_url("https://agents.example.com/at/".parse().unwrap()).build().spawn()
    }

    async fn endpoint(&self, id: &str, change: impl Fn(&mut Endpoint) + Send + Sync) {
        let now = self.clock.now();
        let endpoint = |_| {
            let mut endpoint = Endpoint {
                url: format!("https://{id}.example.com/"),
                description: None,
                events: Vec::new(),
                brain: None,
                secrets: vec![WebhookSecret::parse(SECRET).unwrap()],
                created: now,
                since: now,
                disabled: None,
                subscription: None,
            };
            change(&mut endpoint);
            Ok::<_, StoreError>(Some(endpoint))
        };
        self.records().put_endpoint(id, endpoint).await.unwrap().unwrap();
    }

    /// Runs a brain until it waits for an approval.
    async fn waiting(&self) -> RunId {
        let run = self.runner().start(gated(), ()).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Waiting(_)));
        run.id().clone()
    }

    /// Approves the call of a waiting run, and works until the run has ended.
    async fn approve(&self, run: &RunId) {
        let runner = self.runner().brain(gated());
        let call: Path = "Work/0.0".parse().unwrap();
        runner.client().approve(run, &call, "ann").await.unwrap();
        let resumed = runner.resume(run).await.unwrap();
        assert!(matches!(resumed.settled().await, Settled::Completed(_)));
    }

    async fn only_delivery(&self, endpoint: &str) -> (String, Delivery) {
        let mut all = self.records().deliveries(endpoint, None, 10).await.unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }
}

fn runner_of(store: impl EventStore, clock: impl Clock) -> Runner {
    let says = |request: &positronic_core::record::ModelRequest| match request.path.as_str() {
        "Work/0" => Reply::call("pay", json!({})),
        _ => Reply::text("Done."),
    };
    Runner::new(ScriptedModel::from_fn(says)).store(store).clock(clock).linger(Duration::ZERO)
}

fn gated() -> Brain<(), ()> {
    brain("Gated")
        .r#loop("Work", |cx| {
            let config = cx.system("").input("Pay.");
            config.tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
        })
        .build()
}

/// Wants only one notice.
fn only(event: WebhookEvent) -> impl Fn(&mut Endpoint) + Send + Sync {
    move |endpoint| endpoint.events = vec![event]
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Lets a long time pass in one step, and then three seconds.
async fn skip(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
}

/// A clock that is behind another one.
struct Behind(TestClock, Duration);

impl Clock for Behind {
    fn now(&self) -> Timestamp {
        earlier(self.0.now(), self.1)
    }
}
