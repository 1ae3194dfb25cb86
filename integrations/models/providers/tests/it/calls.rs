//! Calls whose pieces, ids, names or arguments come in unusual forms.

use positronic_core::record::ProposedCall;
use serde_json::{Value, json};

use crate::played::{Played, hear, stream};

/// Reads a chat answer of these pieces of calls, each in a chunk of its own.
async fn calls(pieces: &[Value]) -> Vec<ProposedCall> {
    let mut events: Vec<_> = pieces
        .iter()
        .map(|piece| json!({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}).to_string())
        .collect();
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}).to_string());
    events.push("[DONE]".to_owned());
    hear("chat", Played::events(&events)).await.answer.unwrap().calls
}

/// Describes calls as `name arguments`.
async fn told(pieces: &[Value]) -> Vec<String> {
    calls(pieces).await.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect()
}

/// A piece of a call; a field whose value is the word `absent` is left out.
fn piece(index: impl Into<Value>, id: impl Into<Value>, name: &str, arguments: &str) -> Value {
    let mut piece = json!({"index": index.into(), "id": id.into(), "function": {"name": name, "arguments": arguments}});
    for field in ["index", "id"] {
        if piece[field] == "absent" {
            piece.as_object_mut().unwrap().remove(field);
        }
    }
    if name.is_empty() {
        piece["function"].as_object_mut().unwrap().remove("name");
    }
    piece
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_under_one_index_are_separate_calls() {
    let (oslo, bergen) = (r#"{"city":"Oslo"}"#, r#"{"city":"Bergen"}"#);
    for index in [json!(0), json!("absent"), Value::Null] {
        for id in [json!(""), json!("absent"), Value::Null] {
            let piece = |name: &str, arguments: &str| piece(index.clone(), id.clone(), name, arguments);
            for (name, other) in [("weather", "weather"), ("weather", "news")] {
                let expected = [format!("{name} {oslo}"), format!("{other} {bergen}")];
                for pieces in [
                    vec![piece(name, oslo), piece(other, bergen)],
                    vec![piece(name, ""), piece("", oslo), piece(other, ""), piece("", bergen)],
                    vec![
                        piece(name, ""),
                        piece("", &oslo[..5]),
                        piece("", &oslo[5..]),
                        piece(other, &bergen[..5]),
                        piece("", &bergen[5..]),
                    ],
                ] {
                    assert_eq!(told(&pieces).await, expected, "{index} {id} {pieces:?}");
                }
            }
            let same = [piece("ping", "{}"), piece("ping", "{}")];
            assert_eq!(told(&same).await, ["ping {}", "ping {}"], "{index} {id}");
        }
        let piece = |id: &str, name: &str, arguments: &str| piece(index.clone(), json!(id), name, arguments);
        let streamed =
            [piece("a", "weather", ""), piece("a", "", oslo), piece("b", "weather", ""), piece("b", "", bergen)];
        assert_eq!(told(&streamed).await, [format!("weather {oslo}"), format!("weather {bergen}")], "{index}");
        let without = [piece("a", "ping", ""), piece("b", "pong", "")];
        assert_eq!(told(&without).await, ["ping {}", "pong {}"], "{index}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_with_one_id_are_told_apart_by_index_or_arguments() {
    let piece = |index: u64, arguments: &str| piece(json!(index), json!("call_1"), "pay", arguments);

    assert_eq!(told(&[piece(0, "{}"), piece(1, "{}")]).await, ["pay {}", "pay {}"]);
    assert_eq!(told(&[piece(0, r#"{"a":1}"#), piece(0, r#"{"a":2}"#)]).await, [r#"pay {"a":1}"#, r#"pay {"a":2}"#]);
    let repeated = [piece(0, r#"{"a":1}"#), piece(0, r#"{"a":1}"#)];
    assert_eq!(told(&repeated).await, [r#"pay {"a":1}"#], "a call that is repeated under its id runs once");
    let placeholder = [piece(0, "{}"), piece(0, r#"{"a":1}"#)];
    assert_eq!(told(&placeholder).await, [r#"pay {"a":1}"#], "empty arguments before the real ones");
}

#[tokio::test(start_paused = true)]
async fn one_call_whose_id_changes_stays_one_call() {
    let arguments = r#"{"city": "Oslo", "near": {"a": {}}}"#;
    for size in [1, 4, 9] {
        for index in [json!(0), json!("absent")] {
            for (name_first, name_after) in [("weather", "weather"), ("weather", "")] {
                let texts: Vec<_> = ["".to_owned()]
                    .into_iter()
                    .chain(arguments.as_bytes().chunks(size).map(|text| String::from_utf8(text.to_vec()).unwrap()))
                    .chain(["".to_owned()])
                    .collect();
                let pieces = texts.iter().enumerate().map(|(number, text)| {
                    let name = if number == 0 { name_first } else { name_after };
                    piece(index.clone(), json!(format!("x{number}")), name, text)
                });
                let read = calls(&pieces.collect::<Vec<_>>()).await;
                let [call] = &read[..] else { panic!("{index} {size} {name_after:?}: {read:?}") };
                assert_eq!((call.name.as_str(), call.arguments.as_str()), ("weather", arguments));
                assert_eq!(call.provider_id.as_deref(), Some("x0"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_in_pieces_is_joined_and_a_repeated_one_is_not() {
    let arguments = r#"{"city":"Oslo"}"#;
    for id in [json!("x"), Value::Null, json!("absent")] {
        let piece = |name: &str, arguments: &str| piece(json!(0), id.clone(), name, arguments);
        for names in
            [["get", "_", "weather"], ["get_weather", "get_weather", "get_weather"], ["get", "get_", "get_weather"]]
        {
            let mut pieces: Vec<_> = names.iter().map(|name| piece(name, "")).collect();
            pieces[0]["id"] = "x".into();
            pieces.push(piece("", arguments));
            assert_eq!(told(&pieces).await, [format!("get_weather {arguments}")], "{id} {names:?}");
        }
    }
    let events = [
        json!({"choices": [{"delta": {"tool_calls": [piece(json!(0), json!("x"), "get_", "")]}}]}).to_string(),
        json!({"choices": [{"delta": {"tool_calls": [piece(json!(0), json!("absent"), "weather", "{}")]}}]})
            .to_string(),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}).to_string(),
    ];
    let pieces = hear("chat", Played::events(&events)).await.pieces;
    assert_eq!(pieces.last().unwrap().tool.as_deref(), Some("get_weather"), "people see the whole name");
}

/// Returns the body of an answer with one call, whose arguments are given as a JSON value.
fn body_with(api: &str, arguments: &str) -> String {
    let events = match api {
        "chat" => vec![
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"pay","arguments":ARGS}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
        "responses" => vec![
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"x","name":"pay","arguments":ARGS}}"#,
            r#"{"type":"response.completed","response":{"status":"completed"}}"#,
        ],
        "anthropic" => vec![
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"pay","input":ARGS}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        _ => vec![
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"pay","args":ARGS}}]},"finishReason":"STOP"}]}"#,
        ],
    };
    stream(&events.iter().map(|event| event.replace("ARGS", arguments)).collect::<Vec<_>>())
}

#[tokio::test(start_paused = true)]
async fn arguments_of_every_form_and_number_arrive_as_the_model_wrote_them() {
    for (sent, read) in [
        (r#"{"city":"Oslo"}"#, r#"{"city":"Oslo"}"#),
        (r#""{\"city\": \"Oslo\"}""#, r#"{"city": "Oslo"}"#),
        (r#"["Oslo"]"#, r#"["Oslo"]"#),
        ("5", "5"),
        ("true", "true"),
        ("null", "{}"),
        ("\"\"", "{}"),
        ("{}", "{}"),
        (r#"{"n":18446744073709551617}"#, r#"{"n":18446744073709551617}"#),
        (r#"{"n":-9223372036854775809}"#, r#"{"n":-9223372036854775809}"#),
        (r#"{"n":[12345678901234567.89,1e400],"t":"1e400"}"#, r#"{"n":[12345678901234567.89,1e400],"t":"1e400"}"#),
        ("18446744073709551617", "18446744073709551617"),
        (r#""{\"n\": 18446744073709551617}""#, r#"{"n": 18446744073709551617}"#),
        (r#"{"n":NaN}"#, r#"{"n":NaN}"#),
        (r#"{"t":"\ud83d"}"#, "{\"t\":\"\u{fffd}\"}"),
    ] {
        for api in crate::played::APIS {
            let heard = hear(api, Played::new(body_with(api, sent))).await;
            let calls = heard.answer.unwrap().calls;
            assert_eq!((calls.len(), calls[0].arguments.as_str()), (1, read), "{api} {sent}");
            let seen: String = heard.pieces.iter().map(|piece| piece.text.as_str()).collect();
            assert!(seen == read || read == "{}" || sent.contains("ud83d"), "{api} {sent}: {seen}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_of_wrapped_parallel_calls_keep_their_numbers() {
    let wrapped = r#"{"tool_uses":[{"recipient_name":"functions.pay","parameters":{"n":18446744073709551617}},{"recipient_name":"functions.ping","parameters":null}]}"#;
    let pieces = [piece(json!(0), json!("x"), "multi_tool_use.parallel", wrapped)];

    assert_eq!(told(&pieces).await, [r#"pay {"n":18446744073709551617}"#, "ping {}"]);
}

#[tokio::test(start_paused = true)]
async fn partial_arguments_without_a_readable_path_make_the_call_invalid() {
    let call = |partial: Value, goes_on: bool| json!({"functionCall": {"name": "pay", "partialArgs": [partial], "willContinue": goes_on}});
    let event = json!({"candidates": [{"content": {"parts": [call(json!({"jsonPath": "to", "stringValue": "Eve"}), false)]}, "finishReason": "STOP"}]});

    let calls = hear("gemini", Played::events(&[event.to_string()])).await.answer.unwrap().calls;

    assert!(calls[0].arguments.starts_with('['), "{}", calls[0].arguments);
}

#[tokio::test(start_paused = true)]
async fn arguments_that_come_only_at_their_end_are_read() {
    let item = json!({"type": "function_call", "call_id": "x", "name": "pay", "arguments": ""});
    for arguments in [json!({"a": 1}), json!("{\"a\":1}")] {
        let events = [
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": arguments}),
            json!({"type": "response.completed", "response": {"status": "completed"}}),
        ];
        let calls =
            hear("responses", Played::events(&events.map(|event| event.to_string()))).await.answer.unwrap().calls;
        assert_eq!(calls[0].arguments, r#"{"a":1}"#);
    }
}

/// Sets or removes a field of each event.
fn with_field(events: &[Value], field: &str, value: Option<u64>) -> Vec<String> {
    let changed = events.iter().cloned().map(|mut event| {
        if let Some(known) = event.get_mut(field) {
            *known = value.into();
        }
        if value.is_none() {
            event.as_object_mut().unwrap().remove(field);
        }
        event.to_string()
    });
    changed.collect()
}

#[tokio::test(start_paused = true)]
async fn blocks_and_items_under_one_index_or_none_are_all_read() {
    let block = |index: u64, block: Value, delta: Value| {
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    };
    let use_of = |index, id: &str, city: &str| {
        let input = json!({"type": "input_json_delta", "partial_json": format!(r#"{{"city":"{city}"}}"#)});
        block(index, json!({"type": "tool_use", "id": id, "name": "weather", "input": {}}), input)
    };
    let start = json!({"type": "message_start", "message": {"id": "m", "content": []}});
    let text = block(0, json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "I look."}));
    let ends =
        [json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}), json!({"type": "message_stop"})];
    let blocks = [use_of(1, "t1", "Oslo"), use_of(2, "t2", "Bergen")].concat();
    let claude: Vec<_> = [start].into_iter().chain(text).chain(blocks).chain(ends).collect();

    let item = |index: u64, item: Value, delta: Value| {
        let mut done = item.clone();
        for (field, value) in delta.as_object().unwrap().iter().filter(|(field, _)| *field != "type") {
            done[field] = value.clone();
        }
        let kind = delta["type"].clone();
        let streamed = delta["arguments"].as_str().or(delta["content"][0]["text"].as_str());
        [
            json!({"type": "response.output_item.added", "output_index": index, "item": item}),
            json!({"type": kind, "output_index": index, "delta": streamed}),
            json!({"type": "response.output_item.done", "output_index": index, "item": done}),
        ]
    };
    let call_of = |index, id: &str, city: &str| {
        let arguments = format!(r#"{{"city":"{city}"}}"#);
        let call = json!({"type": "function_call", "call_id": id, "name": "weather", "arguments": ""});
        item(index, call, json!({"type": "response.function_call_arguments.delta", "arguments": arguments}))
    };
    let said = json!([{"type": "output_text", "text": "I look."}]);
    let said = json!({"type": "response.output_text.delta", "content": said});
    let message = item(0, json!({"type": "message", "id": "m", "content": []}), said);
    let items = [message, call_of(1, "c1", "Oslo"), call_of(2, "c2", "Bergen")].concat();
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    let responses: Vec<_> = items.into_iter().chain([end]).collect();

    let told = r#"I look. | weather{"city":"Oslo"} | weather{"city":"Bergen"}"#;
    for (api, field, events) in [("anthropic", "index", claude), ("responses", "output_index", responses)] {
        let as_sent = events.iter().map(Value::to_string).collect();
        for events in [as_sent, with_field(&events, field, Some(0)), with_field(&events, field, None)] {
            let heard = hear(api, Played::events(&events)).await;
            assert_eq!(heard.told(), told, "{api}: {events:?}");
            assert_eq!(heard.streamed(), "I look.", "{api}");
            let seen = heard.pieces.iter().filter_map(|piece| Some((piece.part, piece.call?)));
            let seen: std::collections::BTreeSet<_> = seen.collect();
            assert_eq!(seen.len(), 2, "{api}: each call has its pieces: {seen:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_last_chunk_repeats_under_its_id_runs_once() {
    let call = |id: &str, city: &str| json!({"functionCall": {"id": id, "name": "weather", "args": {"city": city}}});
    let chunk = |parts: Value, end: Value| json!({"candidates": [{"content": {"parts": parts}, "finishReason": end}]});
    for (last, expected) in [
        (json!([call("a", "Oslo"), call("b", "Bergen")]), 2),
        (json!([call("a", "Oslo"), call("a", "Bergen")]), 3),
        (json!([call("", "Oslo")]), 3),
    ] {
        let events = [chunk(json!([call("a", "Oslo")]), Value::Null), chunk(json!([call("b", "Bergen")]), Value::Null)];
        let events: Vec<_> =
            events.into_iter().chain([chunk(last.clone(), json!("STOP"))]).map(|event| event.to_string()).collect();
        let calls = hear("gemini", Played::events(&events)).await.answer.unwrap().calls;
        assert_eq!(calls.len(), expected, "{last}: {calls:?}");
    }
}
