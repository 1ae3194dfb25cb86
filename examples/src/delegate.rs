//! Brains as tools: a model selects which brains to call, and calls two at once.
//!
//! For the model a brain is an ordinary tool; without a map, the brain's options are the tool's parameters. It runs
//! with its own loop, state and limit, concurrently with the other, and its result is the call's result.
//! `.map_output(…)` also folds that result into the outer state.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The title of the brain that delegates.
pub const TITLE: &str = "Trip";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/delegate.jsonl");

/// The bookings so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Trip {
    /// The train.
    pub train: Option<Offer>,
    /// The hotel.
    pub hotel: Option<Offer>,
}

/// A train or a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// What it is
    pub what: String,
    /// Its price in euros
    pub price: u32,
}

/// The traveller's request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Wish {
    /// In the traveller's words
    pub wish: String,
}

impl Default for Wish {
    fn default() -> Self {
        Self { wish: "Two nights in Ghent, not too dear".into() }
    }
}

/// Builds the brain that delegates.
pub fn trip() -> Brain<Wish, Trip> {
    brain(TITLE)
        .description("Plans a short trip")
        .options::<Wish>()
        .state(Trip::default())
        .r#loop("Plan", |cx| {
            cx.system("You plan trips. Ask for train and hotel at once, then sum up.")
                .input(&cx.options.wish)
                .tool("find_train", |t| t.brain(train_clerk()).map_output(|trip, offer| trip.train = Some(offer)))
                .tool("find_hotel", |t| t.brain(hotel_clerk()).map_output(|trip, offer| trip.hotel = Some(offer)))
        })
        .build()
}

/// Where a clerk looks; these options are the parameters of the tools `find_train` and `find_hotel`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Place {
    /// The town
    town: String,
}

/// Builds a brain that needs no model: its steps are plain code.
fn train_clerk() -> Brain<Place, Offer> {
    brain("Train Clerk")
        .description("Finds the cheapest train to a town")
        .options::<Place>()
        .step("Ask the railway", async |cx| {
            let (what, price) = match cx.options.town.as_str() {
                "Ghent" => ("the 9:12 to Ghent", 58),
                town => return Err(Error::new(format!("no train goes to {town}"))),
            };
            Ok(Offer { what: what.to_owned(), price })
        })
        .build()
}

/// Builds a brain with a loop whose exit tool returns its finding.
fn hotel_clerk() -> Brain<Place, Offer> {
    brain("Hotel Clerk")
        .description("Finds a room in a town")
        .options::<Place>()
        .state(None::<Offer>)
        .r#loop("Look", |cx| {
            cx.system("Look at the rooms and choose one.")
                .input(format!("A room in {}, please.", cx.options.town))
                .tool("rooms", |t| {
                    t.description("Lists the rooms").read_only().execute(async |_: NoArgs, _| {
                        Ok([("a room over the river", 140), ("a room under the roof", 95)])
                    })
                })
                .tool("choose", |t| {
                    t.description("Chooses a room").exit().execute(async |offer: Offer, cx| {
                        cx.update(|chosen| *chosen = Some(offer));
                        Ok("chosen")
                    })
                })
                .max_iterations(5)
        })
        .step("Offer", async |cx| cx.state.ok_or_else(|| Error::new("no room was chosen")))
        .build()
}
