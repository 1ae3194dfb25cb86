//! A model with scripted replies, for tests.
//!
//! ```
//! use positronic_core::model::scripted::{Reply, ScriptedModel};
//! use serde_json::json;
//!
//! let model = ScriptedModel::new([
//!     Reply::call("search_docs", json!({ "query": "refunds" })).and_text("Let me see."),
//!     Reply::text("You have 30 days."),
//! ])
//! .on("Chat/0.0/Ask", [Reply::text("a sub-brain's loop has replies of its own")]);
//! # let _ = std::mem::ManuallyDrop::new(model);
//! ```
//!
//! Replies are given in order, those of a loop first. A script must be used up: replies that are left when the model is
//! dropped fail the test. A run that still waits at the end of a test keeps its model, and the runtime drops both where
//! a panic fails nothing; there, call [`ScriptedModel::assert_used`]. A request without a reply fails its run.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use indexmap::IndexMap;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::plain::{emit_pieces, plain_wire};
use super::{DeltaSink, Model};
use crate::record::{
    Charge, Finish, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Part, Path, ProposedCall,
    ResponseMetadata, Usage,
};

/// A model that answers from a script or a function.
pub struct ScriptedModel {
    replies: Replies,
}

enum Replies {
    Script(Mutex<Script>),
    Function(Box<dyn Fn(&ModelRequest) -> Reply + Send + Sync>),
}

#[derive(Debug, Default)]
struct Script {
    anywhere: VecDeque<Reply>,
    by_loop: IndexMap<String, VecDeque<Reply>>,
    requests: Vec<ModelRequest>,
}

impl ScriptedModel {
    /// Creates a model that gives the replies in order.
    #[must_use]
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let script = Script { anywhere: replies.into_iter().collect(), ..Script::default() };
        Self { replies: Replies::Script(Mutex::new(script)) }
    }

    /// Creates a model that calls a function for each reply. It never runs out and records nothing.
    #[must_use]
    pub fn from_fn(reply: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self { replies: Replies::Function(Box::new(reply)) }
    }

    /// Adds replies only for the loop at `path`, such as `Chat/0.1/Ask`: the requests of parallel sub-brains have no
    /// fixed order. Ignored by a model with a function.
    #[must_use]
    pub fn on(self, path: impl AsRef<str>, replies: impl IntoIterator<Item = Reply>) -> Self {
        if let Some(mut script) = self.script() {
            script.by_loop.entry(path.as_ref().to_owned()).or_default().extend(replies);
        }
        self
    }

    /// Returns the requests so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.script().map(|script| script.requests.clone()).unwrap_or_default()
    }

    /// Checks that every reply was used.
    ///
    /// # Panics
    ///
    /// If a reply is left; the message says where.
    #[track_caller]
    pub fn assert_used(&self) {
        // Taken, so that dropping the model does not panic again.
        let left = self.script().and_then(|mut script| std::mem::take(&mut *script).left());
        complain(left);
    }

    fn script(&self) -> Option<MutexGuard<'_, Script>> {
        match &self.replies {
            Replies::Script(script) => Some(script.lock()),
            Replies::Function(_) => None,
        }
    }

    fn next(&self, request: &ModelRequest) -> Result<Reply, ModelError> {
        match &self.replies {
            Replies::Function(reply) => Ok(reply(request)),
            Replies::Script(script) => script.lock().next(request),
        }
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "fails the test")]
fn complain(left: Option<String>) {
    if let Some(left) = left {
        panic!("the script was not used up: {left}");
    }
}

impl Script {
    fn next(&mut self, request: &ModelRequest) -> Result<Reply, ModelError> {
        self.requests.push(request.clone());
        let asker = request.path.parent().unwrap_or_else(Path::root);
        let own = self.by_loop.get_mut(asker.as_str()).and_then(VecDeque::pop_front);
        own.or_else(|| self.anywhere.pop_front()).ok_or_else(|| {
            let sentence = format!(
                "the script has no reply for request {} (at `{}`); add one to the scripted model",
                self.requests.len(),
                request.path
            );
            ModelError::new(ModelErrorKind::Unscripted, sentence)
        })
    }

    fn left(&self) -> Option<String> {
        let loops = self.by_loop.iter().map(|(path, replies)| (replies, format!(" for `{path}`")));
        let left: Vec<_> = std::iter::once((&self.anywhere, String::new()))
            .chain(loops)
            .filter_map(|(replies, place)| {
                let next = replies.front()?;
                let count = replies.len();
                Some(format!(
                    "{count} {}{place} left, the next is {next}",
                    if count == 1 { "reply" } else { "replies" }
                ))
            })
            .collect();
        (!left.is_empty()).then(|| format!("{} (the model was asked {} times)", left.join("; "), self.requests.len()))
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assert_used();
        }
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").finish_non_exhaustive()
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> String {
        "scripted/scripted".to_owned()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        async move {
            let reply = self.next(request)?;
            if let Some(delay) = reply.after {
                // tokio's timer, so that a test can pause the clock.
                tokio::time::sleep(delay).await;
            }
            let mut response = reply.outcome?;
            emit_pieces(&response, deltas);
            let metadata = &mut response.metadata;
            metadata.provider = "scripted".to_owned();
            metadata.model = request.settings.model.clone().unwrap_or_else(|| "scripted".to_owned());
            Ok(response)
        }
        .boxed()
    }

    fn wire(&self, request: &ModelRequest) -> String {
        plain_wire(request)
    }
}

/// One reply of a [`ScriptedModel`].
#[derive(Debug, Clone)]
#[must_use = "a reply does nothing until a model gives it"]
pub struct Reply {
    outcome: Result<ModelResponse, ModelError>,
    after: Option<Duration>,
}

impl Reply {
    /// Replies with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::response(ModelResponse::default()).and_text(text)
    }

    /// Refuses to answer.
    pub fn refusal(text: impl Into<String>) -> Self {
        let parts = vec![Part::Refusal { text: text.into() }];
        Self::response(ModelResponse { parts, ..ModelResponse::default() })
    }

    /// Replies with a call.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::calls([(tool, arguments)])
    }

    /// Replies with several calls. Arguments that are a JSON string are used as that string, so that they can be malformed.
    pub fn calls<T: Into<String>>(calls: impl IntoIterator<Item = (T, Value)>) -> Self {
        let mut reply = Self::response(ModelResponse::default());
        if let Ok(response) = &mut reply.outcome {
            for (index, (tool, arguments)) in (0..).zip(calls) {
                let arguments = match arguments {
                    Value::String(text) => text,
                    document => document.to_string(),
                };
                response.parts.push(Part::Call { index });
                response.calls.push(ProposedCall { provider_id: None, name: tool.into(), arguments, data: None });
            }
            response.metadata.finish = Finish::Calls;
        }
        reply
    }

    /// Replies with a structured action.
    pub fn action(reasoning: &str, action: &str, input: Value) -> Self {
        let fields = [("reasoning", reasoning.into()), ("action", action.into()), ("input", input)];
        let answer: Value = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self::text(answer.to_string())
    }

    /// Replies with several structured actions.
    pub fn actions<'a>(reasoning: &str, actions: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let actions: Vec<_> = actions
            .into_iter()
            .map(|(action, input)| serde_json::json!({ "action": action, "input": input }))
            .collect();
        Self::text(serde_json::json!({ "reasoning": reasoning, "actions": actions }).to_string())
    }

    /// Fails with an error.
    pub const fn error(error: ModelError) -> Self {
        Self { outcome: Err(error), after: None }
    }

    /// Replies with a complete answer.
    pub const fn response(response: ModelResponse) -> Self {
        Self { outcome: Ok(response), after: None }
    }

    /// Adds a text before the calls.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.with(|response| {
            let index = response.parts.iter().position(|part| matches!(part, Part::Call { .. }));
            response.parts.insert(index.unwrap_or(response.parts.len()), Part::Text { text: text.into() });
        })
    }

    /// Adds reasoning at the beginning.
    pub fn and_reasoning(self, text: impl Into<String>) -> Self {
        self.with(|response| response.parts.insert(0, Part::Reasoning { text: text.into(), data: None }))
    }

    /// Sets the token usage.
    pub fn usage(self, usage: Usage) -> Self {
        self.with(|response| response.metadata = ResponseMetadata { usage, ..std::mem::take(&mut response.metadata) })
    }

    /// Sets the reported cost.
    pub fn cost(self, charge: Charge) -> Self {
        self.with(|response| response.metadata.cost = Some(Box::new(charge)))
    }

    /// Sets the finish reason.
    pub fn finish(self, finish: Finish) -> Self {
        self.with(|response| response.metadata.finish = finish)
    }

    /// Delays the reply; zero means no delay.
    pub const fn after(mut self, delay: Duration) -> Self {
        self.after = if delay.is_zero() { None } else { Some(delay) };
        self
    }

    fn with(mut self, change: impl FnOnce(&mut ModelResponse)) -> Self {
        if let Ok(response) = &mut self.outcome {
            change(response);
        }
        self
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Err(error) => write!(f, "the error \"{error}\""),
            Ok(response) if response.calls.is_empty() => write!(f, "the text {:?}", response.text()),
            Ok(response) => {
                let tools: Vec<_> = response.calls.iter().map(|call| call.name.as_str()).collect();
                write!(f, "a call of {}", tools.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests;
