//! Selection of a run's models: an endpoint, a cassette, or the project's own.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use positronic_core::definition::{BrainDefinition, StageBody};
use positronic_core::model::cassette::{Cassette, CassetteError, Header};
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{
    MAX_DOCUMENT_BYTES, ModelError, ModelErrorKind, ModelRequest, ModelResponse, PriceTable, RunId, Tier,
};
use positronic_core::runner::Runner;
use serde_json::Value;

use crate::app::{
    Advised, Backend, Entry, Failure, Project, ProjectStore, SET_ENDPOINT, Settings, answers_for, endpoint,
    given_prices, rewind, secrets, short_secret_warning,
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
        let builder =
            Runner::builder().model(self.normal.clone()).prices(self.prices.clone()).max_document_bytes(max_bytes);
        let runner = match (&self.high, &store.backend) {
            (Some(high), Backend::Memory(store)) => builder.high(high.clone()).store(store.clone()).build(),
            #[cfg(feature = "sqlite")]
            (Some(high), Backend::File(store)) => builder.high(high.clone()).store(store.clone()).build(),
            (None, Backend::Memory(store)) => builder.store(store.clone()).build(),
            #[cfg(feature = "sqlite")]
            (None, Backend::File(store)) => builder.store(store.clone()).build(),
        };
        let runner = runner.actions(project.actions.clone());
        project.brains.iter().fold(runner, |runner, entry| runner.definition(Arc::clone(&entry.definition)))
    }

    /// Winds the played cassette on to where a run is.
    pub(crate) async fn wind(&self, store: &ProjectStore, run: &RunId) -> Result<(), Failure> {
        match &self.cassette {
            CassetteSession::Plays(cassette) => rewind(cassette, store, run).await,
            CassetteSession::None | CassetteSession::Records(_) => Ok(()),
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
    entry: &Entry,
    wanted: ModelSettings<'_>,
    settings: &Settings,
) -> Result<Option<ChosenCassette>, Failure> {
    if let Some(path) = &wanted.model.cassette {
        let name = path.display().to_string();
        let what = format!("playing the cassette {name}");
        let cassette = Cassette::load(path).map_err(|error| match error {
            CassetteError::File { source, .. } => unplayable(&name, &source),
            other => unplayable(&name, &other),
        })?;
        return Ok(Some(ChosenCassette { cassette, name, what, advice: "; tools run for real" }));
    }
    let answers = settings.has_endpoint() || project.models.iter().any(|(tier, _)| *tier == Tier::Normal);
    let Some(text) = entry.cassette.filter(|_| !answers && wanted.model.model.is_none() && wanted.record.is_none())
    else {
        return Ok(None);
    };
    let title = &entry.definition.title;
    let name = format!("of `{title}`");
    let cassette = Cassette::replay(text).map_err(|error| unplayable(&name, &error))?;
    let what = format!("no key set: playing the bundled cassette of `{title}`");
    let advice = "; tools run for real; set OPENAI_API_KEY or OPENAI_BASE_URL to talk to a real endpoint";
    Ok(Some(ChosenCassette { cassette, name, what, advice }))
}

fn unplayable(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::model(format!("cannot play the cassette {name}: {error}"))
}

/// Selects the models: the played cassette, the project's own models, or the endpoint.
pub(crate) fn choose_models(
    project: &Project,
    entry: &Entry,
    wanted: ModelSettings<'_>,
    options: &Value,
    playing: Option<ChosenCassette>,
    settings: &Settings,
) -> Result<Models, Failure> {
    let prices = given_prices(wanted.model.prices.as_deref(), settings)?;
    if let Some(flag) = endpoint_flag(wanted.model).filter(|_| !settings.has_endpoint()) {
        return Err(Failure::usage(format!("{flag} needs an endpoint, and none is configured"))
            .hint("set OPENAI_API_KEY or OPENAI_BASE_URL, or remove the flag"));
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

/// Returns the first flag that needs an endpoint.
fn endpoint_flag(model: &ModelArgs) -> Option<&'static str> {
    model.action_format.map(|_| "--action-format").or_else(|| model.endpoint.first_given())
}

/// Selects models without a cassette: the project's own, or the endpoint.
fn asked(
    project: &Project,
    entry: &Entry,
    wanted: ModelSettings<'_>,
    options: &Value,
    settings: &Settings,
) -> Result<Models, Failure> {
    let name = &wanted.model.model;
    let (normal, high) = match own(project, Tier::Normal).filter(|_| name.is_none()) {
        Some(normal) => match wanted.model.endpoint.first_given() {
            Some(flag) => {
                let own = format!("{flag} needs an endpoint, but the project's own model {} answers", normal.name());
                return Err(Failure::usage(own).hint("name a model of the endpoint with --model, or remove the flag"));
            }
            None => (normal, own(project, Tier::High)),
        },
        None if settings.has_endpoint() => (endpoint(wanted.model, settings)?, None),
        None if wanted.record.is_some() => {
            return Err(Failure::model("cannot record: no model is configured").hint(SET_ENDPOINT));
        }
        None if name.is_some() => {
            return Err(Failure::model(format!(
                "no endpoint is configured for the model `{}`",
                name.as_deref().unwrap_or_default()
            ))
            .hint("set OPENAI_API_KEY or OPENAI_BASE_URL")
            .hint("without `--model`, the bundled cassette answers if there is one"));
        }
        None if has_loop(&entry.definition) => {
            let title = &entry.definition.title;
            return Err(Failure::model(format!("no model is configured, and `{title}` has no bundled cassette"))
                .hint(SET_ENDPOINT)
                .hint("or run without a key: --cassette FILE plays a recording of --record FILE"));
        }
        None => (Arc::new(NoModel) as Arc<dyn Model>, None),
    };
    match wanted.record {
        Some(path) => Ok(recording(normal, high, path, options, secrets(wanted.model, settings))),
        None => Ok(Models { normal, high, ..Models::none() }),
    }
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

/// A model that routes each request to the model of its tier, under the name of the normal one.
struct ByTier {
    normal: Arc<dyn Model>,
    high: Option<Arc<dyn Model>>,
}

impl ByTier {
    fn of(&self, request: &ModelRequest) -> &dyn Model {
        match (request.settings.tier, &self.high) {
            (Tier::High, Some(high)) => &**high,
            (Tier::High, None) | (Tier::Normal, _) => &*self.normal,
        }
    }
}

impl Model for ByTier {
    fn name(&self) -> String {
        self.normal.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        self.of(request).call(request, deltas)
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&*self.normal)
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.of(request).wire(request)
    }
}

/// Returns whether a brain certainly calls a model.
fn has_loop(definition: &BrainDefinition) -> bool {
    definition.stages.iter().any(|stage| match &stage.body {
        StageBody::Loop(_) => true,
        StageBody::Brain(nested) => has_loop(&nested.definition),
        StageBody::Step(_) => false,
    })
}

/// Placeholder without a configured model, for brains that may not need one.
struct NoModel;

impl Model for NoModel {
    fn name(&self) -> String {
        "none/none".to_owned()
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let advice = "no model is configured: set OPENAI_API_KEY, or OPENAI_BASE_URL for another compatible endpoint";
        Box::pin(std::future::ready(Err(ModelError::new(ModelErrorKind::Auth, advice))))
    }

    fn wire(&self, _: &ModelRequest) -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use positronic_core::model::NoDeltas;
    use positronic_core::model::scripted::{Reply, ScriptedModel};
    use positronic_core::record::{ActionFormat, Transcript};

    use super::*;
    use crate::cli::{ActionFormatArg, EndpointArgs};

    fn form(action_format: Option<ActionFormatArg>, settings: &Settings) -> Result<ActionFormat, String> {
        let agent = positronic_core::dsl::brain("Agent");
        let project = Project::new().brain(agent);
        let model = ModelArgs { action_format, ..ModelArgs::default() };
        let wanted = ModelSettings { model: &model, record: None };
        let models = choose_models(&project, &project.brains[0], wanted, &Value::Null, None, settings);
        models.map(|models| models.normal.action_format()).map_err(|failure| failure.prose())
    }

    #[test]
    fn command_line_and_environment_select_the_actions_format() {
        let local = |action_format: Option<&str>| Settings {
            base_url: Some("http://127.0.0.1:4030/v1".to_owned()),
            model: Some("smollm2".to_owned()),
            action_format: action_format.map(str::to_owned),
            ..Settings::default()
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
        let agent = || Project::new().brain(positronic_core::dsl::brain("Agent"));
        let proxy = || EndpointArgs { proxy: Some("http://127.0.0.1:1".to_owned()), ..EndpointArgs::default() };
        let none = with(proxy(), None, &agent(), &Settings::default()).unwrap_err();
        assert_eq!(none, "--proxy needs an endpoint, and none is configured");
        let own = agent().model(Tier::Normal, Arc::new(ScriptedModel::new([])));
        let unasked = with(proxy(), None, &own, &local(None)).unwrap_err();
        assert_eq!(unasked, "--proxy needs an endpoint, but the project's own model scripted/scripted answers");
        assert_eq!(with(proxy(), Some("smollm2"), &own, &local(None)), Ok("openai/smollm2".to_owned()));
        let without_endpoint = form(Some(ActionFormatArg::Plain), &Settings::default()).unwrap_err();
        assert!(
            without_endpoint.starts_with("error: --action-format needs an endpoint, and none is configured\n"),
            "{without_endpoint}"
        );
    }

    #[tokio::test]
    async fn recording_asks_the_model_of_each_tier() {
        let says = |text: &'static str| Arc::new(ScriptedModel::new([Reply::text(text)])) as Arc<dyn Model>;
        let both = ByTier { normal: says("normal"), high: Some(says("high")) };
        let request = |tier| ModelRequest {
            path: positronic_core::record::Path::root().stage("Ask").iteration(0),
            attempt: 0,
            system: "".into(),
            context: [].into(),
            tools: Arc::default(),
            messages: Transcript::default(),
            settings: Arc::new(positronic_core::record::Settings::builder().tier(tier).build()),
        };

        assert_eq!(both.call(&request(Tier::High), &NoDeltas).await.unwrap().text(), "high");
        assert_eq!(both.call(&request(Tier::Normal), &NoDeltas).await.unwrap().text(), "normal");
    }
}
