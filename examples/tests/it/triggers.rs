use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::{RunId, UserMessage};
use positronic_core::runner::{Runner, Service};
use positronic_core::store::prelude::*;
use positronic_core::store::{MemoryStore, TimerFilter};
use positronic_core::testing::{CountedIds, Lockstep as _, Test, TestClock};
use positronic_examples::triggers::{CASSETTE, Errand, gardener};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, gardener(), Errand::default()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
    insta::assert_json_snapshot!("state", story.state());
}

/// A process that serves the garden, with the answers of its model.
fn process(store: &MemoryStore, clock: &TestClock, replies: Vec<Reply>) -> (Runner, Arc<ScriptedModel>, Service) {
    let model = Arc::new(ScriptedModel::new(replies));
    let runner = Runner::new(Arc::clone(&model))
        .store(store.clone())
        .clock(clock.clone())
        .ids(CountedIds::default())
        .lockstep(true)
        .brain(gardener());
    let service = runner.serve();
    (runner, model, service)
}

async fn prompts(runner: &Runner) -> Vec<String> {
    let prompts = runner.client().conversations().prompts("garden").await.unwrap();
    let line = |(run, prompt): &(RunId, positronic_core::record::Prompt)| {
        let text: String = prompt.output.iter().filter_map(|output| output.kind.text()).collect();
        format!("{run}: {} -> {text}", prompt.input.as_deref().unwrap_or("(nobody said anything)"))
    };
    prompts.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn trigger_waters_the_beans_every_hour_until_it_is_removed() {
    let (store, clock) = (MemoryStore::new(), TestClock::default());
    let water = || Reply::call("water", json!({"bed": "beans"}));
    let create = Reply::call("trigger.create", json!({"what": "Water the beans.", "every": "1 hour"}));
    let (runner, model, service) =
        process(&store, &clock, vec![create, Reply::text("Every hour."), water(), Reply::text("Watered.")]);
    let chat = runner.conversation("garden").user("ann");
    let nothing = || Errand { says: String::new() };
    chat.send(gardener(), nothing(), "Water the beans every hour.").await.unwrap().result().await.unwrap();
    tokio::time::sleep(HOUR + Duration::from_secs(2)).await;
    let [timer] = &store.timers(&TimerFilter::default()).await.unwrap()[..] else { panic!("it continues") };
    model.assert_used();
    drop((service, runner));

    // No process serves the garden for seven hours; then the beans are watered once, and the next message ends it.
    tokio::time::sleep(7 * HOUR).await;
    let delete = Reply::call("trigger.delete", json!({"id": timer.trigger.id}));
    let replies = vec![water(), Reply::text("Watered late."), delete, Reply::text("No more.")];
    let (runner, model, service) = process(&store, &clock, replies);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let chat = runner.conversation("garden").user("ann");
    let rains = UserMessage::new("It rains now.");
    let options = json!({"says": ""});
    let plan = positronic_core::dsl::IntoBrain::definition(&gardener());
    chat.send_definition(plan, options, rains).await.unwrap().result().await.unwrap();
    tokio::time::sleep(3 * HOUR).await;

    assert_eq!(
        prompts(&runner).await,
        [
            "garden-0: Water the beans every hour. -> Every hour.",
            "garden-1: (nobody said anything) -> Watered.",
            "garden-2: (nobody said anything) -> Watered late.",
            "garden-3: It rains now. -> No more.",
        ]
    );
    assert_eq!(store.timers(&TimerFilter::default()).await, Ok(Vec::new()));
    let context =
        |number: usize| model.requests()[number].context.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
    assert_eq!((context(0), context(2)), (vec!["trigger".to_owned()], Vec::new()), "it knows why it was asked");
    model.assert_used();
    drop(service);
}
