//! `positronic show`: what a brain does, what it takes, and how it is called. What is no brain is a run.

use std::io::{self, Write};

use positronic_core::plan::{Plan, StageBody};
use positronic_core::record::RunId;
use serde_json::json;

use super::block_on;
use crate::cli::ShowArgs;
use crate::display::text::{one_line, width};
use crate::failure::{Exit, Failure};
use crate::kept::Kept;
use crate::options::{example, fields, shell_word};
use crate::project::{Entry, Project, normal};
use crate::ui::Ui;

pub(crate) fn show(project: &Project, args: &ShowArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let entry = match project.find(&args.what) {
        // Said whole, a brain's title or a run's id wins, in this order; else the beginning of a title, and then that of an id.
        Ok(entry) if normal(&entry.plan.title) != normal(&args.what) && is_run(&args.what, ui) => {
            return super::show_run(Some(project), args, ui);
        }
        Ok(entry) => entry,
        Err(no_brain) => {
            return super::show_run(Some(project), args, ui).map_err(|no_run| match (no_run, no_brain) {
                (Failure::UnknownRun { place, .. }, Failure::UnknownBrain { written, near, known }) => {
                    Failure::UnknownBrainOrRun { written, place, near, known }
                }
                (no_run, _) => no_run,
            });
        }
    };
    let plan = &entry.plan;
    if args.json {
        let document = json!({
            "title": plan.title,
            "description": plan.description,
            "version": plan.version,
            "stages": plan.shape(),
            "options": **plan.options.json(),
            "example": example_call(plan, &ui.program),
        });
        serde_json::to_writer_pretty(&mut ui.out, &document).map_err(io::Error::from)?;
        writeln!(ui.out)?;
    } else {
        write(&mut ui.out, entry, &ui.program)?;
    }
    Ok(Exit::Done)
}

fn is_run(written: &str, ui: &Ui) -> bool {
    let run = RunId::from(written);
    Kept::look(ui)
        .is_ok_and(|kept| block_on(async { Ok::<_, Failure>(kept.client().store().run(&run).await?) }).is_ok())
}

fn write(out: &mut dyn Write, entry: &Entry, program: &str) -> io::Result<()> {
    let plan = &entry.plan;
    writeln!(out, "{}", plan.title)?;
    if !plan.description.is_empty() {
        writeln!(out, "{}", plan.description)?;
    }
    writeln!(out, "\nStages")?;
    stages(out, plan, 1)?;
    let fields = fields(plan.options.json());
    if !fields.is_empty() {
        writeln!(out, "\nOptions")?;
    }
    let column = fields.iter().map(|field| width(&field.key)).max().unwrap_or(0);
    for field in &fields {
        let gap = " ".repeat(column - width(&field.key).min(column));
        let required = if field.required { "; required" } else { "" };
        let default = field.default.as_ref().map_or_else(String::new, |default| format!("; default {default}"));
        writeln!(out, "  {}{gap}  {}{required}{default}", field.key, field.expected)?;
        if let Some(description) = &field.description {
            writeln!(out, "  {}  {}", " ".repeat(column), one_line(description, true))?;
        }
    }
    writeln!(out, "\nExample\n  {}", example_call(plan, program))?;
    if entry.cassette.is_some() {
        writeln!(out, "\nWithout a key, its own cassette is played.")?;
    }
    Ok(())
}

fn stages(out: &mut dyn Write, plan: &Plan, depth: usize) -> io::Result<()> {
    for stage in &plan.stages {
        let indent = "  ".repeat(depth);
        match &stage.body {
            StageBody::Brain(nested) if nested.plan.title != stage.name => {
                writeln!(out, "{indent}{}  (brain {})", stage.name, nested.plan.title)?;
            }
            body => writeln!(out, "{indent}{}  ({})", stage.name, body.kind())?,
        }
        if let StageBody::Brain(nested) = &stage.body {
            stages(out, &nested.plan, depth + 1)?;
        }
    }
    Ok(())
}

fn example_call(plan: &Plan, program: &str) -> String {
    let call = format!("{} run {} {}", shell_word(program), shell_word(&plan.title), example(plan.options.json()));
    call.trim_end().to_owned()
}
