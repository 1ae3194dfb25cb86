//! A step uses the services that its brain declares: `brain("Report").services::<Database>()`.

use positronic_core::prelude::*;

struct Database;

impl Database {
    fn rows(&self) -> u32 {
        7
    }
}

fn count(database: &Database) -> u32 {
    database.rows()
}

fn main() {
    _ = brain("Report").step("Count", async |cx| Ok(count(&cx.services)));
    _ = brain("Report").step("Count", async |cx| Ok(cx.services.rows()));
}
