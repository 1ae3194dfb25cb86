//! Webhooks that start runs.

use std::sync::atomic::{AtomicBool, Ordering};

use positronic_core::dsl::StartInput;
use positronic_core::record::{Seq, Status};
use positronic_core::store::{Append, BoxFuture, DeliveryState, EventLog, EventStore, RunFilter, StoreWrapper};
use positronic_sqlite::SqliteStore;
use serde::Serialize;

use super::*;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Order {
    id: String,
    customer: String,
    total: u32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Review {
    order: String,
}

fn review() -> Brain<Review, String> {
    brain("Review").options::<Review>().step("Review", async |cx| Ok(cx.options.order.clone())).build()
}

/// A runner whose webhook `orders` starts runs of `Review`.
fn reviewing(store: impl EventStore) -> Runner {
    let runner = Runner::new(ScriptedModel::from_fn(|request: &positronic_core::record::ModelRequest| {
        match request.path.as_str() {
            "Work/0" => Reply::call("ask", json!({})),
            _ => Reply::text("Done."),
        }
    }));
    runner.clock(TestClock::default()).store(store).linger(Duration::ZERO).start_on(
        webhook("orders"),
        review(),
        |order: Order| match order.total {
            0 => Err(Error::new("an order without a total is not reviewed")),
            13 => panic!("unlucky"),
            _ => Ok(StartInput::new(Review { order: order.id }).user(order.customer).tag("shop")),
        },
    )
}

fn app(runner: &Runner) -> Router {
    let hooks = Hooks::default().add("orders", StandardWebhooks::new(SECRET).unwrap());
    router(runner.client(), Options::builder().brains(runner.clone()).hooks(hooks).build())
}

async fn post(app: Router, path: &str, id: &str, body: &str) -> (StatusCode, Value) {
    post_at(app, path, id, body, NOW).await
}

/// Sends a delivery that was signed so many seconds after 1970.
async fn post_at(app: Router, path: &str, id: &str, body: &str, seconds: i64) -> (StatusCode, Value) {
    let seconds = seconds.to_string();
    let signature = sign(&[WebhookSecret::parse(SECRET).unwrap()], id, &seconds, body.as_bytes());
    let request = Request::post(path)
        .header("host", "localhost")
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds)
        .header("webhook-signature", signature);
    let response = app.oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let status = response.status();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

async fn runs(client: &Client) -> Vec<String> {
    let rows = client.store().runs(&RunFilter::default()).await.unwrap();
    rows.into_iter().map(|row| row.run.to_string()).collect()
}

const START: &str = "/api/v1/hooks/orders";
const ORDER: &str = r#"{"id":"T-7","customer":"ann","total":30}"#;

fn started() -> (StatusCode, Value) {
    (StatusCode::ACCEPTED, json!({ "accepted": "started", "run": "orders:msg_1" }))
}

#[tokio::test(start_paused = true)]
async fn delivery_starts_one_run_and_a_repeated_one_answers_the_same() {
    let runner = reviewing(MemoryStore::new());
    for _ in 0..3 {
        assert_eq!(post(app(&runner), START, "msg_1", ORDER).await, started());
    }
    // Days later, signed anew, after the mailbox has forgotten it, and with a payload that would be refused.
    let pause = Client::KEEP + Duration::from_secs(60);
    tokio::time::sleep(pause).await;
    let later = NOW + i64::try_from(pause.as_secs()).unwrap();
    assert_eq!(post_at(app(&runner), START, "msg_1", r#"{"total":"?"}"#, later).await, started());

    let client = runner.client();
    assert_eq!(runs(&client).await, ["orders:msg_1"]);
    let run = RunId::new("orders:msg_1");
    assert_eq!(runner.open(&run).await.unwrap().result().await.unwrap(), json!("T-7"));
    let row = client.store().run(&run).await.unwrap();
    assert_eq!((row.user.as_deref(), &row.tags[..]), (Some("ann"), &["shop".to_owned()][..]));
    let begin = client.events(&run, Seq(0)).await.unwrap()[0].kind.to_value();
    assert_eq!(begin["start"]["delivery"], json!({ "id": "orders:msg_1", "webhook": "orders" }));
    assert_eq!(begin["start"]["actor"], json!({ "by": "orders", "channel": "webhook" }));
}

#[tokio::test(start_paused = true)]
async fn run_that_waits_for_the_webhook_comes_first() {
    #[derive(Deserialize, JsonSchema)]
    struct Paid {
        #[serde(rename = "total")]
        _total: u32,
    }
    let waiting = brain("Waiting").r#loop("Work", |cx| {
        cx.system("").input("Ask.").tool("ask", |t| {
            t.wait(|_: &NoArgs, _| [webhook::<Paid>("orders").on("T-7").resume(|_: &mut (), _| {})])
                .execute(async |_: NoArgs, _| Ok("asked"))
        })
    });
    let runner = reviewing(MemoryStore::new());
    let run = runner.start(waiting, ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let path = format!("{START}/T-7");

    // A delivery for another identifier, and one without, start runs.
    assert_eq!(post(app(&runner), &format!("{START}/T-8"), "msg_0", ORDER).await.1["run"], "orders:msg_0");
    for _ in 0..2 {
        let matched = (StatusCode::ACCEPTED, json!({ "accepted": "matched" }));
        assert_eq!(post(app(&runner), &path, "msg_1", ORDER).await, matched);
    }
    run.result().await.unwrap();
    assert_eq!(post(app(&runner), &path, "msg_2", ORDER).await.1["run"], "orders:msg_2");

    let runs = runs(&runner.client()).await;
    assert_eq!(runs.len(), 3, "{runs:?}");
    assert!(!runs.contains(&"orders:msg_1".to_owned()), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn payload_that_does_not_fit_is_refused_with_its_place_and_not_kept() {
    let runner = reviewing(MemoryStore::new());
    let (status, problem) = post(app(&runner), START, "msg_1", r#"{"id":"T-7","customer":"ann","total":"much"}"#).await;

    assert_eq!((status, &problem["type"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("/problems/payload-invalid")));
    assert!(problem["detail"].as_str().unwrap().contains("/total"), "{problem}");
    assert!(runner.client().store().mailbox().await.unwrap().is_empty());
    assert_eq!(post(app(&runner), START, "msg_1", ORDER).await, started(), "the sender may correct it");
}

#[tokio::test(start_paused = true)]
async fn options_that_cannot_be_computed_are_refused_and_recorded() {
    let runner = reviewing(MemoryStore::new());
    for (total, reason) in [(0, "an order without a total is not reviewed"), (13, "the code panicked: unlucky")] {
        for _ in 0..2 {
            let body = json!({ "id": "T-7", "customer": "ann", "total": total }).to_string();
            let (status, problem) = post(app(&runner), START, "msg_1", &body).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
            let detail = format!("the webhook `orders` starts no run of `Review`: {reason}");
            assert_eq!(problem["detail"], json!(detail));
        }
        let mailbox = runner.client().store().mailbox().await.unwrap();
        let [entry] = &mailbox[..] else { panic!("{mailbox:?}") };
        let DeliveryState::Undelivered(mail) = &entry.delivery else { panic!("{entry:?}") };
        assert_eq!((mail.refusal.as_deref(), &mail.payload["total"]), (Some(reason), &json!(total)));
    }
    // A user that lists could not show is the mistake of the closure as well.
    let (status, problem) = post(app(&runner), START, "msg_2", r#"{"id":"T-7","customer":"a\nb","total":1}"#).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(problem["detail"].as_str().unwrap().contains("the user of the run contains a line break"), "{problem}");

    assert_eq!(runs(&runner.client()).await, Vec::<String>::new());
    assert_eq!(post(app(&runner), START, "msg_1", ORDER).await, started(), "a repeated delivery tries again");
}

#[tokio::test(start_paused = true)]
async fn wrong_signature_and_unknown_name_start_nothing() {
    let runner = reviewing(MemoryStore::new());
    let unknown = post(app(&runner), "/api/v1/hooks/other", "msg_1", ORDER).await;
    let old = post_at(app(&runner), START, "msg_1", ORDER, NOW - 301).await;
    let other = sign(&[WebhookSecret::parse(SECRET).unwrap()], "msg_2", &NOW.to_string(), ORDER.as_bytes());
    let forged = Request::post(START)
        .header("host", "localhost")
        .header("webhook-id", "msg_1")
        .header("webhook-timestamp", NOW.to_string())
        .header("webhook-signature", other);
    let forged = app(&runner).oneshot(forged.body(Body::from(ORDER)).unwrap()).await.unwrap();

    assert_eq!([unknown.0, old.0, forged.status()], [StatusCode::UNAUTHORIZED; 3]);
    assert_eq!(unknown.1["detail"], old.1["detail"]);
    assert_eq!(runs(&runner.client()).await, Vec::<String>::new());
    assert!(runner.client().store().mailbox().await.unwrap().is_empty());
}

#[tokio::test]
async fn two_servers_that_get_a_delivery_at_the_same_time_start_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let open = || reviewing(SqliteStore::open(folder.path().join("runs.db")).unwrap());
    let (one, two) = (open(), open());
    for round in 0..10 {
        let id = format!("msg_{round}");
        let run = json!({ "accepted": "started", "run": format!("orders:{id}") });
        let (a, b) =
            tokio::join!(tokio::spawn(post_now(app(&one), id.clone())), tokio::spawn(post_now(app(&two), id.clone())));
        assert_eq!([a.unwrap(), b.unwrap()], [(StatusCode::ACCEPTED, run.clone()), (StatusCode::ACCEPTED, run)]);
    }
    assert_eq!(runs(&one.client()).await.len(), 10);
}

async fn post_now(app: Router, id: String) -> (StatusCode, Value) {
    post(app, START, &id, ORDER).await
}

/// A store whose appends fail while a switch is on, as if the process ended between the mailbox and the start.
struct Failing {
    store: MemoryStore,
    fails: Arc<AtomicBool>,
}

impl StoreWrapper for Failing {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        if self.fails.load(Ordering::Relaxed) {
            return Box::pin(async { Err(StoreError::Failed { message: "the disk is gone".to_owned() }) });
        }
        EventLog::append(&self.store, run, append)
    }
}

#[tokio::test(start_paused = true)]
async fn delivery_after_a_crash_between_mailbox_and_start_starts_the_run() {
    let (store, fails) = (MemoryStore::new(), Arc::new(AtomicBool::new(true)));
    let crashed = reviewing(Failing { store: store.clone(), fails: Arc::clone(&fails) });
    let (status, _) = post(app(&crashed), START, "msg_1", ORDER).await;
    assert!(status.is_server_error(), "{status}");
    assert_eq!(store.mailbox().await.unwrap().len(), 1, "it is in the mailbox");
    assert_eq!(runs(&crashed.client()).await, Vec::<String>::new());
    drop(crashed);

    let runner = reviewing(store);
    for _ in 0..2 {
        assert_eq!(post(app(&runner), START, "msg_1", ORDER).await, started());
    }
    let row = runner.client().store().run(&RunId::new("orders:msg_1")).await.unwrap();
    assert!(matches!(row.status, Status::Running | Status::Completed));
}

#[tokio::test(start_paused = true)]
async fn run_with_the_id_of_a_delivery_that_another_start_began_is_not_taken_for_its_run() {
    let runner = reviewing(MemoryStore::new());
    let start = positronic_core::record::Start { id: Some("orders:msg_1".into()), ..Default::default() };
    runner.start_with(review(), Review { order: "other".to_owned() }, start).await.unwrap();

    let (status, problem) = post(app(&runner), START, "msg_1", ORDER).await;

    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(problem["detail"].as_str().unwrap().contains("the run `orders:msg_1` exists and differs"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn api_lists_which_webhooks_start_a_brain() {
    let runner = reviewing(MemoryStore::new());
    let token = crate::Token::builder().subject("ann").scopes([crate::Scope::Read]).created(Timestamp(0)).build();
    let (_, secret) = crate::Token::create(&runner.client(), token).await.unwrap();
    let request = Request::get("/api/v1/brains/Review").header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {secret}")).body(Body::empty()).unwrap();
    let response = app(&runner).oneshot(request).await.unwrap();
    let brain: Value = serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap();

    assert_eq!(brain["starts_on"], json!(["orders"]), "{brain}");
}
