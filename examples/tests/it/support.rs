use std::sync::Arc;
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::SignalKind;
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::testing::{Story, Test};
use positronic_examples::acme::Acme;
use positronic_examples::support::{CASSETTE, Closed, Outcome, SupportOptions, support};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, support().bind(Acme::example()), SupportOptions::default()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
    insta::assert_json_snapshot!("state", story.state());
}

/// Starts the agent for a customer who demands a refund.
async fn asked_for_money(replies: impl IntoIterator<Item = Reply>) -> RunHandle<Closed> {
    let score = Reply::call("record_score", json!({}));
    let model = ScriptedModel::new(replies).on("Survey/Ask", [score]);
    let options = SupportOptions { message: "I want my money back!".into(), ..SupportOptions::default() };
    Test::new(model).start(support().bind(Acme::example()), options).await
}

fn refund(amount: u32) -> Reply {
    Reply::call("refund", json!({"order": "A-1001", "amount": amount}))
}

fn resolve(resolution: &str) -> Reply {
    Reply::call("resolve_ticket", json!({"resolution": resolution}))
}

#[tokio::test(start_paused = true)]
async fn refund_up_to_100_euros_needs_no_approval() {
    let run = asked_for_money([refund(100), resolve("100 euros were paid back.")]).await;

    assert_eq!(run.result().await.unwrap().refunded, 100);
}

#[tokio::test(start_paused = true)]
async fn rejected_refund_is_not_paid_and_the_model_reads_the_reason() {
    let run = asked_for_money([refund(101), resolve("There is no refund.")]).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("no approval was requested") };

    run.reject(&pending[0].call, "it was used for a year", "the manager").await.unwrap();

    let story = Story::of(&run).await;
    insta::assert_snapshot!(story.transcript(), @r#"
    # Chat
    user: I want my money back!
    refund({"amount":101,"order":"A-1001"}) [rejected by the manager: a refund of 101 euros] -> Not run: a person rejected this call: it was used for a year
    resolve_ticket({"resolution":"There is no refund."}) -> resolved
    = {"type":"exited","tool":"resolve_ticket"}
    # Survey/Ask
    engine: Begin.
    record_score({}) -> thank you
    = {"type":"exited","tool":"record_score"}
    "#);
    assert_eq!(run.result().await.unwrap().refunded, 0);
}

#[tokio::test(start_paused = true)]
async fn refund_is_approved_with_an_edited_amount() {
    let run = asked_for_money([refund(249), resolve("Half of it was paid back.")]).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("no approval was requested") };

    let arguments = Some(json!({"order": "A-1001", "amount": 125}));
    let signal = SignalKind::Approve { call: pending[0].call.clone(), arguments };
    run.signal(signal, "the manager").await.unwrap();

    let story = Story::of(&run).await;
    insta::assert_snapshot!(story.transcript(), @r#"
    # Chat
    user: I want my money back!
    refund({"amount":249,"order":"A-1001"}) [approved by the manager: a refund of 249 euros] edited to {"amount":125,"order":"A-1001"} -> {"number":"R-1","refund":{"amount":125,"order":"A-1001"}}
    resolve_ticket({"resolution":"Half of it was paid back."}) -> resolved
    = {"type":"exited","tool":"resolve_ticket"}
    # Survey/Ask
    engine: Begin.
    record_score({}) -> thank you
    = {"type":"exited","tool":"record_score"}
    "#);
    assert_eq!(run.result().await.unwrap().refunded, 125);
}

#[tokio::test(start_paused = true)]
async fn refund_desk_needs_an_order() {
    let run = asked_for_money([
        Reply::call("process_refund", json!({})),
        Reply::call("escalate", json!({"reason": "the order is unknown"})),
    ])
    .await;

    let story = Story::of(&run).await;

    insta::assert_snapshot!(story.transcript(), @r#"
    # Chat
    user: I want my money back!
    process_refund({}) -> Error: the step `Chat/0.0/Check` failed: no order was looked up yet; call check_order_status first
    escalate({"reason":"the order is unknown"}) -> escalated
    = {"type":"exited","tool":"escalate"}
    # Survey/Ask
    engine: Begin.
    record_score({}) -> thank you
    = {"type":"exited","tool":"record_score"}
    "#);
    assert_eq!(run.result().await.unwrap().outcome, Outcome::Escalated("the order is unknown".into()));
}

#[tokio::test(start_paused = true)]
async fn customer_answers_by_email_or_the_wait_expires() {
    let acme = Arc::new(Acme::example());
    let model = ScriptedModel::new([
        Reply::call("send_response", json!({"message": "What happened?"})),
        resolve("It was a misunderstanding."),
        Reply::call("ask_customer", json!({"message": "Are you happy?"})),
        Reply::call("record_score", json!({})),
    ]);
    let run = Test::new(model).start(support().bind(Arc::clone(&acme)), SupportOptions::default()).await;

    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.webhook("email", "mira@example.com", json!({"text": "It works again."})).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    tokio::time::sleep(Duration::from_hours(4 * 24)).await;

    let story = Story::of(&run).await;
    insta::assert_snapshot!(story.transcript(), @r#"
    # Chat
    user: The espresso machine of my order A-1001 leaks. Can I have my money back?
    send_response({"message":"What happened?"}) [answered: email mira@example.com] -> {"answer":{"text":"It works again."},"result":"sent","webhook":"email"}
    resolve_ticket({"resolution":"It was a misunderstanding."}) -> resolved
    = {"type":"exited","tool":"resolve_ticket"}
    # Survey/Ask
    engine: Begin.
    ask_customer({"message":"Are you happy?"}) [expired: slack thread-7] -> no answer came
    record_score({}) -> thank you
    = {"type":"exited","tool":"record_score"}
    "#);
    let books = acme.books().await;
    let sent: Vec<&str> = books.sent.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(sent, ["What happened?", "Are you happy?"]);
    assert_eq!(books.closed, ["C-7"]);
}
