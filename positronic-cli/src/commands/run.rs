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
    let ending = match ending {
        // The run stopped half-way, so this is no success, though nobody reads on.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ui.notice("whoever read the output has gone away, so the run was stopped")?;
            return Ok(Exit::Cancelled);
        }
        ending => ending?,
    };
    match ending {
        Ending::Completed(result) => {
            if !args.json {
                let text = serde_json::to_string_pretty(&result).map_err(io::Error::from)?;
                writeln!(ui.out, "{}", shown(&text))?;
            }
            if let Tape::Plays(cassette) = &models.tape {
                let left = cassette.unused();
                if let Some(first) = left.first() {
                    let count = left.len();
                    ui.notice(&format!("{count} of the cassette's answers were not used, the first is {first}"))?;
                }
            }
            Ok(Exit::Done)
        }
        Ending::Failed => Ok(Exit::RunFailed),
        Ending::Cancelled => Ok(Exit::Cancelled),
        Ending::Interrupted => Ok(Exit::Interrupted),
    }
}

/// Writes as escapes what JSON allows as it is and a terminal would obey: the rest of the control characters, and the
/// marks that turn the direction of text.
fn shown(json: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_result_cannot_speak_to_the_terminal() {
        let text = shown("\"a\u{9b}31m\u{202e}b\"");

        assert_eq!(text, r#""a\u009b31m\u202eb""#);
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "a\u{9b}31m\u{202e}b");
    }
}
