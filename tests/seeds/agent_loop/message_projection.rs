//! # Message projection
//!
//! ```typescript
//! for (const output of prompt.output) {
//!   if (output.type === 'widget') continue;          // Skip — display only
//!   if (output.type === 'text')   → assistant message
//!   if (output.type === 'file')   → assistant message (text summary)
//!   if (output.type === 'tool')   → function_call + function_call_output pair
//! }
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::projection::prompts_to_messages;
use positronic_core::record::{Message, OutputKind, Prompt};
use serde_json::json;

use crate::{complete, loop_events, prompt, start};

fn becomes(prompt: &Prompt) -> Vec<&'static str> {
    let mut messages = Vec::new();
    for output in &prompt.output {
        messages.push(match &output.kind {
            OutputKind::Widget(_) => continue, // display only
            OutputKind::Text { .. } => "an assistant message",
            OutputKind::File(_) => "a line of text in the tool's message",
            OutputKind::Tool(_) => "a call and a tool message",
            _ => "another message",
        });
    }
    messages
}

fn project(prompt: &Prompt) -> Vec<Message> {
    prompts_to_messages([prompt])
}

fn agent() -> Brain<(), ()> {
    brain("Agent")
        .r#loop("Work", |cx| {
            cx.system("Help.").input("How was the year?").tool("report", |t| {
                t.execute(async |_: NoArgs, cx| {
                    cx.display_widget("chart", json!([410, 395]), "two bars")?;
                    cx.save_file("year.txt", "text/plain", "It was good.").await?;
                    Ok("written")
                })
            })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn widgets_are_skipped_and_files_are_a_line() {
    let run = start(agent(), (), [Reply::call("report", json!({})), Reply::text("Good.")]).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "How was the year?"
    3 Work/0 LOOP_ITERATION report
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT
    6 Work/0.0 LOOP_TOOL_CALL report {}
    7 Work/0.0 LOOP_TOOL_START
    8 Work/0.0 LOOP_OUTPUT widget chart [410,395]
    9 Work/0.0 LOOP_OUTPUT file year.txt text/plain
    10 Work/0.0 LOOP_TOOL_RESULT "written"
    11 Work/1 LOOP_ITERATION
    12 Work/1 LOOP_MODEL_CALL
    13 Work/1 LOOP_MODEL_RESULT "Good."
    14 Work LOOP_COMPLETE {"type":"answered"}
    "#);
    let prompt = prompt(&run);
    assert_eq!(
        becomes(&prompt),
        ["a call and a tool message", "a line of text in the tool's message", "an assistant message"]
    );
    let messages: Vec<_> = project(&prompt).iter().map(|message| json!(message).to_string()).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    {"role":"user","text":"How was the year?"}
    {"by":{"model":"scripted","provider":"scripted"},"parts":[{"arguments":"{}","call":"1zads8cez28xa","name":"report","type":"call"}],"role":"assistant"}
    {"call":"1zads8cez28xa","name":"report","role":"tool","text":"written\n[file year.txt, text/plain, 12 bytes]"}
    {"by":{"model":"scripted","provider":"scripted"},"parts":[{"text":"Good.","type":"text"}],"role":"assistant"}
    "#);
}
