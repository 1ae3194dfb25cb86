//! Decisions of people: on one pending item, or on several.

use axum::response::Response;
use positronic_core::machine::{Refusal, pending as open_items};
use positronic_core::record::{EventKind, Pending, RunId, RunSummary, Seq, Signal, SignalId, SignalKind, WaitSpec};
use positronic_core::runner::SignalError;
use positronic_core::store::PendingFilter;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::closed_question::DecisionItem;
use super::decision::{Decision, ListedDecision, NewDecision};
use super::pending_item::{arguments_schema, question_id};
use crate::api::idempotency::Key;
use crate::api::runs::can_continue::checked_code;
use crate::api::runs::signals::{code_differs, has_same_content};
use crate::app::App;
use crate::auth::{Question, Scope};
use crate::bodies::{errors_of, masked_errors_of};
use crate::cursor::List;
use crate::problem::{FieldError, Problem, ProblemType};
use crate::redact::with_secrets;
use crate::routes::{RequestContext, Route, json};

/// The most decisions of one request.
const MAX_DECISIONS: usize = 100;

pub(crate) fn routes() -> Vec<Route> {
    let problems = [
        ProblemType::UnknownCall,
        ProblemType::NotAnApprover,
        ProblemType::AlreadyDecided,
        ProblemType::RunClosed,
        ProblemType::NotWaiting,
        ProblemType::CodeDiffers,
        ProblemType::Expired,
        ProblemType::ArgumentsInvalid,
        ProblemType::Unprocessable,
    ];
    vec![
        Route::get("/api/v1/runs/{run}/calls/{id}/decision", "Read what became of a pending item", read)
            .returns::<QuestionItem>(200)
            .problems(&[ProblemType::UnknownCall]),
        Route::post("/api/v1/runs/{run}/calls/{id}/decision", "Decide or answer a pending item", one)
            .scopes(&[Scope::Decide, Scope::Operate])
            .takes::<NewDecision>()
            .idempotent()
            .returns::<Decided>(200)
            .problems(&problems),
        Route::post("/api/v1/decisions", "Decide or answer several pending items, each by itself", many)
            .scopes(&[Scope::Decide, Scope::Operate])
            .takes::<Vec<ListedDecision>>()
            .idempotent()
            .returns::<List<DecisionOutcome>>(200),
    ]
}

/// A recorded decision.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Decided {
    /// The event that records it.
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionItem>,
}

/// What became of a pending item.
#[derive(Serialize, JsonSchema)]
struct QuestionItem {
    /// Whether it can still be decided or answered.
    pending: bool,
    /// The problem document that a decision would get now: who decided, or what else has closed the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Value>,
}

/// The outcome of one of several decisions.
#[derive(Serialize, JsonSchema)]
struct DecisionOutcome {
    run: String,
    id: String,
    /// The HTTP status that the decision alone would have had.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// The problem document.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Value>,
}

async fn read(cx: RequestContext) -> Result<Response, Problem> {
    let (app, run, id) = (&cx.app, &cx.run()?.run, cx.param("id")?);
    let items = app.client.store().pending(&PendingFilter::builder().run(run.clone()).build()).await?;
    if items.iter().any(|item| question_id(run, &item.pending.call, item.pending.since) == id) {
        return json(&QuestionItem { pending: true, problem: None });
    }
    let problem = app.why_not_pending(run, id).await;
    match problem.kind() {
        ProblemType::AlreadyDecided | ProblemType::Expired | ProblemType::RunClosed | ProblemType::NotWaiting => {
            json(&QuestionItem { pending: false, problem: Some(cx.reporter.document(&problem)) })
        }
        _ => Err(problem),
    }
}

async fn one(cx: RequestContext) -> Result<Response, Problem> {
    let (row, key) = (cx.run()?, Key::of(&cx)?);
    let decision = cx.json::<NewDecision>()?.try_into()?;
    let (decided, is_replay) = decide(&cx, row, cx.param("id")?, decision, &key).await?;
    let mut response = json(&decided)?;
    key.mark(&mut response, is_replay);
    Ok(response)
}

async fn many(cx: RequestContext) -> Result<Response, Problem> {
    let decisions: Vec<ListedDecision> = cx.json()?;
    if decisions.len() > MAX_DECISIONS {
        let detail = format!("the request has {} decisions; at most {MAX_DECISIONS} are allowed", decisions.len());
        return Err(Problem::new(ProblemType::InvalidBody).detail(detail));
    }
    let key = Key::of(&cx)?;
    let (mut items, mut are_replays) = (Vec::with_capacity(decisions.len()), !decisions.is_empty());
    for listed in decisions {
        let (run, id, decision) = listed.parts();
        let decided = async {
            let row = cx.app.row(cx.caller()?, &RunId::new(&run)).await?;
            decide(&cx, &row, &id, decision.try_into()?, &key).await
        };
        let decided = decided.await;
        are_replays &= matches!(decided, Ok((_, true)));
        items.push(match decided {
            Ok((decided, _)) => DecisionOutcome { run, id, status: 200, seq: Some(decided.seq), problem: None },
            Err(problem) => DecisionOutcome {
                run,
                id,
                status: problem.kind().status(),
                seq: None,
                problem: Some(cx.reporter.document(&problem)),
            },
        });
    }
    let mut response = json(&List::whole(items))?;
    key.mark(&mut response, are_replays);
    Ok(response)
}

/// Sends a decision. Returns whether the same request was accepted before.
pub(crate) async fn decide(
    cx: &RequestContext,
    row: &RunSummary,
    id: &str,
    decision: Decision,
    key: &Key,
) -> Result<(Decided, bool), Problem> {
    let (app, run) = (&cx.app, &row.run);
    let state = app.client.state(run).await?;
    let item = open_items(&state).into_iter().find(|item| question_id(run, &item.call, item.since) == id);
    let signal_id = SignalId::new(key.id(&format!("{run}\n{id}")));
    let Some(pending) = item else {
        // A repeated request comes after its own decision.
        let Some(seq) = app.client.store().accepted(run, &signal_id).await? else {
            return Err(app.why_not_pending(run, id).await);
        };
        let log = app.client.events(run, Seq(0)).await?;
        let Some(event) = log.get(seq.index()) else { return Err(ProblemType::KeyReused.into()) };
        let proposed = log.iter().find_map(|before| match &before.kind {
            EventKind::LoopToolCall(cx) if before.path == event.path => Some(&*cx.arguments),
            _ => None,
        });
        let decision = edited(app, proposed.unwrap_or(&Value::Null), decision)?;
        let is_edited = decision.arguments().is_some_and(|given| Some(given) != proposed);
        let is_same = has_same_content(event, &decision.signal(&event.path), is_edited);
        return if is_same { Ok((decided(app, run, seq).await?, true)) } else { Err(ProblemType::KeyReused.into()) };
    };
    let needed = decision.scope(&pending);
    if !cx.caller()?.may(needed) {
        return Err(Problem::scope_missing(&[needed]));
    }
    app.may_decide(cx.caller()?, &Question::of(run, &state, &pending))?;
    let kind = edited(app, &pending.arguments, decision)?.signal_for(&pending)?;
    // The answer of a webhook goes to any call that waits for it.
    if let SignalKind::Webhook { name, identifier, .. } = &kind {
        for other in open_items(&state) {
            let takes = |wait: &WaitSpec| (&wait.webhook, &wait.identifier) == (name, identifier);
            if other.kind.waits().iter().any(takes) {
                app.may_decide(cx.caller()?, &Question::of(run, &state, &other))?;
            }
        }
    }
    if let Some(difference) = checked_code(app, row).await?.refuses(&kind) {
        return Err(code_differs(difference));
    }
    let signal = Signal { id: signal_id, actor: cx.actor()?, kind };
    match app.client.send_with_state(run, state, signal.clone()).await {
        Ok(seq) => Ok((decided(app, run, seq).await?, false)),
        Err(error) => Err(refused(app, run, id, &pending, &signal.kind, error).await),
    }
}

/// Puts the secrets of the proposed arguments back into the edited ones.
fn edited(app: &App, proposed: &Value, decision: Decision) -> Result<Decision, Problem> {
    Ok(match decision {
        Decision::Approve { arguments: Some(edited) } => {
            Decision::Approve { arguments: Some(with_secrets(app.settings.redact.as_ref(), proposed, edited)?) }
        }
        decision => decision,
    })
}

async fn decided(app: &App, run: &RunId, seq: Seq) -> Result<Decided, Problem> {
    let events = app.client.store().read(run, seq, 1).await?;
    Ok(Decided { seq: seq.0, decision: events.first().and_then(|event| DecisionItem::of(event)) })
}

/// Explains a refused decision: what was decided before, or which places of the arguments are invalid.
async fn refused(
    app: &App,
    run: &RunId,
    id: &str,
    pending: &Pending,
    kind: &SignalKind,
    error: SignalError,
) -> Problem {
    // The places are listed beside it.
    let what = match &error {
        SignalError::Refused(Refusal::Misfit { what, .. }) => what.clone(),
        _ => String::new(),
    };
    let problem = Problem::from(error);
    match problem.kind() {
        ProblemType::AlreadyDecided | ProblemType::NotWaiting | ProblemType::RunClosed => {
            app.why_not_pending(run, id).await
        }
        ProblemType::ArgumentsInvalid => {
            let errors = invalid_places(app, run, pending, kind).await;
            // The engine's sentence may quote a secret.
            let problem = match app.settings.redact {
                Some(_) => Problem::new(ProblemType::ArgumentsInvalid),
                None if errors.is_empty() || what.is_empty() => problem,
                None => Problem::new(ProblemType::ArgumentsInvalid).detail(what),
            };
            if errors.is_empty() { problem } else { problem.errors(errors) }
        }
        _ => problem,
    }
}

/// Lists the places of edited arguments or of a reply that do not match their schema.
async fn invalid_places(app: &App, run: &RunId, pending: &Pending, kind: &SignalKind) -> Vec<FieldError> {
    let (value, schema) = match kind {
        SignalKind::Approve { arguments: Some(arguments), .. } => {
            let Ok(state) = app.client.state(run).await else { return Vec::new() };
            (arguments, arguments_schema(&state, &pending.call, &pending.tool))
        }
        SignalKind::Reply { payload, .. } | SignalKind::Webhook { payload, .. } => {
            let fits = |wait: &&WaitSpec| match kind {
                SignalKind::Webhook { name, .. } => wait.webhook == *name,
                _ => wait.webhook == "reply",
            };
            (payload, pending.kind.waits().iter().find(fits).map(|wait| Value::clone(&wait.schema)))
        }
        _ => return Vec::new(),
    };
    let validator = schema.and_then(|schema| jsonschema::validator_for(&schema).ok());
    let list = if app.settings.redact.is_some() { masked_errors_of } else { errors_of };
    validator.map_or_else(Vec::new, |validator| list(&validator, value))
}
