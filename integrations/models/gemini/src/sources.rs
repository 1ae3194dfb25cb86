//! Reader for where an answer comes from: searches, loaded pages, and citations. The API does not take it back.

use positronic_core::record::{Citation, Part, ProviderToolUse};
use positronic_model_http::lenient::{any, list, object, objects, text};
use serde_json::Value;

/// The fields of a candidate with its sources; a later chunk has all of the earlier ones.
pub(crate) const FIELDS: [&str; 3] = ["citationMetadata", "groundingMetadata", "urlContextMetadata"];

/// Adds the sources in a field of a candidate to an answer.
pub(crate) fn add(parts: &mut Vec<Part>, field: &str, sources: &Value) {
    match field {
        "groundingMetadata" => add_grounding(parts, sources),
        "urlContextMetadata" => parts.extend(objects(sources, "urlMetadata").iter().map(fetch)),
        _ => {
            let cited = ["citationSources", "citations"].into_iter().flat_map(|name| objects(sources, name));
            add_citations(parts, cited.map(citation).collect());
        }
    }
}

fn add_citations(parts: &mut Vec<Part>, citations: Vec<Citation>) {
    if !citations.is_empty() {
        parts.push(Part::Citations { citations, data: None });
    }
}

/// Adds the passages of the answer with their sources, and the search. Its entry exists if the model called it in a request with
/// both kinds of tools.
fn add_grounding(parts: &mut Vec<Part>, grounding: &Value) {
    let sources: Vec<_> = objects(grounding, "groundingChunks").iter().map(chunk).collect();
    let supported = objects(grounding, "groundingSupports").iter().flat_map(|support| {
        let passage = object(support, "segment").and_then(|segment| text(segment, "text"));
        let indexes = list(support, "groundingChunkIndices").unwrap_or_default().iter().filter_map(Value::as_u64);
        let supporting = indexes.filter_map(|index| sources.get(usize::try_from(index).ok()?));
        supporting.map(move |source| {
            let mut source = source.clone();
            source.supports = passage.map(str::to_owned);
            source
        })
    });
    add_citations(parts, supported.collect());
    let queries: Vec<_> =
        list(grounding, "webSearchQueries").unwrap_or_default().iter().filter_map(Value::as_str).collect();
    if queries.is_empty() && sources.is_empty() {
        return;
    }
    let search = parts.iter_mut().rev().find_map(|part| match part {
        Part::ProviderTool(used) if used.tool == "web_search" => Some(used),
        _ => None,
    });
    if let Some(search) = search {
        search.sources = sources;
        return;
    }
    let mut search = ProviderToolUse::new("web_search");
    search.input = (!queries.is_empty()).then(|| queries.join("; "));
    search.sources = sources;
    parts.push(Part::ProviderTool(Box::new(search)));
}

/// Reads a source: a page, a document of a search in files, or a place.
fn chunk(chunk: &Value) -> Citation {
    let source = ["web", "retrievedContext", "maps"].into_iter().find_map(|kind| object(chunk, kind));
    let mut read = source.map(citation).unwrap_or_default();
    read.quote = source.and_then(|source| text(source, "text")).map(str::to_owned);
    read
}

fn citation(source: &Value) -> Citation {
    let mut read = Citation::default();
    read.url = text(source, "uri").map(str::to_owned);
    read.title = text(source, "title").map(str::to_owned);
    read
}

fn fetch(page: &Value) -> Part {
    let mut used = ProviderToolUse::new("web_fetch");
    used.input = text(page, "retrievedUrl").map(str::to_owned);
    match any(page, "urlRetrievalStatus").and_then(Value::as_str) {
        Some("URL_RETRIEVAL_STATUS_SUCCESS") | None => {
            let mut source = Citation::default();
            source.url.clone_from(&used.input);
            used.sources = vec![source];
        }
        Some(status) => used.error = Some(status.to_owned()),
    }
    Part::ProviderTool(Box::new(used))
}
