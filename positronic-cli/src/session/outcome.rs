//! How a command that sat with a run ends: the result as data, the exit code, and how a run goes on that was left.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use positronic_core::record::{Event, EventKind, LoopOutcome, Pending, RunId, Segment, Seq};
use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::store::PendingFilter;
use serde_json::Value;

use crate::app::failure::Failure;
use crate::app::models::CassetteSession;
use crate::app::prices::currency;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::cli::exit::Exit;
use crate::render::figures::{amount, many};
use crate::render::short_ids::Short;
use crate::session::driver::Ending;
use crate::session::interrupts::Interrupt;
use crate::session::pending::{LISTED_ROWS, entry};

/// Ends a command with what its run came to.
pub(crate) async fn ended(
    kept: &ProjectStore,
    run: &RunId,
    ending: Ending,
    tape: &CassetteSession,
    json: bool,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    match ending {
        Ending::Completed(result) => {
            completed(&result, tape, json, ui)?;
            let log = kept.client().events(run, Seq(0)).await?;
            cut_short(&log, ui)?;
            Ok(Exit::Done)
        }
        Ending::Failed => Ok(Exit::RunFailed),
        Ending::Cancelled => Ok(Exit::Cancelled),
        Ending::Interrupted => Ok(Exit::Interrupted),
        Ending::Left(pending) => {
            left(kept, run, &pending, ui).await?;
            Ok(Exit::Unanswered)
        }
        Ending::LetGo(told) => {
            let short = Short::of(&kept.client(), [run]).await?;
            let command = ui.command(&["work", short.get(run)]);
            ui.notice(&format!("the run stays as it is; go on with: {command}"))?;
            Ok(left_by(told))
        }
    }
}

/// Returns the exit code of a command that was told to end and has left the run as it is.
pub(crate) const fn left_by(told: Interrupt) -> Exit {
    match told {
        Interrupt::Person => Exit::Interrupted,
        Interrupt::System => Exit::Terminated,
    }
}

fn completed(result: &Value, tape: &CassetteSession, json: bool, ui: &mut Ui) -> Result<(), Failure> {
    if !json {
        ui.document(result)?;
    }
    let CassetteSession::Plays(cassette) = tape else { return Ok(()) };
    let exchanges = cassette.unused_exchanges();
    if let Some(first) = exchanges.first() {
        let count = exchanges.len();
        ui.notice(&format!("{count} of the cassette's answers were not used, the first is {first}"))?;
    }
    // A brain that asks for less, as its options say, has no use for them.
    let signals = cassette.unused_signals();
    if let Some(first) = signals.first() {
        let count = many(u64::try_from(signals.len()).unwrap_or(u64::MAX), "decision");
        ui.notice(&format!("nothing waited for {count} of people in the cassette, the first after `{first}`"))?;
    }
    Ok(())
}

/// Says of the loops of a run that a limit has ended them, where no call ran them: the run counts as completed all the same,
/// since its brain goes on then.
pub(crate) fn cut_short(log: &[Arc<Event>], ui: &mut Ui) -> io::Result<()> {
    let (mut limits, mut currency) = (HashMap::new(), None);
    for event in log {
        currency = currency.or_else(|| event.currency());
        let whose = match &event.kind {
            EventKind::LoopMaxIterations { limit } => format!("its limit of {}", many(u64::from(*limit), "iteration")),
            EventKind::LoopLimit { unpriced: Some(model), .. } => {
                format!("a limit of money, since nobody knows what {model} costs")
            }
            EventKind::LoopLimit { kind, limit, of, shared, .. } => {
                let whose = match of {
                    _ if *shared => "the conversation's".to_owned(),
                    None => "its".to_owned(),
                    Some(brain) if brain.is_root() => "the run's".to_owned(),
                    Some(brain) => format!("`{brain}`'s"),
                };
                format!("{whose} limit of {}", amount(*kind, *limit, currency))
            }
            EventKind::LoopComplete { outcome: LoopOutcome::MaxIterations | LoopOutcome::Limit { .. }, .. } => {
                let limit = limits.remove(&event.path).unwrap_or_else(|| "a limit".to_owned());
                let is_called = event.path.segments().any(|segment| matches!(segment, Segment::Call(..)));
                if !is_called {
                    let path = &event.path;
                    ui.notice(&format!("the loop `{path}` was stopped by {limit}, before it had come to its end"))?;
                }
                continue;
            }
            EventKind::LoopComplete { outcome: LoopOutcome::Stopped { message, .. }, .. } => {
                let is_called = event.path.segments().any(|segment| matches!(segment, Segment::Call(..)));
                if !is_called {
                    ui.notice(&format!("the loop `{}` was stopped: {message}", event.path))?;
                }
                continue;
            }
            _ => continue,
        };
        limits.insert(event.path.clone(), whose);
    }
    Ok(())
}

/// Says what a run waits for, since when, and how it goes on.
async fn left(kept: &ProjectStore, run: &RunId, pending: &[Pending], ui: &mut Ui) -> Result<(), Failure> {
    let client = kept.client();
    let row = client.store().run(run).await?;
    let mut waiters = client.store().pending(&PendingFilter::builder().run(run.clone()).build()).await?;
    let short = Short::of(&client, [run]).await?;
    waiters.retain(|waiter| pending.iter().any(|pending| pending.call == waiter.pending.call));
    let id = short.get(run);
    let now = SystemClock.now();
    let why = row.why.unwrap_or_else(|| "The run waits.".to_owned());
    if pending.is_empty() {
        let resume = ui.command(&["resume", id]);
        ui.notice(&format!("{why} It stays; lift the pause with: {resume}"))?;
    } else {
        ui.notice(&format!("{why} It stays:"))?;
    }
    for waiter in &waiters {
        let currency = currency(&client, run, &waiter.pending).await?;
        let text = entry(waiter, id, currency.as_deref(), now, (ui.err_columns(), Some(LISTED_ROWS)), ui);
        ui.lines(&text)?;
    }
    let work = ui.command(&["work", id]);
    ui.notice(&format!("then go on with: {work}"))?;
    Ok(())
}
