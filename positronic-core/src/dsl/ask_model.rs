//! Questions of a step to a model.

use std::sync::Arc;

use derive_where::derive_where;
use serde::de::DeserializeOwned;

use super::trait_bounds::TypedAnswer;
use crate::definition::{Link, read_value};
use crate::error::{Error, Result};
use crate::record::{
    AnswerFault, FileRef, Finish, Misfit, ModelResponse, OutputFormat, Path, PausedAnswer, Question, Settings, Tier,
    Usage, check_numbers,
};
use crate::tools::Schema;

/// A recorded question of a step to a model.
#[must_use = "a question is sent by `ask`, `ask_for` or `answer`"]
#[derive_where(Debug)]
pub struct ModelCall {
    #[derive_where(skip)]
    link: Arc<dyn Link>,
    path: Path,
    system: String,
    settings: Settings,
    files: Vec<FileRef>,
    retries: u32,
}

impl ModelCall {
    pub(super) fn new(link: Arc<dyn Link>, path: Path) -> Self {
        Self { link, path, system: String::new(), settings: Settings::default(), files: Vec::new(), retries: RETRIES }
    }

    /// Sets the system prompt.
    pub fn system(mut self, prompt: impl Into<String>) -> Self {
        self.system = prompt.into();
        self
    }

    /// Chooses a tier of the runner's models.
    pub const fn tier(mut self, tier: Tier) -> Self {
        self.settings.tier = tier;
        self
    }

    /// Sets the model settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Adds a file to the question.
    pub fn file(mut self, file: FileRef) -> Self {
        self.files.push(file);
        self
    }

    /// Sets how often [`ModelCall::ask_for`] retries after an answer that does not match; 2 by default.
    pub const fn retries(mut self, times: u32) -> Self {
        self.retries = times;
        self
    }

    /// Sends the question and returns the answer's text.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the model cannot be reached, after the runner's retries, and when its answer is useless
    /// ([`AnswerFault`]): refused, filtered, cut off, or empty.
    pub async fn ask(self, text: impl Into<String>) -> Result<String> {
        let limit = self.settings.max_output_tokens;
        Ok(useful(self.answer(text).await?, limit)?.text())
    }

    /// Requests an answer of a type, by its schema. Code fences around the JSON are ignored. After an answer that does not match,
    /// the question is repeated with the errors, up to [`ModelCall::retries`] times; each answer is recorded.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the model cannot be reached, when its answer is useless as for [`ModelCall::ask`], and when the last
    /// answer does not match the schema. It is permanent, since a later try of the step would get the recorded answers.
    pub async fn ask_for<T: TypedAnswer>(self, text: impl Into<String>) -> Result<T> {
        self.ask_for_checked(text, |_| Ok(())).await
    }

    /// Requests an answer of a type, as [`ask_for`](Self::ask_for), that passes a check.
    pub(super) async fn ask_for_checked<T: TypedAnswer>(
        mut self,
        text: impl Into<String>,
        check: impl Fn(&T) -> Result<(), String> + Send,
    ) -> Result<T> {
        let schema = Schema::object_of::<T>();
        let name = T::schema_name().into_owned();
        self.settings.output = OutputFormat::JsonSchema { name, schema: Arc::clone(schema.json()) };
        let (text, limit, retries) = (text.into(), self.settings.max_output_tokens, self.retries);
        let mut misfits = Vec::new();
        loop {
            let asked = self.send(text.clone(), misfits.clone()).await?;
            if let Some(fault) = fault(&asked, limit).filter(|fault| !matches!(fault, AnswerFault::Empty { .. })) {
                return Err(useless(&asked, &fault));
            }
            let answer = asked.text();
            let checked = read::<T>(&schema, &answer).and_then(|value| check(&value).map(|()| value));
            let message = match checked {
                Ok(value) => return Ok(value),
                Err(message) => message,
            };
            let asked = misfits.len() + 1;
            if usize::try_from(retries).is_ok_and(|retries| asked > retries) {
                let times = if asked == 1 { String::new() } else { format!(", asked {asked} times") };
                return Err(Error::new(format!("the model's answer does not match the schema{times}: {message}")));
            }
            misfits.push(Misfit { answer, message });
        }
    }

    /// Sends the question and returns the complete answer.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the question is empty, which providers reject, and when the model cannot be reached, after the
    /// runner's retries.
    pub async fn answer(self, text: impl Into<String>) -> Result<ModelResponse> {
        self.send(text.into(), Vec::new()).await
    }

    async fn send(&self, text: String, misfits: Vec<Misfit>) -> Result<ModelResponse> {
        if text.trim().is_empty() && self.files.is_empty() {
            return Err(Error::new("the question to the model is empty"));
        }
        let (mut pauses, mut usage) = (0, Usage::default());
        let (system, settings, files) = (self.system.clone(), self.settings.clone(), self.files.clone());
        let mut question = Question { system, text, files, settings, misfits, so_far: Vec::new() };
        loop {
            let mut answer = self.link.ask(self.path.clone(), question.clone()).await?;
            usage += answer.metadata.usage;
            let by = answer.metadata.made_by();
            question.so_far.push(PausedAnswer { parts: std::mem::take(&mut answer.parts), by });
            if answer.metadata.finish != Finish::Paused {
                answer.metadata.usage = usage;
                let parts = question.so_far.into_iter().flat_map(|paused| paused.parts).collect();
                return Ok(ModelResponse { parts, ..answer });
            }
            pauses += 1;
            if pauses > PAUSES {
                return Err(Error::new(format!("the model paused {pauses} times without an answer")));
            }
        }
    }
}

/// How often [`ModelCall::ask_for`] asks again.
const RETRIES: u32 = 2;

/// How often the model may interrupt its answer for long work of the provider's tools.
const PAUSES: u32 = 20;

fn fault(response: &ModelResponse, max_output_tokens: Option<u32>) -> Option<AnswerFault> {
    AnswerFault::of(&response.parts, &response.metadata.finish, max_output_tokens)
}

/// Rejects a useless answer.
fn useful(response: ModelResponse, max_output_tokens: Option<u32>) -> Result<ModelResponse> {
    match fault(&response, max_output_tokens) {
        Some(fault) => Err(useless(&response, &fault)),
        None => Ok(response),
    }
}

fn useless(response: &ModelResponse, fault: &AnswerFault) -> Error {
    let sentence = fault.sentence("the model");
    Error::new(match response.refusal() {
        Some(words) => format!("{sentence}: {words}"),
        None => sentence,
    })
}

/// Decodes an answer; the error describes the mismatch.
fn read<T: DeserializeOwned>(schema: &Schema, answer: &str) -> Result<T, String> {
    let answer = unfenced(answer);
    let mut value: serde_json::Value = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    check_numbers(answer).map_err(|number| format!("it has {number}"))?;
    schema.accept(&mut value)?;
    read_value(schema.inner(&value)).map_err(|error| error.to_string())
}

/// Removes a code fence around the answer.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|inner| Some(inner.split_once('\n')?.1.trim())).unwrap_or(answer)
}
