//! Readers for fields of chat chunks that servers send in several forms. A complete answer has the same fields, with
//! `message` instead of `delta`.

use std::borrow::Cow;

use positronic_core::record::{Citation, Usage};
use positronic_model_http::lenient::{Json, any, count, json_text, list, object, objects, text};

/// Returns the text pieces of a delta's `content`, a string or a list of typed parts, and whether each is reasoning.
pub(super) fn content<J: Json>(delta: &J) -> impl Iterator<Item = (bool, Cow<'_, str>)> {
    let text = text(delta, "content").map(|text| (false, text.into()));
    let parts = list(delta, "content").unwrap_or_default();
    text.into_iter().chain(parts.iter().map(content_part))
}

fn content_part<J: Json>(part: &J) -> (bool, Cow<'_, str>) {
    let thinking = part.get("thinking");
    let content = thinking.or_else(|| part.get("text"));
    let parts = || content?.as_array();
    let text = match content.and_then(J::as_str) {
        Some(text) => text.into(),
        None => parts().unwrap_or_default().iter().filter_map(|part| part.get("text")?.as_str()).collect(),
    };
    (thinking.is_some(), text)
}

/// Returns a piece of a call's arguments; some servers send them as one object.
pub(super) fn arguments<J: Json>(function: &J) -> Cow<'_, str> {
    any(function, "arguments").map_or("".into(), json_text)
}

/// Returns the addresses of the pages that an answer cites, as xAI and Perplexity send them.
pub(super) fn cited_pages<J: Json>(chunk: &J) -> Vec<Citation> {
    let urls = list(chunk, "citations").unwrap_or_default();
    let citation = |url: &str| Citation::new(Some(url.to_owned()), None, None);
    urls.iter().filter_map(J::as_str).map(citation).collect()
}

/// Returns the usage in a chunk. Groq uses a field of its own, Moonshot puts it into the choice.
pub(super) fn usage<J: Json>(chunk: &J) -> Option<Usage> {
    let in_choice = || objects(chunk, "choices").iter().find_map(|choice| object(choice, "usage"));
    let usage = object(chunk, "usage").or_else(|| object(object(chunk, "x_groq")?, "usage")).or_else(in_choice)?;
    let input = count(usage, "prompt_tokens").unwrap_or(0);
    let output = count(usage, "completion_tokens").unwrap_or(0);
    let reasoning = object(usage, "completion_tokens_details").and_then(|details| count(details, "reasoning_tokens"));
    let reasoning = reasoning.unwrap_or(0);
    let (cached, cache_write) = cache(usage, "prompt_tokens_details");
    // xAI does not count reasoning as output, which the total reveals.
    let apart = count(usage, "total_tokens") == Some(input.saturating_add(output).saturating_add(reasoning));
    let output = if apart { output.saturating_add(reasoning) } else { output };
    Some(Usage { input, output, cached, cache_write, reasoning, ..Usage::default() })
}

/// The names of tokens read from a cache, which differ for DeepSeek, Moonshot and Anthropic.
const CACHE_READS: [&str; 4] =
    ["cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_read_tokens"];

/// The names of tokens written to a cache.
const CACHE_WRITES: [&str; 3] = ["cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens"];

/// Returns the tokens read from and written to a cache, which are in the usage itself or in `details`.
pub(super) fn cache<J: Json>(usage: &J, details: &str) -> (u64, u64) {
    let objects = [Some(usage), object(usage, details)];
    let most = |names: &[&str]| {
        let counts = objects.iter().flatten().flat_map(|object| names.iter().filter_map(|name| count(*object, name)));
        counts.max().unwrap_or(0)
    };
    (most(&CACHE_READS), most(&CACHE_WRITES))
}
