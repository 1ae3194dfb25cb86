//! Every example dies at every append, and continues in another process.

use positronic_core::dsl::Runnable;
use positronic_core::record::EventKind;
use positronic_core::testing::Test;
use positronic_examples::acme::Acme;
use positronic_examples::nested::Newsroom;
use positronic_examples::{
    agentloop, analyst, blueprints, compaction, delegate, memory, minimal, modes, nested, release, rover, support,
    toolsets,
};
use positronic_plugins::MemoryFacts;
use serde::Serialize;
use serde_json::Value;

use crate::harness::boundaries::{Ledger, Tale, answers_as_in, as_in, interrupted};

/// Plays an example on its cassette, and then repeats it from every crash, with the same answers.
async fn every_death<B: Runnable>(cassette: &str, make: impl Fn() -> B, options: B::Options)
where
    B::Options: Serialize,
{
    let (definition, json) = (make().definition(), serde_json::to_value(&options).unwrap());
    let story = Test::play(cassette, make(), options).await;
    let tale = Tale {
        definition,
        options: json,
        ledger: Ledger::default(),
        says: as_in(story.log()),
        answers: answers_as_in(story.log()),
    };
    let whole = tale.undisturbed().await;
    // Other actors approve and answer there.
    let anonymous = |transcript: &str| transcript.replace(" by the cassette:", ":").replace(" by ann:", ":");
    assert_eq!(anonymous(&whole.end.transcript), anonymous(&story.transcript()));
    // A run's own folder has the run's id as its name.
    let named = |state: &Value| state.to_string().replace("/run-1\"", "/run\"");
    assert_eq!(named(&whole.end.state), named(story.state()));
    for death in &whole.deaths {
        let Some((end, log)) = tale.after(&whole, death).await else { continue };
        let lost = interrupted(&log);
        if lost.is_empty() {
            assert_eq!(end, whole.end, "after {}", death.until);
        }
        // Only unrepeatable calls in flight are lost.
        for call in lost {
            let in_flight = whole.log[..death.until].iter().rev().find(|event| event.path == call);
            assert!(matches!(
                in_flight.map(|event| &event.kind),
                Some(EventKind::LoopToolStart { .. } | EventKind::LoopOutput { .. })
            ));
            let flags = log.iter().find_map(|event| match &event.kind {
                EventKind::LoopToolCall(made) if event.path == call => Some(made.flags),
                _ => None,
            });
            assert!(flags.is_some_and(|flags| !flags.read_only && !flags.idempotent), "{call} after {}", death.until);
        }
    }
    assert!(whole.deaths.len() > 5);
}

#[tokio::test(start_paused = true)]
async fn promise_14_every_example_continues_after_a_crash_anywhere() {
    every_death(minimal::CASSETTE, minimal::minimal, ()).await;
    every_death(crate::release::approved(), release::release, ()).await;
    every_death(toolsets::CASSETTE, toolsets::assistant, ()).await;
    every_death(analyst::CASSETTE, analyst::analyst, ()).await;
    every_death(rover::CASSETTE, rover::rover, ()).await;
    every_death(modes::CASSETTE, modes::helpdesk, modes::Problem::default()).await;
    every_death(compaction::CASSETTE, compaction::proofreader, ()).await;
    every_death(blueprints::CASSETTE, blueprints::planner, ()).await;
    // The stored facts outlive the crash, so these words find none.
    let visit = memory::Visit { says: "Good morning!".to_owned() };
    every_death(memory::CASSETTE, || memory::baker(MemoryFacts::default()), visit).await;
    every_death(delegate::CASSETTE, delegate::trip, delegate::Wish::default()).await;
    // Triggers are stored beside the log, and only the log is replayed here after a crash: the core's tests kill
    // processes that set and fire them.
    every_death(nested::CASSETTE, || nested::newsletter().bind(Newsroom::example()), nested::Topic::default()).await;
    every_death(support::CASSETTE, || support::support().bind(Acme::example()), support::SupportOptions::default())
        .await;
}

/// Its programs really run, once per crash.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn agent_continues_after_a_crash_anywhere() {
    let folder = tempfile::tempdir().unwrap();

    every_death(agentloop::CASSETTE, agentloop::agentloop, crate::agentloop::task(&folder)).await;
}
