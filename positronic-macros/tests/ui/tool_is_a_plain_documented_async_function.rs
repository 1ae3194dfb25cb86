//! What a function lacks is said at the function.

use positronic_macros::tool;

/// Is not async.
#[tool]
fn waits_for_nothing() -> Result<(), String> {
    Ok(())
}

/// Is more than async.
#[tool]
async unsafe fn dares() -> Result<(), String> {
    Ok(())
}

#[tool]
async fn undocumented() -> Result<(), String> {
    Ok(())
}

/// Has no result.
#[tool]
async fn silent() {}

fn main() {}
