//! Signals that a command sends to a run.

use positronic_core::machine::Refusal;
use positronic_core::record::{EventKind, Path, RunId, RunSummary, Seq, Signal, SignalId, SignalKind};
use positronic_core::runner::{Client, Clock as _, Ids as _, SignalError, SystemClock, UuidIds};
use positronic_core::store::{PendingFilter, PendingItem, StoreError};
use serde_json::json;

use super::pending::answer_commands;
use crate::app::{Failure, Project, ProjectStore, Ui, code_check, find_run};
use crate::cli::{By, Exit};
use crate::render::ShortIds;
use crate::render::words::{code_changed, live_worker, no_worker};

/// Sends signals to a run, all or none, and prints the event that accepts each. What the project's code could not carry out is
/// refused.
pub(crate) async fn send_signals(
    project: Option<&Project>,
    run: &str,
    id: Option<&str>,
    labelled: &[(SignalKind, String)],
    by: &By,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    let row = find_run(&store, run, ui).await?;
    let client = store.client();
    let actor = ui.actor(by.by.as_deref());
    let signal = |(kind, _): &(SignalKind, String)| Signal {
        id: id.map_or_else(|| UuidIds.signal(), SignalId::new),
        actor: actor.clone(),
        kind: kind.clone(),
    };
    let signals: Vec<Signal> = labelled.iter().map(signal).collect();
    if id.is_some() {
        for signal in &signals {
            said_before(&client, &row.run, signal).await?;
        }
    }
    let check = code_check(project, &store, &row.run).await?;
    if let Some(difference) = signals.iter().find_map(|signal| check.refuses(&signal.kind)) {
        let show = ui.command(&["show", row.run.as_str()]);
        return Err(
            Failure::refused(code_changed(difference)).hint(format!("nothing was changed; `{show}` shows the run"))
        );
    }
    let accepted = match client.send_all(&row.run, &signals).await {
        Ok(accepted) => accepted,
        Err(error) => return Err(refused(error, &client, &row, ui).await?),
    };
    let rest = rest(&client, &row, ui).await?;
    report(&row, labelled, &accepted, rest, by.json, ui)?;
    Ok(Exit::Done)
}

fn report(
    row: &RunSummary,
    labelled: &[(SignalKind, String)],
    accepted: &[Seq],
    rest: Option<String>,
    json: bool,
    ui: &mut Ui,
) -> Result<(), Failure> {
    if json {
        let accepted: Vec<_> =
            labelled.iter().zip(accepted).map(|((kind, _), seq)| json!({"signal": kind, "seq": seq})).collect();
        ui.json_line(&json!({"run": row.run, "accepted": accepted}))?;
        return Ok(());
    }
    for ((_, done), seq) in labelled.iter().zip(accepted) {
        let before = if *seq < row.next { "already accepted: " } else { "" };
        ui.print(&format!("{before}{done} (event {seq} of {})", row.run))?;
    }
    rest.map_or(Ok(()), |rest| ui.notice(&rest))?;
    Ok(())
}

/// Refuses a signal whose id the run has accepted with other content: the store would ignore it silently.
async fn said_before(client: &Client, run: &RunId, signal: &Signal) -> Result<(), Failure> {
    let Some(seq) = client.store().accepted(run, &signal.id).await? else { return Ok(()) };
    let event = client.store().read(run, seq, 1).await?;
    let same = match (event.first().map(|event| &event.kind), &signal.kind) {
        (
            Some(EventKind::LoopResume { payload: before, .. } | EventKind::StageResume { payload: before, .. }),
            SignalKind::Webhook { payload, .. } | SignalKind::Reply { payload, .. },
        ) => before == payload,
        (
            Some(EventKind::LoopMessage { text: before, files: files_before, .. }),
            SignalKind::Message { text, files, .. },
        ) => (before, files_before) == (text, files),
        (
            Some(EventKind::LoopPluginUpdate { plugin: plugin_before, update: before, .. }),
            SignalKind::UpdatePlugin { plugin, update, .. },
        ) => (plugin_before, &**before) == (plugin, update),
        _ => false,
    };
    if same { Ok(()) } else { Err(Failure::reused_id(&signal.id)) }
}

/// The most pending items whose commands are shown after a refusal.
const SHOWN: usize = 5;

async fn refused(error: SignalError, client: &Client, row: &RunSummary, ui: &Ui) -> Result<Failure, Failure> {
    // What a signal may have meant: the named call, or any that is pending.
    let meant: Option<Option<Path>> = match &error {
        SignalError::Refused(Refusal::Unasked { call, .. }) => Some(Some(call.clone())),
        SignalError::Refused(Refusal::NoSuchCall { .. } | Refusal::NotAsked { .. } | Refusal::NothingWaits { .. }) => {
            Some(None)
        }
        _ => None,
    };
    let failure = Failure::from(error.clone());
    if failure.exit != Exit::Refused {
        return Ok(failure);
    }
    let show = ui.command(&["show", row.run.as_str()]);
    let mut hints = vec![format!("nothing was changed; `{show}` shows the run")];
    if let SignalError::Refused(Refusal::Ended) = &error {
        let status = client.store().run(&row.run).await?.status;
        hints = vec![format!("the run is {}; nothing was changed; `{show}` shows how it ended", status.as_str())];
    }
    if let SignalError::Refused(Refusal::Expired { .. }) = &error {
        let work = ui.command(&["work", row.run.as_str()]);
        hints.push(format!("to continue the run without an answer: {work}"));
    }
    if let Some(call) = meant {
        let filter = PendingFilter::builder().run(row.run.clone()).build();
        let items = client.store().pending(&filter).await?;
        let is_meant = |item: &&PendingItem| call.as_ref().is_none_or(|call| item.pending.call == *call);
        let waits = items.iter().filter(is_meant).take(SHOWN);
        hints.extend(waits.flat_map(|item| answer_commands(row.run.as_str(), &item.pending, SystemClock.now(), ui)));
    }
    Ok(failure.hints(hints))
}

/// Says what continues an unclaimed run with work: the live worker that had it before, or else a command.
async fn rest(client: &Client, row: &RunSummary, ui: &Ui) -> Result<Option<String>, StoreError> {
    let row = client.store().run(&row.run).await?;
    if !row.has_work(SystemClock.now()) || client.worker(&row).await?.is_some() {
        return Ok(None);
    }
    if let Some(claim) = &row.claim
        && client.store().is_lease_live(&claim.owner).await?
    {
        return Ok(Some(live_worker(&claim.owner)));
    }
    let short = ShortIds::of(client, [&row.run]).await?;
    let work = ui.command(&["work", short.get(&row.run)]);
    Ok(Some(no_worker(&work)))
}
