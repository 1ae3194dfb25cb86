//! `positronic runs`: the runs of the store.

use std::io;

use positronic_core::record::{RunSummary, Timestamp};
use positronic_core::runner::{Client, Clock as _, SystemClock};
use positronic_core::store::{EventSearch, RunFilter, RunPages, StoreError};

use crate::app::{Failure, Project, ProjectStore, Ui, changed_runs, normal_title, unclaimed_runs};
use crate::cli::{Exit, RunsArgs, earlier};
use crate::render::{ShortIds, run_table, truncate};

pub(crate) async fn runs(project: Option<&Project>, args: &RunsArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_to_read(ui).await?;
    let now = SystemClock.now();
    let client = store.client();
    let mut rows = listed(&client, args, now).await?;
    let truncated = truncate(&mut rows, args.limit, "last");
    let short = ShortIds::of(&client, rows.iter().map(|row| &row.run)).await?;
    let unclaimed = unclaimed_runs(&client, rows.iter(), now).await?;
    let changed = changed_runs(project, &store, rows.iter()).await;
    let unreadable = client.store().unreadable(&RunFilter::builder().limit(args.limit.get()).build()).await?;
    let damaged = rows.iter().filter_map(|row| Some((&row.run, changed.get(&row.run)?.as_ref().err()?)));
    let damaged = damaged.map(|(run, error)| format!("{run} cannot continue: {error}"));
    let left_out = unreadable.iter().map(|(run, error)| format!("skipped {run}: {error}"));
    let problems: Vec<_> = left_out.chain(damaged).collect();
    for problem in &problems {
        ui.notice(problem)?;
    }
    if !problems.is_empty() {
        let export = ui.command(&["export", "RUN", "FILE"]);
        ui.notice(&format!("without a backup, `{export}` and `import FILE` move the other runs to a new store"))?;
    }
    if args.json {
        for row in &rows {
            let mut line = serde_json::to_value(row).map_err(io::Error::from)?;
            if let Some(fields) = line.as_object_mut() {
                let difference = changed.get(&row.run).map(|difference| match difference {
                    Ok(difference) => ("changed", difference.as_str().into()),
                    Err(error) => ("unreadable", error.to_string().into()),
                });
                let unclaimed = unclaimed.contains(&row.run).then_some(("unclaimed", true.into()));
                fields.extend(difference.into_iter().chain(unclaimed).map(|(name, value)| (name.to_owned(), value)));
            }
            ui.json_line(&line)?;
        }
    } else if rows.is_empty() {
        ui.notice(&if args.is_narrowed() {
            format!("no run in {} matches; `{}` lists all", store.location, ui.command(&["runs"]))
        } else {
            format!("there are no runs in {} yet", store.location)
        })?;
    } else {
        ui.print(&run_table(&rows, &short, &unclaimed, &changed, now, ui.columns()))?;
        if let Some(truncated) = truncated {
            ui.notice(&truncated)?;
        }
    }
    Ok(Exit::Done)
}

/// Lists the runs, at least one beyond the limit if there is one.
async fn listed(client: &Client, args: &RunsArgs, now: Timestamp) -> Result<Vec<RunSummary>, StoreError> {
    let mut filter = RunFilter::builder().status(args.status.clone()).build();
    filter.brain = match &args.brain {
        Some(written) => Some(title(client, written).await?),
        None => None,
    };
    filter.user.clone_from(&args.user);
    filter.tag.clone_from(&args.tag);
    filter.since = args.since.map(|age| earlier(now, age));
    filter.before = args.before.map(|age| earlier(now, age));
    let Some(text) = &args.search else {
        filter.limit = Some(args.limit.get().saturating_add(1));
        return client.store().runs(&filter).await;
    };
    let wanted = EventSearch::new(text, args.limit.get().saturating_add(1)).within(filter).once();
    let mut rows = Vec::new();
    for found in client.store().search(&wanted).await?.found {
        match client.store().run(&found.run).await {
            Ok(row) => rows.push(row),
            // It was pruned meanwhile.
            Err(StoreError::NoSuchRun { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rows)
}

/// Finds a brain's title among the runs regardless of case and punctuation; `written` itself if there is none.
async fn title(client: &Client, written: &str) -> Result<String, StoreError> {
    let exact = RunFilter::builder().brain(written).limit(1).build();
    if !client.store().runs(&exact).await?.is_empty() {
        return Ok(written.to_owned());
    }
    let mut pages = RunPages::new(client.store(), RunFilter::default());
    while let Some(page) = pages.next().await? {
        let mut titles = page.iter().map(|row| &*row.brain);
        if let Some(title) = titles.find(|title| normal_title(title) == normal_title(written)) {
            return Ok(title.to_owned());
        }
    }
    Ok(written.to_owned())
}
