//! Runs that wait for people, webhooks and times, mostly without a living service.

use positronic_core::record::{RunId, Signal, SignalId, SignalKind, ToolResult};
use positronic_core::runner::Delivered;
use positronic_restate::{ClientError, RunOutcome};
use serde_json::json;

use crate::bench::{Bench, ann, path};
use crate::errands::TITLE;
use crate::server::until;

fn approval(id: &str) -> Signal {
    let kind = SignalKind::Approve { call: path("Work/0.0"), arguments: None };
    Signal { id: SignalId::new(id), actor: ann(), kind }
}

#[tokio::test]
async fn an_approval_with_no_service_alive_is_done_by_a_new_process() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.run("run", &[&[("gated", "a")]]).await;
    bench.waits("run").await;
    bench.server.suspended("run").await;
    bench.kill_service();

    bench.client.send_signal(TITLE, &RunId::new("run"), &approval("one")).await.unwrap();
    assert!(bench.ledger().is_empty());
    bench.serve().await;

    assert!(bench.completed("run").await.succeeded("Work/0.0"));
    assert_eq!(bench.ledger(), ["a begins", "a done"]);
}

#[tokio::test]
async fn an_approval_in_the_store_is_found_by_a_living_service_and_by_a_new_one() {
    let Some(mut bench) = Bench::start().await else { return };
    let call = path("Work/0.0");
    bench.run("first", &[&[("gated", "a")]]).await;
    bench.run("second", &[&[("gated", "b")]]).await;
    bench.waits("first").await;
    bench.waits("second").await;

    bench.elsewhere().approve(&RunId::new("first"), &call, ann()).await.unwrap();
    assert!(bench.completed("first").await.succeeded("Work/0.0"));
    bench.kill_service();
    bench.elsewhere().approve(&RunId::new("second"), &call, ann()).await.unwrap();
    bench.serve().await;

    assert!(bench.completed("second").await.succeeded("Work/0.0"));
}

#[tokio::test]
async fn a_waiting_run_that_is_cancelled_in_the_store_ends_its_workflow() {
    let Some(bench) = Bench::start().await else { return };
    bench.run("run", &[&[("gated", "a")]]).await;
    bench.waits("run").await;
    bench.server.suspended("run").await;

    let cancel = Signal { id: SignalId::new("one"), actor: ann(), kind: SignalKind::Cancel { reason: None } };
    bench.elsewhere().send(&RunId::new("run"), cancel).await.unwrap();

    assert_eq!(bench.outcome("run").await, RunOutcome::Cancelled);
    assert!(bench.ledger().is_empty());
}

#[tokio::test]
async fn a_run_that_began_without_restate_gets_a_workflow() {
    let Some(bench) = Bench::start().await else { return };
    let started = bench.start_without_restate("run", &[&[("gated", "a")], &[("gated", "b")]]).await;
    started.settled().await;
    drop(started);

    for call in ["Work/0.0", "Work/1.0"] {
        bench.waits("run").await;
        bench.elsewhere().approve(&RunId::new("run"), &path(call), ann()).await.unwrap();
        until("it is approved", async || !bench.is_pending("run", call).await).await;
    }

    assert!(bench.completed("run").await.succeeded("Work/1.0"));
}

#[tokio::test]
async fn the_log_refuses_a_second_decision_and_repeats_the_answer_to_the_same_one() {
    let Some(bench) = Bench::start().await else { return };
    let (run, call) = (RunId::new("run"), path("Work/0.0"));
    bench.run("run", &[&[("gated", "a")], &[("gated", "b")]]).await;
    bench.waits("run").await;

    let first = bench.client.approve(TITLE, &run, &call, ann()).await.unwrap();
    let second = bench.client.reject(TITLE, &run, &call, "too late", ann()).await.unwrap_err();

    assert!(matches!(&second, ClientError::Refused { reason } if reason.contains("approved")), "{second}");
    bench.noted("a done").await;
    bench.waits("run").await;
    bench.client.approve(TITLE, &run, &path("Work/1.0"), ann()).await.unwrap();
    let log = bench.completed("run").await;
    assert_eq!(log.0[first.index()].kind.name(), "LOOP_APPROVAL_DECIDED");
    assert_eq!(bench.ledger(), ["a begins", "a done", "b begins", "b done"]);
}

#[tokio::test]
async fn webhooks_and_times_continue_a_run() {
    let Some(bench) = Bench::start().await else { return };
    bench.run("run", &[&[("ask", "a")], &[("ask", "b")]]).await;

    let (id, news) = (SignalId::new("news-1"), json!({"text": "rain"}));
    let delivered = bench.client.deliver(TITLE, id.clone(), "news", "a", news.clone(), ann()).await.unwrap();
    let again = bench.client.deliver(TITLE, id, "news", "a", news, ann()).await.unwrap();

    assert_eq!(delivered, again);
    assert!(matches!(delivered, Delivered::To { .. } | Delivered::Kept));
    let log = bench.completed("run").await;
    let ToolResult::Success { output, .. } = log.result("Work/0.0") else { panic!("{:?}", log.result("Work/0.0")) };
    assert!(output.to_string().contains("rain"), "{output}");
    assert!(format!("{:?}", log.result("Work/1.0")).contains("no news"), "its time was up");
}

#[tokio::test]
async fn a_second_start_with_the_same_id_changes_nothing() {
    let Some(bench) = Bench::start().await else { return };
    bench.run("run", &[&[("pay", "a")]]).await;
    bench.run("run", &[&[("pay", "b")]]).await;
    bench.completed("run").await;

    bench.run("run", &[&[("pay", "c")]]).await;

    assert_eq!(bench.ledger(), ["a begins", "a done"]);
}

#[tokio::test]
async fn options_that_do_not_fit_fail_the_start() {
    let Some(bench) = Bench::start().await else { return };
    let run = RunId::new("run");

    bench.client.start_with(TITLE, json!({"batches": 7}), &run, Default::default()).await.unwrap();

    let failed = bench.client.outcome(TITLE, "run").await.unwrap_err();
    assert!(matches!(&failed, ClientError::Failed { status: 400, reason } if reason.contains("batches")), "{failed}");
}
