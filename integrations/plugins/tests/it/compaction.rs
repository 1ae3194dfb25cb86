//! Compaction: when older messages become a summary, its request, and how the messages become complete again.

use std::sync::Arc;

use positronic_core::dsl::{IntoBrain as _, Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::{DeltaSink, Model};
use positronic_core::prelude::*;
use positronic_core::projection::{messages, request_for};
use positronic_core::record::{
    EventKind, Message, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Output, SignalKind, Usage,
};
use positronic_core::runner::Settled;
use positronic_plugins::Compaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::crash_everywhere;
use crate::support::boundaries::{Ledger, Tale};
use crate::support::{Play, calls, done, events_named};

#[derive(Deserialize, JsonSchema)]
struct Page {
    page: u32,
}

/// A brain that reads pages; its state switches compaction off.
fn reader(compaction: Compaction) -> Brain<(), bool> {
    brain("Reader")
        .state(false)
        .r#loop("Read", move |cx| {
            cx.system("Read.")
                .input("Read the book.")
                .plugin(compaction.clone().enabled(!*cx.state))
                .tool("read", |t| t.idempotent().execute(async |Page { page }, _| Ok(format!("this is page {page}"))))
                .tool("whole", |t| {
                    t.idempotent().execute(async |whole: Whole, cx| {
                        Ok(cx.result("it is so").update(move |state: &mut bool| *state = whole.whole))
                    })
                })
        })
        .build()
}

#[derive(Deserialize, JsonSchema)]
struct Whole {
    whole: bool,
}

fn read(page: u32) -> Reply {
    Reply::call("read", json!({ "page": page }))
}

fn whole(whole: bool) -> Reply {
    Reply::call("whole", json!({ "whole": whole }))
}

/// Renders a request's messages, one per line.
fn render_messages(request: &ModelRequest) -> String {
    let line = |message| match message {
        Message::User { text, .. } => format!("user: {}", text.trim_end().replace('\n', " | ")),
        Message::Assistant { parts, .. } => format!("assistant: {}", parts.len()),
        Message::Tool { text, .. } => format!("tool: {text}"),
    };
    let lines: Vec<_> = request.messages.messages().into_iter().map(line).collect();
    lines.join("\n")
}

const fn small() -> fn() -> Compaction {
    || Compaction::new().iterations(4).keep(2)
}

#[tokio::test(start_paused = true)]
async fn older_iterations_become_one_summary_that_the_next_summary_includes() {
    let play = Play::new([
        read(1),
        Reply::calls([("read", json!({"page": 2})), ("read", json!({"page": 3}))]),
        read(4),
        read(5),
        Reply::text("Pages 1 to 3 are read.\n"),
        read(6),
        read(7),
        Reply::text("Pages 1 to 5 are read."),
        done(),
    ]);

    let story = play.run(&reader(small()()), ()).await;

    let requests = play.requests();
    insta::assert_snapshot!(render_messages(&requests[4]), @"user: user: Read the book. | assistant calls read: {\"page\":1} | result of read: this is page 1 | assistant calls read: {\"page\":2} | assistant calls read: {\"page\":3} | result of read: this is page 2 | result of read: this is page 3");
    insta::assert_snapshot!(render_messages(&requests[5]), @r"
    user: Summary of the conversation before this point: |  | Pages 1 to 3 are read.
    assistant: 1
    tool: this is page 4
    assistant: 1
    tool: this is page 5
    ");
    insta::assert_snapshot!(render_messages(&requests[7]), @"user: user: Summary of the conversation before this point: |  | Pages 1 to 3 are read. | assistant calls read: {\"page\":4} | result of read: this is page 4 | assistant calls read: {\"page\":5} | result of read: this is page 5");
    insta::assert_snapshot!(render_messages(&requests[8]), @r"
    user: Summary of the conversation before this point: |  | Pages 1 to 5 are read.
    assistant: 1
    tool: this is page 6
    assistant: 1
    tool: this is page 7
    ");
    assert_eq!(events_named(&story, "LOOP_COMPACTED"), ["Read", "Read"]);
    assert_eq!(calls(&story, "Read").len(), 7, "the record is whole");
    assert!(!story.transcript().contains("Summary"), "{}", story.transcript());
}

/// A model with its own rendering of tool results.
#[derive(Debug)]
struct Own(ScriptedModel);

impl Model for Own {
    fn name(&self) -> String {
        self.0.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> futures::future::BoxFuture<'a, std::result::Result<ModelResponse, ModelError>> {
        self.0.call(request, deltas)
    }

    fn project(&self, outputs: &[Output]) -> Option<Vec<Message>> {
        let mut own = messages(outputs);
        for message in &mut own {
            if let Message::Tool { text, .. } = message {
                text.insert_str(0, "own: ");
            }
        }
        Some(own)
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.0.wire(request)
    }
}

#[tokio::test(start_paused = true)]
async fn model_with_its_own_projection_reads_the_summary_and_the_latest_iterations() {
    let answers =
        [read(1), read(2), read(3), read(4), Reply::text("Two pages are read."), whole(true), read(5), done()];
    let model = Arc::new(Own(ScriptedModel::new(answers)));
    let test = positronic_core::testing::Test::new(Arc::clone(&model));

    let story = test.run(&reader(small()()), ()).await;

    let requests = model.0.requests();
    insta::assert_snapshot!(render_messages(&requests[5]), @r"
    user: Summary of the conversation before this point: |  | Two pages are read.
    assistant: 1
    tool: own: this is page 3
    assistant: 1
    tool: own: this is page 4
    ");
    insta::assert_snapshot!(render_messages(&requests[6]), @r"
    user: Read the book.
    assistant: 1
    tool: own: this is page 1
    assistant: 1
    tool: own: this is page 2
    assistant: 1
    tool: own: this is page 3
    assistant: 1
    tool: own: this is page 4
    assistant: 1
    tool: own: it is so
    ");
    let log = || story.log().iter().map(|event| &**event);
    let asked = log().filter(|event| matches!(event.kind, EventKind::LoopModelCall { question: None, .. }));
    for (asked, sent) in asked.zip(requests.iter().filter(|request| !request.tools.tools().is_empty())) {
        let rebuilt = request_for(log(), asked.seq, Vec::new(), |outputs| model.project(outputs)).unwrap();
        assert_eq!(model.wire(&rebuilt), model.wire(sent));
    }
}

#[tokio::test(start_paused = true)]
async fn next_prompt_has_the_summary_and_latest_iterations_in_the_models_projection() {
    let summed = Reply::text("Two pages are read.");
    let answers = [read(1), read(2), read(3), read(4), summed, done(), done()];
    let model = Arc::new(Own(ScriptedModel::new(answers)));
    let runner = positronic_core::runner::Runner::new(Arc::clone(&model));
    let chat = runner.conversation("c");

    chat.send(&reader(small()()), (), "one").await.unwrap().result().await.unwrap();
    chat.send(&reader(small()()), (), "two").await.unwrap().result().await.unwrap();

    let requests = model.0.requests();
    insta::assert_snapshot!(render_messages(requests.last().unwrap()), @r"
    user: Summary of the conversation before this point: |  | Two pages are read.
    assistant: 1
    tool: own: this is page 3
    assistant: 1
    tool: own: this is page 4
    assistant: 1
    user: two
    ");
}

#[tokio::test(start_paused = true)]
async fn message_in_between_stays_with_the_iteration_that_answers_it() {
    let play = Play::new([
        read(1),
        read(2),
        read(3).after(std::time::Duration::from_secs(1)),
        read(4),
        Reply::text("Two pages are read."),
        done(),
    ]);
    let run = play.start(&reader(small()()), ()).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    run.message("Hurry up!", "ann").await.unwrap();

    play.story(&run).await;

    insta::assert_snapshot!(render_messages(&play.last_request()), @r"
    user: Summary of the conversation before this point: |  | Two pages are read.
    assistant: 1
    tool: this is page 3
    user: Hurry up!
    assistant: 1
    tool: this is page 4
    ");
}

#[tokio::test(start_paused = true)]
async fn messages_are_complete_when_compaction_is_off_and_compacted_when_on() {
    let play = Play::new([
        read(1),
        read(2),
        read(3),
        read(4),
        Reply::text("Two pages."),
        whole(true),
        read(5),
        whole(false),
        Reply::text("Five pages."),
        done(),
    ]);

    let story = play.run(&reader(small()()), ()).await;

    let lengths: Vec<_> = play.requests().iter().map(|request| request.messages.len()).collect();
    assert_eq!(lengths, [1, 3, 5, 7, 1, 5, 11, 13, 1, 5]);
    let requests = play.requests();
    assert!(render_messages(&requests[6]).starts_with("user: Read the book.\nassistant: 1\ntool: this is page 1\n"));
    let compacted: Vec<_> =
        story.events().lines().filter(|line| line.contains("COMPACTED")).map(str::to_owned).collect();
    assert!(compacted[1].ends_with("Read LOOP_COMPACTED"), "{compacted:?}");
    assert_eq!(compacted.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn failed_summary_leaves_the_iterations_complete_and_is_retried() {
    let refused = || Reply::error(ModelError::new(ModelErrorKind::BadRequest, "no"));
    let play = Play::new([
        read(1),
        read(2),
        read(3),
        read(4),
        refused(),
        read(5),
        Reply::text("  "),
        read(6),
        Reply::text("Four pages."),
        done(),
    ]);

    let story = play.run(&reader(small()()), ()).await;

    let lengths: Vec<_> = play.requests().iter().map(|request| request.messages.len()).collect();
    assert_eq!(lengths, [1, 3, 5, 7, 1, 9, 1, 11, 1, 5]);
    assert_eq!(events_named(&story, "LOOP_COMPACTED"), ["Read"]);
    assert!(matches!(story.settled(), Settled::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn reported_tokens_are_a_threshold_too() {
    let used = |reply: Reply, input| reply.usage(Usage { input, output: 10, ..Usage::default() });
    let play = Play::new([
        used(read(1), 100),
        used(read(2), 150),
        used(read(3), 200),
        Reply::text("Two pages."),
        used(read(4), 120),
        done(),
    ]);

    play.run(&reader(Compaction::new().keep(1).tokens(200)), ()).await;

    let lengths: Vec<_> = play.requests().iter().map(|request| request.messages.len()).collect();
    assert_eq!(lengths, [1, 3, 5, 1, 3, 5]);
}

#[tokio::test(start_paused = true)]
async fn unreported_usage_is_estimated_from_text_and_short_text_is_not_summarized() {
    let play = Play::new([read(1), read(2), Reply::text("A page."), done()]);
    play.run(&reader(Compaction::new().keep(1).tokens(30)), ()).await;
    let lengths: Vec<_> = play.requests().iter().map(|request| request.messages.len()).collect();
    assert_eq!(lengths, [1, 3, 1, 3]);

    let vast = brain("Vast").r#loop("Read", |cx| {
        cx.system("Read.").plugin(Compaction::new().keep(1).tokens(1000)).tool("read", |t| {
            t.execute(async |Page { page }, _| Ok(if page == 1 { "short".to_owned() } else { "long ".repeat(1000) }))
        })
    });
    let play = Play::new([read(1), read(2), done()]);
    play.run(&vast, ()).await;
    assert_eq!(play.requests().len(), 3, "the long part is preserved, so a summary of the rest gains nothing");
}

#[tokio::test(start_paused = true)]
async fn keeping_more_than_the_threshold_is_refused() {
    let story = Play::new([]).run(&reader(Compaction::new().iterations(5)), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(
        failure.message,
        "the loop `Read` cannot be configured: the plugin `compaction` failed: it is to summarise at 5 iterations and to keep 5 \
         of them; let it keep fewer"
    );
}

#[tokio::test(start_paused = true)]
async fn restart_sends_the_same_requests_and_no_second_summary() {
    let asked = |request: &ModelRequest| request.tools.tools().is_empty();
    let tale = Tale {
        definition: reader(small()()).definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(move |request| match request.path.as_str() {
            _ if asked(request) => Reply::text(format!("{} bytes", ScriptedModel::new([]).wire(request).len())),
            "Read/5" => whole(true),
            "Read/7" => whole(false),
            "Read/11" => done(),
            path => read(path.trim_start_matches("Read/").parse().unwrap()),
        }),
        answers: Arc::new(|_| Vec::<SignalKind>::new()),
    };
    let kept = json!({"loop_at": "Read", "stands": true, "tokens": 0});
    let whole = crash_everywhere(&tale, "compaction", &kept).await;
    let compacted = whole.log.iter().filter(|event| event.kind.name() == "LOOP_COMPACTED").count();
    assert_eq!(compacted, 4, "a summary, none, and two more");
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Nothing {}

impl PluginState for Nothing {
    const NAME: &'static str = "careless";
}

/// Keeps the last message unconditionally.
#[derive(Debug, Clone, Copy)]
struct Careless;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Careless {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        if cx.messages().len() > 4 {
            cx.compact(1, "So far.");
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn result_stays_with_its_call() {
    let careless = brain("Careless").r#loop("Read", |cx| {
        cx.system("Read.").input("Go.").plugin(Careless).tool("read", |t| t.execute(async |Page { page }, _| Ok(page)))
    });
    let both = Reply::calls([("read", json!({"page": 2})), ("read", json!({"page": 3}))]);
    let play = Play::new([read(1), both, done()]);

    play.run(&careless, ()).await;

    assert_eq!(render_messages(&play.last_request()), "user: So far.\nassistant: 2\ntool: 2\ntool: 3");
}
