//! All errors of an action enum are reported together, each at its position.

use positronic_core::Actions;

#[derive(Actions)]
#[action(exit)]
enum Act {
    Move { dx: i32 },
    /// Jumps.
    Jump(i32, i32),
    /// Jumps again.
    #[action(name = "move", exit, last)]
    Again(#[serde(default)] Way),
    /// Stops.
    #[action]
    Stop,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Way {}

#[derive(Actions)]
struct One;

#[derive(Actions)]
enum None {}

#[derive(Actions)]
enum Of<T> {
    /// Takes anything.
    Take { it: T },
}

fn main() {}
