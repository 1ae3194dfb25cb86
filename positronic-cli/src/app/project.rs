//! A project: its brains, and the `main` that gives its binary the `positronic` commands.

use std::fmt;
use std::sync::Arc;

use positronic_core::definition::{ActionSet, BrainDefinition, StartOn, UnknownAction};
use positronic_core::dsl::{Action, IntoStartInput, Payload, ProjectWebhook, Runnable, Webhook};
use positronic_core::model::Model;
use positronic_core::record::Tier;
use serde::de::DeserializeOwned;

use crate::app::Failure;
use crate::cli::did_you_mean;

/// The brains of a project, with what they need to run.
///
/// ```no_run
/// use positronic_cli::Project;
/// use positronic_core::prelude::*;
///
/// fn main() -> std::process::ExitCode {
///     let hello = brain("Hello").step("Greet", async |_| Ok("hello".to_owned()));
///     Project::new().brain(hello).main()
/// }
/// ```
#[must_use = "a project does nothing until its `main` is called"]
#[derive(Clone, Default)]
pub struct Project {
    pub(crate) brains: Vec<ProjectBrain>,
    pub(crate) models: Vec<(Tier, Arc<dyn Model>)>,
    pub(crate) actions: ActionSet,
    pub(crate) starts: Vec<Arc<StartOn>>,
    pub(crate) webhooks: Vec<ProjectWebhook>,
    pub(crate) max_document_bytes: Option<usize>,
}

/// One brain of a project.
#[derive(Debug, Clone)]
pub(crate) struct ProjectBrain {
    pub(crate) definition: Arc<BrainDefinition>,
    /// The text of a cassette with which it runs without a key.
    pub(crate) cassette: Option<&'static str>,
}

impl Project {
    /// Makes a project without brains.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a brain. One that needs services is bound to them first, with `.bind(services)`.
    ///
    /// # Panics
    ///
    /// When the project has a brain of this title.
    #[track_caller]
    pub fn brain(mut self, brain: impl Runnable) -> Self {
        let definition = brain.definition();
        if self.brains.iter().any(|entry| normal_title(&entry.definition.title) == normal_title(&definition.title)) {
            usage_panic(&format!(
                "the project has two brains named `{}`; give one of them another title",
                definition.title
            ));
        }
        self.brains.push(ProjectBrain { definition, cassette: None });
        self
    }

    /// Adds brains, such as those that [`brains!`](positronic_core::brains) lists, bound to the project's services.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use positronic_cli::Project;
    /// use positronic_core::prelude::*;
    ///
    /// positronic_core::brains! {
    ///     struct Shop {
    ///         greeter: Brain<(), u32> = brain("Greeter").step("Greet", async |_| Ok(1)),
    ///     }
    /// }
    ///
    /// fn main() -> std::process::ExitCode {
    ///     let shop = Arc::new(Shop::new());
    ///     Project::new().brains(shop.bind(&shop)).main()
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// When the project has a brain of one of these titles.
    #[track_caller]
    pub fn brains<B: Runnable>(mut self, brains: impl IntoIterator<Item = B>) -> Self {
        for brain in brains {
            self = self.brain(brain);
        }
        self
    }

    /// Lets a webhook start runs of a brain, with the options that the closure makes of the payload; see
    /// [`Runner::start_on`](positronic_core::runner::Runner::start_on). Adds the brain, unless the project has it.
    ///
    /// ```no_run
    /// use positronic_cli::Project;
    /// use positronic_core::prelude::*;
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Order { id: String }
    ///
    /// fn main() -> std::process::ExitCode {
    ///     let review = brain("Review").options::<String>().step("Review", async |cx| Ok(cx.options.len()));
    ///     Project::new().start_on(webhook("orders"), review, |order: Order| order.id).main()
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// When the webhook starts runs already, or the project has another brain of this title.
    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a webhook is made where it is used: `.start_on(webhook(\"orders\"), …)`"
    )]
    pub fn start_on<P, B, R>(self, hook: Webhook<P>, brain: B, input: impl Fn(P) -> R + Send + Sync + 'static) -> Self
    where
        P: Payload + DeserializeOwned,
        B: Runnable,
        R: IntoStartInput<B::Options>,
    {
        let definition = brain.definition();
        let start = StartOn::new::<P, B::Options, R>(&hook, &definition.title, input);
        if let Some(known) = self.starts.iter().find(|known| known.webhook == start.webhook) {
            usage_panic(&format!(
                "the webhook `{}` starts runs of `{}` and of `{}`; let it start one brain, which branches",
                start.webhook, known.brain, start.brain
            ));
        }
        let known = self.brains.iter().map(|entry| &entry.definition).find(|known| known.title == definition.title);
        let is_known = known.is_some_and(|known| known.fingerprint() == definition.fingerprint());
        let mut project = if is_known { self } else { self.brain(brain) };
        project.starts.push(Arc::new(start));
        project
    }

    /// Adds the webhooks of the project, which [`webhooks!`](positronic_core::webhooks) lists. Then the stages of its brains can wait for these only, and
    /// only these start runs and have senders: anything else is an error when a command starts. `list` shows them.
    ///
    /// ```no_run
    /// use positronic_cli::Project;
    /// use positronic_core::prelude::*;
    ///
    /// positronic_core::webhooks! {
    ///     struct Hooks {
    ///         /// The bank's notice of a payment, in cents.
    ///         payment: Webhook<u64> = "payment",
    ///     }
    /// }
    ///
    /// fn main() -> std::process::ExitCode {
    ///     Project::new().webhooks(Hooks::new().list()).main()
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// When the project has a webhook of one of these names.
    #[track_caller]
    pub fn webhooks(mut self, webhooks: impl IntoIterator<Item = ProjectWebhook>) -> Self {
        for webhook in webhooks {
            if self.webhooks.iter().any(|known| known.name() == webhook.name()) {
                usage_panic(&format!(
                    "the project has two webhooks named `{}`; give one of them another name",
                    webhook.name()
                ));
            }
            self.webhooks.push(webhook);
        }
        self
    }

    /// Returns the webhooks that start runs of a brain.
    pub(crate) fn starts_on(&self, title: &str) -> Vec<&str> {
        self.starts.iter().filter(|start| start.brain == title).map(|start| start.webhook.as_str()).collect()
    }

    /// Returns the brains whose runs a webhook starts.
    pub(crate) fn started_by(&self, webhook: &str) -> Vec<&str> {
        self.starts.iter().filter(|start| start.webhook == webhook).map(|start| start.brain.as_str()).collect()
    }

    /// Returns the brains with a stage that waits for a webhook, or a loop that declares that its tools do.
    pub(crate) fn waiting_for(&self, webhook: &str) -> Vec<&str> {
        let waits =
            |entry: &&ProjectBrain| entry.definition.structure().waits().iter().any(|(_, wait)| *wait == webhook);
        self.brains.iter().filter(waits).map(|entry| entry.definition.title.as_str()).collect()
    }

    /// Gives a brain a cassette, which answers if no model is configured.
    ///
    /// # Panics
    ///
    /// When the project has no brain of this title.
    #[track_caller]
    pub fn cassette(mut self, title: &str, text: &'static str) -> Self {
        match self.brains.iter_mut().find(|entry| entry.definition.title == title) {
            Some(entry) => entry.cassette = Some(text),
            None => usage_panic(&format!("there is a cassette for `{title}`, but no such brain; add the brain first")),
        }
        self
    }

    /// Adds an action: a tool that loops of any brain choose by its name.
    ///
    /// ```no_run
    /// use positronic_cli::Project;
    /// use positronic_core::dsl::Action;
    /// use positronic_core::prelude::*;
    ///
    /// fn main() -> std::process::ExitCode {
    ///     let finish = Action::new("finish", |t| t.description("Ends the work").exit().execute(async |_: NoArgs, _| Ok("done")));
    ///     let agent = brain("Agent")
    ///         .actions(["finish"])
    ///         .r#loop("Act", |cx| cx.system("Reach the goal.").actions(["finish"]));
    ///     Project::new().action(finish).brain(agent).main()
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// When the project has an action of this name.
    #[track_caller]
    pub fn action(mut self, action: Action) -> Self {
        if self.actions.get(action.decl().id.as_str()).is_some() {
            usage_panic(&format!(
                "the project has two actions named `{}`; give one of them another name",
                action.decl().id
            ));
        }
        self.actions.insert(action);
        self
    }

    /// Checks that the project has every action that a brain names.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for entry in &self.brains {
            self.actions.check(&entry.definition).map_err(|UnknownAction { brain, action, known }| {
                let has = match known.as_slice() {
                    [] => "the project has no actions; add one with `Project::action`".to_owned(),
                    known => format!("the project has the actions {}", known.join(", ")),
                };
                Failure::usage(format!(
                    "the brain `{brain}` names the action `{action}`, which the project does not have"
                ))
                .hints(did_you_mean(&action, known.iter().map(String::as_str), ""))
                .hint(has)
            })?;
        }
        self.check_webhooks()
    }

    /// Checks that a project that lists its webhooks has each for which a stage waits, and each that starts runs.
    fn check_webhooks(&self) -> Result<(), Failure> {
        for entry in &self.brains {
            let structure = entry.definition.structure();
            for (stage, webhook) in structure.waits() {
                self.has_webhook(webhook).map_err(|hints| {
                    let title = &structure.title;
                    let message = format!(
                        "the stage `{stage}` of the brain `{title}` waits for the webhook `{webhook}`, which the project does not list"
                    );
                    Failure::usage(message).hints(hints)
                })?;
            }
        }
        for start in &self.starts {
            self.has_webhook(&start.webhook).map_err(|hints| {
                let (webhook, brain) = (&start.webhook, &start.brain);
                let message = format!(
                    "the webhook `{webhook}` starts runs of the brain `{brain}`, and the project does not list it"
                );
                Failure::usage(message).hints(hints)
            })?;
        }
        Ok(())
    }

    /// Returns hints if the project lists its webhooks, and not this one.
    pub(crate) fn has_webhook(&self, name: &str) -> Result<(), Vec<String>> {
        let known: Vec<_> = self.webhooks.iter().map(ProjectWebhook::name).collect();
        if known.is_empty() || known.contains(&name) {
            return Ok(());
        }
        let has = format!("the project has the webhooks {}", known.join(", "));
        Err(did_you_mean(name, known, "").into_iter().chain([has]).collect())
    }

    /// Sets the model of a tier, instead of the environment's. `--model` replaces the models of both tiers, `--high-model` that
    /// of the high tier.
    pub fn model(mut self, tier: Tier, model: Arc<dyn Model>) -> Self {
        self.models.push((tier, model));
        self
    }

    /// Sets the maximum bytes of a state, a tool's result or another document of a run; the default is 8 MiB. See
    /// [`MAX_DOCUMENT_BYTES`](positronic_core::record::MAX_DOCUMENT_BYTES).
    pub const fn max_document_bytes(mut self, max_bytes: usize) -> Self {
        self.max_document_bytes = Some(max_bytes);
        self
    }
}

/// Normalizes a title: letters and digits in lower case.
pub(crate) fn normal_title(title: &str) -> String {
    title.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Panics at the place of an author's mistake.
#[track_caller]
#[expect(clippy::panic, reason = "an author's mistake is reported where the author made it")]
pub(crate) fn usage_panic(message: &str) -> ! {
    panic!("{message}")
}

impl fmt::Debug for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.brains.iter().map(|entry| &entry.definition.title)).finish()
    }
}
