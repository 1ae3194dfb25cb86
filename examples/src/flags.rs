//! A picture in a message: the model looks at a flag, and looks up its country.
//!
//! A step stores the bundled picture, and the loop begins with it. On the command line, `run flags --attach photo.png` takes
//! another one in its place. The log has a picture's name, type, size and hash, and the event store its bytes.

use positronic_core::prelude::*;
use positronic_core::record::{FileRef, UserMessage};
use schemars::JsonSchema;
use serde::Deserialize;

/// The brain's title.
pub const TITLE: &str = "Flags";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/flags.jsonl");

/// The flag of Ireland, 48 × 32 pixels.
pub const FLAG: &[u8] = include_bytes!("../pictures/flag.png");

#[derive(Debug, Deserialize, JsonSchema)]
struct Country {
    /// Its name in English
    name: String,
}

/// Builds the brain. Its state is the picture.
pub fn flags() -> Brain<(), Option<FileRef>> {
    brain(TITLE)
        .description("Looks at a flag, and tells something about the country")
        .state(None::<FileRef>)
        .step("Load", async |cx| Ok(Some(cx.file("flag.png", "image/png", FLAG).await?)))
        .r#loop("Look", |cx| {
            let picture = cx.state.iter().cloned();
            cx.system("You know all flags. Look the country up before you answer.")
                .input(UserMessage::new("Whose flag is this?").files(picture))
                .tool("country", |t| {
                    t.description("Looks a country up")
                        .read_only()
                        .execute(async |Country { name }, _| Ok(country(&name)?))
                })
        })
        .build()
}

/// Some countries; a real service would have all of them.
fn country(name: &str) -> Result<&'static str> {
    match name {
        "Ireland" => Ok("capital: Dublin; the flag is 1:2, with green at the hoist"),
        "Ivory Coast" => Ok("capital: Yamoussoukro; the flag is 2:3, with orange at the hoist"),
        _ => Err(Error::new(format!("no country `{name}` is known here"))),
    }
}
