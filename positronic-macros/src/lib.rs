//! The macros of Positronic: [`brain!`] allows `.loop(…)` in a brain, [`macro@tool`] turns an async function
//! into a tool, [`macro@Actions`] an enum into a fixed action space.
//!
//! They are conveniences: everything they generate can be written by hand with the builders of `positronic_core`. They
//! preserve the spans of the author's tokens, so compile errors, panics and an editor's completion point at
//! the written code.
//!
//! ```
//! use positronic_core::prelude::{Brain, Result};
//! use positronic_macros::{brain, tool};
//! # #[derive(Default, serde::Serialize, serde::Deserialize)]
//! # pub struct Ticket;
//!
//! /// Searches the help documentation.
//! #[tool(read_only)]
//! async fn search_docs(
//!     /// What to search for.
//!     query: String,
//! ) -> Result<Vec<String>> {
//!     Ok(vec![format!("everything about {query}")])
//! }
//!
//! pub fn support() -> Brain<(), Ticket> {
//!     brain! {
//!         "Support Agent"
//!         .step("Open", async |_| Ok(Ticket::default()))
//!         .loop("Chat", |cx| cx.system("You are a support agent.").tools([search_docs()]))
//!         .build()
//!     }
//! }
//! # assert_eq!(support().title(), "Support Agent");
//! ```
//!
//! Generated paths begin with `::positronic_core`, so that crate must be a dependency under its own name.

mod actions;
mod brain;
mod tool;

use proc_macro::TokenStream;

/// Writes a brain with `.loop(…)`.
///
/// `loop` is a keyword, so the method is called `r#loop` in plain Rust. Inside this macro a method call `.loop(…)` (or
/// `.loop::<T>(…)`) becomes `.r#loop(…)`, at any depth; loop expressions (`loop { … }`, `0..loop { break 5 }`) and all
/// other tokens are unchanged. The brain begins with its title:
///
/// ```
/// # use positronic_macros::brain;
/// let support = brain! {
///     "Support Agent"
///     .description("Answers a customer until the ticket is resolved")
///     .step("Count", async |_| Ok(1))
///     .loop("Chat", |cx| cx.system(format!("You have {} ticket.", cx.state)))
/// };
/// # let _ = support;
/// ```
///
/// It expands to:
///
/// ```
/// let support = ::positronic_core::prelude::brain("Support Agent")
///     .description("Answers a customer until the ticket is resolved")
///     .step("Count", async |_| Ok(1))
///     .r#loop("Chat", |cx| cx.system(format!("You have {} ticket.", cx.state)));
/// # let _ = support;
/// ```
///
/// The title is any expression up to the first dot; one that contains a dot needs parentheses:
/// `brain! { (names.support) .step(…) }`. Nested macros see the renamed call, which only matters to one that defines
/// `.loop(…)` itself.
///
/// # Errors
///
/// A macro without a title does not compile.
#[proc_macro]
pub fn brain(input: TokenStream) -> TokenStream {
    brain::expand(input.into()).into()
}

/// Turns an async function into a tool.
///
/// The function's name becomes the tool's, its doc comment the description for the model, its arguments the
/// schema. The result is a function of the same name and visibility without arguments that returns a
/// `positronic_core::dsl::Tool`, for `.tools([search_docs(), refund()])`.
///
/// ```
/// use positronic_core::prelude::{Result, ToolContext};
/// use positronic_macros::tool;
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Ticket { customer: String }
/// # struct Acme { articles: Vec<String> }
/// # impl Acme {
/// #     async fn refund(&self, _: &str, order: String, _: u32, _: &str) -> Result<String> { Ok(order) }
/// # }
/// # fn ten() -> usize { 10 }
///
/// /// Searches the help documentation.
/// ///
/// /// Finds articles only, no tickets.
/// #[tool(read_only, timeout = "10s")]
/// async fn search_docs(
///     /// What to search for.
///     query: String,
///     /// How many results at most.
///     #[serde(default = "ten")]
///     #[schemars(range(min = 1, max = 50))]
///     limit: usize,
///     cx: ToolContext<(), Ticket, Acme>,
/// ) -> Result<Vec<String>> {
///     Ok(cx.services.articles.iter().filter(|text| text.contains(&query)).take(limit).cloned().collect())
/// }
///
/// /// Pays an order back.
/// #[tool(name = "payment.refund", approval = "refunds need a person", approval_expires = "24h", destructive)]
/// async fn refund(order: String, amount: u32, cx: ToolContext<(), Ticket, Acme>) -> Result<String> {
///     cx.services.refund(&cx.state.customer, order, amount, cx.idempotency_key()).await
/// }
/// # let _ = [search_docs(), refund()];
/// ```
///
/// # Arguments
///
/// An argument's doc comment is its description in the schema; `#[serde(…)]`, `#[schemars(…)]` and other attributes work
/// as on a field. Arguments are decoded from JSON, so their types are owned and implement
/// `serde::Deserialize` and `schemars::JsonSchema`. The model may omit an `Option`; unknown arguments are rejected, so that
/// misspelt ones are noticed.
///
/// One parameter, at any position, may be the context: the one that is named `cx` or `ctx`, or whose type is `ToolContext`,
/// `Cx`, `Ctx` or `Context`. An alias keeps it short where tools have services: `type Cx = ToolContext<(), Ticket, Acme>;`.
/// The three types of the context (options, state, services; by default `()`) are those of the tool. A
/// tool without a context works in brains with any options, state and services.
///
/// # Flags
///
/// | flag | meaning |
/// |---|---|
/// | `exit` | a successful call ends the loop |
/// | `read_only` | no side effects: never waits for approvals of others, may be rerun |
/// | `idempotent` | repeated calls have no further effect |
/// | `destructive` | destroys or spends something, for people and bridges |
/// | `sequential` | runs alone, never concurrently with another tool |
/// | `approval = "…"` | every call requires a person's approval, with this reason |
/// | `approval_expires = "24h"` | how long the approval may take; afterwards the call is denied. A time as for `timeout` |
/// | `not_editable` | the call cannot be approved with edited arguments |
/// | `name = "payment.send"` | the tool's id, if it differs from the function's name |
/// | `title = "…"` | the name for people |
/// | `timeout = "30s"` | the timeout of a call: a number of seconds, or text with `ms`, `s`, `m` or `h` |
/// | `retries = 2` | how often a call is retried after a transient failure |
///
/// They correspond to the methods of `positronic_core::dsl::ToolBuilder` with these names; `approval` is
/// `requires_approval`. The timeout of a *wait* for a webhook or a reply is set on the wait, with
/// `positronic_core::dsl::Wait::timeout`: `cx.result(…).wait_for([slack().on(id).timeout(day)])`.
///
/// # Errors
///
/// An invalid function does not compile, with an explanation: one without a doc comment, that is not async or
/// has no result, a `self`, a pattern instead of an argument's name, a borrowed type, an unknown flag. All
/// mistakes of a function are reported together.
#[proc_macro_attribute]
pub fn tool(flags: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(flags.into(), function.into()).into()
}

/// Makes an enum a fixed action space: each variant is an action, its fields are the input, its doc comment is the
/// description.
///
/// `Loop::act` of `positronic_core` takes one function for all of them. Its match is exhaustive, so a new action
/// does not compile until it is handled. With `.structured_actions()` the model answers with structured actions; without
/// it, the actions are ordinary tools.
///
/// ```
/// use positronic_core::model::scripted::{Reply, ScriptedModel};
/// use positronic_core::prelude::*;
/// use positronic_core::runner::Runner;
/// use positronic_macros::Actions;
/// # use serde_json::json;
///
/// #[derive(Actions)]
/// enum Robot {
///     /// Moves by some steps.
///     Move {
///         /// Steps to the right; to the left, if it is below zero.
///         dx: i32,
///         #[serde(default)]
///         dy: i32,
///     },
///     /// Looks around.
///     #[action(read_only)]
///     LookAround,
///     /// Stops where it is, which ends the work.
///     #[action(exit, name = "stop.here")]
///     Stop,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let walk = brain("Walk").state((0, 0)).r#loop("Walk", |cx| {
///     cx.system(format!("Go to (2, 0). You are at {:?}.", cx.state)).structured_actions().act(async |action: Robot, cx| match action {
///         Robot::Move { dx, dy } => {
///             cx.update(move |place| *place = (place.0 + dx, place.1 + dy));
///             Ok("moved")
///         }
///         Robot::LookAround => Ok("a door, two steps to the right"),
///         Robot::Stop => Ok("stopped"),
///     })
/// });
///
/// let model = ScriptedModel::new([
///     Reply::action("Where is it?", "look_around", json!({})),
///     Reply::action("To the right.", "move", json!({ "dx": 2 })),
///     Reply::action("I am there.", "stop.here", json!({})),
/// ]);
/// let run = Runner::new(model).start(&walk, ()).await?;
/// assert_eq!(run.result().await?, (2, 0));
/// # Ok(())
/// # }
/// ```
///
/// # Variants
///
/// An action is named after its variant, in snake case. A variant has named fields, none, or one type in parentheses as
/// the complete input. A field's doc comment is its description in the schema; `#[serde(…)]` and `#[schemars(…)]` work
/// as on a field. `#[action(…)]` takes the flags of [`macro@tool`]: `exit`, `read_only`, `idempotent`, `destructive`,
/// `sequential`, `approval = "…"`, `approval_expires`, `not_editable`, `name`, `title`, `timeout` and `retries`.
///
/// # Errors
///
/// An invalid enum does not compile, with an explanation: another kind of type, no variants, type parameters, a
/// variant without a doc comment, duplicate names, an unknown flag. All mistakes are reported together.
#[proc_macro_derive(Actions, attributes(action, serde, schemars))]
pub fn actions(item: TokenStream) -> TokenStream {
    actions::expand(item.into()).into()
}
