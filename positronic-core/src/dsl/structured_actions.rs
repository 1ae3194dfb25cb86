//! Iterations without model tool calls: scripted in code, or with structured actions.

use serde_json::Value;

use super::r#loop::Loop;
use super::services::Services;
use super::trait_bounds::{Options, State};
use crate::record::{ActionFormat, CODE, ModelResponse, Part, ProposedCall, ResponseMetadata, StructuredActions};

impl<O: Options, S: State, V: Services> Loop<O, S, V> {
    /// Scripts this iteration in code: the loop makes these calls, in this order, without asking a model. Without a call the loop
    /// ends, as after a model's text.
    ///
    /// Tools and brains run as for a model: concurrently up to [`Loop::parallel`], with approvals, and recorded. The calls must
    /// depend only on the state and [`cx.history()`](super::LoopContext::history), since they are computed again after a restart.
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # use positronic_core::dsl::Tool;
    /// # fn brew() -> Tool<(), Vec<String>> {
    /// #     Tool::new("brew", |t| t.execute(async |_: NoArgs, cx| { cx.update(|teas: &mut Vec<String>| teas.clear()); Ok("hot") }))
    /// # }
    /// let kitchen = brain("Kitchen").state(vec!["oolong".to_owned()]).r#loop("Brew", |cx| {
    ///     let calls = cx.state.iter().map(|_| ("brew", serde_json::json!({})));
    ///     cx.system("").tools([brew()]).scripted(calls)
    /// });
    /// # let _ = kitchen;
    /// ```
    pub fn scripted<N: Into<String>>(mut self, calls: impl IntoIterator<Item = (N, Value)>) -> Self {
        let call = |(name, arguments): (N, Value)| ProposedCall {
            provider_id: None,
            name: name.into(),
            arguments: arguments.to_string(),
            data: None,
        };
        let calls: Vec<_> = calls.into_iter().map(call).collect();
        let parts = (0..).zip(&calls).map(|(index, _)| Part::Call { index }).collect();
        let (provider, model) = (CODE.to_owned(), CODE.to_owned());
        let metadata = ResponseMetadata { provider, model, ..ResponseMetadata::default() };
        self.definition.answer = Some(ModelResponse { parts, calls, metadata });
        self
    }

    /// Lets the model answer with structured actions, `{reasoning, action, input}`, instead of tool calls: for models without
    /// tool calls, and for fixed action spaces. The actions are the loop's tools, and one of them must be an exit tool.
    ///
    /// Everything else is as in any loop: approvals, limits, plugins and the record. The reasoning is recorded as the model's
    /// reasoning. An answer that is not a structured action, names an unknown action or has invalid input is recorded, and
    /// the model is asked again with the error, up to [`Loop::action_retries`] times.
    ///
    /// ```
    /// use positronic_core::model::scripted::{Reply, ScriptedModel};
    /// use positronic_core::prelude::*;
    /// use positronic_core::runner::Runner;
    /// # use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Summary { text: String }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = brain("Agent").state(String::new()).r#loop("Act", |cx| {
    ///     cx.system("Reach the goal.").input("Say hello.").structured_actions().tool("finish", |t| {
    ///         t.description("Ends the work with what was found")
    ///             .exit()
    ///             .execute(async |Summary { text }, cx| {
    ///                 cx.update(move |state| *state = text);
    ///                 Ok("done")
    ///             })
    ///     })
    /// });
    ///
    /// let model = ScriptedModel::new([Reply::action("It is simple.", "finish", json!({ "text": "Hello!" }))]);
    /// let run = Runner::new(model).start(&agent, ()).await?;
    /// assert_eq!(run.result().await?, "Hello!");
    /// # Ok(())
    /// # }
    /// ```
    pub fn structured_actions(mut self) -> Self {
        _ = self.deciding();
        self
    }

    /// Lets the model answer with one or several structured actions, `{reasoning, actions: [{action, input}, …]}`; see
    /// [`Loop::structured_actions`].
    pub fn structured_actions_in_batches(mut self) -> Self {
        self.deciding().batches = true;
        self
    }

    /// Overrides how requests describe the action format, and enables structured actions; see
    /// [`Loop::structured_actions`].
    pub fn action_format(mut self, form: ActionFormat) -> Self {
        self.deciding().form = Some(form);
        self
    }

    /// Sets how often the model is asked again after an invalid answer, 3 by default, and enables structured actions; see
    /// [`Loop::structured_actions`].
    pub fn action_retries(mut self, retries: u32) -> Self {
        self.deciding().retries = retries;
        self
    }

    fn deciding(&mut self) -> &mut StructuredActions {
        self.definition.settings.structured_actions.get_or_insert_default()
    }
}
