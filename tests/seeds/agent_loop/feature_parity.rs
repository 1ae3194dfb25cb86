//! # Feature-parity comparison
//!
//! ```python
//! class AgentState(TypedDict):
//!     messages: Annotated[list, add_messages]   # What the LLM sees
//!     display_outputs: list                      # What the UI sees (superset)
//!     system_context: str                        # Rebuilt each iteration
//!     active_skills: list[str]                   # Which tools are available
//!     pending_approvals: list[dict]              # Paused tool calls
//!     plugin_states: dict[str, Any]              # Per-plugin storage
//! ```
//!
//! The state of a LangGraph graph, which the design shows for comparison. Here an author declares none of its fields: they are
//! parts of the run. The guide's page [the same agent as a graph](../../../docs/guide/appendix/langgraph.md) has the rest of the
//! comparison.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::projection::request_at;
use positronic_core::record::{EventKind, Message, Output, OutputKind, Path, PluginStates, Seq};
use positronic_core::runner::RunHandle;
use positronic_plugins::Toolsets;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{complete, loop_events, pending, prompt, start};

struct AgentState {
    messages: Vec<Message>,       // What the LLM sees
    display_outputs: Vec<Output>, // What the UI sees (superset)
    system_context: String,       // Rebuilt each iteration
    active_skills: Vec<String>,   // Which tools are available
    pending_approvals: Vec<Path>, // Paused tool calls
    plugin_states: PluginStates,  // Per-plugin storage
}

async fn agent_state<R>(run: &RunHandle<R>) -> AgentState {
    let log = run.events(Seq(0)).await.unwrap();
    let asked = log.iter().rfind(|event| matches!(event.kind, EventKind::LoopModelCall { .. })).unwrap();
    let request = request_at(log.iter().map(|event| &**event), asked.seq).unwrap();
    AgentState {
        messages: request.messages.messages(),
        display_outputs: prompt(run).output,
        system_context: request.context_text().unwrap_or_default(),
        active_skills: request.tools.tools().iter().map(|tool| tool.id.to_string()).collect(),
        pending_approvals: run.pending().into_iter().map(|pending| pending.call).collect(),
        plugin_states: run.state().root.map(|root| root.plugins.clone()).unwrap_or_default(),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Mail {
    to: String,
}

fn analyst() -> Brain<(), ()> {
    let draw = Tool::<()>::new("chart.draw", |t| {
        t.execute(async |_: NoArgs, cx| {
            cx.display_widget("chart", json!([410, 395]), "two bars")?;
            Ok("the user sees it")
        })
    });
    let send = Tool::new("mail.send", |t| {
        t.approval(|mail: &Mail, _| Some(format!("A mail to {}", mail.to))).execute(async |_: Mail, cx| {
            cx.save_file("report.md", "text/markdown", "It was good.").await?;
            Ok("sent")
        })
    });
    let toolsets =
        Toolsets::new().set("charts", "Show charts", [draw]).set("mail", "Send mail", [send]).active(["charts"]);
    brain("Analyst")
        .r#loop("Answer", move |cx| {
            cx.system("You are an analyst.").input("How was the year?").plugin(toolsets.clone())
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn fields_of_the_graphs_state_are_parts_of_the_run() {
    let replies = [
        Reply::calls([("chart_draw", json!({})), ("toolset_activate", json!({ "toolset": "mail" }))]),
        Reply::call("mail_send", json!({ "to": "ada@example.org" })),
        Reply::text("It was good."),
    ];
    let run = start(analyst(), (), replies).await;

    let call = pending(&run).await.remove(0);
    let state = agent_state(&run).await;
    assert_eq!((state.messages.len(), state.display_outputs.len()), (4, 4));
    assert!(state.display_outputs.iter().any(|output| matches!(output.kind, OutputKind::Widget(_))));
    assert!(state.system_context.contains("- `mail` (active): Send mail."), "{}", state.system_context);
    assert_eq!(state.active_skills, ["toolset.activate", "toolset.deactivate", "chart.draw", "mail.send"]);
    assert_eq!(state.pending_approvals, std::slice::from_ref(&call));
    assert_eq!(*state.plugin_states.get("toolsets").unwrap().state, json!({ "active": ["charts", "mail"] }));
    run.approve(&call, "ann").await.unwrap();

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Answer LOOP_START "How was the year?"
    3 Answer/0 LOOP_ITERATION toolset.activate toolset.deactivate chart.draw toolsets="Tools come in toolsets. The tools of a toolset are available from your next answer on after `toolse…
    4 Answer/0 LOOP_MODEL_CALL
    5 Answer/0 LOOP_MODEL_RESULT
    6 Answer/0.0 LOOP_TOOL_CALL chart.draw {}
    7 Answer/0.1 LOOP_TOOL_CALL toolset.activate {"toolset":"mail"}
    8 Answer/0.0 LOOP_TOOL_START
    9 Answer/0.1 LOOP_TOOL_START
    10 Answer/0.0 LOOP_OUTPUT widget chart [410,395]
    11 Answer/0.0 LOOP_TOOL_RESULT "the user sees it"
    12 Answer/0.1 LOOP_PLUGIN_CHANGED toolsets
    13 Answer/0.1 LOOP_TOOL_RESULT "`mail` is active; its tools are `mail_send`"
    14 Answer/1 LOOP_ITERATION toolset.activate toolset.deactivate chart.draw mail.send toolsets="Tools come in toolsets. The tools of a toolset are available from your next answer on after `toolse…
    15 Answer/1 LOOP_MODEL_CALL
    16 Answer/1 LOOP_MODEL_RESULT
    17 Answer/1.0 LOOP_TOOL_CALL mail.send {"to":"ada@example.org"}
    18 Answer/1.0 LOOP_APPROVAL_REQUESTED "A mail to ada@example.org"
    19 Answer/1.0 LOOP_APPROVAL_DECIDED Approved
    20 Answer/1.0 LOOP_TOOL_START
    21 Answer/1.0 LOOP_OUTPUT file report.md text/markdown
    22 Answer/1.0 LOOP_TOOL_RESULT "sent"
    23 Answer/2 LOOP_ITERATION
    24 Answer/2 LOOP_MODEL_CALL
    25 Answer/2 LOOP_MODEL_RESULT "It was good."
    26 Answer LOOP_COMPLETE {"type":"answered"}
    "#);
}
