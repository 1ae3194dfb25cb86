//! A brain for a chat: it knows the larder, suggests a dinner, and orders missing ingredients after an approval.
//!
//! Its loop has no input of its own, so messages are its input: `chat kitchen` begins a conversation, and each message
//! is a run with the earlier ones as its history. `menu` shows a widget, which the command line renders by its
//! fallback, and saves the recipe as a file. `order` needs an approval above ten euros.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Kitchen";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/kitchen.jsonl");

/// The result of one message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Dinner {
    /// The ordered ingredients.
    pub ordered: Vec<String>,
}

/// A dish with what it takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Menu {
    /// The dish
    dish: String,
    /// How long it takes, in minutes
    minutes: u32,
    /// What has to be bought
    missing: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Order {
    /// What to order
    items: Vec<String>,
    /// What it costs, in euros
    euros: u32,
}

/// Builds the brain.
pub fn kitchen() -> Brain<(), Dinner> {
    brain(TITLE)
        .description("Talks about dinner: knows the larder, suggests a dish, orders what is missing")
        .state(Dinner::default())
        .r#loop("Talk", |cx| {
            cx.system("You help with dinner. Look into the larder before you suggest a dish, and show it as a menu.")
                .tool("larder", |t| {
                    t.description("Lists what is in the larder")
                        .read_only()
                        .execute(async |_: NoArgs, _| Ok("eggs, rice, two leeks, butter"))
                })
                .tool("menu", |t| {
                    t.description("Shows a dish with what it takes").execute(async |menu: Menu, cx| {
                        let buy = if menu.missing.is_empty() { "nothing".to_owned() } else { menu.missing.join(", ") };
                        let fallback = format!("{}, {} minutes; to buy: {buy}", menu.dish, menu.minutes);
                        cx.display_widget("menu", &menu, fallback)?;
                        let recipe = format!("# {}\n\n{} minutes. To buy: {buy}.\n", menu.dish, menu.minutes);
                        cx.save_file("recipe.md", "text/markdown", recipe).await?;
                        Ok("shown")
                    })
                })
                .tool("order", |t| {
                    t.description("Orders what is missing")
                        .approval(|order: &Order, _| {
                            (order.euros > 10).then(|| format!("it costs {} euros", order.euros))
                        })
                        .execute(async |order: Order, cx| {
                            let items = order.items.join(", ");
                            let reply = cx.result(format!("ordered: {items}; it comes at six"));
                            Ok(reply.update(move |dinner| dinner.ordered.push(items)))
                        })
                })
                .max_iterations(10)
        })
        .build()
}
