//! Conversations: earlier prompts are the history of the next one, across processes and during pending calls.

mod messages;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::Model as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::request_for;
use positronic_core::record::{
    Event, EventKind, Message, ModelRequest, RunId, Seq, Start, Status, Timestamp, UserMessage,
};
use positronic_core::runner::{Busy, ConversationError, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{Append, Index, MemoryStore};
use positronic_core::testing::{CountedIds, Lockstep as _, TestClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::outputs::Sighted;
use crate::support::boundaries::Later;
use crate::support::{done, path};

/// Answers with its last message and the number of messages.
fn echo(request: &ModelRequest) -> Reply {
    let messages = request.messages.messages();
    let last = messages.iter().rev().find_map(|message| match message {
        Message::User { text, .. } => Some(text.clone()),
        _ => None,
    });
    Reply::text(format!("{} after {}", last.unwrap_or_default(), messages.len()))
}

fn runner(store: &MemoryStore, model: ScriptedModel) -> Runner {
    Runner::new(model)
        .store(store.clone())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .linger(std::time::Duration::ZERO)
}

fn echoing(store: &MemoryStore) -> Runner {
    runner(store, ScriptedModel::from_fn(echo))
}

/// A brain whose loop asks a person in its first iteration; `calling` answers it.
fn gated() -> Brain<(), ()> {
    brain("Gated")
        .r#loop("Chat", |cx| {
            cx.system("Help.").tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
        })
        .build()
}

/// Calls `pay` first and echoes afterwards.
fn calling(request: &ModelRequest) -> Reply {
    if request.path == path("Chat/0") { Reply::call("pay", json!({})) } else { echo(request) }
}

fn helper() -> Brain<(), ()> {
    brain("Helper").r#loop("Chat", |cx| cx.system("Help.")).step("End", async |_| Ok(())).build()
}

async fn said(runner: &Runner, conversation: &str) -> Vec<String> {
    let prompts = runner.client().conversations().prompts(conversation).await.unwrap();
    let texts = prompts.iter().map(|(run, prompt)| {
        let answers: String = prompt.output.iter().filter_map(|output| output.kind.text()).collect();
        format!("{run} {}: {answers}", prompt.input.as_deref().unwrap_or("–"))
    });
    texts.collect()
}

#[tokio::test(start_paused = true)]
async fn each_prompt_has_earlier_prompts_as_history_in_every_process() {
    let store = MemoryStore::new();
    let first = echoing(&store);
    let chat = first.conversation("c").user("ann");
    chat.send(&helper(), (), "one").await.unwrap().result().await.unwrap();
    chat.send(&helper(), (), "two").await.unwrap().result().await.unwrap();

    let second = echoing(&store);
    let run = second.conversation("c").user("ann").start(&helper(), ()).await.unwrap();

    run.result().await.unwrap();
    assert_eq!(said(&second, "c").await, ["c-0 one: one after 1", "c-1 two: two after 3", "c-2 –: Begin. after 5"]);
    let [listed] = &*second.client().conversations().list().await.unwrap() else { panic!("one conversation") };
    assert_eq!((&*listed.id, listed.runs, &listed.last.run), ("c", 3, &RunId::new("c-2")));
}

#[tokio::test(start_paused = true)]
async fn prompt_enters_the_history_after_its_predecessors() {
    let store = MemoryStore::new();
    let runner = echoing(&store);
    let chat = runner.conversation("c").user("ann");
    for text in ["one", "two"] {
        chat.send(&helper(), (), text).await.unwrap().result().await.unwrap();
    }
    let (first, second) = (RunId::new("c-0"), RunId::new("c-1"));
    let log = async |run: &RunId| store.read(run, Seq(0), usize::MAX).await.unwrap();
    let there = echoing(&MemoryStore::new());

    let refused = there.client().import(&second, &log(&second).await).await.unwrap_err();

    let said_so = "the run `c-1` continues `c-0`, which the store does not have; import that run first";
    assert_eq!(refused.to_string(), said_so);
    for run in [&first, &second] {
        there.client().import(run, &log(run).await).await.unwrap();
    }
    assert_eq!(said(&there, "c").await, said(&runner, "c").await);
}

#[tokio::test(start_paused = true)]
async fn resumed_run_rebuilds_its_history_byte_for_byte() {
    let store = MemoryStore::new();
    let chat = |runner: &Runner| runner.conversation("c");
    let first = runner(&store, ScriptedModel::from_fn(calling));
    let run = chat(&first).send(&gated(), (), "one").await.unwrap();
    run.settled().await;
    run.approve(&path("Chat/0.0"), "ann").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)));
    let run = chat(&first).send(&gated(), (), "two").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));

    let model = std::sync::Arc::new(ScriptedModel::new([done()]));
    let second = Runner::new(std::sync::Arc::clone(&model))
        .store(store.clone())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .brain(gated());
    store.declare_dead("worker-1");
    let client = second.client();
    let resumed = second.resume(&RunId::new("c-1")).await.unwrap();
    resumed.approve(&path("Chat/0.0"), "ann").await.unwrap();
    assert!(matches!(resumed.settled().await, Settled::Completed(_)));

    let log = client.events(&RunId::new("c-1"), Seq(0)).await.unwrap();
    let asked = log.iter().rev().find(|event| matches!(event.kind, EventKind::LoopModelCall { .. })).unwrap();
    let history = client.history(&RunId::new("c-1")).await.unwrap();
    assert_eq!(history.len(), 4, "a question, a call, its result, an answer");
    let rebuilt = request_for(log.iter().map(|event| &**event), asked.seq, history, |_| None).unwrap();
    assert_eq!(rebuilt.messages.messages(), model.requests()[0].messages.messages());
    assert_eq!(rebuilt.messages.len(), 7);
}

/// A brain whose loop shows a chart and needs an approval before it pays.
fn drawing() -> Brain<(), ()> {
    brain("Drawing")
        .r#loop("Chat", |cx| {
            cx.system("Help.")
                .tool("draw", |t| {
                    t.execute(async |_: NoArgs, cx| {
                        cx.display_widget("chart", 1, "a chart")?;
                        Ok("drawn")
                    })
                })
                .tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn earlier_prompts_are_rendered_for_the_current_model() {
    let store = MemoryStore::new();
    let first = runner(&store, ScriptedModel::new([Reply::call("draw", json!({})), done()]));
    first.conversation("c").send(&drawing(), (), "Draw.").await.unwrap().result().await.unwrap();
    // Another model, which also reads widgets; and a worker that dies during an approval.
    let sighted = |replies: Vec<Reply>| std::sync::Arc::new(Sighted(ScriptedModel::new(replies)));
    let worker = |model: &std::sync::Arc<Sighted>| {
        Runner::new(std::sync::Arc::clone(model))
            .store(store.clone())
            .clock(TestClock::default())
            .ids(CountedIds::default())
            .brain(drawing())
    };
    let (second, third) = (sighted(vec![Reply::call("pay", json!({}))]), sighted(vec![done()]));
    let run = worker(&second).conversation("c").send(&drawing(), (), "Pay.").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    store.declare_dead("worker-2");
    let last = worker(&third);
    let resumed = last.resume(run.id()).await.unwrap();
    resumed.approve(&path("Chat/0.0"), "ann").await.unwrap();
    assert!(matches!(resumed.settled().await, Settled::Completed(_)));

    let sent = [second.0.requests(), third.0.requests()].concat();
    let told: Vec<_> = sent[0].messages.messages().iter().map(short).collect();
    assert_eq!(told, ["Draw.", "1 part", "drawn", "1 part", "[a chart]", "Pay."]);
    let log = last.client().events(run.id(), Seq(0)).await.unwrap();
    let history = last.client().history(run.id()).await.unwrap();
    assert_eq!(history.iter().map(short).collect::<Vec<_>>(), ["Draw.", "1 part", "drawn", "1 part"]);
    let asked: Vec<_> = log.iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. })).collect();
    assert_eq!(asked.len(), 2);
    for (asked, sent) in asked.iter().zip(&sent) {
        let log = log.iter().map(|event| &**event);
        let rebuilt = request_for(log, asked.seq, history.clone(), |outputs| third.project(outputs)).unwrap();
        assert_eq!(third.wire(&rebuilt), third.wire(sent));
    }
}

fn short(message: &Message) -> String {
    match message {
        Message::User { text, .. } | Message::Tool { text, .. } => text.clone(),
        Message::Assistant { parts, .. } => format!("{} part", parts.len()),
    }
}

#[tokio::test(start_paused = true)]
async fn conversation_belongs_to_its_user() {
    let store = MemoryStore::new();
    let runner = echoing(&store);
    runner.conversation("c").user("ann").send(&helper(), (), "one").await.unwrap().result().await.unwrap();

    let other = runner.conversation("c").user("bob").send(&helper(), (), "two").await;

    assert!(matches!(other, Err(ConversationError::NotYours { .. })), "{other:?}");
    assert_eq!(said(&runner, "c").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn conversation_cannot_have_the_id_of_a_run() {
    let store = MemoryStore::new();
    let runner = echoing(&store);
    let start = Start { id: Some("r".into()), user: Some("ann".to_owned()), ..Start::default() };
    runner.start_with(&helper(), (), start).await.unwrap().result().await.unwrap();

    let own = runner.conversation("r").user("ann").send(&helper(), (), "one").await;
    let other = runner.conversation("r").user("bob").send(&helper(), (), "two").await;

    assert!(matches!(own, Err(ConversationError::IdOfRun { .. })), "{own:?}");
    assert!(matches!(other, Err(ConversationError::NotYours { .. })), "{other:?}");
    assert_eq!(said(&runner, "r").await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn only_one_of_two_processes_begins_the_next_prompt() {
    let store = MemoryStore::new();
    let (one, other) = (echoing(&store), echoing(&store));
    let (here, there) = (one.conversation("c"), other.conversation("c"));
    let (left, right) = (helper(), helper());

    let (left, right) = tokio::join!(here.send(&left, (), "left"), there.send(&right, (), "right"));

    for run in [left.unwrap(), right.unwrap()] {
        run.settled().await;
    }
    let prompts = one.client().conversations().prompts("c").await.unwrap();
    let texts: String = serde_json::to_string(&prompts).unwrap();
    assert!(texts.contains("left") && texts.contains("right"), "{texts}");
    let afters: Vec<_> =
        one.client().conversations().runs("c").await.unwrap().into_iter().map(|row| row.after).collect();
    let distinct: std::collections::BTreeSet<_> = afters.iter().collect();
    assert_eq!(distinct.len(), afters.len(), "each run has another one before it");
}

#[tokio::test(start_paused = true)]
async fn message_keeps_the_senders_id_and_is_the_input_also_of_a_loop_with_its_own() {
    let store = MemoryStore::new();
    let runner = echoing(&store);
    let chat = runner.conversation("c");
    let own = brain("Own").r#loop("Chat", |cx| cx.system("Help.").input("fixed"));

    let opening = UserMessage::new("hello").id("m-1");
    let definition = positronic_core::dsl::IntoBrain::definition(&helper());
    chat.send_definition(definition, Value::Null, opening).await.unwrap().settled().await;
    let opening = UserMessage::new("and this").id("m-2");
    let definition = positronic_core::dsl::IntoBrain::definition(&own);
    chat.send_definition(definition, Value::Null, opening).await.unwrap().settled().await;

    let log = runner.client().events(&RunId::new("c-0"), Seq(0)).await.unwrap();
    let begun = |log: &[std::sync::Arc<Event>]| {
        log.iter().find_map(|event| match &event.kind {
            EventKind::LoopStart { input, message_id, .. } => Some((input.clone()?, message_id.clone()?)),
            _ => None,
        })
    };
    assert_eq!(begun(&log), Some(("hello".to_owned(), "m-1".to_owned())));
    let said = said(&runner, "c").await;
    assert_eq!(said[1], "c-1 and this: and this\n\nfixed after 3", "it is one message for the model");
    let log = runner.client().events(&RunId::new("c-1"), Seq(0)).await.unwrap();
    assert_eq!(begun(&log), Some(("and this".to_owned(), "m-2".to_owned())));
    let own = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopMessage { text, message_id, actor, .. } => {
            Some((text.as_str(), message_id, actor.by.as_deref()))
        }
        _ => None,
    });
    assert_eq!(own, Some(("fixed", &None, None)), "the code has no sender");
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Turns {
    turns: u32,
}

impl PluginState for Turns {
    const NAME: &'static str = "turns";
}

#[derive(Debug, Clone, Copy)]
struct Counter;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Counter {
    type State = Turns;

    fn initial(&self) -> Turns {
        Turns { turns: 0 }
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Turns>) -> Result<()> {
        cx.state.turns += 1;
        let turns = cx.state.turns;
        cx.context("turns", turns.to_string());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn plugin_state_continues_with_the_conversation() {
    let store = MemoryStore::new();
    let model = ScriptedModel::from_fn(|request| Reply::text(request.context[0].text.clone()));
    let runner = runner(&store, model);
    let counting = brain("Counting").r#loop("Chat", |cx| cx.system("Count.").plugin(Counter));

    for text in ["a", "b"] {
        runner.conversation("c").send(&counting, (), text).await.unwrap().result().await.unwrap();
    }
    runner.conversation("d").send(&counting, (), "c").await.unwrap().result().await.unwrap();

    assert_eq!(said(&runner, "c").await, ["c-0 a: 1", "c-1 b: 2"]);
    assert_eq!(said(&runner, "d").await, ["d-0 c: 1"]);
}

#[tokio::test(start_paused = true)]
async fn promise_13_pruning_keeps_the_history_of_remaining_runs() {
    let store = MemoryStore::new();
    let runner = echoing(&store);
    let chat = runner.conversation("c");
    for text in ["one", "two", "three"] {
        chat.send(&helper(), (), text).await.unwrap().result().await.unwrap();
    }
    let client = runner.client();
    let rows = client.conversations().runs("c").await.unwrap();
    let [last, middle, first] = &*rows else { panic!("three runs") };

    let none = client.prune(&[first.clone(), middle.clone()]).await.unwrap();
    let fork = client.fork(&last.run, Seq(3), positronic_core::runner::Fork::default()).await.unwrap();
    let only_last = client.prune(&rows).await.unwrap();

    assert_eq!(none, Vec::<RunId>::new());
    assert_eq!(only_last, std::slice::from_ref(&last.run), "the fork has the two before as its history");
    assert_eq!(client.history(&fork).await.unwrap().len(), 4);
    assert_eq!(client.conversations().runs("c").await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pruning_removes_runs_in_any_order_independent_of_the_clock() {
    let store = MemoryStore::new();
    let runner = echoing(&store);
    for text in ["one", "two", "three"] {
        runner.conversation("c").send(&helper(), (), text).await.unwrap().result().await.unwrap();
    }
    // The clock went back before each prompt, so a list by time shows the first one first.
    let there = echoing(&MemoryStore::new()).client();
    for (number, mut row) in (0..).zip(runner.client().conversations().runs("c").await.unwrap().into_iter().rev()) {
        let events = store.read(&row.run, Seq(0), usize::MAX).await.unwrap();
        row.started = TestClock::BEGIN.after(std::time::Duration::from_secs(3 - number));
        let index = Index { summary: row.clone(), pending: None };
        let expected = Seq(0);
        let (epoch, deliveries, timers, snapshot) = (None, Vec::new(), Vec::new(), None);
        let append =
            Append { expected, epoch, events, index, deliveries, timers, snapshot, prompts: None, sinks: Vec::new() };
        there.store().append(&row.run, append).await.unwrap();
    }
    let rows = there.conversations().runs("c").await.unwrap();
    let [first, middle, last] = &*rows else { panic!("three runs") };
    assert_eq!(first.run, RunId::new("c-0"));

    assert_eq!(there.prune(&[first.clone(), middle.clone()]).await.unwrap(), Vec::<RunId>::new());
    assert_eq!(there.history(&last.run).await.unwrap().len(), 4);
    assert_eq!(there.prune(&rows).await.unwrap(), ["c-2", "c-1", "c-0"].map(RunId::new));
    assert_eq!(there.conversations().runs("c").await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn prompt_without_a_message_waits_for_the_previous_one_to_end() {
    let store = MemoryStore::new();
    let runner = runner(&store, ScriptedModel::from_fn(|_| Reply::call("ask", json!({}))));
    let asking = || {
        brain("Asking").r#loop("Chat", |cx| {
            cx.system("Ask.").tool("ask", |t| t.requires_approval("sure?").execute(async |_: NoArgs, _| Ok("yes")))
        })
    };
    let chat = runner.conversation("c");
    let run = chat.send(&asking(), (), "one").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));

    let refused = chat.start(&asking(), ()).await.map(|_| ()).unwrap_err();

    assert_eq!(refused.to_string(), "the run `c-0` has not ended; wait for its end or cancel it");
    assert_eq!(chat.runs().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn prompts_keep_their_order_when_the_clock_goes_back() {
    let store = MemoryStore::new();
    echoing(&store).conversation("c").send(&helper(), (), "one").await.unwrap().result().await.unwrap();
    let asks = ScriptedModel::from_fn(|_| Reply::call("ask", json!({})));
    let earlier = Later::than(Timestamp(TestClock::BEGIN.0 - 10_000_000));
    let runner = Runner::new(asks).store(store.clone()).clock(earlier);
    let asking = brain("Asking").r#loop("Chat", |cx| {
        cx.system("Ask.").tool("ask", |t| t.requires_approval("sure?").execute(async |_: NoArgs, _| Ok("yes")))
    });
    let chat = runner.conversation("c");

    let run = chat.send(&asking, (), "two").await.unwrap();

    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let [last, first] = &*chat.runs().await.unwrap() else { panic!("two runs") };
    assert_eq!((&last.run, &first.run), (&RunId::new("c-1"), &RunId::new("c-0")));
    assert!(last.started > first.at, "{last:?}");
    let refused = chat.start(&asking, ()).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.to_string(), "the run `c-1` has not ended; wait for its end or cancel it");
}

#[tokio::test(start_paused = true)]
async fn next_run_id_taken_by_another_user_is_an_error() {
    let store = MemoryStore::new();
    let runner = echoing(&store);
    let start = positronic_core::record::Start { id: Some("c-0".into()), ..Default::default() };
    runner.start_with(helper(), (), start).await.unwrap();

    let refused = runner.conversation("c").send(&helper(), (), "one").await.map(|_| ()).unwrap_err();

    assert!(matches!(refused, ConversationError::Start(_)), "{refused}");
}

fn tally(version: u32) -> Brain<(), Value> {
    let tally = brain("Tally").version(version).state(json!({ "said": 0 })).keep_state();
    tally
        .r#loop("Chat", |cx| cx.system("Talk."))
        .step("Count", async |cx| {
            let said = cx.state["said"].as_u64().unwrap_or_default() + 1;
            if said == 3 { Err(Error::new("no third time")) } else { Ok(json!({ "said": said })) }
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn kept_state_goes_on_in_the_next_run_also_after_a_failure() {
    let runner = Runner::new(ScriptedModel::from_fn(|_| Reply::text("Hello.")));
    let chat = runner.conversation("ann-1");
    for said in [1, 2] {
        assert_eq!(chat.send(tally(0), (), "Hello").await.unwrap().result().await.unwrap(), json!({ "said": said }));
    }
    assert!(chat.send(tally(0), (), "Hello").await.unwrap().result().await.is_err());
    let run = chat.send(tally(0), (), "Hello").await.unwrap();
    assert!(run.result().await.is_err(), "the state is the last one that was recorded");
    let begun = run.events(Seq(0)).await.unwrap();
    assert!(begun[0].to_json().unwrap().contains(r#""state":{"said":2}"#));
}

#[tokio::test(start_paused = true)]
async fn kept_state_of_another_version_is_migrated_or_refused() {
    let runner = Runner::new(ScriptedModel::from_fn(|_| Reply::text("Hello.")));
    let chat = runner.conversation("ann-1");
    chat.send(tally(0), (), "Hello").await.unwrap().result().await.unwrap();
    let refused = chat.send(tally(1), (), "Hello").await.unwrap_err().to_string();
    assert!(refused.contains("the state that `Tally` has kept") && refused.contains("version 0"), "{refused}");
    let migrated = brain("Tally")
        .version(1)
        .migrate(0, |state| Ok(json!(state["said"])))
        .state(0_u64)
        .keep_state()
        .r#loop("Chat", |cx| cx.system("Talk."))
        .step("Count", async |cx| Ok(cx.state + 10));
    assert_eq!(chat.send(migrated, (), "Hello").await.unwrap().result().await.unwrap(), 11);
}
