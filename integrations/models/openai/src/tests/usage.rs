//! Token usage, under the names that servers use.

use positronic_core::record::Usage;
use positronic_model_http::Assemble as _;
use serde_json::{Value, json};

use crate::{ChatAssembler, ResponsesAssembler};

fn chat(usage: &Value) -> Usage {
    let mut assembler = ChatAssembler::default();
    let message = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": usage});
    assembler.feed_complete(&message.to_string()).unwrap();
    assembler.finish().unwrap().metadata.usage
}

#[test]
fn cache_tokens_are_found_under_every_name() {
    for (usage, cached, cache_write) in [
        (json!({"prompt_tokens_details": {"cached_tokens": 4}}), 4, 0),
        (json!({"cached_tokens": 4}), 4, 0),
        (json!({"cached_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}}), 4, 0),
        (json!({"prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6}), 4, 0),
        (json!({"cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}), 4, 3),
        (json!({"prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}}), 4, 3),
        (json!({"prompt_tokens_details": {"cached_tokens": 4, "cache_creation_tokens": 3}}), 4, 3),
        (json!({"prompt_tokens_details": {"cache_creation_input_tokens": 3, "cache_type": "ephemeral"}}), 0, 3),
        (json!({"cached_tokens": null, "prompt_tokens_details": null}), 0, 0),
    ] {
        let read = chat(&usage);
        assert_eq!((read.cached, read.cache_write), (cached, cache_write), "{usage}");
    }
}

#[test]
fn usage_inside_of_a_choice_counts() {
    let chunk = json!({"choices": [{
        "delta": {"content": "Hi"},
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 8},
    }]});
    let mut assembler = ChatAssembler::default();
    assembler.feed(&chunk.to_string()).unwrap();

    let usage = assembler.finish().unwrap().metadata.usage;

    assert_eq!(usage, Usage { input: 9, output: 2, cached: 8, ..Usage::default() });
}

#[test]
fn responses_count_cache_writes_too() {
    let usage = json!({"input_tokens": 9, "output_tokens": 2,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
        "output_tokens_details": {"reasoning_tokens": 1}});
    let answer = json!({"status": "completed", "output": [], "usage": usage});
    let mut assembler = ResponsesAssembler::default();
    assembler.feed_complete(&answer.to_string()).unwrap();

    let usage = assembler.finish().unwrap().metadata.usage;

    assert_eq!(usage, Usage { input: 9, output: 2, cached: 4, cache_write: 3, reasoning: 1, ..Usage::default() });
}

#[test]
fn huge_counts_do_not_overflow() {
    let usage = json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX, "total_tokens": u64::MAX,
        "completion_tokens_details": {"reasoning_tokens": u64::MAX}});

    assert_eq!(chat(&usage).output, u64::MAX);
}
