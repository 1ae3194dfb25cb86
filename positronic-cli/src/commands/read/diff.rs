//! `positronic diff`: the first difference of two runs, and their results.

use std::fmt::Write as _;

use positronic_core::projection::{DivergentEvent, Inputs, RunDiff, diff as differences};
use positronic_core::record::{RunSummary, Seq};
use serde_json::Value;

use crate::app::{Failure, Ui, open_run};
use crate::cli::{DiffArgs, Exit};
use crate::render::figures::{many, tokens};
use crate::render::words::overridden;
use crate::render::{arguments, one_line, shorten, wrap};

pub(crate) async fn diff(args: &DiffArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let (client, one) = open_run(&args.one, ui).await?;
    let runs = [one, open_run(&args.other, ui).await?.1];
    let one = client.events(&runs[0].run, Seq(0)).await?;
    let other = client.events(&runs[1].run, Seq(0)).await?;
    let diff = differences(&one, &other).map_err(Failure::environment)?;
    if args.json {
        ui.document(&diff)?;
    } else {
        ui.print(&text(&runs, &diff, ui.columns()))?;
    }
    Ok(Exit::Done)
}

/// Maximum lines of one entry; --json has all.
const LINES: usize = 4;

fn text(runs: &[RunSummary; 2], diff: &RunDiff, columns: usize) -> String {
    let mut text = String::new();
    let mut line = |sign: &str, said: &str| {
        let said = shorten(&one_line(said), LINES * columns);
        for (index, part) in wrap(&said, columns.saturating_sub(2)).iter().enumerate() {
            _ = writeln!(text, "{} {part}", if index == 0 { sign } else { " " });
        }
    };
    for ((sign, run), (status, usage)) in ["-", "+"].into_iter().zip(runs).zip(diff.status.iter().zip(&diff.usage)) {
        line(sign, &format!("{} {}, {}, {}", run.run, run.brain, status.as_str(), tokens(usage)));
    }
    if let Some([one, other]) = &diff.given {
        line("-", &format!("given {}", given(one, other)));
        line("+", &format!("given {}", given(other, one)));
    }
    let same = many(diff.same, "event");
    let Some(parting) = &diff.parts else {
        line(" ", &format!("identical: {same}"));
        return text;
    };
    line(" ", &format!("identical for {same}, then"));
    line("-", &parted(parting.one.as_ref()));
    line("+", &parted(parting.other.as_ref()));
    let changes = diff.state.as_array().map(Vec::as_slice).unwrap_or_default();
    if changes.is_empty() {
        line(" ", "the state is the same");
    } else {
        line(" ", &format!("in the state, {}", many(changes.len(), "change")));
    }
    for change in changes {
        let field =
            |name: &str| change.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let [op, path] = ["op", "path"].map(|name| field(name).unwrap_or_default());
        let path = if path.is_empty() { "all of it".to_owned() } else { path };
        let value = change.get("value").map(Value::to_string).unwrap_or_default();
        line(" ", format!("  {op} {path} {value}").trim_end());
    }
    text
}

/// Renders the inputs of a run that differ from those of another run.
fn given(one: &Inputs, other: &Inputs) -> String {
    let mut options = one.options.clone();
    if let (Some(fields), Some(others)) = (options.as_object_mut(), other.options.as_object()) {
        fields.retain(|name, value| others.get(name) != Some(value));
    }
    let options = if one.options == other.options { String::new() } else { arguments(&options) };
    let said = [options, overridden(&one.overrides)];
    let said: Vec<&str> = said.iter().map(String::as_str).filter(|said| !said.is_empty()).collect();
    if said.is_empty() { "nothing else".to_owned() } else { said.join(", ") }
}

fn parted(event: Option<&DivergentEvent>) -> String {
    let Some(DivergentEvent { seq, path, body, .. }) = event else { return "the run has no more events".to_owned() };
    let name = body.get("type").and_then(Value::as_str).unwrap_or_default();
    let mut rest = body.clone();
    rest.as_object_mut().and_then(|fields| fields.remove("type"));
    format!("{seq} {name} {path} {rest}")
}
