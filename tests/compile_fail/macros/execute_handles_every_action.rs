//! An unhandled action does not compile.

use positronic_core::prelude::*;
use positronic_core::Actions;

#[derive(Actions)]
enum Act {
    /// Moves.
    Move { dx: i32 },
    /// Stops.
    #[action(exit)]
    Stop,
}

fn main() {
    _ = brain("Robot").r#loop("Act", |cx| {
        cx.system("").act(async |act: Act, _| match act {
            Act::Move { dx } => Ok(dx),
        })
    });
}
