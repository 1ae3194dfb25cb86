//! `positronic runs`: the runs of the store.

use std::collections::HashSet;

use positronic_core::record::{RunSummary, Timestamp};
use positronic_core::runner::{Clock as _, Control, SystemClock};
use positronic_core::store::{RunFilter, StoreError};

use super::block_on;
use crate::cli::RunsArgs;
use crate::failure::{Exit, Failure};
use crate::find::Short;
use crate::kept::Kept;
use crate::lists::table;
use crate::project::normal;
use crate::ui::Ui;

/// How many events a search looks at.
const FOUND: usize = 10_000;

pub(crate) fn runs(args: &RunsArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = Kept::look(ui)?;
    let now = SystemClock.now();
    let (rows, short) = block_on(async {
        let control = kept.control();
        let rows = listed(&control, args, now).await?;
        let short = Short::of(&control, rows.iter().map(|row| &row.run)).await?;
        Ok::<_, StoreError>((rows, short))
    })?;
    if args.json {
        for row in &rows {
            ui.json_line(row)?;
        }
    } else if rows.is_empty() {
        ui.notice(&format!("no run in {} is listed by this", kept.place))?;
    } else {
        let (columns, unicode) = (ui.columns(), ui.settings.unicode);
        ui.tell(&table(&rows, &short, now, columns, unicode))?;
        if rows.len() == args.limit {
            ui.notice(&format!("the last {} are shown; --limit shows more", args.limit))?;
        }
    }
    Ok(Exit::Done)
}

async fn listed(control: &Control, args: &RunsArgs, now: Timestamp) -> Result<Vec<RunSummary>, StoreError> {
    let mut filter = RunFilter { status: args.status.clone(), ..RunFilter::default() };
    filter.brain = match &args.brain {
        Some(written) => Some(title(control, written).await?),
        None => None,
    };
    filter.user.clone_from(&args.user);
    filter.since = args.since.map(|age| earlier(now, age));
    filter.before = args.before.map(|age| earlier(now, age));
    let Some(text) = &args.search else {
        filter.most = Some(args.limit);
        return control.store().runs(&filter).await;
    };
    let found = control.store().search(text, FOUND).await?;
    let runs: HashSet<_> = found.into_iter().map(|found| found.run).collect();
    let mut rows = control.store().runs(&filter).await?;
    rows.retain(|row| runs.contains(&row.run));
    rows.truncate(args.limit);
    Ok(rows)
}

/// Finds the title that a person meant among the brains of the runs; what they wrote, where there is none such.
async fn title(control: &Control, written: &str) -> Result<String, StoreError> {
    let exact = RunFilter::builder().brain(written).most(1).build();
    if !control.store().runs(&exact).await?.is_empty() {
        return Ok(written.to_owned());
    }
    let rows = control.store().runs(&RunFilter::default()).await?;
    let meant = rows.iter().map(|row| &*row.brain).find(|title| normal(title) == normal(written));
    Ok(meant.unwrap_or(written).to_owned())
}

/// Returns the moment that lies `age` before `now`.
pub(super) fn earlier(now: Timestamp, age: std::time::Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)))
}
