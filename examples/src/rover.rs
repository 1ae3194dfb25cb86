//! A fixed set of actions as an enum: the compiler checks that each action is implemented.
//!
//! A rover collects samples. The model answers with structured actions, `{reasoning, action, input}`; each variant of
//! `Act` is an action, its fields are the input. The match is exhaustive, so a new action does not compile until it is
//! implemented. A context item derives from the state, so the model always
//! reads the rover's position, while the text before it stays the same from request to request.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Rover";

/// Actions without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/rover.jsonl");

/// Positions and names of the samples.
const SAMPLES: [((i32, i32), &str); 2] = [((2, 0), "basalt"), ((2, 3), "ice")];

/// The rover's position and load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rover {
    /// Steps east and north of the base.
    pub place: (i32, i32),
    /// Remaining power in steps.
    pub power: u32,
    /// The collected samples.
    pub samples: Vec<String>,
}

/// Which way.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    North,
    East,
    South,
    West,
}

/// All that the rover can do.
#[derive(Actions)]
enum Act {
    /// Says where samples lie, as steps to the east and to the north of the base.
    #[action(read_only)]
    LookAround,
    /// Drives; each step takes one unit of power.
    Drive {
        /// Which way.
        direction: Direction,
        /// How many steps.
        steps: u32,
    },
    /// Takes the sample that lies where the rover is.
    TakeSample,
    /// Sends what was taken to the base, which ends the work.
    #[action(exit)]
    Report,
}

/// Builds the brain.
pub fn rover() -> Brain<(), Rover> {
    brain(TITLE)
        .description("Drives a rover to its samples, with a fixed space of actions")
        .state(Rover { place: (0, 0), power: 8, samples: Vec::new() })
        .r#loop("Drive", |cx| {
            let Rover { place: (east, north), power, samples } = &*cx.state;
            cx.system("You drive a rover. What it carries is sent, so it need not come back to its base.")
            .context(
                "rover",
                format!(
                    "It is {east} steps to the east and {north} to the north of its base, has power for {power} steps, and \
                     carries {samples:?}."
                ),
            )
            .input("Collect what lies within reach.")
            .structured_actions()
            .max_iterations(12)
            .act(async |act: Act, cx| match act {
                Act::LookAround => {
                    let left = SAMPLES.iter().filter(|(_, sample)| !cx.state.samples.iter().any(|has| has == sample));
                    let lies = left.map(|((east, north), sample)| format!("{sample} at {east}, {north}"));
                    Ok(cx.result(lies.collect::<Vec<_>>().join("; ")))
                }
                Act::Drive { direction, steps } => drive(&cx, direction, steps),
                Act::TakeSample => {
                    let here = SAMPLES.iter().find(|(place, _)| *place == cx.state.place);
                    let Some((_, sample)) = here else { return Err(Error::new("no sample lies here")) };
                    Ok(cx
                        .result(format!("took the {sample}"))
                        .update(move |rover: &mut Rover| rover.samples.push((*sample).to_owned())))
                }
                Act::Report => Ok(cx.result(&cx.state.samples)),
            })
        })
        .build()
}

fn drive(cx: &ToolContext<(), Rover>, direction: Direction, steps: u32) -> Result<ToolReply<Rover>> {
    let Some(power) = cx.state.power.checked_sub(steps) else {
        return Err(Error::new(format!("{steps} steps are too many: there is power for {}", cx.state.power)));
    };
    let far = i32::try_from(steps).unwrap_or(i32::MAX);
    let (east, north) = match direction {
        Direction::North => (0, far),
        Direction::East => (far, 0),
        Direction::South => (0, -far),
        Direction::West => (-far, 0),
    };
    Ok(cx.result(format!("drove {steps} steps")).update(move |rover| {
        rover.place = (rover.place.0 + east, rover.place.1 + north);
        rover.power = power;
    }))
}
