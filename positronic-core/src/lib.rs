//! Typed, durable agent workflows.
//!
//! An author chains typed stages into a **brain**; the runtime runs them, records all events in one ordered
//! log, pauses for people and webhooks, and tests can read a complete run as a snapshot.
//!
//! An author of brains needs the [`prelude`] and these modules; the names of [`record`] that they mention, such as
//! [`Money`](record::Money), are documented where they are used:
//!
//! | module | content |
//! |---|---|
//! | [`dsl`] | brains, loops and tools over the author's types |
//! | [`runner`] | starts, resumes and serves runs, and answers their questions from any process |
//! | [`model`] | language models, their wrappers, and scripted and recorded ones for tests |
//! | `schedule` | runs that start at given times |
//! | [`prices`] | what models cost, for limits of money |
//! | [`testing`] | runs brains for snapshots |
//!
//! The other modules say for whom they are: [`record`], [`projection`] and [`sink`] for user interfaces and other readers of runs,
//! [`machine`] for those who show or test the state of a run, [`store`] for adapters of stores, [`tools`] for adapters of models.
//!
//! ```
//! use positronic_core::model::scripted::{Reply, ScriptedModel};
//! use positronic_core::prelude::*;
//! use positronic_core::runner::Runner;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//!
//! #[derive(Serialize, Deserialize, Default)]
//! struct List { items: Vec<String> }
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// What to buy.
//!     item: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let shopping = brain("Shopping")
//!     .state(List::default())
//!     .r#loop("Collect", |cx| {
//!         cx.system(format!("Collect what to buy. So far: {:?}", cx.state.items))
//!             .input("We need milk.")
//!             .tool("add", |t| {
//!                 t.description("Adds an item to the list").execute(async |Add { item }, cx| {
//!                     cx.update(|list| list.items.push(item));
//!                     Ok("added")
//!                 })
//!             })
//!     })
//!     .result(|list| list.items.clone());
//!
//! let model = ScriptedModel::new([Reply::call("add", json!({ "item": "milk" })), Reply::text("Noted.")]);
//! let runner = Runner::new(model);
//! let run = runner.start(&shopping, ()).await?;
//! assert_eq!(run.result().await?, ["milk"]);
//! # Ok(())
//! # }
//! ```

#[doc(hidden)]
pub mod definition;
pub mod dsl;
mod error;
pub mod machine;
pub mod model;
pub mod prelude;
pub mod prices;
#[doc(hidden)]
pub mod private;
pub mod projection;
pub mod record;
pub mod runner;
#[cfg(feature = "schedules")]
pub mod schedule;
pub mod sink;
pub mod store;
pub mod testing;
pub mod tools;

pub use error::{Error, IoContext, Result};
#[cfg(feature = "macros")]
pub use positronic_macros::{Actions, brain, tool};

#[doc(hidden)]
pub mod __private {
    pub use crate::dsl::AnyToolContext;
    pub use {schemars, serde};
}
