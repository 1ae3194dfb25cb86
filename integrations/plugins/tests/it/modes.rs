//! Modes: prompt and tools of each, transitions, and how a loop waits and ends.

use std::sync::Arc;

use positronic_core::dsl::{BrainBuilder, IntoBrain as _, Loop, NoServices, Runnable, Staged, Timed, Wait, plugin};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, SignalKind, ToolResult};
use positronic_core::runner::Settled;
use positronic_core::testing::Story;
use positronic_plugins::{CurrentMode, Modes, Toolsets};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::boundaries::crash_everywhere;
use crate::support::boundaries::{Ledger, Tale};
use crate::support::contexts;
use crate::support::{Play, done, error_of, results, success, tool_texts, waits};

#[derive(Deserialize, JsonSchema)]
struct Message {
    text: String,
}

fn slack() -> Wait<Vec<String>> {
    webhook::<Message>("slack").on("thread-7").resume(|done, message| done.push(format!("read {}", message.text)))
}

fn tool(name: &'static str) -> Tool<(), Vec<String>> {
    Tool::new(name, |t| {
        t.idempotent().execute(move |_: NoArgs, cx| async move {
            Ok(cx.result(format!("{name} done")).update(move |done: &mut Vec<String>| done.push(name.to_owned())))
        })
    })
}

/// The modes of a support agent.
fn modes() -> Modes<Vec<String>> {
    Modes::new("gathering_info")
        .mode("gathering_info", |m| {
            m.prompt("First, understand the customer's problem.")
                .tools(["ask", "search_history"])
                .leads_to(["solving", "escalating"])
        })
        .mode("solving", |m| {
            m.description("when the problem is clear")
                .prompt("Now solve the problem.")
                .tools(["search_docs", "refund"])
                .leads_to(["awaiting_response", "resolved"])
        })
        .mode("escalating", |m| m.description("when a person has to help").leads_to(["solving"]))
        .mode("awaiting_response", |m| {
            m.prompt("The customer has answered.").wait([slack()]).leads_to(["gathering_info", "solving", "resolved"])
        })
        .mode("resolved", |m| m.description("when the customer is content").exit())
}

fn chat(config: Loop<(), Vec<String>>) -> Loop<(), Vec<String>> {
    config.input("It leaks.").tools(["ask", "search_history", "search_docs", "refund"].map(tool))
}

fn support(
    modes: impl Fn() -> Modes<Vec<String>> + Send + Sync + 'static,
) -> BrainBuilder<(), Vec<String>, NoServices, Staged<Timed<Vec<String>>>> {
    brain("Support")
        .state(Vec::new())
        .r#loop("Chat", move |cx| chat(cx.system("You are a support agent.")).plugin(modes()))
}

fn enter(mode: &str) -> Reply {
    Reply::call("mode_enter", json!({ "mode": mode }))
}

fn tools(request: &ModelRequest) -> String {
    let ids: Vec<_> = request.tools.tools().iter().map(|tool| tool.id.to_string()).collect();
    ids.join(" ")
}

async fn failure(brain: &impl Runnable<Options = (), Result = Vec<String>>) -> String {
    match Play::new([]).run(brain, ()).await.settled() {
        Settled::Failed(failure) => failure.message.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn mode_has_a_prompt_tools_and_transitions() {
    let play = Play::new([
        Reply::call("ask", json!({})),
        enter("solving"),
        Reply::call("refund", json!({})),
        enter("resolved"),
    ]);

    let story = play.run(&support(modes), ()).await;

    let seen: Vec<_> = play.requests().iter().map(|request| [contexts(request).join("\n"), tools(request)]).collect();
    let gathering = [
        "mode: The mode is `gathering_info`. First, understand the customer's problem.",
        "ask search_history mode.enter",
    ];
    let solving = ["mode: The mode is `solving`. Now solve the problem.", "search_docs refund mode.enter"];
    assert_eq!(seen, [gathering, gathering, solving, solving]);
    let request = play.last_request();
    let switch = request.tools.find("mode_enter").unwrap();
    assert_eq!(switch.parameters["properties"]["mode"]["enum"], json!(["awaiting_response", "resolved"]));
    insta::assert_snapshot!(switch.description, @r"
    Switches to another mode. Its tools are available from your next answer on:
    - `awaiting_response`
    - `resolved`: when the customer is content (ends your work)
    ");
    insta::assert_snapshot!(story.transcript(), @r#"
    # Chat
    user: It leaks.
    ask({}) -> ask done
    mode.enter({"mode":"solving"}) -> the mode is `solving`
    refund({}) -> refund done
    mode.enter({"mode":"resolved"}) -> the mode is `resolved`
    = {"type":"exited","tool":"mode.enter"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn forbidden_transition_error_lists_the_allowed_ones() {
    let twice =
        Reply::calls([("mode_enter", json!({"mode": "escalating"})), ("mode_enter", json!({"mode": "solving"}))]);
    let play = Play::new([enter("resolved"), twice, enter("resolved")]);

    let story = play.run(&support(modes), ()).await;

    let results = results(&story, "Chat");
    assert_eq!(
        error_of(&results[0]),
        "the arguments do not match the schema: at `/mode`: \"resolved\" is not one of \"solving\" or \"escalating\""
    );
    assert_eq!(results[1..3], [success("the mode is `escalating`"), success("the mode is `solving`")]);
    assert_eq!(results[3], success("the mode is `resolved`"));
}

#[tokio::test(start_paused = true)]
async fn second_switch_in_a_batch_starts_from_the_first() {
    let there_and_back =
        Reply::calls([("mode_enter", json!({"mode": "escalating"})), ("mode_enter", json!({"mode": "escalating"}))]);
    let play = Play::new([there_and_back, enter("solving"), enter("resolved")]);

    let story = play.run(&support(modes), ()).await;

    assert_eq!(
        error_of(&results(&story, "Chat")[1]),
        "the mode is `escalating`, which does not lead to `escalating`, but to `solving`"
    );
}

#[tokio::test(start_paused = true)]
async fn mode_can_wait_for_a_webhook_whose_payload_is_the_result() {
    let play = Play::new([enter("solving"), enter("awaiting_response"), enter("resolved")]);
    let run = play.start(&support(modes), ()).await;
    assert_eq!(waits(&run).await, ["Chat/1.0"]);

    run.webhook("slack", "thread-7", json!({"text": "It works now."})).await.unwrap();

    let story = play.story(&run).await;
    let request = play.last_request();
    assert_eq!(contexts(&request), ["mode: The mode is `awaiting_response`. The customer has answered."]);
    let answer = r#"{"answer":{"text":"It works now."},"result":"the mode is `awaiting_response`"}"#;
    assert_eq!(tool_texts(&request), ["the mode is `solving`", answer]);
    assert_eq!(*story.state(), json!(["read It works now."]), "the wait's own closure changes the brain's state");
    assert!(matches!(story.settled(), Settled::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn expired_wait_keeps_the_loop_in_its_mode() {
    let patient = || {
        Modes::new("asking")
            .mode("asking", |m| m.leads_to(["waiting"]))
            .mode("waiting", |m| m.wait([slack().timeout(std::time::Duration::from_secs(60))]).leads_to(["asking"]))
    };
    let play = Play::new([enter("waiting"), done()]);
    let run = play.start(&support(patient), ()).await;
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;

    let story = play.story(&run).await;

    assert_eq!(results(&story, "Chat"), [ToolResult::error("the wait expired")]);
    assert_eq!(contexts(&play.last_request()), ["mode: The mode is `waiting`."]);
}

#[tokio::test(start_paused = true)]
async fn exit_mode_ignores_text_and_blocks_other_calls_only_for_the_exit() {
    let go_on = Reply::calls([("mode_enter", json!({"mode": "solving"})), ("ask", json!({}))]);
    let end =
        Reply::calls([("refund", json!({})), ("mode_enter", json!({"mode": "resolved"})), ("search_docs", json!({}))]);
    let play = Play::new([Reply::text("What is wrong?"), go_on, end]);

    let story = play.run(&support(modes), ()).await;

    insta::assert_snapshot!(story.transcript(), @r#"
    # Chat
    user: It leaks.
    assistant: What is wrong?
    engine: Call a tool. Text alone does not finish this task: when it is done, call `mode_enter`.
    mode.enter({"mode":"solving"}) -> the mode is `solving`
    ask({}) -> ask done
    refund({}) -> refund done
    mode.enter({"mode":"resolved"}) -> the mode is `resolved`
    search_docs({}) -> Skipped: it came after the exit tool `mode.enter`
    = {"type":"exited","tool":"mode.enter"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn unknown_tool_name_fails_the_loop_in_its_first_iteration() {
    let misspelt =
        || Modes::new("a").mode("a", |m| m.tools(["ask"]).leads_to(["b"])).mode("b", |m| m.tools(["refunds"]));
    assert_eq!(
        failure(&support(misspelt)).await,
        "the loop `Chat` was stopped: the plugin `modes` refused the request: the mode `b` allows the tool \
         `refunds`, which does not exist; the tools are `ask`, `search_history`, `search_docs`, `refund`"
    );
    for (modes, sentence) in [
        (Modes::new("a"), "there is no mode `a`; the modes are "),
        (
            Modes::new("a").mode("a", |m| m.leads_to(["b"])),
            "the mode `a` leads to another: there is no mode `b`; the modes are `a`",
        ),
        (
            Modes::new("a").mode("a", |m| m.exit()),
            "the loop begins in the mode `a`, so that mode can neither wait nor end the loop",
        ),
        (
            Modes::new("a").mode("a", |m| m).mode("b", |m| m.exit().wait([slack()])),
            "the mode `b` ends the loop, so it cannot wait",
        ),
    ] {
        let failure = failure(&support(move || modes.clone())).await;
        assert_eq!(failure, format!("the loop `Chat` cannot be configured: the plugin `modes` failed: {sentence}"));
    }
}

#[tokio::test(start_paused = true)]
async fn dynamic_tools_are_allowed_by_prefix() {
    let equipped = brain("Equipped").state(Vec::new()).r#loop("Chat", |cx| {
        let toolsets = Toolsets::new().set("docs", "Search", [tool("docs.find"), tool("docs.read")]);
        chat(cx.system("Help."))
            .plugin(toolsets)
            .plugin(Modes::new("only").mode("only", |m| m.tools(["toolset.*", "docs.*"])))
    });
    let play = Play::new([Reply::call("toolset_activate", json!({"toolset": "docs"})), done()]);

    let story = play.run(&equipped, ()).await;

    let seen: Vec<_> = play.requests().iter().map(tools).collect();
    assert_eq!(
        seen,
        ["toolset.activate toolset.deactivate", "toolset.activate toolset.deactivate docs.find docs.read"]
    );
    assert!(matches!(story.settled(), Settled::Completed(_)), "without an exit mode, a text ends the loop");
}

#[tokio::test(start_paused = true)]
async fn each_loop_begins_in_its_own_mode() {
    let two = support(modes)
        .r#loop("Survey", |cx| {
            cx.system("Ask.").plugin(Modes::new("asking").mode("asking", |m| m.prompt("One question.")))
        })
        .step("Look", async |cx| Ok(cx.plugin_state::<CurrentMode>()?.mode));
    let play = Play::new([enter("solving"), enter("resolved"), done()]);

    let story = play.run(&two, ()).await;

    assert_eq!(contexts(&play.last_request()), ["mode: The mode is `asking`. One question."]);
    assert_eq!(*story.state(), json!("asking"));
}

#[tokio::test(start_paused = true)]
async fn mode_survives_every_crash() {
    let tale = Tale {
        definition: support(modes).definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| match request.path.as_str() {
            "Chat/0" => Reply::calls([("ask", json!({})), ("mode_enter", json!({"mode": "solving"}))]),
            "Chat/1" => Reply::calls([("refund", json!({})), ("mode_enter", json!({"mode": "awaiting_response"}))]),
            "Chat/2" => enter("gathering_info"),
            "Chat/3" => enter("solving"),
            _ => enter("resolved"),
        }),
        answers: Arc::new(|_| {
            let (name, identifier) = ("slack".to_owned(), "thread-7".to_owned());
            vec![SignalKind::Webhook { name, identifier, payload: json!({"text": "It leaks again."}) }]
        }),
    };
    let baseline = crash_everywhere(&tale, "modes", &json!({"loop_at": "Chat", "mode": "resolved"})).await;
    assert_eq!(baseline.end.state, json!(["ask", "refund", "read It leaks again."]));
}

#[derive(Deserialize, JsonSchema)]
struct Move {
    square: String,
}

async fn chess(moves: impl IntoIterator<Item = Reply>) -> (Story, Play) {
    let chess = brain("Chess").r#loop("Play", |cx| {
        cx.system("Play.").tool("move", |t| {
            t.exit_if(|chess: &Move| {
                assert!(chess.square != "z9", "there is no such square");
                chess.square == "e8"
            })
            .execute(async |Move { square }, _| if square == "a1" { Err(Error::new("it is taken")) } else { Ok(()) })
        })
    });
    let play = Play::new(moves);
    (play.run(&chess, ()).await, play)
}

fn to(square: &str) -> Reply {
    Reply::call("move", json!({ "square": square }))
}

#[tokio::test(start_paused = true)]
async fn tool_can_be_an_exit_for_some_of_its_calls() {
    let (story, play) = chess([to("e4"), Reply::text("Check."), to("z9"), to("a1"), to("e8")]).await;

    let results = results(&story, "Play");
    assert_eq!(results.len(), 4);
    assert_eq!(
        error_of(&results[1]),
        "cannot determine whether the call ends the loop: the code panicked: there is no such square"
    );
    assert!(play.model_read("when it is done, call `move`."));
    assert!(
        story.transcript().ends_with("move({\"square\":\"e8\"}) -> null\n= {\"type\":\"exited\",\"tool\":\"move\"}\n")
    );
}

#[tokio::test(start_paused = true)]
async fn named_modes_enter_with_a_tool_of_their_own() {
    let support = brain("Support")
        .state(Vec::new())
        .r#loop("Chat", move |cx| chat(cx.system("Help.")).plugin(plugin(modes()).named("case")));
    let play = Play::new([
        Reply::call("case_mode_enter", json!({"mode": "solving"})),
        Reply::call("refund", json!({})),
        Reply::call("case_mode_enter", json!({"mode": "resolved"})),
    ]);

    let story = play.run(&support, ()).await;

    assert_eq!(tools(&play.last_request()), "search_docs refund case.mode.enter");
    assert_eq!(story.settled(), &Settled::Completed(json!(["refund"])));
}
