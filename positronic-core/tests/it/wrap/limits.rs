//! Rate and concurrency limits: in order, across runs, and cancellable at any moment.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::wrap::{Concurrency, Pace, RateLimit, RateLimits, Slots};
use positronic_core::model::{DeltaSink, Model, NoDeltas};
use positronic_core::record::{
    ModelError, ModelErrorKind, ModelRequest, ModelResponse, Part, Path, Settings, Transcript, Usage,
};
use positronic_core::runner::{Runner, Settled};
use positronic_core::testing::{CountedIds, Story, Test, TestClock};
use tokio::time::Instant;

use super::{Speaker, asker, fails_for, says, ways};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A slow model that records when it was asked and its concurrent requests.
#[derive(Default)]
struct Busy {
    takes: Duration,
    fails: Option<Duration>,
    used: u64,
    now: AtomicUsize,
    most: AtomicUsize,
    sent: Mutex<Vec<(String, Duration)>>,
    began: Option<Instant>,
}

impl Busy {
    fn taking(takes: Duration) -> Self {
        Self { takes, began: Some(Instant::now()), ..Self::default() }
    }

    fn sent(&self) -> Vec<(String, u64)> {
        self.sent.lock().unwrap().iter().map(|(who, at)| (who.clone(), at.as_secs())).collect()
    }
}

/// Decrements when it is dropped, so that an abandoned request is no longer counted.
struct Under<'a>(&'a AtomicUsize);

impl Drop for Under<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Model for Busy {
    fn name(&self) -> String {
        "test/busy".to_owned()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            let _under = Under(&self.now);
            self.most.fetch_max(now, Ordering::SeqCst);
            let at = self.began.unwrap().elapsed();
            self.sent.lock().unwrap().push((request.path.as_str().to_owned(), at));
            tokio::time::sleep(self.takes).await;
            if let Some(wait) = self.fails.filter(|_| at.is_zero()) {
                let retry_after = Some(wait);
                return Err(ModelError { retry_after, ..ModelError::new(ModelErrorKind::RateLimited, "slow down") });
            }
            let parts = vec![Part::Text { text: "Yes.".to_owned() }];
            let mut response = ModelResponse { parts, ..ModelResponse::default() };
            response.metadata.usage = Usage { input: self.used, ..Usage::default() };
            Ok(response)
        })
    }

    fn wire(&self, _: &ModelRequest) -> String {
        String::new()
    }
}

pub(super) fn request(who: &str, answer: u32) -> ModelRequest {
    ModelRequest {
        path: Path::root().stage(who),
        attempt: 0,
        system: "".into(),
        context: [].into(),
        tools: Arc::default(),
        messages: Transcript::default(),
        settings: Arc::new(Settings::builder().max_output_tokens(answer).build()),
    }
}

async fn ask(model: &impl Model, who: &str, answer: u32) -> Result<ModelResponse, ModelError> {
    model.call(&request(who, answer), &NoDeltas).await
}

#[tokio::test(start_paused = true)]
async fn requests_are_sent_in_arrival_order_within_the_rate_limit() {
    let busy = Arc::new(Busy::taking(secs(1)));
    let model = RateLimit::new(Arc::clone(&busy), RateLimits::builder().requests(2).build());

    let who = ["a", "b", "c", "d", "e"];
    let answers = join_all(who.map(|who| ask(&model, who, 1))).await;

    let sent = [("a", 0), ("b", 0), ("c", 60), ("d", 60), ("e", 120)].map(|(who, at)| (who.to_owned(), at));
    assert_eq!(busy.sent(), sent);
    let waited: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_ref().unwrap().metadata.via.iter().map(super::hop).collect::<Vec<_>>())
        .collect();
    assert_eq!(waited[..2], [vec![] as Vec<String>, vec![]]);
    assert_eq!(waited[2..], [vec!["Requests 60000000"], vec!["Requests 60000000"], vec!["Requests 120000000"]]);
}

#[tokio::test(start_paused = true)]
async fn large_request_is_not_starved_by_small_ones() {
    let busy = Arc::new(Busy { used: 40, ..Busy::taking(secs(1)) });
    let model = RateLimit::new(Arc::clone(&busy), RateLimits::builder().tokens(100).build());

    join_all([("a", 40), ("b", 40), ("large", 90), ("c", 20)].map(|(who, tokens)| ask(&model, who, tokens))).await;

    let sent = [("a", 0), ("b", 0), ("large", 60), ("c", 60)].map(|(who, at)| (who.to_owned(), at));
    // The large one used 40 of its 90, so the last one did not wait for another minute.
    assert_eq!(busy.sent()[..3], sent[..3]);
    assert_eq!(busy.sent()[3], ("c".to_owned(), 61));
}

#[tokio::test(start_paused = true)]
async fn abandoned_wait_counts_for_nothing_and_blocks_no_request() {
    let busy = Arc::new(Busy::taking(secs(1)));
    let model = Arc::new(RateLimit::new(Arc::clone(&busy), RateLimits::builder().requests(1).build()));
    let spawn = |who: &'static str| {
        let model = Arc::clone(&model);
        tokio::spawn(async move { ask(&*model, who, 1).await })
    };

    let first = spawn("a");
    tokio::time::sleep(secs(2)).await;
    // `b` is next and waits for the minute; `c` waits behind `b`, and `d` behind `c`.
    let (b, c, d) = (spawn("b"), spawn("c"), spawn("d"));
    tokio::time::sleep(secs(2)).await;
    b.abort();
    c.abort();
    first.await.unwrap().unwrap();
    d.await.unwrap().unwrap();

    assert_eq!(busy.sent(), [("a".to_owned(), 0), ("d".to_owned(), 60)]);
}

#[tokio::test(start_paused = true)]
async fn provider_retry_delay_blocks_all_runs() {
    let busy = Arc::new(Busy { fails: Some(secs(20)), ..Busy::taking(secs(1)) });
    let model = RateLimit::new(Arc::clone(&busy), RateLimits::builder().requests(100).build());

    let (refused, ()) = futures::join!(ask(&model, "a", 1), tokio::time::sleep(secs(5)));
    assert!(refused.is_err());
    let answer = ask(&model, "b", 1).await.unwrap();

    assert_eq!(busy.sent()[1], ("b".to_owned(), 21));
    assert_eq!(answer.metadata.via.iter().map(super::hop).collect::<Vec<_>>(), ["RetryAfter 16000000"]);
}

#[tokio::test(start_paused = true)]
async fn no_request_waits_longer_than_the_patience() {
    let busy = Arc::new(Busy { fails: Some(secs(7200)), ..Busy::taking(secs(1)) });
    let model = RateLimit::new(Arc::clone(&busy), RateLimits::builder().requests(100).build());
    assert!(ask(&model, "a", 1).await.is_err());

    let began = Instant::now();
    let error = ask(&model, "b", 1).await.unwrap_err();

    assert_eq!((error.kind, began.elapsed()), (ModelErrorKind::RateLimited, Duration::ZERO));
    assert_eq!(error.retry_after, Some(secs(7200)));
}

#[tokio::test(start_paused = true)]
async fn models_share_a_rate_limit_and_the_log_records_the_waits() {
    let pace = Pace::new(RateLimits::builder().requests(1).build());
    let model = |text| RateLimit::sharing(Speaker::new("a/one", [says(text)]), &pace);

    let one = Test::new(model("One.")).run(asker(), ()).await;
    let other = Test::new(model("Two.")).run(asker(), ()).await;

    assert_eq!(ways(&one), ["a/one"]);
    assert_eq!(ways(&other), ["Requests 60000000 → a/one"]);
}

#[tokio::test(start_paused = true)]
async fn sixty_four_runs_share_four_slots() {
    let busy = Arc::new(Busy::taking(secs(1)));
    let runner =
        Runner::new(Concurrency::new(Arc::clone(&busy), 4)).clock(TestClock::default()).ids(CountedIds::default());

    let mut runs = Vec::new();
    for _ in 0..64 {
        runs.push(runner.start(asker(), ()).await.unwrap());
    }
    let settled = join_all(runs.iter().map(positronic_core::runner::RunHandle::settled)).await;

    assert!(settled.iter().all(|settled| matches!(settled, Settled::Completed(_))));
    assert_eq!((busy.most.load(Ordering::SeqCst), busy.sent().len()), (4, 64));
    assert!(busy.sent().iter().map(|(_, at)| at).is_sorted());
    assert_eq!(busy.sent()[63].1, 15);
    let last = Story::of(&runs[63]).await;
    assert_eq!(ways(&last), ["Slots 15000000 → /"]);
}

#[tokio::test(start_paused = true)]
async fn slot_is_free_after_its_run_is_cancelled_even_while_waiting() {
    let busy = Arc::new(Busy::taking(secs(600)));
    let runner =
        Runner::new(Concurrency::new(Arc::clone(&busy), 1)).clock(TestClock::default()).ids(CountedIds::default());
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(runner.start(asker(), ()).await.unwrap());
        tokio::time::sleep(secs(1)).await;
    }

    // The second gives up while it waits, the first during its request.
    runs[1].cancel("enough").await.unwrap();
    runs[0].cancel("enough").await.unwrap();
    let settled = runs[2].settled().await;

    assert!(matches!(settled, Settled::Completed(_)), "{settled:?}");
    assert_eq!(busy.sent().len(), 2);
    assert_eq!(busy.most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn models_of_one_server_share_its_slots() {
    let slots = Slots::new(1);
    let (one, other) = (Arc::new(Busy::taking(secs(2))), Arc::new(Busy::taking(secs(2))));
    let (first, second) =
        (Concurrency::sharing(Arc::clone(&one), &slots), Concurrency::sharing(Arc::clone(&other), &slots));

    let (_, answer) = futures::join!(ask(&first, "a", 1), ask(&second, "b", 1));

    assert_eq!((one.sent()[0].1, other.sent()[0].1), (0, 2));
    assert_eq!(answer.unwrap().metadata.via.iter().map(super::hop).collect::<Vec<_>>(), ["Slots 2000000"]);
}

#[tokio::test(start_paused = true)]
async fn failed_request_reports_its_wait_too() {
    let slots = Slots::new(1);
    let script =
        ScriptedModel::new([Reply::text("One.").after(secs(3)), fails_for(ModelErrorKind::Auth, Duration::ZERO)]);
    let model = Concurrency::sharing(script, &slots);

    let (_, failed) = futures::join!(ask(&model, "a", 1), ask(&model, "b", 1));

    assert_eq!(failed.unwrap_err().via.iter().map(super::hop).collect::<Vec<_>>(), ["Slots 3000000"]);
}

#[test]
#[should_panic(expected = "a limit of 0 concurrent requests would block every request")]
fn zero_slots_are_a_usage_error() {
    _ = Slots::new(0);
}

#[tokio::test]
#[should_panic(expected = "a limit of 0 per minute would block every request")]
async fn zero_limit_is_a_usage_error() {
    _ = Pace::new(RateLimits::builder().tokens(0).build());
}
