//! The conversation of the agent loop's design: a forecast with a card for people, a reminder with an approval,
//! and a prompt without a message.
//!
//! | prompt | message | record |
//! |---|---|---|
//! | 1 | "What's the weather?" | `weather.get`, the card, the text |
//! | 2 | "Remind me tomorrow." | `trigger.create`, pending and then done, the text |
//! | 3 | none: the trigger has started it | the text |
//!
//! Each prompt is a run with the earlier ones as its history: `chat weather` on the command line,
//! `runner.conversation("weather")` in a program. Only people get the card's data; the model gets the tool's result.

use positronic_core::prelude::*;
use positronic_plugins::Triggers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Weather";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/weather.jsonl");

#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    /// The town
    town: String,
}

/// A day's weather.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// The town.
    pub town: String,
    /// In words.
    pub sky: String,
    /// Degrees Celsius, at the most.
    pub degrees: i8,
    /// Litres a square metre.
    pub rain: u8,
}

/// The weather of some towns; a real service would make a request.
fn forecast(town: &str) -> Result<Forecast> {
    let (sky, degrees, rain) = match town {
        "Ghent" => ("showers", 14, 6),
        "Lisbon" => ("sunny", 27, 0),
        _ => return Err(Error::new(format!("there is no forecast for {town}, only for Ghent and Lisbon"))),
    };
    Ok(Forecast { town: town.to_owned(), sky: sky.to_owned(), degrees, rain })
}

/// Builds the brain.
pub fn weather() -> Brain {
    let triggers = Triggers::new().approval("it writes to you later, by itself");
    brain(TITLE)
        .description("Tells the weather, and reminds you of it")
        .r#loop("Talk", move |cx| {
            cx.system("You talk about the weather. Ask `weather_get` before you say what it will be.")
                .tool("weather.get", |t| {
                    t.description("Returns the forecast for a town, and shows it").read_only().execute(
                        async |Place { town }, cx| {
                            let Forecast { sky, degrees, rain, .. } = forecast(&town)?;
                            let told = format!("{town}: {sky}, up to {degrees} degrees, {rain} mm of rain");
                            cx.display_widget("forecast", forecast(&town)?, told)?;
                            Ok(format!("{sky}, {degrees} degrees, {rain} mm"))
                        },
                    )
                })
                .plugin(triggers.clone())
                .max_iterations(10)
        })
        .build()
}
