//! Structured actions: the request, refused answers and retries, and a record equal to that of any loop.

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::Costs;
use positronic_core::record::{
    ActionFormat, Actor, Assistant, EndReason, EventKind, Message, ModelError, ModelErrorKind, ModelRequest,
    OrderedJson, OutputFormat, Part, Seq, SignalKind, ToolResult, Usage,
};
use positronic_core::runner::{Fork, Settled};
use positronic_core::sink::Recorder;
use positronic_core::testing::Story;
use serde_json::{Value, json};

use crate::support::{
    Board, Journal, Play, ShopBuilder, ShopLoop, calls, events_named, path, prompt, results, waits, worker, workshop,
};

fn job(id: &str) -> Value {
    json!({ "id": id })
}

/// Adds the actions `safe`, `gated.job` (needs an approval) and `finish` (ends the loop).
fn actions(config: ShopLoop) -> ShopLoop {
    config.tools([
        worker("safe", |t| t),
        worker("gated.job", |t| t.requires_approval("it is dangerous")),
        worker("finish", ShopBuilder::exit),
    ])
}

fn deciding(journal: &Journal) -> Brain<(), Board> {
    workshop(journal, |config| actions(config).structured_actions())
}

fn finish() -> Reply {
    Reply::action("All is done.", "finish", job("end"))
}

/// Renders a request's messages, one per line.
fn render_messages(request: &ModelRequest) -> Vec<String> {
    let line = |message| match message {
        Message::User { text, .. } => format!("user: {text}"),
        Message::Assistant { parts, .. } => parts
            .into_iter()
            .map(|part| match part {
                Assistant::Text { text } => format!("assistant: {text}"),
                other => format!("{other:?}"),
            })
            .collect(),
        Message::Tool { text, .. } => format!("tool: {text}"),
    };
    request.messages.messages().into_iter().map(line).collect()
}

/// Returns the error of each refused answer.
fn refused(story: &Story) -> Vec<(u32, String)> {
    let refused = story.log().iter().filter_map(|event| match &event.kind {
        EventKind::LoopAnswerRefused { attempt, message, .. } => Some((*attempt, message.clone())),
        _ => None,
    });
    refused.collect()
}

fn failure(story: &Story) -> (EndReason, String) {
    match story.settled() {
        Settled::Failed(failure) => (failure.code, failure.message.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn structured_action_is_a_call_with_a_reason_and_its_result_is_read_next() {
    let journal = Journal::default();
    let play = Play::new([Reply::action("It is due.", "safe", job("a")), finish()]);

    let story = play.run(&deciding(&journal), ()).await;

    assert_eq!(journal.take(), ["a", "end"]);
    assert_eq!(results(&story, "Work"), [ToolResult::success("a done"), ToolResult::success("end done")]);
    let record = prompt(&story, "Work").output;
    let parts = record[0].kind.parts().unwrap();
    assert_eq!(**parts, [Part::Reasoning { text: "It is due.".to_owned(), data: None }, Part::Call { index: 0 }]);
    assert_eq!(
        render_messages(&play.last_request()),
        [
            "user: begin",
            "assistant: {\"reasoning\":\"It is due.\",\"action\":\"safe\",\"input\":{\"id\":\"a\"}}",
            "user: The result of `safe`:\na done"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn request_has_no_tools_and_lists_actions_in_text_and_as_a_format() {
    let play = Play::new([finish()]);

    play.run(&deciding(&Journal::default()), ()).await;

    let request = play.last_request();
    assert!(request.tools.tools().is_empty());
    let told = &request.system;
    assert!(request.context.is_empty(), "the description of the actions does not change from request to request");
    for part in
        ["safe: Does a safe job\n", "gated.job: ", "finish: Does a finish job When it succeeds, the task is finished."]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(!told.contains("JSON schema"), "the answer format contains the schemas: {told}");
    let OutputFormat::JsonSchema { name, schema } = &request.settings.output else { panic!("{:?}", request.settings) };
    assert_eq!(name, "action");
    assert_eq!(schema["type"], "object", "providers want one object at the root");
    assert_eq!(schema["properties"]["action"]["enum"], json!(["safe", "gated.job", "finish"]));
    assert_eq!(schema["properties"]["input"]["required"], json!(["id"]), "all inputs are alike");
    assert_eq!(request.settings.structured_actions, None);
}

#[tokio::test(start_paused = true)]
async fn loop_format_overrides_the_models_format() {
    struct Talker(ScriptedModel);
    impl positronic_core::model::Model for Talker {
        fn name(&self) -> String {
            self.0.name()
        }
        fn call<'a>(
            &'a self,
            request: &'a ModelRequest,
            deltas: &'a dyn positronic_core::model::DeltaSink,
        ) -> futures::future::BoxFuture<'a, Result<positronic_core::record::ModelResponse, ModelError>> {
            self.0.call(request, deltas)
        }
        fn action_format(&self) -> ActionFormat {
            ActionFormat::Plain
        }
        fn wire(&self, request: &ModelRequest) -> String {
            self.0.wire(request)
        }
    }
    let journal = Journal::default();
    let plain = workshop(&journal, |config| actions(config).action_format(ActionFormat::Plain));
    let grammar = workshop(&journal, |config| actions(config).action_format(ActionFormat::Grammar));

    let play = Play::new([Reply::text(
        "Well: ```json\n{\"reasoning\":\"so\",\"action\":\"finish\",\"input\":{\"id\":\"x\"}}\n```",
    )]);
    let story = play.run(&plain, ()).await;
    assert_eq!(play.last_request().settings.output, OutputFormat::Text);
    assert!(matches!(story.settled(), Settled::Completed(_)));

    let play = Play::new([finish()]);
    play.run(&grammar, ()).await;
    let OutputFormat::JsonSchema { schema, .. } = &play.last_request().settings.output else { panic!() };
    let schema = OrderedJson::of_schema(schema).to_string();
    assert!(schema.starts_with("{\"anyOf\":[{\"type\":\"object\",\"properties\":{\"reasoning\""), "{schema}");

    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sees = std::sync::Arc::clone(&seen);
    let model = ScriptedModel::from_fn(move |request| {
        sees.lock().unwrap().push(request.settings.output.clone());
        finish()
    });
    let test = positronic_core::testing::Test::new(Talker(model));
    let story = test.run(&deciding(&journal), ()).await;
    assert_eq!(*seen.lock().unwrap(), [OutputFormat::Text], "as the model says");
    assert!(
        story.json_lines().contains("\"structured_actions\":{\"form\":\"plain\"}"),
        "so the request can be rebuilt"
    );
    test.run(&grammar, ()).await;
    assert!(matches!(seen.lock().unwrap()[1], OutputFormat::JsonSchema { .. }), "as the loop says");
}

#[tokio::test(start_paused = true)]
async fn misfit_is_requested_again_with_the_error_and_dropped_afterwards() {
    let journal = Journal::default();
    let usage = |input| Usage { input, output: 1, ..Usage::default() };
    let play = Play::new([
        Reply::text("I would do it.").usage(usage(10)),
        Reply::action("Quick.", "dance", json!({})).usage(usage(20)),
        Reply::action("Quick.", "safe", json!({ "id": 7 })).usage(usage(30)),
        Reply::action("So be it.", "safe", job("a")).usage(usage(40)),
        finish().usage(usage(50)),
    ]);

    let story = play.run(&deciding(&journal), ()).await;

    assert_eq!(journal.take(), ["a", "end"], "nothing that was refused did anything");
    assert_eq!(
        refused(&story),
        [
            (0, "the answer has no JSON object".to_owned()),
            (1, "there is no action `dance`; the actions are `safe`, `gated.job`, `finish`".to_owned()),
            (2, "the input of `safe` does not match its schema: at `/id`: 7 is not of type \"string\"".to_owned()),
        ]
    );
    assert_eq!(events_named(&story, "LOOP_MODEL_CALL"), ["Work/0", "Work/0", "Work/0", "Work/0", "Work/1"]);
    let requests = play.requests();
    let again = render_messages(&requests[3]);
    assert_eq!(again.len(), 7, "{again:#?}");
    assert_eq!(again[1], "assistant: I would do it.");
    assert_eq!(
        again[6],
        "user: That answer is not a valid action and had no effect: the input of `safe` does not match its schema: at `/id`: 7 is not of type \
         \"string\". Answer again with one JSON object of the form above and nothing else."
    );
    assert_eq!(render_messages(&requests[4]).len(), 3, "the next iteration begins as if it had been right at once");
    let used = prompt(&story, "Work").usage;
    assert_eq!((used.input, used.output), (150, 5), "refused answers count as usage");
    let costs = Costs::of(story.log().iter().map(|event| &**event), &PriceTable::bundled());
    assert_eq!((costs.total().calls, costs.total().usage.input), (5, 150));
}

#[tokio::test(start_paused = true)]
async fn model_that_never_fits_fails_the_run_with_a_typed_error_and_logs_every_attempt() {
    let play = Play::of(
        ScriptedModel::from_fn(|_| Reply::text("Hello!").usage(Usage { input: 3, output: 1, ..Usage::default() })),
        true,
    );

    let story = play.run(&deciding(&Journal::default()), ()).await;

    let sentence =
        "the model of the loop `Work` was asked 4 times and gave no valid action: the answer has no JSON object";
    assert_eq!(failure(&story), (EndReason::Action, sentence.to_owned()));
    assert_eq!(refused(&story).iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(story.json_lines().matches("\"text\":\"Hello!\"").count(), 4);
    let used = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopComplete { usage, .. } => Some(usage.total()),
        _ => None,
    });
    assert_eq!(used, Some(16), "the last attempt counts, too");
}

#[tokio::test(start_paused = true)]
async fn author_sets_the_number_of_attempts() {
    let never = workshop(&Journal::default(), |config| actions(config).action_retries(0));
    let play = Play::new([Reply::text("Hello!")]);

    let story = play.run(&never, ()).await;

    let sentence =
        "the model of the loop `Work` was asked once and gave no valid action: the answer has no JSON object";
    assert_eq!(failure(&story), (EndReason::Action, sentence.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn model_failures_and_misfits_are_counted_separately() {
    let down = || Reply::error(ModelError::new(ModelErrorKind::Server, "down"));
    let silly = || Reply::text("Hello!");
    let play = Play::new([silly(), down(), silly(), down(), silly(), down(), finish()]);

    let story = play.run(&deciding(&Journal::default()), ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    assert_eq!(refused(&story).iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [0, 2, 4]);
    assert_eq!(events_named(&story, "LOOP_MODEL_RETRY").len(), 3);
    assert_eq!(render_messages(&play.last_request()).len(), 7, "the misfit is reported again after a failure");
}

#[tokio::test(start_paused = true)]
async fn failure_suggests_a_remedy() {
    let refuses = Reply::error(ModelError::new(ModelErrorKind::BadRequest, "no such format"));
    let hour = Some(Duration::from_hours(1));
    let waits = Reply::error(ModelError { retry_after: hour, ..ModelError::new(ModelErrorKind::RateLimited, "slow") });
    let cases = [
        (
            refuses,
            "describe the actions in the prompt: `ActionFormat::Plain`, on the command line `--action-format plain`",
        ),
        (waits, "it asks to wait 3600 s before it is asked again"),
    ];
    for (reply, advice) in cases {
        let story = Play::new([reply]).run(&deciding(&Journal::default()), ()).await;

        assert!(failure(&story).1.ends_with(advice), "{}", failure(&story).1);
    }
}

#[tokio::test(start_paused = true)]
async fn batch_runs_several_actions_and_their_results_are_read_together() {
    let journal = Journal::default();
    let batches = workshop(&journal, |config| actions(config).structured_actions_in_batches());
    let play = Play::new([
        Reply::actions("Both are due.", [("safe", job("a")), ("safe", json!({ "id": "b", "fails": true }))]),
        Reply::actions("Done.", [("finish", job("end"))]),
    ]);

    let story = play.run(&batches, ()).await;

    assert_eq!(journal.take(), ["a", "b", "end"]);
    assert_eq!(results(&story, "Work")[1], ToolResult::error("b broke"), "a failed action is a result to be read");
    assert_eq!(
        render_messages(&play.last_request())[1..],
        [
            "assistant: {\"reasoning\":\"Both are due.\",\"actions\":[{\"action\":\"safe\",\"input\":{\"id\":\"a\"}},{\"action\":\
             \"safe\",\"input\":{\"fails\":true,\"id\":\"b\"}}]}",
            "user: The result of `safe`:\na done\n\nThe result of `safe`:\nError: b broke"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn one_invalid_action_refuses_the_whole_batch_before_it_runs() {
    let journal = Journal::default();
    let batches = workshop(&journal, |config| actions(config).structured_actions_in_batches());
    let play = Play::new([
        Reply::actions("Both.", [("safe", job("a")), ("dance", json!({}))]),
        Reply::actions("None.", []),
        Reply::action("One.", "finish", job("x")),
        Reply::actions("Done.", [("finish", job("end"))]),
    ]);

    let story = play.run(&batches, ()).await;

    assert_eq!(journal.take(), ["end"]);
    assert_eq!(refused(&story).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn structured_action_asks_for_approval_and_a_tool_id_keeps_its_dot() {
    let journal = Journal::default();
    let play = Play::new([Reply::action("Risky, but due.", "gated.job", job("a")), finish()]);
    let run = play.start(&deciding(&journal), ()).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    assert!(journal.take().is_empty());

    let edited = SignalKind::Approve { call: path("Work/0.0"), arguments: Some(job("b")) };
    run.signal(edited, Actor::default()).await.unwrap();
    let story = play.story(&run).await;

    assert_eq!(journal.take(), ["b", "end"]);
    assert_eq!(calls(&story, "Work")[0].tool, "gated.job");
    let next = render_messages(&play.last_request());
    assert!(next[1].contains("\"action\":\"gated.job\""), "{next:?}");
    assert!(next[2].starts_with("user: The result of `gated.job`:\nA person changed the arguments"), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn structured_loop_without_an_exit_action_is_refused() {
    let endless = workshop(&Journal::default(), |config| config.tools([worker("safe", |t| t)]).structured_actions());
    let play = Play::new([]);

    let story = play.run(&endless, ()).await;

    assert_eq!(
        failure(&story),
        (
            EndReason::Config,
            "the loop `Work` cannot be configured: it asks for structured actions, and none of its \
             actions ends the loop; mark one with `.exit()` or name one in `exit_on`"
                .to_owned()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn people_see_the_streamed_reason_without_json() {
    let recorder = Recorder::default();
    let sink = recorder.clone();
    let play = Play::new([Reply::action("It is due now.", "safe", job("a")), finish()]).map(|runner| runner.sink(sink));

    play.run(&deciding(&Journal::default()), ()).await;

    let deltas = recorder.deltas();
    let shown: String =
        deltas.iter().filter(|delta| delta.path == path("Work/0")).map(|delta| delta.text.as_str()).collect();
    assert_eq!(shown, "It is due now.");
    assert!(deltas.iter().all(|delta| delta.kind == positronic_core::record::DeltaKind::Reasoning), "{deltas:?}");
}

#[tokio::test(start_paused = true)]
async fn tool_calling_conversation_continues_with_structured_actions() {
    let journal = Journal::default();
    let tools = || [worker("safe", |t| t), worker("finish", ShopBuilder::exit)];
    let calling = brain("Calling")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| cx.system("").tools(tools()))
        .bind(journal.clone());
    let deciding = brain("Deciding")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| cx.system("").structured_actions().tools(tools()))
        .bind(journal.clone());
    let play = Play::new([
        Reply::calls([("safe", job("a")), ("safe", job("b"))]).and_text("Let me see."),
        Reply::call("finish", job("c")),
        finish(),
    ]);
    let chat = play.test.runner().conversation("c");
    chat.send(&calling, (), "one").await.unwrap().result().await.unwrap();

    chat.send(&deciding, (), "two").await.unwrap().result().await.unwrap();

    assert_eq!(
        render_messages(&play.last_request()),
        [
            "user: one",
            "assistant: {\"reasoning\":\"Let me see.\",\"actions\":[{\"action\":\"safe\",\"input\":{\"id\":\"a\"}},{\"action\":\
             \"safe\",\"input\":{\"id\":\"b\"}}]}",
            "user: The result of `safe`:\na done\n\nThe result of `safe`:\nb done",
            "assistant: {\"reasoning\":\"\",\"action\":\"finish\",\"input\":{\"id\":\"c\"}}",
            "user: The result of `finish`:\nc done\n\ntwo",
        ]
    );
    play.model.assert_used();
}

#[tokio::test(start_paused = true)]
async fn run_that_failed_on_misfits_continues_in_a_fork() {
    let journal = Journal::default();
    let silly = || Reply::text("Hello!");
    let play = Play::new([Reply::action("Due.", "safe", job("a")), silly(), silly(), silly(), silly(), finish()]);
    let brain = deciding(&journal);
    let run = play.start(&brain, ()).await;
    let story = play.story(&run).await;
    assert_eq!(failure(&story).0, EndReason::Action);
    let last_good = story.log().iter().rfind(|event| event.kind.name() == "LOOP_TOOL_RESULT").unwrap().seq;

    let again = play.test.runner().clone().brain(&brain);
    let fork = again.fork(run.id(), last_good, Fork::default()).await.unwrap();

    assert!(matches!(fork.settled().await, Settled::Completed(_)));
    assert_eq!(journal.take(), ["a", "end"], "completed effects are not repeated");
    assert!(fork.events(Seq(0)).await.unwrap().len() > last_good.index());
}
