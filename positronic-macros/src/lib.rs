//! The macros of Positronic: [`brain!`] lets a brain be written with `.loop(…)`, [`macro@tool`] turns an async function
//! into a tool, [`macro@Actions`] an enum into a fixed space of actions.
//!
//! They are conveniences: everything they produce can be written by hand with the builders of `positronic_core`. They
//! move the author's tokens and keep each token's place, so compile errors, panics and an editor's completion point at
//! what was written.
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
//!     }
//! }
//! # assert_eq!(support().title(), "Support Agent");
//! ```
//!
//! The paths in what they write begin with `::positronic_core`, so that crate has to be a dependency under its own name.

mod actions;
mod brain;
mod tool;

use proc_macro::TokenStream;

/// Writes a brain with `.loop(…)`.
///
/// `loop` is a keyword, so the method is called `r#loop` in plain Rust. Inside this macro a method call `.loop(…)` (or
/// `.loop::<T>(…)`) becomes `.r#loop(…)`, at any depth; a loop expression (`loop { … }`, `0..loop { break 5 }`) and every
/// other token stay as they are. The brain begins with its title:
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
/// That is, exactly:
///
/// ```
/// let support = ::positronic_core::prelude::brain("Support Agent")
///     .description("Answers a customer until the ticket is resolved")
///     .step("Count", async |_| Ok(1))
///     .r#loop("Chat", |cx| cx.system(format!("You have {} ticket.", cx.state)));
/// # let _ = support;
/// ```
///
/// The title is any expression up to the first dot; one with a dot of its own stands in parentheses:
/// `brain! { (names.support) .step(…) }`. Other macros inside see the renamed call, which only matters to one that gives
/// `.loop(…)` a meaning of its own.
///
/// # Errors
///
/// A macro without a title does not compile: `brain! { .step(…) }` says that the title is missing.
#[proc_macro]
pub fn brain(input: TokenStream) -> TokenStream {
    brain::expand(input.into()).into()
}

/// Turns an async function into a tool.
///
/// The function's name becomes the tool's, its doc comment the description that the model reads, its arguments the
/// schema. What is left is a function of the same name and visibility that takes nothing and returns a
/// `positronic_core::dsl::Tool`, ready for `.tools([search_docs(), refund()])`.
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
/// An argument's doc comment is its description in the schema; `#[serde(…)]`, `#[schemars(…)]` and other attributes mean
/// what they mean on a field. Arguments are decoded from JSON, so their types are owned and implement
/// `serde::Deserialize` and `schemars::JsonSchema`. An `Option` may be left out by the model; an argument that the
/// function does not have is refused, so that a misspelt one is noticed.
///
/// One parameter, at any place and of any name, may be the context: the one whose type is written `ToolContext`, and
/// not an alias of it, which a macro cannot see through. Its
/// three types (options, state, services; each `()` where it is left out) are those of the tool. A tool without a context
/// fits brains of any options, state and services.
///
/// # Flags
///
/// | flag | meaning |
/// |---|---|
/// | `exit` | a successful call ends the loop |
/// | `read_only` | changes nothing: never waits for approvals of others, may run again |
/// | `idempotent` | the same call twice has the effect of one |
/// | `destructive` | people and bridges are told that it destroys or spends something |
/// | `sequential` | runs alone, never beside another tool |
/// | `approval = "…"` | every call waits for a person, who reads this reason |
/// | `approval_expires = "24h"` | how long the question stands; after that the call is denied. A time as for `timeout` |
/// | `not_editable` | nobody may approve a call with other arguments than the model's |
/// | `name = "payment.send"` | the tool's id, where the function's name will not do |
/// | `title = "…"` | what people see instead of the id |
/// | `timeout = "30s"` | how long a call may take: a number of seconds, or text with `ms`, `s`, `m` or `h` |
/// | `retries = 2` | how often a call that failed in passing is tried again |
///
/// They do what the methods of `positronic_core::dsl::ToolBuilder` of these names do; `approval` is its
/// `requires_approval`. How long a call *waits* for a webhook or a reply is said where the wait is made, with
/// `positronic_core::dsl::Wait::timeout`: `cx.result(…).wait_for([slack().on(id).timeout(day)])`.
///
/// # Errors
///
/// What cannot become a tool does not compile, and says why: a function without a doc comment, one that is not async or
/// has no result, a `self`, a pattern where an argument's name should stand, a borrowed type, an unknown flag. All
/// mistakes of one function are reported together.
#[proc_macro_attribute]
pub fn tool(flags: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(flags.into(), function.into()).into()
}

/// Makes an enum a fixed space of actions: each variant is an action, its fields are the input, its doc comment says what it
/// does.
///
/// `Loop::act` of `positronic_core` takes one function for all of them. The match in it is exhaustive, so an action that is
/// added does not compile until something is done about it. With `.structured_actions()` the model chooses in decisions; without
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
/// # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
/// let walk = brain("Walk").state((0, 0)).r#loop("Walk", |cx| {
///     cx.system(format!("Go to (2, 0). You are at {:?}.", cx.state)).structured_actions().act(async |action: Robot, cx| match action {
///         Robot::Move { dx, dy } => Ok(cx.result("moved").update(move |place| *place = (place.0 + dx, place.1 + dy))),
///         Robot::LookAround => Ok(cx.result("a door, two steps to the right")),
///         Robot::Stop => Ok(cx.result("stopped")),
///     })
/// });
///
/// let model = ScriptedModel::new([
///     Reply::decision("Where is it?", "look_around", json!({})),
///     Reply::decision("To the right.", "move", json!({ "dx": 2 })),
///     Reply::decision("I am there.", "stop.here", json!({})),
/// ]);
/// let run = Runner::builder().model(model).build().start(&walk, ()).await?;
/// assert_eq!(run.result().await?, (2, 0));
/// # Ok(())
/// # }
/// ```
///
/// # Variants
///
/// An action is named after its variant, in snake case. A variant has named fields, none, or one type in parentheses that is
/// the whole input. A field's doc comment is its description in the schema; `#[serde(…)]` and `#[schemars(…)]` mean what they
/// mean on a field. `#[action(…)]` takes the flags of [`macro@tool`]: `exit`, `read_only`, `idempotent`, `destructive`,
/// `sequential`, `approval = "…"`, `approval_expires`, `not_editable`, `name`, `title`, `timeout` and `retries`.
///
/// # Errors
///
/// What cannot become actions does not compile, and says why: no enum, an enum without variants or with type parameters, a
/// variant without a doc comment, two of one name, an unknown flag. All mistakes are reported together.
#[proc_macro_derive(Actions, attributes(action, serde, schemars))]
pub fn actions(item: TokenStream) -> TokenStream {
    actions::expand(item.into()).into()
}
