//! A memory of facts about users: the next conversation begins with the relevant ones.
//!
//! A baker's assistant talks with a customer. It stores facts about this customer, and reads those that match
//! the customer's words before it answers, even weeks later in another run. It forgets outdated facts.
//! The facts are in memory here; `SqliteFacts::open("facts.db")` stores them across processes.

use positronic_core::prelude::*;
use positronic_plugins::{FactStore, Memory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Baker";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/memory.jsonl");

/// The customer's request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Visit {
    /// The customer's first message
    pub says: String,
}

impl Default for Visit {
    fn default() -> Self {
        Self { says: "I would like a cake for Sunday. I cannot eat nuts.".to_owned() }
    }
}

/// The bakery's tasks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Orders {
    /// The cakes, in the customer's words.
    pub cakes: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Cake {
    /// Which, and for when
    cake: String,
}

/// Builds the brain with a fact store.
pub fn baker(facts: impl FactStore) -> Brain<Visit, Orders> {
    let memory = Memory::new(facts).top(3);
    brain(TITLE).description("Takes a customer's order, and remembers the customer").options::<Visit>().state(Orders::default()).r#loop(
        "Counter",
        move |cx| {
            cx.system(
                "You sell cakes. Store what a customer tells you of themselves and will matter again, forget what is no \
                 longer true, and offer nothing that the customer cannot eat.",
            )
            .input(cx.options.says.as_str())
            .tool("order", |t| {
                t.description("Orders a cake")
                    .execute(async |Cake { cake }, cx| {
                        cx.update(|orders| orders.cakes.push(cake));
                        Ok("ordered")
                    })
            })
            .plugin(memory.clone())
            .max_iterations(10)
        },
    ).build()
}
