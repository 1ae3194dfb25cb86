//! Position of a cassette in a run or conversation: answers that are in the log already are not played again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use positronic_core::model::cassette::{AwaitedSignal, Cassette, Header};
use positronic_core::model::{Model as _, NoDeltas};
use positronic_core::projection::request_for;
use positronic_core::record::{CODE, Event, EventKind, RunId, Seq};
use positronic_core::store::StoreError;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::app::{Failure, ProjectStore, SET_MODEL};
use crate::render::{shorten, value_line};

/// Maximum length of a quoted option.
const RECORDED: usize = 200;

/// The webhook name of a wait for a reply that is addressed to the call itself.
pub(crate) const REPLY: &str = "reply";

/// Why a trigger cannot fire while a cassette is played.
pub(crate) const NO_ANSWER_LEFT: &str =
    "no model is configured, and the cassette has no answer left for the trigger's run";

/// Advances a cassette over the log of a run, after those of the earlier runs of its conversation, since it was recorded
/// over all of them. Refuses what [`can_continue`] refuses.
pub(crate) async fn rewind(cassette: &Cassette, store: &ProjectStore, run: &RunId) -> Result<(), Failure> {
    let (mut chain, mut next) = (Vec::new(), Some(run.clone()));
    while let Some(run) = next {
        next = match store.client().store().run(&run).await {
            Ok(row) => row.after,
            Err(StoreError::NoSuchRun { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        chain.push(run);
    }
    for run in chain.iter().rev() {
        advance_cassette(cassette, store, run, Seq(0), None).await?;
    }
    Ok(())
}

/// Keeps a cassette at the position of a conversation in which other processes play too.
#[derive(Debug)]
pub(crate) struct CassetteFollower {
    cassette: Arc<Cassette>,
    /// The next event of each run over which the cassette was advanced.
    positions: Mutex<HashMap<RunId, Seq>>,
}

impl CassetteFollower {
    pub(crate) fn new(cassette: &Arc<Cassette>) -> Self {
        Self { cassette: Arc::clone(cassette), positions: Mutex::default() }
    }

    /// Returns whether the cassette has an answer left.
    pub(crate) fn has_answers_left(&self) -> bool {
        has_answers_left(&self.cassette)
    }

    /// Begins another conversation, for which the cassette plays from its beginning.
    pub(crate) fn restart(&self) {
        self.cassette.restart();
    }

    /// Advances the cassette over the answers in a conversation since the last call, except those that the worker `own`
    /// played.
    pub(crate) async fn advance_cassette(
        &self,
        store: &ProjectStore,
        conversation: &str,
        own: &str,
    ) -> Result<(), Failure> {
        let mut positions = self.positions.lock().await;
        for row in store.client().conversations().runs(conversation).await?.into_iter().rev() {
            let from = positions.get(&row.run).copied().unwrap_or(Seq(0));
            if from < row.next {
                let next = advance_cassette(&self.cassette, store, &row.run, from, Some(own)).await?;
                positions.insert(row.run, next);
            }
        }
        Ok(())
    }
}

/// Advances a cassette over the answers in a run from an event on, except those that the worker `own` played. Returns the
/// number of the next event.
async fn advance_cassette(
    cassette: &Cassette,
    store: &ProjectStore,
    run: &RunId,
    from: Seq,
    own: Option<&str>,
) -> Result<Seq, Failure> {
    let log = match store.client().events(run, Seq(0)).await {
        Err(StoreError::NoSuchRun { .. }) => return Ok(from),
        log => log?,
    };
    can_continue(cassette, &log)?;
    let claims =
        |event: &&Arc<Event>| matches!(&event.kind, EventKind::RunClaimed { owner, .. } if Some(&**owner) == own);
    let played: HashSet<_> = log.iter().filter(claims).filter_map(|claim| claim.epoch).collect();
    let is_new = |event: &Event| event.seq >= from && event.epoch.is_none_or(|epoch| !played.contains(&epoch));
    // A request contains the earlier messages of its conversation.
    let history = store.client().history(run).await?;
    for (index, event) in log.iter().enumerate() {
        let later = log.get(index + 1..).unwrap_or_default();
        match &event.kind {
            EventKind::LoopModelCall { .. } if later.iter().any(|later| answers(later, event) && is_new(later)) => {
                let log = log.iter().map(|event| &**event);
                if let Ok(request) = request_for(log, event.seq, history.clone(), |_| None) {
                    // A cassette does not contain answers that code gives.
                    if !request.settings.in_code {
                        _ = cassette.call(&request, &NoDeltas).await;
                    }
                }
            }
            EventKind::LoopApprovalDecided { .. } | EventKind::BudgetDecided { .. } if is_new(event) => {
                _ = cassette.next_signal(&[AwaitedSignal::Approval(&event.path)]);
            }
            EventKind::LoopResume { wait, signal: Some(_), .. }
            | EventKind::StageResume { wait, signal: Some(_), .. }
                if is_new(event) =>
            {
                let before = log.get(..index).unwrap_or_default();
                let waits = before.iter().rev().find_map(|before| match &before.kind {
                    EventKind::LoopWait { waits, .. } | EventKind::StageWait { waits, .. }
                        if before.path == event.path =>
                    {
                        Some(waits)
                    }
                    _ => None,
                });
                let Some(wait) = waits.and_then(|waits| waits.get(usize::try_from(*wait).ok()?)) else { continue };
                _ = cassette.next_signal(&[match wait.webhook.as_str() {
                    REPLY => AwaitedSignal::Reply(&event.path),
                    name => AwaitedSignal::Webhook { name, identifier: &wait.identifier },
                }]);
            }
            _ => {}
        }
    }
    Ok(log.last().map_or(from, |last| last.seq.next()))
}

/// Returns whether a cassette has an answer left.
pub(crate) fn has_answers_left(cassette: &Cassette) -> bool {
    !cassette.unused_exchanges().is_empty()
}

/// Refuses options that differ from the recorded ones.
pub(crate) fn answers_for(header: &Header, options: &Value, name: impl FnOnce() -> String) -> Result<(), Failure> {
    match header.unanswered(options) {
        None => Ok(()),
        Some((option, recorded)) => Err(Failure::model(format!(
            "the cassette {} only answers for its own `{option}`, and no model is configured for another one",
            name()
        ))
        .hint(format!("it was recorded with: {}", shorten(&value_line(recorded), RECORDED)))
        .hint(SET_MODEL)),
    }
}

/// Refuses a run with this log, or one whose conversation has an earlier run, that a cassette cannot continue, as a worker does.
pub(crate) async fn can_continue_after(
    cassette: &Cassette,
    store: &ProjectStore,
    log: &[Arc<Event>],
) -> Result<(), Failure> {
    can_continue(cassette, log)?;
    let mut next = previous(log);
    while let Some(run) = next {
        let earlier = match store.client().events(&run, Seq(0)).await {
            Err(StoreError::NoSuchRun { .. }) => return Ok(()),
            log => log?,
        };
        can_continue(cassette, &earlier)?;
        next = previous(&earlier);
    }
    Ok(())
}

/// Returns the previous run of the conversation of a run with this log.
fn previous(log: &[Arc<Event>]) -> Option<RunId> {
    match log.first().map(|event| &event.kind) {
        Some(EventKind::BrainStart(start)) => start.start.as_ref().and_then(|start| start.after.clone()),
        _ => None,
    }
}

/// Refuses a run that another model has answered, since its log would attribute the cassette's answers to that model, and one
/// whose options differ from the recorded ones.
fn can_continue(cassette: &Cassette, log: &[Arc<Event>]) -> Result<(), Failure> {
    if let Some(model) = answered_by_another(log, &cassette.name()) {
        return Err(Failure::model(format!("`{model}` has answered so far, and a cassette cannot continue for it"))
            .hint("set the key of its provider, as at the start of the run"));
    }
    match log.first().map(|event| &event.kind) {
        Some(EventKind::BrainStart(start)) => {
            answers_for(cassette.header(), &start.options, || format!("of `{}`", start.title))
        }
        _ => Ok(()),
    }
}

/// Returns the model that answered a run, unless it was a cassette or has the name `own`.
fn answered_by_another(log: &[Arc<Event>], own: &str) -> Option<String> {
    let mut models = log.iter().enumerate().filter_map(|(index, event)| match &event.kind {
        EventKind::LoopModelCall { model, .. } if model != CODE => {
            let later = log.get(index + 1..).unwrap_or_default();
            later.iter().any(|later| answers(later, event)).then_some(model.as_str())
        }
        _ => None,
    });
    let first = models.next()?;
    let fits = |model: &str| model == own || model.starts_with("cassette/");
    (!fits(first) && !models.any(fits)).then(|| first.to_owned())
}

/// Returns whether an event is the outcome of a request.
fn answers(event: &Event, request: &Event) -> bool {
    let EventKind::LoopModelCall { attempt: asked, .. } = &request.kind else { return false };
    event.path == request.path
        && match &event.kind {
            EventKind::LoopModelResult { .. } => true,
            EventKind::LoopModelRetry { attempt, .. } | EventKind::LoopAnswerRefused { attempt, .. } => {
                attempt == asked
            }
            _ => false,
        }
}
