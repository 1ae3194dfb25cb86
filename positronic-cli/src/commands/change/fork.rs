//! `positronic fork`: a new run that shares another one's past.

use positronic_core::record::{Event, EventKind, Overrides, Path, RunId, Seq, ToolResult};
use positronic_core::runner::{Client, Fork, ForkError};
use serde_json::{Value, json};

use crate::app::{Failure, Project, ProjectStore, Ui, find_run, flag_json, parse_call, parse_options};
use crate::cli::{Exit, ForkArgs, did_you_mean};
use crate::render::ShortIds;

pub(crate) async fn fork(project: Option<&Project>, args: &ForkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let mut results = Vec::new();
    for (written, output) in &args.results {
        results.push((parse_call(written)?, flag_json(&format!("--result {written}"), output, ui)?));
    }
    let store = ProjectStore::open_existing(ui).await?;
    let row = find_run(&store, &args.run, ui).await?;
    let client = store.client();
    let at = match &args.stage {
        Some(stage) => before(&client, &row.run, stage).await?,
        None => Seq(args.at.unwrap_or_default()),
    };
    let first = client.store().read(&row.run, Seq(0), 1).await?;
    let options = match first.first().map(|event| &event.kind) {
        Some(EventKind::BrainStart(start)) => options(project, args, &row.brain, &start.options)?,
        _ => None,
    };
    let mut fork = Fork::builder().actor(ui.actor(args.by.as_deref())).build();
    fork.options = options;
    fork.overrides = Overrides { system: args.system.clone(), model: args.model.clone() };
    fork.results = results.into_iter().map(|(call, output)| (call, ToolResult::success(output))).collect();
    let new = client.fork(&row.run, at, fork).await.map_err(refused)?;
    // Events that were appended together are not separated, so the fork may be a few events later than requested.
    let forked = client.store().run(&new).await?;
    let at = forked.forked_from.as_ref().map_or(at, |(_, at)| *at);
    let short = ShortIds::of(&client, [&new]).await?;
    let (from, at, new, short, over) = (row.run, at, new, short, forked.status.is_over());
    if args.json {
        ui.json_line(&json!({"run": new, "forked_from": [from, at]}))?;
        return Ok(Exit::Done);
    }
    let place = args.stage.as_ref().map_or_else(String::new, |stage| format!(", before `{stage}`,"));
    ui.print(&format!("forked {from} after event {at}{place} into {new}"))?;
    let id = short.get(&new);
    if over {
        ui.notice("the fork is over, as the original is; fork after an earlier event, or with --stage, to continue")?;
    } else {
        ui.notice(&format!("continue it with: {}", ui.command(&["work", id])))?;
        ui.notice("tools run for real in the fork, also those that the original ran after that event")?;
    }
    ui.notice(&format!("then compare: {}", ui.command(&["diff", from.as_str(), id])))?;
    Ok(Exit::Done)
}

/// Finds the event right before a run entered a stage.
async fn before(client: &Client, run: &RunId, written: &str) -> Result<Seq, Failure> {
    let log = client.events(run, Seq(0)).await?;
    let stages = stages(log.iter().map(|event| &**event));
    let stage = Path::parse(written).ok().filter(|path| stages.contains(path)).ok_or_else(|| {
        let known: Vec<_> = stages.iter().map(|stage| format!("`{stage}`")).collect();
        Failure::usage(format!("the brain of {run} has no stage `{written}`"))
            .hints(did_you_mean(written, stages.iter().map(Path::as_str), ""))
            .hint(format!("its stages are {}", known.join(", ")))
    })?;
    client.before(run, &stage).await?.ok_or_else(|| {
        let entered = |stage: &&Path| log.iter().any(|event| event.path.is_within(stage));
        let entered: Vec<String> = stages.iter().filter(entered).map(|stage| format!("`{stage}`")).collect();
        Failure::refused(format!("the run {run} has not entered the stage `{written}`"))
            .hints((!entered.is_empty()).then(|| format!("it has entered {}", entered.join(", "))))
    })
}

/// Lists the stages of a run's brain, and of its nested brains that have begun.
fn stages<'a>(log: impl Iterator<Item = &'a Event>) -> Vec<Path> {
    log.filter_map(|event| match &event.kind {
        EventKind::BrainStart(start) => Some(start.stages.0.iter().map(|stage| event.path.stage(&stage.name))),
        _ => None,
    })
    .flatten()
    .collect()
}

/// Parses the changed options, with those of the run as defaults.
fn options(project: Option<&Project>, args: &ForkArgs, brain: &str, before: &Value) -> Result<Option<Value>, Failure> {
    if args.pairs.is_empty() {
        return Ok(None);
    }
    let project = project.ok_or_else(|| {
        Failure::usage(format!(
            "the options of `{brain}` can only be parsed with its code, which is not available here"
        ))
        .hint("fork it in the brain's project, or without -o")
    })?;
    parse_options(project.titled(brain)?, &args.pairs, Some(&before.to_string())).map(Some)
}

fn refused(error: ForkError) -> Failure {
    match error {
        ForkError::Store(error) => error.into(),
        ForkError::NoSuchEvent { at, last } => {
            Failure::usage(format!("the run has no event {at}")).hint(format!("its last event is {last}"))
        }
        other => Failure::refused(other),
    }
}
