//! Decisions about grants: their amount, the decider, once, and in time.

use std::time::Duration;

use positronic_core::machine::Refusal;
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{BudgetOutcome, NodeKind, Timeline};
use positronic_core::record::{
    Actor, Amounts, BudgetRequest, Decision, LimitKind, LoopOutcome, Path, PendingKind, Seq, Signal, SignalId,
    SignalKind,
};
use positronic_core::runner::{RunHandle, Settled, SignalError};
use serde_json::json;

use super::{Depth, Then, WEEK, Whose, asked, asking, play};
use crate::support::{Board, Journal, path, prompt, settled, waits};

async fn refused(run: &RunHandle<Board>, kind: SignalKind) -> Refusal {
    let before = run.state();
    let error = run.signal(kind, Actor::default()).await.unwrap_err();
    assert_eq!(run.state(), before, "a refused decision changes nothing");
    let SignalError::Refused(refusal) = error else { panic!("{error}") };
    refusal
}

#[tokio::test(start_paused = true)]
async fn grant_is_validated_before_it_is_recorded() {
    let (_, run) = asking(&Journal::default()).await;
    let grant = |more| SignalKind::Grant { to: path("Work"), more };

    for nothing in [Amounts::default(), Amounts::iterations(5)] {
        let refusal = refused(&run, grant(nothing)).await;
        assert!(refusal.to_string().contains("grant at least 1 token more"), "{refusal}");
    }
    for (more, kind) in [(Amounts::money("1".parse().unwrap()), "money"), (Amounts::time(WEEK), "time")] {
        let refusal = refused(&run, grant(more)).await;
        assert!(refusal.to_string().contains(&format!("no limit of {kind}")), "{refusal}");
    }
    let nowhere = refused(&run, SignalKind::Grant { to: Path::root(), more: Amounts::tokens(5) }).await;
    assert_eq!(nowhere.to_string(), "the run has not asked for more; pending: `Work` (more tokens)");
    let approved = refused(&run, SignalKind::Approve { call: path("Work"), arguments: None }).await;
    assert_eq!(approved.to_string(), "`Work` asks for more, so say how much, or reject it");
    let reply = refused(&run, SignalKind::Reply { call: path("Work"), payload: json!(1) }).await;
    assert_eq!(reply.to_string(), "`Work` asks for more tokens, not for a reply");
}

#[tokio::test(start_paused = true)]
async fn money_messages_name_the_currency() {
    let journal = Journal::default();
    let (_, run) = play(&journal, LimitKind::Money, Depth::Own, Whose::Loops, Then::Granted, true).await;
    assert_eq!(waits(&run).await, ["Work"]);

    let sentence = run.why().unwrap().sentence;
    assert!(sentence.contains("more money for `Work` (0.00003 EUR used, 0.00003 EUR allowed)"), "{sentence}");
    let (to, least) = (path("Work"), |more: &str| Amounts::money(more.parse().unwrap()));
    let refusal = refused(&run, SignalKind::Grant { to: to.clone(), more: Amounts::default() }).await;
    assert_eq!(
        refusal.to_string(),
        "that is not enough: 0.00003 EUR used, 0.00003 EUR allowed; grant at least 0.000000001 EUR more"
    );
    run.grant(&to, least("0.00001"), "ann").await.unwrap();
    let late = run.grant(&to, least("1"), "bob").await.unwrap_err().to_string();
    assert_eq!(late, "`Work` is already decided: it was granted 0.00001 EUR more by ann");
    let log = run.events(Seq(0)).await.unwrap();
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    assert_eq!(timeline.currency.as_deref(), Some("EUR"));
    let mut asked = timeline.nodes().filter_map(|node| match &node.kind {
        NodeKind::Budget(budget) => Some((budget.request.kind, &budget.outcome)),
        _ => None,
    });
    let granted = asked.find(|(kind, _)| *kind == LimitKind::Money).and_then(|(_, outcome)| outcome.clone());
    let Some(BudgetOutcome::Decided { decision: Decision::Approved, more, actor, .. }) = granted else {
        panic!("{granted:?}")
    };
    assert_eq!((more, actor.by.as_deref()), (least("0.00001"), Some("ann")));
}

#[tokio::test(start_paused = true)]
async fn one_of_two_decisions_wins_and_the_other_gets_the_winner() {
    let (play, run) = asking(&Journal::default()).await;
    let kind = SignalKind::Grant { to: path("Work"), more: Amounts::tokens(20) };
    let actor = Actor::builder().by("ann").channel("slack").build();
    let signal = Signal { id: SignalId::new("once"), actor, kind: kind.clone() };

    let seq = run.send(signal.clone()).await.unwrap();
    let late = run.reject(&path("Work"), "no", "bob").await;
    let again = run.send(signal).await.unwrap();

    assert_eq!(again, seq, "the same signal is the same answer");
    let SignalError::Refused(late) = late.unwrap_err() else { panic!() };
    assert_eq!(late.to_string(), "`Work` is already decided: it was granted 20 tokens more by ann over slack");
    // Twenty more tokens are two more iterations; then the next question shows the new usage.
    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(asked(&run.pending()), ("Work".to_owned(), LimitKind::Tokens, 50, 50));
    run.grant(&path("Work"), Amounts::tokens(1000), "bob").await.unwrap();
    let story = play.story(&run).await;
    assert!(matches!(story.settled(), Settled::Completed(_)));
    let granted = story.log().iter().find(|event| event.seq == seq).unwrap().kind.to_value();
    assert_eq!(granted["actor"], json!({"by": "ann", "channel": "slack"}));
    assert_eq!(granted["more"], json!({"tokens": 20}));
}

#[tokio::test(start_paused = true)]
async fn expired_limit_question_accepts_no_answer() {
    let journal = Journal::default();
    let then = Then::Expired(OnLimit::Exit);
    let (play, run) = play(&journal, LimitKind::Tokens, Depth::Own, Whose::Loops, then, true).await;
    waits(&run).await;
    let PendingKind::Budget(BudgetRequest { expires: Some(expires), .. }) = run.pending()[0].kind else { panic!() };
    assert_eq!(run.why().unwrap().until, Some(expires));

    tokio::time::advance(WEEK).await;
    let late = run.grant(&path("Work"), Amounts::tokens(99), "ann").await;

    assert!(matches!(late, Err(SignalError::Refused(Refusal::Expired { .. }))), "{late:?}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let story = play.story(&run).await;
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Limit { limit: LimitKind::Tokens }));
}

#[tokio::test(start_paused = true)]
async fn asking_run_accepts_cancel_pause_and_messages() {
    let (play, run) = asking(&Journal::default()).await;
    run.message("Hurry up.", "ann").await.unwrap();
    run.pause().await.unwrap();
    assert_eq!(settled(&run).await, Settled::Paused);
    run.grant(&path("Work"), Amounts::tokens(20), "ann").await.unwrap();
    assert_eq!(settled(&run).await, Settled::Paused, "grants remain");
    tokio::time::advance(Duration::from_hours(1)).await;
    run.resume().await.unwrap();
    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(asked(&run.pending()).2, 50, "a pause resets nothing");
    run.cancel("enough").await.unwrap();

    let story = play.story(&run).await;

    assert_eq!(*story.settled(), Settled::Cancelled);
    assert!(run.pending().is_empty());
    let transcript = story.transcript();
    let (before, after) = transcript.split_once("Hurry up.").unwrap();
    let iterations = |text: &str| text.matches("safe(").count();
    assert_eq!((iterations(before), iterations(after)), (3, 2), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn fork_keeps_earlier_grants_and_asks_for_later_ones() {
    let (play, run) = asking(&Journal::default()).await;
    let client = play.test.runner().client();
    let before = run.state().next.0 - 2;
    run.grant(&path("Work"), Amounts::tokens(20), "ann").await.unwrap();
    waits(&run).await;
    let after = run.state().next.0 - 1;

    let states = futures::future::join_all([before, after].map(async |at| {
        let fork = client.fork(run.id(), positronic_core::record::Seq(at), Default::default()).await.unwrap();
        client.state(&fork).await.unwrap()
    }));
    let allowed = states.await.into_iter().map(|state| state.loop_at(&path("Work")).unwrap().grants.more.tokens);

    assert_eq!(allowed.collect::<Vec<_>>(), [0, 20]);
}
