//! A question that a step asks a model.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::plan::Link;
use crate::record::{ModelResponse, OutputFormat, Path, Question, Settings, Tier};
use crate::tools::Schema;

/// A question to a model, asked inside a step and recorded.
#[must_use = "a question is sent by `ask`, `ask_for` or `answer`"]
pub struct ModelCall {
    link: Arc<dyn Link>,
    path: Path,
    system: String,
    settings: Settings,
}

impl ModelCall {
    pub(super) fn new(link: Arc<dyn Link>, path: Path) -> Self {
        Self { link, path, system: String::new(), settings: Settings::default() }
    }

    /// Sets the system prompt.
    pub fn system(mut self, prompt: impl Into<String>) -> Self {
        self.system = prompt.into();
        self
    }

    /// Chooses which of the runner's models answers.
    pub const fn tier(mut self, tier: Tier) -> Self {
        self.settings.tier = tier;
        self
    }

    /// Sets how the model is to answer.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Asks, and returns the answer's text.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the model cannot be reached, after the runner's retries.
    pub async fn ask(self, text: impl Into<String>) -> Result<String> {
        Ok(self.answer(text).await?.text())
    }

    /// Asks for an answer of a type, by its schema.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the model cannot be reached, or when its answer does not fit the schema. It is permanent, since
    /// a later try of the step would get the recorded answer.
    pub async fn ask_for<T: DeserializeOwned + JsonSchema + 'static>(mut self, text: impl Into<String>) -> Result<T> {
        let schema = Schema::of::<T>();
        let name = T::schema_name().into_owned();
        self.settings.output = OutputFormat::JsonSchema { name, schema: Arc::clone(schema.json()) };
        let text = self.answer(text).await?.text();
        let misfit = |reason: String| Error::new(format!("the model's answer does not fit: {reason}"));
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| misfit(error.to_string()))?;
        schema.check(&value).map_err(misfit)?;
        serde_json::from_value(value).map_err(|error| misfit(error.to_string()))
    }

    /// Asks, and returns the whole answer.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the question is empty, which no provider answers, and when the model cannot be reached, after the
    /// runner's retries.
    pub async fn answer(self, text: impl Into<String>) -> Result<ModelResponse> {
        let text = text.into();
        if text.trim().is_empty() {
            return Err(Error::new("a question to a model needs a text, and this one is empty"));
        }
        let question = Question { system: self.system, text, settings: self.settings };
        self.link.ask(self.path, question).await
    }
}

impl fmt::Debug for ModelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelCall").field("path", &self.path).field("system", &self.system).finish_non_exhaustive()
    }
}
