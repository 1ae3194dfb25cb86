//! `/runs/{run}/events`: the log, as pages, as JSON lines and live.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures::stream::{Stream, StreamExt as _, unfold};
use positronic_core::record::{Event, Path, RunId, Seq};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::event_stream::{Update, updates};
use super::list::page;
use crate::api::run_item::head;
use crate::event_lines::{SharedLines, redacted_line};
use crate::problem::{Problem, ProblemType};
use crate::redact::{AsIs, Redact};
use crate::routes::{RequestContext, Route, json};
use crate::{cursor, long_answer, sse};

/// How many events are read at once: few at first, and one after [`PAGE_BYTES`] of them, since an event may have 8 MiB.
const FIRST_CHUNK: u64 = 8;
const CHUNK: u64 = 64;
/// After how many bytes a page of a list ends, and a part of the JSON lines.
const PAGE_BYTES: usize = 4 << 20;
const LINES_BYTES: usize = 64 << 10;
const LINES: &str = "application/x-ndjson";
pub(crate) const EVENTS: &str = "text/event-stream";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs/{run}/events", "List or follow the events of a run", events)
            .large_answers()
            .query::<EventsQuery>()
            .returns::<EventList>(200)
            .returns_text(200, LINES)
            .streams()
            .returns_nothing(204)
            .problems(&[ProblemType::BadCursor, ProblemType::TooManyStreams]),
    ]
}

/// Which events to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct EventsQuery {
    /// Only events after this number; a stream begins after it.
    after: Option<u64>,
    /// Only events before this number.
    before: Option<u64>,
    /// Only events of these types, separated by commas.
    r#type: Option<String>,
    /// Only events at this path or below it.
    path: Option<String>,
    /// Only events with this text in their JSON, ignoring case.
    q: Option<String>,
    /// The order of the list: `asc` (default) or `desc`.
    #[serde(default)]
    order: ListOrder,
    /// Continues a list.
    cursor: Option<String>,
    /// The number of items: 1 to 500, 50 by default.
    limit: Option<usize>,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ListOrder {
    #[default]
    Asc,
    Desc,
}

/// Events as in an export.
#[derive(Serialize, JsonSchema)]
struct EventList {
    /// The events: `seq`, `at` (microseconds since 1970), `path`, `type` and the fields of the type.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    items: Vec<Box<RawValue>>,
    /// The cursor of the next page; `null` at the end of the list. A page of large events ends before it has `limit` items.
    next: Option<String>,
    /// The number of the last event of the log.
    head: u64,
}

/// Selects events.
struct Selection {
    types: Option<Vec<String>>,
    path: Option<Path>,
    text: Option<String>,
    redact: Option<Redact>,
}

impl Selection {
    fn of(query: &EventsQuery, redact: Option<Redact>) -> Result<Self, Problem> {
        let path = query.path.as_deref().map(Path::parse).transpose();
        Ok(Self {
            types: query.r#type.as_ref().map(|types| types.split(',').map(str::to_owned).collect()),
            path: path.map_err(|error| Problem::new(ProblemType::InvalidQuery).detail(error))?,
            text: query.q.as_ref().map(|text| text.to_lowercase()),
            redact,
        })
    }

    /// Returns the event's line, redacted, if it is selected.
    async fn line(&self, event: &Event, line: Option<String>) -> Option<String> {
        let line = redacted_line(self.redact.as_ref(), line.filter(|_| self.fits(event))?).await;
        self.shows(&line).then_some(line)
    }

    /// Returns the event's line as [`Selection::line`] does, shared with other readers of the event.
    async fn shared_line(&self, lines: &SharedLines, event: &Arc<Event>) -> Option<Arc<str>> {
        if !self.fits(event) {
            return None;
        }
        lines.of(event, self.redact.as_ref()).await.filter(|line| self.shows(line))
    }

    fn fits(&self, event: &Event) -> bool {
        self.types.as_ref().is_none_or(|types| types.iter().any(|name| name == event.kind.name()))
            && self.path.as_ref().is_none_or(|path| event.path.is_within(path))
    }

    /// Returns whether a redacted line has the text: a search must not find secrets.
    fn shows(&self, line: &str) -> bool {
        self.text.as_ref().is_none_or(|text| line.to_lowercase().contains(text))
    }
}

async fn events(cx: RequestContext) -> Result<Response, Problem> {
    let query: EventsQuery = cx.query()?;
    let selection = Selection::of(&query, cx.app.settings.redact.clone())?;
    if cx.accepts(EVENTS) {
        return follow(&cx, query.after, selection);
    }
    let (run, first) = (cx.run()?.run.clone(), Seq(query.after.map_or(0, |after| after.saturating_add(1))));
    if cx.accepts(LINES) {
        let last = query.before.map_or(cx.run()?.next, Seq).min(cx.run()?.next);
        let lines = lines(EventReader::new(&cx.app.client, &run, (first, last), ListOrder::Asc), selection);
        let mut response = long_answer::body(&cx, lines)?.into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(LINES));
        return Ok(response);
    }
    list(&cx, &query, &selection, first).await
}

async fn list(
    cx: &RequestContext,
    query: &EventsQuery,
    selection: &Selection,
    first: Seq,
) -> Result<Response, Problem> {
    let row = cx.run()?;
    let limit = page(query.limit)?;
    let filter = (row.run.as_str(), query.after, query.before, &query.r#type, &query.path, &query.q, query.order);
    let place: Option<Seq> = query.cursor.as_ref().map(|text| cursor::decode(text, &filter)).transpose()?;
    let end = query.before.map_or(row.next, Seq).min(row.next);
    let range = match (query.order, place) {
        (ListOrder::Asc, place) => (place.map_or(first, |place| place.max(first)), end),
        // A cursor that a client has made up may name a place beyond the log.
        (ListOrder::Desc, place) => (first, place.map_or(end, |place| place.min(end))),
    };
    let mut reader = EventReader::new(&cx.app.client, &row.run, range, query.order);
    let (mut lines, mut bytes, mut next) = (Vec::new(), 0, None);
    while let Some((event, line)) = reader.next().await? {
        let Some(line) = selection.line(&event, line).await else { continue };
        bytes += line.len();
        if lines.len() == limit || (bytes > PAGE_BYTES && !lines.is_empty()) {
            next = Some(if query.order == ListOrder::Asc { event.seq } else { event.seq.next() });
            break;
        }
        let line = RawValue::from_string(line);
        lines.push(line.map_err(|error| Problem::new(ProblemType::Internal).detail(error))?);
    }
    let next = next.map(|place| cursor::encode(&place, &filter));
    let mut response = json(&EventList { items: lines, next, head: head(row).0 })?;
    response.extensions_mut().insert(AsIs);
    Ok(response)
}

/// Reads the events of a range in an order.
struct EventReader {
    client: Client,
    run: RunId,
    /// The events that are not read yet.
    range: (Seq, Seq),
    order: ListOrder,
    chunk: u64,
    read: VecDeque<Arc<Event>>,
    /// The bytes of the last chunk.
    bytes: usize,
}

impl EventReader {
    fn new(client: &Client, run: &RunId, range: (Seq, Seq), order: ListOrder) -> Self {
        let (client, run) = (client.clone(), run.clone());
        Self { client, run, range, order, chunk: FIRST_CHUNK, read: VecDeque::new(), bytes: 0 }
    }

    /// Returns the next event with its line; `None` at the end of the range.
    async fn next(&mut self) -> Result<Option<(Arc<Event>, Option<String>)>, StoreError> {
        while self.read.is_empty() && self.range.0 < self.range.1 {
            if self.bytes > PAGE_BYTES {
                self.chunk = 1;
            }
            self.bytes = 0;
            let length = (self.range.1.0 - self.range.0.0).min(self.chunk);
            self.chunk = (self.chunk * 2).min(CHUNK);
            let from = if self.order == ListOrder::Asc { self.range.0 } else { Seq(self.range.1.0 - length) };
            self.read = self.client.store().read(&self.run, from, Seq(length).index()).await?.into();
            match self.order {
                ListOrder::Asc => self.range.0 = Seq(from.0 + length),
                ListOrder::Desc => self.range.1 = from,
            }
        }
        let event = match self.order {
            ListOrder::Asc => self.read.pop_front(),
            ListOrder::Desc => self.read.pop_back(),
        };
        Ok(event.map(|event| {
            let line = event.to_json().ok();
            self.bytes += line.as_ref().map_or(0, String::len);
            (event, line)
        }))
    }
}

/// Streams the lines of a range of events.
fn lines(reader: EventReader, selection: Selection) -> impl Stream<Item = Result<Bytes, StoreError>> + Send {
    unfold((reader, selection), |(mut reader, selection)| async move {
        let mut text = String::new();
        while text.len() < LINES_BYTES {
            match reader.next().await {
                Ok(Some((event, line))) => {
                    if let Some(line) = selection.line(&event, line).await {
                        text.push_str(&line);
                        text.push('\n');
                    }
                }
                Ok(None) => break,
                Err(error) => return Some((Err(error), (reader, selection))),
            }
        }
        (!text.is_empty()).then(|| (Ok(Bytes::from(text)), (reader, selection)))
    })
}

/// Follows the log after the last event that the client has seen, or from its beginning.
fn follow(cx: &RequestContext, after: Option<u64>, selection: Selection) -> Result<Response, Problem> {
    let row = cx.run()?;
    let seen = sse::last_seen(cx, after, row.next)?;
    let from = seen.map_or(Seq(0), Seq::next);
    if row.status.is_over() && from >= row.next {
        return Ok(sse::no_content());
    }
    let (app, selection) = (Arc::clone(&cx.app), Arc::new(selection));
    let events = updates(cx, &row.run, from).then(move |update| {
        let (app, selection) = (Arc::clone(&app), Arc::clone(&selection));
        async move {
            match update {
                Update::Event(event) => match selection.shared_line(&app.lines, &event).await {
                    Some(line) => sse::Event::shared(event.kind.name(), line).redacted().id(event.seq),
                    // The position moves on, so that a reconnect does not read it again.
                    None => sse::Event::new("skipped", "{}".to_owned()).id(event.seq),
                },
                Update::Other(event) => event,
            }
        }
    });
    sse::stream(cx, events)
}
