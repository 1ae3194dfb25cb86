//! `positronic retry`: continues the work of a run that has failed or was parked, at the place of the failure.

use positronic_core::runner::{Retried, RetryError};
use serde_json::json;

use crate::app::{Failure, Models, Project, ProjectStore, Ui, find_run};
use crate::cli::{Exit, RunByArgs};
use crate::render::ShortIds;
use crate::render::words::code_changed;

pub(crate) async fn retry(project: Option<&Project>, args: &RunByArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    let row = find_run(&store, &args.run, ui).await?;
    let client = store.client();
    let actor = ui.actor(args.by.by.as_deref());
    let retried = match project {
        Some(project) => Models::none().runner(project, &store).record_retry(&row.run, actor).await,
        None => client.retry(&row.run, actor).await,
    };
    let retried = retried.map_err(|error| refused(error, &args.run, ui))?;
    let run = match &retried {
        Retried::Resumed(seq) => {
            let line = json!({"run": row.run, "seq": seq});
            let text = format!("retried (event {seq} of {})", row.run);
            if args.by.json {
                ui.json_line(&line)?;
            } else {
                ui.print(&text)?;
            }
            row.run.clone()
        }
        Retried::Forked { run, at } => {
            let line = json!({"run": run, "forked_from": [row.run, at]});
            let text = format!("retried {} after event {at} as {run}", row.run);
            if args.by.json {
                ui.json_line(&line)?;
            } else {
                ui.print(&text)?;
            }
            run.clone()
        }
    };
    if !args.by.json {
        let short = ShortIds::of(&client, [&run]).await?;
        ui.notice(&format!(
            "what has a result is not done again; continue it with: {}",
            ui.command(&["work", short.get(&run)])
        ))?;
    }
    Ok(Exit::Done)
}

fn refused(error: RetryError, run: &str, ui: &Ui) -> Failure {
    match error {
        RetryError::Fork(positronic_core::runner::ForkError::Store(error)) => error.into(),
        RetryError::AtLimit { failure } => Failure::refused(format!(
            "{failure}; a retry would reach the same limit again"
        ))
        .hint(format!("raise the limit, then run the stage again: {}", ui.command(&["fork", run, "--stage", "STAGE"]))),
        RetryError::Changed { difference } => Failure::refused(code_changed(&difference))
            .hint("nothing was changed; restore the code that the run needs, then retry it"),
        error => Failure::refused(error),
    }
}
