//! The test kit: a clock that tolerates real I/O, and single tools.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use positronic_core::dsl::ToolBuilder;
use positronic_core::dsl::Wait;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, SideOutput, SignalKind};
use positronic_core::testing::{Story, Test, ToolTest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{error_of, path, results, success};

/// Asks a server on OS threads; the runtime only sees an idle task.
async fn ask_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Long enough for the runtime to find all its tasks idle.
        std::thread::sleep(Duration::from_millis(30));
        stream.write_all(b"pong").unwrap();
    });
    std::thread::spawn(move || {
        let mut text = String::new();
        TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
        _ = sender.send(text);
    });
    answer.await.unwrap()
}

fn asking(sleep: Option<Duration>) -> Brain {
    brain("Asks")
        .r#loop("Chat", move |cx| {
            cx.system("Ask.").tool("ask", |t| {
                t.timeout(Duration::from_secs(5)).execute(move |_: NoArgs, _| async move {
                    if let Some(sleep) = sleep {
                        tokio::time::sleep(sleep).await;
                    }
                    Ok(ask_server().await)
                })
            })
        })
        .build()
}

fn script() -> ScriptedModel {
    ScriptedModel::new([Reply::call("ask", json!({})), Reply::text("done")])
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    kg: u32,
}

/// A brain that orders with an approval, waits for the shop and asks how it was.
fn grocer() -> Brain {
    brain("Grocer")
        .r#loop("Shop", |cx| {
            cx.system("Buy.")
                .tool("order", |t| {
                    t.description("Orders")
                        .approval(|order: &Order, _| (order.kg > 10).then(|| "more than 10 kg".to_owned()))
                        .wait(|_, _| [webhook::<String>("shop").on("order-7"), webhook::<String>("mail").on("order-7")])
                        .execute(async |_, _| Ok("sent"))
                })
                .tool("rate", |t| {
                    t.description("Asks").execute(async |_: NoArgs, cx| {
                        Ok(cx
                            .result("asked")
                            .wait_for([Wait::<(), String>::reply("How was it?").timeout(Duration::from_secs(60))]))
                    })
                })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn transcript_shows_approvals_and_waits_and_what_became_of_them() {
    let order = |kg| ("order", json!({ "kg": kg }));
    let replies = [Reply::calls([order(20), order(30), order(1)]), Reply::call("rate", json!({})), Reply::text("Bye.")];
    let test = Test::new(ScriptedModel::new(replies));

    let run = test.start(grocer(), ()).await;
    run.settled().await;
    insta::assert_snapshot!(Story::of(&run).await.transcript(), @r#"
    # Shop
    engine: Begin.
    order({"kg":20}) [needs approval: more than 10 kg] …
    order({"kg":30}) [needs approval: more than 10 kg] …
    order({"kg":1}) …
    "#);

    run.approve(&path("Shop/0.0"), "ann").await.unwrap();
    run.reject(&path("Shop/0.1"), "too heavy", "ben").await.unwrap();
    run.settled().await;
    assert!(Story::of(&run).await.transcript().contains("[waits for shop order-7 or mail order-7] …"));
    for _ in 0..2 {
        let (name, identifier, payload) = ("shop".to_owned(), "order-7".to_owned(), json!("packed"));
        run.signal(SignalKind::Webhook { name, identifier, payload }, Actor::default()).await.unwrap();
        run.settled().await;
    }
    run.result().await.unwrap();

    let transcript = Story::of(&run).await.transcript();
    let calls: Vec<_> = transcript.lines().filter_map(|line| Some(line.split_once(" -> ")?.0)).collect();
    insta::assert_snapshot!(calls.join("\n"), @r#"
    order({"kg":20}) [approved by ann: more than 10 kg] [answered: shop order-7]
    order({"kg":30}) [rejected by ben: more than 10 kg]
    order({"kg":1}) [answered: shop order-7]
    rate({}) [expired: How was it?]
    "#);
}

#[tokio::test(start_paused = true)]
async fn real_io_takes_no_time_on_a_paused_clock() {
    let story = Test::new(script()).run(asking(None), ()).await;

    assert_eq!(results(&story, "Chat"), [success("pong")]);
}

#[tokio::test(start_paused = true)]
async fn tool_that_sleeps_beyond_its_timeout_times_out_in_a_test() {
    let slow = asking(Some(Duration::from_secs(6)));

    let story = Test::new(script()).run(slow, ()).await;

    let results = results(&story, "Chat");
    assert_eq!(error_of(&results[0]), "the tool took longer than 5s; whether it had its effect is unknown");
}

#[tokio::test(start_paused = true)]
async fn tool_that_never_ends_times_out_in_a_test() {
    let stuck = brain("Stuck").r#loop("Chat", |cx| {
        cx.system("Ask.").tool("ask", |t| {
            t.timeout(Duration::from_millis(50)).execute(async |_: NoArgs, _| {
                std::future::pending::<()>().await;
                Ok("never")
            })
        })
    });

    let story = Test::new(script()).run(stuck, ()).await;

    let results = results(&story, "Chat");
    assert_eq!(error_of(&results[0]), "the tool took longer than 50ms; whether it had its effect is unknown");
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Ticket {
    refunds: Vec<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Refund {
    amount: u32,
}

struct Shop {
    limit: u32,
}

fn refund() -> Tool<(), Ticket, Shop> {
    Tool::new("refund", |t: ToolBuilder<(), Ticket, Shop>| {
        t.approval(|refund: &Refund, cx| (refund.amount > cx.services.limit).then(|| "too much".to_owned()))
            .wait(|refund, _| [webhook::<NoArgs>("bank").on(refund.amount.to_string())])
            .execute(async |Refund { amount }, cx| {
                cx.progress("asking the bank");
                let receipt = cx.save_file("receipt.txt", "text/plain", format!("{amount} EUR")).await?;
                assert!(cx.is_approved() || amount <= 100);
                cx.update(move |ticket| ticket.refunds.push(amount));
                Ok(cx.result(receipt.size).brief("paid"))
            })
    })
}

#[tokio::test]
async fn tool_can_be_called_without_a_model_or_a_run() {
    let test = ToolTest::new((), Ticket::default()).services(Shop { limit: 100 });

    let called = test.call(&refund(), json!({"amount": 120})).await.unwrap();

    assert_eq!(called.approval.as_deref(), Some("too much"));
    assert_eq!((called.output, called.brief.as_deref()), (json!(7), Some("paid")));
    assert_eq!(called.state, Ticket { refunds: vec![120] });
    assert_eq!(called.waits.iter().map(|wait| wait.identifier.as_str()).collect::<Vec<_>>(), ["120"]);
    assert_eq!(called.progress, ["asking the bank"]);
    let [SideOutput::File(file)] = &*called.outputs else { panic!("{:?}", called.outputs) };
    assert_eq!(file.file.name, "receipt.txt");

    let small = test.call(&refund(), json!({"amount": 5})).await.unwrap();
    assert_eq!((small.approval, small.state.refunds), (None, vec![5]), "each call begins with the state of the test");

    let refused = test.call(&refund(), json!({"amount": "many"})).await.unwrap_err();
    assert!(refused.to_string().starts_with("the arguments do not match the schema: at `/amount`"), "{refused}");
}

#[test]
fn tools_of_a_loop_are_checked_without_a_run() {
    let shop = |exits: &'static str| {
        brain("Shop")
            .services::<Shop>()
            .step("Open", async |_| Ok(Ticket::default()))
            .r#loop("Chat", move |cx| cx.system("Help.").tools([refund()]).exit_on([exits]))
            .step("Close", async |cx| Ok(cx.state.refunds.len()))
    };
    let test = ToolTest::new((), Ticket::default()).services(Shop { limit: 100 });

    let tools = test.tools(&shop("refund"), "Chat").unwrap();
    assert!(tools["refund"].decl().flags.exit);

    let unknown = test.tools(&shop("refunds"), "Chat").unwrap_err();
    assert_eq!(unknown.to_string(), "`exit_on` names `refunds`, but the loop's tools are `refund`");
    let no_loop = test.tools(&shop("refund"), "Open").unwrap_err();
    assert_eq!(no_loop.to_string(), "the brain `Shop` has no loop named `Open`");
}
