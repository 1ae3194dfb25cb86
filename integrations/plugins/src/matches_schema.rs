//! Guard that requires JSON of a type.

use std::future::{Ready, ready};
use std::sync::Arc;

use positronic_core::dsl::{GuardContext, Options, Services, State, Verdict};
use positronic_core::record::{ModelResponse, check_numbers};
use positronic_core::tools::Schema;
use schemars::JsonSchema;
use serde_json::Value;

/// Requires that the text of an answer, or an output, is JSON that fits the schema of a type. What does not fit is refused with the reason.
///
/// A loop whose last answer has a type needs no guard: [`output`](positronic_core::dsl::Loop::output) gives the value to the next
/// stage. This guard is for answers that stay text, such as those that another program reads, and for tools whose outputs come from elsewhere.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_plugins::MatchesSchema;
/// use schemars::JsonSchema;
/// # use positronic_core::model::scripted::{Reply, ScriptedModel};
///
/// #[derive(JsonSchema)]
/// struct Weather { degrees: i32 }
///
/// let forecast = brain("Forecast").r#loop("Answer", |cx| {
///     cx.system("Answer in JSON.").input("Ghent?").guard_answer("Weather", MatchesSchema::of::<Weather>().answers())
/// });
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// # let model = ScriptedModel::new([Reply::text("It is warm."), Reply::text(r#"{"degrees": 21}"#)]);
/// # let runner = Runner::new(model);
/// let run = runner.start(forecast, ()).await?;
/// run.result().await?;
/// assert_eq!(run.answer().as_deref(), Some(r#"{"degrees": 21}"#));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a schema has its effect when it is given to a guard of a loop"]
pub struct MatchesSchema(Arc<Schema>);

impl MatchesSchema {
    /// Requires the schema of a type.
    pub fn of<T: JsonSchema + 'static>() -> Self {
        Self(Schema::of::<T>())
    }

    /// Returns a check for [`Loop::guard_answer`](positronic_core::dsl::Loop::guard_answer). Answers with calls pass: their text is not the
    /// last word. The whole text is the JSON, without a code fence.
    pub fn answers<O: Options, S: State, V: Services>(
        &self,
    ) -> impl Fn(GuardContext<O, S, V>, Arc<ModelResponse>) -> Ready<Verdict> + Send + Sync + use<O, S, V> {
        let schema = Arc::clone(&self.0);
        move |_, answer| {
            let checked = if answer.calls.is_empty() { check_text(&schema, &answer.text()) } else { Ok(()) };
            ready(checked.into())
        }
    }

    /// Returns a check for [`Loop::guard_result`](positronic_core::dsl::Loop::guard_result) of the outputs of a tool; those of other tools pass. An
    /// output that is a text and does not fit as a text is read as JSON. So is the shorter text for the model, if the tool has one.
    pub fn results<O: Options, S: State, V: Services>(
        &self,
        tool: impl Into<String>,
    ) -> impl Fn(GuardContext<O, S, V>, String, Arc<Value>) -> Ready<Verdict> + Send + Sync + 'static {
        let (schema, tool) = (Arc::clone(&self.0), tool.into());
        move |_, called, output| {
            ready(if called == tool { check_output(&schema, &output).into() } else { Verdict::Pass })
        }
    }
}

fn check_output(schema: &Schema, output: &Value) -> Result<(), String> {
    match (schema.check(output), output.as_str()) {
        (Err(_), Some(text)) => check_text(schema, text),
        (checked, _) => checked.map_err(|reason| misfit(&reason)),
    }
}

fn check_text(schema: &Schema, text: &str) -> Result<(), String> {
    let value = serde_json::from_str::<Value>(text).map_err(|error| format!("it is not JSON: {error}"))?;
    check_numbers(text).map_err(|number| format!("it has {number}"))?;
    schema.check(&value).map_err(|reason| misfit(&reason))
}

fn misfit(reason: &str) -> String {
    format!("it does not fit the schema: {reason}")
}
