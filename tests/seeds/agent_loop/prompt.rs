//! # Prompt
//!
//! ```typescript
//! type Prompt = {
//!   id: string;
//!   userId: string;
//!   model: 'normal' | 'high';
//!   visible: boolean;
//!   state: 'running' | 'completed' | 'waiting_for_approval';
//!   input?: string;                  // Optional user message
//!   output: PromptOutput[];          // Ordered list of everything that happened
//!   usage?: PromptUsage;             // Token counts, cost
//! };
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{Output, Prompt, PromptState, PublicId, Tier, Usage};

use crate::{complete, loop_events, prompt, start};

fn describe(prompt: &Prompt) -> String {
    let id: &PublicId = &prompt.id;
    let user: Option<&str> = prompt.user_id.as_deref();
    let tier = if prompt.model == Tier::High { "high" } else { "normal" };
    let state = match prompt.state {
        PromptState::Running => "running",
        PromptState::Completed => "completed",
        PromptState::WaitingForApproval => "waiting for approval",
        PromptState::WaitingForWebhook => "waiting for webhook",
        _ => "another state",
    };
    let question: Option<&str> = prompt.input.as_deref();
    let output: &[Output] = &prompt.output;
    let Usage { input, output: answered, .. } = prompt.usage;
    let visible = prompt.visible;
    format!("{id} {user:?} {tier} {state} visible={visible} {question:?} {} {input} {answered}", output.len())
}

#[tokio::test(start_paused = true)]
async fn loop_is_recorded_as_a_prompt() {
    let agent = brain("Agent").r#loop("Answer", |cx| cx.system("Help.").input("What's the weather?").model(Tier::High));
    let usage = Usage { input: 20, output: 3, ..Usage::default() };
    let run = start(agent, (), [Reply::text("Sunny.").usage(usage)]).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Answer LOOP_START "What's the weather?"
    3 Answer/0 LOOP_ITERATION
    4 Answer/0 LOOP_MODEL_CALL
    5 Answer/0 LOOP_MODEL_RESULT "Sunny."
    6 Answer LOOP_COMPLETE {"type":"answered"}
    "#);
    insta::assert_snapshot!(describe(&prompt(&run)), @r#"9hbkk6gh454st None high completed visible=true Some("What's the weather?") 1 20 3"#);
}
