//! Guards of loops: what does not pass is neither recorded as an answer, nor seen, nor acted upon.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use positronic_core::dsl::{Options, Plugin, PluginState, RequestEdit, ResponseInspection, Services, State, Verdict};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{GuardedValue, NodeKind, Timeline};
use positronic_core::record::{EndReason, EventKind, Message, ModelResponse, Path, Seq, SignalKind, ToolResult};
use positronic_core::runner::{Client, RunUpdate, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::Test;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn no_keys(text: &str) -> Result<(), String> {
    if text.contains("sk-") { Err("it names an API key".to_owned()) } else { Ok(()) }
}

fn desk() -> Brain<(), u32> {
    brain("Desk")
        .state(0)
        .r#loop("Chat", |cx| {
            cx.system("Help.")
                .input("What is my key?")
                .tool("count", |t| {
                    t.description("Counts").execute(async |_: NoArgs, cx| {
                        cx.update(|count| *count += 1);
                        Ok("counted")
                    })
                })
                .guard_answer("No keys", async |_, answer: Arc<ModelResponse>| no_keys(&answer.text()))
        })
        .build()
}

fn text_of(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

#[tokio::test(start_paused = true)]
async fn model_is_asked_again_after_a_refused_answer() {
    let model = ScriptedModel::new([
        Reply::text("It is sk-123."),
        Reply::call("count", json!({})),
        Reply::text("I cannot tell you."),
    ]);
    let model = Arc::new(model);
    let run = Test::new(Arc::clone(&model)).start(desk(), ()).await;
    assert_eq!(run.result().await.unwrap(), 1);
    assert_eq!(run.answer().as_deref(), Some("I cannot tell you."));
    let requests = model.requests();
    let told = text_of(requests[1].messages.read().iter().last().map(|entry| &entry.message).unwrap());
    assert!(told.contains("Your last answer was refused") && told.contains("it names an API key"), "{told}");
    let last: String = requests[2].messages.read().iter().map(|entry| text_of(&entry.message)).collect();
    assert!(!last.contains("sk-123") && !last.contains("refused"), "{last}");
    let log = run.events(Seq(0)).await.unwrap();
    let refused = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopAnswerRefused { guard, message, .. } => Some((guard.clone(), message.clone())),
        _ => None,
    });
    assert_eq!(refused, Some((Some("No keys".to_owned()), "it names an API key".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_refused_answer_do_not_run() {
    let model = ScriptedModel::new([
        Reply::call("count", json!({})).and_text("It is sk-123."),
        Reply::text("I cannot tell you."),
    ]);
    let run = Test::new(model).start(desk(), ()).await;
    assert_eq!(run.result().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn brain_fails_with_the_code_guard_when_no_answer_passes() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let model = ScriptedModel::from_fn(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Reply::text("It is sk-123.")
    });
    let run = Test::new(model).start(desk(), ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("it has not failed") };
    assert_eq!(failure.code, EndReason::Guard);
    assert!(failure.message.contains("the guard `No keys` refused its answer: it names an API key"), "{failure}");
    assert_eq!(asked.load(Ordering::SeqCst), 3, "two answers more than the first");
}

fn with_verdict(verdict: impl Fn() -> Verdict + Send + Sync + Clone + 'static) -> Brain<(), ()> {
    brain("Desk")
        .r#loop("Chat", move |cx| {
            let verdict = verdict.clone();
            cx.system("Help.").guard_answer("Judge", move |_, _| {
                let verdict = verdict();
                async move { verdict }
            })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn replaced_answer_is_the_runs_answer_and_the_log_keeps_the_original() {
    let brain = with_verdict(|| Verdict::Replace(json!("Ask a colleague.")));
    let run = Test::new(ScriptedModel::new([Reply::text("It is sk-123.")])).start(brain, ()).await;
    run.result().await.unwrap();
    assert_eq!(run.answer().as_deref(), Some("Ask a colleague."));
    let log = run.events(Seq(0)).await.unwrap();
    let replaced = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopGuardReplaced { guard, replaced, .. } => Some((guard.as_str(), replaced.clone())),
        _ => None,
    });
    assert_eq!(replaced, Some(("Judge", json!("It is sk-123."))));
}

#[tokio::test(start_paused = true)]
async fn stop_and_panic_of_a_guard_fail_the_brain_with_the_code_guard() {
    let model = || ScriptedModel::new([Reply::text("It is sk-123.")]);
    let stops = Test::new(model()).start(with_verdict(|| Verdict::Stop("not here".to_owned())), ()).await;
    let Settled::Failed(failure) = stops.settled().await else { panic!("it has not failed") };
    assert_eq!((failure.code, failure.retryable), (EndReason::Guard, false));
    assert_eq!(failure.message, "the guard `Judge` stopped the loop `Chat`: not here");
    let panics = Test::new(model()).start(with_verdict(|| panic!("no verdict")), ()).await;
    let Settled::Failed(failure) = panics.settled().await else { panic!("it has not failed") };
    assert!(failure.message.contains("the guard failed") && failure.message.contains("no verdict"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn answer_of_a_guarded_loop_is_not_streamed() {
    for (guarded, expected) in [(true, ""), (false, "Hello!")] {
        let greeter = move || {
            brain("Greeter").r#loop("Greet", move |cx| {
                let greet = cx.system("Greet.");
                if guarded { greet.guard_answer("Any", async |_, _| Ok(())) } else { greet }
            })
        };
        let store = MemoryStore::new();
        let client = Client::new(store.clone());
        let runner = |replies: &[&str]| {
            Runner::new(ScriptedModel::new(replies.iter().map(|text| Reply::text(*text)))).store(store.clone())
        };
        let worker = runner(&["Hello!"]).stream_to(&client).brain(greeter());
        let run = runner(&[]).submit_only().start(greeter(), ()).await.unwrap();
        let mut updates = client.follow(run.id(), Seq(0));
        let _service = worker.serve();
        let mut streamed = String::new();
        while let Some(update) = updates.next().await {
            match update.unwrap() {
                RunUpdate::Delta(delta) => streamed.push_str(&delta.text),
                RunUpdate::Event(event) if event.kind.name() == "BRAIN_COMPLETE" => break,
                _ => {}
            }
        }
        assert_eq!(streamed, expected, "guarded: {guarded}");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Amount {
    amount: u32,
}

fn payer() -> Brain<(), u32> {
    brain("Payer")
        .state(0)
        .r#loop("Pay", |cx| {
            cx.system("Pay.")
                .tool("pay", |t| {
                    t.description("Pays").approval(|_: &Amount, _| Some("money leaves".to_owned())).execute(
                        async |Amount { amount }, cx| {
                            cx.update(move |sum| *sum += amount);
                            Ok(format!("paid {amount} with card 4111"))
                        },
                    )
                })
                .guard_call("At most 100", async |_, _, arguments: Arc<Value>| {
                    if arguments["amount"].as_u64() > Some(100) { Err("it is too much".to_owned()) } else { Ok(()) }
                })
                .guard_result("No cards", async |_, _, result: Arc<Value>| {
                    let text = result.as_str().unwrap_or_default();
                    match text.contains("4111") {
                        true => Verdict::Replace(json!(text.replace("4111", "****"))),
                        false => Verdict::Pass,
                    }
                })
        })
        .build()
}

fn results(log: &[Arc<positronic_core::record::Event>]) -> Vec<ToolResult> {
    let result = |event: &Arc<positronic_core::record::Event>| match &event.kind {
        EventKind::LoopToolResult { result, .. } => Some(result.clone()),
        _ => None,
    };
    log.iter().filter_map(result).collect()
}

#[tokio::test(start_paused = true)]
async fn refused_call_needs_no_approval_and_a_replaced_result_is_what_the_model_reads() {
    let model = ScriptedModel::new([
        Reply::call("pay", json!({ "amount": 500 })),
        Reply::call("pay", json!({ "amount": 50 })),
        Reply::text("Done."),
    ]);
    let run = Test::new(model).start(payer(), ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("no approval is requested") };
    assert_eq!(pending.len(), 1);
    run.approve(&Path::parse("Pay/1.0").unwrap(), "ann").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 50);
    let log = run.events(Seq(0)).await.unwrap();
    let results = results(&log);
    assert_eq!(results[0], ToolResult::error("the guard `At most 100` refused the call: it is too much"));
    assert_eq!(results[1], ToolResult::success("paid 50 with card ****"));
    let replaced = log.iter().find(|event| event.kind.name() == "LOOP_GUARD_REPLACED").unwrap();
    assert_eq!(replaced.path.as_str(), "Pay/1.0");
}

#[tokio::test(start_paused = true)]
async fn arguments_that_a_person_has_edited_are_checked_again() {
    let model = ScriptedModel::new([Reply::call("pay", json!({ "amount": 50 })), Reply::text("Done.")]);
    let run = Test::new(model).start(payer(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let call = Path::parse("Pay/0.0").unwrap();
    let approve = SignalKind::Approve { call, arguments: Some(json!({ "amount": 500 })) };
    run.signal(approve, "ann").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 0);
    let log = run.events(Seq(0)).await.unwrap();
    assert_eq!(results(&log)[0], ToolResult::error("the guard `At most 100` refused the call: it is too much"));
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Seen(u32);

impl PluginState for Seen {
    const NAME: &'static str = "censor";
}

struct Censor {
    vetoes: bool,
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Censor {
    type State = Seen;

    const GUARDS: bool = true;

    fn initial(&self) -> Seen {
        Seen::default()
    }

    async fn request(&self, _: &mut RequestEdit<'_, O, S, V, Seen>) -> Result<()> {
        if self.vetoes { Err(Error::new("not today")) } else { Ok(()) }
    }

    async fn response(&self, cx: &mut ResponseInspection<'_, O, S, V, Seen>, response: &ModelResponse) -> Result<()> {
        cx.state.0 += 1;
        cx.decide(no_keys(&response.text()).into());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn plugin_refuses_an_answer_and_its_veto_of_a_request_has_the_code_guard() {
    let guarded = |vetoes| brain("Desk").r#loop("Chat", move |cx| cx.system("Help.").plugin(Censor { vetoes }));
    let model = ScriptedModel::new([Reply::text("It is sk-123."), Reply::text("I cannot tell you.")]);
    let run = Test::new(model).start(guarded(false), ()).await;
    run.result().await.unwrap();
    assert_eq!(run.answer().as_deref(), Some("I cannot tell you."));
    let run = Test::new(ScriptedModel::new([])).start(guarded(true), ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("it has not failed") };
    assert_eq!(failure.code, EndReason::Guard);
    assert!(failure.message.contains("the plugin `censor` refused the request: not today"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn shorter_text_for_the_model_is_checked_like_the_result() {
    let model = Arc::new(ScriptedModel::new([Reply::call("look", json!({})), Reply::text("Done.")]));
    let brain = brain("Shop").r#loop("Look", |cx| {
        cx.system("Look.")
            .tool("look", |t| {
                t.description("Looks").execute(async |_: NoArgs, cx| Ok(cx.result("all is well").brief("card 4111")))
            })
            .guard_result("No cards", async |_, _, result: Arc<Value>| match result.as_str() {
                Some(text) if text.contains("4111") => Verdict::Replace(json!("card ****")),
                _ => Verdict::Pass,
            })
    });
    let run = Test::new(Arc::clone(&model)).start(brain, ()).await;
    run.result().await.unwrap();
    let told: String = model.requests()[1].messages.read().iter().map(|entry| text_of(&entry.message)).collect();
    assert!(told.contains("card ****") && !told.contains("4111"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn edited_arguments_of_a_brain_as_a_tool_are_checked_again() {
    let pay = brain("Pay").options::<Paid>().step("Pay", async |cx| Ok(cx.options.amount)).build();
    let brain = brain("Payer").state(0).r#loop("Pay", move |cx| {
        cx.system("Pay.")
            .tool("pay", |t| t.brain(pay.clone()).approval(|_: &Paid, _| Some("money".to_owned())))
            .guard_call("At most 100", async |_, _, arguments: Arc<Value>| {
                if arguments["amount"].as_u64() > Some(100) { Err("it is too much".to_owned()) } else { Ok(()) }
            })
    });
    let model = ScriptedModel::new([Reply::call("pay", json!({ "amount": 50 })), Reply::text("Done.")]);
    let run = Test::new(model).start(brain, ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let call = Path::parse("Pay/0.0").unwrap();
    run.signal(SignalKind::Approve { call, arguments: Some(json!({ "amount": 500 })) }, "ann").await.unwrap();
    run.result().await.unwrap();
    let results = results(&run.events(Seq(0)).await.unwrap());
    assert!(
        matches!(&results[0], ToolResult::Error { message } if message.contains("refused the call: it is too much")),
        "{results:?}"
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Paid {
    amount: u32,
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_refused_answer_are_in_the_log() {
    let model = ScriptedModel::new([
        Reply::call("count", json!({})).and_text("It is sk-123."),
        Reply::text("I cannot tell you."),
    ]);
    let run = Test::new(model).start(desk(), ()).await;
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let calls = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopAnswerRefused { calls, .. } => Some(calls.clone()),
        _ => None,
    });
    assert_eq!(calls.unwrap()[0].name, "count");
}

#[tokio::test(start_paused = true)]
async fn timeline_says_what_a_guard_has_replaced() {
    let replace = |value: Value| Verdict::Replace(value);
    let brain = brain("Desk").r#loop("Chat", move |cx| {
        cx.system("Help.")
            .input("My card is 4111.")
            .tool("look", |t| t.execute(async |Amount { amount }, _| Ok(amount)))
            .guard_input("Cards", async |_, _| Err("it has a card number".to_owned()))
            .guard_call("At most 100", move |_, _, _| std::future::ready(replace(json!({ "amount": 100 }))))
            .guard_result("Rounded", move |_, _, _| std::future::ready(replace(json!(0))))
            .guard_answer("Short", move |_, answer| {
                std::future::ready(if answer.calls.is_empty() { replace(json!("No.")) } else { Verdict::Pass })
            })
    });
    let model = ScriptedModel::new([Reply::call("look", json!({ "amount": 500 })), Reply::text("I am sorry.")]);
    let run = Test::new(model).start(brain.build(), ()).await;
    run.result().await.unwrap();

    let log = run.events(Seq(0)).await.unwrap();
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    let replaced = timeline.nodes().filter_map(|node| match &node.kind {
        NodeKind::GuardReplaced { guard, what, .. } => Some((guard.as_str(), what.clone())),
        _ => None,
    });
    let withheld = Some("it has a card number".to_owned());
    assert_eq!(
        replaced.collect::<Vec<_>>(),
        [
            ("Cards", GuardedValue::Message { withheld }),
            ("At most 100", GuardedValue::Arguments),
            ("Rounded", GuardedValue::Output),
            ("Short", GuardedValue::Answer),
        ]
    );
}
