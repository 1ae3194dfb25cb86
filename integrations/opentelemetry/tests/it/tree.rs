//! Received spans as short text: a tree for each trace, and checks of what holds for every trace.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use opentelemetry_proto::tonic::trace::v1::Span;

use crate::receiver::texts;

/// The attributes that the text shows, by their short names.
const SHOWN: [(&str, &str); 10] = [
    ("error.type", "error"),
    ("positronic.loop.outcome", "outcome"),
    ("positronic.status", "status"),
    ("positronic.suspended", "suspended"),
    ("positronic.attempt", "attempt"),
    ("positronic.retried", "retried"),
    ("positronic.wait.verdict", "verdict"),
    ("positronic.wait.actor", "by"),
    ("positronic.wait.edited", "edited"),
    ("positronic.iteration", "n"),
];

/// Renders the spans: a tree for each trace in order of time, with the spans in the order in which they began. Links show
/// the number and the name of the span that they lead to.
pub(crate) fn tree(spans: &[Span]) -> String {
    let spans = &once(spans);
    check(spans);
    let mut spans: Vec<_> = spans.iter().collect();
    let order = |span: &&Span| (span.start_time_unix_nano, number(span), depth_of(span), span.span_id.clone());
    spans.sort_by_key(order);
    let numbers: HashMap<_, _> = spans.iter().zip(1..).map(|(span, n)| (&span.span_id, (n, span))).collect();
    let mut roots: Vec<&Span> = Vec::new();
    let mut children: BTreeMap<&[u8], Vec<&Span>> = BTreeMap::new();
    for span in &spans {
        if numbers.contains_key(&span.parent_span_id) {
            children.entry(&span.parent_span_id).or_default().push(span);
        } else {
            roots.push(span);
        }
    }
    let mut text = String::new();
    for root in roots {
        let parent = if root.parent_span_id.is_empty() { "" } else { " (parent in another system)" };
        writeln!(text, "trace{parent}").unwrap();
        render(root, 1, &children, &numbers, &mut text);
    }
    text
}

fn number(span: &Span) -> i64 {
    texts(&span.attributes)["positronic.event"].parse().unwrap()
}

/// The order of spans that begin at once: the outer one first.
fn depth_of(span: &Span) -> usize {
    let path = texts(&span.attributes).get("positronic.path").cloned().unwrap_or_default();
    let role = ["invoke_agent", "step", "loop", "iteration", "chat", "execute_tool", "wait"];
    let role = role.iter().position(|role| span.name.starts_with(role)).unwrap();
    path.split('/').count() * 10 + role
}

fn render(
    span: &Span,
    depth: usize,
    children: &BTreeMap<&[u8], Vec<&Span>>,
    numbers: &HashMap<&Vec<u8>, (usize, &&Span)>,
    text: &mut String,
) {
    let attributes = texts(&span.attributes);
    let shown = SHOWN.iter().filter_map(|(name, short)| Some(format!(" {short}={}", attributes.get(*name)?)));
    let shown: String = shown.collect();
    let links = span.links.iter().map(|link| {
        let relation = &texts(&link.attributes)["positronic.relation"];
        let to =
            numbers.get(&link.span_id).map_or_else(|| "elsewhere".to_owned(), |(n, to)| format!("{n} {}", to.name));
        format!(" [{relation}: {to}]")
    });
    let links: String = links.collect();
    let id = numbers[&span.span_id].0;
    writeln!(text, "{:indent$}{id} {}{shown}{links}", "", span.name, indent = depth * 2).unwrap();
    for child in children.get(&span.span_id[..]).into_iter().flatten() {
        render(child, depth + 1, children, numbers, text);
    }
}

/// Drops the repetitions of spans that a crash causes, which must be the same.
fn once(spans: &[Span]) -> Vec<Span> {
    let mut known: HashMap<&[u8], &Span> = HashMap::new();
    for span in spans {
        assert_eq!(span, *known.entry(&span.span_id).or_insert(span));
    }
    known.into_values().cloned().collect()
}

/// Checks what holds for all spans.
fn check(spans: &[Span]) {
    for span in spans {
        assert!(span.start_time_unix_nano > 0 && span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
    }
    let known: HashMap<_, _> = spans.iter().map(|span| (&span.span_id, span)).collect();
    for span in spans {
        let Some(parent) = known.get(&span.parent_span_id) else { continue };
        assert_eq!(span.trace_id, parent.trace_id, "{} is in another trace than {}", span.name, parent.name);
        // A wait outlasts its segment, and that of a fork began in its origin.
        if !span.name.starts_with("wait") {
            let begins = span.start_time_unix_nano >= parent.start_time_unix_nano;
            assert!(begins, "{} begins before {}", span.name, parent.name);
            assert!(span.end_time_unix_nano <= parent.end_time_unix_nano, "{} outlasts {}", span.name, parent.name);
        }
    }
}
