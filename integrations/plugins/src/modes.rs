//! Modes: a loop works in one of several ways at a time, each with its prompt, tools, and transitions.

use derive_where::derive_where;
use positronic_core::dsl::{
    Options, Plugin, PluginState, Preparation, RequestEdit, Services, State, Tool, ToolContext, ToolReply, Wait,
};
use positronic_core::record::{ContextItem, Path, ToolDecl};
use positronic_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::listed;
use super::usage_panic::usage_panic;

const ENTER: &str = "mode.enter";

/// Lets a loop work in one mode at a time. The model changes the mode with the tool `mode.enter`.
///
/// | a mode has | effect |
/// |---|---|
/// | [`prompt`](Mode::prompt) | a context item, named `mode`, while the loop is in it |
/// | [`tools`](Mode::tools) | the model sees these tools of the loop and of other plugins, and `mode.enter` |
/// | [`leads_to`](Mode::leads_to) | the allowed transitions; the schema of `mode.enter` lists them |
/// | [`wait`](Mode::wait) | the call that enters it waits for a webhook, whose payload is its result |
/// | [`exit`](Mode::exit) | the call that enters it ends the loop |
///
/// With an exit mode, a text answer does not end the loop. The mode is stored, so it survives a restart; each loop of a brain
/// begins in its initial mode. Register it after plugins that add tools, and before those that remove tools.
///
/// ```
/// use positronic_plugins::Modes;
/// use positronic_core::prelude::*;
///
/// let brain = brain("Support").r#loop("Chat", |cx| {
///     cx.system("You are a support agent.")
///         .tool("ask", |t| t.execute(async |_: NoArgs, _| Ok("It leaks.")))
///         .tool("refund", |t| t.execute(async |_: NoArgs, _| Ok("paid")))
///         .plugin(
///             Modes::new("gathering_info")
///                 .mode("gathering_info", |m| m.prompt("Understand the problem.").tools(["ask"]).leads_to(["solving"]))
///                 .mode("solving", |m| m.prompt("Solve it.").tools(["refund"]).leads_to(["gathering_info", "resolved"]))
///                 .mode("resolved", |m| m.exit()),
///         )
/// });
/// # let _ = brain;
/// ```
///
/// A forbidden transition is an `error` result that lists the allowed ones. A mode that names an unknown tool or
/// mode fails the loop in its first iteration, whichever mode that is.
///
/// `S` is the state of the loop's brain, which [`Wait::resume`] may change.
#[must_use = "modes have their effect when they are given to a loop"]
#[derive_where(Clone, Debug)]
pub struct Modes<S> {
    initial: String,
    modes: Vec<Mode<S>>,
}

/// One mode of a loop; see [`Modes`].
#[must_use = "a mode has its effect when the closure returns it"]
#[derive_where(Clone, Debug)]
pub struct Mode<S> {
    name: String,
    description: String,
    prompt: String,
    tools: Vec<String>,
    next: Vec<String>,
    waits: Vec<Wait<S>>,
    exit: bool,
}

/// The state of [`Modes`]; read it with `cx.plugin_state::<CurrentMode>()`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CurrentMode {
    /// The path of its loop.
    pub loop_at: String,
    /// The mode's name.
    pub mode: String,
}

impl PluginState for CurrentMode {
    const NAME: &'static str = "modes";
}

impl<S> Modes<S> {
    /// Creates the plugin with the initial mode.
    pub fn new(initial: impl Into<String>) -> Self {
        Self { initial: initial.into(), modes: Vec::new() }
    }

    /// Adds a mode.
    ///
    /// # Panics
    ///
    /// If there is already a mode with this name.
    #[track_caller]
    pub fn mode(mut self, name: impl Into<String>, build: impl FnOnce(Mode<S>) -> Mode<S>) -> Self {
        let name = name.into();
        if self.find(&name).is_some() {
            usage_panic(&format!("there are two modes named `{name}`; give one of them another name"));
        }
        let (description, prompt) = (String::new(), String::new());
        let (tools, next, waits) = (Vec::new(), Vec::new(), Vec::new());
        self.modes.push(build(Mode { name, description, prompt, tools, next, waits, exit: false }));
        self
    }
}

impl<S> Mode<S> {
    /// Sets the description, which the model reads in each mode that leads to this one.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Sets the prompt for the model while the loop is in the mode.
    pub fn prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt = text.into();
        self
    }

    /// Allows tools by name; the default is only `mode.enter`. A name that ends in `*` matches by prefix, and may match
    /// nothing, such as the tools of an inactive toolset: `mail.*`, or `*` for all.
    pub fn tools<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.tools.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Allows transitions to other modes.
    pub fn leads_to<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.next.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Makes the call that enters the mode wait for the first of these. The loop is in the mode while it waits, and
    /// stays in it after a timeout. A closure of [`Wait::resume`] must state the state's type here:
    ///
    /// ```
    /// # use positronic_plugins::Modes;
    /// # use positronic_core::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Ticket { answers: Vec<String> }
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Answer { text: String }
    /// let modes = Modes::new("solving")
    ///     .mode("solving", |m| m.leads_to(["awaiting_response"]))
    ///     .mode("awaiting_response", |m| {
    ///         m.wait([webhook::<Answer>("slack").on("7").resume(|ticket: &mut Ticket, answer| ticket.answers.push(answer.text))])
    ///     });
    /// # let _ = modes;
    /// ```
    pub fn wait<P>(mut self, waits: impl IntoIterator<Item = Wait<S, P>>) -> Self {
        self.waits.extend(waits.into_iter().map(Wait::erased));
        self
    }

    /// Makes the call that enters the mode end the loop.
    pub const fn exit(mut self) -> Self {
        self.exit = true;
        self
    }

    fn allows(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| match name.strip_suffix('*') {
            Some(beginning) => tool.starts_with(beginning),
            None => tool == name,
        })
    }
}

impl<S> Modes<S> {
    fn find(&self, name: &str) -> Option<&Mode<S>> {
        self.modes.iter().find(|mode| mode.name == name)
    }

    fn found(&self, name: &str) -> Result<&Mode<S>> {
        self.find(name).ok_or_else(|| {
            let known = listed(self.modes.iter().map(|mode| &mode.name));
            Error::new(format!("there is no mode `{name}`; the modes are {known}"))
        })
    }

    /// Validates the modes.
    fn check(&self) -> Result<()> {
        let initial = self.found(&self.initial)?;
        if initial.exit || !initial.waits.is_empty() {
            let initial = &self.initial;
            return Err(Error::new(format!(
                "the loop begins in the mode `{initial}`, so that mode can neither wait nor end the loop"
            )));
        }
        for mode in &self.modes {
            let Mode { name, next, waits, exit, .. } = mode;
            if *exit && !waits.is_empty() {
                return Err(Error::new(format!("the mode `{name}` ends the loop, so it cannot wait")));
            }
            for next in next {
                self.found(next).map_err(|error| Error::new(format!("the mode `{name}` leads to another: {error}")))?;
            }
        }
        Ok(())
    }

    /// Validates the tools that the modes name.
    fn check_tools<'t>(&self, enter: &str, tools: impl Iterator<Item = &'t ToolDecl>) -> Result<()> {
        let known: Vec<_> = tools.map(|tool| tool.id.as_str()).filter(|id| *id != enter).collect();
        for Mode { name, tools, .. } in &self.modes {
            if let Some(tool) = tools.iter().find(|tool| !tool.ends_with('*') && !known.contains(&tool.as_str())) {
                let known = listed(known);
                return Err(Error::new(format!(
                    "the mode `{name}` allows the tool `{tool}`, which does not exist; the tools are {known}"
                )));
            }
        }
        Ok(())
    }

    /// Returns the description of `mode.enter`.
    fn described(&self, mode: &Mode<S>) -> String {
        let next = mode.next.iter().filter_map(|name| self.find(name)).map(|next| {
            let mut line = format!("\n- `{}`", next.name);
            if !next.description.is_empty() {
                line = format!("{line}: {}", next.description);
            }
            if next.exit { format!("{line} (ends your work)") } else { line }
        });
        next.fold(
            "Switches to another mode. Its tools are available from your next answer on:".to_owned(),
            |text, line| text + &line,
        )
    }

    /// Returns the waits of the call that enters a mode.
    fn waits(&self, arguments: &Value) -> Vec<Wait<S>> {
        self.find(entered(arguments)).map(|mode| mode.waits.clone()).unwrap_or_default()
    }
}

/// Returns the mode in a call of `mode.enter`.
fn entered(arguments: &Value) -> &str {
    arguments.get("mode").and_then(Value::as_str).unwrap_or_default()
}

impl<S: State> Modes<S> {
    /// Enters a mode, in the instance of the plugin with this name.
    fn enter<O, V>(
        &self,
        instance: Option<&str>,
        arguments: &Value,
        cx: &ToolContext<O, S, V>,
    ) -> Result<ToolReply<S>> {
        let name = entered(arguments);
        // Another call of the same batch may have changed the mode.
        let now = match instance {
            Some(instance) => cx.plugin_state_named::<CurrentMode>(instance)?,
            None => cx.plugin_state()?,
        };
        let now = self.found(&now.mode)?;
        if !now.next.iter().any(|next| next == name) {
            let (now, allowed) = (&now.name, listed(&now.next));
            return Err(Error::new(format!("the mode is `{now}`, which does not lead to `{name}`, but to {allowed}")));
        }
        let mode = self.found(name)?.name.clone();
        let reply = cx.result(format!("the mode is `{name}`"));
        let update = move |state: &mut CurrentMode| state.mode = mode;
        Ok(match instance {
            Some(instance) => reply.update_plugin_named(instance, update),
            None => reply.update_plugin(update),
        })
    }
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Modes<S> {
    type State = CurrentMode;

    fn initial(&self) -> CurrentMode {
        CurrentMode { loop_at: String::new(), mode: self.initial.clone() }
    }

    fn tool_names(&self, own: &dyn Fn(&str) -> String) -> Vec<String> {
        vec![own(ENTER)]
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, CurrentMode>) -> Result<()> {
        self.check()?;
        let loop_at = cx.path().parent().as_ref().map(Path::to_string).unwrap_or_default();
        if cx.state.loop_at != loop_at {
            cx.state = CurrentMode { loop_at, mode: self.initial.clone() };
        }
        let mode = self.found(&cx.state.mode)?;
        if mode.next.is_empty() {
            return Ok(());
        }
        let schema = json!({
            "type": "object",
            "properties": {"mode": {"type": "string", "enum": mode.next}},
            "required": ["mode"],
            "additionalProperties": false
        });
        let exits: Vec<_> = self.modes.iter().filter(|mode| mode.exit).map(|mode| mode.name.clone()).collect();
        let description = self.described(mode);
        let (modes, waiting) = (self.clone(), self.clone());
        let instance = cx.instance().map(str::to_owned);
        let enter = move |arguments: Value, cx: ToolContext<O, S, V>| {
            std::future::ready(modes.enter(instance.as_deref(), &arguments, &cx))
        };
        let tool = Tool::new(&cx.tool_name(ENTER), |t| {
            let t = t.description(description).sequential().idempotent();
            let t = t.wait_any(move |arguments: &Value, _| waiting.waits(arguments));
            if exits.is_empty() {
                return t.execute_json(schema, enter);
            }
            t.exit_if(move |arguments: &Value| exits.iter().any(|exit| arguments["mode"] == **exit))
                .execute_json(schema, enter)
        });
        cx.brain_tools([&tool])
    }

    async fn request(&self, cx: &mut RequestEdit<'_, O, S, V, CurrentMode>) -> Result<()> {
        let enter = cx.tool_name(ENTER);
        self.check_tools(&enter, cx.tools())?;
        let mode = self.found(&cx.state.mode)?;
        cx.retain_tools(|tool| tool.id.as_str() == enter || mode.allows(tool.id.as_str()));
        let text = format!("The mode is `{}`. {}", mode.name, mode.prompt);
        cx.context().push(ContextItem { name: "mode".to_owned(), text: text.trim_end().to_owned() });
        Ok(())
    }
}
