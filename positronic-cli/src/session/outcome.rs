//! The end of a command that showed a run: the result as data, the exit code, and the command that continues the run.

use std::io;
use std::sync::Arc;

use positronic_core::model::cassette::Cassette;
use positronic_core::projection::timeline::{NodeKind, Timeline};
use positronic_core::record::{EndReason, Event, EventKind, LoopOutcome, Path, Pending, RunId, Segment, Seq};
use positronic_core::runner::{Client, Clock as _, RetryError, SystemClock};
use positronic_core::store::PendingFilter;
use serde_json::Value;

use crate::app::{Failure, ProjectStore, Ui, currency};
use crate::cli::Exit;
use crate::render::ShortIds;
use crate::render::figures::many;
use crate::render::sentences::loop_limit;
use crate::session::{Ending, Interrupt, LISTED_ROWS, pending_entry};

/// Prints the outcome of a run, and returns the exit code.
pub(crate) async fn ended(
    store: &ProjectStore,
    run: &RunId,
    ending: Ending,
    cassette: Option<&Cassette>,
    json: bool,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    match ending {
        Ending::Completed(result) => {
            completed(&result, cassette, json, ui)?;
            match store.client().events(run, Seq(0)).await {
                Ok(log) => report_limited_loops(&log, ui)?,
                Err(error) => ui.notice(&format!("cannot read whether a limit has stopped a loop: {error}"))?,
            }
            Ok(match store.client().store().run(run).await {
                Ok(row) if row.cut_off.is_some() => Exit::CutOff,
                _ => Exit::Done,
            })
        }
        Ending::Failed => {
            let client = store.client();
            let hint = if store.is_persistent() { after_failure(&client, run, ui).await } else { None };
            if let Some(hint) = hint {
                ui.notice(&hint)?;
            }
            Ok(exit_of_failure(&client, run).await)
        }
        Ending::Cancelled => Ok(Exit::Cancelled),
        Ending::Interrupted => Ok(Exit::Interrupted),
        Ending::Left(pending) => {
            match left(store, run, &pending, ui).await {
                Err(failure) if failure.output.is_none() => {
                    ui.notice(&format!("the run waits; cannot read for what: {failure}"))?;
                }
                shown => shown?,
            }
            Ok(Exit::Unanswered)
        }
        Ending::Released(interrupt) => {
            let short = ShortIds::of(&store.client(), [run]).await.ok();
            let command = ui.command(&["work", short.as_ref().map_or_else(|| run.as_str(), |short| short.get(run))]);
            ui.notice(&format!("the run is unchanged; continue it with: {command}"))?;
            Ok(left_by(interrupt))
        }
    }
}

/// Returns the exit code of a failed run.
pub(crate) async fn exit_of_failure(client: &Client, run: &RunId) -> Exit {
    let Ok(log) = client.events(run, Seq(0)).await else { return Exit::RunFailed };
    let failures = log.iter().rev().filter_map(|event| match &event.kind {
        EventKind::BrainError(failure) => Some((&event.path, failure.code)),
        _ => None,
    });
    // A brain fails after the one below it that has made it fail.
    let (mut brain, mut cause) = (None, None);
    for (path, code) in failures {
        if brain.is_none_or(|brain: &Path| path.is_within(brain)) && (brain.is_some() || path.is_root()) {
            (brain, cause) = (Some(path), Some(code));
        }
        if cause.is_some_and(|cause| cause != EndReason::Brain) {
            break;
        }
    }
    if cause == Some(EndReason::Guard) { Exit::Guarded } else { Exit::RunFailed }
}

/// Returns what a person can do about a failed run: `retry` refuses some of them.
async fn after_failure(client: &Client, run: &RunId, ui: &Ui) -> Option<String> {
    let row = client.store().run(run).await.ok()?;
    let short = ShortIds::of(client, [run]).await.ok();
    let id = short.as_ref().map_or_else(|| run.as_str(), |short| short.get(run));
    Some(match client.retry_event(&row).await {
        Ok(_) => format!("retry it from the failed place with: {}", ui.command(&["retry", id])),
        Err(RetryError::Undone) => {
            format!("what it had done is undone; start it again with: {}", ui.command(&["run", &row.brain]))
        }
        Err(RetryError::AtLimit { .. }) => {
            let fork = ui.command(&["fork", id, "--stage", "STAGE"]);
            format!("raise the limit, then run the stage again with: {fork}")
        }
        Err(_) => return None,
    })
}

/// Returns the exit code of a command that an interrupt has ended, with the run unchanged.
pub(crate) const fn left_by(interrupt: Interrupt) -> Exit {
    match interrupt {
        Interrupt::Person => Exit::Interrupted,
        Interrupt::System => Exit::Terminated,
    }
}

fn completed(result: &Value, cassette: Option<&Cassette>, json: bool, ui: &mut Ui) -> Result<(), Failure> {
    if !json && !result.is_null() {
        ui.document(result)?;
    }
    let Some(cassette) = cassette else { return Ok(()) };
    let exchanges = cassette.unused_exchanges();
    if let Some(first) = exchanges.first() {
        let count = exchanges.len();
        ui.notice(&format!("{count} of the cassette's answers were not used, the first is {first}"))?;
    }
    // A brain with other options may ask less.
    let signals = cassette.unused_signals();
    if let Some(first) = signals.first() {
        let count = many(signals.len(), "decision");
        ui.notice(&format!("nothing waited for {count} of people in the cassette, the first after `{first}`"))?;
    }
    Ok(())
}

/// Reports the loops of a run that a limit has stopped, except those of calls: the run still counts as completed, since its
/// brain continues.
pub(crate) fn report_limited_loops(log: &[Arc<Event>], ui: &mut Ui) -> io::Result<()> {
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    let is_called = |path: &Path| path.segments().any(|segment| matches!(segment, Segment::Call(..)));
    for node in timeline.nodes().filter(|node| !is_called(&node.path)) {
        let NodeKind::Stage(stage) = &node.kind else { continue };
        let how = match &stage.outcome {
            Some(LoopOutcome::MaxIterations | LoopOutcome::Limit { .. }) => {
                let limit = loop_limit(&timeline, stage).unwrap_or_else(|| "a limit".to_owned());
                format!(" by {limit} before it was complete")
            }
            Some(LoopOutcome::Stopped { message, .. }) => format!(": {message}"),
            _ => continue,
        };
        ui.notice(&format!("the loop `{}` was stopped{how}", node.path))?;
    }
    Ok(())
}

/// Prints the pending items of a run, and the command that continues it.
async fn left(store: &ProjectStore, run: &RunId, pending: &[Pending], ui: &mut Ui) -> Result<(), Failure> {
    let client = store.client();
    let row = client.store().run(run).await?;
    let mut items = client.store().pending(&PendingFilter::builder().run(run.clone()).build()).await?;
    let short = ShortIds::of(&client, [run]).await?;
    items.retain(|item| pending.iter().any(|pending| pending.call == item.pending.call));
    let id = short.get(run);
    let now = SystemClock.now();
    let why = row.why.unwrap_or_else(|| "The run waits.".to_owned());
    if row.parked {
        ui.notice(&format!("{why} Retry it with: {}", ui.command(&["retry", id])))?;
    } else if pending.is_empty() {
        let resume = ui.command(&["resume", id]);
        ui.notice(&format!("{why} Lift the pause with: {resume}"))?;
    } else {
        ui.notice(&format!("{why} To answer:"))?;
    }
    for item in &items {
        let currency = currency(&client, run, &item.pending).await?;
        let text = pending_entry(item, id, currency.as_deref(), now, (ui.err_columns(), Some(LISTED_ROWS)), ui);
        ui.lines(&text)?;
    }
    let work = ui.command(&["work", id]);
    ui.notice(&format!("then continue with: {work}"))?;
    Ok(())
}
