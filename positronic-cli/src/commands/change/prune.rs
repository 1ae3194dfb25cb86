//! `positronic prune`: removes runs that are over, and files that no run references.

use std::collections::{HashMap, HashSet};

use positronic_core::record::Status;
use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::store::{RunFilter, RunPages};
use serde_json::json;

use crate::app::{Failure, ProjectStore, Ui};
use crate::cli::{Exit, PruneArgs, earlier};
use crate::render::figures::many;
use crate::render::{ShortIds, run_table};

pub(crate) async fn prune(args: &PruneArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let over = Status::ALL.into_iter().filter(|status| status.is_over());
    let status = if args.status.is_empty() { over.collect() } else { args.status.clone() };
    let store = ProjectStore::open_existing(ui).await?;
    let now = SystemClock.now();
    let filter = RunFilter::builder().status(status).before(earlier(now, args.before)).build();
    let client = store.client();
    let mut rows = RunPages::new(client.store(), filter).all().await?;
    // A run stays if its prompts are the history of a run that stays.
    let removable = client.removable(&rows).await?;
    let needed = rows.len() - removable.len();
    rows.retain(|row| removable.contains(&row.run));
    let short = ShortIds::of(&client, rows.iter().map(|row| &row.run)).await?;
    let (removed, files) = match args.dry_run {
        true => (0, 0),
        false => (client.store().remove(&removable).await?, client.sweep().await?),
    };
    if args.json {
        let runs: Vec<_> = rows.iter().map(|row| &row.run).collect();
        ui.json_line(&json!({"removed": removed, "files": files, "dry_run": args.dry_run, "runs": runs}))?;
        return Ok(Exit::Done);
    }
    let count = |runs| many(runs, "run");
    if !rows.is_empty() {
        ui.print(&run_table(&rows, &short, &HashSet::new(), &HashMap::new(), now, ui.columns()))?;
    }
    if needed > 0 {
        let text = format!("{} retained: their prompts are the history of retained runs", count(needed));
        ui.notice(&text)?;
    }
    ui.notice(&if args.dry_run {
        format!("{} would be removed", count(rows.len()))
    } else {
        let files =
            if files > 0 { format!(" and {} that no run references", many(files, "file")) } else { String::new() };
        format!("removed {}{files}", count(removed))
    })?;
    Ok(Exit::Done)
}
