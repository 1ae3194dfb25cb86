//! Random and hostile input for the parsers of external input. `docs/guide/appendix/lanes.md` explains how to run many cases.
//!
//! Each test reads the stored inputs of `tests/data/fuzz` unchanged and randomly changed. None may panic or loop
//! forever, and each has its own property. Counts inside the code under test bound the work, so nothing is timed.

use positronic_model_http::Assemble as _;
use std::path::Path;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, EventKind, ModelError, ModelResponse, OrderedJson, ToolResult};
use positronic_core::tools::Schema;
use positronic_model_http::SseDecoder;
use positronic_model_http::schema::{SchemaRole, WireSchema};
use positronic_openai::{ChatAssembler, ResponsesAssembler};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// Returns the files of a folder of test data.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[derive(Debug, Clone)]
enum Edit {
    Cut(Index, Index),
    Repeat(Index, Index),
    Put(Index, Vec<u8>),
    Flip(Index, u8),
}

/// Creates one of the inputs with some changes. `tokens` are meaningful to the parser.
fn changed(inputs: Vec<Vec<u8>>, tokens: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let place = any::<Index>;
    let put = prop_oneof![
        3 => select(tokens).prop_map(|token| token.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ];
    let edit = prop_oneof![
        (place(), place()).prop_map(|(from, to)| Edit::Cut(from, to)),
        (place(), place()).prop_map(|(from, to)| Edit::Repeat(from, to)),
        (place(), put).prop_map(|(at, bytes)| Edit::Put(at, bytes)),
        (place(), any::<u8>()).prop_map(|(at, byte)| Edit::Flip(at, byte)),
    ];
    (select(inputs), vec(edit, 0..6)).prop_map(|(mut bytes, edits)| {
        for edit in edits {
            let places = bytes.len() + 1;
            let range = |one: Index, other: Index| {
                let (one, other) = (one.index(places), other.index(places));
                one.min(other)..one.max(other).min(one.min(other) + 4096)
            };
            match edit {
                Edit::Cut(from, to) => drop(bytes.drain(range(from, to))),
                Edit::Repeat(from, to) => {
                    let range = range(from, to);
                    let part = bytes[range.clone()].to_vec();
                    bytes.splice(range.end..range.end, part);
                }
                Edit::Put(at, part) => {
                    let at = at.index(places);
                    bytes.splice(at..at, part);
                }
                Edit::Flip(at, byte) => {
                    if !bytes.is_empty() {
                        let at = at.index(bytes.len());
                        bytes[at] = byte;
                    }
                }
            }
        }
        bytes
    })
}

/// Decodes a stream in chunks of the lengths `sizes`, in turn.
fn events(bytes: &[u8], sizes: &[usize]) -> Result<Vec<String>, String> {
    let mut decoder = SseDecoder::with_limit(1 << 20);
    let mut all = Vec::new();
    let (mut rest, mut sizes) = (bytes, sizes.iter().cycle());
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(rest.len()).clamp(1, rest.len());
        let (piece, further) = rest.split_at(size);
        all.extend(decoder.feed(piece).map_err(|error| error.to_string())?);
        rest = further;
    }
    all.extend(decoder.finish());
    Ok(all.into_iter().map(|event| event.data).collect())
}

/// Feeds chunks until one fails.
fn assembled<A>(
    mut assembler: A,
    chunks: &[String],
    feed: fn(&mut A, &str) -> Result<usize, ModelError>,
    finish: fn(A) -> Result<ModelResponse, ModelError>,
) -> Result<ModelResponse, ModelError> {
    for chunk in chunks {
        feed(&mut assembler, chunk)?;
    }
    finish(assembler)
}

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "-1",
    "1e999",
    "\\ud800",
    "\"index\":",
    "\"type\":",
    "\"delta\":",
    "\n",
    "\r",
];
const SSE: &[&str] = &[
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "data:",
    "data: {\"choices\":[]}",
    ": ",
    "event: error",
    "[DONE]",
    "\u{feff}",
    "{",
    "}",
    "\"",
];

fn streams(folder: &str) -> Vec<Vec<u8>> {
    let recorded = files(&format!("../../../integrations/models/openai/tests/data/{folder}")).into_iter().map(|file| {
        let text = String::from_utf8(file).unwrap();
        text.lines().map(|line| format!("data: {line}\n\n")).collect::<String>().into_bytes()
    });
    recorded.filter(|stream| stream.len() < 64 << 10).chain(files("fuzz/sse")).collect()
}

/// Converts a schema for endpoints; the conversion must terminate.
fn sent(schema: &Value) {
    let schema = OrderedJson::of_schema(schema);
    for role in [SchemaRole::Arguments, SchemaRole::Answer] {
        _ = WireSchema::new(&schema, role, true);
    }
}

/// Generates schemas from the keywords that refer, combine and descend.
fn schemas() -> impl Strategy<Value = Value> {
    let reference = select(vec!["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#node", "#/nowhere", "x.json"]);
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({"type": "string", "pattern": "^(a+)+$"})),
        Just(json!({"pattern": "^(?!b)(a|aa)+$"})),
        Just(json!({"uniqueItems": true, "minItems": 1})),
        Just(json!({"$dynamicAnchor": "node"})),
        Just(json!({"type": "object", "properties": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}})),
        reference.prop_map(|reference| json!({"$ref": reference})),
    ];
    let names = select(vec!["properties", "$defs", "dependentSchemas", "patternProperties"]);
    let lists = select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
    let ones = select(vec![
        "not",
        "if",
        "then",
        "items",
        "additionalProperties",
        "unevaluatedProperties",
        "contains",
        "propertyNames",
    ]);
    let schema = leaf.prop_recursive(5, 40, 4, move |inner| {
        let named =
            (names.clone(), inner.clone(), inner.clone()).prop_map(|(name, a, b)| json!({name: {"a": a, "b": b}}));
        let list = (lists.clone(), vec(inner.clone(), 1..4)).prop_map(|(name, items)| json!({name: items}));
        let one = (ones.clone(), inner).prop_map(|(name, inner)| json!({name: inner}));
        vec(prop_oneof![named, list, one], 1..3).prop_map(|parts| {
            let fields = parts.into_iter().filter_map(|part| part.as_object().cloned()).flatten();
            Value::Object(fields.collect())
        })
    });
    schema.boxed()
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), "a{0,40}b?".prop_map(Value::from)];
    leaf.prop_recursive(12, 60, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((select(vec!["a", "b", "c"]), inner), 0..3)
                .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn fuzz_sse(bytes in changed(streams("streams/chat"), SSE), sizes in vec(1_usize..40, 1..8)) {
        prop_assert_eq!(events(&bytes, &[]), events(&bytes, &sizes), "it does not matter where a stream is cut");
    }

    #[test]
    fn fuzz_chat_decoder(bytes in changed(streams("streams/chat"), JSON)) {
        let chunks = events(&bytes, &[]).unwrap_or_default();
        let read = || {
            let feed = |assembler: &mut ChatAssembler, chunk: &str| assembler.feed(chunk).map(|pieces| pieces.len());
            assembled(ChatAssembler::default(), &chunks, feed, ChatAssembler::finish)
        };

        let response = read();
        prop_assert_eq!(&response, &read(), "the same chunks make the same answer");
        if let Ok(response) = response {
            let stored = serde_json::to_string(&response).unwrap();
            prop_assert_eq!(serde_json::from_str::<ModelResponse>(&stored).unwrap(), response, "an answer can be stored");
        }
    }

    #[test]
    fn fuzz_responses_decoder(bytes in changed(streams("streams/responses"), JSON)) {
        let chunks = events(&bytes, &[]).unwrap_or_default();
        let read = || {
            let feed = |assembler: &mut ResponsesAssembler, chunk: &str| assembler.feed(chunk).map(|pieces| pieces.len());
            assembled(ResponsesAssembler::default(), &chunks, feed, ResponsesAssembler::finish)
        };

        let response = read();
        prop_assert_eq!(&response, &read(), "the same events make the same answer");
        if let Ok(response) = response {
            let stored = serde_json::to_string(&response).unwrap();
            prop_assert_eq!(serde_json::from_str::<ModelResponse>(&stored).unwrap(), response, "an answer can be stored");
        }
    }

    #[test]
    fn fuzz_event_json(line in changed(lines(), JSON)) {
        if let Ok(event) = Event::from_json(&String::from_utf8_lossy(&line)) {
            let written = event.to_json().unwrap();
            let again = Event::from_json(&written).unwrap();
            prop_assert_eq!(again.to_json().unwrap(), written, "an event that is read can be written and read");
        }
    }

    #[test]
    fn fuzz_schema_text(text in changed(files("fuzz/schemas"), JSON), value in values()) {
        if let Ok(schema) = serde_json::from_slice::<Value>(&text) {
            sent(&schema);
            let schema = Schema::new(schema);
            prop_assert_eq!(schema.check(&value), schema.check(&value));
        }
    }

    #[test]
    fn fuzz_schema(schema in schemas(), value in values()) {
        sent(&schema);
        let schema = Schema::new(schema);
        let compiled = schema.compile();
        let checked = schema.check(&value);
        prop_assert!(compiled.is_ok() || checked.is_err(), "what cannot be compiled accepts nothing");
    }
}

fn lines() -> Vec<Vec<u8>> {
    super::events::stored_examples().into_iter().map(String::into_bytes).chain(files("fuzz/events")).collect()
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Given {
    #[serde(default)]
    a: Option<Value>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(8), ..ProptestConfig::default() })]

    #[test]
    fn fuzz_tool_arguments(text in prop_oneof![
        changed(vec![b"{\"a\": [1, {\"b\": \"\\u0000\"}]}".to_vec(), "{\"a\":".repeat(2_000).into_bytes()], JSON),
        (1_usize..3_000).prop_map(|depth| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth)).into_bytes()),
    ]) {
        let arguments = String::from_utf8_lossy(&text).into_owned();
        let model = ScriptedModel::new([Reply::call("echo", Value::from(arguments.as_str())), Reply::text("done")]);
        let echo = brain("Echo").r#loop("Work", |cx| {
            cx.system("Work.").input("Go.").tool("echo", |t| t.execute(async |given: Given, _| Ok(given)))
        });

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let log = runtime.block_on(async {
            let run = Runner::new(model).start(&echo, ()).await.unwrap();
            run.result().await.unwrap();
            run.events(positronic_core::record::Seq(0)).await.unwrap()
        });

        let result = log.iter().find_map(|event| match &event.kind {
            EventKind::LoopToolResult { result, .. } => Some(result.clone()),
            _ => None,
        });
        if let ToolResult::Success { output, .. } = result.expect("every call has a result") {
            let written = if arguments.trim().is_empty() { "{}" } else { &arguments };
            let repaired = log.iter().any(|event| match &event.kind {
                EventKind::LoopToolCall(call) => call.repair.is_some(),
                _ => false,
            });
            match serde_json::from_str::<Value>(written) {
                Ok(read) => prop_assert_eq!(output.get("a"), Some(read.get("a").unwrap_or(&Value::Null)), "the tool gets what was written"),
                Err(_) => prop_assert!(repaired, "arguments that are not JSON are taken only with a repair that the call names"),
            }
        }
        for event in log {
            Event::from_json(&event.to_json().unwrap()).unwrap();
        }
    }
}
