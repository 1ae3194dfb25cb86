//! Puts a tool into a brain's loop and calls it there, without a runner.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::Result;
use positronic_core::definition::{
    BrainDefinition, Link, LoopDefinition, NewChild, Scope, StateValue, ToolBody, ToolDefinition, UntypedReply,
};
use positronic_core::dsl::{IntoBrain, Requirement, Services, State, Tool, brain};
use positronic_core::record::{
    Fired, Gate, MAX_DOCUMENT_BYTES, Message, ModelResponse, Path, PluginStates, Prompt, PublicId, Question, RunId,
    Scheduled, SideOutput, Timer, Timestamp, ToolId,
};
use serde_json::{Value, json};

/// A tool in a loop of a brain.
pub(crate) struct Bench {
    pub(crate) tool: Arc<ToolDefinition>,
    scope: Scope,
}

impl Bench {
    /// Puts the tool into a brain without state and services.
    pub(crate) fn bare(tool: Tool) -> Self {
        Self::with((), (), tool)
    }

    /// Puts the tool into a brain with this state and these services.
    pub(crate) fn with<S: State + Clone, V: Services + Clone>(state: S, services: V, tool: Tool<(), S, V>) -> Self {
        let scope = scope(serde_json::to_value(&state).unwrap(), services.clone());
        let brain = brain("Bench").services::<V>().state(state);
        let definition =
            iteration(brain.r#loop("Loop", move |cx| cx.system("").tools([tool.clone()])), services, &scope);
        Self { tool: Arc::clone(&definition.tools[0]), scope }
    }

    /// Calls the tool with valid arguments.
    pub(crate) fn reply(&self, arguments: Value) -> Result<UntypedReply> {
        self.tool.schema.check(&arguments).unwrap();
        let ToolBody::Function { execute, .. } = &self.tool.body else { panic!("no function") };
        execute(Arc::new(arguments), self.scope.clone()).now_or_never().unwrap()
    }

    /// Calls the tool and returns the text that the model reads.
    pub(crate) fn call(&self, arguments: Value) -> Value {
        self.reply(arguments).unwrap().output
    }

    /// Returns the validation error of arguments.
    pub(crate) fn refusal(&self, arguments: &Value) -> String {
        self.tool.schema.check(arguments).unwrap_err()
    }

    /// Returns the approval's options.
    pub(crate) fn approval(&self) -> Option<Gate> {
        let gate = self.tool.gate.as_ref()?;
        let verdict = gate(Arc::new(json!({})), self.scope.clone()).now_or_never().unwrap();
        verdict.unwrap()
    }
}

/// Prepares the first iteration of a brain's only loop.
pub(crate) fn iteration<B: IntoBrain<Options = ()>>(
    brain: B,
    services: <B::Services as Requirement>::Services,
    scope: &Scope,
) -> LoopDefinition {
    let definition = brain.into_brain().bind(services).definition();
    let stage = definition.stages.last().unwrap().body.as_loop().unwrap();
    stage.configured(scope.clone()).unwrap()
}

/// Creates the context that a runner passes to author code.
pub(crate) fn scope<V: Services>(state: Value, services: V) -> Scope {
    Scope {
        state: StateValue::new(Arc::new(state), MAX_DOCUMENT_BYTES),
        options: StateValue::new(Arc::new(Value::Null), MAX_DOCUMENT_BYTES),
        plugins: PluginStates::default(),
        services: Arc::new(services),
        run: RunId::new("run"),
        user: None,
        path: Path::root().stage("Loop").call(1, 0),
        link: Arc::new(NoRun),
    }
}

/// Lists the tools of an iteration.
pub(crate) fn names(definition: &LoopDefinition) -> Vec<&str> {
    definition.tools.keys().map(ToolId::as_str).collect()
}

/// A context without a run.
struct NoRun;

impl Link for NoRun {
    fn output(&self, path: &Path, _: SideOutput) -> Result<PublicId> {
        Ok(path.output_id(0))
    }

    fn keep(&self, _: Vec<u8>) -> BoxFuture<'static, Result<String>> {
        Box::pin(std::future::pending())
    }

    fn is_approved(&self, _: &Path) -> bool {
        false
    }

    fn now(&self) -> Timestamp {
        Timestamp(0)
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

    fn progress(&self, _: &Path, _: String) {}

    fn ask(&self, _: Path, _: Question) -> BoxFuture<'static, Result<ModelResponse>> {
        Box::pin(std::future::pending())
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
        _: &'a str,
        work: BoxFuture<'a, Result<Value>>,
    ) -> BoxFuture<'a, Result<Arc<Value>>> {
        Box::pin(async move { Ok(Arc::new(work.await?)) })
    }

    fn start_child(&self, _: &Path, _: NewChild) -> BoxFuture<'static, Result<RunId>> {
        Box::pin(std::future::pending())
    }

    fn messages(&self, _: &Path) -> Vec<Message> {
        Vec::new()
    }

    fn record(&self, _: &Path) -> Option<Prompt> {
        None
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
