//! `positronic show` of a run: its status, its pending items with the commands that answer them, and its progress.

use std::fmt::Write as _;
use std::sync::Arc;

use positronic_core::machine::{RunState, Waiting, why};
use positronic_core::prices::PriceTable;
use positronic_core::projection::Costs;
use positronic_core::record::{Event, EventKind, RunSummary, Seq, Status, Timestamp};
use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::store::{PendingFilter, PendingItem};
use serde_json::json;

use crate::app::{Failure, Project, ProjectStore, Ui, changed_runs, find_run};
use crate::cli::{Exit, ShowArgs};
use crate::render::cost_line::cost_line;
use crate::render::figures::{age, left, many, tokens};
use crate::render::words::overridden;
use crate::render::words::{code_changed, no_worker, over};
use crate::render::{ShortIds, Style, View, one_line, render, sanitise, wrap};
use crate::session::{answer_commands, pending_entry};

/// Everything that is shown of a run.
struct Known {
    row: RunSummary,
    log: Vec<Arc<Event>>,
    items: Vec<PendingItem>,
    short: ShortIds,
    /// The worker that has claimed the run.
    worker: Option<String>,
    /// The code change since the start of the run.
    changed: Option<String>,
}

pub(crate) async fn show_run(project: Option<&Project>, args: &ShowArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let prices = crate::app::price_table(args.prices.as_deref(), &ui.settings)?;
    let store = ProjectStore::open_to_read(ui).await?;
    let known = known(project, &store, &args.what, ui).await?;
    let now = SystemClock.now();
    let costs = Costs::of(known.log.iter().map(|event| &**event), &prices);
    if args.json {
        let id = known.row.run.as_str();
        let waiting = |item: &PendingItem| json!({"pending": item.pending, "answers": answer_commands(id, &item.pending, now, ui)});
        let mut document = json!({
            "run": known.row,
            "why": why(&state(&known)?),
            "worker": known.worker,
            "changed": known.changed,
            "cost": {"currency": costs.currency, "prices": costs.as_of, "total": costs.total(), "calls": costs.calls},
            "waiting": known.items.iter().map(waiting).collect::<Vec<_>>(),
        });
        if let (Some(counted), Some(cost)) = (costs.counted(), document.get_mut("cost")) {
            cost["counted"] = json!(counted);
        }
        ui.document(&document)?;
        return Ok(Exit::Done);
    }
    let style =
        Style { width: ui.columns(), colour: ui.out_colour(), unicode: ui.settings.unicode, ..Style::default() };
    let why = why(&state(&known)?);
    let text = head(&known, why.as_ref(), &costs, now, &style, ui) + &tree(&known, prices, now, &style);
    // The tree is already escaped, and may have colours.
    ui.frame(&text)?;
    Ok(Exit::Done)
}

async fn known(project: Option<&Project>, store: &ProjectStore, written: &str, ui: &Ui) -> Result<Known, Failure> {
    let row = find_run(store, written, ui).await?;
    let client = store.client();
    let log = client.events(&row.run, Seq(0)).await?;
    let items = client.store().pending(&PendingFilter::builder().run(row.run.clone()).build()).await?;
    let short = ShortIds::of(&client, [&row.run]).await?;
    let worker = client.worker(&row).await?;
    let changed = changed_runs(project, store, std::iter::once(&row)).await.remove(&row.run).transpose()?;
    Ok(Known { row, log, items, short, worker, changed })
}

fn state(known: &Known) -> Result<RunState, Failure> {
    let state = RunState::replay(known.log.iter().map(|event| &**event));
    state.map_err(|error| Failure::environment(format!("the log of {}: {error}", known.row.run)))
}

/// Renders the lines above the tree.
fn head(known: &Known, why: Option<&Waiting>, costs: &Costs, now: Timestamp, style: &Style, ui: &Ui) -> String {
    let row = &known.row;
    let id = known.short.get(&row.run);
    let mut lines = vec![format!("run {}", row.run)];
    let since = age(now.since(row.since));
    lines.push(match row.status {
        Status::Paused if row.parked => format!("parked for {since}"),
        Status::Running | Status::Waiting | Status::Paused => format!("{} for {since}", row.status.as_str()),
        Status::Completed | Status::Failed | Status::Cancelled => format!("{} {since} ago", row.status.as_str()),
    });
    lines.extend(row.why.clone());
    lines.extend(known.changed.as_deref().map(code_changed));
    if row.parked || row.status == Status::Failed {
        lines.push(format!("retry it from the failed place with: {}", ui.command(&["retry", id])));
    } else if row.status == Status::Paused {
        lines.push(format!("lift the pause with: {}", ui.command(&["resume", id])));
    }
    // Without a pending item, the run waits for a time.
    if let Some(until) = why.and_then(|why| why.until).filter(|until| known.items.is_empty() && *until > now) {
        lines.push(format!("it continues by itself in {}", left(until.since(now))));
    }
    if let Some(worker) = &known.worker {
        lines.push(format!("claimed by the worker {worker}"));
    } else if row.has_work(now) {
        lines.push(no_worker(&ui.command(&["work", id])));
    }
    let mut started = format!("started {} ago", age(now.since(row.started)));
    if let Some(EventKind::BrainStart(start)) = known.log.first().map(|event| &event.kind)
        && let Some(actor) = start.start.as_ref().map(|start| &start.actor)
    {
        _ = actor.by.as_ref().map(|by| write!(started, " by {by}"));
        started.push_str(&over(actor.channel.as_deref()));
    }
    _ = row.user.as_ref().map(|user| write!(started, " for {user}"));
    lines.push(format!("{started}; {}, {}", many(row.next.0, "event"), tokens(&row.usage)));
    if costs.total().calls > 0 {
        lines.push(cost_line(costs));
    }
    if let Some(EventKind::BrainStart(begin)) = known.log.first().map(|event| &event.kind)
        && let Some(fired) = begin.start.as_ref().and_then(|start| start.fired.as_ref())
    {
        lines.push(format!("the trigger {} has started it: {}", fired.trigger.id, fired.trigger.what));
    }
    if let Some(EventKind::BrainStart(begin)) = known.log.first().map(|event| &event.kind)
        && let Some(tick) = begin.start.as_ref().and_then(|start| start.scheduled.as_ref())
    {
        lines.push(format!("the schedule {} has started it, for {}", tick.schedule, tick.nominal));
    }
    if let Some(EventKind::BrainStart(begin)) = known.log.first().map(|event| &event.kind)
        && let Some(delivery) = begin.start.as_ref().and_then(|start| start.delivery.as_ref())
    {
        lines.push(format!("the webhook {} has started it: {}", delivery.webhook, delivery.id));
    }
    if let Some(parent) = &row.parent {
        lines.push(format!("the run {parent} has started it"));
    }
    if let Some((run, seq)) = &row.forked_from {
        let others = match known.log.first().map(|event| &event.kind) {
            Some(EventKind::BrainStart(begin)) => begin.start.as_ref().map(|start| overridden(&start.overrides)),
            _ => None,
        };
        let others =
            others.filter(|others| !others.is_empty()).map_or_else(String::new, |others| format!(", with {others}"));
        lines.push(format!("forked from {run} after event {seq}{others}"));
    }
    let mut text = String::new();
    for line in &lines {
        for line in wrap(&one_line(line), style.width) {
            _ = writeln!(text, "{line}");
        }
    }
    let currency = known.log.iter().find_map(|event| event.currency());
    for item in &known.items {
        text.push('\n');
        text.push_str(&sanitise(&pending_entry(item, id, currency, now, (style.width, None), ui)));
    }
    text.push('\n');
    text
}

fn tree(known: &Known, prices: PriceTable, now: Timestamp, style: &Style) -> String {
    render(&View::new().priced(Some(prices)).with(&known.log, now), style)
}
