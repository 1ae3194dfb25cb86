//! Approval options are checked, and need an approval.

use positronic_core::Result;
use positronic_core::tool;

/// Pays.
#[tool(approval = "money leaves", approval_expires = "tomorrow", not_editable = true)]
async fn pay(amount: u32) -> Result<u32> {
    Ok(amount)
}

/// Searches.
#[tool(approval_expires = "24h", not_editable)]
async fn search(query: String) -> Result<String> {
    Ok(query)
}

fn main() {}
