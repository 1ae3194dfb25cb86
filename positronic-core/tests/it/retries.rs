//! Retries of failed runs: a fork continues at the failed place, and what has a result is not done again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use positronic_core::dsl::Verdict;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, Event, ModelError, ModelErrorKind, ModelRequest, RunId, Seq, Status};
use positronic_core::runner::{Client, Retried, RetryError, RunHandle, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{MemoryStore, RunFilter};
use positronic_core::testing::{CountedIds, Lockstep as _, TestClock};
use serde_json::{Value, json};

use crate::support::{Journal, settled};

/// Whether the brain and its model are still broken.
type Broken = Arc<AtomicBool>;

fn runner(model: ScriptedModel) -> Runner {
    Runner::new(model).store(MemoryStore::new()).clock(TestClock::default()).ids(CountedIds::default()).lockstep(true)
}

/// A loop with a payment, then a step that fetches something once and then fails while it is broken.
fn shop(journal: &Journal, broken: &Broken) -> Brain<(), u32> {
    let broken = Arc::clone(broken);
    brain("Shop")
        .services::<Journal>()
        .state(0_u32)
        .r#loop("Pay", |cx| {
            cx.system("Pay.").input("begin").tool("pay", |t| {
                t.description("Pays").execute(async |_: NoArgs, cx| {
                    cx.services.note("paid");
                    Ok(cx.result("paid").update(|count| *count += 1))
                })
            })
        })
        .step("Load", move |cx| {
            let broken = Arc::clone(&broken);
            async move {
                let journal = cx.services.clone();
                let fetched = cx.once("fetched", async {
                    journal.note("fetched");
                    Ok(10)
                });
                let fetched: u32 = fetched.await?;
                if broken.load(Ordering::Relaxed) {
                    return Err(Error::new("the file `prices.csv` is missing"));
                }
                Ok(cx.state + fetched)
            }
        })
        .bind(journal.clone())
}

fn pays() -> ScriptedModel {
    ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Pay/0" => Reply::call("pay", json!({})),
        _ => Reply::text("Paid."),
    })
}

async fn names(client: &Client, run: &RunId) -> Vec<&'static str> {
    let log: Vec<Arc<Event>> = client.events(run, Seq(0)).await.unwrap();
    log.iter().map(|event| event.kind.name()).collect()
}

async fn failed<T>(run: &RunHandle<T>) -> RunId {
    assert!(matches!(settled(run).await, Settled::Failed(_)));
    run.id().clone()
}

#[tokio::test(start_paused = true)]
async fn retry_of_a_failed_step_repeats_no_effect_with_a_result() {
    let (journal, broken) = (Journal::default(), Broken::new(true.into()));
    let shop = shop(&journal, &broken);
    let runner = runner(pays()).brain(shop.clone());
    let run = failed(&runner.start(shop, ()).await.unwrap()).await;
    broken.store(false, Ordering::Relaxed);

    let again: RunHandle<Value> = runner.retry(&run, "ann").await.unwrap();

    assert_eq!(settled(&again).await, Settled::Completed(json!(11)));
    assert_eq!(journal.take(), ["paid", "fetched"], "each once");
    let row = runner.client().store().run(again.id()).await.unwrap();
    let (origin, at) = row.forked_from.unwrap();
    assert_eq!(origin, run);
    let shared = names(&runner.client(), &run).await;
    assert_eq!(shared[at.index()], "VALUE_RECORDED", "all but the failure is shared: {shared:?}");
}

#[tokio::test(start_paused = true)]
async fn second_retry_finds_the_run_of_the_first() {
    let (journal, broken) = (Journal::default(), Broken::new(true.into()));
    let shop = shop(&journal, &broken);
    let runner = runner(pays()).brain(shop.clone());
    let run = failed(&runner.start(shop, ()).await.unwrap()).await;

    let first = runner.client().retry(&run, Actor::default()).await.unwrap();
    let second = runner.client().retry(&run, Actor::default()).await.unwrap();

    assert_eq!(first, second);
    let Retried::Forked { run: fork, .. } = first else { panic!("{first:?}") };
    let again = failed(&runner.resume(&fork).await.unwrap()).await;
    let Retried::Forked { run: third, .. } = runner.client().retry(&again, Actor::default()).await.unwrap() else {
        panic!("it has failed")
    };
    assert_ne!(third, fork, "a failed retry can be retried");
}

#[tokio::test(start_paused = true)]
async fn retry_of_a_failed_model_asks_it_again() {
    let (journal, broken) = (Journal::default(), Broken::new(true.into()));
    let inner = Arc::clone(&broken);
    let model = ScriptedModel::from_fn(move |request: &ModelRequest| match request.path.as_str() {
        "Shop/Pay/0" => Reply::call("pay", json!({})),
        _ if inner.load(Ordering::Relaxed) => {
            Reply::error(ModelError::new(ModelErrorKind::Auth, "the key has expired"))
        }
        _ => Reply::text("Paid."),
    });
    let works = Broken::default();
    let shop = shop(&journal, &works);
    let outer = brain("Outer")
        .services::<Journal>()
        .state(0_u32)
        .brain("Shop", shop)
        .map_output(|_, sum: u32| sum)
        .bind(journal.clone());
    let runner = runner(model).brain(outer.clone());
    let run = failed(&runner.start(outer, ()).await.unwrap()).await;
    broken.store(false, Ordering::Relaxed);

    let again = runner.retry(&run, Actor::default()).await.unwrap();

    assert_eq!(settled(&again).await, Settled::Completed(json!(11)));
    assert_eq!(journal.take(), ["paid", "fetched"]);
}

#[tokio::test(start_paused = true)]
async fn retry_of_a_loop_that_a_guard_stopped_opens_the_other_calls_again() {
    let journal = Journal::default();
    let shop = brain("Shop")
        .services::<Journal>()
        .r#loop("Work", |cx| {
            cx.system("Work.")
                .input("begin")
                .tool("pay", |t| {
                    t.description("Pays")
                        .approval(|_: &NoArgs, _| Some("money".to_owned()))
                        .execute(async |_, _| Ok("paid"))
                })
                .tool("look", |t| {
                    t.description("Looks").execute(async |_: NoArgs, cx| {
                        cx.services.note("looked");
                        Ok("a secret")
                    })
                })
                .guard_result("No secrets", async |_, _, _| Verdict::Stop("it is a secret".to_owned()))
        })
        .bind(journal.clone());
    let model = ScriptedModel::from_fn(|_: &ModelRequest| Reply::calls([("look", json!({})), ("pay", json!({}))]));
    let runner = runner(model).brain(shop.clone());
    let run = failed(&runner.start(shop, ()).await.unwrap()).await;
    let log = names(&runner.client(), &run).await;

    let again = runner.retry(&run, Actor::default()).await.unwrap();

    let Settled::Waiting(open) = settled(&again).await else { panic!("{:?}", settled(&again).await) };
    assert_eq!(open.len(), 1, "the approval is open again");
    assert_eq!(journal.take(), ["looked"], "once");
    let (_, at) = runner.client().store().run(again.id()).await.unwrap().forked_from.unwrap();
    let failure = ["LOOP_APPROVAL_WITHDRAWN", "LOOP_TOOL_RESULT", "LOOP_COMPLETE", "BRAIN_ERROR"];
    assert_eq!((log[at.index()], &log[at.index() + 1..]), ("LOOP_TOOL_RESULT", &failure[..]), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn run_that_failed_at_a_limit_or_has_not_failed_is_not_retried() {
    let endless = brain("Endless").r#loop("Work", |cx| {
        cx.system("Work.")
            .input("begin")
            .max_iterations(2)
            .on_limit(OnLimit::Error)
            .tool("again", |t| t.description("Does nothing").execute(async |_: NoArgs, _| Ok("again")))
    });
    let short = brain("Short").r#loop("Work", |cx| cx.system("Work.").input("begin"));
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.tools.tools().is_empty() {
        true => Reply::text("Done."),
        false => Reply::call("again", json!({})),
    });
    let runner = runner(model).brain(endless.clone()).brain(short.clone());
    let limited = failed(&runner.start(endless, ()).await.unwrap()).await;
    let done = runner.start(short, ()).await.unwrap();
    settled(&done).await;

    let at_limit = runner.client().retry(&limited, Actor::default()).await.unwrap_err();
    let completed = runner.client().retry(done.id(), Actor::default()).await.unwrap_err();

    assert!(matches!(at_limit, RetryError::AtLimit { .. }), "{at_limit}");
    assert!(matches!(completed, RetryError::NotFailed { status: Status::Completed }), "{completed}");
    assert_eq!(completed.to_string(), "the run is completed; only a run that has failed or was parked can be retried");
}

#[tokio::test(start_paused = true)]
async fn retry_with_changed_code_makes_no_fork() {
    let (journal, broken) = (Journal::default(), Broken::new(true.into()));
    let (shop, store) = (shop(&journal, &broken), MemoryStore::new());
    let process = || Runner::new(pays()).store(store.clone()).clock(TestClock::default());
    let run = failed(&process().start(shop, ()).await.unwrap()).await;
    let renamed = brain("Shop").state(0_u32).r#loop("Charge", |cx| cx.system("Charge.").input("begin"));
    let newer = process().brain(renamed);

    for refused in [
        newer.retry(&run, Actor::default()).await.err().unwrap(),
        newer.record_retry(&run, Actor::default()).await.unwrap_err(),
    ] {
        let RetryError::Changed { difference } = refused else { panic!("{refused}") };
        assert!(difference.contains("stage 1 of `Shop` was `Pay`, and is `Charge` now"), "{difference}");
    }

    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 1, "there is no fork");
}
