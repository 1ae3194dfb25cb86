//! Iterations with calls scripted in code instead of a model.

use positronic_core::dsl::Loop;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::Costs;
use positronic_core::record::EventKind;
use positronic_core::runner::Settled;
use serde_json::{Value, json};

use crate::support::{Journal, Play, error_of, path, results, success, waits};

type Kitchen = Loop<(), u32, Journal>;

/// Brews while something is left; `config` extends the loop.
fn kitchen(journal: &Journal, config: impl Fn(Kitchen) -> Kitchen + Send + Sync + 'static) -> Brain<(), u32> {
    let kitchen = brain("Kitchen").state(2_u32).services::<Journal>().r#loop("Brew", move |cx| {
        let calls = (0..(*cx.state).min(1)).map(|_| ("brew", json!({})));
        config(cx.system("Brew.")).scripted(calls)
    });
    kitchen.bind(journal.clone())
}

fn brew(config: Kitchen) -> Kitchen {
    config.tool("brew", |t| {
        t.execute(async |_: NoArgs, cx| {
            cx.services.note("brewed");
            Ok(cx.result("hot").update(|left: &mut u32| *left -= 1))
        })
    })
}

#[tokio::test(start_paused = true)]
async fn scripted_calls_ask_no_model_and_cost_nothing() {
    let (journal, play) = (Journal::default(), Play::new([]));

    let story = play.run(&kitchen(&journal, brew), ()).await;

    assert_eq!(journal.take(), ["brewed", "brewed"]);
    assert_eq!(*story.state(), json!(0));
    assert_eq!(results(&story, "Brew"), [success("hot"), success("hot")]);
    let asked: Vec<_> = story
        .log()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::LoopModelCall { model, .. } => Some(model.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(asked, ["code"; 3], "the log says who has decided");
    let costs = Costs::of(story.log().iter().map(|event| &**event), &PriceTable::bundled());
    assert_eq!(costs.total().calls, 0);
}

#[tokio::test(start_paused = true)]
async fn scripted_calls_are_validated_like_model_calls() {
    let (journal, play) = (Journal::default(), Play::new([]));
    let asking = |config: Kitchen| {
        config.tool("brew", |t| {
            t.requires_approval("it is late")
                .execute(async |_: NoArgs, cx| Ok(cx.result("hot").update(|left: &mut u32| *left = 0)))
        })
    };
    let run = play.start(&kitchen(&journal, asking), ()).await;

    assert_eq!(waits(&run).await, ["Brew/0.0"]);
    run.approve(&path("Brew/0.0"), "ann").await.unwrap();
    assert!(matches!(play.story(&run).await.settled(), Settled::Completed(_)));

    let play = Play::new([]);
    let story = play.run(&kitchen(&journal, |config| config.max_iterations(2)), ()).await;
    assert_eq!(error_of(&results(&story, "Brew")[0]), "there is no tool `brew`; the tools are ");
    assert_eq!(*story.state(), Value::from(2), "an iteration limit applies to scripted calls too");
}

#[tokio::test(start_paused = true)]
async fn money_limit_ignores_scripted_calls() {
    let journal = Journal::default();
    let play = Play::priced(ScriptedModel::new([]), true, &json!({"gpt-4o": {"input": 1, "output": 1}}));

    let story = play.run(&kitchen(&journal, |config| brew(config).max_money("0.01")), ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    assert_eq!(journal.take(), ["brewed", "brewed"], "an answer without tokens is no unknown cost");

    let play = Play::new([]);
    let story = play.run(&kitchen(&journal, |config| brew(config).max_money("0.01")), ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "also without prices: {:?}", story.settled());
}
