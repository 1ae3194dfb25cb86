//! The support agent of the examples, unchanged, with models of all four APIs.

use positronic_core::prelude::*;
use positronic_core::projection::timeline::NodeKind;
use positronic_core::record::{FileRef, SignalKind, Start, UserMessage};
use positronic_core::runner::Settled;
use positronic_examples::acme::Acme;
use positronic_examples::support::{CASSETTE, Outcome, SupportOptions, support};
use positronic_model_http::data_url;
use positronic_model_testing::rules::{anthropic, chat, gemini, responses};
use positronic_model_testing::{Provider as Server, Rules, seen, timeline};
use serde_json::{Value, json};

use crate::strings::providers;
use positronic_model_testing::wire_forms::{self, Encode, Reply};

const PHOTO: &[u8] = b"\x89PNG leak";

/// Returns the answers and the signals of the example's cassette.
fn script() -> (Vec<Reply>, Vec<SignalKind>) {
    let lines: Vec<Value> = CASSETTE.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let call = |call: &Value| {
        let arguments = call.get("arguments").cloned().unwrap_or_else(|| json!({}));
        (call["name"].as_str().unwrap().to_owned(), arguments)
    };
    let reply = |reply: &Value| Reply {
        text: reply["text"].as_str().unwrap_or_default().to_owned(),
        calls: reply["calls"].as_array().into_iter().flatten().map(call).collect(),
    };
    let replies = lines.iter().filter_map(|line| line.get("reply")).map(reply).collect();
    let signals = lines.iter().filter_map(|line| line.get("signal").cloned());
    (replies, signals.map(|signal| serde_json::from_value(signal).unwrap()).collect())
}

/// An API of a provider.
struct Api {
    model: &'static str,
    /// The variable with the base URL.
    variable: &'static str,
    rules: Rules,
    encode: Encode,
    /// Finds the photo in a request.
    picture: fn(&Value) -> &Value,
}

/// Runs the agent with a photo in the customer's message, and returns what people see.
async fn played(Api { model, variable, rules, encode, picture }: Api) -> String {
    let (replies, signals) = script();
    let answers = replies.iter().enumerate().map(|(number, reply)| encode(reply, number)).collect();
    let server = Server::start(rules, answers).await;
    let url = if variable == "OPENAI_BASE_URL" { format!("{}/v1", server.url()) } else { server.url() };
    let model = providers(&[(variable, &url)]).model(model).unwrap();
    let runner = Runner::new(model);

    let sha256 = runner.client().put_blob(PHOTO.to_vec()).await.unwrap();
    let photo = FileRef::stored("leak.png", "image/png", PHOTO.len() as u64, sha256);
    let message = UserMessage::new("This is how it looks.").file(photo.clone());
    let start = Start { message: Some(message), ..Start::default() };
    let agent = support().bind(Acme::example());
    let run = runner.start_with(&agent, SupportOptions::default(), start).await.unwrap();
    for signal in signals {
        let settled = run.settled().await;
        assert!(matches!(settled, Settled::Waiting(_)), "{settled:?} before {signal:?}");
        run.signal(signal, "ann").await.unwrap();
    }
    let closed = run.result().await.unwrap();

    assert_eq!((closed.refunded, closed.score), (249, Some(5)));
    assert!(matches!(closed.outcome, Outcome::Resolved(_)));
    let bodies = server.bodies();
    assert_eq!(bodies.len(), replies.len(), "each request fits the rules of its provider");
    let sent = picture(&bodies[0]);
    let data = data_url("image/png", PHOTO);
    assert!(
        sent.as_str().is_some_and(|sent| !sent.is_empty() && data.ends_with(sent)),
        "the first request has the photo: {sent}"
    );
    let timeline = timeline(&run).await;
    let shown =
        timeline.nodes().any(|node| matches!(&node.kind, NodeKind::Message { files, .. } if *files == [photo.clone()]));
    assert!(shown, "the message has the photo");
    seen(&run).await
}

#[tokio::test]
async fn people_see_the_same_with_all_four_apis() {
    let chat = Api {
        model: "openai/gpt-5-mini",
        variable: "OPENAI_BASE_URL",
        rules: chat::check,
        encode: wire_forms::chat,
        picture: |body| &body["messages"][1]["content"][0]["image_url"]["url"],
    };
    let responses = Api {
        model: "openai-responses/gpt-5-mini",
        rules: responses::check,
        encode: wire_forms::responses,
        picture: |body| &body["input"][0]["content"][0]["image_url"],
        ..chat
    };
    let messages = Api {
        model: "anthropic/claude-haiku-5-5",
        variable: "ANTHROPIC_BASE_URL",
        rules: anthropic::check,
        encode: wire_forms::messages,
        picture: |body| &body["messages"][0]["content"][0]["source"]["data"],
    };
    let generate_content = Api {
        model: "gemini/gemini-3.8-flash",
        variable: "GEMINI_BASE_URL",
        rules: gemini::check,
        encode: wire_forms::generate_content,
        picture: |body| &body["contents"][0]["parts"][0]["inlineData"]["data"],
    };

    let seen = played(chat).await;
    insta::assert_snapshot!(seen, @r#"
    # Chat
    user: This is how it looks.
    user: [file leak.png, image/png, 9 bytes]
    assistant: Let me see.
    check_order_status({"order_id":"A-1001"}) -> {"arrived":12,"id":"A-1001","item":"espresso machine","price":249}
    search_knowledge_base({"query":"leaks refunds"}) -> Refunds: within 30 days the whole price, after that half of it.
    Leaks: fasten the lid of the tank; a tank that still leaks is broken.
    send_response({"message":"I am sorry to hear that, Mira. Does it still leak when the lid of the tank is fastened?"}) [answered by ann: slack thread-7] -> {"answer":{"text":"It does, the tank has a crack."},"result":"sent","webhook":"slack"}
    process_refund({}) -> {"amount":249,"reason":"It is broken and arrived 12 days ago."}
    refund({"amount":249,"order":"A-1001"}) [approved by ann: a refund of 249 euros] -> {"number":"R-1","refund":{"amount":249,"order":"A-1001"}}
    resolve_ticket({"resolution":"The tank is broken; 249 euros were paid back."}) -> resolved
    = {"type":"exited","tool":"resolve_ticket"}
    # Survey/Ask
    engine: Begin.
    ask_customer({"message":"Your 249 euros are on their way. How satisfied are you, from 1 to 5?"}) [answered by ann: slack thread-7] -> {"answer":{"text":"5, that was quick!"},"result":"sent"}
    record_score({"score":5}) -> thank you
    = {"type":"exited","tool":"record_score"}
    "#);
    assert_eq!(played(responses).await, seen);
    assert_eq!(played(messages).await, seen);
    assert_eq!(played(generate_content).await, seen);
}
