//! Slow plugins: they ask models and read messages that arrive meanwhile.

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, Message, ModelRequest};
use positronic_core::runner::Settled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Nothing;
use crate::support::contexts;
use crate::support::{Play, done, tool_texts};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Summary {
    iterations: u32,
    last: String,
}

impl PluginState for Summary {
    const NAME: &'static str = "summary";
}

/// Asks a model in every second iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Asking {
    type State = Summary;

    fn initial(&self) -> Summary {
        Summary { iterations: 0, last: String::new() }
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Summary>) -> Result<()> {
        if cx.state.iterations % 2 == 1 {
            let (one, other) = futures::join!(
                cx.model().system("Sum up.").ask(format!("{} messages", cx.messages().len())),
                cx.model().ask("Anything else?"),
            );
            cx.state.last = format!("{} / {}", one?, other?);
        }
        cx.state.iterations += 1;
        let last = cx.state.last.clone();
        cx.context("summary", last);
        Ok(())
    }
}

/// Asks a slow model, abandons the question, and asks another one.
#[derive(Debug, Clone, Copy)]
struct Impatient;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Impatient {
    type State = Summary;

    fn initial(&self) -> Summary {
        Summary { iterations: 0, last: String::new() }
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Summary>) -> Result<()> {
        let patience = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(patience, cx.model().ask("long")).await.is_err());
        cx.state.last = cx.model().ask("short").await?;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn answer_to_an_abandoned_plugin_question_is_not_used_for_another() {
    let says = |request: &ModelRequest| {
        let asked = serde_json::to_string(&request.messages.messages()).unwrap();
        if asked.contains("long") {
            Reply::text("the long answer").after(std::time::Duration::from_secs(5))
        } else if asked.contains("short") {
            Reply::text("the short answer").after(std::time::Duration::from_secs(10))
        } else {
            done()
        }
    };
    for lockstep in [true, false] {
        let hasty = brain("Hasty").r#loop("Work", |cx| cx.system("Work.").input("Go").plugin(Impatient));

        let story = Play::of(ScriptedModel::from_fn(says), lockstep).run(&hasty, ()).await;

        assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
        let kept = story.log().iter().find_map(|event| match &event.kind {
            EventKind::LoopIteration(iteration) => Some(format!("{:?}", iteration.plugins)),
            _ => None,
        });
        assert!(kept.as_ref().is_some_and(|kept| kept.contains("the short answer")), "{kept:?}");
    }
}

/// Asks a model too late: the iteration has begun, and the model is answering.
#[derive(Debug, Clone)]
struct Late(std::sync::Arc<std::sync::Mutex<Option<tokio::task::JoinHandle<Result<String>>>>>);

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Late {
    type State = Summary;

    fn initial(&self) -> Summary {
        Summary { iterations: 0, last: String::new() }
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Summary>) -> Result<()> {
        let question = cx.model();
        *self.0.lock().unwrap() = Some(tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            question.ask("Too late?").await
        }));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn plugin_question_after_its_iteration_began_is_an_error_and_the_run_continues() {
    let late = Late(std::sync::Arc::default());
    let plugin = late.clone();
    let brain = brain("Late").r#loop("Work", move |cx| cx.system("Work.").input("Go").plugin(plugin.clone()));

    let story = Play::new([Reply::text("Done.").after(std::time::Duration::from_secs(5))]).run(&brain, ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    let late = late.0.lock().unwrap().take().unwrap();
    let asked = late.await.unwrap();
    assert!(asked.unwrap_err().to_string().contains("only before its iteration begins"));
}

#[tokio::test(start_paused = true)]
async fn plugin_question_is_recorded_outside_the_conversation() {
    let asking = brain("Asking").r#loop("Work", |cx| {
        cx.system("Work.").input("Go.").plugin(Asking).tool("ping", |t| t.execute(async |_: NoArgs, _| Ok("pong")))
    });
    let ping = || Reply::call("ping", json!({}));
    let play = Play::new([ping(), Reply::text("short"), Reply::text("no"), ping(), done()]);

    let story = play.run(&asking, ()).await;

    let requests = play.requests();
    assert_eq!(contexts(&requests[3]), ["summary: short / no"]);
    assert_eq!(contexts(&requests[4]), ["summary: short / no"], "it asks only in every second iteration");
    assert_eq!(tool_texts(&requests[4]), ["pong", "pong"]);
    assert!(!story.transcript().contains("short"), "{}", story.transcript());
    assert_eq!(story.state(), &Value::Null);
}

#[tokio::test(start_paused = true)]
async fn message_during_preparation_is_read_in_the_same_iteration() {
    let slow = brain("Slow").r#loop("Work", |cx| cx.system("Work.").input("Go.").plugin(Slow));
    let play = Play::new([done()]);
    let run = play.start(&slow, ()).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;

    run.message("Stop!", "ann").await.unwrap();

    assert!(matches!(run.settled().await, Settled::Completed(_)));
    let [request] = &*play.requests() else { panic!("one request") };
    assert_eq!(request.messages.messages(), [Message::user("Go.\n\nStop!")]);
    assert_eq!(contexts(request), ["slow: 1 messages"]);
}

/// Takes a second to read the messages.
#[derive(Debug, Clone, Copy)]
struct Slow;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Slow {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        let messages = cx.messages().len();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        cx.context("slow", format!("{messages} messages"));
        Ok(())
    }
}
