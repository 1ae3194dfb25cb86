//! Answers in unusual bodies, with unusual ends, and of several generations.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use positronic_core::record::{ModelError, ModelErrorKind, ResponseMetadata, RoutingStep, Settings};
use positronic_model_testing::wire_forms::{self, Encode, Reply};
use serde_json::{Value, json};

use crate::played::{APIS, Played, Step, hear, stream};

fn encode(api: &str) -> Encode {
    match api {
        "anthropic" => wire_forms::messages,
        "gemini" => wire_forms::generate_content,
        "responses" => wire_forms::responses,
        _ => wire_forms::chat,
    }
}

/// An answer with a text and a call.
fn reply(text: &str, amount: u32) -> Reply {
    Reply { text: text.to_owned(), calls: vec![("pay".to_owned(), json!({ "amount": amount }))] }
}

/// The events of such an answer; those of chat end with `[DONE]`.
fn events(api: &str, text: &str, amount: u32, number: usize) -> Vec<String> {
    encode(api)(&reply(text, amount), number)
}

const TOLD: &str = r#"I pay the bill. | pay{"amount":7}"#;

/// The same answer without a stream.
fn whole(api: &str) -> String {
    let text = "I pay the bill.";
    let call = json!({"name": "pay", "arguments": "{\"amount\":7}"});
    let answer = match api {
        "chat" => {
            json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": text, "tool_calls": [{"id": "x", "type": "function", "function": call}],
            }}]})
        }
        "responses" => json!({"id": "r", "object": "response", "status": "completed", "output": [
            {"type": "message", "content": [{"type": "output_text", "text": text}]},
            {"type": "function_call", "call_id": "x", "name": "pay", "arguments": "{\"amount\":7}"},
        ]}),
        "anthropic" => {
            json!({"id": "m", "type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
                {"type": "text", "text": text}, {"type": "tool_use", "id": "x", "name": "pay", "input": {"amount": 7}},
            ]})
        }
        _ => json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
            {"text": text}, {"functionCall": {"name": "pay", "args": {"amount": 7}}},
        ]}}]}),
    };
    serde_json::to_string_pretty(&answer).unwrap()
}

const LABELS: [&str; 5] =
    ["text/event-stream", "application/json", "text/plain", "application/octet-stream", "text/html"];

#[tokio::test(start_paused = true)]
async fn bodies_are_read_whatever_their_label_says() {
    for api in APIS {
        let events = events(api, "I pay the bill.", 7, 0);
        let documents: Vec<_> = events.iter().filter(|event| *event != "[DONE]").cloned().collect();
        let events_in_an_array = format!("[{}]", documents.join(",\r\n"));
        let lines = documents.join("\n");
        let marked = format!("\u{feff}{}", stream(&events));
        for body in
            [stream(&events), whole(api), events_in_an_array, lines, marked, stream(&[whole(api).replace('\n', " ")])]
        {
            for label in LABELS {
                let heard = hear(api, Played::new(body.clone()).labelled(label)).await;
                assert_eq!(heard.told(), TOLD, "{api} as {label}: {body}");
            }
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(body.as_bytes()).unwrap();
            let heard = hear(api, Played::new(gzip.finish().unwrap())).await;
            assert_eq!(heard.told(), TOLD, "{api} in gzip: {body}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn errors_in_every_place_show_the_words_of_the_server() {
    for api in APIS {
        let begun = stream(&events(api, "I pay the bill.", 7, 0)[..2]);
        for (error, words) in [
            ("event: error\ndata: {\"message\":\"overloaded\",\"code\":503}\n\n", "overloaded"),
            ("event: error\ndata: {\"type\":\"error\",\"message\":\"overloaded\"}\n\n", "overloaded"),
            ("event: error\ndata: {\"error\":{\"message\":\"overloaded\"}}\n\n", "overloaded"),
            ("event: error\ndata: {\"detail\":\"overloaded\"}\n\n", "overloaded"),
            ("event: error\ndata: {\"why\":\"overloaded\"}\n\n", "{\"why\":\"overloaded\"}"),
            ("event: error\ndata: overloaded\n\n", "overloaded"),
            ("data: {\"error\":\"overloaded\"}\n\n", "overloaded"),
            ("data: {\"message\":\"overloaded\",\"code\":503}\n\n", "overloaded"),
            ("{\"error\":{\"message\":\"overloaded\",\"code\":503}}\n", "overloaded"),
            ("{\n  \"error\": {\"message\": \"overloaded\"}\n}\n", "overloaded"),
        ] {
            for body in [format!("{begun}{error}"), error.to_owned()] {
                let error = hear(api, Played::new(body.clone())).await.answer.unwrap_err();
                assert_eq!((error.message.as_str(), error.kind), (words, ModelErrorKind::Server), "{api}: {body}");
            }
        }
        let text = hear(api, Played::new("upstream is full\n").labelled("text/plain")).await.answer.unwrap_err();
        assert!(text.message.contains("upstream is full"), "{api}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_before_a_second_beginning_is_kept() {
    for (api, begins) in [("anthropic", "message_start"), ("responses", "response.created")] {
        let (old, new) = (events(api, "I call.", 1, 0), events(api, "Again.", 2, 1));
        assert!(new[0].contains(begins));
        for same_id in [false, true] {
            for cut in 1..=old.len() {
                let mut new = new.clone();
                if same_id {
                    new = events(api, "Again.", 2, 0);
                }
                let spliced: Vec<_> = old[..cut].iter().chain(&new).cloned().collect();
                let heard = hear(api, Played::events(&spliced)).await;
                assert_eq!(heard.told(), r#"Again. | pay{"amount":2}"#, "{api} {cut}");
                assert_eq!(heard.streamed(), "Again.", "{api} {cut}: people see only the second beginning");
                let has_usage = api == "anthropic" || cut == old.len();
                let input = if has_usage && !same_id { 180 } else { 90 };
                assert_eq!(heard.answer.unwrap().metadata.usage.input, input, "{api} {cut} {same_id}");
            }
        }
        let broken: Vec<_> = old.iter().chain(&new[..2]).cloned().collect();
        let error = hear(api, Played::events(&broken)).await.answer.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Truncated, "{api}");
    }
}

/// Puts pauses between events.
fn paused(events: &[String], pause: Duration) -> Vec<Step> {
    let steps = events.iter().map(|event| Step::Send(stream(std::slice::from_ref(event)).into_bytes()));
    steps.flat_map(|step| [step, Step::Pause(pause)]).collect()
}

/// The chunks of an API with a finish reason in each.
fn finishing_always(api: &str, pieces: &[Value]) -> Vec<String> {
    let chunk = |piece: &Value| match api {
        "gemini" => json!({"candidates": [{"content": {"parts": [piece]}, "finishReason": "STOP"}]}),
        _ => json!({"choices": [{"index": 0, "delta": piece, "finish_reason": "stop"}]}),
    };
    pieces.iter().map(|piece| chunk(piece).to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn answer_with_a_finish_reason_in_every_chunk_is_read_to_its_end() {
    let call =
        |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"name": "pay", "arguments": arguments}}]});
    for (api, pieces, told) in [
        (
            "chat",
            vec![json!({"content": "one"}), json!({"content": " two"}), json!({"content": " three"})],
            "one two three",
        ),
        (
            "chat",
            vec![json!({"role": "assistant", "content": ""}), json!({"content": "one"}), json!({"content": " two"})],
            "one two",
        ),
        ("chat", vec![json!({"content": "one"}), json!({"content": ""}), json!({"content": " two"})], "one two"),
        ("chat", vec![json!({"reasoning_content": "hm"}), json!({"content": "one"})], "(hm) | one"),
        ("chat", vec![call(""), call("{\"a\""), call(":1}")], "pay{\"a\":1}"),
        ("gemini", vec![json!({"text": "one"}), json!({"text": " two"}), json!({"text": " three"})], "one two three"),
        ("gemini", vec![json!({"text": "one"}), json!({"functionCall": {"name": "pay", "args": {}}})], "one | pay{}"),
    ] {
        for pause in [0, 3, 100] {
            let mut events = finishing_always(api, &pieces);
            if api == "chat" {
                events.push("[DONE]".to_owned());
            }
            let heard = hear(api, Played::steps(paused(&events, Duration::from_secs(pause)))).await;
            // An empty chunk after content is an end like that of other servers, so only a short pause may follow.
            let is_ambiguous = pause > 0 && pieces.get(1).is_some_and(|piece| piece["content"] == "");
            let expected = if is_ambiguous { "one" } else { told };
            assert_eq!(heard.told(), expected, "{api} {pieces:?} {pause}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answer_that_continued_after_its_finish_reason_needs_the_end_of_its_stream() {
    for api in ["chat", "gemini"] {
        let (one, two) = match api {
            "gemini" => (json!({"text": "one"}), json!({"text": " two"})),
            _ => (json!({"content": "one"}), json!({"content": " two"})),
        };
        let events = finishing_always(api, &[one, two]);
        let silent = hear(api, Played::events(&events).staying_open()).await.answer.unwrap_err();
        assert_eq!(silent.kind, ModelErrorKind::Timeout, "{api}");
        let failed = format!("{}data: {{\"error\":{{\"message\":\"down\"}}}}\n\n", stream(&events));
        assert_eq!(hear(api, Played::new(failed)).await.told(), "error: down", "{api}");
    }
}

#[tokio::test(start_paused = true)]
async fn connection_that_stays_open_after_the_end_delays_the_answer_by_two_seconds_at_most() {
    for api in APIS {
        let events: Vec<_> =
            events(api, "I pay the bill.", 7, 0).into_iter().filter(|event| event != "[DONE]").collect();
        let heard = hear(api, Played::events(&events).staying_open()).await;
        assert_eq!(heard.told(), TOLD, "{api}");
        assert!(heard.took <= Duration::from_secs(2), "{api}: {:?}", heard.took);
    }
}

#[tokio::test(start_paused = true)]
async fn surrogates_are_joined_across_chunks_and_lone_ones_replaced() {
    let text = |api: &str, text: &str| match api {
        "anthropic" => {
            format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#)
        }
        "gemini" => format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#),
        "responses" => format!(r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{text}"}}"#),
        _ => format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#),
    };
    let begin = |api: &str| match api {
        "anthropic" => {
            vec![r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned()]
        }
        _ => Vec::new(),
    };
    let end = |api: &str| match api {
        "anthropic" => r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        "gemini" => r#"{"candidates":[{"finishReason":"STOP"}]}"#,
        "responses" => r#"{"type":"response.completed","response":{"status":"completed"}}"#,
        _ => r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    };
    for (pieces, read) in [
        (vec![r"ok \ud83d", r"\ude00 done"], "ok 😀 done"),
        (vec![r"\uD83D", r"\uDE00"], "😀"),
        (vec![r"ok \ud83d", " done"], "ok \u{fffd} done"),
        (vec![r"ok \ude00", " done"], "ok \u{fffd} done"),
        (vec![r"a\ud83db", r"c\ud83d\ude00d"], "a\u{fffd}bc😀d"),
        (vec![r"\ud83d\ud83d", r"\ude00\ude00"], "\u{fffd}😀\u{fffd}"),
    ] {
        for api in APIS {
            let mut events = begin(api);
            events.extend(pieces.iter().map(|piece| text(api, piece)));
            events.push(end(api).to_owned());
            let heard = hear(api, Played::events(&events)).await;
            assert_eq!(heard.told(), read, "{api} {pieces:?}");
            assert_eq!(heard.streamed(), read, "{api} {pieces:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_that_are_not_json_are_ignored_outside_of_arguments() {
    for api in APIS {
        for number in ["NaN", "-Infinity", "Infinity", "1e999", "123456789012345678901234567890"] {
            let note = format!("{{\"logprobs\":{{\"a\":[{number}]}},");
            let events = events(api, "I pay the bill.", 7, 0).into_iter().map(|event| match event.as_str() {
                "[DONE]" => event,
                _ => event.replacen('{', &note, 1),
            });
            let heard = hear(api, Played::events(&events.collect::<Vec<_>>())).await;
            assert_eq!(heard.told(), TOLD, "{api} {number}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whole_message_after_its_pieces_adds_only_what_they_lack() {
    let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]}).to_string();
    let call = |arguments: &str| json!({"index": 0, "id": "x", "function": {"name": "pay", "arguments": arguments}});
    let last = |delta: Value| {
        let message = json!({"role": "assistant", "content": "hi there", "reasoning_content": "hm", "tool_calls": [call("{\"a\":1}")]});
        let mut choice = json!({"index": 0, "finish_reason": "stop", "message": message});
        if !delta.is_null() {
            choice["delta"] = delta;
        }
        json!({"object": "chat.completion", "choices": [choice]}).to_string()
    };
    let pieces = [
        json!({"reasoning_content": "h"}),
        json!({"reasoning_content": "m"}),
        json!({"content": "hi "}),
        json!({"content": "there"}),
        json!({"tool_calls": [call("{\"a\"")]}),
        json!({"tool_calls": [call(":1}")]}),
    ];
    for delta in [Value::Null, json!({}), json!({"role": "assistant", "content": ""})] {
        for cut in 0..=pieces.len() {
            let mut events: Vec<_> = pieces[..cut].iter().cloned().map(chunk).collect();
            events.push(last(delta.clone()));
            let heard = hear("chat", Played::events(&events)).await;
            assert_eq!(heard.told(), "(hm) | hi there | pay{\"a\":1}", "{cut} {delta}");
            assert_eq!(heard.streamed(), "hi there", "{cut} {delta}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_choice_is_read_under_every_index_and_the_first_of_several() {
    let chunk = |index: u64, text: &str| json!({"index": index, "delta": {"content": text}});
    let end = json!({"choices": [{"index": 9, "delta": {}, "finish_reason": "stop"}]}).to_string();
    for first in [0, 1, 197] {
        let pieces = ["a", "b", "c"].into_iter().zip(first..);
        let mut events: Vec<_> =
            pieces.map(|(text, index)| json!({"choices": [chunk(index, text)]}).to_string()).collect();
        events.push(end.clone());
        assert_eq!(hear("chat", Played::events(&events)).await.told(), "abc", "{first}");
    }
    let mut settings = Settings::default();
    settings.extra.insert("n".to_owned(), json!(2));
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string();
    let events =
        [json!({"choices": [chunk(1, "b")]}).to_string(), json!({"choices": [chunk(0, "a")]}).to_string(), end];
    let played = Played { settings, ..Played::events(&events) };
    assert_eq!(hear("chat", played).await.told(), "a");
}

#[tokio::test(start_paused = true)]
async fn block_whose_start_repeats_its_deltas_is_read_once() {
    let event = |value: Value| value.to_string();
    let block = |start: Value, deltas: &[Value]| {
        let mut events = vec![event(json!({"type": "content_block_start", "index": 0, "content_block": start}))];
        events.extend(
            deltas.iter().map(|delta| event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))),
        );
        events.push(event(json!({"type": "content_block_stop", "index": 0})));
        events.push(event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})));
        events.push(event(json!({"type": "message_stop"})));
        events
    };
    let text = |text: &str| json!({"type": "text_delta", "text": text});
    for (start, deltas, read) in [
        ("Hello", vec!["Hello"], "Hello"),
        ("Hello", vec!["H", "el", "lo"], "Hello"),
        ("Hello", vec!["Hel", "lo you"], "Hello you"),
        ("Hello", vec![" you"], "Hello you"),
        ("Hello", vec!["Help"], "HelloHelp"),
        ("Hello", vec!["Hel"], "HelloHel"),
        ("Hello", vec![], "Hello"),
        ("", vec!["Hello", "Hello"], "HelloHello"),
    ] {
        let deltas: Vec<_> = deltas.into_iter().map(text).collect();
        let heard = hear("anthropic", Played::events(&block(json!({"type": "text", "text": start}), &deltas))).await;
        assert_eq!(heard.told(), read, "{start} {deltas:?}");
        assert_eq!(heard.streamed(), read, "{start} {deltas:?}");
    }
    let input = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    let start = json!({"type": "tool_use", "id": "x", "name": "pay", "input": {"a": 1}});
    for (deltas, read) in [
        (vec![input("{\"a\""), input(": 1}")], "pay{\"a\": 1}"),
        (vec![input("")], "pay{\"a\":1}"),
        (vec![json!({"type": "input_json_delta", "partial_json": {"a": 2}})], "pay{\"a\":2}"),
        (vec![], "pay{\"a\":1}"),
    ] {
        let heard = hear("anthropic", Played::events(&block(start.clone(), &deltas))).await;
        assert_eq!(heard.told(), read, "{deltas:?}");
    }
    let signed = json!({"type": "thinking", "thinking": "Hm.", "signature": "sig"});
    let deltas =
        [json!({"type": "thinking_delta", "thinking": "Hm."}), json!({"type": "signature_delta", "signature": "sig"})];
    let answer = hear("anthropic", Played::events(&block(signed, &deltas))).await.answer.unwrap();
    let shown = serde_json::to_value(&answer.parts).unwrap();
    assert_eq!((&shown[0]["text"], &shown[0]["data"]["signature"]), (&json!("Hm."), &json!("sig")));
}

/// Returns what an answer had used when it broke.
fn spent(error: &ModelError) -> &ResponseMetadata {
    let [RoutingStep::Broken { metadata }] = &error.via[..] else { panic!("{error:?}") };
    metadata
}

#[tokio::test(start_paused = true)]
async fn what_an_answer_had_used_when_it_broke_is_in_its_error() {
    for api in APIS {
        let events = events(api, "I pay the bill.", 7, 0);
        let usage = events.iter().position(|event| event.contains("90")).unwrap();
        let broken = format!("{}data: {{\"error\":{{\"message\":\"down\"}}}}\n\n", stream(&events[..=usage]));
        // Where the usage comes with the end, no error revokes the answer.
        let Err(error) = hear(api, Played::new(broken)).await.answer else { continue };
        let spent = spent(&error);
        assert_eq!(spent.usage.input, 90, "{api}");
        assert!(!spent.provider.is_empty() && !spent.model.is_empty(), "{api}: {spent:?}");
    }
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"content": "par"}}], "usage": {"prompt_tokens": 90, "completion_tokens": 2}}).to_string(),
    ];
    let error = hear("chat", Played::events(&chunks)).await.answer.unwrap_err();
    assert_eq!((error.kind, spent(&error).usage.output), (ModelErrorKind::Truncated, 2));
    let silent = hear("chat", Played::events(&chunks).staying_open()).await.answer.unwrap_err();
    assert_eq!((silent.kind, spent(&silent).usage.input), (ModelErrorKind::Timeout, 90));
}
