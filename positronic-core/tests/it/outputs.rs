//! Outputs of a call: in the record, for people, and for the model.

use positronic_core::dsl::OutputType;
use positronic_core::model::cassette::Cassette;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::{DeltaSink, Model};
use positronic_core::prelude::*;
use positronic_core::projection::{messages, prompts_to_messages, request_for};
use positronic_core::record::{
    Assistant, CallFlags, CallState, CustomOutput, DenialCause, EventKind, FileOutput, FileRef, MadeBy, Message,
    ModelError, ModelRequest, ModelResponse, Output, OutputKind, Part, Prompt, PromptState, Timestamp, ToolOutput,
    ToolResult, WidgetOutput,
};
use positronic_core::runner::Settled;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Play, done, path, prompt, tool_texts};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Citation {
    title: String,
}

impl OutputType for Citation {
    const KIND: &'static str = "citation";

    fn fallback(&self) -> String {
        format!("see {}", self.title)
    }

    fn model_text(&self) -> Option<String> {
        Some(format!("[the user sees {}]", self.title))
    }
}

fn reporter() -> Brain<(), ()> {
    brain("Reporter")
        .r#loop("Report", |cx| {
            cx.system("Report.").input("Go.").tool("report", |t| {
                t.execute(async |_: NoArgs, cx| {
                    cx.display_widget("chart", [1, 2], "a chart")?;
                    cx.add_output(&Citation { title: "On Rust".to_owned() })?;
                    Ok(cx.result(json!({"rows": [1, 2, 3]})).brief("3 rows"))
                })
            })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn application_adds_an_output_without_changing_the_loop() {
    let play = Play::new([Reply::call("report", json!({})), done()]);

    let story = play.run(&reporter(), ()).await;

    let record = prompt(&story, "Report");
    let OutputKind::Custom(custom) = &record.output[2].kind else { panic!("{:?}", record.output) };
    assert_eq!(custom.read::<Citation>().unwrap(), Some(Citation { title: "On Rust".to_owned() }));
    assert_eq!(tool_texts(&play.last_request()), ["3 rows\n[the user sees On Rust]"]);
    insta::assert_snapshot!(story.transcript(), @r#"
    # Report
    user: Go.
    report({}) -> 3 rows
    widget: a chart
    citation: see On Rust
    assistant: Done.
    = {"type":"answered"}
    "#);
}

#[test]
fn output_of_another_type_or_version_is_not_misread() {
    let other = |kind: &str, data: Value| CustomOutput {
        kind: kind.to_owned(),
        data,
        fallback: String::new(),
        model_text: None,
    };

    assert_eq!(other("note", json!({"title": "x"})).read::<Citation>().unwrap(), None);
    assert_eq!(
        other("citation", json!({"name": "x"})).read::<Citation>().unwrap_err().to_string(),
        "cannot decode the recorded output `citation` as `it::outputs::Citation`: missing field `title`"
    );
}

#[tokio::test(start_paused = true)]
async fn record_round_trips_through_json() {
    let play = Play::new([Reply::call("report", json!({})), done()]);
    let record = prompt(&play.run(&reporter(), ()).await, "Report");

    let read: Prompt = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();

    assert_eq!(read, record);
    assert_eq!((record.id, record.visible), (path("Report").public_id(), true));
}

#[tokio::test(start_paused = true)]
async fn hidden_loop_is_marked_in_its_record_and_stays_in_the_history() {
    let quiet =
        brain("Quiet").r#loop("Think", |cx| cx.system("Think.").input("Quietly.").hidden()).r#loop("Say", |cx| {
            let before = prompts_to_messages(cx.record("Think").iter());
            cx.system(format!("You thought {} messages.", before.len()))
        });
    let play = Play::new([Reply::text("Hm."), done()]);

    let story = play.run(&quiet, ()).await;

    assert_eq!([prompt(&story, "Think").visible, prompt(&story, "Say").visible], [false, true]);
    assert_eq!(&*play.last_request().system, "You thought 2 messages.");
}

fn output(kind: OutputKind) -> Output {
    Output { at: Timestamp(1), duration: None, id: None, kind }
}

fn text(iteration: u32, calls: u32) -> Output {
    let text = Part::Text { text: format!("iteration {iteration}") };
    let parts: Vec<_> = std::iter::once(text).chain((0..calls).map(|index| Part::Call { index })).collect();
    output(OutputKind::Text { iteration, parts: parts.into(), cost: None, by: MadeBy::default() })
}

fn call(index: u32, state: CallState, edited: Option<Value>, result: Option<ToolResult>) -> Output {
    output(OutputKind::Tool(Box::new(ToolOutput {
        path: path("Chat").call(0, index),
        flags: CallFlags::default(),
        handed_back: false,
        approval: None,
        tool: "pay.send".to_owned(),
        arguments: std::sync::Arc::new(json!({"to": index})),
        edited,
        state,
        result,
        provider_id: Some(format!("c{index}")),
        data: None,
        answer: None,
    })))
}

fn read(outputs: &[Output]) -> Vec<String> {
    messages(outputs)
        .into_iter()
        .map(|message| match message {
            Message::User { text, .. } => format!("user: {text}"),
            Message::Assistant { parts, .. } => {
                let calls = parts.iter().filter(|part| matches!(part, Assistant::Call { .. })).count();
                format!("assistant: {calls} calls")
            }
            Message::Tool { call, text, .. } => format!("{call}: {text}"),
        })
        .collect()
}

/// Every type of output and result, with the text that the model reads.
#[test]
fn table_shows_the_default_projection() {
    let done = |result| call(0, CallState::Done, None, Some(result));
    let reason = || Some("too dear".to_owned());
    let cases = [
        ("text", text(0, 0), "assistant: 0 calls"),
        (
            "message",
            output(OutputKind::Message { text: "hi".to_owned(), engine: false, files: Vec::new() }),
            "user: hi",
        ),
        ("success", done(ToolResult::success(json!({"n": 1}))), "c0: {\"n\":1}"),
        ("success of text", done(ToolResult::success("ok")), "c0: ok"),
        (
            "success in brief",
            done(ToolResult::Success { output: json!([1]), brief: Some("one".to_owned()) }),
            "c0: one",
        ),
        ("error", done(ToolResult::error("no")), "c0: Error: no"),
        (
            "denied",
            done(ToolResult::Denied { cause: Some(DenialCause::Rejected), reason: reason(), by: None }),
            "c0: Not run: a person rejected this call: too dear",
        ),
        (
            "denied without a reason",
            done(ToolResult::Denied { cause: Some(DenialCause::Rejected), reason: None, by: None }),
            "c0: Not run: a person rejected this call.",
        ),
        (
            "denied by time",
            done(ToolResult::Denied { cause: Some(DenialCause::Expired), reason: reason(), by: None }),
            "c0: Not run: the approval expired.",
        ),
        (
            "denied in an older log",
            done(ToolResult::Denied { cause: None, reason: reason(), by: None }),
            "c0: Denied: a person refused this call: too dear",
        ),
        ("skipped", done(ToolResult::Skipped { reason: "late".to_owned() }), "c0: Skipped: late"),
        ("interrupted", done(ToolResult::Interrupted { reason: "gone".to_owned() }), "c0: Interrupted: gone"),
        ("pending", call(0, CallState::Pending, None, None), "c0: "),
        (
            "edited",
            call(0, CallState::Done, Some(json!({"to": 2})), Some(ToolResult::success("ok"))),
            "c0: A person changed the arguments before the call ran: {\"to\":2}\n\nok",
        ),
    ];
    for (name, case, expected) in cases {
        let of_call = matches!(case.kind, OutputKind::Tool(_));
        let outputs: Vec<_> = of_call.then(|| text(0, 1)).into_iter().chain([case]).collect();

        assert_eq!(read(&outputs).last().map(String::as_str), Some(expected), "{name}");
    }
}

#[test]
fn output_after_a_call_is_in_its_message_or_omitted() {
    let file: FileOutput = FileRef {
        name: "a.md".to_owned(),
        media_type: "text/markdown".to_owned(),
        size: 12,
        sha256: "00".to_owned(),
        uri: "memory:a".to_owned(),
    }
    .into();
    let widget =
        WidgetOutput { kind: "chart".to_owned(), data: json!(1), fallback: "a chart".to_owned(), replaces: None };
    let custom = |model_text: Option<&str>| CustomOutput {
        kind: "note".to_owned(),
        data: json!(1),
        fallback: "a note".to_owned(),
        model_text: model_text.map(str::to_owned),
    };
    let ok = |index| call(index, CallState::Done, None, Some(ToolResult::success("ok")));
    let outputs = [
        text(0, 2),
        ok(0),
        output(OutputKind::Widget(Box::new(widget))),
        output(OutputKind::File(Box::new(file))),
        output(OutputKind::Custom(Box::new(custom(Some("noted"))))),
        output(OutputKind::Custom(Box::new(custom(None)))),
        ok(1),
        text(1, 0),
    ];

    assert_eq!(
        read(&outputs),
        ["assistant: 2 calls", "c0: ok\n[file a.md, text/markdown, 12 bytes]\nnoted", "c1: ok", "assistant: 0 calls"]
    );
}

/// A model that also reads widgets.
#[derive(Debug)]
pub(crate) struct Sighted(pub(crate) ScriptedModel);

impl Model for Sighted {
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
        let widgets = outputs.iter().filter_map(|output| match &output.kind {
            OutputKind::Widget(widget) => Some(Message::user(format!("[{}]", widget.fallback))),
            _ => None,
        });
        Some(messages(outputs).into_iter().chain(widgets).collect())
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.0.wire(request)
    }
}

#[tokio::test(start_paused = true)]
async fn model_defines_its_own_projection_and_its_requests_are_rebuilt_with_it() {
    let model = std::sync::Arc::new(Sighted(ScriptedModel::new([Reply::call("report", json!({})), done()])));
    let test = positronic_core::testing::Test::new(std::sync::Arc::clone(&model));

    let story = test.run(&reporter(), ()).await;

    let sent = model.0.requests().pop().unwrap();
    assert_eq!(sent.messages.messages().last(), Some(&Message::user("[a chart]")));
    let asked = story.log().iter().rev().find(|event| matches!(event.kind, EventKind::LoopModelCall { .. })).unwrap();
    let rebuilt =
        request_for(story.log().iter().map(|event| &**event), asked.seq, Vec::new(), |outputs| model.project(outputs));
    assert_eq!(model.wire(&rebuilt.unwrap()), model.wire(&sent));
    assert_eq!(prompt(&story, "Report").state, PromptState::Completed);
}

#[tokio::test(start_paused = true)]
async fn recording_keeps_the_models_own_projection_and_plays_it() {
    let model = std::sync::Arc::new(Sighted(ScriptedModel::new([Reply::call("report", json!({})), done()])));
    let recording = std::sync::Arc::new(Cassette::record(std::sync::Arc::clone(&model) as std::sync::Arc<dyn Model>));
    positronic_core::testing::Test::new(std::sync::Arc::clone(&recording)).run(&reporter(), ()).await;
    let sent = model.0.requests().pop().unwrap();
    assert_eq!(sent.messages.messages().last(), Some(&Message::user("[a chart]")));

    let play = || Cassette::replay(&recording.to_text()).unwrap();
    let alike = positronic_core::testing::Test::new(play().like(model)).run(&reporter(), ()).await;
    let otherwise = positronic_core::testing::Test::new(play()).run(&reporter(), ()).await;

    assert!(matches!(alike.settled(), Settled::Completed(_)), "{:?}", alike.settled());
    let Settled::Failed(failure) = otherwise.settled() else { panic!("another request is answered") };
    assert!(failure.message.contains("differs from the recorded one"), "{}", failure.message);
}
