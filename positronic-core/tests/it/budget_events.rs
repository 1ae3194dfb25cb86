//! Limits in the machine, event by event: no runner, no clock, no store.

use std::time::Duration;

use positronic_core::machine::{Effect, Refusal, RunState, admit, earlier_decision, next, pending, status, why};
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::record::{
    Actor, Amounts, BudgetRequest, Decision, Event, EventKind, LimitKind, NewEvent, Path, Signal, SignalId, SignalKind,
    Status, Timestamp, Usage,
};
use positronic_core::testing::Story;
use serde_json::Value;

use crate::support::{Journal, Play, ShopLoop, batch, path, tools, workshop};

/// A check that accepts any value.
fn anything(_: &Value, _: &Value) -> Result<(), String> {
    Ok(())
}

/// The log of a run that asks for more tokens in its loop `Work`, up to and including the question.
async fn log(configure: fn(ShopLoop) -> ShopLoop) -> Vec<Event> {
    let used = Usage { input: 10, ..Usage::default() };
    let play = Play::of(ScriptedModel::from_fn(move |_| batch([("safe", "a")]).usage(used)), true);
    let run = play.start(workshop(&Journal::default(), configure), ()).await;
    let story = Story::of(&run).await;
    story.log().iter().map(|event| Event::clone(event)).collect()
}

fn asking(config: ShopLoop) -> ShopLoop {
    tools(config).max_tokens(20).ask_for_more_within(Duration::from_secs(60))
}

fn append(state: &RunState, kind: EventKind) -> Result<RunState, String> {
    let mut after = state.clone();
    let event =
        Event { seq: state.next, at: state.at, epoch: None, clock: None, with_next: false, path: path("Work"), kind };
    after.apply(&event).map(|()| after).map_err(|error| error.reason)
}

fn appended(state: &RunState, new_events: Vec<NewEvent>) -> RunState {
    new_events.into_iter().fold(state.clone(), |mut state, NewEvent { path, kind, .. }| {
        let (seq, at) = (state.next, state.at);
        state.apply(&Event { seq, at, epoch: None, clock: None, with_next: false, path, kind }).unwrap();
        state
    })
}

fn signal(kind: SignalKind) -> Signal {
    Signal { id: SignalId::new("s"), actor: Actor::builder().by("ann").build(), kind }
}

fn effects(state: &RunState, now: Timestamp) -> Vec<String> {
    let name = |effect: Effect| match effect {
        Effect::Append(new_events) => new_events.iter().map(|draft| draft.kind.name()).collect::<Vec<_>>().join(" "),
        other => format!("{:?}", other.path().map(Path::as_str)),
    };
    next(state, now).effects.into_iter().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn limit_question_follows_from_the_state_and_is_asked_once() {
    let log = log(asking).await;
    let place = log.iter().position(|event| matches!(event.kind, EventKind::BudgetRequested(_))).unwrap();

    let before = RunState::replay(&log[..place]).unwrap();
    let after = RunState::replay(&log[..=place]).unwrap();

    assert_eq!(effects(&before, before.at), ["BUDGET_REQUESTED"]);
    let Effect::Append(new_events) = next(&before, before.at).effects.remove(0) else { panic!() };
    assert_eq!(
        (&new_events[0].path, &new_events[0].kind),
        (&log[place].path, &log[place].kind),
        "replay asks the same"
    );
    assert!(effects(&after, after.at).is_empty());
    assert_eq!((status(&before), status(&after)), (Status::Running, Status::Waiting));
    let due = after.at.after(Duration::from_secs(60));
    assert_eq!(next(&after, after.at).wake, Some(due));
    assert_eq!(effects(&after, due), ["BUDGET_EXPIRED"]);
    assert_eq!(pending(&after)[0].since, log[place].seq);
    let sentence = "The run has been waiting since event {} for a person's decision about more tokens for `Work` (20 tokens used, \
                    20 tokens allowed).";
    assert_eq!(why(&after).unwrap().sentence, sentence.replace("{}", &log[place].seq.to_string()));
}

#[tokio::test(start_paused = true)]
async fn impossible_events_are_refused() {
    let log = log(asking).await;
    let place = log.iter().position(|event| matches!(event.kind, EventKind::BudgetRequested(_))).unwrap();
    let begun = RunState::replay(&log[..place - 8]).unwrap();
    let asked = RunState::replay(&log[..=place]).unwrap();
    let request = || {
        EventKind::BudgetRequested(BudgetRequest {
            kind: LimitKind::Tokens,
            limit: 20,
            used: 20,
            shared: false,
            expires: None,
        })
    };
    let decided = |decision| {
        let (signal, actor) = (SignalId::new("s"), Actor::default());
        EventKind::BudgetDecided { decision, more: Amounts::tokens(9), reason: None, signal, actor }
    };

    assert_eq!(append(&begun, request()).unwrap_err(), "its limit of tokens is not reached");
    assert_eq!(append(&begun, decided(Decision::Approved)).unwrap_err(), "no request for more is open");
    assert_eq!(append(&begun, EventKind::BudgetExpired {}).unwrap_err(), "no request for more is open");
    assert_eq!(append(&asked, request()).unwrap_err(), "a person is asked already");
    assert_eq!(append(&begun, EventKind::StepBlocked {}).unwrap_err(), "this is a loop's path");
    let granted = append(&asked, decided(Decision::Approved)).unwrap();
    assert_eq!(append(&granted, decided(Decision::Approved)).unwrap_err(), "no request for more is open");
    assert!(granted.signals.contains_key(&SignalId::new("s")));
}

#[tokio::test(start_paused = true)]
async fn decision_determines_the_next_event() {
    let log = log(asking).await;
    let asked = RunState::replay(&log).unwrap();
    let grant = |tokens| signal(SignalKind::Grant { to: path("Work"), more: Amounts::tokens(tokens) });
    let refuse = signal(SignalKind::Reject { call: path("Work"), reason: None });

    let granted = appended(&asked, admit(&asked, &grant(1), asked.at, &anything).unwrap());
    let refused = appended(&asked, admit(&asked, &refuse, asked.at, &anything).unwrap());

    assert_eq!(effects(&granted, granted.at), ["Some(\"Work\")"], "the next iteration is prepared");
    assert_eq!(effects(&refused, refused.at), ["LOOP_LIMIT"]);
    let late = asked.at.after(Duration::from_secs(60));
    for signal in [&grant(1), &refuse] {
        assert!(matches!(admit(&asked, signal, late, &anything), Err(Refusal::Expired { .. })));
        let again = admit(&granted, signal, granted.at, &anything);
        assert!(matches!(again, Err(Refusal::Repeated { .. })), "{again:?}");
    }
    let other = Signal { id: SignalId::new("t"), ..grant(1) };
    let other = admit(&granted, &other, granted.at, &anything);
    assert!(matches!(other, Err(Refusal::NotAsked { .. })), "{other:?}");
}

#[tokio::test(start_paused = true)]
async fn decided_names_the_last_decision_on_a_limit() {
    let log = log(asking).await;
    let asked = RunState::replay(&log).unwrap();
    let decisions = [
        (SignalKind::Grant { to: path("Work"), more: Amounts::tokens(5) }, "it was granted 5 tokens more by ann"),
        (
            SignalKind::Reject { call: path("Work"), reason: Some("enough".to_owned()) },
            "it was refused more by ann: enough",
        ),
    ];

    for (decision, expected) in decisions {
        let NewEvent { path: at, kind, .. } = admit(&asked, &signal(decision), asked.at, &anything).unwrap().remove(0);
        let event = Event { seq: asked.next, at: asked.at, epoch: None, clock: None, with_next: false, path: at, kind };
        let refusal = earlier_decision(log.iter().chain([&event]), &path("Work"));
        assert!(matches!(&refusal, Some(Refusal::Decided { how, .. }) if how == expected), "{refusal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn brain_cannot_start_in_the_call_of_another_tool() {
    let log = log(asking).await;
    let start = log.iter().find(|event| event.kind.name() == "BRAIN_START").unwrap().kind.clone();

    for length in 1..=log.len() {
        let mut state = RunState::replay(&log[..length]).unwrap();
        let (seq, at, kind) = (state.next, state.at, start.clone());
        let event = Event { seq, at, epoch: None, clock: None, with_next: false, path: path("Work/0.0"), kind };
        assert!(state.apply(&event).is_err(), "accepted after event {length}");
    }
}

#[tokio::test(start_paused = true)]
async fn grants_outlive_a_snapshot_and_a_worker() {
    let log = log(asking).await;
    let asked = RunState::replay(&log).unwrap();
    let grant = signal(SignalKind::Grant { to: path("Work"), more: Amounts::tokens(5) });
    let granted = appended(&asked, admit(&asked, &grant, asked.at, &anything).unwrap());

    let text = serde_json::to_string(&granted).unwrap();
    let mut kept: RunState = serde_json::from_str(&text).unwrap();
    let claim = EventKind::RunClaimed { owner: "other".to_owned(), trace: None };
    let epoch = Some(positronic_core::record::Epoch(9));
    kept.apply(&Event {
        seq: kept.next,
        at: kept.at,
        epoch,
        clock: None,
        with_next: false,
        path: Path::root(),
        kind: claim,
    })
    .unwrap();

    assert_eq!(kept.loop_at(&path("Work")).unwrap().grants.more, Amounts::tokens(5));
    assert_eq!(effects(&kept, kept.at), ["Some(\"Work\")"]);
    let old = text.replace(",\"grants\":{\"more\":{\"tokens\":5}}", "");
    assert_ne!(old, text);
    assert!(serde_json::from_str::<RunState>(&old).is_ok(), "a snapshot of before reads as it is");
}
