//! What follows from an outcome, given the state, the time and a random number.

use std::sync::Arc;

use super::*;
use crate::dsl::brain;
use crate::machine::Asking;
use crate::model::scripted::{Reply, ScriptedModel};
use crate::record::{Event, ModelErrorKind, Question, RetryPolicy};
use crate::testing::Test;

const SEVEN: Duration = Duration::from_micros(7);

/// A state in which the step `Load` runs.
async fn loading() -> RunState {
    let loads = brain("Loads").step("Load", async |_| Ok(()));
    let log = Test::new(ScriptedModel::new([])).run(loads, ()).await.log().to_vec();
    let started = log.iter().position(|event| matches!(event.kind, EventKind::StepStart { .. })).unwrap();
    RunState::replay(log[..=started].iter().map(|event| &**event)).unwrap()
}

fn context(jitter: f64) -> SettleContext {
    SettleContext { now: Timestamp(1_000_000), jitter, retry: RetryPolicy::default() }
}

fn failed(message: &str, transient: bool) -> Outcome {
    let error = if transient { Error::transient(message) } else { Error::permanent(message) };
    Outcome::Step { result: Err(error), retries: if transient { 3 } else { 0 } }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_transiently_is_tried_again_when_time_and_chance_say() {
    let (state, path) = (loading().await, Path::root().stage("Load"));

    for (jitter, due) in [(0.0, 1_500_000), (1.0, 1_250_000)] {
        let events = settle(&state, &path, failed("busy", true), SEVEN, &context(jitter));
        let retry = EventKind::StepRetry { attempt: 0, message: "busy".to_owned(), due: Timestamp(due) };
        assert_eq!(events, [NewEvent::new(path.clone(), retry)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_for_good_fails_its_brain() {
    let (state, path) = (loading().await, Path::root().stage("Load"));

    let events = settle(&state, &path, failed("broken", false), SEVEN, &context(0.0));

    let message = "the step `Load` failed: broken".to_owned();
    let failure = Failure { code: EndReason::Step, message, retryable: false };
    assert_eq!(events, [NewEvent::new(Path::root(), EventKind::BrainError(failure))]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_returns_changes_the_state() {
    let (state, path) = (loading().await, Path::root().stage("Load"));

    let events = settle(&state, &path, Outcome::Step { result: Ok(Value::Null), retries: 0 }, SEVEN, &context(0.0));

    let [NewEvent { kind: EventKind::StepComplete { duration: SEVEN, .. }, .. }] = &events[..] else {
        panic!("the step is complete: {events:?}")
    };
}

/// The state in which the step `Ask` waits for the answer to its question, and the question.
async fn asking() -> (RunState, Vec<Arc<Event>>, Question) {
    let asks = brain("Asks").step("Ask", async |cx| cx.model().ask("Who?").await.map(|_| ()));
    let log = Test::new(ScriptedModel::new([Reply::text("I")])).run(asks, ()).await.log().to_vec();
    let asked = |event: &Arc<Event>| match &event.kind {
        EventKind::LoopModelCall { question, .. } => question.clone(),
        _ => None,
    };
    let (at, question) = log.iter().enumerate().find_map(|(at, event)| Some((at, asked(event)?))).unwrap();
    (RunState::replay(log[..=at].iter().map(|event| &**event)).unwrap(), log, question)
}

#[tokio::test(start_paused = true)]
async fn failed_question_is_sent_again_only_if_a_retry_may_succeed() {
    let (state, ..) = asking().await;
    let path = Path::root().stage("Ask").iteration(0);
    let failed = |kind| Outcome::Question { result: Err(ModelError::new(kind, "busy")), attempt: 0 };

    let again = settle(&state, &path, failed(ModelErrorKind::Server), SEVEN, &context(0.0));
    let over = settle(&state, &path, failed(ModelErrorKind::BadRequest), SEVEN, &context(0.0));

    let [NewEvent { kind: EventKind::LoopModelRetry { attempt: 0, due, .. }, .. }] = &again[..] else {
        panic!("the question is sent again: {again:?}")
    };
    assert!(*due > Timestamp(1_000_000));
    assert_eq!(over, []);
}

#[tokio::test(start_paused = true)]
async fn question_of_a_rerun_is_answered_from_the_log_or_sent_under_its_number() {
    let (lost, log, question) = asking().await;
    let step = Path::root().stage("Ask");
    let decide = |state: &RunState, in_flight: bool| {
        super::super::ask(state, &step, question.clone(), "m".to_owned(), |_| false, |_| in_flight)
    };
    let answered = log.iter().position(|event| matches!(event.kind, EventKind::LoopModelResult { .. })).unwrap();
    let answered = RunState::replay(log[..=answered].iter().map(|event| &**event)).unwrap();

    assert!(matches!(decide(&answered, false), Asking::Recorded(0, _)));
    assert!(matches!(decide(&lost, false), Asking::Send(0, _)));
    assert!(matches!(decide(&lost, true), Asking::Send(1, _)), "a parallel question gets the next number");
}
