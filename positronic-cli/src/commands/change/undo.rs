//! `positronic undo`: undoes the completed stages of a run that has completed, in a run of its own.

use serde_json::json;

use crate::app::{Failure, ProjectStore, Ui, find_run};
use crate::cli::{Exit, RunByArgs};
use crate::render::ShortIds;

pub(crate) async fn undo(args: &RunByArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    let row = find_run(&store, &args.run, ui).await?;
    let client = store.client();
    let run = client.undo(&row.run, ui.actor(args.by.by.as_deref())).await.map_err(Failure::refused)?;
    if args.by.json {
        ui.json_line(&json!({"run": run, "forked_from": row.run}))?;
        return Ok(Exit::Done);
    }
    ui.print(&format!("{run} undoes {}", row.run))?;
    let short = ShortIds::of(&client, [&run]).await?;
    ui.notice(&format!("its stages are undone by a worker: {}", ui.command(&["work", short.get(&run)])))?;
    Ok(Exit::Done)
}
