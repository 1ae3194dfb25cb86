//! Tools and a brain of the macros in a run, with a scripted model.

use positronic_core::model::scripted::{Reply as Says, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::transcript;
use positronic_core::record::{Actor, SignalKind};
use positronic_core::runner::Settled;
use positronic_core::testing::Lockstep as _;
use positronic_core::{brain, tool};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize)]
struct Ticket {
    customer: String,
    resolution: Option<String>,
}

struct Acme {
    articles: Vec<&'static str>,
}

/// Finds articles.
#[tool(read_only)]
async fn search_docs(
    /// A word that the article has.
    word: String,
    cx: ToolContext<(), Ticket, Acme>,
) -> Result<Vec<&'static str>> {
    Ok(cx.services.articles.iter().copied().filter(|text| text.contains(&word)).collect())
}

/// Pays an order back.
#[tool(name = "payment.refund", approval = "refunds need a person", destructive)]
async fn refund(order: String) -> Result<String> {
    Ok(format!("{order} is paid back"))
}

/// Marks the ticket as resolved.
#[tool(exit)]
async fn resolve(resolution: String, cx: ToolContext<(), Ticket, Acme>) -> Result<ToolReply<Ticket>> {
    Ok(cx.result("ok").update(|ticket| ticket.resolution = Some(resolution)))
}

fn support() -> Brain<(), Ticket, Acme> {
    brain! {
        "Support"
        .services::<Acme>()
        .step("Open", async |_| Ok(Ticket { customer: "Ada".to_owned(), resolution: None }))
        .loop("Chat", |cx| {
            cx.system(format!("Help {}.", cx.state.customer))
                .input("My tea never came.")
                .tools([search_docs(), refund(), resolve()])
        })
        .build()
    }
}

#[tokio::test]
async fn brain_of_the_macros_runs() {
    let model = ScriptedModel::new([
        Says::call("search_docs", json!({"word": "tea"})),
        Says::call("payment.refund", json!({"order": "A1"})),
        Says::call("resolve", json!({"resolution": "paid back"})),
    ]);
    let runner = Runner::new(model).lockstep(true);
    let acme = Acme { articles: vec!["tea comes by post", "coffee does not"] };
    let run = runner.start(&support().bind(acme), ()).await.unwrap();

    let Settled::Waiting(pending) = run.settled().await else { panic!("no approval was requested") };
    let call = pending[0].call.clone();
    run.signal(SignalKind::Approve { call, arguments: None }, Actor::default()).await.unwrap();

    let ticket = run.result().await.unwrap();
    assert_eq!(ticket.resolution.as_deref(), Some("paid back"));
    let events = run.events(positronic_core::record::Seq(0)).await.unwrap();
    let timeline = Timeline::of(events.iter().map(|event| &**event));
    insta::assert_snapshot!(transcript(&timeline), @r#"
    # Chat
    user: My tea never came.
    search_docs({"word":"tea"}) -> ["tea comes by post"]
    payment.refund({"order":"A1"}) [approved: refunds need a person] -> A1 is paid back
    resolve({"resolution":"paid back"}) -> ok
    = {"type":"exited","tool":"resolve"}
    "#);
}
