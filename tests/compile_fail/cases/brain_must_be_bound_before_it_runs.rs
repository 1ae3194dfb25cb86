//! A brain that needs services is bound to them before it runs.

use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::runner::Runner;
use positronic_core::testing::Test;

struct Acme;

async fn start() {
    let support = brain("Support").services::<Acme>().step("Look", async |_| Ok(7));

    let runner = Runner::new(ScriptedModel::new([]));
    _ = runner.start(&support, ()).await;

    _ = Test::new(ScriptedModel::new([])).run(support, ()).await;
}

fn main() {
    _ = start();
}
