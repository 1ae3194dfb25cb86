//! A process dies, and another one continues: promises 3, 5 and 14.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use positronic_core::dsl::IntoBrain as _;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{BudgetRequest, Event, EventKind, Path, Pending, SignalKind};
use serde_json::{Value, json};

use crate::stories::{self, Tools};
use crate::support::boundaries::{Baseline, Death, End, Ledger, Tale, interrupted};
use crate::support::dialogues::{Dialogue, read};

/// Every moment at which the process could have died, with its outcome.
async fn every_death(name: &str, tale: &Tale, check: impl Fn(&Baseline, &Death, &End, &[Arc<Event>])) {
    let baseline = tale.undisturbed().await;
    assert!(baseline.deaths.len() > 10, "{name}: {:?}", baseline.deaths.len());
    for death in &baseline.deaths {
        if let Some((end, log)) = tale.after(&baseline, death).await {
            check(&baseline, death, &end, &log);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn promise_14_run_that_crashed_anywhere_ends_as_if_uninterrupted() {
    for (name, tale) in stories::all(Tools::Idempotent) {
        every_death(name, &tale, |baseline, death, end, _| {
            assert_eq!(*end, baseline.end, "{name} after {} with {:?}", death.until, death.deeds);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn story_of_limits_asks_for_more_at_every_place() {
    let (_, tale) = stories::all(Tools::Once).into_iter().find(|(name, _)| *name == "limits").unwrap();
    let baseline = tale.undisturbed().await;
    let asked: Vec<_> = baseline
        .log
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::BudgetRequested(BudgetRequest { kind, .. }) => Some(format!("{} {}", event.path, kind.noun())),
            EventKind::StepBlocked {} => Some(format!("{} held", event.path)),
            _ => None,
        })
        .collect();
    let (baseline, deep, work) = (" tokens", "Work/1.1/Deep tokens", "Work iterations");
    let all = ["Ask held", baseline, baseline, deep, baseline, " iterations", work, baseline, " iterations"];
    assert_eq!(asked, all, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn promise_14_output_of_a_tool_before_a_crash_is_shown_once() {
    every_death("outputs", &stories::outputs(Tools::Idempotent), |baseline, death, end, _| {
        assert_eq!(*end, baseline.end, "after {} with {:?}", death.until, death.deeds);
    })
    .await;
}

/// Returns the ids in the calls' arguments, both proposed and edited.
fn ids_of(log: &[Arc<Event>], calls: &[Path]) -> Vec<String> {
    let arguments = log.iter().filter(|event| calls.contains(&event.path)).filter_map(|event| match &event.kind {
        EventKind::LoopToolCall(made) => Some(Value::clone(&made.arguments)),
        EventKind::LoopApprovalDecided { arguments, .. } => arguments.clone(),
        _ => None,
    });
    arguments.filter_map(|arguments| Some(arguments["id"].as_str()?.to_owned())).collect()
}

/// Removes the notes of interrupted calls from a JSON text.
fn without(text: &str, lost: &[String]) -> String {
    let mut text = text.to_owned();
    for id in lost {
        for noted in [id.clone(), format!("answer to {id}")] {
            text = text.replace(&format!("\"{noted}\","), "").replace(&format!(",\"{noted}\""), "");
            text = text.replace(&format!("\"{noted}\""), "");
        }
    }
    text
}

#[tokio::test(start_paused = true)]
async fn promise_14_interrupted_results_are_the_only_difference_for_unrepeatable_tools() {
    for (name, tale) in stories::all(Tools::Once) {
        let seen = std::cell::Cell::new(false);
        every_death(name, &tale, |baseline, death, end, log| {
            let calls = interrupted(log);
            seen.set(seen.get() || !calls.is_empty());
            let at = format!("{name} after {} with {:?}: {calls:?}", death.until, death.deeds);
            assert_same_except(baseline, end, &ids_of(log, &calls), &at);
            assert_eq!(once(&end.deeds), end.deeds.len(), "nothing is done twice: {at}");
        })
        .await;
        assert!(seen.get() || name == "steps", "{name}: some death interrupts a call");
    }
}

/// Counts the distinct keys of effects.
fn once(deeds: &[(String, String)]) -> usize {
    deeds.iter().map(|(key, _)| key).collect::<BTreeSet<_>>().len()
}

/// Compares a run's end with the undisturbed one, except for interrupted calls.
fn assert_same_except(baseline: &Baseline, end: &End, lost: &[String], at: &str) {
    let deeds = |deeds: &[(String, String)]| -> Vec<String> {
        let kept = deeds.iter().filter(|(_, what)| !lost.contains(what));
        kept.map(|(key, what)| format!("{key} {what}")).collect()
    };
    assert_eq!(deeds(&end.deeds), deeds(&baseline.end.deeds), "{at}");
    assert_eq!(without(&end.state.to_string(), lost), without(&baseline.end.state.to_string(), lost), "{at}");
    let mut left: Vec<_> = end.transcript.lines().filter(|line| !line.starts_with("user: about")).collect();
    // An interrupted exit tool is called again, together with the other calls of its iteration.
    let expected: Vec<_> = baseline.end.transcript.lines().filter(|line| !line.starts_with("user: about")).collect();
    let more = left.len().saturating_sub(expected.len());
    if more > 0 {
        let again = left.iter().position(|line| line.starts_with("finish(") && line.contains(UNKNOWN)).unwrap();
        left.drain(again..again + more);
    }
    assert_eq!(left.len(), expected.len(), "{at}\n{}\n{}", end.transcript, baseline.end.transcript);
    for (line, expected) in left.into_iter().zip(expected) {
        if line.contains(UNKNOWN) {
            let call = line.split(" -> ").next().unwrap();
            assert!(expected.starts_with(call.split(" edited").next().unwrap()), "{line} for {expected}: {at}");
        } else {
            assert_eq!(without(line, lost), without(expected, lost), "{at}");
        }
    }
}

/// The result that the model reads for a call with an unknown outcome.
const UNKNOWN: &str = "whether it had its effect is unknown";

/// A dialogue of real calls as one run whose tools have effects.
fn dialogue(dialogue: &Dialogue, tools: Tools) -> Tale {
    let ledger = Ledger::default();
    let made: Vec<Tool<(), (), Ledger>> = dialogue
        .tools
        .iter()
        .map(|tool| {
            let name = tool.name.clone();
            Tool::new(&tool.name, |t| {
                let t = t.description(&tool.description);
                let t = if tools == Tools::Idempotent { t.idempotent() } else { t };
                t.execute_json(tool.parameters.clone(), move |arguments: Value, cx: ToolContext<(), (), Ledger>| {
                    let (key, what) = (cx.idempotency_key().to_owned(), format!("{name}{arguments}"));
                    match tools {
                        Tools::Idempotent => cx.services.act_once(&key, &what),
                        Tools::Once => cx.services.act(&key, &what),
                    }
                    std::future::ready(Ok(json!({ "done": key })))
                })
            })
        })
        .collect();
    let opening = dialogue.turns[0].user.clone();
    let assistant = brain(&dialogue.id)
        .services::<Ledger>()
        .r#loop("Chat", move |cx| {
            cx.system("Help the user with the tools.")
                .input(&opening)
                .tools(made.clone())
                .tool("say", |t| {
                    // The user may repeat a message that they have not read yet.
                    t.idempotent()
                        .execute(async |_: NoArgs, cx| Ok(cx.result(()).wait_for_reply::<String>("What next?")))
                })
                .unlimited()
        })
        .bind(ledger.clone());
    let mut replies = Vec::new();
    let mut says: BTreeMap<String, String> = BTreeMap::new();
    for (index, turn) in dialogue.turns.iter().enumerate() {
        replies.extend(turn.calls.iter().map(|call| Reply::call(&call.name, call.arguments.clone())));
        if let Some(next) = dialogue.turns.get(index + 1) {
            says.insert(format!("Chat/{}.0", replies.len()), next.user.clone());
            replies.push(Reply::call("say", json!({})).and_text("Next?"));
        }
    }
    replies.push(Reply::text("Done."));
    Tale {
        definition: assistant.definition(),
        options: Value::Null,
        ledger,
        says: Arc::new(move |request| {
            let iteration = request.path.as_str().strip_prefix("Chat/").unwrap();
            replies[iteration.parse::<usize>().unwrap()].clone()
        }),
        answers: Arc::new(move |pending: &Pending| {
            let payload = json!(says[pending.call.as_str()]);
            vec![SignalKind::Reply { call: pending.call.clone(), payload }]
        }),
    }
}

/// Every third of the real dialogues from the `first` on. `.ci/slow` takes all of them, with `POSITRONIC_DIALOGUES=all`.
fn dialogues(first: usize) -> impl Iterator<Item = Dialogue> {
    let all = read(include_str!("../data/bfcl/multi_turn.jsonl"));
    assert_eq!(all.len(), 20);
    let takes_all = std::env::var_os("POSITRONIC_DIALOGUES").is_some_and(|which| which == "all");
    let (first, step) = if takes_all { (0, 1) } else { (first, 3) };
    all.into_iter().skip(first).step_by(step)
}

#[tokio::test(start_paused = true)]
async fn promise_14_dialogues_of_real_calls_end_as_if_uninterrupted() {
    for each in dialogues(0) {
        every_death(&each.id, &dialogue(&each, Tools::Idempotent), |baseline, death, end, _| {
            assert_eq!(*end, baseline.end, "{} after {}", each.id, death.until);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn promise_14_dialogues_of_unrepeatable_calls_lose_only_interrupted_ones() {
    for each in dialogues(1) {
        every_death(&each.id, &dialogue(&each, Tools::Once), |baseline, death, end, log| {
            let calls = interrupted(log);
            assert!(calls.len() <= 1, "{} after {}: {calls:?}", each.id, death.until);
            assert_eq!(once(&end.deeds), end.deeds.len(), "{} after {}", each.id, death.until);
            for (line, expected) in end.transcript.lines().zip(baseline.end.transcript.lines()) {
                let call = |line: &str| line.rsplit_once(" -> ").map(|(call, _)| call.to_owned());
                assert!(line == expected || (line.contains(UNKNOWN) && call(line) == call(expected)), "{line}");
            }
            assert_eq!(end.transcript.lines().count(), baseline.end.transcript.lines().count());
        })
        .await;
    }
}
