//! `positronic schedule`: adds, lists, pauses, resumes, removes, previews and triggers schedules.

use positronic_core::record::{RunSummary, Status, Timestamp};
use positronic_core::runner::{
    Client, Clock as _, ScheduleError, ScheduleList, Schedules, SystemClock, UnreadableSchedule,
};
use positronic_core::schedule::{
    CatchUp, Interval, PreviewedTime, Schedule, ScheduleRecord, ScheduleSpec, Tick, TickOutcome, TimeShift, preview,
};
use serde_json::json;

use crate::app::{Failure, Project, ProjectStore, Ui, flag_text, parse_options};
use crate::cli::{
    CatchUpArg, Exit, ScheduleAddArgs, ScheduleArgs, ScheduleBackfillArgs, ScheduleCommand, ScheduleListArgs,
    SchedulePauseArgs, SchedulePreviewArgs, ScheduleTriggerArgs, WhenArgs,
};
use crate::render::figures::{age, duration, left, many};
use crate::render::one_line;

/// The most missed times that `--catch-up all` starts.
const MAX_CAUGHT_UP: u32 = 100;

pub(crate) async fn schedule(project: Option<&Project>, args: &ScheduleArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    match &args.what {
        ScheduleCommand::Add(args) => match project {
            Some(project) => add(project, args, ui).await,
            None => Err(Failure::usage(
                "cannot add a schedule: this binary has no brains; run `cargo run -- schedule add` in the project",
            )),
        },
        ScheduleCommand::List(args) => list(args, ui).await,
        ScheduleCommand::Pause(args) => pause(args, ui).await,
        ScheduleCommand::Resume(args) => resume(&args.id, args.json, ui).await,
        ScheduleCommand::Remove(args) => remove(&args.id, args.json, ui).await,
        ScheduleCommand::Preview(args) => show_preview(args, ui).await,
        ScheduleCommand::Trigger(args) => trigger(args, ui).await,
        ScheduleCommand::Backfill(args) => backfill(args, ui).await,
    }
}

async fn add(project: &Project, args: &ScheduleAddArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let entry = project.find(&args.brain)?;
    let document = args.options.document.as_ref().map(|given| flag_text(given, ui)).transpose()?;
    let mut schedule = Schedule::new(entry.definition.title.as_str())
        .when(spec(&args.when))
        .options(parse_options(entry, &args.options.pairs, document.as_deref())?)
        .overlap(args.overlap)
        .catch_up(match args.catch_up {
            CatchUpArg::None => CatchUp::None,
            CatchUpArg::Latest => CatchUp::Latest { within: args.within },
            CatchUpArg::All => CatchUp::All { within: args.within, most: MAX_CAUGHT_UP },
        });
    schedule.message.clone_from(&args.message);
    schedule.user.clone_from(&args.user);
    schedule.pause_on_failure = args.pause_on_failure;
    let store = ProjectStore::open(ui).await?;
    let schedules = schedules(&store, None, ui);
    let set = match args.replace {
        true => schedules.set(&args.id, schedule).await,
        false => schedules.set_if(&args.id, schedule, 0).await,
    };
    let record = set.map_err(|error| match error {
        ScheduleError::Changed { id, .. } => {
            Failure::refused(format!("there is a schedule `{id}` already")).hint("--replace replaces it")
        }
        error => failure(error, ui),
    })?;
    if args.json {
        ui.json_line(&record)?;
        return Ok(Exit::Done);
    }
    let next = record.next.map_or_else(String::new, |next| format!("; its next run is at {next}"));
    ui.print(&format!("set the schedule {}{next}", record.id))?;
    Ok(Exit::Done)
}

/// Returns the schedules of a store, on which the person at this terminal acts.
fn schedules(store: &ProjectStore, by: Option<&str>, ui: &Ui) -> Schedules {
    let schedules = store.client().schedules();
    match ui.actor(by).by {
        Some(name) => schedules.by(name),
        None => schedules,
    }
}

fn spec(args: &WhenArgs) -> ScheduleSpec {
    let WhenArgs { cron, every, at, zone, start, end, exclude, jitter } = args.clone();
    let mut spec = ScheduleSpec::default();
    spec.every = every.into_iter().map(|every| Interval { every, offset: std::time::Duration::ZERO }).collect();
    (spec.cron, spec.at, spec.zone, spec.start, spec.end) = (cron, at, zone, start, end);
    (spec.exclude, spec.jitter) = (exclude, jitter.unwrap_or_default());
    spec
}

async fn list(args: &ScheduleListArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_to_read(ui).await?;
    let schedules = store.client().schedules();
    if let Some(id) = &args.id {
        let ticks = schedules.ticks(id, None, args.limit).await.map_err(|error| failure(error, ui))?;
        return print_ticks(&ticks, args.json, ui);
    }
    let ScheduleList { schedules, unreadable, .. } = schedules.list().await?;
    if !args.json && schedules.is_empty() && unreadable.is_empty() {
        ui.notice(&format!("no schedule is set in {}", store.location))?;
    }
    let now = SystemClock.now();
    for record in &schedules {
        if args.json {
            ui.json_line(record)?;
            continue;
        }
        ui.row(&head(record, now))?;
        for line in details(record, now, &open_runs(record, &store.client()).await?) {
            ui.row(&format!("  {}", one_line(&line)))?;
        }
    }
    for UnreadableSchedule { id, error, .. } in &unreadable {
        if args.json {
            ui.json_line(&json!({"id": id, "unreadable": error.to_string()}))?;
        } else {
            ui.row(&format!("{id}  unreadable"))?;
            ui.row(&format!("  {}", one_line(&error.to_string())))?;
            ui.row(&format!("  remove it with: {}", ui.command(&["schedule", "remove", id])))?;
        }
    }
    Ok(Exit::Done)
}

fn print_ticks(ticks: &[Tick], json: bool, ui: &mut Ui) -> Result<Exit, Failure> {
    for tick in ticks {
        if json {
            ui.json_line(tick)?;
        } else {
            ui.row(&tick_line(tick))?;
        }
    }
    Ok(Exit::Done)
}

/// Renders a tick: its time, and what happened.
fn tick_line(tick: &Tick) -> String {
    let since = tick.since.map_or_else(String::new, |since| format!("all times after {since} until "));
    let what = match &tick.outcome {
        TickOutcome::Due => "is due".to_owned(),
        TickOutcome::Buffered => "waits for the end of an earlier run".to_owned(),
        TickOutcome::Started { run } => format!("has started {run}"),
        TickOutcome::Skipped { reason } => format!("skipped: {reason}"),
        TickOutcome::Missed { reason } => format!("missed: {reason}"),
        _ => "unknown".to_owned(),
    };
    one_line(&format!("{since}{}  {what}", tick.nominal))
}

/// Renders a schedule: its id, its brain, its times, and the next one.
fn head(record: &ScheduleRecord, now: Timestamp) -> String {
    let ScheduleRecord { id, schedule, next, .. } = record;
    let ScheduleSpec { cron, every, at, zone, .. } = &schedule.when;
    let mut times: Vec<String> = cron.iter().map(|cron| format!("`{cron}`")).collect();
    times.extend(every.iter().map(|interval| format!("every {}", duration(interval.every))));
    times.extend(at.iter().map(ToString::to_string));
    let zone = zone.as_ref().map_or_else(String::new, |zone| format!(" in {zone}"));
    let user = schedule.user.as_ref().map_or_else(String::new, |user| format!(" for {user}"));
    let next = match next {
        Some(next) if *next > now => format!("; next in {} ({next})", left(next.since(now))),
        Some(next) => format!("; due since {next}"),
        None => String::new(),
    };
    one_line(&format!("{id}  {}{user}: {}{zone}{next}", schedule.brain, times.join(", ")))
}

/// Renders what keeps a schedule from starting runs.
fn details(record: &ScheduleRecord, now: Timestamp, open: &[RunSummary]) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(paused) = &record.paused {
        let by = paused.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        let reason = paused.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        lines.push(format!("paused{by} {} ago{reason}", age(now.since(paused.at))));
    }
    if let Some(broken) = &record.broken {
        lines.push(format!("broken: {}", broken.reason));
    }
    for run in open {
        let status = match run.status {
            Status::Waiting => "has been waiting",
            Status::Paused => "has been paused",
            _ => "has been running",
        };
        lines.push(format!("its run {} {status} for {}", run.run, age(now.since(run.since))));
    }
    if !record.queue.is_empty() {
        lines.push(format!("{} to start", many(record.queue.len() as u64, "tick")));
    }
    if record.next.is_none() && record.paused.is_none() {
        lines.push("no time in the future".to_owned());
    }
    lines
}

async fn open_runs(record: &ScheduleRecord, client: &Client) -> Result<Vec<RunSummary>, Failure> {
    let mut open = Vec::new();
    for tick in &record.running {
        if let Ok(row) = client.store().run(&tick.run).await
            && !row.status.is_over()
        {
            open.push(row);
        }
    }
    Ok(open)
}

async fn pause(args: &SchedulePauseArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    let paused = schedules(&store, args.by.by.as_deref(), ui).pause(&args.id, args.reason.as_deref()).await;
    let record = paused.map_err(|error| failure(error, ui))?;
    print_done(&record, &format!("paused the schedule {}", record.id), args.by.json, ui)
}

async fn resume(id: &str, json: bool, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    let record = store.client().schedules().resume(id).await.map_err(|error| failure(error, ui))?;
    let next = record.next.map_or_else(String::new, |next| format!("; its next run is at {next}"));
    print_done(&record, &format!("resumed the schedule {id}{next}"), json, ui)
}

fn print_done(record: &ScheduleRecord, done: &str, json: bool, ui: &mut Ui) -> Result<Exit, Failure> {
    if json {
        ui.json_line(record)?;
    } else {
        ui.print(done)?;
    }
    Ok(Exit::Done)
}

async fn remove(id: &str, json: bool, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    if !store.client().schedules().remove(id).await? {
        return Err(failure(ScheduleError::NotFound { id: id.to_owned() }, ui));
    }
    if json {
        ui.json_line(&json!({"removed": id}))?;
    } else {
        ui.notice(&format!("removed the schedule {id}; the runs that it started continue"))?;
    }
    Ok(Exit::Done)
}

async fn show_preview(args: &SchedulePreviewArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let times = match &args.id {
        Some(id) => {
            let store = ProjectStore::open_to_read(ui).await?;
            store.client().schedules().preview(id, args.count.get()).await
        }
        None => preview(&spec(&args.when), SystemClock.now(), args.count.get()).map_err(ScheduleError::from),
    };
    for time in times.map_err(|error| failure(error, ui))? {
        if args.json {
            ui.json_line(&time)?;
        } else {
            ui.row(&preview_line(&time))?;
        }
    }
    Ok(Exit::Done)
}

/// Renders a time in its zone and in UTC, and says if the clock changes on that day.
fn preview_line(PreviewedTime { nominal, local, shift, .. }: &PreviewedTime) -> String {
    let shift = match shift {
        Some(TimeShift::Forward) => "  the clock goes forward on this day",
        Some(TimeShift::Back) => "  the clock goes back on this day",
        None => "",
    };
    format!("{local}  {nominal}{shift}")
}

async fn trigger(args: &ScheduleTriggerArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    let triggered = schedules(&store, None, ui).trigger(&args.id, args.overlap).await;
    let tick = triggered.map_err(|error| failure(error, ui))?;
    if args.json {
        ui.json_line(&tick)?;
        return Ok(Exit::Done);
    }
    let run = tick.scheduled(&args.id).run();
    match &tick.outcome {
        TickOutcome::Skipped { reason } => {
            let reason = format!("the schedule `{}` starts no run now: {reason}", args.id);
            return Err(Failure::refused(reason).hint("--overlap allow starts one nevertheless"));
        }
        TickOutcome::Buffered => ui.print(&format!("{run} starts when the earlier run has ended"))?,
        _ => ui.print(&format!("{run} starts within a second, once `{}` or `serve` runs", ui.command(&["work"])))?,
    }
    Ok(Exit::Done)
}

async fn backfill(args: &ScheduleBackfillArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    let filled = schedules(&store, None, ui).backfill(&args.id, args.from, args.until, args.overlap).await;
    print_ticks(&filled.map_err(|error| failure(error, ui))?, args.json, ui)
}

fn failure(error: ScheduleError, ui: &Ui) -> Failure {
    match error {
        ScheduleError::Store(error) => error.into(),
        ScheduleError::NotFound { .. } => {
            Failure::usage(error).hint(format!("`{}` lists the schedules", ui.command(&["schedule", "list"])))
        }
        ScheduleError::Backfill(error) => Failure::refused(error),
        error => Failure::usage(error),
    }
}
