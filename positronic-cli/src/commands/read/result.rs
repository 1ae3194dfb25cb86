//! `positronic result`: what a run has returned, with an exit code by its status.

use futures::StreamExt as _;
use positronic_core::record::{RunId, RunSummary, Status};
use positronic_core::runner::{Client, RunUpdate, Settled};
use positronic_core::store::StoreError;
use serde_json::{Value, json};

use crate::app::{Failure, Ui, Unread, open_run};
use crate::cli::{Exit, ResultArgs};
use crate::render::one_line;
use crate::session::{exit_of_failure, interrupts, left_by};

pub(crate) async fn result(args: &ResultArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let (client, mut row) = open_run(&args.run, ui).await?;
    if args.wait && !row.status.is_over() {
        ui.detach_streams(Unread::IsKept);
        let mut interrupts = interrupts();
        tokio::select! {
            Some(interrupt) = interrupts.recv() => return Ok(left_by(interrupt)),
            ended = ended(&client, &row, ui) => ended?,
        }
        row = client.store().run(&row.run).await?;
    }
    let result = match row.status {
        Status::Completed => Some(result_of(&client, &row.run).await?),
        Status::Running | Status::Waiting | Status::Paused | Status::Failed | Status::Cancelled => None,
    };
    if args.json {
        let mut line = json!({"run": row.run, "status": row.status});
        if let Some(fields) = line.as_object_mut() {
            fields.extend(result.map(|result| ("result".to_owned(), result)));
            fields.extend(row.why.as_ref().map(|why| ("why".to_owned(), json!(why))));
        }
        ui.document(&line)?;
    } else if let Some(result) = result {
        if !result.is_null() {
            ui.document(&result)?;
        }
    } else {
        let why = row.why.as_ref().map_or_else(String::new, |why| format!(": {}", one_line(why)));
        ui.notice(&format!("the run {} has no result: it is {}{why}", row.run, row.status.as_str()))?;
        if !row.status.is_over() {
            let wait = ui.command(&["result", row.run.as_str(), "--wait"]);
            ui.lines(&format!("wait for its end with: {wait}"))?;
        }
    }
    Ok(match row.status {
        Status::Completed if row.cut_off.is_some() => Exit::CutOff,
        Status::Completed => Exit::Done,
        Status::Failed => exit_of_failure(&client, &row.run).await,
        Status::Cancelled => Exit::Cancelled,
        Status::Waiting | Status::Paused => Exit::Unanswered,
        Status::Running => Exit::Refused,
    })
}

/// Waits until a run is over. While it waits for an answer, it says so once.
async fn ended(client: &Client, row: &RunSummary, ui: &mut Ui) -> Result<(), Failure> {
    let mut updates = client.follow(&row.run, row.next);
    let mut has_said = false;
    while let Some(update) = updates.next().await {
        match update {
            Ok(RunUpdate::Settled(Settled::Waiting(pending))) if !pending.is_empty() && !has_said => {
                has_said = true;
                let why = client.store().run(&row.run).await.ok().and_then(|row| row.why);
                ui.notice(&why.unwrap_or_else(|| "The run waits.".to_owned()))?;
            }
            Ok(_) => {}
            // Nothing is lost while the store is away.
            Err(StoreError::Failed { .. }) => updates = client.follow(&row.run, row.next),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn result_of(client: &Client, run: &RunId) -> Result<Value, StoreError> {
    let state = client.state(run).await?;
    Ok(state.result().cloned().unwrap_or_default())
}
