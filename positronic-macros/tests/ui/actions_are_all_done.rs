//! An action that nothing is done about does not compile, and neither does a type that is no space of actions.

use positronic_core::prelude::*;
use positronic_macros::Actions;

#[derive(Actions)]
enum Act {
    /// Moves.
    Move { dx: i32 },
    /// Stops.
    #[action(exit)]
    Stop,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Other {}

fn main() {
    _ = brain("A").r#loop("Act", |cx| {
        cx.system("").act(async |act: Act, _| match act {
            Act::Move { dx } => Ok(dx),
        })
    });
    _ = brain("B").r#loop("Act", |cx| cx.system("").act(async |_: Other, _| Ok(())));
}
