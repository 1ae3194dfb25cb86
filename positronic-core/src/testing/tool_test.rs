//! Unit tests of single tools: one call, without a model, a store or a run.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use futures::future::BoxFuture;
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::Value;

use super::clock::TestClock;
use crate::definition::{BrainDefinition, Link, NewChild, Scope, StateValue, ToolBody, ToolDefinition, encode};
use crate::dsl::{IntoBrain, IntoServices, Options, Requirement, Services, State, Tool};
use crate::error::{Error, Result};
use crate::record::{
    Fired, MAX_DOCUMENT_BYTES, Message, ModelResponse, Path, Prompt, PublicId, Question, RunId, Scheduled, SideOutput,
    Timer, Timestamp, TriggerChange, WaitSpec, sha256,
};

/// Calls single tools with a state, options and services.
///
/// A call is checked as in a run: its arguments against the tool's schema, then its approval. Changes apply to a copy
/// of the state, so each call sees the state of the test. A tool that asks a model, a brain or a record needs a run:
/// use [`Test`](super::Test).
///
/// ```
/// use positronic_core::dsl::{Tool, ToolBuilder};
/// use positronic_core::prelude::*;
/// use positronic_core::testing::ToolTest;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use serde_json::json;
///
/// #[derive(Default, Serialize, Deserialize)]
/// struct Ticket { refunds: Vec<u32> }
/// #[derive(Deserialize, JsonSchema)]
/// struct Refund { amount: u32 }
///
/// fn refund() -> Tool<(), Ticket> {
///     Tool::new("refund", |t: ToolBuilder<(), Ticket>| {
///         t.approval(|refund: &Refund, _| (refund.amount > 100).then(|| "more than 100".to_owned()))
///             .execute(async |Refund { amount }, cx| {
///                 cx.update(move |ticket| ticket.refunds.push(amount));
///                 Ok("paid")
///             })
///     })
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let called = ToolTest::new((), Ticket::default()).call(&refund(), json!({"amount": 120})).await?;
///
/// assert_eq!(called.approval.as_deref(), Some("more than 100"));
/// assert_eq!(called.output, "paid");
/// assert_eq!(called.state.refunds, [120]);
/// # Ok(())
/// # }
/// ```
#[derive_where(Debug)]
pub struct ToolTest<O, S, V = ()> {
    options: Result<Arc<Value>>,
    state: Result<Arc<Value>>,
    #[derive_where(skip)]
    services: Arc<V>,
    types: PhantomData<fn(O, S)>,
}

/// The outcome of a tool's call; see [`ToolTest::call`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Called<S> {
    /// The reason for an approval; `None` if the call needs none.
    pub approval: Option<String>,
    /// The result.
    pub output: Value,
    /// The text that the model would read instead of the result.
    pub brief: Option<String>,
    /// The state after the call.
    pub state: S,
    /// What the call would wait for.
    pub waits: Vec<WaitSpec>,
    /// Its files, widgets and other outputs, in order.
    pub outputs: Vec<SideOutput>,
    /// Its progress messages.
    pub progress: Vec<String>,
    /// The triggers that it sets and deletes.
    pub triggers: Vec<TriggerChange>,
}

impl<O: Options, S: State> ToolTest<O, S> {
    /// Creates a test of tools with these options and this state.
    #[expect(clippy::needless_pass_by_value, reason = "a test hands its values over; references would read oddly")]
    pub fn new(options: O, state: S) -> Self {
        let (options, state) =
            (encode(&options, MAX_DOCUMENT_BYTES).map(Arc::new), encode(&state, MAX_DOCUMENT_BYTES).map(Arc::new));
        Self { options, state, services: Arc::new(()), types: PhantomData }
    }

    /// Sets the services, or an `Arc` of them.
    #[must_use]
    pub fn services<V: Services>(self, services: impl IntoServices<V>) -> ToolTest<O, S, V> {
        let Self { options, state, types, .. } = self;
        ToolTest { options, state, services: services.into_services(), types }
    }
}

impl<O: Options, S: State, V: Services> ToolTest<O, S, V> {
    /// Runs the configuration of a brain's loop with the test's state, and returns its tools by name, without
    /// those of its plugins. It finds duplicate tools and, in a loop without plugins, unknown names in `exit_on`, even in a loop that a run
    /// reaches late.
    ///
    /// # Errors
    ///
    /// An [`Error`] if the brain has no such loop, or its configuration is refused.
    ///
    /// # Panics
    ///
    /// If the configuration panics.
    pub fn tools<B>(&self, brain: &B, stage: &str) -> Result<IndexMap<String, Tool<O, S, V>>>
    where
        B: IntoBrain<Options = O, Services: Requirement<Services = V>>,
    {
        let definition = brain.definition();
        let path = Path::root().stage(stage);
        let Some(stage) = definition.stage(stage).and_then(|stage| stage.body.as_loop()) else {
            return Err(Error::new(format!("the brain `{}` has no loop named `{path}`", definition.title)));
        };
        let mut configured = stage.configured(self.scope(path, Arc::default())?)?;
        if configured.plugins.is_empty() {
            configured.mark_exits()?;
        }
        let named =
            |(id, definition): (crate::record::ToolId, _)| (id.as_str().to_owned(), Tool::of_definition(definition));
        Ok(configured.tools.into_iter().map(named).collect())
    }

    /// Calls a tool once.
    ///
    /// # Errors
    ///
    /// The tool's error, or an [`Error`] if the arguments do not match its schema or the tool runs a brain.
    ///
    /// # Panics
    ///
    /// If the tool panics.
    pub async fn call(&self, tool: &Tool<O, S, V>, arguments: Value) -> Result<Called<S>> {
        let definition = tool.definition();
        let ToolDefinition { decl, gate, body, .. } = &**definition;
        let ToolBody::Function { execute, .. } = body else {
            return Err(Error::new(format!("the tool `{}` runs a brain; test the brain", decl.id)));
        };
        let mut arguments = arguments;
        arguments.sort_all_objects();
        definition
            .accept(&mut arguments)
            .map_err(|reason| Error::new(format!("the arguments do not match the schema: {reason}")))?;
        let (arguments, link) = (Arc::new(arguments), Arc::new(RecordingLink::default()));
        let scope = self.scope(Path::root().stage("Test").call(0, 0), Arc::clone(&link))?;
        let asked = match gate {
            Some(gate) => gate(Arc::clone(&arguments), scope.clone()).await?,
            None => None,
        };
        link.write(|seen| seen.approved = asked.is_some());
        let reply = execute(arguments, scope.clone()).await?;
        let mut state = scope.state;
        for update in reply.updates {
            state = state.with_json(Arc::new(update(&state)?));
        }
        let CallOutputs { outputs, progress, .. } = link.write(std::mem::take);
        Ok(Called {
            approval: asked.map(|gate| gate.reason),
            output: reply.output,
            brief: reply.brief,
            state: state.owned()?,
            waits: reply.waits.into_iter().map(|wait| wait.spec).collect(),
            outputs,
            progress,
            triggers: reply.triggers,
        })
    }

    fn scope(&self, path: Path, link: Arc<RecordingLink>) -> Result<Scope> {
        let document = |json: &Result<Arc<Value>>| match json {
            Ok(json) => Ok(StateValue::new(Arc::clone(json), MAX_DOCUMENT_BYTES)),
            Err(error) => Err(Error::new(error.to_string())),
        };
        Ok(Scope {
            state: document(&self.state)?,
            options: document(&self.options)?,
            plugins: crate::record::PluginStates::default(),
            services: Arc::clone(&self.services) as crate::definition::AnyServices,
            run: RunId::from("run-1".to_owned()),
            user: None,
            path,
            link,
        })
    }
}

/// The outputs and progress messages of a call.
#[derive(Default)]
struct CallOutputs {
    approved: bool,
    outputs: Vec<SideOutput>,
    progress: Vec<String>,
    blobs: HashMap<String, Vec<u8>>,
    once: HashMap<String, Arc<Value>>,
}

/// A link without a run: it records what arrives.
#[derive(Default)]
struct RecordingLink(Mutex<CallOutputs>);

impl RecordingLink {
    fn write<T>(&self, change: impl FnOnce(&mut CallOutputs) -> T) -> T {
        change(&mut self.0.lock())
    }
}

impl Link for RecordingLink {
    fn output(&self, path: &Path, output: SideOutput) -> Result<PublicId> {
        Ok(self.write(|seen| {
            seen.outputs.push(output);
            path.output_id(seen.outputs.len() - 1)
        }))
    }

    fn keep(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String>> {
        let hash = sha256(&bytes);
        self.write(|seen| seen.blobs.insert(hash.clone(), bytes));
        Box::pin(std::future::ready(Ok(hash)))
    }

    fn is_approved(&self, _: &Path) -> bool {
        self.write(|seen| seen.approved)
    }

    fn now(&self) -> Timestamp {
        TestClock::BEGIN
    }

    fn triggers(&self) -> BoxFuture<'static, Result<Vec<Timer>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn fired(&self) -> Option<Fired> {
        None
    }

    fn scheduled(&self) -> Option<Scheduled> {
        None
    }

    fn progress(&self, _: &Path, text: String) {
        self.write(|seen| seen.progress.push(text));
    }

    fn ask(&self, _: Path, _: Question) -> BoxFuture<'static, Result<ModelResponse>> {
        Box::pin(std::future::ready(Err(Error::new("a `ToolTest` has no model; test this with a `Test`"))))
    }

    fn limit<'a>(&'a self, _: &'a Path, hook: BoxFuture<'a, ()>) -> BoxFuture<'a, Result<(), Duration>> {
        Box::pin(async move {
            hook.await;
            Ok(())
        })
    }

    fn once<'a>(
        &'a self,
        _: &'a Path,
        name: &'a str,
        work: BoxFuture<'a, Result<Value>>,
    ) -> BoxFuture<'a, Result<Arc<Value>>> {
        Box::pin(async move {
            if let Some(known) = self.write(|seen| seen.once.get(name).cloned()) {
                return Ok(known);
            }
            let value = Arc::new(work.await?);
            self.write(|seen| seen.once.insert(name.to_owned(), Arc::clone(&value)));
            Ok(value)
        })
    }

    fn start_child(&self, _: &Path, _: NewChild) -> BoxFuture<'static, Result<RunId>> {
        Box::pin(std::future::ready(Err(Error::new("a `ToolTest` starts no runs; test this with a `Test`"))))
    }

    fn record(&self, _: &Path) -> Option<Prompt> {
        None
    }

    fn messages(&self, _: &Path) -> Vec<Message> {
        Vec::new()
    }

    fn brain(&self, _: &str) -> Option<Arc<BrainDefinition>> {
        None
    }

    fn brains(&self) -> Vec<String> {
        Vec::new()
    }

    fn action(&self, _: &str) -> Option<Arc<ToolDefinition>> {
        None
    }
}
