//! Tools in sets: the model reads a line about each set, and gets the tools of the active ones.
//!
//! An assistant with forty tools does not send forty tools with every request. The calendar set is
//! active from the start; the model activates mail and travel when needed, and deactivates mail again.

use positronic_core::prelude::*;
use positronic_plugins::Toolsets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Assistant";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/toolsets.jsonl");

/// The assistant's work.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Desk {
    /// The calendar.
    pub calendar: Vec<String>,
    /// The sent mail.
    pub sent: Vec<Letter>,
}

/// A mail.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Letter {
    /// Who gets it
    pub to: String,
    /// What it says
    pub text: String,
}

/// Something that is planned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Appointment {
    /// When and what, such as `Tuesday 10:00, dentist`
    pub what: String,
}

/// A journey.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Journey {
    /// The town
    pub to: String,
}

type DeskTool = Tool<(), Desk>;

fn see_calendar() -> DeskTool {
    DeskTool::new("calendar.see", |t| {
        t.description("Lists the appointments").read_only().execute(async |_: NoArgs, cx| Ok(cx.state.calendar.clone()))
    })
}

fn plan() -> DeskTool {
    DeskTool::new("calendar.plan", |t| {
        t.description("Plans an appointment").execute(async |Appointment { what }, cx| {
            cx.update(|desk: &mut Desk| desk.calendar.push(what));
            Ok("planned")
        })
    })
}

fn read_mail() -> DeskTool {
    DeskTool::new("mail.read", |t| {
        t.description("Reads new mail").read_only().execute(async |_: NoArgs, _| {
            Ok("From Ada: shall we meet in Ghent on Tuesday at 10:00, and can you answer today?")
        })
    })
}

fn send_mail() -> DeskTool {
    DeskTool::new("mail.send", |t| {
        t.description("Sends a mail").execute(async |letter: Letter, cx| {
            cx.update(|desk: &mut Desk| desk.sent.push(letter));
            Ok("sent")
        })
    })
}

fn find_train() -> DeskTool {
    DeskTool::new("travel.find_train", |t| {
        t.description("Finds the first train of the day")
            .read_only()
            .execute(async |Journey { to }, _| Ok(format!("{to}: 07:12, arrives 09:31")))
    })
}

/// Builds the brain.
pub fn assistant() -> Brain<(), Desk> {
    let toolsets = Toolsets::new()
        .set("calendar", "See and plan appointments", [see_calendar(), plan()])
        .set("mail", "Read and answer mail", [read_mail(), send_mail()])
        .set("travel", "Find trains", [find_train()])
        .active(["calendar"]);
    brain(TITLE)
        .description("Does what stands in today's mail, with the tools that it takes")
        .state(Desk::default())
        .r#loop("Help", move |cx| {
            cx.system("You are an assistant. Do what was asked, then say so in a sentence.")
                .input("See what came in, and take care of it.")
                .plugin(toolsets.clone())
                .max_iterations(12)
        })
        .build()
}
