//! Model questions of steps and plugins beyond a limit.

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{Amounts, LimitKind, LoopOutcome, Path, Status, ToolResult};
use positronic_core::runner::Settled;
use serde_json::json;

use super::{asked, tokens};
use crate::support::{Board, Journal, Play, done, events_named, path, prompt, results, settled, waits};

#[tokio::test(start_paused = true)]
async fn step_question_blocks_until_a_grant_and_the_step_keeps_its_values() {
    let journal = Journal::default();
    let asking = brain("Asking").services::<Journal>().step("Ask", async |cx| {
        let tries = cx.services.count();
        let id = cx.once("id", async { Ok(tries) }).await?;
        let mut texts = Vec::new();
        for question in ["one", "two", "three"] {
            texts.push(cx.model().ask(question).await?);
        }
        Ok(Board { done: [vec![id.to_string()], texts].concat() })
    });
    let asking = asking.budget(|budget| budget.max_tokens(20).ask_for_more()).bind(journal.clone());
    let play = Play::new(["1", "2", "3"].map(|text| Reply::text(text).usage(tokens(10))));
    let run = play.start(asking, ()).await;

    assert_eq!(waits(&run).await, [""]);
    assert_eq!(run.status(), Status::Waiting);
    run.grant(&Path::root(), Amounts::tokens(10), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(*story.state(), json!({"done": ["1", "1", "2", "3"]}), "no answer is asked for twice");
    assert_eq!(journal.count(), 3, "the step has run twice");
    assert_eq!(events_named(&story, "STEP_BLOCKED"), ["Ask"]);
}

#[tokio::test(start_paused = true)]
async fn step_question_beyond_the_budget_is_an_error() {
    for refuse in [false, true] {
        let asking = brain("Asking").step("Ask", async |cx| {
            cx.model().ask("one").await?;
            cx.model().ask("two").await.map_err(|error| Error::new(format!("no luck: {error}")))
        });
        let asking = asking.budget(|budget| {
            let budget = budget.max_tokens(10);
            if refuse { budget.ask_for_more() } else { budget }
        });
        let play = Play::new([Reply::text("1").usage(tokens(10))]);
        let run = play.start(asking, ()).await;
        if refuse {
            waits(&run).await;
            run.reject(&Path::root(), "no", "ann").await.unwrap();
        }

        let Settled::Failed(failure) = settled(&run).await else { panic!() };
        let why = "no luck: the model is not called: the brain `Asking` has used up its budget of tokens";
        assert_eq!(failure.message, format!("the step `Ask` failed: {why}"));
    }
}

#[tokio::test(start_paused = true)]
async fn step_in_an_exhausted_loop_ends_or_continues_with_the_loop() {
    for ask in [false, true] {
        let inner = || {
            brain("Inner").step("Ask", async |cx| {
                let first = cx.model().ask("one").await?;
                let second = cx.model().ask("two").await?;
                Ok(first + &second)
            })
        };
        let outer = brain("Outer").r#loop("Work", move |cx| {
            let config = cx.system("").brain("inner", inner()).max_tokens(20);
            if ask { config.ask_for_more() } else { config }
        });
        let used = |reply: Reply| reply.usage(tokens(10));
        let more = if ask { vec![used(Reply::text("2")), used(done())] } else { Vec::new() };
        let first = vec![used(Reply::call("inner", json!({}))), used(Reply::text("1"))];
        let play = Play::new([first, more].concat());
        let run = play.start(outer, ()).await;
        if ask {
            assert_eq!(waits(&run).await, ["Work"]);
            run.grant(&path("Work"), Amounts::tokens(100), "ann").await.unwrap();
        }

        let story = play.story(&run).await;

        assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
        match (&results(&story, "Work")[0], ask) {
            (ToolResult::Success { output, .. }, true) => assert_eq!(*output, json!("12")),
            (ToolResult::Interrupted { reason }, false) => assert!(reason.contains("tokens"), "{reason}"),
            (other, _) => panic!("{other:?}"),
        }
    }
}

/// A plugin that asks a model in every iteration.
struct Asker;

#[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Heard {
    answers: Vec<String>,
}

impl PluginState for Heard {
    const NAME: &'static str = "asker";
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Asker {
    type State = Heard;

    fn initial(&self) -> Heard {
        Heard::default()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Heard>) -> Result<()> {
        for question in ["one", "two"] {
            let heard = cx.model().ask(question).await?;
            cx.state.answers.push(heard);
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn plugin_question_blocks_until_a_grant_and_is_asked_once() {
    let brain = brain("Asking").r#loop("Work", |cx| cx.system("").plugin(Asker).max_tokens(10).ask_for_more());
    let used = |text: &str| Reply::text(text).usage(tokens(10));
    let play = Play::new(["1", "2", "Done."].map(used));
    let run = play.start(brain, ()).await;

    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(asked(&run.pending()), ("Work".to_owned(), LimitKind::Tokens, 10, 10));
    run.grant(&path("Work"), Amounts::tokens(5), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work"], "both are answered, and the iteration itself may not ask");
    run.grant(&path("Work"), Amounts::tokens(100), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Answered));
    assert_eq!(events_named(&story, "LOOP_MODEL_RESULT").len(), 3);
}
