//! # 5. Memory System
//!
//! ```python
//! agent.memory.store("learned that X API needs auth token")
//! agent.memory.retrieve("how to call X API")
//! ```
//!
//! The model stores and searches by itself; a program can use the same store.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Start;
use positronic_core::testing::Test;
use positronic_plugins::{FactOwner, FactStore as _, Memory, MemoryFacts};
use serde_json::json;

use crate::{complete, loop_events};

async fn remember(facts: &MemoryFacts) -> Result<()> {
    let owner = FactOwner::User("ada".to_owned());
    facts.remember(&owner, "X API needs an auth token").await?;
    let found = facts.search(&owner, "how to call X API", 5).await?;
    assert_eq!(found.len(), 1);
    Ok(())
}

fn agent(memory: Memory) -> Brain<(), ()> {
    brain("Agent")
        .r#loop("Work", move |cx| cx.system("Reach the goal.").input("How do I call the X API?").plugin(memory.clone()))
        .build()
}

#[tokio::test(start_paused = true)]
async fn facts_of_a_program_and_of_the_model_are_one_store() {
    let facts = MemoryFacts::default();
    remember(&facts).await.unwrap();
    let model = ScriptedModel::new([
        Reply::call("memory_store", json!({ "fact": "the token of the X API is in the vault" })),
        Reply::text("With the token from the vault."),
    ]);
    let start = Start { user: Some("ada".to_owned()), ..Start::default() };
    let run = Test::new(model).runner().start_with(agent(Memory::new(facts)), (), start).await.unwrap();

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "How do I call the X API?"
    3 Work/0 LOOP_ITERATION memory.store memory.search memory.forget memory="Facts from earlier conversations, each with its id:\n- X API needs an auth token (f2f09be9c1ac)"
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT
    6 Work/0.0 LOOP_TOOL_CALL memory.store {"fact":"the token of the X API is in the vault"}
    7 Work/0.0 LOOP_TOOL_START
    8 Work/0.0 LOOP_TOOL_RESULT {"id":"d64931d52685"}
    9 Work/1 LOOP_ITERATION
    10 Work/1 LOOP_MODEL_CALL
    11 Work/1 LOOP_MODEL_RESULT "With the token from the vault."
    12 Work LOOP_COMPLETE {"type":"answered"}
    "#);
}
