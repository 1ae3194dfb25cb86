//! Recorded answers of the API.

use positronic_core::record::{Finish, ModelErrorKind, Usage};
use positronic_gemini::GenerateContentAssembler;
use positronic_model_http::Assemble as _;
use positronic_model_testing::{events, in_pieces, play, shown};
use proptest::prelude::*;

pub(crate) const REASONING: &str = include_str!("../data/google-reasoning-gemini3.chunks.txt");
pub(crate) const STREAMED_CALLS: &str = include_str!("../data/google-stream-no-args-tool-call.chunks.txt");
pub(crate) const TEXT: &str = include_str!("../data/google-text.chunks.txt");
pub(crate) const CALL: &str = include_str!("../data/google-tool-call.chunks.txt");

const ALL: [&str; 4] = [REASONING, STREAMED_CALLS, TEXT, CALL];

fn answer(recording: &str) -> serde_json::Value {
    shown(play::<GenerateContentAssembler>(&events(recording)))
}

#[test]
fn text_is_read_with_the_signature_of_its_thoughts() {
    insta::assert_json_snapshot!(answer(TEXT), @r#"
    {
      "metadata": {
        "answered_by": "gemini-3-pro-preview",
        "finish": "stop",
        "response_id": "bH6LaZW8Fp_3nsEPqtaSwQ4",
        "usage": {
          "input": 9,
          "output": 208,
          "reasoning": 185
        }
      },
      "parts": [
        {
          "text": "There are **3** \"r\"s in strawberry.\n\nst**r**awbe**rr**y",
          "type": "text"
        },
        {
          "data": {
            "gemini": {
              "text": "",
              "thoughtSignature": "EqsFCqgFAb4+9vvtAF5n87lB4OGDOoTRMOqp35jW… (916 characters)"
            }
          },
          "type": "opaque"
        }
      ],
      "pieces": 2
    }
    "#);
}

#[test]
fn thoughts_are_counted_beside_the_answer() {
    let response = play::<GenerateContentAssembler>(&events(REASONING)).1.unwrap();

    let usage = Usage { input: 9, output: 325, reasoning: 302, ..Usage::default() };
    assert_eq!(response.metadata.usage, usage);
    assert!(response.text().starts_with("There are **3** \"r\"s in strawberry."), "{}", response.text());
}

#[test]
fn call_is_read_with_its_signature() {
    insta::assert_json_snapshot!(answer(CALL), @r#"
    {
      "calls": [
        {
          "arguments": "{\"location\":\"San Francisco\"}",
          "data": {
            "gemini": {
              "call": {},
              "part": {
                "thoughtSignature": "EqUCCqICAb4+9vsh8Pd5taZVoPzSvjWWwzBrvhEQ… (396 characters)"
              }
            }
          },
          "name": "weather"
        }
      ],
      "metadata": {
        "answered_by": "gemini-3-pro-preview",
        "finish": "calls",
        "response_id": "b36LacjwM668nsEP2tbsgQQ",
        "usage": {
          "input": 29,
          "output": 60,
          "reasoning": 45
        }
      },
      "parts": [
        {
          "index": 0,
          "type": "call"
        }
      ],
      "pieces": 2
    }
    "#);
}

#[test]
fn calls_whose_arguments_stream_are_read() {
    let response = play::<GenerateContentAssembler>(&events(STREAMED_CALLS)).1.unwrap();

    let calls: Vec<_> = response.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    let screen = |id| ("read_screen", id);
    assert_eq!(
        calls,
        [("read_theme", "{}"), screen(r#"{"id":"A"}"#), screen(r#"{"id":"B"}"#), screen(r#"{"id":"C"}"#)]
    );
    assert_eq!(response.metadata.finish, Finish::Calls);
    answer(STREAMED_CALLS);
}

#[test]
fn answer_without_a_finish_reason_is_truncated() {
    for recording in ALL {
        let events = events(recording);
        let end = events.iter().position(|event| event.contains("\"finishReason\"")).unwrap();
        for cut in 0..end {
            let error = play::<GenerateContentAssembler>(&events[..cut]).1.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Truncated);
        }
        assert!(play::<GenerateContentAssembler>(&events[..=end]).1.is_ok());
    }
}

#[test]
fn blocked_prompt_and_stopped_answer_are_distinguished() {
    let blocked = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}"#;
    let error = GenerateContentAssembler::default().feed(blocked).unwrap_err();
    assert_eq!((error.kind, error.provider_code.as_deref()), (ModelErrorKind::Filtered, Some("PROHIBITED_CONTENT")));

    let finish = |reason: &str| {
        let chunk =
            format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"Hm"}}]}},"finishReason":"{reason}"}}]}}"#);
        play::<GenerateContentAssembler>(&[chunk]).1.unwrap().metadata.finish
    };
    assert_eq!(finish("SAFETY"), Finish::Filtered);
    assert_eq!(finish("MAX_TOKENS"), Finish::Length);
    assert_eq!(finish("MALFORMED_FUNCTION_CALL"), Finish::Other("MALFORMED_FUNCTION_CALL".to_owned()));
}

#[test]
fn unknown_parts_and_sources_are_stored() {
    let chunks = [
        r#"{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1+1"}},{"hologram":{"depth":3}}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"Two."}]},"groundingMetadata":{"webSearchQueries":["1+1"]},"finishReason":"STOP"}]}"#,
    ]
    .map(str::to_owned);

    insta::assert_json_snapshot!(shown(play::<GenerateContentAssembler>(&chunks))["parts"], @r#"
    [
      {
        "data": {
          "gemini": {
            "executableCode": {
              "code": "1+1",
              "language": "PYTHON"
            }
          },
          "type": "executableCode"
        },
        "input": "1+1",
        "tool": "code_execution",
        "type": "provider_tool"
      },
      {
        "data": {
          "gemini": {
            "hologram": {
              "depth": 3
            }
          },
          "type": "hologram"
        },
        "type": "opaque"
      },
      {
        "text": "Two.",
        "type": "text"
      },
      {
        "input": "1+1",
        "tool": "web_search",
        "type": "provider_tool"
      }
    ]
    "#);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_recording_is_decoded_wherever_it_is_cut(
        sizes in prop::collection::vec(1_usize..400, 1..40),
        line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        for recording in ALL {
            let events = events(recording);
            let decoded = in_pieces(&events, &sizes, line_end);
            prop_assert_eq!(shown(play::<GenerateContentAssembler>(&decoded)), shown(play::<GenerateContentAssembler>(&events)));
        }
    }

    #[test]
    fn no_text_makes_the_assembler_panic(text in ".{0,200}", path in r"\$[.\[\]'a0-9]{0,20}") {
        let mut assembler = GenerateContentAssembler::default();
        _ = assembler.feed(&text);
        let call = serde_json::json!({ "name": text, "partialArgs": [{ "jsonPath": path, "stringValue": text }] });
        let parts = serde_json::json!([
            { "functionCall": call }, { &text: 1 }, { "text": "a", "thought": true }, { "inlineData": { "mimeType": text, "data": text } },
            { "executableCode": { "code": text } }, { "codeExecutionResult": { "outcome": text } }, { "toolResponse": { "id": text } },
        ]);
        let grounding = serde_json::json!({ "groundingChunks": [{ &text: 1 }], "groundingSupports": [{ "groundingChunkIndices": [0, 9] }] });
        let candidate = serde_json::json!({ "content": { "parts": parts }, "groundingMetadata": grounding });
        let chunk = serde_json::json!({ "candidates": [candidate] });
        _ = assembler.feed(&chunk.to_string());
        _ = assembler.finish();
    }
}
