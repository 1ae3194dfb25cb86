//! `/diff`: two runs side by side.

use std::collections::{HashMap, HashSet, VecDeque};

use axum::response::Response;
use positronic_core::projection::timeline::{AnswerOutcome, Node, NodeKind, Timeline};
use positronic_core::projection::{diff as compared, result_text};
use positronic_core::record::{RunId, RunSummary, Seq};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json as json_of};

use super::model_answer::text_of;
use crate::api::run_item::{RunItem, value};
use crate::app::App;
use crate::problem::{Problem, ProblemType};
use crate::redact::{REDACTED, Redact, redacted, redacted_then_cut};
use crate::routes::{RequestContext, Route, json};

/// The maximum characters of a text of a row.
const MAX_TEXT: usize = 4000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/diff", "Compare two runs", diff)
            .large_answers()
            .query::<DiffQuery>()
            .returns::<DiffItem>(200)
            .problems(&[ProblemType::UnknownRun]),
    ]
}

/// Which runs to compare.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    a: String,
    b: String,
}

/// The differences between two runs.
#[derive(Serialize, JsonSchema)]
struct DiffItem {
    a: RunItem,
    b: RunItem,
    /// The number of equal events, the first different events, and the JSON Patch from one final state to the other.
    diff: Value,
    /// The stages, messages, answers and calls of both, aligned by their paths.
    rows: Vec<Row>,
    totals: Totals,
    /// What has cut off each run, if a limit or a plugin has.
    cut_off: CutOffs,
}

/// A place in one run or in both.
#[derive(Serialize, JsonSchema)]
struct Row {
    path: String,
    /// The stage in which it is.
    stage: String,
    /// `stage`, `message`, `answer` or `call`.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<Side>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Side>,
    /// Whether both runs have it with the same content.
    same: bool,
}

/// What a run has at a place.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
struct Side {
    seq: u64,
    status: Value,
    /// The tool of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// The text of a message or an answer, or the result of a call.
    text: String,
}

/// What has cut off both runs.
#[derive(Serialize, JsonSchema)]
struct CutOffs {
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<CutOff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<CutOff>,
}

/// What has cut off a run.
#[derive(Serialize, JsonSchema)]
struct CutOff {
    seq: u64,
    path: String,
    /// The limit: its `kind`, `limit` and the `used` amount, in tokens, billionths of money, microseconds or iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Value>,
    /// What a plugin said that ended the loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The sums of both runs.
#[derive(Serialize, JsonSchema)]
struct Totals {
    a: Value,
    b: Value,
}

async fn diff(cx: RequestContext) -> Result<Response, Problem> {
    let DiffQuery { a, b } = cx.query()?;
    let (app, caller) = (&cx.app, cx.caller()?);
    let (a, b) = (app.row(caller, &RunId::new(&a)).await?, app.row(caller, &RunId::new(&b)).await?);
    let logs = (app.client.events(&a.run, Seq(0)).await?, app.client.events(&b.run, Seq(0)).await?);
    let found = compared(&logs.0, &logs.1).map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
    let (left, right) = (sides(app, &a.run).await?, sides(app, &b.run).await?);
    let cut_off = CutOffs { a: cut_off(app, &a).await?, b: cut_off(app, &b).await? };
    let totals = Totals { a: left.1, b: right.1 };
    let rows = aligned(left.0, right.0);
    let mut items = app.run_items(&[a, b]).await?.into_iter();
    let (Some(a), Some(b)) = (items.next(), items.next()) else { return Err(ProblemType::UnknownRun.into()) };
    json(&DiffItem { a, b, diff: value(&found), rows, totals, cut_off })
}

/// A place, by which the runs are aligned: the path, the kind, and which one it is of several.
type NodeKey = (String, &'static str, usize);

/// Returns the places of a run in order, and its sums.
async fn sides(app: &App, run: &RunId) -> Result<(Vec<(NodeKey, Side)>, Value), Problem> {
    let shared = app.folds.of(run).await?;
    let fold = shared.lock().await;
    let timeline = &fold.timeline;
    let mut counts: HashMap<(String, &'static str), usize> = HashMap::new();
    let mut sides: Vec<_> =
        timeline.nodes().filter_map(|node| Some((node, side(node, app.settings.redact.as_ref())?))).collect();
    sides.sort_by_key(|(node, _)| (node.seq, node.id));
    let sides = sides.into_iter().map(|(node, (kind, side))| {
        let count = counts.entry((node.path.to_string(), kind)).or_default();
        *count += 1;
        ((node.path.to_string(), kind, *count), side)
    });
    let sides = sides.collect();
    Ok((sides, totals(timeline)))
}

/// Returns what has cut off the loop at which a run was cut off last.
async fn cut_off(app: &App, row: &RunSummary) -> Result<Option<CutOff>, Problem> {
    let Some(place) = &row.cut_off else { return Ok(None) };
    let shared = app.folds.of(&row.run).await?;
    let fold = shared.lock().await;
    let cuts = fold.timeline.nodes().filter(|node| node.path.is_within(place)).filter_map(|node| {
        let (limit, message) = match &node.kind {
            NodeKind::Limit(reached) => (Some(value(reached)), None),
            NodeKind::Stopped { message, .. } => {
                (None, Some(redacted_then_cut(app.settings.redact.as_ref(), message.clone(), MAX_TEXT)))
            }
            _ => return None,
        };
        Some(CutOff { seq: node.seq.0, path: node.path.to_string(), limit, message })
    });
    Ok(cuts.max_by_key(|cut| cut.seq))
}

fn totals(timeline: &Timeline) -> Value {
    let started = timeline.nodes().next().and_then(|root| root.started);
    let duration_ms =
        started.map(|started| u64::try_from(timeline.last.since(started).as_millis()).unwrap_or(u64::MAX));
    json_of!({
        "answers": timeline.answers,
        "usage": timeline.usage,
        "spent": timeline.spent(),
        "duration_ms": duration_ms,
    })
}

fn side(node: &Node, redact: Option<&Redact>) -> Option<(&'static str, Side)> {
    let mut side =
        Side { seq: node.seq.0, status: value(&node.status), tool: None, arguments: None, text: String::new() };
    let kind = match &node.kind {
        NodeKind::Stage(_) => "stage",
        NodeKind::Message { text, .. } => {
            side.text.clone_from(text);
            "message"
        }
        NodeKind::Answer(answer) => {
            side.text = match &answer.outcome {
                Some(AnswerOutcome::Answered(answer)) => text_of(&answer.parts),
                Some(AnswerOutcome::Refused { message, .. }) => message.clone(),
                _ => String::new(),
            };
            "answer"
        }
        NodeKind::Call(call) => {
            side.tool = Some(call.tool.clone());
            side.arguments = Some(call.edited().cloned().unwrap_or_else(|| Value::clone(&call.arguments)));
            side.text = match &call.result {
                Some(result) => {
                    redacted(redact, result).map_or_else(|| REDACTED.to_owned(), |result| result_text(&result))
                }
                None => String::new(),
            };
            "call"
        }
        _ => return None,
    };
    side.text = redacted_then_cut(redact, side.text, MAX_TEXT);
    Some((kind, side))
}

/// Aligns the places of two runs: those of the first in order, and those that only the second has before the next place that
/// both have.
fn aligned(left: Vec<(NodeKey, Side)>, right: Vec<(NodeKey, Side)>) -> Vec<Row> {
    let in_left: HashSet<_> = left.iter().map(|(place, _)| place.clone()).collect();
    let mut of_right: HashMap<NodeKey, Side> = right.iter().cloned().collect();
    let mut right: VecDeque<_> = right.into();
    let mut rows = Vec::new();
    for (place, side) in left {
        skip_to_common(&mut right, &in_left, &of_right, &mut rows);
        let other = of_right.remove(&place);
        rows.push(row(place, Some(side), other));
    }
    skip_to_common(&mut right, &in_left, &of_right, &mut rows);
    rows
}

/// Removes the places up to the next one that both runs have and that has no row yet. Those that only the second run has become
/// rows.
fn skip_to_common(
    right: &mut VecDeque<(NodeKey, Side)>,
    in_left: &HashSet<NodeKey>,
    without_row: &HashMap<NodeKey, Side>,
    rows: &mut Vec<Row>,
) {
    while let Some((place, side)) = right.pop_front() {
        if !in_left.contains(&place) {
            rows.push(row(place, None, Some(side)));
        } else if without_row.contains_key(&place) {
            return right.push_front((place, side));
        }
    }
}

fn row((path, kind, _): NodeKey, a: Option<Side>, b: Option<Side>) -> Row {
    let content = |side: &Side| (side.status.clone(), side.tool.clone(), side.arguments.clone(), side.text.clone());
    let same = a.as_ref().map(content) == b.as_ref().map(content);
    let stage = path.split('/').next().unwrap_or_default().to_owned();
    Row { path, stage, kind, a, b, same }
}
