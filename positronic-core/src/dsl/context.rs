//! What an author's closures are handed.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::bounds::{Options, Services, State};
use super::brain::Brain;
use super::r#loop::Loop;
use super::output::OutputType;
use super::question::ModelCall;
use super::reply::Reply;
use crate::definition::{BrainDefinition, Provide, Scope, encode, encode_state};
use crate::error::{Error, Result};
use crate::record::{
    CustomOutput, FileOutput, Path, Prompt, PublicId, RunId, Segment, SideOutput, Timer, Timestamp, Trigger, TriggerId,
    WidgetOutput, hash_text,
};

macro_rules! shared_methods {
    ($context:ident<$($param:ident),*>) => {
        impl<$($param),*> $context<$($param),*> {
            /// Returns whom the run belongs to.
            #[must_use]
            pub fn user_id(&self) -> Option<&str> {
                self.scope.user.as_deref()
            }

            /// Returns the run.
            #[must_use]
            pub const fn run_id(&self) -> &RunId {
                &self.scope.run
            }

            /// Returns where in the run's tree this is.
            #[must_use]
            pub const fn path(&self) -> &Path {
                &self.scope.path
            }

            /// Returns what time it is by the runner's clock, which stands still in tests.
            #[must_use]
            pub fn now(&self) -> crate::record::Timestamp {
                self.scope.link.now()
            }

            /// Returns the trigger that has started the run; none where somebody did.
            #[must_use]
            pub fn fired(&self) -> Option<crate::record::Fired> {
                self.scope.link.fired()
            }

            /// Returns the record of an earlier loop of this brain, by the name of its stage; `None` if it has not begun.
            #[must_use]
            pub fn record(&self, stage: &str) -> Option<Prompt> {
                self.scope.link.record(&super::context::brain_path(&self.scope.path).stage(stage))
            }

            /// Returns what a plugin of this brain keeps, by its type.
            ///
            /// # Errors
            ///
            /// An [`Error`] when no plugin of this brain keeps such a state yet, or what it keeps does not fit the type.
            pub fn plugin_state<Q: super::kept::PluginState>(&self) -> Result<Q> {
                match self.scope.plugins.get(Q::NAME) {
                    Some(kept) => super::kept::read(kept),
                    None => Err(Error::new(format!("no plugin `{}` has been prepared in this brain", Q::NAME))),
                }
            }

            /// Gives access to the project's brains by name, where a Rust reference will not do.
            #[must_use]
            pub fn brains(&self) -> super::context::Brains<'_, V> {
                super::context::Brains::of(&self.scope)
            }
        }

        impl<$($param),*> fmt::Debug for $context<$($param),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.scope.fmt(f)
            }
        }
    };
}

pub(super) use shared_methods;

/// Returns the brain that a stage, an iteration or a call belongs to.
pub(super) fn brain_path(path: &Path) -> Path {
    let stage = stage_path(path);
    stage.parent().unwrap_or_default()
}

/// Returns the stage that a stage, an iteration or a call belongs to.
pub(super) fn stage_path(path: &Path) -> Path {
    match path.last() {
        Some(Segment::Iteration(_) | Segment::Call(..)) => path.parent().unwrap_or_default(),
        Some(Segment::Stage(_)) | None => path.clone(),
    }
}

pub(super) fn services<V: Services>(scope: &Scope) -> Result<Arc<V>> {
    Arc::clone(&scope.services)
        .downcast()
        .map_err(|_| Error::new(format!("the brain was given other services than `{}`", std::any::type_name::<V>())))
}

macro_rules! once_method {
    ($context:ident) => {
        impl<O, S, V> $context<O, S, V> {
            /// Computes a value once: it is recorded under `name`, and when this step or tool runs again after a crash or a
            /// failed try, it gets the recorded value and `work` is not begun. Code with several side effects wraps each in a
            /// `once` of its own. Between the work and its record a crash can still fall: pass
            /// [`idempotency_key`](Self::idempotency_key) on to what must not happen twice.
            ///
            /// # Errors
            ///
            /// What `work` answers, which is not recorded, or an [`Error`] when the value cannot be written as JSON, or the
            /// recorded one is no `T`.
            pub async fn once<T: Serialize + DeserializeOwned>(
                &self,
                name: &str,
                work: impl Future<Output = Result<T>> + Send,
            ) -> Result<T> {
                let encoded = Box::pin(async move { encode_state(&work.await?) });
                let value = self.scope.link.once(&self.scope.path, name, encoded).await?;
                T::deserialize(&*value).map_err(|error| {
                    Error::new(format!("the recorded value `{name}` is no `{}`: {error}", std::any::type_name::<T>()))
                })
            }
        }
    };
}

/// What a step is handed. The state is its own: it returns the next one.
pub struct StepContext<O, S, V> {
    /// The state; the step returns the next one.
    pub state: S,
    /// The options of the run.
    pub options: Arc<O>,
    /// The services.
    pub services: Arc<V>,
    scope: Scope,
    key: String,
}

shared_methods!(StepContext<O, S, V>);
once_method!(StepContext);

impl<O: Options, S: State, V: Services> StepContext<O, S, V> {
    pub(super) fn new(scope: Scope) -> Result<Self> {
        Ok(Self {
            state: scope.state.owned()?,
            options: scope.options.shared()?,
            services: services(&scope)?,
            key: format!("{}:{}", scope.run, scope.path),
            scope,
        })
    }
}

impl<O, S, V> StepContext<O, S, V> {
    /// Returns a key that is the same for every try of this step, for services that drop repeated requests.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.key
    }

    /// Begins a question to a model; the question and its answer are recorded, and a later try of the step gets the
    /// recorded answer.
    pub fn model(&self) -> ModelCall {
        ModelCall::new(Arc::clone(&self.scope.link), self.scope.path.clone())
    }
}

/// What a loop's configuration closure is handed, before every model call.
pub struct LoopContext<O, S, V> {
    /// The state as of now.
    pub state: Arc<S>,
    /// The options of the run.
    pub options: Arc<O>,
    /// The services.
    pub services: Arc<V>,
    scope: Scope,
}

shared_methods!(LoopContext<O, S, V>);

impl<O: Options, S: State, V: Services> LoopContext<O, S, V> {
    pub(super) fn new(scope: Scope) -> Result<Self> {
        Ok(Self { state: scope.state.shared()?, options: scope.options.shared()?, services: services(&scope)?, scope })
    }

    /// Begins the loop's configuration with its system prompt.
    pub fn system(&self, prompt: impl Into<String>) -> Loop<O, S, V> {
        Loop::new(prompt.into())
    }

    /// Returns the loop's own record so far; `None` before its first iteration.
    #[must_use]
    pub fn history(&self) -> Option<Prompt> {
        self.scope.link.record(&stage_path(&self.scope.path))
    }
}

/// What a tool is handed. The state is as of the tool's start; it is changed by the tool's result.
pub struct ToolContext<O = (), S = (), V = ()> {
    /// The state as of the tool's start. It is shared with other calls, so nothing is assigned to it: the tool's result changes
    /// it, `Ok(cx.result("done").update(|state| state.open = false))`.
    pub state: Arc<S>,
    /// The options of the run.
    pub options: Arc<O>,
    /// The services.
    pub services: Arc<V>,
    scope: Scope,
    key: Arc<str>,
}

shared_methods!(ToolContext<O, S, V>);
once_method!(ToolContext);

impl<O, S, V> Clone for ToolContext<O, S, V> {
    fn clone(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            options: Arc::clone(&self.options),
            services: Arc::clone(&self.services),
            scope: self.scope.clone(),
            key: Arc::clone(&self.key),
        }
    }
}

impl<O: Options, S: State, V: Services> ToolContext<O, S, V> {
    pub(super) fn new(scope: Scope) -> Result<Self> {
        Ok(Self {
            state: scope.state.shared()?,
            options: scope.options.shared()?,
            services: services(&scope)?,
            key: format!("{}:{}", scope.run, scope.path).into(),
            scope,
        })
    }
}

impl<O, S, V> ToolContext<O, S, V> {
    /// Returns the call's key: the same for every try, for services that drop repeated requests.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.key
    }

    /// Says whether a person was asked about this call and has approved it. What was asked is as of the model's answer, so a
    /// tool that must not do a thing without an approval looks again when it runs: another call may have been quicker.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.scope.link.is_approved(&self.scope.path)
    }

    /// Begins a result that also changes the state, or waits.
    ///
    /// A value that cannot be written as JSON makes the call fail.
    pub fn result<T: Serialize>(&self, value: T) -> Reply<S> {
        Reply::new(&value)
    }

    /// Returns the record of the loop that called the tool.
    #[must_use]
    pub fn history(&self) -> Option<Prompt> {
        self.scope.link.record(&stage_path(&self.scope.path))
    }

    /// Shows data in a user interface. The model never sees it; `fallback` is shown where there is no such widget.
    ///
    /// It returns the widget's id, by which [`ToolContext::replace_widget`] can take its place, at once or, where the
    /// state keeps the id, in a later call.
    ///
    /// # Errors
    ///
    /// An [`Error`] when `data` cannot be written as JSON, or the call has shown 1000 files and widgets.
    pub fn display_widget(
        &self,
        kind: impl Into<String>,
        data: impl Serialize,
        fallback: impl Into<String>,
    ) -> Result<PublicId> {
        self.widget(None, kind.into(), &data, fallback.into())
    }

    /// Shows data in the place of an earlier output, such as a newer version of a chart.
    ///
    /// The record keeps both. The id that it returns names the new widget; the old id stands for the same place. An id names
    /// an output of this run, of whichever loop, and none of an earlier prompt of the conversation.
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # let _ = brain("Report").r#loop("Chat", |cx| cx.system("Help.").tool("report", |t| {
    /// t.execute(async |_: NoArgs, cx| {
    ///     let bar = cx.display_widget("bar", 0, "nothing done")?;
    ///     for percent in [50, 100] {
    ///         cx.replace_widget(&bar, "bar", percent, format!("{percent} % done"))?;
    ///     }
    ///     Ok("done")
    /// })
    /// # }));
    /// ```
    ///
    /// # Errors
    ///
    /// An [`Error`] when `data` cannot be written as JSON, or the call has shown 1000 files and widgets.
    pub fn replace_widget(
        &self,
        replaced: &PublicId,
        kind: impl Into<String>,
        data: impl Serialize,
        fallback: impl Into<String>,
    ) -> Result<PublicId> {
        self.widget(Some(replaced.clone()), kind.into(), &data, fallback.into())
    }

    fn widget<T: Serialize>(
        &self,
        replaces: Option<PublicId>,
        kind: String,
        data: &T,
        fallback: String,
    ) -> Result<PublicId> {
        let widget = WidgetOutput { kind, data: encode(data)?, fallback, replaces };
        self.scope.link.output(&self.scope.path, SideOutput::Widget(widget))
    }

    /// Keeps a file that the tool made, and records it; the model reads one line about it.
    ///
    /// The bytes are kept beside the logs, never in one: each content once, for as long as a run refers to it. They are
    /// there before the event is that names them. People get them with `positronic files`, programs with
    /// [`Client::blob`](crate::runner::Client::blob).
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # let _ = brain("Report").r#loop("Chat", |cx| cx.system("Help.").tool("report", |t| {
    /// t.execute(async |_: NoArgs, cx| {
    ///     let file = cx.save_file("sales.csv", "text/csv", "month,sales\nMay,3\n").await?;
    ///     Ok(format!("wrote {} bytes", file.size))
    /// })
    /// # }));
    /// ```
    ///
    /// # Errors
    ///
    /// An [`Error`] when the file is larger than [`LARGEST_BLOB`](crate::store::LARGEST_BLOB), the store fails, or the call
    /// has shown 1000 files and widgets.
    pub async fn save_file(
        &self,
        name: impl Into<String> + Send,
        media_type: impl Into<String> + Send,
        bytes: impl Into<Vec<u8>> + Send,
    ) -> Result<FileOutput> {
        let (name, media_type, bytes) = (name.into(), media_type.into(), bytes.into());
        let size = bytes.len() as u64;
        let sha256 = self.scope.link.keep(bytes).await?;
        let file = FileOutput::kept(name, media_type, size, sha256);
        self.add_file(file.clone())?;
        Ok(file)
    }

    /// Records a file whose bytes are elsewhere, at its `uri`; the model reads one line about it.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the call has shown 1000 files and widgets.
    pub fn add_file(&self, file: FileOutput) -> Result<()> {
        self.scope.link.output(&self.scope.path, SideOutput::File(file)).map(|_| ())
    }

    /// Records an output of an application's own type; see [`OutputType`].
    ///
    /// # Errors
    ///
    /// An [`Error`] when the output cannot be written as JSON, or the call has shown 1000 outputs.
    pub fn add_output<T: OutputType>(&self, output: &T) -> Result<PublicId> {
        let custom = CustomOutput {
            kind: T::KIND.to_owned(),
            data: encode(output)?,
            fallback: output.fallback(),
            model_text: output.model_text(),
        };
        self.scope.link.output(&self.scope.path, SideOutput::Custom(custom))
    }

    /// Makes a trigger that fires once; [`Trigger::every`] lets it fire again and again, and
    /// [`Reply::set_trigger`] sets it. Its id is that of this call and of what is to be done, the same for every try.
    pub fn trigger(&self, what: impl Into<String>, due: Timestamp) -> Trigger {
        let what = what.into();
        let hash = hash_text(&format!("{}\n{what}", self.key));
        let short: String = hash.as_str().chars().take(16).collect();
        Trigger::once(TriggerId::from(format!("t-{short}")), what, due)
    }

    /// Lists the triggers of the run's conversation; of its user, where it is a part of none; or of the run itself, where it
    /// belongs to nobody. The one that is due first comes first.
    ///
    /// # Errors
    ///
    /// An [`Error`] when they cannot be read.
    pub async fn triggers(&self) -> Result<Vec<Timer>> {
        self.scope.link.triggers().await
    }

    /// Shows how far the tool is. It is live only, never recorded.
    pub fn progress(&self, text: impl Into<String>) {
        self.scope.link.progress(&self.scope.path, text.into());
    }
}

/// The brains of a project, by name, as they fit into a brain with services `V`.
#[derive(Debug)]
pub struct Brains<'a, V>(&'a Scope, PhantomData<fn(V)>);

impl<'a, V> Brains<'a, V> {
    pub(super) const fn of(scope: &'a Scope) -> Self {
        Self(scope, PhantomData)
    }
}

impl<V: Services> Brains<'_, V> {
    /// Finds a brain by its title. Its options and its result are JSON.
    ///
    /// # Errors
    ///
    /// An [`Error`] that lists the brains there are.
    pub fn find(&self, title: &str) -> Result<Brain<Value, Value, V, Value>> {
        let definition = self.0.link.brain(title).ok_or_else(|| {
            let known = self.titles().join("`, `");
            Error::new(format!("the project has no brain `{title}`; it has `{known}`"))
        })?;
        // A registered brain is bound to its services or has none, so those of the brain around are not handed on.
        let nothing: Provide = Arc::new(|_| Arc::new(()));
        let bound = BrainDefinition {
            provide: Some(definition.provide.clone().unwrap_or(nothing)),
            ..BrainDefinition::clone(&definition)
        };
        Ok(Brain { definition: Arc::new(bound), types: PhantomData })
    }

    /// Lists the titles of the project's brains.
    #[must_use]
    pub fn titles(&self) -> Vec<String> {
        self.0.link.brains()
    }
}
