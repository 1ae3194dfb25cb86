//! Selection of a run's models: those of providers, a cassette, or the project's own.

use std::path::Path;
use std::sync::Arc;

use positronic_core::definition::BrainDefinition;
use positronic_core::model::Model;
use positronic_core::model::cassette::{Cassette, CassetteError, Header};
use positronic_core::prices::PriceTable;
use positronic_core::record::{MAX_DOCUMENT_BYTES, ModelError, ModelErrorKind, RunId, Seq, Tier};
use positronic_core::runner::Runner;
use positronic_core::store::StoreError;
use serde_json::Value;

use super::run_cassette::{NameRun, RunCassette};
use crate::app::{
    Advised, ByTier, Failure, LiveText, NoModel, Project, ProjectBrain, ProjectStore, SET_MODEL, Settings, answers_for,
    can_continue_after, given_prices, model_name, provided_model, secrets, short_secret_warning,
};
use crate::cli::ModelArgs;
use crate::cli::options::shell_word;

/// The models of a run, with a notice about them.
#[derive(Debug)]
pub(crate) struct Models {
    pub(crate) normal: Arc<dyn Model>,
    pub(crate) high: Option<Arc<dyn Model>>,
    /// The played or recorded cassette.
    pub(crate) cassette: CassetteSession,
    pub(crate) notice: Option<String>,
    /// Prices from the command line or the environment.
    pub(crate) prices: Option<PriceTable>,
}

/// The use of a cassette in a run.
#[derive(Debug)]
pub(crate) enum CassetteSession {
    None,
    /// It also answers approvals and waits.
    Plays(Arc<Cassette>),
    Records(Arc<Cassette>),
}

/// A cassette to play.
#[derive(Debug)]
pub(crate) struct ChosenCassette {
    cassette: Cassette,
    /// Its name in errors.
    name: String,
    what: String,
    advice: &'static str,
}

impl ChosenCassette {
    /// Returns the goal of the recorded run.
    pub(crate) fn goal(&self) -> Option<String> {
        self.cassette.header().goal.as_ref()?.as_str().map(str::to_owned)
    }

    /// Returns the options of the recorded run.
    pub(crate) const fn options(&self) -> Option<&Value> {
        self.cassette.header().options.as_ref()
    }
}

/// The model settings of the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelSettings<'a> {
    pub(crate) model: &'a ModelArgs,
    /// The file to record to.
    pub(crate) record: Option<&'a Path>,
}

impl Models {
    /// Creates the runner with these models, a store, and all brains of the project.
    pub(crate) fn runner(&self, project: &Project, store: &ProjectStore) -> Runner {
        let max_bytes = project.max_document_bytes.unwrap_or(MAX_DOCUMENT_BYTES);
        let runner = Runner::new(self.normal.clone())
            .prices(self.prices.clone())
            .estimates(PriceTable::bundled())
            .max_document_bytes(max_bytes)
            .store(Arc::clone(&store.backend))
            .actions(project.actions.clone());
        // Another process may watch.
        let runner = match LiveText::beside(store) {
            Some(live) => runner.sink(live),
            None => runner,
        };
        let runner = match &self.high {
            Some(high) => runner.high(high.clone()),
            None => runner,
        };
        let brains = project.brains.iter().map(|entry| Arc::clone(&entry.definition));
        let runner = brains.fold(runner, Runner::definition);
        let runner = runner.webhooks(project.webhooks.iter().cloned());
        project.starts.iter().cloned().fold(runner, Runner::start_on_definition)
    }

    /// Makes a played cassette answer in one run, at the run's position. The run is named once it is known.
    pub(crate) fn in_one_run(&mut self, store: &ProjectStore) -> (Option<Arc<RunCassette>>, NameRun) {
        let CassetteSession::Plays(cassette) = &self.cassette else { return (None, NameRun::without_cassette()) };
        let (played, name_run) = RunCassette::new(cassette, Arc::clone(&self.normal), store);
        let played = Arc::new(played);
        self.normal = Arc::clone(&played) as Arc<dyn Model>;
        (Some(played), name_run)
    }

    /// Refuses a run that a played cassette cannot continue.
    pub(crate) async fn can_continue(&self, store: &ProjectStore, run: &RunId) -> Result<(), Failure> {
        let CassetteSession::Plays(cassette) = &self.cassette else { return Ok(()) };
        match store.client().events(run, Seq(0)).await {
            Err(StoreError::NoSuchRun { .. }) => Ok(()),
            log => can_continue_after(cassette, store, &log?).await,
        }
    }

    /// Returns models for a runner that only reads.
    pub(crate) fn none() -> Self {
        Self { normal: Arc::new(NoModel), high: None, cassette: CassetteSession::None, notice: None, prices: None }
    }
}

/// Returns the cassette to play: the named one, or the brain's bundled one if no model is configured.
pub(crate) fn chosen_cassette(
    project: &Project,
    entry: &ProjectBrain,
    wanted: ModelSettings<'_>,
    settings: &Settings,
) -> Result<Option<ChosenCassette>, Failure> {
    if let Some(path) = &wanted.model.cassette {
        let name = path.display().to_string();
        let what = format!("playing the cassette {name}");
        let cassette = Cassette::load(path).map_err(|error| match error {
            CassetteError::File { source, .. } => cannot_play(&name, &source),
            other => cannot_play(&name, &other),
        })?;
        return Ok(Some(ChosenCassette { cassette, name, what, advice: "; tools run for real" }));
    }
    let ModelArgs { model, high_model, .. } = wanted.model;
    let names_model = model.is_some() || high_model.is_some() || wanted.record.is_some();
    let answers = names_model || settings.has_model() || own(project, Tier::Normal).is_some();
    let Some(text) = entry.cassette.filter(|_| !answers) else {
        return Ok(None);
    };
    let title = &entry.definition.title;
    let name = format!("of `{title}`");
    let cassette = Cassette::replay(text).map_err(|error| cannot_play(&name, &error))?;
    let what = format!("no key set: playing the bundled cassette of `{title}`");
    let advice = "; tools run for real; set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key to ask a model";
    Ok(Some(ChosenCassette { cassette, name, what, advice }))
}

fn cannot_play(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::model(format!("cannot play the cassette {name}: {error}"))
}

/// Selects the models: the played cassette, the project's own, or those of providers.
pub(crate) fn choose_models(
    project: &Project,
    entry: &ProjectBrain,
    wanted: ModelSettings<'_>,
    options: &Value,
    playing: Option<ChosenCassette>,
    settings: &Settings,
) -> Result<Models, Failure> {
    let prices = given_prices(wanted.model.prices.as_deref(), settings)?;
    let names_model = wanted.model.model.is_some() || wanted.model.high_model.is_some();
    if let Some(flag) = endpoint_flag(wanted.model).filter(|_| !names_model && !settings.has_model()) {
        return Err(Failure::usage(format!("{flag} needs a provider's model, and none is configured"))
            .hint(SET_MODEL)
            .hint("or remove the flag"));
    }
    let models = match playing {
        Some(playing) => {
            // A continued run has its options in its log, where they are checked.
            if !options.is_null() {
                answers_for(playing.cassette.header(), options, || playing.name.clone())?;
            }
            play(playing, own(project, Tier::Normal), &entry.definition.title)
        }
        None => asked(project, entry, wanted, options, settings)?,
    };
    Ok(Models { prices, ..models })
}

/// Chooses the models for the runs of a brain.
pub(crate) fn models_for_run(
    project: &Project,
    model: &ModelArgs,
    brain: &str,
    settings: &Settings,
) -> Result<Models, Failure> {
    let entry = project.titled(brain)?;
    let wanted = ModelSettings { model, record: None };
    let playing = chosen_cassette(project, entry, wanted, settings)?;
    choose_models(project, entry, wanted, &Value::Null, playing, settings)
}

/// Returns the first flag that needs a provider's model.
fn endpoint_flag(model: &ModelArgs) -> Option<&'static str> {
    model.action_format.map(|_| "--action-format").or_else(|| model.endpoint.first_given())
}

/// Selects models without a cassette: the project's own, or those that flags and variables name.
fn asked(
    project: &Project,
    entry: &ProjectBrain,
    wanted: ModelSettings<'_>,
    options: &Value,
    settings: &Settings,
) -> Result<Models, Failure> {
    let normal = match normal_model(project, wanted.model, settings)? {
        Some(normal) => normal,
        None if wanted.record.is_some() => {
            return Err(Failure::model("cannot record: no model is configured").hint(SET_MODEL));
        }
        None if has_loop(&entry.definition) => {
            let title = &entry.definition.title;
            return Err(Failure::model(format!("no model is configured, and `{title}` has no bundled cassette"))
                .hint(SET_MODEL)
                .hint("or run without a key: --cassette FILE plays a cassette that --record FILE has written"));
        }
        None => Arc::new(NoModel) as Arc<dyn Model>,
    };
    let high = high_model(project, wanted.model, settings)?;
    match wanted.record {
        Some(path) => Ok(recording(normal, high, path, options, secrets(wanted.model, settings))),
        None => Ok(Models { normal, high, ..Models::none() }),
    }
}

/// Returns the model of the normal tier: of `--model`, the project's own, or of the environment.
pub(crate) fn normal_model(
    project: &Project,
    flags: &ModelArgs,
    settings: &Settings,
) -> Result<Option<Arc<dyn Model>>, Failure> {
    let Some(own) = own(project, Tier::Normal).filter(|_| flags.model.is_none()) else {
        let name = model_name(flags.model.as_deref(), settings)?;
        return name.map(|name| provided_model(&name, flags, settings)).transpose();
    };
    match flags.endpoint.first_given().filter(|_| flags.high_model.is_none()) {
        Some(flag) => {
            let own = format!("{flag} needs a provider's model, but the project's own model {} answers", own.name());
            Err(Failure::usage(own).hint("name a model with --model, or remove the flag"))
        }
        None => Ok(Some(own)),
    }
}

/// Returns the model of the high tier: of `--high-model`, the project's own, or of the environment. `--model` alone replaces
/// the models of both tiers.
pub(crate) fn high_model(
    project: &Project,
    flags: &ModelArgs,
    settings: &Settings,
) -> Result<Option<Arc<dyn Model>>, Failure> {
    let name = match (&flags.high_model, &flags.model) {
        (Some(name), _) => Some(name),
        (None, Some(_)) => None,
        (None, None) => match own(project, Tier::High) {
            Some(own) => return Ok(Some(own)),
            None => settings.high_model.as_ref(),
        },
    };
    name.map(|name| provided_model(name, flags, settings)).transpose()
}

/// Finds the project's own model of a tier.
fn own(project: &Project, tier: Tier) -> Option<Arc<dyn Model>> {
    project.models.iter().rev().find(|(own, _)| *own == tier).map(|(_, model)| Arc::clone(model))
}

/// Plays a cassette in place of the project's own model, if there is one, with its projection.
fn play(
    ChosenCassette { cassette, what, advice, .. }: ChosenCassette,
    own: Option<Arc<dyn Model>>,
    brain: &str,
) -> Models {
    let note = cassette.header().note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
    let notice = format!("{what}{note}{advice}");
    let cassette = Arc::new(match own {
        Some(own) => cassette.like(own),
        None => cassette,
    });
    let again = format!(
        "if the change is intended, record the cassette again: `run {} --record FILE` with a model, or `record RUN FILE` from a \
         run that is in the store",
        shell_word(brain)
    );
    let advice = move |error: &ModelError| (error.kind == ModelErrorKind::Unscripted).then(|| again.clone());
    let normal = Arc::new(Advised::new(Arc::clone(&cassette) as Arc<dyn Model>, advice));
    Models { normal, cassette: CassetteSession::Plays(cassette), notice: Some(notice), ..Models::none() }
}

fn recording(
    normal: Arc<dyn Model>,
    high: Option<Arc<dyn Model>>,
    path: &Path,
    options: &Value,
    secrets: Vec<String>,
) -> Models {
    let note = match &high {
        Some(high) => format!("recorded from {} and {}", normal.name(), high.name()),
        None => format!("recorded from {}", normal.name()),
    };
    let header = Header { note: Some(note), options: Some(options.clone()), ..Header::default() };
    // One cassette for both models, since a replayed run has one model.
    let both = Arc::new(ByTier { normal, high }) as Arc<dyn Model>;
    let mut notice = format!("recording to {}", path.display());
    if let Some(warning) = short_secret_warning(&secrets) {
        notice = format!("{notice}; {warning}");
    }
    let cassette = Arc::new(Cassette::record(both).hide(secrets).describe(header));
    let normal = Arc::clone(&cassette) as Arc<dyn Model>;
    Models { normal, cassette: CassetteSession::Records(cassette), notice: Some(notice), ..Models::none() }
}

/// Returns whether a brain certainly calls a model.
fn has_loop(definition: &BrainDefinition) -> bool {
    definition
        .stages
        .iter()
        .any(|stage| stage.body.as_loop().is_some() || stage.body.brains().any(|nested| has_loop(&nested.definition)))
}

#[cfg(test)]
mod tests {
    use positronic_core::model::scripted::ScriptedModel;
    use positronic_core::record::ActionFormat;

    use super::*;
    use crate::cli::{ActionFormatArg, EndpointArgs};

    fn form(action_format: Option<ActionFormatArg>, settings: &Settings) -> Result<ActionFormat, String> {
        let agent = positronic_core::dsl::brain("Agent").step("Act", async |_| Ok(()));
        let project = Project::new().brain(agent);
        let model = ModelArgs { action_format, ..ModelArgs::default() };
        let wanted = ModelSettings { model: &model, record: None };
        let models = choose_models(&project, &project.brains[0], wanted, &Value::Null, None, settings);
        models.map(|models| models.normal.action_format()).map_err(|failure| failure.prose())
    }

    #[test]
    fn command_line_and_environment_select_the_actions_format() {
        let local = |action_format: Option<&str>| Settings {
            action_format: action_format.map(str::to_owned),
            ..Settings::from_variables(|name| match name {
                "OPENAI_BASE_URL" => Some("http://127.0.0.1:4030/v1".into()),
                "OPENAI_MODEL" => Some("smollm2".into()),
                _ => None,
            })
        };

        assert_eq!(form(None, &local(None)), Ok(ActionFormat::Schema));
        assert_eq!(form(None, &local(Some("Plain"))), Ok(ActionFormat::Plain));
        assert_eq!(form(Some(ActionFormatArg::Grammar), &local(Some("plain"))), Ok(ActionFormat::Grammar));
        assert_eq!(
            form(None, &local(Some("json"))).unwrap_err(),
            "error: invalid POSITRONIC_ACTION_FORMAT `json`: expected schema, grammar or plain\n  \
             set it to one of them, or unset it\n"
        );
        let with = |endpoint: EndpointArgs, model: Option<&str>, project: &Project, settings: &Settings| {
            let model = ModelArgs { endpoint, model: model.map(str::to_owned), ..ModelArgs::default() };
            let wanted = ModelSettings { model: &model, record: None };
            let chosen = choose_models(project, &project.brains[0], wanted, &Value::Null, None, settings);
            chosen.map(|models| models.normal.name()).map_err(|failure| failure.to_string())
        };
        let agent = || Project::new().brain(positronic_core::dsl::brain("Agent").step("Act", async |_| Ok(())));
        let proxy = || EndpointArgs { proxy: Some("http://127.0.0.1:1".to_owned()), ..EndpointArgs::default() };
        let none = with(proxy(), None, &agent(), &Settings::default()).unwrap_err();
        assert_eq!(none, "--proxy needs a provider's model, and none is configured");
        let own = agent().model(Tier::Normal, Arc::new(ScriptedModel::new([])));
        let unasked = with(proxy(), None, &own, &local(None)).unwrap_err();
        assert_eq!(unasked, "--proxy needs a provider's model, but the project's own model scripted/scripted answers");
        assert_eq!(with(proxy(), Some("smollm2"), &own, &local(None)), Ok("openai/smollm2".to_owned()));
        let without_endpoint = form(Some(ActionFormatArg::Plain), &Settings::default()).unwrap_err();
        assert!(
            without_endpoint.starts_with("error: --action-format needs a provider's model, and none is configured\n"),
            "{without_endpoint}"
        );
    }

    #[test]
    fn each_tier_has_the_first_model_of_flag_project_and_environment() {
        let settings = |variables: &[(&str, &str)]| {
            let value =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
            Settings::from_variables(value)
        };
        let environment = settings(&[
            ("ANTHROPIC_API_KEY", "k"),
            ("GEMINI_API_KEY", "k"),
            ("POSITRONIC_MODEL", "anthropic/env"),
            ("POSITRONIC_HIGH_MODEL", "gemini/env-high"),
        ]);
        let agent = || Project::new().brain(positronic_core::dsl::brain("Agent").step("Act", async |_| Ok(())));
        let own = |tier| (tier, Arc::new(ScriptedModel::new([])) as Arc<dyn Model>);
        let with = |tiers: &[Tier]| {
            tiers.iter().map(|tier| own(*tier)).fold(agent(), |project, (tier, model)| project.model(tier, model))
        };
        let tiers = |project: &Project, model: Option<&str>, high: Option<&str>| {
            let owned = |name: Option<&str>| name.map(str::to_owned);
            let flags = ModelArgs { model: owned(model), high_model: owned(high), ..ModelArgs::default() };
            let models = models_for_run(project, &flags, "Agent", &environment).unwrap();
            format!("{} {}", models.normal.name(), models.high.map_or_else(|| "none".to_owned(), |high| high.name()))
        };

        assert_eq!(tiers(&agent(), None, None), "anthropic/env gemini/env-high");
        assert_eq!(tiers(&agent(), Some("ollama/a"), None), "ollama/a none");
        assert_eq!(tiers(&agent(), Some("ollama/a"), Some("gemini/b")), "ollama/a gemini/b");
        assert_eq!(tiers(&agent(), None, Some("ollama/b")), "anthropic/env ollama/b");
        assert_eq!(tiers(&with(&[Tier::Normal]), None, None), "scripted/scripted gemini/env-high");
        assert_eq!(tiers(&with(&[Tier::High]), None, None), "anthropic/env scripted/scripted");
        assert_eq!(tiers(&with(&[Tier::Normal, Tier::High]), None, None), "scripted/scripted scripted/scripted");
        assert_eq!(tiers(&with(&[Tier::Normal, Tier::High]), Some("ollama/a"), None), "ollama/a none");
    }
}
