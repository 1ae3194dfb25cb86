//! Errors of a function's signature point at the function.

use positronic_core::Result;
use positronic_core::tool;

/// Is not async.
#[tool]
fn waits_for_nothing() -> Result<()> {
    Ok(())
}

/// Is more than async.
#[tool]
async unsafe fn dares() -> Result<()> {
    Ok(())
}

#[tool]
async fn undocumented() -> Result<()> {
    Ok(())
}

/// Has no result.
#[tool]
async fn silent() {}

fn main() {}
