//! Files in requests and answers.

use positronic_core::model::{Model as _, NoDeltas};
use positronic_core::prelude::*;
use positronic_core::record::{Assistant, Attachment, FileRef, Message, ModelErrorKind, Part, Settings, web_search};
use positronic_gemini::GenerateContentAssembler;
use positronic_model_testing::{Provider, events, play, seen};
use serde_json::{Value, json};

use crate::recorded::TEXT;
use crate::requests::{check, model, request, returned, sent, user};

fn photo() -> Attachment {
    Attachment::new("bee.png", "image/png", *b"\x89PNG")
}

fn asking(text: &str, files: Vec<Attachment>) -> Message {
    Message::User { text: text.to_owned(), files }
}

fn calls() -> Message {
    let call = |id: &str| Assistant::Call {
        call: id.to_owned(),
        name: "weather".to_owned(),
        arguments: "{}".to_owned(),
        data: None,
    };
    Message::assistant(vec![call("c1"), call("c2")])
}

fn result(call: &str, files: Vec<Attachment>) -> Message {
    Message::Tool { call: call.to_owned(), name: "weather".to_owned(), text: "rain".to_owned(), files }
}

fn parts(content: &Value) -> String {
    let parts = content["parts"].as_array().unwrap().iter().map(Value::to_string);
    parts.collect::<Vec<_>>().join("\n")
}

#[test]
fn files_of_a_message_precede_its_text_and_those_of_results_follow_all_results() {
    let files = vec![
        photo(),
        Attachment::new("offer.pdf", "application/pdf", *b"%PDF"),
        Attachment::new("hum.mp3", "audio/mpeg", *b"hum"),
        Attachment::from(FileRef::url("https://example.org/hive.mov", "video/quicktime")),
        Attachment::from(FileRef::uploaded("gemini", "https://host/v1beta/files/1", "video/mp4")),
        Attachment::new("notes.md", "text/markdown", *b"# Bees"),
    ];
    let messages = [
        asking("What is this?", files),
        calls(),
        result("c1", vec![photo()]),
        result("c2", Vec::new()),
        asking("And?", vec![photo()]),
    ];
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));

    insta::assert_snapshot!(parts(&body["contents"][0]), @r#"
    {"inlineData":{"data":"iVBORw==","mimeType":"image/png"}}
    {"inlineData":{"data":"JVBERg==","mimeType":"application/pdf"}}
    {"inlineData":{"data":"aHVt","mimeType":"audio/mp3"}}
    {"fileData":{"fileUri":"https://example.org/hive.mov","mimeType":"video/mov"}}
    {"fileData":{"fileUri":"https://host/v1beta/files/1","mimeType":"video/mp4"}}
    {"text":"[file notes.md, text/markdown, 6 bytes]\n# Bees"}
    {"text":"What is this?"}
    "#);
    insta::assert_snapshot!(parts(&body["contents"][2]), @r#"
    {"functionResponse":{"name":"weather","response":{"output":"rain"}}}
    {"functionResponse":{"name":"weather","response":{"output":"rain"}}}
    {"inlineData":{"data":"iVBORw==","mimeType":"image/png"}}
    {"inlineData":{"data":"iVBORw==","mimeType":"image/png"}}
    {"text":"And?"}
    {"text":"<context name=\"day\">\nToday is Monday.\n</context>"}
    "#);
}

#[test]
fn message_can_have_files_only() {
    let body = sent(&model(|_| ()), &request([asking("", vec![photo()])], Settings::default()));

    insta::assert_snapshot!(parts(&body["contents"][0]), @r#"
    {"inlineData":{"data":"iVBORw==","mimeType":"image/png"}}
    {"text":"<context name=\"day\">\nToday is Monday.\n</context>"}
    "#);
}

#[test]
fn next_request_begins_with_the_same_files_and_tools() {
    let settings = || Settings::builder().provider_tools(vec![web_search()]).build();
    let model = model(|_| ());
    let mut messages = vec![asking("What is this?", vec![photo()]), calls(), result("c1", vec![photo()])];
    messages.push(result("c2", Vec::new()));
    let first = model.wire(&request(messages.clone(), settings()));
    messages.push(user("Go on."));
    let second = model.wire(&request(messages, settings()));

    let end = first.rfind("iVBORw==").unwrap();
    assert!(first[..end].contains("googleSearch"), "{first}");
    assert_eq!(first[..end], second[..end]);
}

#[test]
fn requests_say_what_an_answer_contains() {
    let own = model(|config| {
        config.response_modalities = vec!["TEXT".to_owned(), "IMAGE".to_owned()];
        config.image_config = Some(json!({ "aspectRatio": "16:9" }));
    });
    let body = sent(&own, &request([user("Draw a bee.")], Settings::default()));

    insta::assert_snapshot!(body["generationConfig"], @r#"{"imageConfig":{"aspectRatio":"16:9"},"responseModalities":["TEXT","IMAGE"]}"#);
}

/// Returns an answer with a draft of a picture and two pictures.
fn drawn() -> Vec<String> {
    let picture = |data: &str| json!({ "mimeType": "image/png", "data": data });
    let chunks = [
        json!([{ "thought": true, "inlineData": picture("ZHJhZnQ=") }, { "text": "A bee:" }]),
        json!([{ "inlineData": picture("iVBORw=="), "thoughtSignature": "c2ln" }, { "inlineData": picture("YmVl"), "thoughtSignature": "c2ln" }]),
        json!([{ "inlineData": picture("?") }, { "text": "Done." }]),
    ];
    let mut chunks = chunks.map(|parts| json!({ "candidates": [{ "content": { "parts": parts } }] }));
    chunks[2]["candidates"][0]["finishReason"] = "STOP".into();
    chunks.iter().map(Value::to_string).collect()
}

#[test]
fn pictures_are_files_of_the_answer_and_go_back_with_their_signatures() {
    let (pieces, response) = play::<GenerateContentAssembler>(&drawn());
    let response = response.unwrap();
    positronic_model_testing::add_up(&pieces, &response);

    let names: Vec<_> = response.files().map(|file| (&*file.file().name, file.bytes().unwrap())).collect();
    assert_eq!(names, [("image-1.png", &b"\x89PNG"[..]), ("image-2.png", b"bee")]);
    assert!(matches!(&response.parts[3], Part::Opaque { data } if data["gemini"]["inlineData"]["data"] == "?"));

    let (answer, _) = returned(&response);
    let Message::Assistant { mut parts, .. } = answer else { panic!("no answer") };
    parts.remove(3);
    let messages = [user("Draw."), Message::assistant(parts), user("Thanks.")];
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));
    insta::assert_snapshot!(self::parts(&body["contents"][1]), @r#"
    {"text":"A bee:"}
    {"inlineData":{"data":"iVBORw==","mimeType":"image/png"},"thoughtSignature":"c2ln"}
    {"inlineData":{"data":"YmVl","mimeType":"image/png"},"thoughtSignature":"c2ln"}
    {"text":"Done."}
    "#);
}

#[test]
fn picture_of_another_model_is_a_line_where_the_api_wants_a_signature() {
    let made = || Message::assistant(vec![Assistant::File { file: photo(), data: None }]);
    let asked = || request([user("Draw."), made(), user("Thanks.")], Settings::default());
    let body = |name: &str| -> Value {
        let model = model(|config| config.model = name.to_owned());
        serde_json::from_str(&model.wire(&asked())).unwrap()
    };

    insta::assert_snapshot!(parts(&body("gemini-3-pro-image-preview")["contents"][1]), @r#"{"text":"[file bee.png, image/png, 4 bytes]"}"#);
    insta::assert_snapshot!(parts(&body("gemini-2.5-flash-image")["contents"][1]), @r#"{"inlineData":{"data":"iVBORw==","mimeType":"image/png"}}"#);
}

#[tokio::test]
async fn picture_of_a_model_is_stored_and_shown() {
    let mut answer = drawn();
    let call = json!([{ "functionCall": { "name": "hang", "args": {} } }]);
    let end = json!({ "candidates": [{ "content": { "parts": call }, "finishReason": "STOP" }] });
    answer[2] = end.to_string();
    let provider = Provider::start(|_| Ok(()), vec![answer, events(TEXT)]).await;
    let model = model(|config| config.base_url = format!("{}/v1beta", provider.url()));
    let runner = Runner::new(model);
    let painter = brain("Painter").r#loop("Draw", |cx| {
        cx.system("You draw.")
            .input("Draw a bee.")
            .tool("hang", |t| t.description("Hangs the picture").execute(async |_: NoArgs, _| Ok("hung")))
    });
    let run = runner.start(&painter, ()).await.unwrap();
    run.result().await.unwrap();

    insta::assert_snapshot!(seen(&run).await, @r#"
    # Draw
    user: Draw a bee.
    assistant: A bee:
    assistant: [file image-1.png, image/png, 4 bytes]
    assistant: [file image-2.png, image/png, 3 bytes]
    hang({}) -> hung
    assistant: There are **3** "r"s in strawberry.

    st**r**awbe**rr**y
    = {"type":"answered"}
    "#);
    let answer = &provider.bodies()[1]["contents"][1]["parts"];
    assert_eq!(
        answer[1],
        json!({ "inlineData": { "mimeType": "image/png", "data": "iVBORw==" }, "thoughtSignature": "c2ln" })
    );
    let timeline = positronic_model_testing::timeline(&run).await;
    assert_eq!(timeline.files().iter().map(|file| &*file.name).collect::<Vec<_>>(), ["image-1.png", "image-2.png"]);
}

#[tokio::test]
async fn files_that_the_model_cannot_read_are_refused_before_sending_or_left_out() {
    let provider = Provider::start(check, vec![events(TEXT)]).await;
    let model = model(|config| config.base_url = format!("{}/v1beta", provider.url()));
    let table = || Attachment::new("bees.xlsx", "application/vnd.ms-excel", *b"table");
    let refused = async |model: &positronic_gemini::Gemini, file: Attachment| {
        let error =
            model.call(&request([asking("See.", vec![file])], Settings::default()), &NoDeltas).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unsupported);
        error.message
    };
    let gemma = crate::requests::model(|config| {
        config.base_url = format!("{}/v1beta", provider.url());
        config.model = "models/gemma-3-27b-it".to_owned();
    });

    insta::assert_snapshot!(refused(&model, table()).await, @"the API of `gemini` takes no files of the type application/vnd.ms-excel: `bees.xlsx`; convert it, or choose another provider");
    insta::assert_snapshot!(refused(&model, Attachment::new("a.gif", "image/gif", *b"GIF8")).await, @"the API of `gemini` takes no files of the type image/gif: `a.gif`; convert it, or choose another provider");
    insta::assert_snapshot!(refused(&model, FileRef::uploaded("anthropic", "file_1", "image/png").into()).await, @"the file `file_1` was uploaded to `anthropic`, and `gemini` does not have it; upload it there, or attach its bytes");
    insta::assert_snapshot!(refused(&gemma, Attachment::new("hum.mp3", "audio/mpeg", *b"hum")).await, @"the model `gemini/gemma-3-27b-it` cannot read the file `hum.mp3` (audio/mpeg): it reads text and images; choose another model, convert the file, or correct the table of capabilities");
    assert!(provider.requests().await.is_empty());

    let messages = [user("See."), calls(), result("c1", vec![table(), photo()]), result("c2", Vec::new())];
    model.call(&request(messages, Settings::default()), &NoDeltas).await.unwrap();
    let parts = provider.bodies()[0]["contents"][2]["parts"].as_array().unwrap().len();
    assert_eq!(parts, 4, "two results, a picture, and the context");
}
