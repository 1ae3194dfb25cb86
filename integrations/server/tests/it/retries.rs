//! Retries of runs that failed or were parked, and what a run says of them beforehand.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use positronic_core::definition::BrainDefinition;
use positronic_core::prelude::*;
use positronic_core::record::{Actor, ClaimRefusal, EndReason, Event, EventKind, Failure, Path, RunId, Seq};
use positronic_core::runner::NoRunner;
use positronic_server::{Brains, Options, Scope};
use serde_json::{Value, json};

use crate::support::{Shop, refund, refunding};

/// Imports the log of a run under another id, with a last event. Returns the number of that event.
async fn ended(shop: &Shop, run: &RunId, id: &str, kind: EventKind) -> u64 {
    let mut log = shop.client.events(run, Seq(0)).await.unwrap();
    let last = log.last().unwrap();
    let event = Event { seq: last.seq.next(), path: Path::root(), kind, ..Event::clone(last) };
    let seq = event.seq.0;
    log.push(Arc::new(event));
    shop.client.import(&RunId::new(id), &log).await.unwrap();
    seq
}

#[tokio::test]
async fn retry_continues_a_failed_run_in_a_fork_and_a_parked_one_in_itself() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    let failure = Failure { code: EndReason::Crash, message: "the process ended".to_owned(), retryable: true };
    let parks =
        EventKind::BrainPaused { signal: "parked".into(), actor: Actor::default(), failure: Some(failure.clone()) };
    let next = ended(&shop, &run, "failed", EventKind::BrainError(failure)).await;
    ended(&shop, &run, "parked", parks).await;

    let row = shop.get(&token, "/api/v1/runs/parked").await.json();
    let retries =
        async |run: &str| shop.get(&token, &format!("/api/v1/runs/{run}")).await.json()["actions"]["retry"].clone();
    assert_eq!(
        (retries("failed").await, retries("parked").await),
        (json!({ "allowed": true }), json!({ "allowed": true }))
    );
    let refused = json!({ "allowed": false, "reason": "the run is waiting; only a run that has failed or was parked can be retried" });
    assert_eq!(retries(run.as_str()).await, refused);
    let parked = shop.post(&token, "/api/v1/runs/parked/retry", json!({})).await;
    let failed = shop.post(&token, "/api/v1/runs/failed/retry", json!({})).await;
    let again = shop.post(&token, "/api/v1/runs/failed/retry", json!({})).await;
    let waits = shop.post(&token, &format!("/api/v1/runs/{run}/retry"), json!({})).await;

    assert_eq!((&row["status"], &row["parked"]), (&json!("paused"), &json!(true)), "{row}");
    assert_eq!(parked.json(), json!({ "run": "parked", "forked": false, "seq": next + 1 }));
    assert_eq!(shop.get(&token, "/api/v1/runs/parked").await.json()["status"], "waiting");
    let new = failed.json()["run"].as_str().unwrap().to_owned();
    assert_eq!(failed.json(), json!({ "run": new, "forked": true, "seq": next - 1 }));
    assert_eq!(again.json(), failed.json(), "the same fork");
    assert_eq!(shop.get(&token, &format!("/api/v1/runs/{new}")).await.json()["status"], "waiting");
    assert_eq!(waits.problem(), "not-failed");
}

#[tokio::test]
async fn retry_is_refused_beforehand_where_it_would_reach_the_same_limit_again() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    let failure = Failure { code: EndReason::Limit, message: "the budget is used up".to_owned(), retryable: false };
    ended(&shop, &run, "limited", EventKind::BrainError(failure)).await;

    let retry = shop.get(&token, "/api/v1/runs/limited").await.json()["actions"]["retry"].clone();
    let tried = shop.post(&token, "/api/v1/runs/limited/retry", json!({})).await;

    assert_eq!(retry["allowed"], false);
    assert!(retry["reason"].as_str().unwrap().contains("a retry would reach the same limit again"), "{retry}");
    assert_eq!(tried.json()["detail"], retry["reason"]);
}

/// Brains whose workers have a model for runs with fewer events than `most`, and that count how often they are asked.
struct Counted {
    runner: Runner,
    most: usize,
    refusal: Option<ClaimRefusal>,
    asked: Arc<AtomicUsize>,
}

impl Brains for Counted {
    fn definitions(&self) -> Vec<Arc<BrainDefinition>> {
        Brains::definitions(&self.runner)
    }

    fn runner<'a>(&'a self, title: &'a str) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        Brains::runner(&self.runner, title)
    }

    fn next_models<'a>(&'a self, _: &'a str, log: &'a [Arc<Event>]) -> BoxFuture<'a, Result<Vec<String>, NoRunner>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let missing = NoRunner { message: format!("no key for {} events", log.len()), refusal: self.refusal };
        Box::pin(ready(if log.len() < self.most { Ok(vec!["acme/small".to_owned()]) } else { Err(missing) }))
    }
}

#[tokio::test]
async fn failed_run_says_that_no_worker_has_a_model_for_its_retry() {
    for (refusal, times) in [(Some(ClaimRefusal::NoModel), 1), (None, 2)] {
        assert_eq!(
            asked_about_its_retry(refusal).await,
            times,
            "cached until the next event, unless a model may come: {refusal:?}"
        );
    }
}

/// Reads a failed run twice, and returns how often its model was looked for.
async fn asked_about_its_retry(refusal: Option<ClaimRefusal>) -> usize {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = |runner| Counted { runner, most: 4, refusal, asked: Arc::clone(&asked) };
    let shop = Shop::with(refunding(), refund(), |runner| Options::builder().brains(counted(runner)).build());
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    let failure = Failure { code: EndReason::Crash, message: "no answer".to_owned(), retryable: true };
    let shared = ended(&shop, &run, "failed", EventKind::BrainError(failure)).await;

    let mut answers = Vec::new();
    for run in ["failed", "failed", run.as_str()] {
        answers.push(shop.get(&token, &format!("/api/v1/runs/{run}")).await.json()["missing_model"].clone());
    }

    // A retry shares the events before the failure.
    let missing = json!(format!("no key for {shared} events"));
    assert_eq!(answers, [missing.clone(), missing, Value::Null]);
    asked.load(Ordering::Relaxed)
}
