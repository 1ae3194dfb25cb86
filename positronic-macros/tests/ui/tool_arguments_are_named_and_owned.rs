//! What is wrong with an argument is said at the argument.

use positronic_macros::tool;

struct Query {
    text: String,
}

/// Takes a pattern apart, and borrows.
#[tool]
async fn search(Query { text }: Query, order: &str, pages: Vec<&[u8]>) -> Result<(), String> {
    Ok(())
}

/// Names no type.
#[tool]
async fn find(query: impl Into<String>) -> Result<(), String> {
    Ok(())
}

struct Desk;

impl Desk {
    /// Has a self.
    #[tool]
    async fn close(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Borrows its context, and has two.
#[tool]
async fn refund(cx: &ToolContext<(), ()>, other: ToolContext) -> Result<(), String> {
    Ok(())
}

fn main() {}
