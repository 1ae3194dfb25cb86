//! What follows from an outcome, given the state, the time and a random number.

use super::*;
use crate::dsl::brain;
use crate::model::scripted::ScriptedModel;
use crate::testing::Test;

/// A state in which the step `Load` runs.
async fn loading() -> RunState {
    let loads = brain("Loads").step("Load", async |_| Ok(()));
    let log = Test::new(ScriptedModel::new([])).run(loads, ()).await.log().to_vec();
    let started = log.iter().position(|event| matches!(event.kind, EventKind::StepStart { .. })).unwrap();
    RunState::replay(log[..=started].iter().map(|event| &**event)).unwrap()
}

fn inputs(jitter: f64) -> Inputs {
    Inputs { now: Timestamp(1_000_000), jitter, retry: RetryPolicy::default() }
}

fn failed(message: &str, transient: bool) -> Outcome {
    Outcome::Step(Err(if transient { Error::transient(message) } else { Error::permanent(message) }))
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_transiently_is_tried_again_when_time_and_chance_say() {
    let (state, path) = (loading().await, Path::root().stage("Load"));

    for (jitter, due) in [(0.0, 1_500_000), (1.0, 1_250_000)] {
        let events = settle(&state, &path, failed("busy", true), 7, &inputs(jitter));
        let retry = EventKind::StepRetry { attempt: 0, message: "busy".to_owned(), due: Timestamp(due) };
        assert_eq!(events, [NewEvent::new(path.clone(), retry)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_for_good_fails_its_brain() {
    let (state, path) = (loading().await, Path::root().stage("Load"));

    let events = settle(&state, &path, failed("broken", false), 7, &inputs(0.0));

    let message = "the step `Load` failed: broken".to_owned();
    let failure = Failure { code: EndReason::Step, message, retryable: false };
    assert_eq!(events, [NewEvent::new(Path::root(), EventKind::BrainError(failure))]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_returns_changes_the_state() {
    let (state, path) = (loading().await, Path::root().stage("Load"));

    let events = settle(&state, &path, Outcome::Step(Ok(Value::Null)), 7, &inputs(0.0));

    let [NewEvent { kind: EventKind::StepComplete { duration: 7, .. }, .. }] = &events[..] else {
        panic!("the step is complete: {events:?}")
    };
}

#[test]
fn every_call_of_an_answer_has_one_part() {
    let text = || Part::Text { text: "so".to_owned() };
    let mut parts = vec![Part::Call { index: 1 }, text(), Part::Call { index: 1 }, Part::Call { index: 9 }];

    name_every_call(&mut parts, 2);

    assert_eq!(parts, [Part::Call { index: 1 }, text(), Part::Call { index: 0 }]);
}
