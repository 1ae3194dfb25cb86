//! `positronic prune`: removes runs that are over.

use positronic_core::record::Status;
use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::store::{RunFilter, StoreError};
use serde_json::json;

use super::block_on;
use super::runs::earlier;
use crate::cli::PruneArgs;
use crate::display::figures::many;
use crate::failure::{Exit, Failure};
use crate::find::Short;
use crate::kept::Kept;
use crate::lists::table;
use crate::ui::Ui;

pub(crate) fn prune(args: &PruneArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if let Some(open) = args.status.iter().find(|status| !status.is_over()) {
        let message = format!("a run that is {} is not over, so it is not removed", open.as_str());
        let hint = "name completed, failed or cancelled; `cancel` ends a run".to_owned();
        return Err(Failure::Misused { message, hint });
    }
    let over = Status::ALL.into_iter().filter(|status| status.is_over());
    let status = if args.status.is_empty() { over.collect() } else { args.status.clone() };
    let kept = Kept::known(ui)?;
    let now = SystemClock.now();
    let filter = RunFilter { status, before: Some(earlier(now, args.before)), ..RunFilter::default() };
    let (rows, short, removed) = block_on(async {
        let control = kept.control();
        let rows = control.store().runs(&filter).await?;
        let short = Short::of(&control, rows.iter().map(|row| &row.run)).await?;
        let runs: Vec<_> = rows.iter().map(|row| row.run.clone()).collect();
        let removed = if args.dry_run { 0 } else { control.store().remove(&runs).await? };
        Ok::<_, StoreError>((rows, short, removed))
    })?;
    if args.json {
        let runs: Vec<_> = rows.iter().map(|row| &row.run).collect();
        ui.json_line(&json!({"removed": removed, "dry_run": args.dry_run, "runs": runs}))?;
        return Ok(Exit::Done);
    }
    let found = many(u64::try_from(rows.len()).unwrap_or(u64::MAX), "run");
    if !rows.is_empty() {
        let (columns, unicode) = (ui.columns(), ui.settings.unicode);
        ui.tell(&table(&rows, &short, now, columns, unicode))?;
    }
    ui.notice(&if args.dry_run { format!("{found} would be removed") } else { format!("removed {found}") })?;
    Ok(Exit::Done)
}
