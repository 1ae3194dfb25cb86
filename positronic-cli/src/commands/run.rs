//! `positronic run`: a brain, from its options to its result.

use std::io::{self, Write as _};
use std::time::Duration;

use positronic_core::record::{Actor, Start};
use positronic_core::runner::Runner;
use serde_json::Value;

use crate::cli::RunArgs;
use crate::failure::{Exit, Failure};
use crate::models::{Models, Playing, Tape, cassette, choose};
use crate::options::parse;
use crate::project::{Entry, Project};
use crate::session::{Ending, session};
use crate::ui::Ui;

pub(crate) fn run(project: &Project, args: &RunArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let entry = project.find(&args.brain)?;
    let playing = cassette(project, entry, args, &ui.settings)?;
    let options = options(entry, args, playing.as_ref().and_then(Playing::options))?;
    let models = choose(project, entry, args, &options, playing, &ui.settings)?;
    if let Some(notice) = &models.notice {
        ui.notice(notice)?;
    }
    let runner = runner(project, &models);
    let by = ui.settings.user.clone();
    let actor = Actor { by, channel: Some("cli".to_owned()), trace: None };
    let start = Start { actor: actor.clone(), ..Start::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let plan = std::sync::Arc::clone(&entry.plan);
    let ending = runtime.block_on(session(&runner, plan, options, start, &models.tape, &actor, args, ui));
    // A question that is still on the screen must not hold the process back.
    runtime.shutdown_timeout(Duration::from_secs(1));
    save(&models, args, ui)?;
    match ending? {
        Ending::Completed(result) => {
            if !args.json {
                serde_json::to_writer_pretty(&mut ui.out, &result).map_err(io::Error::from)?;
                writeln!(ui.out)?;
            }
            Ok(Exit::Done)
        }
        Ending::Failed => Ok(Exit::RunFailed),
        Ending::Cancelled => Ok(Exit::Cancelled),
        Ending::Interrupted => Ok(Exit::Interrupted),
    }
}

/// Reads the options: what was given, laid over what the cassette was recorded with.
fn options(entry: &Entry, args: &RunArgs, recorded: Option<&Value>) -> Result<Value, Failure> {
    let document = match args.options.as_deref().map(|options| (options, options.strip_prefix('@'))) {
        Some((_, Some(path))) => Some(std::fs::read_to_string(path).map_err(|source| Failure::File {
            path: path.into(),
            doing: "cannot be read",
            source,
        })?),
        Some((document, None)) => Some(document.to_owned()),
        None => recorded.map(Value::to_string),
    };
    let options = parse(entry.plan.options.json(), &args.pairs, document.as_deref());
    options.map_err(|source| Failure::Options { brain: entry.plan.title.clone(), source })
}

fn runner(project: &Project, models: &Models) -> Runner {
    let builder = Runner::builder().model(models.normal.clone());
    let runner = match &models.high {
        Some(high) => builder.high(high.clone()).build(),
        None => builder.build(),
    };
    project.brains.iter().fold(runner, |runner, entry| runner.plan(std::sync::Arc::clone(&entry.plan)))
}

/// Writes what was recorded, however the run ended.
fn save(models: &Models, args: &RunArgs, ui: &mut Ui) -> Result<(), Failure> {
    let (Tape::Records(cassette), Some(path)) = (&models.tape, &args.record) else { return Ok(()) };
    std::fs::write(path, cassette.to_text()).map_err(|source| Failure::File {
        path: path.clone(),
        doing: "cannot be written",
        source,
    })?;
    ui.notice(&format!("recorded to {}", path.display()))?;
    Ok(())
}
