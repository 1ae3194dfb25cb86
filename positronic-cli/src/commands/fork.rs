//! `positronic fork`: a new run that shares another one's past.

use positronic_core::record::{Body, Overrides, Seq, ToolResult};
use positronic_core::runner::{Fork, ForkError};
use serde_json::{Value, json};

use super::block_on;
use crate::cli::ForkArgs;
use crate::failure::{Exit, Failure};
use crate::find::{Short, call, find};
use crate::kept::Kept;
use crate::options::parse;
use crate::project::Project;
use crate::ui::Ui;

pub(crate) fn fork(project: Option<&Project>, args: &ForkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = Kept::known(ui)?;
    let (from, new, short) = block_on(async {
        let row = find(&kept, &args.run, ui).await?;
        let control = kept.control();
        let first = control.store().read(&row.run, Seq(0), 1).await?;
        let options = match first.first().map(|event| &event.body) {
            Some(Body::BrainStart(start)) => options(project, args, &row.brain, &start.options)?,
            _ => None,
        };
        let mut fork = Fork { options, actor: ui.actor(args.by.as_deref()), ..Fork::default() };
        fork.overrides = Overrides { system: args.system.clone(), model: args.model.clone() };
        for (written, output) in &args.results {
            fork.results.insert(call(written)?, ToolResult::Success { output: output.clone() });
        }
        let new = control.fork(&row.run, Seq(args.at), fork).await.map_err(refused)?;
        let short = Short::of(&control, [&new]).await?;
        Ok::<_, Failure>((row.run, new, short))
    })?;
    if args.json {
        ui.json_line(&json!({"run": new, "forked_from": [from, args.at]}))?;
        return Ok(Exit::Done);
    }
    ui.tell(&format!("forked {from} after event {} into {new}", args.at))?;
    let id = short.get(&new);
    ui.notice(&format!("go on with: {}", ui.command(&["work", id])))?;
    ui.notice(&format!("then compare: {}", ui.command(&["diff", from.as_str(), id])))?;
    Ok(Exit::Done)
}

/// Reads the options that are other, laid over those of the run.
fn options(project: Option<&Project>, args: &ForkArgs, brain: &str, before: &Value) -> Result<Option<Value>, Failure> {
    if args.pairs.is_empty() {
        return Ok(None);
    }
    let project = project.ok_or_else(|| Failure::Misused {
        message: format!("the options of `{brain}` are read by its code, which is not here"),
        hint: "fork it in the brain's project, or without -o".to_owned(),
    })?;
    let schema = project.titled(brain)?.plan.options.json();
    let read = parse(schema, &args.pairs, Some(&before.to_string()));
    read.map(Some).map_err(|source| Failure::Options { brain: brain.to_owned(), source })
}

fn refused(error: ForkError) -> Failure {
    match error {
        ForkError::Store(error) => error.into(),
        other => Failure::Refused { message: other.to_string(), hints: Vec::new() },
    }
}
