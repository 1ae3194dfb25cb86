//! Errors of an argument point at the argument.
#![allow(unused_variables, reason = "the bodies are irrelevant")]

use positronic_core::prelude::*;
use positronic_core::tool;

struct Query {
    text: String,
}

/// Takes a pattern apart, and borrows.
#[tool]
async fn search(Query { text }: Query, order: &str, pages: Vec<&[u8]>) -> Result<()> {
    Ok(())
}

/// Names no type.
#[tool]
async fn find(query: impl Into<String>) -> Result<()> {
    Ok(())
}

struct Desk;

impl Desk {
    /// Has a self.
    #[tool]
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// Borrows its context, and has two.
#[tool]
async fn refund(cx: &ToolContext<(), ()>, other: ToolContext) -> Result<()> {
    Ok(())
}

fn main() {}
