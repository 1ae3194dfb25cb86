//! `positronic state`: a run's state, or its next model request, as of an event.

use std::fmt::Write as _;

use positronic_core::machine::{RunState, pending, status, why};
use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::{request_at, transcript};
use positronic_core::record::{EventKind, ModelRequest, RunId, Seq};
use positronic_core::runner::Client;
use serde_json::{Value, json};

use crate::app::{Failure, Ui, open_run};
use crate::cli::{Exit, StateArgs};

pub(crate) async fn state(args: &StateArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let (client, row) = open_run(&args.run, ui).await?;
    let last = Seq(row.next.0.saturating_sub(1));
    let at = args.at.map_or(last, Seq);
    if at > last {
        return Err(Failure::usage(format!("the run `{}` has no event {at}", row.run))
            .hint(format!("its last event is {last}")));
    }
    if args.request {
        let from = args.at.map_or(Seq(0), Seq);
        let (seq, request) = next_request(&client, &row.run, from, args.at.is_none()).await?;
        ui.document(&document(seq, &request))?;
    } else {
        let (state, prompts) = client.state_at(&row.run, at).await?;
        if args.json {
            ui.document(&json!({
                "run": row.run,
                "at": at,
                "status": status(&state),
                "why": why(&state),
                "pending": pending(&state),
                "state": value(&state),
                "record": prompts.iter().collect::<Vec<_>>(),
            }))?;
        } else {
            let log = client.events(&row.run, Seq(0)).await?;
            let timeline = Timeline::of(log.iter().map(|event| &**event).take_while(|event| event.seq <= at));
            ui.print(&text(at, &state, &timeline))?;
        }
    }
    Ok(Exit::Done)
}

fn value(state: &RunState) -> Value {
    state.root.as_ref().map(|root| Value::clone(&root.state)).unwrap_or_default()
}

fn text(at: Seq, state: &RunState, timeline: &Timeline) -> String {
    let mut text = format!("after event {at}: {}\n", status(state).as_str());
    if let Some(why) = why(state) {
        _ = writeln!(text, "{}", why.sentence);
    }
    let document = serde_json::to_string_pretty(&value(state)).unwrap_or_default();
    _ = write!(text, "\n# State\n{document}\n");
    let record = transcript(timeline);
    if !record.is_empty() {
        _ = write!(text, "\n{record}");
    }
    text
}

/// Finds the first model request from an event on; with `last`, the last one of the run.
async fn next_request(client: &Client, run: &RunId, from: Seq, last: bool) -> Result<(Seq, ModelRequest), Failure> {
    let log = client.events(run, Seq(0)).await?;
    let mut requests =
        log.iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. })).map(|event| event.seq);
    let found = if last { requests.next_back() } else { requests.find(|seq| *seq >= from) };
    let Some(seq) = found else {
        return Err(Failure::usage(format!("no request was sent to a model from event {from} on"))
            .hint("without --at, the last request is shown"));
    };
    let request = request_at(log.iter().map(|event| &**event), seq);
    Ok((seq, request.map_err(|error| Failure::environment(format!("the log of {run}: {error}")))?))
}

fn document(seq: Seq, request: &ModelRequest) -> Value {
    json!({
        "seq": seq,
        "path": request.path,
        "attempt": request.attempt,
        "system": request.system,
        "context": request.context,
        "tools": request.tools.tools(),
        "messages": request.messages.messages(),
        "settings": request.settings,
    })
}
