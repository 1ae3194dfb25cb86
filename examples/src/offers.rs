//! Brains at the same time, and again: suppliers are asked for offers, the best price is haggled down, the credit and the stock are checked
//! together, and the first of two carriers gets the parcel. A guard keeps the budget out of the letters.

use std::time::Duration;

use positronic_core::dsl::{Skipped, each};
use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Offers";

/// Answers without a configured model, and the answer of the carrier; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/offers.jsonl");

/// What is bought.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Wanted {
    /// The thing
    pub thing: String,
    /// The highest price, in euros
    pub budget: u32,
    /// Who is asked
    pub suppliers: Vec<String>,
}

impl Default for Wanted {
    fn default() -> Self {
        let suppliers = ["Adler", "Brix", "Cato"].map(str::to_owned).into();
        Self { thing: "kettle".to_owned(), budget: 80, suppliers }
    }
}

/// A request to one supplier.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    supplier: String,
    thing: String,
    budget: u32,
    /// The last price of the supplier.
    last: Option<u32>,
}

/// The price in a supplier's letter.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// Euros; `null` if the supplier has none
    pub euros: Option<u32>,
}

/// The purchase so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Purchase {
    wanted: Wanted,
    /// The best offer: the supplier and the price.
    best: Option<(String, u32)>,
    log: Vec<String>,
}

impl Purchase {
    fn and(mut self, what: impl Into<String>) -> Self {
        self.log.push(what.into());
        self
    }

    fn request(&self, supplier: &str, last: Option<u32>) -> Request {
        let Wanted { thing, budget, .. } = self.wanted.clone();
        Request { supplier: supplier.to_owned(), thing, budget, last }
    }
}

/// Asks a supplier for a price, in a loop that never tells the budget.
fn ask() -> Brain<Request, Option<u32>> {
    brain("Ask")
        .options::<Request>()
        .step("Begin", async |cx| Ok(Request::clone(&cx.options)))
        .loop_to(
            "Write",
            |cx| {
                let Request { supplier, thing, last, .. } = Request::clone(&cx.state);
                let last = last.map_or_else(String::new, |last| format!(" They asked for {last} euros; ask for less."));
                cx.system(format!("You buy a {thing} from {supplier}.{last} Write to them, then report the price."))
                    .tool("write", |t| {
                        t.description("Writes a letter to the supplier and returns their answer")
                            .execute(async |Letter { text }, _| Ok(format!("You wrote {text:?}. We will see.")))
                    })
                    .guard_call("Does not reveal the budget", async |cx, _, arguments| {
                        if arguments.to_string().contains(&cx.state.budget.to_string()) {
                            return Err("the letter tells our budget; leave it out".to_owned());
                        }
                        Ok(())
                    })
                    .output::<Price>()
            },
            |_, price| price.euros,
        )
        .build()
}

/// A letter to a supplier.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Letter {
    /// What to write
    pub text: String,
}

/// What the post reports.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct PickUp {
    /// The day
    pub day: String,
}

fn post() -> Brain<String, String> {
    brain("Post")
        .options::<String>()
        .step("Book", async |cx| Ok(cx.options.to_string()))
        .wait("Pick-up", |w| w.on(webhook::<PickUp>("post"), String::clone), |_, pick_up| pick_up.day)
        .build()
}

fn courier() -> Brain<String, String> {
    brain("Courier")
        .options::<String>()
        .step("Call", async |cx| Ok(cx.options.to_string()))
        .sleep("Ring back", |_| Duration::from_hours(4))
        .step("Agree", async |_| Ok("tomorrow".to_owned()))
        .build()
}

fn stock() -> Brain<String, u32> {
    brain("Stock")
        .options::<String>()
        .step("Count", async |cx| Ok(cx.options.len().try_into().unwrap_or(u32::MAX)))
        .build()
}

fn credit() -> Brain<u32, bool> {
    brain("Credit").options::<u32>().step("Check", async |cx| Ok(*cx.options < 1000)).build()
}

enum Carrier {
    Post(String),
    Courier(String),
    TimedOut,
}

/// Builds the brain.
pub fn offers() -> Brain<Wanted, Vec<String>> {
    brain(TITLE)
        .description("Asks suppliers for offers and takes the best")
        .options::<Wanted>()
        .step("Open", async |cx| Ok(Purchase { wanted: Wanted::clone(&cx.options), best: None, log: Vec::new() }))
        .map(
            "Suppliers",
            |purchase: &Purchase| {
                purchase.wanted.suppliers.iter().map(|supplier| purchase.request(supplier, None)).collect()
            },
            each(ask()).limit(2).skip_failures(),
            |purchase, prices| {
                let named = prices
                    .into_iter()
                    .filter_map(|(index, price)| Some((purchase.wanted.suppliers.get(index)?.clone(), price?)));
                let best = named.min_by_key(|(_, price)| *price);
                let what = best.as_ref().map(|(supplier, price)| format!("{supplier} asks for {price} euros"));
                Purchase { best, ..purchase }.and(what.unwrap_or_else(|| "no offers".to_owned()))
            },
        )
        .guard("Any offer", |purchase| purchase.best.is_some())
        .repeat(
            "Haggle",
            3,
            ask(),
            |purchase| {
                let (supplier, price) = purchase.best.clone().unwrap_or_default();
                purchase.request(&supplier, Some(price))
            },
            |mut purchase, price| {
                if let (Some((_, best)), Some(price)) = (&mut purchase.best, price) {
                    *best = price.min(*best);
                }
                purchase
            },
            |purchase| purchase.best.as_ref().is_none_or(|(_, price)| *price <= purchase.wanted.budget),
        )
        .all(
            "Checks",
            |g| {
                let price = |purchase: &Purchase| purchase.best.as_ref().map_or(0, |(_, price)| *price);
                let thing = |purchase: &Purchase| purchase.wanted.thing.clone();
                (g.run("Credit", credit(), price), g.attempt("Stock", stock(), thing))
            },
            |purchase, (credit, stock)| {
                let stock = stock.map_or_else(|_| "an unknown number".to_owned(), |stock| stock.to_string());
                purchase.and(format!("credit: {credit}, in stock: {stock}"))
            },
        )
        .race(
            "Carriers",
            |r| {
                let post = r.run("Post", post(), |purchase| purchase.wanted.thing.clone()).to(Carrier::Post);
                let courier =
                    r.run("Courier", courier(), |purchase| purchase.wanted.thing.clone()).to(Carrier::Courier);
                post.or(courier).after(Duration::from_hours(24), || Carrier::TimedOut)
            },
            |purchase, carrier| match carrier {
                Carrier::Post(day) => purchase.and(format!("the post comes on {day}")),
                Carrier::Courier(day) => purchase.and(format!("the courier comes {day}")),
                Carrier::TimedOut => purchase.and("no carrier has answered"),
            },
        )
        .result(|purchase| purchase.log.clone())
        .otherwise(|Skipped| vec!["no offers".to_owned()])
}
