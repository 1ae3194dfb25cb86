//! Preparation of a run: its options, models and store, from the command line.

use serde_json::Value;

use crate::app::{
    ChosenCassette, Failure, ModelSettings, Models, Project, ProjectBrain, ProjectStore, Ui, choose_models,
    chosen_cassette, without_password,
};
use crate::cli::OptionArgs;
use crate::cli::options::{OptionsError, parse};
use crate::render::figures::many;

/// What a run starts with.
pub(crate) struct Prepared {
    pub(crate) options: Value,
    pub(crate) models: Models,
    /// The goal in the header of the played cassette.
    pub(crate) goal: Option<String>,
}

/// Chooses the models of a run, and parses its options.
pub(crate) fn prepare(
    project: &Project,
    entry: &ProjectBrain,
    settings: ModelSettings<'_>,
    given: &OptionArgs,
    ui: &mut Ui,
) -> Result<Prepared, Failure> {
    let playing = chosen_cassette(project, entry, settings, &ui.settings)?;
    let goal = playing.as_ref().and_then(ChosenCassette::goal);
    let options = options(entry, given, playing.as_ref().and_then(ChosenCassette::options), ui)?;
    let models = choose_models(project, entry, settings, &options, playing, &ui.settings)?;
    Ok(Prepared { options, models, goal })
}

/// Opens the store of a run, or one in memory.
pub(crate) async fn open_store(in_memory: bool, ui: &Ui) -> Result<ProjectStore, Failure> {
    match &ui.store_args.store {
        Some(store) if in_memory => {
            let store = without_password(&store.to_string_lossy());
            Err(Failure::usage(format!("--memory stores nothing in {store}"))
                .hint("use either --memory or --store STORE"))
        }
        _ if in_memory => Ok(ProjectStore::memory()),
        _ => ProjectStore::open(ui).await.map_err(|failure| {
            failure.hints(["use --store STORE for another store, or --memory to run without one".to_owned()])
        }),
    }
}

/// Parses the options, with the recorded ones of the cassette as defaults.
fn options(entry: &ProjectBrain, given: &OptionArgs, recorded: Option<&Value>, ui: &mut Ui) -> Result<Value, Failure> {
    let document = match &given.document {
        Some(given) => Some(crate::app::flag_text(given, ui)?),
        None => recorded.map(Value::to_string),
    };
    parse_options(entry, &given.pairs, document.as_deref())
}

/// Parses options by the schema of a brain.
pub(crate) fn parse_options(entry: &ProjectBrain, pairs: &[String], document: Option<&str>) -> Result<Value, Failure> {
    let definition = &entry.definition;
    parse(definition.options.json(), pairs, document).map_err(|OptionsError { problems, example }| {
        let count = many(problems.len(), "problem");
        let head = format!("{count} with the options of `{}`:\n{}", definition.title, problems.join("\n"));
        Failure::usage(head).hints((!example.is_empty()).then(|| format!("for example: {example}")))
    })
}

/// Refuses a brain without a loop that could receive a message.
pub(crate) fn check_accepts_messages(entry: &ProjectBrain, hint: impl FnOnce() -> String) -> Result<(), Failure> {
    if entry.definition.stages.iter().any(|stage| stage.body.as_loop().is_some()) {
        return Ok(());
    }
    let title = &entry.definition.title;
    Err(Failure::usage(format!("`{title}` accepts no message: it has no loop of its own")).hint(hint()))
}
