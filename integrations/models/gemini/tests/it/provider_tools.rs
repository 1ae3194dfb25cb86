//! Tools of the provider.

use positronic_core::model::{Model as _, NoDeltas};
use positronic_core::record::{
    Message, ModelErrorKind, ModelRequest, Part, ProviderTool, Settings, ToolChoice, ToolSet, WebSearchOptions,
    code_execution, image_generation, web_fetch, web_search,
};
use positronic_gemini::GenerateContentAssembler;
use positronic_model_testing::{Provider, in_pieces, play, shown};
use serde_json::{Value, json};

use crate::requests::{check, model, request, returned, sent, user};

fn offering(tools: impl Into<Vec<ProviderTool>>) -> Settings {
    Settings::builder().provider_tools(tools.into()).build()
}

#[test]
fn tools_of_the_provider_follow_those_of_the_brain() {
    let raw = ProviderTool::raw(json!({ "googleMaps": {} }));
    let body =
        sent(&model(|_| ()), &request([user("Hi.")], offering([web_search(), web_fetch(), code_execution(), raw])));

    let tools = body["tools"].as_array().unwrap();
    assert!(tools[0]["functionDeclarations"].is_array());
    insta::assert_snapshot!(tools[1..].iter().map(Value::to_string).collect::<Vec<_>>().join("\n"), @r#"
    {"googleSearch":{}}
    {"urlContext":{}}
    {"codeExecution":{}}
    {"googleMaps":{}}
    "#);
    insta::assert_snapshot!(body["toolConfig"], @r#"{"includeServerSideToolInvocations":true}"#);
}

#[test]
fn brain_may_have_no_tools_of_its_own() {
    let alone = |choice| {
        let mut settings = offering([web_search()]);
        (settings.tool_choice, settings.parallel_tool_calls) = (choice, Some(false));
        let asked = ModelRequest { tools: ToolSet::default().into(), ..request([user("Hi.")], settings) };
        let body = sent(&model(|_| ()), &asked);
        (body["tools"].clone(), body["toolConfig"].clone())
    };

    assert_eq!(alone(ToolChoice::Auto), (json!([{ "googleSearch": {} }]), Value::Null));
    assert_eq!(alone(ToolChoice::None), (Value::Null, Value::Null));
}

#[tokio::test]
async fn tools_and_options_that_the_api_does_not_have_are_refused_before_sending() {
    let provider = Provider::start(check, Vec::new()).await;
    let model = model(|config| config.base_url = format!("{}/v1beta", provider.url()));
    let refused = async |request: ModelRequest| {
        let error = model.call(&request, &NoDeltas).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unsupported);
        error.message
    };
    let with = |tool: ProviderTool| request([user("Hi.")], offering([tool]));
    let limited = WebSearchOptions::builder().max_uses(3).build();
    let narrowed = WebSearchOptions::builder().blocked_domains(["docs.rs".to_owned()]).build();
    let mut required = ModelRequest { tools: ToolSet::default().into(), ..with(web_search()) };
    let mut settings = offering([web_search()]);
    settings.tool_choice = ToolChoice::Required;
    required.settings = settings.into();

    insta::assert_snapshot!(refused(with(image_generation())).await, @"the API of `gemini` has no tool `image_generation`; choose a model that makes pictures, such as `gemini-2.5-flash-image`, and set `response_modalities`");
    insta::assert_snapshot!(refused(with(limited.into())).await, @"a web search of the API of `gemini` has no option `max_uses`; leave it out");
    insta::assert_snapshot!(refused(with(narrowed.into())).await, @"a web search of the API of `gemini` has no option `blocked_domains`; leave it out");
    insta::assert_snapshot!(refused(required).await, @"the API of `gemini` cannot require its own tools; let the model choose, or add a tool to the brain");
    assert!(provider.requests().await.is_empty());
}

/// Returns an answer with a program, a call and its response, and a function call.
fn tools_at_work() -> (Vec<String>, Value) {
    let parts = json!([
        { "executableCode": { "language": "PYTHON", "code": "1+1" }, "thoughtSignature": "c2ln" },
        { "codeExecutionResult": { "outcome": "OUTCOME_OK", "output": "2\n" } },
        { "text": "Two." },
        { "executableCode": { "language": "PYTHON", "code": "import x" } },
        { "codeExecutionResult": { "outcome": "OUTCOME_FAILED", "output": "no module x" } },
        { "toolCall": { "toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "args": { "queries": ["bees", "hives"] } }, "thoughtSignature": "c2ln" },
        { "toolResponse": { "toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "response": { "search_suggestions": "<p>" } }, "thoughtSignature": "c2ln" },
        { "toolResponse": { "toolType": "URL_CONTEXT", "id": "s0", "response": {} } },
        { "functionCall": { "name": "weather", "id": "f1", "args": { "city": "Oslo" } }, "thoughtSignature": "c2ln" },
    ]);
    let chunk = |parts: &[Value]| json!({ "candidates": [{ "content": { "parts": parts } }] });
    let mut chunks: Vec<_> = parts.as_array().unwrap().iter().map(|part| chunk(std::slice::from_ref(part))).collect();
    let end = chunks.last_mut().unwrap();
    end["candidates"][0]["finishReason"] = "STOP".into();
    let web = json!({ "uri": "https://bees.org", "title": "bees.org" });
    end["candidates"][0]["groundingMetadata"] =
        json!({ "webSearchQueries": ["bees"], "groundingChunks": [{ "web": web }] });
    (chunks.iter().map(Value::to_string).collect(), parts)
}

fn line(part: &Part) -> String {
    match part {
        Part::ProviderTool(used) => {
            let mut used = used.clone();
            used.data = None;
            serde_json::to_string(&used).unwrap()
        }
        other => serde_json::to_string(other).unwrap(),
    }
}

fn lines(response: &positronic_core::record::ModelResponse) -> String {
    response.parts.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn entries_say_what_the_tools_did_and_go_back_as_their_parts_came() {
    let (chunks, parts) = tools_at_work();
    let response = play::<GenerateContentAssembler>(&chunks).1.unwrap();
    insta::assert_snapshot!(lines(&response), @r#"
    {"tool":"code_execution","input":"1+1","output":"2"}
    {"type":"text","text":"Two."}
    {"tool":"code_execution","input":"import x","error":"no module x"}
    {"tool":"web_search","input":"bees; hives","sources":[{"url":"https://bees.org","title":"bees.org"}]}
    {"tool":"web_fetch"}
    {"type":"call","index":0}
    "#);

    let (answer, ids) = returned(&response);
    let (call, name, text) = (ids[0].clone(), "weather".to_owned(), "rain".to_owned());
    let messages = [user("Hi."), answer, Message::Tool { call, name, text, files: Vec::new() }];
    let body = sent(&model(|_| ()), &request(messages, offering([web_search()])));
    assert_eq!(body["contents"][1]["parts"], parts);
}

#[test]
fn pieces_add_up_wherever_the_stream_is_cut() {
    let (events, _) = tools_at_work();
    for size in 1..60 {
        let decoded = in_pieces(&events, &[size, 7, 300], "\n");
        assert_eq!(shown(play::<GenerateContentAssembler>(&decoded)), shown(play::<GenerateContentAssembler>(&events)));
    }
}

#[test]
fn sources_of_an_answer_are_shown_and_not_sent() {
    let chunk = json!({ "candidates": [{
        "content": { "parts": [{ "text": "Bees buzz in hives." }] },
        "groundingMetadata": {
            "webSearchQueries": ["bees"],
            "searchEntryPoint": { "renderedContent": "<p>" },
            "groundingChunks": [{ "web": { "uri": "https://bees.org", "title": "bees.org" } }, { "retrievedContext": { "title": "hives.pdf", "text": "hives" } }],
            "groundingSupports": [
                { "segment": { "endIndex": 9, "text": "Bees buzz" }, "groundingChunkIndices": [0, 1] },
                { "segment": { "text": "in hives." }, "groundingChunkIndices": [7] },
            ],
        },
        "urlContextMetadata": { "urlMetadata": [
            { "retrievedUrl": "https://bees.org", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS" },
            { "retrievedUrl": "https://wasps.org", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_ERROR" },
        ] },
        "citationMetadata": { "citationSources": [{ "endIndex": 9, "uri": "https://songs.org", "license": "mit" }] },
        "finishReason": "STOP",
    }] });
    let response = play::<GenerateContentAssembler>(&[chunk.to_string()]).1.unwrap();

    insta::assert_snapshot!(lines(&response), @r#"
    {"type":"text","text":"Bees buzz in hives."}
    {"type":"citations","citations":[{"url":"https://songs.org"}]}
    {"type":"citations","citations":[{"url":"https://bees.org","title":"bees.org","supports":"Bees buzz"},{"title":"hives.pdf","quote":"hives","supports":"Bees buzz"}]}
    {"tool":"web_search","input":"bees","sources":[{"url":"https://bees.org","title":"bees.org"},{"title":"hives.pdf","quote":"hives"}]}
    {"tool":"web_fetch","input":"https://bees.org","sources":[{"url":"https://bees.org"}]}
    {"tool":"web_fetch","input":"https://wasps.org","error":"URL_RETRIEVAL_STATUS_ERROR"}
    "#);
    let (answer, _) = returned(&response);
    let body = sent(&model(|_| ()), &request([user("Hi."), answer, user("Go on.")], Settings::default()));
    assert_eq!(body["contents"][1]["parts"], json!([{ "text": "Bees buzz in hives." }]));
}
