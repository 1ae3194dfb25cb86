//! `positronic approve`, `reject`, `pause`, `resume`, `cancel`: what a person says to a run.
//!
//! What is said is checked and written down at once, whether somebody works on the run or not; several decisions are
//! taken together, or none of them.

use positronic_core::record::{Path, PendingKind, RunSummary, Seq, Signal, SignalId, SignalKind};
use positronic_core::runner::{Clock as _, Control, Ids as _, SignalError, SystemClock, UuidIds};
use positronic_core::store::{PendingFilter, StoreError};
use serde_json::json;

use super::block_on;
use crate::cli::{ApproveArgs, By, CancelArgs, RejectArgs, RunByArgs};
use crate::failure::{Exit, Failure};
use crate::find::{Short, call, find};
use crate::kept::Kept;
use crate::lists::question;
use crate::ui::Ui;

pub(crate) fn approve(args: &ApproveArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if args.args.is_some() && args.calls.len() > 1 {
        let message = "--args are the arguments of one call, and several are named".to_owned();
        let hint = "approve that call alone, and the others after it".to_owned();
        return Err(Failure::Misused { message, hint });
    }
    let kind = |call: &Path| SignalKind::Approve { call: call.clone(), arguments: args.args.clone() };
    decide(&args.run, &args.calls, args.all, &args.by, kind, "approved", ui)
}

pub(crate) fn reject(args: &RejectArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kind = |call: &Path| SignalKind::Reject { call: call.clone(), reason: args.reason.clone() };
    decide(&args.run, &args.calls, args.all, &args.by, kind, "rejected", ui)
}

pub(crate) fn pause(args: &RunByArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    say(&args.run, None, &[(SignalKind::Pause, "paused".to_owned())], &args.by, ui)
}

pub(crate) fn resume(args: &RunByArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    say(&args.run, None, &[(SignalKind::Resume, "lifted the pause".to_owned())], &args.by, ui)
}

pub(crate) fn cancel(args: &CancelArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kind = SignalKind::Cancel { reason: args.reason.clone() };
    say(&args.run, None, &[(kind, "cancelled".to_owned())], &args.by, ui)
}

fn decide(
    run: &str,
    calls: &[String],
    all: bool,
    by: &By,
    kind: impl Fn(&Path) -> SignalKind,
    done: &str,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let calls = match calls {
        [] => block_on(pending(run, all, ui))?,
        calls => calls.iter().map(|written| call(written)).collect::<Result<_, _>>()?,
    };
    let signals: Vec<_> = calls.iter().map(|call| (kind(call), format!("{done} {call}"))).collect();
    say(run, None, &signals, by, ui)
}

/// Finds the calls that wait for a decision: the only one, or all.
async fn pending(run: &str, all: bool, ui: &Ui) -> Result<Vec<Path>, Failure> {
    let kept = Kept::look(ui)?;
    let row = find(&kept, run, ui).await?;
    let waiters = kept.control().store().pending(&PendingFilter::builder().run(row.run.clone()).build()).await?;
    let mut waiting: Vec<_> = waiters.into_iter().map(|waiter| waiter.pending).collect();
    waiting.retain(|pending| matches!(pending.kind, PendingKind::Approval { .. }));
    match waiting.as_slice() {
        [] => {
            let message =
                format!("no call of the run `{}` waits for a decision; it is {}", row.run, row.status.as_str());
            let why = row.why.into_iter().chain([format!("`{}` says more", ui.command(&["show", run]))]);
            Err(Failure::Refused { message, hints: why.collect() })
        }
        [_, _, ..] if !all => {
            let line = |pending: &positronic_core::record::Pending| {
                format!("{}  {} {}", pending.call, pending.tool, question(pending))
            };
            Err(Failure::SeveralCalls { calls: waiting.iter().map(line).collect() })
        }
        some => Ok(some.iter().map(|pending| pending.call.clone()).collect()),
    }
}

/// Sends signals to a run, all or none, and tells which event accepts each.
pub(super) fn say(
    run: &str,
    id: Option<&str>,
    said: &[(SignalKind, String)],
    by: &By,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let kept = Kept::known(ui)?;
    let (row, accepted, rest) = block_on(async {
        let row = find(&kept, run, ui).await?;
        let control = kept.control();
        let actor = ui.actor(by.by.as_deref());
        let signal = |(kind, _): &(SignalKind, String)| Signal {
            id: id.map_or_else(|| UuidIds.signal(), SignalId::new),
            actor: actor.clone(),
            kind: kind.clone(),
        };
        let signals: Vec<Signal> = said.iter().map(signal).collect();
        let accepted = control.send(&row.run, &signals).await.map_err(|error| refused(error, &row, ui))?;
        let rest = rest(&control, &row, ui).await?;
        Ok::<_, Failure>((row, accepted, rest))
    })?;
    told(&row, said, &accepted, rest, by.json, ui)?;
    Ok(Exit::Done)
}

fn told(
    row: &RunSummary,
    said: &[(SignalKind, String)],
    accepted: &[Seq],
    rest: Option<String>,
    json: bool,
    ui: &mut Ui,
) -> Result<(), Failure> {
    if json {
        let accepted: Vec<_> =
            said.iter().zip(accepted).map(|((kind, _), seq)| json!({"signal": kind, "seq": seq})).collect();
        ui.json_line(&json!({"run": row.run, "accepted": accepted}))?;
        return Ok(());
    }
    for ((_, done), seq) in said.iter().zip(accepted) {
        ui.tell(&format!("{done} (event {seq} of {})", row.run))?;
    }
    rest.map_or(Ok(()), |rest| ui.notice(&rest))?;
    Ok(())
}

fn refused(error: SignalError, row: &RunSummary, ui: &Ui) -> Failure {
    match Failure::from(error) {
        Failure::Refused { message, .. } => {
            let show = ui.command(&["show", row.run.as_str()]);
            Failure::Refused { message, hints: vec![format!("nothing was changed; `{show}` says how the run stands")] }
        }
        other => other,
    }
}

/// Says what is left to do for a run: work that nobody does.
async fn rest(control: &Control, row: &RunSummary, ui: &Ui) -> Result<Option<String>, StoreError> {
    let row = control.store().run(&row.run).await?;
    if !row.has_work(SystemClock.now()) || control.worker(&row).await?.is_some() {
        return Ok(None);
    }
    let short = Short::of(control, [&row.run]).await?;
    let work = ui.command(&["work", short.get(&row.run)]);
    Ok(Some(format!("nobody has the run in hand; where no `work` serves it, go on with: {work}")))
}
