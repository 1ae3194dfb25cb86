//! `positronic show` of a brain: its stages, options and an example call. Any other name is a run's.

use std::io::{self, Write};

use positronic_core::definition::BrainDefinition;
use positronic_core::dsl::Structure;
use positronic_core::record::RunId;
use serde_json::json;

use crate::app::{Failure, Found, Project, ProjectBrain, ProjectStore, Ui, lookup_run, normal_title};
use crate::cli::options::{example, fields, shell_word};
use crate::cli::{DiagramForm, Exit, ShowArgs};
use crate::render::{aligned, diagram, one_line};

pub(crate) async fn show(project: &Project, args: &ShowArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let entry = match project.find(&args.what) {
        // Precedence: a full title, a full run id, a prefix of a title, a prefix of an id.
        Ok(entry)
            if normal_title(&entry.definition.title) != normal_title(&args.what) && is_run(&args.what, ui).await =>
        {
            return super::show_run(Some(project), args, ui).await;
        }
        Ok(entry) => entry,
        Err(no_brain) => {
            let store = ProjectStore::open_to_read(ui).await?;
            return match lookup_run(&store, &args.what).await? {
                Found::Nothing if !args.what.trim().is_empty() => {
                    let message = format!("{no_brain}, and no such run in {}", store.location);
                    Err(Failure::usage(message).hints(no_brain.hints))
                }
                _ => super::show_run(Some(project), args, ui).await,
            };
        }
    };
    let definition = &entry.definition;
    if let Some(form) = args.diagram {
        let structure = definition.structure();
        let drawn = match form {
            DiagramForm::Text => diagram::tree(&structure),
            DiagramForm::Mermaid => diagram::mermaid(&structure),
        };
        write!(ui.out, "{drawn}")?;
    } else if args.json {
        let document = json!({
            "title": definition.title,
            "description": definition.description,
            "version": definition.version,
            "stages": definition.structure().stages,
            "starts_on": project.starts_on(&definition.title),
            "options": **definition.options.json(),
            "example": example_call(definition, &ui.program),
        });
        serde_json::to_writer_pretty(&mut ui.out, &document).map_err(io::Error::from)?;
        writeln!(ui.out)?;
    } else {
        write(&mut ui.out, entry, &project.starts_on(&definition.title), &ui.program)?;
    }
    Ok(Exit::Done)
}

async fn is_run(written: &str, ui: &Ui) -> bool {
    let run = RunId::from(written);
    match ProjectStore::open_to_read(ui).await {
        Ok(store) => store.client().store().run(&run).await.is_ok(),
        Err(_) => false,
    }
}

fn write(out: &mut dyn Write, entry: &ProjectBrain, starts_on: &[&str], program: &str) -> io::Result<()> {
    let definition = &entry.definition;
    writeln!(out, "{}", definition.title)?;
    if !definition.description.is_empty() {
        writeln!(out, "{}", definition.description)?;
    }
    writeln!(out, "\nStages")?;
    stages(out, &definition.structure(), 1)?;
    let fields = fields(definition.options.json());
    if !fields.is_empty() {
        writeln!(out, "\nOptions")?;
    }
    let mut pairs = Vec::new();
    for field in &fields {
        let required = if field.required { "; required" } else { "" };
        let default = field.default.as_ref().map_or_else(String::new, |default| format!("; default {default}"));
        pairs.push((field.key.clone(), format!("{}{required}{default}", field.expected)));
        pairs.extend(field.description.as_ref().map(|description| (String::new(), one_line(description))));
    }
    for line in aligned(&pairs) {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "\nExample\n  {}", example_call(definition, program))?;
    if !starts_on.is_empty() {
        writeln!(out, "\nStarted by the webhook {}.", starts_on.join(", "))?;
    }
    if entry.cassette.is_some() {
        writeln!(out, "\nWithout an API key, the bundled cassette is played.")?;
    }
    Ok(())
}

fn stages(out: &mut dyn Write, structure: &Structure, depth: usize) -> io::Result<()> {
    for stage in &structure.stages {
        let indent = "  ".repeat(depth);
        writeln!(out, "{indent}{}  {}", stage.name, diagram::kind(stage))?;
        if let Some(brain) = &stage.brain {
            stages(out, brain, depth + 1)?;
        }
        for (title, brain) in diagram::parts(stage) {
            writeln!(out, "{indent}  → {title}")?;
            if let Some(brain) = brain {
                stages(out, brain, depth + 2)?;
            }
        }
    }
    Ok(())
}

fn example_call(definition: &BrainDefinition, program: &str) -> String {
    let call =
        format!("{} run {} {}", shell_word(program), shell_word(&definition.title), example(definition.options.json()));
    call.trim_end().to_owned()
}
