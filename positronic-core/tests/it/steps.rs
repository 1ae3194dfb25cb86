//! Steps: errors, retries, panics, and recorded questions to a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::{DeltaSink, Model};
use positronic_core::prelude::*;
use positronic_core::record::{
    Actor, Budget, EndReason, EventKind, ModelError, ModelErrorKind, ModelRequest, ModelResponse, OutputFormat,
    Overrides, Settings, SignalId, Start, Tier, Usage, UserMessage,
};
use positronic_core::runner::{Difference, Settled, StartError};
use positronic_core::store::MemoryStore;
use positronic_core::testing::Test;
use positronic_store_suite::{Fault, FaultyStore};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Play, events_named};

/// Counts its tries. Clones share the count.
#[derive(Clone, Default)]
struct Tries(Arc<AtomicU32>);

impl Tries {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

#[tokio::test(start_paused = true)]
async fn transient_step_failure_is_retried_with_backoff() {
    let tries = Tries::default();
    let flaky = brain("Flaky")
        .services::<Tries>()
        .state(5)
        .step("Try", async |cx| {
            assert_eq!(cx.idempotency_key(), "run-1:Try");
            match cx.services.next() {
                3 => Ok(cx.state + 1),
                n => Err(Error::transient(format!("try {n} failed"))),
            }
        })
        .bind(tries);

    let story = Play::new([]).run(&flaky, ()).await;

    assert_eq!(*story.settled(), Settled::Completed(json!(6)), "every try sees the state before the step");
    let retries: Vec<_> = story
        .log()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::StepRetry { attempt, message, due } => Some((*attempt, message.as_str(), due.since(event.at))),
            _ => None,
        })
        .collect();
    assert_eq!(retries, [(0, "try 1 failed", Duration::from_millis(500)), (1, "try 2 failed", Duration::from_secs(1))]);
}

#[tokio::test(start_paused = true)]
async fn exhausted_retries_report_that_another_try_may_help() {
    let hopeless = brain("Hopeless").step("Try", async |_| -> Result<()> { Err(Error::transient("down")) });

    let story = Play::new([]).run(&hopeless, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!((failure.code, failure.retryable), (EndReason::Step, true));
    assert_eq!(failure.message, "the step `Try` failed: down");
    assert_eq!(events_named(&story, "STEP_START").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn error_and_panic_fail_the_brain_with_their_message() {
    let parse = brain("Parse").step("Parse", async |_| Ok("x".parse::<u32>()?));
    let story = Play::new([]).run(&parse, ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.message, "the step `Parse` failed: invalid digit found in string");
    assert!(!failure.retryable);

    let panics = brain("Panics").step("Fall", async |_| -> Result<u32> { panic!("oh no") });
    let play = Play::new([]);
    let run = play.start(&panics, ()).await;
    assert_eq!(run.result().await.unwrap_err().to_string(), "the step `Fall` failed: the code panicked: oh no");
    play.story(&run).await;
}

#[tokio::test(start_paused = true)]
async fn state_that_does_not_decode_from_its_own_json_fails_its_step() {
    #[derive(Serialize, Deserialize)]
    struct Lossy {
        #[serde(skip_serializing)]
        needed: u32,
    }
    let lossy =
        brain("Lossy").step("Make", async |_| Ok(Lossy { needed: 1 })).step("Read", async |cx| Ok(cx.state.needed));

    let story = Play::new([]).run(&lossy, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.starts_with("the step `Make` failed"), "{failure}");
    assert!(failure.message.contains("Lossy` from its own JSON: missing field `needed`"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn answered_question_is_recorded_and_not_asked_again_by_a_retry() {
    let tries = Tries::default();
    let asking = brain("Asking")
        .services::<Tries>()
        .step("Ask", async |cx| {
            let one = cx.model().system("Be brief.").ask("What is one?").await?;
            let same = cx.model().system("Be brief.").ask("What is one?").await?;
            if cx.services.next() < 3 {
                return Err(Error::transient("later"));
            }
            let two = cx.model().ask("What is two?").await?;
            Ok([one, same, two])
        })
        .bind(tries);
    let usage = Usage { input: 3, output: 4, ..Usage::default() };
    let play = Play::new([Reply::text("1").usage(usage), Reply::text("1 again").usage(usage), Reply::text("2")]);

    let run = play.start(&asking, ()).await;

    assert_eq!(run.result().await.unwrap(), ["1", "1 again", "2"], "each question gets its own answer");
    let story = play.story(&run).await;
    assert_eq!(events_named(&story, "LOOP_MODEL_CALL"), ["Ask/0", "Ask/1", "Ask/2"]);
    assert_eq!(events_named(&story, "STEP_RETRY").len(), 2);
    assert_eq!(run.state().root.unwrap().usage.total(), 14);
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Verdict {
    spam: bool,
}

#[tokio::test(start_paused = true)]
async fn question_can_ask_for_a_type() {
    let judge = brain("Judge").step("Judge", async |cx| {
        let settings = Settings::builder().temperature(0.0).build();
        cx.model().settings(settings).tier(Tier::High).ask_for::<Verdict>("Is it spam?").await
    });
    let play = Play::new([Reply::text("{\"spam\": true}")]);
    let run = play.start(&judge, ()).await;

    assert_eq!(run.result().await.unwrap(), Verdict { spam: true });

    play.story(&run).await;
    let settings = play.last_request().settings;
    assert_eq!((settings.temperature, settings.tier), (Some(0.0), Tier::High));
    assert!(matches!(&settings.output, OutputFormat::JsonSchema { name, .. } if name == "Verdict"));
}

#[tokio::test(start_paused = true)]
async fn answer_of_another_form_fails_without_retries() {
    for (answer, reason) in [
        ("maybe", "expected value"),
        ("{\"spam\": 7}", "at `/spam`: 7 is not of type \"boolean\""),
        ("{\"spam\": 18446744073709551617}", "it has a number with too many digits at `/spam`: 18446744073709551617"),
    ] {
        let judge = brain("Judge").step("Judge", async |cx| cx.model().ask_for::<Verdict>("Is it spam?").await);
        let play = Play::new((0..3).map(|_| Reply::text(answer)));

        let story = play.run(&judge, ()).await;

        let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
        assert!(
            failure.message.contains("the model's answer does not match the schema")
                && failure.message.contains(reason),
            "{failure}"
        );
        assert_eq!(events_named(&story, "STEP_RETRY").len(), 0, "another try would get the recorded answer");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_question_is_sent_again_with_an_event_each_time() {
    let asking = brain("Asking").step("Ask", async |cx| cx.model().ask("Anybody?").await);
    let busy = || Reply::error(ModelError::new(ModelErrorKind::Server, "busy"));
    let play = Play::new([busy(), busy(), Reply::text("yes")]);
    let run = play.start(&asking, ()).await;

    assert_eq!(run.result().await.unwrap(), "yes");

    let story = play.story(&run).await;
    assert_eq!(events_named(&story, "LOOP_MODEL_RETRY"), ["Ask/0", "Ask/0"]);

    let play = Play::new([Reply::error(ModelError::new(ModelErrorKind::Auth, "no key"))]);
    let story = play.run(&asking, ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.message, "the step `Ask` failed: the model failed: no key");
}

#[tokio::test(start_paused = true)]
async fn failed_model_call_is_repeated_unchanged_and_then_fails_the_brain() {
    let talk = brain("Talk").r#loop("Chat", |cx| cx.system("Talk.").input("hi"));
    let slow = ModelError {
        retry_after: Some(Duration::from_secs(7)),
        ..ModelError::new(ModelErrorKind::RateLimited, "slow down")
    };
    let play = Play::new([Reply::error(slow), Reply::text("hello")]);
    let story = play.run(&talk, ()).await;
    let calls: Vec<_> = story.log().iter().filter(|event| event.kind.name() == "LOOP_MODEL_CALL").collect();
    assert_eq!(calls[1].at.since(calls[0].at), Duration::from_secs(7), "the provider's own wait");
    let requests = play.requests();
    assert_eq!((requests[0].attempt, requests[1].attempt), (0, 1));

    let down = || Reply::error(ModelError::new(ModelErrorKind::Connection, "nobody there"));
    let play = Play::new([down(), down(), down(), down()]);
    let story = play.run(&talk, ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.code, EndReason::Model);
    assert_eq!(failure.message, "the model of the loop `Chat` failed 4 times: nobody there");
    assert_eq!(events_named(&story, "LOOP_COMPLETE"), ["Chat"], "a loop's last event is always there");
}

/// Panics before it returns a future.
#[derive(Debug)]
struct Rash;

impl Model for Rash {
    fn name(&self) -> String {
        "rash/rash".to_owned()
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        panic!("no such model")
    }

    fn wire(&self, _: &ModelRequest) -> String {
        String::new()
    }
}

#[tokio::test(start_paused = true)]
async fn model_panic_before_the_answer_fails_the_brain_with_its_message() {
    let chat = brain("Chat").r#loop("Chat", |cx| cx.system("").input("Hi"));

    let story = Test::new(Rash).run(&chat, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.ends_with("the code panicked: no such model"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn unavailable_services_fail_the_brain_without_a_hang() {
    let inner = brain("Inner").services::<String>().step("Read", async |cx| Ok(cx.services.len()));
    let inner = inner.provide(|_: &()| -> String { panic!("no services") });
    let outer = brain("Outer").brain("Inner", inner).map_output(|_, length: usize| length);

    let run = Test::new(Rash).start(&outer, ()).await;

    let error = run.result().await.unwrap_err().to_string();
    let why = "the services of the brain `Inner` cannot be provided: the code panicked: no services";
    assert!(error.ends_with(why), "{error}");
}

#[tokio::test(start_paused = true)]
async fn start_id_starts_one_run() {
    let one = brain("One").step("One", async |_| Ok(1));
    let other = brain("Other").step("One", async |_| Ok(1));
    let test = Test::new(Rash);
    let start = || Start { id: Some(SignalId::from("start-7".to_owned())), ..Start::default() };

    let run = test.runner().start_with(&one, (), start()).await.unwrap();
    assert_eq!(run.result().await, Ok(1));
    let again = test.runner().start_with(&one, (), start()).await.unwrap();
    let another = test.runner().start_with(&other, (), start()).await;

    assert_eq!(run.id().as_str(), "start-7");
    assert_eq!((again.id(), again.result().await), (run.id(), Ok(1)));
    assert_eq!(
        again.events(positronic_core::record::Seq(0)).await.unwrap(),
        run.events(positronic_core::record::Seq(0)).await.unwrap()
    );
    assert!(matches!(another, Err(StartError::Started { run, .. }) if run.as_str() == "start-7"));
}

#[tokio::test(start_paused = true)]
async fn start_id_does_not_reveal_a_run_of_another_user() {
    let one = brain("One").step("One", async |_| Ok(1));
    let test = Test::new(Rash);
    let start = |id: &str, user: &str, conversation: &str| Start {
        id: Some(SignalId::from(id)),
        user: Some(user.to_owned()),
        conversation: Some(conversation.to_owned()),
        ..Start::default()
    };
    let runner = test.runner();
    runner.start_with(&one, (), start("a", "ann", "first")).await.unwrap();
    let unnamed = runner.start(&one, ()).await.unwrap();
    let unnamed = Start { id: Some(SignalId::from(unnamed.id().as_str())), ..Start::default() };

    assert!(runner.start_with(&one, (), start("a", "ann", "first")).await.is_ok());
    for other in [start("a", "bob", "first"), start("a", "ann", "second"), unnamed] {
        let started = runner.start_with(&one, (), other).await;
        assert!(matches!(started, Err(StartError::Started { .. })), "{started:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn start_with_a_known_id_and_other_inputs_names_the_difference() {
    let hearing = |title| brain(title).options::<u32>().r#loop("Hear", |cx| cx.system("Hear."));
    let one = || hearing("One").step("One", async |cx| Ok(*cx.options));
    let other = hearing("Other").step("One", async |cx| Ok(*cx.options));
    let test = Test::new(Rash);
    let runner = test.runner();
    let start = || Start {
        id: Some(SignalId::from("a")),
        budget: Some(Budget::default().max_tokens(10)),
        message: Some(UserMessage::new("Hello")),
        ..Start::default()
    };
    runner.start_with(one(), 1, start()).await.unwrap();

    let system = Some("Be brief.".to_owned());
    let starts = [
        (1, Start { budget: Some(Budget::default().max_tokens(11)), ..start() }, vec![Difference::Budget]),
        (1, Start { budget: None, ..start() }, vec![Difference::Budget]),
        (1, Start { overrides: Overrides { system, model: None }, ..start() }, vec![Difference::Overrides]),
        (2, Start { message: None, ..start() }, vec![Difference::Options, Difference::Message]),
        (1, Start { user: Some("ann".to_owned()), ..start() }, vec![Difference::User]),
        (1, Start { tags: vec!["urgent".to_owned()], ..start() }, vec![Difference::Tags]),
        (1, Start { conversation: Some("c".to_owned()), ..start() }, vec![Difference::Conversation]),
    ];
    for (options, start, expected) in starts {
        let Err(StartError::Started { differs, .. }) = runner.start_with(one(), options, start).await else { panic!() };
        assert_eq!(differs, expected);
    }
    let refused = runner.start_with(other, 2, start()).await.map(|_| ()).unwrap_err().to_string();
    assert_eq!(refused, "the run `a` exists and differs: it has another brain, it has other options; use another id");
    let again = Start { actor: Actor { by: Some("ann".to_owned()), ..Actor::default() }, ..start() };
    assert!(runner.start_with(one(), 1, again).await.is_ok(), "a retry may come from another user");
}

#[tokio::test(start_paused = true)]
async fn tags_that_a_list_does_not_show_are_refused() {
    let test = Test::new(Rash);
    let runner = test.runner();
    for (tag, reason) in [
        ("", "it is empty"),
        (" ", "it is empty"),
        ("a\nb", "it has a control character"),
        ("a\0", "it has a control character"),
        ("urgent\u{200b}", "it has an invisible character"),
        ("\u{202e}tnegru", "it has an invisible character"),
    ] {
        let start = Start { tags: vec![tag.to_owned()], ..Start::default() };
        let refused =
            runner.start_with(brain("One").step("One", async |_| Ok(())), (), start).await.map(|_| ()).unwrap_err();
        assert!(refused.to_string().ends_with(reason), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_processes_can_watch_a_run_of_a_known_brain() {
    let shown =
        brain("Shown").state(5).step("One", async |cx| Ok(cx.state + 1)).public(|state| format!("{state} of 6"));
    let store = MemoryStore::new();
    let runner = || Runner::new(ScriptedModel::new([])).store(store.clone());
    let run = runner().start(&shown, ()).await.unwrap();
    run.result().await.unwrap();

    let known = runner().brain(shown).open(run.id()).await.unwrap();
    let unknown = runner().open(run.id()).await.unwrap();

    assert_eq!(run.public().unwrap(), Some(json!("6 of 6")));
    assert_eq!(known.public().unwrap(), Some(json!("6 of 6")));
    let error = unknown.public().unwrap_err();
    assert!(error.to_string().contains("the brain `Shown`, which this runner does not know"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn abandoned_wait_does_not_recompute_the_value() {
    // The value is computed at once but recorded only after the step has abandoned it.
    let store = FaultyStore::new(MemoryStore::new(), |_, append| {
        let records = append.events.iter().any(|event| matches!(event.kind, EventKind::ValueRecorded { .. }));
        records.then_some(Fault::Slow(Duration::from_secs(2)))
    });
    let tries = Tries::default();
    let impatient = brain("Impatient")
        .services::<Tries>()
        .state(0)
        .step("Try", async |cx| {
            let paid = || async { Ok(cx.services.next()) };
            let first = tokio::time::timeout(Duration::from_secs(1), cx.once("paid", paid())).await;
            assert!(first.is_err());
            cx.once("paid", paid()).await
        })
        .bind(tries.clone());
    let runner = Runner::new(ScriptedModel::new([])).store(store);

    let story = Test::with(runner).run(&impatient, ()).await;

    assert_eq!(*story.settled(), Settled::Completed(json!(1)));
    assert_eq!(tries.next(), 2, "it was paid once");
}
