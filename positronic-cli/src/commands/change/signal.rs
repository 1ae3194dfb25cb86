//! `positronic approve`, `reject`, `pause`, `resume` and `cancel`: signals of a person to a run.
//!
//! A signal is checked and stored at once, with or without a worker; several decisions are accepted together or not at all.

use positronic_core::record::BudgetRequest;
use positronic_core::record::{EventKind, LimitKind, Path, Pending, PendingKind, Segment, Seq, SignalKind};
use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::store::PendingFilter;

use crate::app::{Failure, Project, Ui, currency, flag_json, open_run, parse_call};
use crate::cli::limits::enough_money;
use crate::cli::{ApproveArgs, By, CancelArgs, Exit, RejectArgs, RunByArgs};
use crate::render::figures::{self, money};
use crate::render::words::settlement;
use crate::session::{WHOLE_RUN, answer_commands, question_text, send_signals};

pub(crate) async fn approve(project: Option<&Project>, args: &ApproveArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if args.args.is_some() && args.calls.len() > 1 {
        return Err(Failure::usage("--args replaces the arguments of one call, but several calls are named")
            .hint("approve that call alone, then the others"));
    }
    if let Some(written) = &args.more {
        return grant(project, args, written, ui).await;
    }
    let arguments = args.args.as_ref().map(|given| flag_json("--args", given, ui)).transpose()?;
    let kind = |call: &Path| SignalKind::Approve { call: call.clone(), arguments: arguments.clone() };
    decide((project, &args.run), &args.calls, (args.all, false), &args.by, kind, |call| format!("approved {call}"), ui)
        .await
}

/// Grants an amount to the named limit question, or to the only one.
async fn grant(project: Option<&Project>, args: &ApproveArgs, written: &str, ui: &mut Ui) -> Result<Exit, Failure> {
    let named = match args.calls.as_slice() {
        [] => None,
        [one] => Some(frame(one)?),
        [_, _, ..] => {
            return Err(Failure::usage("--more applies to one loop or brain, but several are named")
                .hint("grant it to one at a time"));
        }
    };
    let (all, currency) = asking(&args.run, ui).await?;
    let (currency, question) = (currency.as_deref(), |pending: &Pending| question_text(pending, currency.as_deref()));
    let meant: Vec<_> = all.iter().filter(|one| named.as_ref().is_none_or(|at| one.call == *at)).collect();
    let (to, kind, asks) = match meant.as_slice() {
        [one @ Pending { call, kind: PendingKind::Budget(BudgetRequest { kind, .. }), .. }] => {
            (call.clone(), *kind, question(one))
        }
        [_, _, ..] => {
            let several = "several loops or brains of the run ask to raise a limit; name one of them";
            return Err(Failure::usage(several).hints(all.iter().map(|one| line(one, &question(one)))));
        }
        _ => return Err(asks_nothing(&args.run, named.as_ref(), &all, ui)),
    };
    let more = crate::cli::limits::read(kind, written).map_err(|expected| {
        Failure::usage(format!("--more {written} cannot be granted: {expected}")).hint(format!("{} {asks}", place(&to)))
    })?;
    if let [Pending { kind: PendingKind::Budget(BudgetRequest { kind: LimitKind::Money, limit, used, .. }), .. }] =
        meant.as_slice()
        && limit.saturating_add(more.money.nanos()) <= *used
    {
        let least = money(enough_money(*limit, *used), currency);
        let message = format!("--more {written} is too little; {least} is enough");
        return Err(Failure::refused(message).hint(format!("{} {asks}", place(&to))));
    }
    let done = format!("granted {} {}", place(&to), figures::more(kind, more.of(kind), currency));
    send_signals(project, &args.run, None, &[(SignalKind::Grant { to, more }, done)], &args.by, ui).await
}

/// Reports that there is no limit question at a path, and lists the existing ones.
fn asks_nothing(run: &str, named: Option<&Path>, all: &[Pending], ui: &Ui) -> Failure {
    let message = match named {
        Some(at) if at.is_root() => format!("the run `{run}` itself does not ask for more"),
        Some(at) => format!("{} of the run `{run}` does not ask for more", place(at)),
        None => format!("nothing in the run `{run}` asks for more"),
    };
    let mut hints: Vec<String> =
        all.iter().flat_map(|asking| answer_commands(run, asking, SystemClock.now(), ui)).collect();
    if hints.is_empty() {
        hints.push(format!("`{}` shows more", ui.command(&["show", run])));
    }
    Failure::refused(message).hints(hints)
}

/// Renders the path of a loop, a brain or a call as a sentence subject.
fn place(path: &Path) -> String {
    if path.is_root() { "the run".to_owned() } else { format!("`{path}`") }
}

/// Lists the limit questions of a run, with the currency of its money limits if known.
async fn asking(run: &str, ui: &Ui) -> Result<(Vec<Pending>, Option<String>), Failure> {
    let (client, row) = open_run(run, ui).await?;
    let items = client.store().pending(&PendingFilter::builder().run(row.run.clone()).build()).await?;
    let asks = |pending: &Pending| matches!(pending.kind, PendingKind::Budget(_));
    let all: Vec<_> = items.into_iter().map(|item| item.pending).filter(asks).collect();
    let mut known = None;
    for pending in &all {
        if known.is_none() {
            known = currency(&client, &row.run, pending).await?;
        }
    }
    Ok((all, known))
}

/// Parses the path of a call, a loop or a brain; a dot is the run's own brain.
fn frame(written: &str) -> Result<Path, Failure> {
    match written {
        WHOLE_RUN => Ok(Path::root()),
        // An unset shell variable expands to nothing.
        "" => Err(Failure::usage("the name of a call is empty").hint(format!(
            "name a call such as Chat/0.1, {WHOLE_RUN} for the run itself, or nothing if only one waits"
        ))),
        call_or_loop => parse_call(call_or_loop),
    }
}

fn line(pending: &Pending, question: &str) -> String {
    let at = if pending.call.is_root() { WHOLE_RUN } else { pending.call.as_str() };
    format!("{at}  {} {}", pending.tool, question).replace("   ", "  ")
}

pub(crate) async fn reject(project: Option<&Project>, args: &RejectArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kind = |call: &Path| SignalKind::Reject { call: call.clone(), reason: not_blank(args.reason.as_deref()) };
    let done = |at: &Path| match at.last() {
        Some(Segment::Call(..)) => format!("rejected {at}"),
        None | Some(Segment::Stage(_) | Segment::Iteration(_) | Segment::Question(..)) => {
            format!("refused {} more", place(at))
        }
    };
    decide((project, &args.run), &args.calls, (args.all, true), &args.by, kind, done, ui).await
}

pub(crate) async fn pause(project: Option<&Project>, args: &RunByArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    send_signals(project, &args.run, None, &[(SignalKind::Pause, "paused".to_owned())], &args.by, ui).await
}

pub(crate) async fn resume(project: Option<&Project>, args: &RunByArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    send_signals(project, &args.run, None, &[(SignalKind::Resume, "lifted the pause".to_owned())], &args.by, ui).await
}

pub(crate) async fn cancel(project: Option<&Project>, args: &CancelArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kind = SignalKind::Cancel { reason: not_blank(args.reason.as_deref()) };
    send_signals(project, &args.run, None, &[(kind, "cancelled".to_owned())], &args.by, ui).await
}

/// Returns a reason unless it is blank.
fn not_blank(reason: Option<&str>) -> Option<String> {
    reason.filter(|reason| !reason.trim().is_empty()).map(str::to_owned)
}

async fn decide(
    (project, run): (Option<&Project>, &str),
    calls: &[String],
    (all, limits): (bool, bool),
    by: &By,
    kind: impl Fn(&Path) -> SignalKind,
    done: impl Fn(&Path) -> String,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let calls = match calls {
        [] => pending(run, all, limits, ui).await?,
        calls => {
            let mut named = Vec::new();
            for written in calls {
                let path = frame(written)?;
                // A call that is named twice counts once.
                if !named.contains(&path) {
                    named.push(path);
                }
            }
            named
        }
    };
    let signals: Vec<_> = calls.iter().map(|call| (kind(call), done(call))).collect();
    send_signals(project, run, None, &signals, by, ui).await
}

/// Finds the calls that wait for a decision, and limit questions with `limits`: the only one, or all.
async fn pending(run: &str, all: bool, limits: bool, ui: &Ui) -> Result<Vec<Path>, Failure> {
    let (client, row) = open_run(run, ui).await?;
    let items = client.store().pending(&PendingFilter::builder().run(row.run.clone()).build()).await?;
    let mut waiting: Vec<_> = items.into_iter().map(|item| item.pending).collect();
    let asking = waiting.iter().find(|pending| matches!(pending.kind, PendingKind::Budget(_))).cloned();
    waiting.retain(|pending| match pending.kind {
        PendingKind::Approval { .. } => true,
        PendingKind::Budget(_) => limits,
        PendingKind::Answer { .. } => false,
    });
    if let (true, Some(asking)) = (waiting.is_empty(), &asking) {
        let currency = currency(&client, &row.run, asking).await?;
        let (asks, question) = (place(&asking.call), question_text(asking, currency.as_deref()));
        let message = format!("no call of the run `{}` waits for a decision; {asks} {question}", row.run);
        return Err(Failure::refused(message).hints(answer_commands(run, asking, SystemClock.now(), ui)));
    }
    match waiting.as_slice() {
        [] => {
            let message =
                format!("no call of the run `{}` waits for a decision; it is {}", row.run, row.status.as_str());
            let log = client.events(&row.run, Seq(0)).await?;
            let decided = log.iter().rev().find(|event| {
                matches!(event.kind, EventKind::LoopApprovalDecided { .. } | EventKind::BudgetDecided { .. })
            });
            let decided = decided.map(|event| {
                let how = settlement(std::iter::once(&**event), &event.path);
                format!("the last decision is about {}: {how}", place(&event.path))
            });
            let more = format!("`{}` shows more", ui.command(&["show", run]));
            let why = row.why.into_iter().chain(decided).chain([more]);
            Err(Failure::refused(message).hints(why))
        }
        [_, _, ..] if !all => {
            let mut calls = Vec::new();
            for pending in &waiting {
                let currency = currency(&client, &row.run, pending).await?;
                calls.push(line(pending, &question_text(pending, currency.as_deref())));
            }
            Err(Failure::usage("several calls of the run wait for a decision; name the calls, or use --all")
                .hints(calls))
        }
        some => Ok(some.iter().map(|pending| pending.call.clone()).collect()),
    }
}
