//! `positronic runs`: the runs of the store.

use std::borrow::Cow;
use std::io;

use positronic_core::record::{RunSummary, Timestamp};
use positronic_core::runner::{Client, Clock as _, SystemClock};
use positronic_core::store::RunFilter;
use positronic_query::{QueryClock, QueryError, RunQuery, RunSearch, find_runs};

use crate::app::{Failure, Project, ProjectStore, Ui, changed_runs, runs_without_worker};
use crate::cli::{Exit, RunsArgs};
use crate::render::{ShortIds, one_line, run_table, truncate, width};

pub(crate) async fn runs(project: Option<&Project>, args: &RunsArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_to_read(ui).await?;
    let now = SystemClock.now();
    let client = store.client();
    let mut rows = listed(&client, args, now).await?;
    let truncated = truncate(&mut rows, args.limit, "last");
    let short = ShortIds::of(&client, rows.iter().map(|row| &row.run)).await?;
    let unclaimed = runs_without_worker(&client, rows.iter(), now).await?;
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
        ui.notice(&if !args.search.is_empty() {
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
async fn listed(client: &Client, args: &RunsArgs, now: Timestamp) -> Result<Vec<RunSummary>, Failure> {
    let text = args.search.iter().map(|word| phrase(word)).collect::<Vec<_>>().join(" ");
    let query = RunQuery::parse(&text, clock(now)).map_err(|error| cannot_read(&text, &error))?;
    let search = RunSearch::new(&query, args.limit.get().saturating_add(1));
    Ok(find_runs(client.store(), &search).await?.rows)
}

/// Returns an argument as a part of a search: the shell has taken the quotes of a text with spaces.
fn phrase(word: &str) -> Cow<'_, str> {
    let is_text = word.contains(char::is_whitespace) && !word.contains(['"', ':']);
    if is_text { Cow::Owned(format!("\"{word}\"")) } else { Cow::Borrowed(word) }
}

/// Returns the clock of a search: days are those of this machine's time zone.
fn clock(now: Timestamp) -> QueryClock {
    let zone = jiff::tz::TimeZone::system();
    let offset = jiff::Timestamp::from_microsecond(now.0).map(|now| zone.to_offset(now).seconds());
    QueryClock { now, utc_offset: offset.unwrap_or_default() }
}

/// Reports a search that cannot be read, with a mark under the word.
fn cannot_read(text: &str, error: &QueryError) -> Failure {
    let before = text.get(..error.at.start).unwrap_or_default();
    let mark = format!("{}{}", " ".repeat(width(before)), "^".repeat(width(&error.word).max(1)));
    let failure = Failure::usage(format!("cannot read the search: {}", error.reason)).hint(one_line(text)).hint(mark);
    match &error.hint {
        Some(hint) => failure.hint(hint.as_str()),
        None => failure.hint("a word with a colon in double quotes is a text, not a condition"),
    }
}
