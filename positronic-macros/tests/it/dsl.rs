//! A stand-in for the DSL: the same names and shapes, with nothing behind them but what a test reads.

use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::time::Duration;

use futures::FutureExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub trait Options {}
pub trait State {}
pub trait Services {}

impl<T> Options for T {}
impl<T> State for T {}
impl<T> Services for T {}

pub type Result<T> = std::result::Result<T, String>;
type Run<O, S, V> = Box<dyn Fn(Value, ToolContext<O, S, V>) -> Pin<Box<dyn Future<Output = Result<Value>>>>>;

/// What a tool is told about its call.
#[derive(Clone, Default)]
pub struct ToolContext<O = (), S = (), V = ()> {
    pub options: O,
    pub state: S,
    pub services: V,
}

/// A tool, open to be looked at.
pub struct Tool<O, S, V> {
    pub id: String,
    pub said: Vec<String>,
    pub schema: Value,
    run: Run<O, S, V>,
}

/// Notes what it is told.
pub struct ToolBuilder<O, S, V> {
    said: Vec<String>,
    context: PhantomData<(O, S, V)>,
}

/// A builder that has its function.
pub struct Finished<O, S, V> {
    said: Vec<String>,
    schema: Value,
    run: Run<O, S, V>,
}

impl<O, S, V> Tool<O, S, V> {
    pub fn new(id: &str, build: impl FnOnce(ToolBuilder<O, S, V>) -> Finished<O, S, V>) -> Self {
        let Finished { said, schema, run } = build(ToolBuilder { said: Vec::new(), context: PhantomData });
        Self { id: id.to_owned(), said, schema, run }
    }

    pub fn call(&self, arguments: Value, context: ToolContext<O, S, V>) -> Result<Value> {
        (self.run)(arguments, context).now_or_never().unwrap()
    }
}

impl<O, S, V> ToolBuilder<O, S, V> {
    fn say(mut self, what: impl Into<String>) -> Self {
        self.said.push(what.into());
        self
    }

    pub fn description(self, text: &str) -> Self {
        self.say(format!("description: {text}"))
    }

    pub fn title(self, text: &str) -> Self {
        self.say(format!("title: {text}"))
    }

    pub fn requires_approval(self, reason: &str) -> Self {
        self.say(format!("approval: {reason}"))
    }

    pub fn timeout(self, duration: Duration) -> Self {
        self.say(format!("timeout: {duration:?}"))
    }

    pub fn retries(self, count: u32) -> Self {
        self.say(format!("retries: {count}"))
    }

    pub fn exit(self) -> Self {
        self.say("exit")
    }

    pub fn read_only(self) -> Self {
        self.say("read only")
    }

    pub fn idempotent(self) -> Self {
        self.say("idempotent")
    }

    pub fn destructive(self) -> Self {
        self.say("destructive")
    }

    pub fn sequential(self) -> Self {
        self.say("sequential")
    }

    pub fn execute<A, F, T>(self, run: impl Fn(A, ToolContext<O, S, V>) -> F + 'static) -> Finished<O, S, V>
    where
        A: DeserializeOwned + JsonSchema,
        F: Future<Output = Result<T>> + 'static,
        T: Serialize,
    {
        let schema = schemars::schema_for!(A).to_value();
        let run: Run<O, S, V> = Box::new(move |arguments, context| match serde_json::from_value(arguments) {
            Ok(arguments) => {
                let done = run(arguments, context);
                Box::pin(async { Ok(serde_json::to_value(done.await?).unwrap()) })
            }
            Err(error) => Box::pin(async move { Err(error.to_string()) }),
        });
        Finished { said: self.said, schema, run }
    }
}

/// A brain that remembers where each of its stages was written.
pub struct Brain {
    pub title: String,
    pub stages: Vec<(&'static str, &'static Location<'static>)>,
    pub inner: Vec<Self>,
}

/// What a config closure sees.
pub struct LoopContext;

impl LoopContext {
    pub fn number(&self) -> u32 {
        7
    }
}

#[track_caller]
pub fn brain(title: &str) -> Brain {
    Brain { title: title.to_owned(), stages: vec![("brain", Location::caller())], inner: Vec::new() }
}

impl Brain {
    #[track_caller]
    pub fn step<T>(self, _: &str, work: impl AsyncFnOnce(LoopContext) -> T) -> Self {
        work(LoopContext).now_or_never().unwrap();
        self.note("step", Location::caller())
    }

    #[track_caller]
    pub fn r#loop<T>(self, _: &str, config: impl Fn(&LoopContext) -> T) -> Self {
        config(&LoopContext);
        self.note("loop", Location::caller())
    }

    #[track_caller]
    pub fn brain(mut self, inner: Self) -> Self {
        self.inner.push(inner);
        self.note("brain", Location::caller())
    }

    fn note(mut self, stage: &'static str, place: &'static Location<'static>) -> Self {
        self.stages.push((stage, place));
        self
    }
}
