//! Budgets over the prompts of a conversation.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::record::{
    Amounts, Budget, Busy, Charge, LimitKind, Message, Money, Path, Seq, Start, Status, Timer, Timestamp, Trigger,
    TriggerId,
};
use positronic_core::runner::{Conversation, ConversationError, FireError, Fork, RunHandle, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::store::prelude::*;
use positronic_core::testing::{CountedIds, Lockstep as _, TestClock};
use serde_json::{Value, json};

use super::{asked, tokens};
use crate::support::{done, waits};

/// The subject that the model looks up twice.
const LOOK: &str = "Look twice.";

/// A model whose answers use ten tokens and cost ten millionths each.
fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|request| {
        let messages = request.messages.messages();
        let said = messages.iter().rev().find_map(|message| match message {
            Message::User { text, .. } => Some(text.as_str()),
            Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        let looks = if said == Some(LOOK) { 2 } else { 0 };
        let iteration: u32 = request.path.as_str().rsplit_once('/').unwrap().1.parse().unwrap();
        let reply = if iteration < looks { Reply::call("look", json!({})) } else { done() };
        reply.usage(tokens(10))
    })
}

fn helper() -> Brain<(), ()> {
    brain("Helper")
        .r#loop("Chat", |cx| {
            cx.system("Help.").tool("look", |t| t.read_only().execute(async |_: NoArgs, _| Ok("seen")))
        })
        .build()
}

fn table(currency: &str, prices: &Value) -> PriceTable {
    serde_json::from_value(json!({"as_of": "2026-01-01", "currency": currency, "prices": prices})).unwrap()
}

fn process(store: &MemoryStore, prices: Option<PriceTable>) -> Runner {
    Runner::new(model())
        .store(store.clone())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .prices(prices)
        .brain(helper())
}

async fn says(chat: &Conversation, text: &str) -> RunHandle<()> {
    chat.send(&helper(), (), text).await.unwrap()
}

async fn refused(chat: &Conversation) -> ConversationError {
    chat.send(&helper(), (), "more").await.map(|_| ()).unwrap_err()
}

fn budget() -> Budget {
    Budget::default()
}

#[tokio::test(start_paused = true)]
async fn prompts_share_one_budget_and_none_begins_after_it_is_exhausted() {
    let store = MemoryStore::new();
    let chat = process(&store, None).conversation("c").budget(budget().max_tokens(25));
    says(&chat, "one").await.result().await.unwrap();
    says(&chat, "two").await.result().await.unwrap();

    // It may ask once more and is then beyond the budget.
    let Settled::Failed(failure) = says(&chat, LOOK).await.settled().await else { panic!() };

    assert_eq!(failure.message, "the conversation used up its budget of tokens in the loop `Chat`: 25 tokens");
    let refused = refused(&chat).await;
    assert!(matches!(refused, ConversationError::Spent { kind: LimitKind::Tokens, limit: 25, used: 30, .. }));
    assert_eq!(
        refused.to_string(),
        "the conversation `c` has used up its budget of tokens: 30 tokens of 25 tokens; give it a larger one"
    );
    assert_eq!(chat.runs().await.unwrap().len(), 3, "nothing has begun");
    let more = chat.clone().budget(budget().max_tokens(45));
    says(&more, "three").await.result().await.unwrap();
    assert_eq!(says(&more, "four").await.state().start.shared_budget.as_ref().unwrap().used, spent(4));
}

/// Usage of `n` iterations without prices.
fn spent(iterations: u64) -> Amounts {
    Amounts { iterations, tokens: 10 * iterations, ..Amounts::default() }
}

#[tokio::test(start_paused = true)]
async fn budget_counts_earlier_prompts_in_every_process() {
    let store = MemoryStore::new();
    let before = process(&store, None).conversation("c");
    says(&before, "one").await.result().await.unwrap();
    says(&before, "two").await.result().await.unwrap();
    says(&before.clone().budget(budget().max_iterations(4)), "three").await.result().await.unwrap();

    // Another process knows only the log.
    let other = process(&store, None).conversation("c");
    let run = says(&other, "four").await;
    run.result().await.unwrap();

    let refused = refused(&other).await;
    assert!(
        matches!(refused, ConversationError::Spent { kind: LimitKind::Iterations, limit: 4, used: 4, .. }),
        "{refused}"
    );
    let log = store_log(&store, &run).await;
    let replayed = positronic_core::machine::RunState::replay(log.iter().map(|event| &**event)).unwrap();
    assert_eq!(serde_json::to_value(&replayed).unwrap(), serde_json::to_value(run.state()).unwrap());
    let started = log[0].kind.to_value()["start"]["shared_budget"].clone();
    let used = json!({"iterations": 3, "tokens": 30});
    assert_eq!(started, json!({"budget": {"max_iterations": 4}, "used": used, "unpriced": "scripted/scripted"}));
    let elsewhere = process(&store, None).conversation("d");
    says(&elsewhere, "one").await.result().await.unwrap();
}

async fn store_log<R>(store: &MemoryStore, run: &RunHandle<R>) -> Vec<std::sync::Arc<positronic_core::record::Event>> {
    store.read(run.id(), Seq(0), usize::MAX).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn unused_grant_is_available_to_later_prompts() {
    let store = MemoryStore::new();
    let runner = process(&store, None);
    let chat = runner.conversation("c").budget(budget().max_tokens(10).ask_for_more());
    says(&chat, "one").await.result().await.unwrap();

    let run = says(&chat, "two").await;
    assert_eq!(waits(&run).await, [""]);
    assert_eq!(asked(&run.pending()), (String::new(), LimitKind::Tokens, 10, 10), "of the whole conversation");
    run.grant(&Path::root(), Amounts::tokens(20), "ann").await.unwrap();
    run.result().await.unwrap();

    let next = says(&chat, "three").await;
    next.result().await.unwrap();
    assert_eq!(next.state().start.shared_budget.as_ref().unwrap().granted, Amounts::tokens(20));
    let last = says(&chat, "four").await;
    assert_eq!(waits(&last).await, [""]);
    assert_eq!(asked(&last.pending()), (String::new(), LimitKind::Tokens, 30, 30));
    last.reject(&Path::root(), "enough", "ann").await.unwrap();
    assert!(matches!(last.settled().await, Settled::Failed(_)));
}

#[tokio::test(start_paused = true)]
async fn tighter_of_prompt_limit_and_conversation_limit_applies() {
    let store = MemoryStore::new();
    let runner = process(&store, None);
    let careful = || helper().budget(|budget| budget.max_tokens(15).max_iterations(9));
    let chat = runner.conversation("c").budget(budget().max_tokens(35));
    let failed = async |chat: &Conversation| {
        let run = chat.send(&careful(), (), LOOK).await.unwrap();
        let Settled::Failed(failure) = run.settled().await else { panic!() };
        failure.message
    };

    assert_eq!(failed(&chat).await, "the brain `Helper` used up its budget of tokens in the loop `Chat`: 15 tokens");
    let wide = chat.clone().budget(budget().max_tokens(30));
    assert_eq!(failed(&wide).await, "the conversation used up its budget of tokens in the loop `Chat`: 30 tokens");
    let own = Start { budget: Some(budget().max_tokens(1)), ..Start::default() };
    runner.start_with(careful(), (), own).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unenforceable_money_limit_begins_no_prompt() {
    let (store, free) = (MemoryStore::new(), MemoryStore::new());
    let prices = json!({"scripted/*": {"input": 1, "output": 1}});
    let money = || budget().max_money(Money::of_nanos(25_000));
    let euros = process(&store, Some(table("EUR", &prices))).conversation("c").budget(money());
    for text in ["one", "two", "three"] {
        says(&euros, text).await.result().await.unwrap();
    }
    let refused_euros = refused(&euros).await;
    assert!(
        matches!(refused_euros, ConversationError::Spent { kind: LimitKind::Money, used: 30_000, .. }),
        "{refused_euros}"
    );
    assert_eq!(
        refused_euros.to_string(),
        "the conversation `c` has used up its budget of money: 0.00003 EUR of 0.000025 EUR; give it a larger one"
    );
    let dollars = process(&store, Some(table("USD", &prices))).conversation("c");
    assert_eq!(
        refused(&dollars).await.to_string(),
        "the conversation `c` has a budget of money: it counts in EUR, and this runner's prices are in USD"
    );
    let unknown = process(&free, None).conversation("c");
    says(&unknown, "one").await.result().await.unwrap();
    assert_eq!(
        refused(&unknown.budget(money())).await.to_string(),
        "the conversation `c` has a budget of money: the cost of `scripted/scripted` in it is unknown, and this runner \
         has no prices; give it a table that has one for it"
    );
}

/// The question's sentence, up to the usage.
fn question<R>(run: &RunHandle<R>) -> String {
    let sentence = run.why().unwrap().sentence;
    sentence.split_once(" for ").unwrap().1.to_owned()
}

#[tokio::test(start_paused = true)]
async fn grant_raises_only_the_limit_it_answers() {
    let store = MemoryStore::new();
    let chat = process(&store, None).conversation("c").budget(budget().max_tokens(25));
    says(&chat, "one").await.result().await.unwrap();
    let careful = helper().budget(|budget| budget.max_tokens(10).ask_for_more());

    let run = chat.send(careful, (), LOOK).await.unwrap();
    assert_eq!(waits(&run).await, [""]);
    assert_eq!(
        question(&run),
        "a person's decision about more tokens for the run (10 tokens used, 10 tokens allowed)."
    );
    run.grant(&Path::root(), Amounts::tokens(1000), "ann").await.unwrap();

    let Settled::Failed(failure) = run.settled().await else { panic!("15 were left of the conversation's") };
    assert_eq!(failure.message, "the conversation used up its budget of tokens in the loop `Chat`: 25 tokens");
    let refused = refused(&chat).await;
    assert!(matches!(refused, ConversationError::Spent { limit: 25, used: 30, .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn each_of_two_limits_applies_its_own_policy() {
    let store = MemoryStore::new();
    let runner = process(&store, None);
    let ends = async |name: &str, conversation: Budget, own: Budget| {
        let chat = runner.conversation(name).budget(conversation);
        let run = chat.send(helper().budget(|_| own), (), LOOK).await.unwrap();
        match run.settled().await {
            Settled::Failed(failure) => failure.message,
            Settled::Completed(_) => "completed".to_owned(),
            Settled::Waiting(_) => question(&run),
            other => panic!("{other:?}"),
        }
    };
    let conversations = "the conversation used up its budget of tokens in the loop `Chat`: 10 tokens";
    let own = "the brain `Helper` used up its budget of tokens in the loop `Chat`: 10 tokens";
    let (hard, wide) = (|| budget().max_tokens(10), || budget().max_tokens(90));

    assert_eq!(ends("asks-wide", hard(), wide().ask_for_more()).await, conversations);
    assert_eq!(ends("wide-asks", wide().ask_for_more(), hard()).await, own);
    assert_eq!(ends("goes-on", hard(), wide().on_limit(OnLimit::Exit)).await, conversations);
    assert_eq!(ends("fails", wide().on_limit(OnLimit::Exit), hard()).await, own);
    // Both limits at once: no question is asked whose answer would not help.
    assert_eq!(ends("asks", hard(), hard().ask_for_more()).await, conversations);
    assert_eq!(ends("asked", hard().ask_for_more(), hard()).await, own);
}

#[tokio::test(start_paused = true)]
async fn two_exhausted_limits_ask_a_person_separately() {
    let store = MemoryStore::new();
    let chat = process(&store, None).conversation("c").budget(budget().max_tokens(10).ask_for_more());
    let careful = helper().budget(|budget| budget.max_tokens(10).ask_for_more());
    let run = chat.send(careful, (), LOOK).await.unwrap();

    assert_eq!(waits(&run).await, [""]);
    assert!(question(&run).contains("for the run ("), "{}", question(&run));
    run.grant(&Path::root(), Amounts::tokens(90), "ann").await.unwrap();
    assert_eq!(waits(&run).await, [""]);
    assert!(question(&run).contains("for the conversation ("), "{}", question(&run));
    run.grant(&Path::root(), Amounts::tokens(50), "ann").await.unwrap();

    run.result().await.unwrap();
    let log = store_log(&store, &run).await;
    let replayed = positronic_core::machine::RunState::replay(log.iter().map(|event| &**event)).unwrap();
    assert_eq!(serde_json::to_value(&replayed).unwrap(), serde_json::to_value(run.state()).unwrap());
    let next = says(&chat, "two").await;
    let shared = next.state().start.shared_budget.clone().unwrap();
    assert_eq!((shared.granted, shared.used), (Amounts::tokens(50), spent(3)), "what is the run's own ends with it");
}

#[tokio::test(start_paused = true)]
async fn fork_keeps_the_remaining_budget_as_its_own_and_is_not_counted() {
    let store = MemoryStore::new();
    let runner = process(&store, None);
    let chat = runner.conversation("c").budget(budget().max_tokens(25));
    says(&chat, "one").await.result().await.unwrap();
    let run = chat.send(&helper(), (), LOOK).await.unwrap();
    let Settled::Failed(_) = run.settled().await else { panic!() };

    let fork = runner.fork(run.id(), Seq(0), Fork::default()).await.unwrap();

    let Settled::Failed(failure) = fork.settled().await else { panic!("15 were left when the prompt began") };
    assert_eq!(failure.message, "the conversation used up its budget of tokens in the loop `Chat`: 25 tokens");
    let refused = refused(&chat).await;
    assert!(matches!(refused, ConversationError::Spent { used: 30, .. }), "{refused}");
}

/// A brain that needs an approval before it pays.
fn payer() -> Brain<(), ()> {
    brain("Payer")
        .r#loop("Chat", |cx| {
            cx.system("Help.")
                .tool("look", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("seen")))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn refused_prompt_cancels_nothing() {
    let store = MemoryStore::new();
    let runner = process(&store, None);
    let chat = runner.conversation("c").budget(budget().max_tokens(10)).busy(Busy::Cancel);
    let run = chat.send(&payer(), (), LOOK).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));

    let refused = refused(&chat).await;

    assert!(matches!(refused, ConversationError::Spent { limit: 10, used: 10, .. }), "{refused}");
    assert_eq!(store.run(run.id()).await.unwrap().status, Status::Waiting, "it was not cancelled");
    let mut trigger = Trigger::once(TriggerId::from("t"), "look", Timestamp(0));
    trigger.busy = Busy::Cancel;
    let timer = Timer {
        trigger,
        brain: "Helper".into(),
        options: Value::Null,
        user: None,
        conversation: Some("c".to_owned()),
        budget: None,
        origin: run.id().clone(),
        fired: 0,
        starter: None,
        scheduled: None,
    };
    let fired = runner.fire(&timer).await.map(|_| ()).unwrap_err();
    assert!(
        matches!(&fired, FireError::Start { reason, .. } if matches!(**reason, ConversationError::Spent { .. })),
        "{fired}"
    );
    assert_eq!(store.run(run.id()).await.unwrap().status, Status::Waiting, "it was not cancelled");
    // With a grant it is cancelled and the next one begins.
    says(&chat.budget(budget().max_tokens(20)), "one").await.result().await.unwrap();
    assert_eq!(store.run(run.id()).await.unwrap().status, Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn each_prompt_has_its_own_budget_and_can_ask_for_the_conversations_remainder() {
    let store = MemoryStore::new();
    let runner = process(&store, priced("EUR"));
    let chat = runner.conversation("c");
    says(&chat, "one").await.result().await.unwrap();
    assert_eq!(runner.client().conversations().budget("c", None).await.unwrap(), None);
    let limited = chat.clone().prompt_budget(budget().max_tokens(20));

    for _ in 0..2 {
        let Settled::Failed(failure) = says(&limited, LOOK).await.settled().await else { panic!("it takes thirty") };
        assert_eq!(failure.message, "the brain `Helper` used up its budget of tokens in the loop `Chat`: 20 tokens");
    }
    let money = budget().max_money(Money::of_nanos(90_000));
    let before = runner.client().conversations().budget("c", Some(&money)).await.unwrap().unwrap();
    assert_eq!(before.used, Amounts { money: Money::of_nanos(50_000), ..spent(5) }, "including usage before the limit");
    let run = says(&chat.budget(money), "two").await;
    run.result().await.unwrap();

    let now = runner.client().conversations().budget("c", None).await.unwrap().unwrap();
    assert_eq!((now.used.of(LimitKind::Money), now.limit(LimitKind::Money)), (60_000, Some(90_000)));
    assert_eq!(now.currency.as_deref(), Some("EUR"));
    assert_eq!(run.state().start.budget, None, "each report covers only its own prompts");
}

/// Prices at which each answer costs ten millionths.
fn priced(currency: &str) -> Option<PriceTable> {
    Some(table(currency, &json!({"scripted/*": {"input": 1, "output": 1}})))
}

#[tokio::test(start_paused = true)]
async fn money_in_another_currency_is_not_added() {
    let store = MemoryStore::new();
    let money = || budget().max_money(Money::of_nanos(90_000));
    says(&process(&store, priced("USD")).conversation("c"), "one").await.result().await.unwrap();
    says(&process(&store, priced("EUR")).conversation("c"), "two").await.result().await.unwrap();

    // Without a money limit, the sums of each currency stay separate.
    let run = says(&process(&store, None).conversation("c").budget(budget().max_tokens(900)), "three").await;
    let shared = run.state().start.shared_budget.clone().unwrap();
    assert_eq!((shared.used.money, shared.currency.as_deref()), (Money::of_nanos(10_000), Some("USD")));
    assert_eq!(shared.foreign.as_deref(), Some("EUR"));
    run.result().await.unwrap();

    let euros = process(&store, priced("EUR")).conversation("c").budget(money());
    assert_eq!(
        refused(&euros).await.to_string(),
        "the conversation `c` has a budget of money: it counts in USD, and this runner's prices are in EUR"
    );
    // Everything is priced again in the counted currency: the second prompt, and the third, which had no price.
    let dollars = process(&store, priced("USD")).conversation("c").budget(money());
    let run = says(&dollars, "four").await;
    let shared = run.state().start.shared_budget.clone().unwrap();
    assert_eq!((shared.used.money, shared.foreign, shared.unpriced), (Money::of_nanos(30_000), None, None));
    run.result().await.unwrap();
    let run = says(&dollars, "five").await;
    assert_eq!(run.state().start.shared_budget.as_ref().unwrap().used.money, Money::of_nanos(40_000));
    run.result().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unpriced_payment_in_another_currency_refuses_the_prompt() {
    let store = MemoryStore::new();
    says(&process(&store, priced("USD")).conversation("c"), "one").await.result().await.unwrap();
    says(&process(&store, priced("EUR")).conversation("c"), "two").await.result().await.unwrap();
    let money = || budget().max_money(Money::of_nanos(90_000));

    let nobody = process(&store, None).conversation("c").budget(money());
    assert_eq!(
        refused(&nobody).await.to_string(),
        "the conversation `c` has a budget of money: a part of it was paid in EUR and is not in the sum, and this \
         runner has no prices; give it a table that has one for it"
    );
    let others = Some(table("USD", &json!({"other/*": {"input": 1, "output": 1}})));
    let said = refused(&process(&store, others).conversation("c").budget(money())).await.to_string();
    assert!(said.ends_with("have none for it; give the runner a table that has one"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn answer_in_another_currency_counts_as_unknown_cost() {
    let store = MemoryStore::new();
    let chat = process(&store, priced("EUR")).conversation("c").budget(budget().max_money(Money::of_nanos(90_000)));
    says(&chat, "one").await.result().await.unwrap();
    // A provider that reports the cost of an answer itself.
    let cost = Charge { amount: Money::of_nanos(1), currency: "USD".to_owned(), as_of: None };
    let dollars = ScriptedModel::from_fn(move |_| Reply::call("look", json!({})).usage(tokens(10)).cost(cost.clone()));
    let runner = Runner::new(dollars)
        .store(store.clone())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .prices(priced("EUR"))
        .brain(helper());

    let run = says(&runner.conversation("c"), "two").await;
    let Settled::Failed(failure) = run.settled().await else { panic!("its limit cannot be kept") };

    assert_eq!(
        failure.message,
        "the loop `Chat` has a limit of money, and the price of `scripted/scripted` in EUR is unknown"
    );
    let state = run.state();
    assert_eq!(state.currency.as_deref(), Some("EUR"), "it is that of the limit, before anything is paid");
    let root = state.root.as_deref().unwrap();
    assert_eq!((root.spent.known, root.spent.unpriced.as_deref()), (Money::default(), Some("scripted/scripted")));
}

#[tokio::test(start_paused = true)]
async fn unpriced_answer_is_priced_by_the_current_table() {
    let store = MemoryStore::new();
    let money = || budget().max_money(Money::of_nanos(90_000));
    let unpriced = process(&store, None).conversation("c");
    says(&unpriced, "one").await.result().await.unwrap();
    let others = process(&store, Some(table("EUR", &json!({"other/*": {"input": 1, "output": 1}})))).conversation("c");
    assert_eq!(
        refused(&others.budget(money())).await.to_string(),
        "the conversation `c` has a budget of money: the cost of `scripted/scripted` in it is unknown: the prices \
         of 2026-01-01 have none for it; give the runner a table that has one"
    );

    let prices = json!({"scripted/*": {"input": 1, "output": 1}});
    let priced = process(&store, Some(table("EUR", &prices))).conversation("c");
    let run = says(&priced.clone().budget(money()), "two").await;
    run.result().await.unwrap();

    let shared = run.state().start.shared_budget.clone().unwrap();
    assert_eq!((shared.used.money, shared.unpriced), (Money::of_nanos(10_000), None));
    assert_eq!(shared.currency.as_deref(), Some("EUR"));
    // Another unpriced answer without a money limit; a repriced answer is not counted twice.
    says(&unpriced.budget(budget().max_tokens(900)), "three").await.result().await.unwrap();
    let run = says(&priced.budget(money()), "four").await;
    assert_eq!(run.state().start.shared_budget.as_ref().unwrap().used.money, Money::of_nanos(30_000));
    run.result().await.unwrap();
}
