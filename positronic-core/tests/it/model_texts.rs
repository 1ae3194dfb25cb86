//! The sentences that a model reads beside those of authors, persons and tools: results, reminders and notices. They are prompts: short,
//! true, in the imperative.

use std::fmt::Write as _;
use std::time::Duration;

use positronic_core::dsl::{Loop, ToolBuilder};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::projection::result_text;
use positronic_core::record::{Actor, EventKind, ModelResponse, Part, ProposedCall, SignalKind, Speaker};
use positronic_core::testing::Story;
use positronic_plugins::Toolsets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Play, calls, done, path, waits};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Pay {
    amount: u32,
}

type Desk = Loop<(), Value>;

fn tool(name: &str, build: impl FnOnce(ToolBuilder<(), Value>) -> Tool<(), Value>) -> Tool<(), Value> {
    Tool::new(name, build)
}

fn desk(build: impl Fn(Desk) -> Desk + Send + Sync + 'static) -> Brain<(), Value> {
    brain("Desk").state(Value::Null).r#loop("Work", move |cx| build(cx.system("Work.").input("Begin."))).build()
}

fn tools() -> [Tool<(), Value>; 7] {
    let pay = |t: ToolBuilder<(), Value>| t.requires_approval("money");
    [
        tool("say", |t| t.execute(async |_: NoArgs, _| Ok("hello"))),
        tool("list", |t| t.execute(async |_: NoArgs, _| Ok(json!({"n": [1, 2]})))),
        tool("nothing", |t| t.execute(async |_: NoArgs, _| Ok(()))),
        tool("fail", |t| t.execute(async |_: NoArgs, _| Err::<(), _>(Error::new("the desk is closed")))),
        tool("panic", |t| t.execute(async |_: NoArgs, _| -> Result<()> { panic!("the desk fell") })),
        tool("pay", move |t| pay(t).execute(async |pay: Pay, _| Ok(format!("paid {}", pay.amount)))),
        tool("pay_soon", move |t| {
            pay(t).approval_expires(Duration::from_secs(60)).execute(async |_: NoArgs, _| Ok("paid"))
        }),
    ]
}

/// Returns each call of a loop with the text of its result.
fn read(story: &Story) -> String {
    calls(story, "Work").iter().fold(String::new(), |mut all, call| {
        let result = call.result.as_ref().map_or_else(|| "-".to_owned(), result_text);
        _ = writeln!(all, "{}({}): {result}", call.tool, call.arguments);
        all
    })
}

/// Returns what the engine says in a loop.
fn reminders(story: &Story) -> String {
    let said = |kind: &EventKind| match kind {
        EventKind::LoopMessage { from: Speaker::Engine, text, .. } => Some(format!("{text}\n")),
        _ => None,
    };
    story.log().iter().filter_map(|event| said(&event.kind)).collect()
}

fn raw(name: &str, arguments: &str) -> ProposedCall {
    ProposedCall { provider_id: None, name: name.to_owned(), arguments: arguments.to_owned(), data: None }
}

fn raws<const N: usize>(calls: [ProposedCall; N]) -> Reply {
    let parts = (0..).take(N).map(|index| Part::Call { index }).collect();
    Reply::response(ModelResponse { parts, calls: calls.into(), ..ModelResponse::default() })
}

#[tokio::test(start_paused = true)]
async fn texts_that_a_model_reads_are_short_and_true() {
    let mut all = String::new();

    let play = Play::new([
        raws([
            raw("say", ""),
            raw("list", "{}"),
            raw("nothing", "{}"),
            raw("fail", "{}"),
            raw("panic", "{}"),
            raw("play", "{}"),
            raw("say", "{oops"),
            raw("say", r#"{"text": 1}"#),
            raw("pay", r#"{"amount": "much"}"#),
        ]),
        done(),
    ]);
    _ = writeln!(all, "# Results\n{}", read(&play.run(desk(|cx| cx.tools(tools())), ()).await));

    let pay = |amount: u32| ("pay", json!({"amount": amount}));
    let play =
        Play::new([Reply::calls([pay(1), pay(2), pay(3), ("pay_soon", json!({}))]), Reply::calls([pay(1)]), done()]);
    let run = play.start(desk(|cx| cx.tools(tools())), ()).await;
    waits(&run).await;
    run.reject(&path("Work/0.0"), "too much", "ann").await.unwrap();
    let reject = SignalKind::Reject { call: path("Work/0.1"), reason: None };
    run.signal(reject, Actor::default()).await.unwrap();
    let edit = SignalKind::Approve { call: path("Work/0.2"), arguments: Some(json!({"amount": 9})) };
    run.signal(edit, Actor::default()).await.unwrap();
    _ = run.result().await;
    let story = play.story(&run).await;
    _ = writeln!(all, "# Decisions\n{}", read(&story));
    let edited = play.requests().iter().flat_map(crate::support::tool_texts).find(|text| text.contains("changed"));
    _ = writeln!(all, "{}\n", edited.unwrap());

    let exit = || tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("finished")));
    let play = Play::new([Reply::calls([("finish", json!({})), ("say", json!({}))])]);
    _ = writeln!(
        all,
        "# After an exit\n{}",
        read(&play.run(desk(move |cx| cx.tools(tools()).tools([exit()])), ()).await)
    );

    let play = Play::new([Reply::calls([pay(1)])]);
    let run = play.start(desk(|cx| cx.tools(tools())), ()).await;
    waits(&run).await;
    run.cancel("ann").await.unwrap();
    _ = run.result().await;
    _ = writeln!(all, "# After a cancellation\n{}", read(&play.story(&run).await));

    all.push_str("# Reminders\n");
    let play = Play::new([Reply::text("Done."), Reply::call("finish", json!({}))]);
    all.push_str(&reminders(&play.run(desk(move |cx| cx.tools([exit()])), ()).await));
    let sets = move || Toolsets::new().set("desk", "Ends the work", [exit()]);
    let play = Play::new([
        Reply::text("Done."),
        Reply::call("toolset_activate", json!({"toolset": "desk"})),
        Reply::call("finish", json!({})),
    ]);
    all.push_str(&reminders(&play.run(desk(move |cx| cx.plugin(sets()).exit_on(["finish"]).require_exit()), ()).await));
    let play = Play::new([Reply::text(""), Reply::text("Yes.")]);
    all.push_str(&reminders(&play.run(desk(|cx| cx), ()).await));
    for exits in [false, true] {
        let last = if exits { Reply::call("finish", json!({})) } else { Reply::text("Half of it.") };
        let play = Play::new([Reply::call("say", json!({})), last]);
        let wraps = desk(move |cx| {
            let cx = cx.tools(tools()).max_iterations(1).wrap_up();
            if exits { cx.tools([exit()]) } else { cx }
        });
        all.push_str(&reminders(&play.run(wraps, ()).await));
    }

    insta::assert_snapshot!(all);
}
