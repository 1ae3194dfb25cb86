//! Arguments of an author's closures.

mod brains;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use derive_where::derive_where;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ask_model::ModelCall;
use super::output::OutputType;
use super::read_only::{ChangedByToolsAndOnExit, ChangedWithUpdate, DeclaredWithOptions, ReadOnly};
use super::services::{Services, services};
use super::tool_reply::ToolReply;
use super::trait_bounds::{Options, State};
use crate::definition::{Scope, StateValue, UntypedReply, Update, decode, encode, encode_state};
use crate::error::Result;
use crate::record::{
    CustomOutput, Path, Prompt, PublicId, RunId, Segment, SideOutput, Timer, Timestamp, Trigger, TriggerId,
    WidgetOutput, hash_text,
};

pub use self::brains::Brains;

macro_rules! shared_methods {
    ($context:ident<$($param:ident),*>) => {
        impl<$($param),*> $context<$($param),*> {
            /// Returns the user that the run belongs to.
            #[must_use]
            pub fn user_id(&self) -> Option<&str> {
                self.scope.user.as_deref()
            }

            /// Returns the run.
            #[must_use]
            pub const fn run_id(&self) -> &RunId {
                &self.scope.run
            }

            /// Returns the position in the run's tree.
            #[must_use]
            pub const fn path(&self) -> &Path {
                &self.scope.path
            }

            /// Returns the current time of the runner's clock, which tests can stop.
            #[must_use]
            pub fn now(&self) -> crate::record::Timestamp {
                self.scope.link.now()
            }

            /// Returns the trigger that started the run, or `None`.
            #[must_use]
            pub fn fired(&self) -> Option<crate::record::Fired> {
                self.scope.link.fired()
            }

            /// Returns the tick of a schedule that started the run, with the time for which it was scheduled, or `None`.
            #[must_use]
            pub fn scheduled(&self) -> Option<crate::record::Scheduled> {
                self.scope.link.scheduled()
            }

            /// Returns the record of an earlier loop of this brain, by its stage name; `None` if it has not begun.
            #[must_use]
            pub fn record(&self, stage: &str) -> Option<Prompt> {
                self.scope.link.record(&super::context::brain_path(&self.scope.path).stage(stage))
            }

            /// Returns the state of a plugin of this brain, by its type. In the hooks of a plugin, the state of one that follows it
            /// is that before the hook.
            ///
            /// # Errors
            ///
            /// An [`Error`](crate::Error) when no plugin of this brain has such a state, or the stored one does not match the type.
            pub fn plugin_state<Q: super::plugin_state::PluginState>(&self) -> Result<Q> {
                super::plugin_state::read_named(&self.scope.plugins, Q::NAME)
            }

            /// Returns the state of an instance of a plugin of this brain, by the name that
            /// [`LoopPlugin::named`](crate::dsl::LoopPlugin::named) gave it.
            ///
            /// # Errors
            ///
            /// An [`Error`](crate::Error) when this brain has no such instance, or the stored state does not match the type.
            pub fn plugin_state_named<Q: super::plugin_state::PluginState>(&self, instance: &str) -> Result<Q> {
                let name = super::plugin_state::instance_name(instance, Q::NAME);
                super::plugin_state::read_named(&self.scope.plugins, &name)
            }

            /// Returns the project's brains, for access by name.
            #[must_use]
            pub const fn brains(&self) -> super::context::Brains<'_> {
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

/// Returns the path of the brain that contains a stage, an iteration or a call.
pub(super) fn brain_path(path: &Path) -> Path {
    let stage = stage_path(path);
    stage.parent().unwrap_or_default()
}

/// Returns the path of the stage that contains a stage, an iteration or a call.
pub(super) fn stage_path(path: &Path) -> Path {
    match path.last() {
        Some(Segment::Iteration(_) | Segment::Call(..) | Segment::Question(..)) => path.parent().unwrap_or_default(),
        Some(Segment::Stage(_)) | None => path.clone(),
    }
}

pub(super) fn read_only<S: State, How>(scope: &Scope) -> Result<ReadOnly<S, How>> {
    scope.state.shared().map(ReadOnly::new)
}

pub(super) fn options<O: Options>(scope: &Scope) -> Result<ReadOnly<O, DeclaredWithOptions>> {
    scope.options.shared().map(ReadOnly::new)
}

macro_rules! once_method {
    ($context:ident) => {
        impl<O, S, V> $context<O, S, V> {
            /// Computes a value once: it is recorded under `name`, and when this step or tool reruns after a crash or a
            /// failed try, it gets the recorded value and does not start `work`. Code with several side effects wraps each in its
            /// own `once`. A crash can still occur between the work and its record: pass
            /// [`idempotency_key`](Self::idempotency_key) to services where a repetition matters.
            ///
            /// # Errors
            ///
            /// The error of `work`, which is not recorded, or an [`Error`](crate::Error) when the value cannot be encoded as JSON, or the
            /// recorded one cannot be decoded as `T`.
            pub async fn once<T: Serialize + DeserializeOwned>(
                &self,
                name: &str,
                work: impl Future<Output = Result<T>> + Send,
            ) -> Result<T> {
                let max_bytes = self.scope.max_bytes();
                let encoded = Box::pin(async move { encode_state(&work.await?, max_bytes) });
                let value = self.scope.link.once(&self.scope.path, name, encoded).await?;
                decode(format_args!("the recorded value `{name}`"), &value)
            }
        }
    };
}

/// The context of a step. It owns the state: the step returns the next one.
pub struct StepContext<O = (), S = (), V = ()> {
    /// The state; the step returns the next one.
    pub state: S,
    /// The options of the run.
    pub options: ReadOnly<O, DeclaredWithOptions>,
    /// The services.
    pub services: Arc<V>,
    pub(super) scope: Scope,
    key: String,
}

shared_methods!(StepContext<O, S, V>);
once_method!(StepContext);

impl<O: Options, S: State, V: Services> StepContext<O, S, V> {
    pub(super) fn new(scope: Scope) -> Result<Self> {
        Ok(Self {
            state: scope.state.owned()?,
            options: options(&scope)?,
            services: services(&scope.services)?,
            key: format!("{}:{}", scope.run, scope.path),
            scope,
        })
    }
}

impl<O, S, V> StepContext<O, S, V> {
    /// Returns a key that is the same for every try of this step, for services that deduplicate requests.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.key
    }

    /// Creates a question to a model; the question and its answer are recorded, and a later try of the step gets the
    /// recorded answer.
    pub fn model(&self) -> ModelCall {
        ModelCall::new(Arc::clone(&self.scope.link), self.scope.path.clone())
    }
}

/// The context of a loop's configuration closure, which runs before every model call. It derefs to its [inputs](LoopInputs).
///
/// The closures of the loop's tools run later and have contexts of their own, so they cannot capture this one.
pub struct LoopContext<O = (), S = (), V = ()> {
    inputs: LoopInputs<O, S, V>,
    scope: Scope,
    /// Without `Sync`, a capture of this context is an error of [`Standalone`](super::Standalone), whose message says what to do,
    /// and not one about lifetimes.
    _unshared: PhantomData<Cell<()>>,
}

shared_methods!(LoopContext<O, S, V>);

/// What the closure of a loop sees: `cx.state`, `cx.options`, `cx.services`.
pub struct LoopInputs<O = (), S = (), V = ()> {
    /// The current state, [read-only](ReadOnly).
    pub state: ReadOnly<S, ChangedByToolsAndOnExit>,
    /// The options of the run.
    pub options: ReadOnly<O, DeclaredWithOptions>,
    /// The services.
    pub services: Arc<V>,
}

impl<O, S, V> fmt::Debug for LoopInputs<O, S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopInputs").finish_non_exhaustive()
    }
}

impl<O, S, V> Deref for LoopContext<O, S, V> {
    type Target = LoopInputs<O, S, V>;

    fn deref(&self) -> &LoopInputs<O, S, V> {
        &self.inputs
    }
}

impl<O: Options, S: State, V: Services> LoopContext<O, S, V> {
    pub(super) fn new(scope: Scope) -> Result<Self> {
        let inputs =
            LoopInputs { state: read_only(&scope)?, options: options(&scope)?, services: services(&scope.services)? };
        Ok(Self { inputs, scope, _unshared: PhantomData })
    }

    /// Returns the loop's own record; `None` before its first iteration.
    #[must_use]
    pub fn history(&self) -> Option<Prompt> {
        self.scope.link.record(&stage_path(&self.scope.path))
    }
}

/// The context of a tool. The state is that of the tool's start; [`update`](ToolContext::update) changes it.
#[derive_where(Clone)]
pub struct ToolContext<O = (), S = (), V = ()> {
    /// The state at the tool's start. It is shared with other calls and [read-only](ReadOnly):
    /// [`update`](ToolContext::update) changes it when the call's result is recorded.
    pub state: ReadOnly<S, ChangedWithUpdate>,
    /// The options of the run.
    pub options: ReadOnly<O, DeclaredWithOptions>,
    /// The services.
    pub services: Arc<V>,
    pub(super) scope: Scope,
    call: Arc<CallData>,
}

/// What the clones of a tool's context share, for one try of the call.
pub(super) struct CallData {
    key: String,
    updates: Mutex<Vec<Update>>,
}

impl CallData {
    /// Puts the updates of the context before those of the reply.
    pub(super) fn complete(&self, reply: &mut UntypedReply) {
        let made = std::mem::take(&mut *self.updates.lock());
        if !made.is_empty() {
            reply.updates.splice(..0, made);
        }
    }
}

shared_methods!(ToolContext<O, S, V>);
once_method!(ToolContext);

/// The types of a [`ToolContext`], through which `#[tool]` resolves an alias.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `ToolContext`",
    label = "the parameter `cx` of a tool is its context: a `ToolContext<Options, State, Services>`, or an alias of one",
    note = "give an argument that the model fills in another name, and a type that is not called `Cx`, `Ctx` or `Context`"
)]
pub trait AnyToolContext {
    /// The options.
    type Options;
    /// The state.
    type State;
    /// The services.
    type Services;
}

impl<O, S, V> AnyToolContext for ToolContext<O, S, V> {
    type Options = O;
    type State = S;
    type Services = V;
}

impl<O: Options, S: State, V: Services> ToolContext<O, S, V> {
    pub(super) fn new(scope: Scope) -> Result<Self> {
        Ok(Self {
            state: read_only(&scope)?,
            options: options(&scope)?,
            services: services(&scope.services)?,
            call: Arc::new(CallData {
                key: [scope.run.as_str(), ":", scope.path.as_str()].concat(),
                updates: Mutex::default(),
            }),
            scope,
        })
    }

    pub(super) const fn call(&self) -> &Arc<CallData> {
        &self.call
    }

    /// Changes the state when the call's result is recorded, after the updates of results that were recorded earlier. Calls
    /// that run at the same time lose no update of each other:
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Add { item: String }
    /// # let _ = brain("Shopping").state(Vec::<String>::new()).r#loop("Collect", |cx| cx.system("").tool("add", |t| {
    /// t.execute(async |Add { item }, cx| {
    ///     cx.update(|list| list.push(item));
    ///     Ok("added")
    /// })
    /// # }));
    /// ```
    ///
    /// Several updates apply in order, then those of [`ToolReply::update`]. `cx.state` stays the state of the tool's start. A
    /// tool that fails, or whose update panics, changes nothing; a retry begins without updates. The state of a tool that waits
    /// changes before the wait. Updates after the function has returned, and those of other closures of the tool, such as its
    /// approval, have no effect.
    pub fn update(&self, update: impl FnOnce(&mut S) + Send + 'static) {
        self.call.updates.lock().push(Box::new(move |document: &StateValue| document.updated(update)));
    }
}

impl<O, S, V> ToolContext<O, S, V> {
    /// Returns the call's key, the same for every try, for services that deduplicate requests.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.call.key
    }

    /// Returns whether a person has approved this call. The need for an approval was decided after the model's answer, so a
    /// tool that requires one checks again when it runs: another call may have changed the situation.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.scope.link.is_approved(&self.scope.path)
    }

    /// Creates a result that also waits, sets triggers, has a shorter text for the model, or changes the state.
    ///
    /// If the value cannot be encoded as JSON, the call fails.
    pub fn result<T: Serialize>(&self, value: T) -> ToolReply<S> {
        ToolReply::new(&value, self.scope.max_bytes())
    }

    /// Returns the record of the loop that called the tool.
    #[must_use]
    pub fn history(&self) -> Option<Prompt> {
        self.scope.link.record(&stage_path(&self.scope.path))
    }

    /// Shows data in a user interface. The model does not see it; interfaces without this kind of widget show `fallback`.
    ///
    /// Returns the widget's id, with which [`ToolContext::replace_widget`] can replace it, also in a later call if the
    /// state stores the id.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::Error) when `data` cannot be encoded as JSON, or the call has shown 1000 files and widgets.
    pub fn display_widget(
        &self,
        kind: impl Into<String>,
        data: impl Serialize,
        fallback: impl Into<String>,
    ) -> Result<PublicId> {
        self.widget(None, kind.into(), &data, fallback.into())
    }

    /// Replaces an earlier output, such as an older version of a chart.
    ///
    /// The record contains both. The returned id names the new widget; the old id still works. An id is valid for outputs of
    /// any loop of this run, but not of an earlier run of the conversation.
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
    /// An [`Error`](crate::Error) when `data` cannot be encoded as JSON, or the call has shown 1000 files and widgets.
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
        let widget = WidgetOutput { kind, data: encode(data, self.scope.max_bytes())?, fallback, replaces };
        self.scope.link.output(&self.scope.path, SideOutput::Widget(widget))
    }

    /// Records an output of an application-defined type; see [`OutputType`].
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::Error) when the output cannot be encoded as JSON, or the call has shown 1000 outputs.
    pub fn add_output<T: OutputType>(&self, output: &T) -> Result<PublicId> {
        let custom = CustomOutput {
            kind: T::KIND.to_owned(),
            data: encode(output, self.scope.max_bytes())?,
            fallback: output.fallback(),
            model_text: output.model_text(),
        };
        self.scope.link.output(&self.scope.path, SideOutput::Custom(custom))
    }

    /// Creates a trigger that fires once; [`Trigger::every`] makes it repeat, and [`ToolReply::set_trigger`] sets it. Its id depends
    /// on this call and on `what`, so it is the same for every try.
    pub fn trigger(&self, what: impl Into<String>, due: Timestamp) -> Trigger {
        let what = what.into();
        let hash = hash_text(&format!("{}\n{what}", self.call.key));
        let short: String = hash.as_str().chars().take(16).collect();
        Trigger::once(TriggerId::from(format!("t-{short}")), what, due)
    }

    /// Lists the triggers of the run's conversation, else of its user, else of the run itself, earliest due time first.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::Error) when they cannot be read.
    pub async fn triggers(&self) -> Result<Vec<Timer>> {
        self.scope.link.triggers().await
    }

    /// Shows the progress of the tool. It is live only, never recorded.
    pub fn progress(&self, text: impl Into<String>) {
        self.scope.link.progress(&self.scope.path, text.into());
    }
}
