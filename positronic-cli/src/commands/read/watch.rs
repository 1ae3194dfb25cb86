//! `positronic watch`: the progress of a run that another process works on, or of what is live.

use std::time::Duration;

use positronic_core::record::{RunId, RunSummary, Seq, Status};
use positronic_core::runner::{Client, Runner};
use positronic_core::store::{RunFilter, StoreError};

use crate::app::{Failure, LiveText, Models, Project, ProjectStore, Ui, Unread, find_run, price_table};
use crate::cli::{Exit, WatchArgs};
use crate::render::figures::many;
use crate::session::{Ending, Role, SessionOptions, ended, interrupts, left_by, session};

/// The time between two looks for a live run.
const POLL: Duration = Duration::from_millis(300);
/// How many running runs are looked at.
const MOST: usize = 50;

pub(crate) async fn watch(args: &WatchArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    ui.detach_streams(Unread::IsKept);
    let store = ProjectStore::open_to_read(ui).await?;
    ui.prices = Some(price_table(None, &ui.settings)?);
    let Some(run) = &args.run else { return watch_live(store, args, ui).await };
    let row = find_run(&store, run, ui).await?;
    match one(&store, &row.run, args.until_waiting, args, ui).await? {
        (_, Ending::Released(interrupt)) => Ok(left_by(interrupt)),
        (run, ending) => ended(&store, &run, ending, None, args.output.json, ui).await,
    }
}

/// Watches a run until it is over, or with `until_waiting` until it waits.
async fn one(
    store: &ProjectStore,
    run: &RunId,
    until_waiting: bool,
    args: &WatchArgs,
    ui: &mut Ui,
) -> Result<(RunId, Ending), Failure> {
    let actor = ui.actor(None);
    let options = SessionOptions {
        live: LiveText::beside(store),
        ..SessionOptions::new(Role::Watches { until_waiting }, &actor, args.output)
    };
    // A watcher needs no brain and no model.
    let runner = Models::none().runner(&Project::new(), store);
    let begin = async |runner: Runner| Ok(runner.open(run).await?);
    session(&runner, begin, &options, ui).await
}

/// Watches the runs on which workers work, one after the other, until an interrupt.
async fn watch_live(mut store: ProjectStore, args: &WatchArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let mut interrupts = interrupts();
    let mut shown: Option<(RunId, Seq)> = None;
    let mut has_said = false;
    loop {
        if store.path.is_none() {
            // The first run of the project creates the store.
            store = ProjectStore::open_to_read(ui).await?;
        }
        let client = store.client();
        let live = live_runs(&client).await?;
        // A run that has just been shown is shown again when it has continued.
        let next = live.iter().find(|row| shown.as_ref().is_none_or(|(run, seq)| row.run != *run || row.next > *seq));
        let Some(row) = next else {
            if !std::mem::replace(&mut has_said, true) {
                ui.notice("no worker works on a run; watching for the next one, press Ctrl-C to stop")?;
            }
            tokio::select! {
                Some(interrupt) = interrupts.recv() => return Ok(left_by(interrupt)),
                () = tokio::time::sleep(POLL) => continue,
            }
        };
        has_said = false;
        if live.len() > 1 {
            let others = many(live.len() - 1, "other run");
            let list = ui.command(&["runs", "status:running"]);
            ui.notice(&format!("{others} at work; `{list}` lists all"))?;
        }
        let run = row.run.clone();
        match one(&store, &run, true, args, ui).await? {
            (_, Ending::Released(interrupt)) => return Ok(left_by(interrupt)),
            (_, ending @ (Ending::Left(_) | Ending::Failed | Ending::Completed(_))) => {
                _ = ended(&store, &run, ending, None, args.output.json, ui).await?;
            }
            _ => {}
        }
        shown = match client.store().run(&run).await {
            Ok(row) => Some((run, row.next)),
            // It was pruned meanwhile.
            Err(StoreError::NoSuchRun { .. }) => None,
            Err(error) => return Err(error.into()),
        };
    }
}

/// Lists the running runs that a live worker has, the last started first.
async fn live_runs(client: &Client) -> Result<Vec<RunSummary>, StoreError> {
    let running = RunFilter::builder().status(vec![Status::Running]).limit(MOST).build();
    let mut live = Vec::new();
    for row in client.store().runs(&running).await? {
        if client.worker(&row).await?.is_some() {
            live.push(row);
        }
    }
    Ok(live)
}
