//! # Tool invocation
//!
//! ```typescript
//! type ToolInput<TInput> = {
//!   userId: string;
//!   input: z.input<TInput>;           // Zod-validated arguments
//!   state: State;                      // Read/write per-plugin state
//!   services: Services;                // DI container
//!   displayWidget?: (widget, data, fallback) => void;  // Emit display widgets
//!   addFileOutput: (file) => void;     // Emit file outputs
//! };
//! ```

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Start;
use positronic_core::testing::Test;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{complete, loop_events};

#[derive(Serialize, Deserialize)]
struct Trip {
    town: String,
}

struct Weather {
    sunny: bool,
}

/// Tells the weather.
#[tool]
async fn forecast(
    /// The number of days.
    days: u32,
    cx: ToolContext<(), Trip, Weather>,
) -> Result<bool> {
    let user: Option<&str> = cx.user_id();
    let town: &str = &cx.state.town;
    let sunny: bool = cx.services.sunny;
    cx.display_widget("forecast", json!({ "town": town, "sunny": sunny }), format!("{town}: sunny for {days} days"))?;
    cx.save_file("forecast.txt", "text/plain", format!("for {user:?}")).await?;
    Ok(sunny)
}

#[tokio::test(start_paused = true)]
async fn tool_has_user_state_services_widgets_and_files() {
    let agent = brain("Agent")
        .services::<Weather>()
        .state(Trip { town: "Ghent".to_owned() })
        .r#loop("Work", |cx| cx.system("Help.").tools([forecast()]))
        .bind(Weather { sunny: true });
    let model = ScriptedModel::new([Reply::call("forecast", json!({ "days": 3 })), Reply::text("Sunny.")]);
    let start = Start { user: Some("ada".to_owned()), ..Start::default() };
    let run = Test::new(model).runner().start_with(agent, (), start).await.unwrap();

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "Begin."
    3 Work/0 LOOP_ITERATION forecast
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT
    6 Work/0.0 LOOP_TOOL_CALL forecast {"days":3}
    7 Work/0.0 LOOP_TOOL_START
    8 Work/0.0 LOOP_OUTPUT widget forecast {"sunny":true,"town":"Ghent"}
    9 Work/0.0 LOOP_OUTPUT file forecast.txt text/plain
    10 Work/0.0 LOOP_TOOL_RESULT true
    11 Work/1 LOOP_ITERATION
    12 Work/1 LOOP_MODEL_CALL
    13 Work/1 LOOP_MODEL_RESULT "Sunny."
    14 Work LOOP_COMPLETE {"type":"answered"}
    "#);
}
