//! Recorded answers of the API.

use positronic_anthropic::MessagesAssembler;
use positronic_core::record::{Finish, ModelErrorKind, Part};
use positronic_model_http::Assemble as _;
use positronic_model_testing::{events, in_pieces, play, shown};
use proptest::prelude::*;

pub(crate) const CLEAR_THINKING: &str = include_str!("../data/anthropic-clear-thinking.1.chunks.txt");
pub(crate) const TEXT: &str = include_str!("../data/anthropic-text.chunks.txt");
pub(crate) const TOOL_WITHOUT_ARGUMENTS: &str = include_str!("../data/anthropic-tool-no-args.chunks.txt");
pub(crate) const WEB_SEARCH: &str = include_str!("../data/anthropic-web-search-tool.1.chunks.txt");
const JSON_TOOL: &str = include_str!("../data/anthropic-json-tool.1.chunks.txt");
const REFUSAL: &str = include_str!("../data/anthropic-refusal.chunks.txt");

const ALL: [&str; 6] = [CLEAR_THINKING, TEXT, TOOL_WITHOUT_ARGUMENTS, WEB_SEARCH, JSON_TOOL, REFUSAL];

fn answer(recording: &str) -> serde_json::Value {
    shown(play::<MessagesAssembler>(&events(recording)))
}

#[test]
fn text_is_read_with_its_usage() {
    insta::assert_json_snapshot!(answer(TEXT), @r#"
    {
      "metadata": {
        "answered_by": "claude-sonnet-4-5-20250929",
        "finish": "stop",
        "response_id": "msg_01QC4g3HwBThD4BaNtBckFDJ",
        "usage": {
          "input": 12,
          "output": 30
        }
      },
      "parts": [
        {
          "text": "Hello! I'm doing well, thank you for ask… (108 characters)",
          "type": "text"
        }
      ],
      "pieces": 6
    }
    "#);
}

#[test]
fn thinking_is_stored_with_its_signature() {
    insta::assert_json_snapshot!(answer(CLEAR_THINKING), @r#"
    {
      "metadata": {
        "answered_by": "claude-sonnet-4-5-20250929",
        "finish": "stop",
        "response_id": "msg_01Y6V41gqPaKWEw7iPouH7iW",
        "usage": {
          "input": 69,
          "output": 53
        }
      },
      "parts": [
        {
          "data": {
            "signature": "EvQBCkYICxgCKkAxhD4NUKFzudtZ6NzbZdEiBACI… (332 characters)",
            "type": "thinking"
          },
          "text": "The previous result was 925. Now I need … (75 characters)",
          "type": "reasoning"
        },
        {
          "text": "925 ÷ 5 = 185",
          "type": "text"
        }
      ],
      "pieces": 13
    }
    "#);
}

#[test]
fn call_is_read_with_its_arguments() {
    insta::assert_json_snapshot!(answer(JSON_TOOL), @r#"
    {
      "calls": [
        {
          "arguments": "{\"elements\": [{\"location\": \"San Francisc… (86 characters)",
          "name": "json",
          "provider_id": "toolu_01KFbKqPYSuAKujiL6mTfzYA"
        }
      ],
      "metadata": {
        "answered_by": "claude-haiku-4-5-20251001",
        "finish": "calls",
        "response_id": "msg_01K2JbSUMYhez5RHoK9ZCj9U",
        "usage": {
          "input": 849,
          "output": 47
        }
      },
      "parts": [
        {
          "index": 0,
          "type": "call"
        }
      ],
      "pieces": 4
    }
    "#);
}

#[test]
fn call_without_arguments_is_read() {
    insta::assert_json_snapshot!(answer(TOOL_WITHOUT_ARGUMENTS), @r#"
    {
      "calls": [
        {
          "arguments": "{}",
          "name": "updateIssueList",
          "provider_id": "toolu_01QE1WLsSVp5hy5Q3GmGTmjP"
        }
      ],
      "metadata": {
        "answered_by": "claude-sonnet-4-5-20250929",
        "finish": "calls",
        "response_id": "msg_01GE2RKp1VYsPzdFs3sS9z5S",
        "usage": {
          "input": 565,
          "output": 48
        }
      },
      "parts": [
        {
          "text": "I'll update the issue list for you.",
          "type": "text"
        },
        {
          "index": 0,
          "type": "call"
        }
      ],
      "pieces": 4
    }
    "#);
}

#[test]
fn refusal_has_the_explanation() {
    insta::assert_json_snapshot!(answer(REFUSAL), @r#"
    {
      "metadata": {
        "answered_by": "claude-fable-5",
        "finish": "refused",
        "response_id": "msg_01RefusalStreamAbcdefghijk",
        "usage": {
          "input": 18,
          "output": 5
        }
      },
      "parts": [
        {
          "text": "This request triggered restrictions on v… (110 characters)",
          "type": "refusal"
        }
      ],
      "pieces": 0
    }
    "#);
}

#[test]
fn search_of_the_provider_and_citations_are_parts_of_the_answer() {
    let (_, response) = play::<MessagesAssembler>(&events(WEB_SEARCH));
    let response = response.unwrap();

    let Part::ProviderTool(search) = &response.parts[0] else { panic!("no search") };
    assert_eq!((&*search.tool, search.input.as_deref()), ("web_search", Some("tech news today September 26 2025")));
    assert_eq!((search.sources.len(), &search.error), (10, &None));
    assert_eq!(
        search.sources[0].line(),
        "The Latest AI News and AI Breakthroughs that Matter Most: 2025 | News \
         <https://www.crescendo.ai/news/latest-ai-news-and-updates>"
    );
    let data = search.data.as_ref().unwrap();
    let kinds: Vec<_> = data["anthropic"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!((&data["type"], kinds.len()), (kinds[0], 2));

    let cited: Vec<_> = response
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Citations { citations, data: Some(_) } => Some(citations),
            _ => None,
        })
        .collect();
    assert_eq!(cited.len(), 9);
    assert!(matches!(&response.parts[2], Part::Text { text } if text.starts_with("Apple today announced")));
    let first = &cited[0][0];
    assert_eq!(
        first.title.as_deref(),
        Some("The all-new Apple Ginza opens this Friday, September 26, in Tokyo - Apple")
    );
    assert!(first.quote.as_deref().unwrap().starts_with("Apple today announced the grand reopening"));
    assert_eq!(response.metadata.finish, Finish::Stop);
}

#[test]
fn answer_cut_before_its_stop_reason_is_truncated() {
    for recording in ALL {
        let events = events(recording);
        let end = events.iter().position(|event| event.contains("\"message_delta\"")).unwrap();
        for cut in 0..end {
            let error = play::<MessagesAssembler>(&events[..cut]).1.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Truncated);
        }
        assert!(play::<MessagesAssembler>(&events[..=end]).1.is_ok());
    }
}

#[test]
fn failure_during_an_answer_has_its_kind() {
    let failure = |kind: &str| {
        let event = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"no"}}}}"#);
        MessagesAssembler::default().feed(&event).unwrap_err().kind
    };

    assert_eq!(failure("overloaded_error"), ModelErrorKind::Server);
    assert_eq!(failure("rate_limit_error"), ModelErrorKind::RateLimited);
    assert_eq!(failure("authentication_error"), ModelErrorKind::Auth);
}

#[test]
fn unknown_events_blocks_and_deltas_are_kept_or_skipped() {
    let events = [
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":3}}}"#,
        r#"{"type":"weather_report","sky":"blue"}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"sketch","canvas":{"w":3},"strokes":"a"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"strokes_delta","strokes":"b"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"ink_level","level":3}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"resting"},"usage":{"output_tokens":1}}"#,
    ]
    .map(str::to_owned);

    insta::assert_json_snapshot!(shown(play::<MessagesAssembler>(&events)), @r#"
    {
      "metadata": {
        "finish": {
          "other": "resting"
        },
        "response_id": "m",
        "usage": {
          "input": 3,
          "output": 1
        }
      },
      "parts": [
        {
          "data": {
            "anthropic": {
              "canvas": {
                "w": 3
              },
              "strokes": "ab",
              "type": "sketch"
            },
            "type": "sketch"
          },
          "type": "opaque"
        }
      ],
      "pieces": 0
    }
    "#);
}

#[test]
fn answer_that_is_not_streamed_is_the_same() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[
        {"type":"thinking","thinking":"Hm.","signature":"sig"},
        {"type":"text","text":"It rains."},
        {"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Oslo"}}],
        "stop_reason":"tool_use","usage":{"input_tokens":10,
        "cache_read_input_tokens":5,"cache_creation_input_tokens":6,
        "cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":4},"output_tokens":7}}"#;
    let mut assembler = MessagesAssembler::default();
    let pieces = assembler.feed_complete(body).unwrap();

    insta::assert_json_snapshot!(shown((pieces, assembler.finish())), @r#"
    {
      "calls": [
        {
          "arguments": "{\"city\":\"Oslo\"}",
          "name": "weather",
          "provider_id": "toolu_1"
        }
      ],
      "metadata": {
        "answered_by": "claude-sonnet-4-5",
        "finish": "calls",
        "response_id": "msg_1",
        "usage": {
          "cache_write": 6,
          "cache_write_1h": 4,
          "cached": 5,
          "input": 21,
          "output": 7
        }
      },
      "parts": [
        {
          "data": {
            "signature": "sig",
            "type": "thinking"
          },
          "text": "Hm.",
          "type": "reasoning"
        },
        {
          "text": "It rains.",
          "type": "text"
        },
        {
          "index": 0,
          "type": "call"
        }
      ],
      "pieces": 3
    }
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
            prop_assert_eq!(shown(play::<MessagesAssembler>(&decoded)), shown(play::<MessagesAssembler>(&events)));
        }
    }

    #[test]
    fn no_text_makes_the_assembler_panic(text in ".{0,200}", index in 0_u64..3) {
        let mut assembler = MessagesAssembler::default();
        _ = assembler.feed(&text);
        let block = serde_json::json!({ "type": "content_block_start", "index": index, "content_block": { "type": text } });
        _ = assembler.feed(&block.to_string());
        for content in [serde_json::json!(text), serde_json::json!([text, { "url": text }]), serde_json::json!({ &text: text })] {
            let kind = format!("{text}_tool_result");
            let block = serde_json::json!({ "type": kind, "tool_use_id": text, "content": content });
            let event = serde_json::json!({ "type": "content_block_start", "index": index + 3, "content_block": block });
            _ = assembler.feed(&event.to_string());
        }
        let delta = serde_json::json!({ "type": text, "text": text });
        let event = serde_json::json!({ "type": "content_block_delta", "index": index, "delta": delta });
        _ = assembler.feed(&event.to_string());
        _ = assembler.feed(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#);
        prop_assert!(assembler.finish().is_ok());
    }
}
