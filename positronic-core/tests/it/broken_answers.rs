//! What answers used that broke after their provider had reported it: it counts for costs and limits, wherever it broke.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::wrap::Fallback;
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::{Cost, Costs, Prompts};
use positronic_core::record::{
    EventKind, LimitKind, ModelError, ModelErrorKind, Money, ResponseMetadata, RoutingStep, Seq, Usage,
};
use positronic_core::runner::Settled;
use positronic_core::testing::{CountedIds, Story, Test, TestClock};
use serde_json::json;

use crate::support::{Play, events_named};

/// What each answer used: it costs 0.73.
const USED: Usage =
    Usage { input: 700_000, output: 30_000, cached: 0, cache_write: 0, cache_write_1h: 0, reasoning: 0 };

fn breaks(kind: ModelErrorKind) -> Reply {
    let spent = ResponseMetadata {
        provider: "scripted".to_owned(),
        model: "test".to_owned(),
        usage: USED,
        ..ResponseMetadata::default()
    };
    let via = vec![RoutingStep::Broken { metadata: Box::new(spent) }];
    Reply::error(ModelError { via, ..ModelError::new(kind, "the stream broke") })
}

fn answers() -> Reply {
    Reply::text("Because.").usage(USED)
}

fn play(replies: impl IntoIterator<Item = Reply>) -> Play {
    Play::priced(ScriptedModel::new(replies), true, &json!({"scripted/*": {"input": 1, "output": 1}}))
}

/// Returns what a run cost, what limits have counted, and its tokens.
fn costs(story: &Story) -> (Cost, Money, u64) {
    let table: PriceTable = serde_json::from_value(
        json!({"as_of": "2026-01-01", "currency": "EUR", "prices": {"scripted/*": {"input": 1, "output": 1}}}),
    )
    .unwrap();
    let costs = Costs::of(story.log().iter().map(|event| &**event), &table);
    (costs.total().total(), costs.counted().unwrap().spent.known, costs.total().usage.total())
}

fn cents(cents: u64) -> Money {
    Money::of_nanos(cents * 10_000_000)
}

#[tokio::test(start_paused = true)]
async fn tokens_of_an_answer_that_broke_are_paid_like_those_of_its_retry() {
    let story = play([breaks(ModelErrorKind::Truncated), answers()])
        .run(brain("Asker").r#loop("Ask", |cx| cx.system("Answer.").input("Why?")), ())
        .await;

    assert_eq!(costs(&story), (Cost::Known(cents(146)), cents(146), 2 * USED.total()));
    assert_eq!(events_named(&story, "LOOP_ANSWER_BROKEN"), ["Ask/0"]);
    let prompts = Prompts::of(story.log().iter().map(|event| &**event));
    let usage: u64 = prompts.iter().map(|prompt| prompt.usage.total()).sum();
    assert_eq!(usage, 2 * USED.total());
    let complete = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopComplete { usage, .. } => Some(usage.total()),
        _ => None,
    });
    assert_eq!(complete, Some(2 * USED.total()));
    let retried = story.log().iter().any(|event| match &event.kind {
        EventKind::LoopModelRetry { error, .. } => error.via.is_empty(),
        _ => false,
    });
    assert!(retried, "the log has it once");
}

#[tokio::test(start_paused = true)]
async fn limits_of_money_and_tokens_bind_after_an_answer_that_broke() {
    for kind in [LimitKind::Money, LimitKind::Tokens] {
        let asker = brain("Asker").r#loop("Ask", move |cx| {
            let cx = cx.system("Answer.").input("Why?");
            match kind {
                LimitKind::Money => cx.max_money("0.73"),
                _ => cx.max_tokens(730_000),
            }
        });
        let play = play([breaks(ModelErrorKind::Truncated)]);
        let run = play.start(asker, ()).await;
        let story = Story::of(&run).await;

        assert_eq!(events_named(&story, "LOOP_LIMIT"), ["Ask"], "{kind:?}: {}", story.events());
        assert_eq!(play.requests().len(), 1, "{kind:?}: the model is not asked again");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_request_that_fails_for_good_count() {
    let asker = brain("Asker").r#loop("Ask", |cx| cx.system("Answer.").input("Why?"));

    let story = play([breaks(ModelErrorKind::Filtered)]).run(asker, ()).await;

    assert!(matches!(story.settled(), Settled::Failed(_)), "{:?}", story.settled());
    assert_eq!(costs(&story), (Cost::Known(cents(73)), cents(73), USED.total()));
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_question_count_however_it_ends() {
    for (replies, broken) in [
        (vec![breaks(ModelErrorKind::Truncated), answers()], 1),
        (vec![breaks(ModelErrorKind::Filtered), answers()], 1),
        (vec![breaks(ModelErrorKind::Truncated), breaks(ModelErrorKind::Filtered), answers()], 2),
    ] {
        let asks = brain("Asks").step("Ask", async |cx| {
            if cx.model().ask("Why?").await.is_err() {
                cx.model().ask("And now?").await?;
            }
            Ok(())
        });

        let story = play(replies).run(asks, ()).await;

        assert_eq!(events_named(&story, "LOOP_ANSWER_BROKEN").len(), broken);
        let all = 73 * (broken as u64 + 1);
        assert_eq!(costs(&story), (Cost::Known(cents(all)), cents(all), USED.total() * (broken as u64 + 1)));
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_model_count_where_its_fallback_answers() {
    let model =
        Fallback::new(ScriptedModel::new([breaks(ModelErrorKind::Server)])).then(ScriptedModel::new([answers()]));
    let table = json!({"as_of": "2026-01-01", "currency": "EUR", "prices": {"scripted/*": {"input": 1, "output": 1}}});
    let runner = Runner::new(model)
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .prices(serde_json::from_value::<PriceTable>(table).unwrap());
    let asker = brain("Asker").r#loop("Ask", |cx| cx.system("Answer.").input("Why?"));

    let story = Test::with(runner).run(asker, ()).await;

    assert_eq!(costs(&story), (Cost::Known(cents(146)), cents(146), 2 * USED.total()));
    let via = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopModelResult { metadata, .. } => Some((event.seq, metadata.via.clone())),
        _ => None,
    });
    let (seq, via) = via.unwrap();
    assert!(matches!(&via[..], [RoutingStep::Failed { .. }]), "{via:?}");
    let broken = story.log().iter().find(|event| event.kind.name() == "LOOP_ANSWER_BROKEN").unwrap();
    assert_eq!(Seq(broken.seq.0 + 1), seq);
}
