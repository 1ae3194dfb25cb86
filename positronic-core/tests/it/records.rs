//! The record of a loop stands alone: it says what was asked, decided, by whom, why, and what it cost.

use std::collections::BTreeSet;
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::Prompts;
use positronic_core::record::{
    Actor, ApprovalOutcome, CallState, Decision, Message, OutputKind, Part, Prompt, PromptState, SignalKind,
    ToolOutput, Usage,
};
use positronic_core::runner::RunHandle;
use positronic_core::testing::{CountedIds, TestClock};
use serde_json::json;

use crate::support::{Journal, Play, ShopLoop, calls, done, path, prompt, tools, waits, worker, workshop};

fn record(run: &RunHandle<impl Sized>, at: &str) -> Prompt {
    run.prompts().get(&path(at)).cloned().unwrap()
}

fn calls_of(prompt: &Prompt) -> Vec<&ToolOutput> {
    let calls = prompt.output.iter().filter_map(|output| match &output.kind {
        OutputKind::Tool(call) => Some(&**call),
        _ => None,
    });
    calls.collect()
}

fn gated_and_work(config: ShopLoop) -> ShopLoop {
    let expires = Duration::from_secs(60);
    config.tools([
        worker("gated", |t| t.requires_approval("it is dangerous").approval_expires(expires)),
        worker("work", |t| t),
    ])
}

#[tokio::test(start_paused = true)]
async fn call_entry_has_its_approval_from_question_to_decision() {
    let journal = Journal::default();
    let asked = Reply::calls([("gated", json!({"id": "a"})), ("work", json!({"id": "b"}))]);
    let play = Play::new([asked, done()]);
    let run = play.start(&workshop(&journal, gated_and_work), ()).await;
    waits(&run).await;

    let pending = record(&run, "Work");
    let [gated, work] = calls_of(&pending)[..] else { panic!("{pending:?}") };
    assert_eq!([gated.state, work.state], [CallState::Pending, CallState::Deferred]);
    assert_eq!(gated.public_id(), path("Work/0.0").public_id());
    let approval = gated.approval.as_ref().unwrap();
    assert_eq!((approval.reason.as_str(), approval.editable, approval.is_pending()), ("it is dangerous", true, true));
    let valid = approval.expires.unwrap().since(approval.requested.unwrap());
    assert_eq!((valid.as_secs(), &work.approval), (60, &None));

    let edited = SignalKind::Approve { call: path("Work/0.0"), arguments: Some(json!({"id": "c"})) };
    run.signal(edited, Actor::builder().by("ann").channel("slack").build()).await.unwrap();
    let story = play.story(&run).await;

    let [gated, work] = &calls(&story, "Work")[..] else { panic!("{story:?}") };
    assert_eq!([gated.state, work.state], [CallState::Done; 2]);
    assert_eq!(gated.edited, Some(json!({"id": "c"})));
    let Some(ApprovalOutcome::Decided { decision, at, actor, arguments, .. }) =
        gated.approval.as_ref().unwrap().outcome.clone()
    else {
        panic!("{gated:?}")
    };
    assert_eq!((decision, arguments), (Decision::Approved, Some(json!({"id": "c"}))));
    assert_eq!((actor.by.as_deref(), actor.channel.as_deref()), (Some("ann"), Some("slack")));
    assert!(at >= approval.requested.unwrap());
    let whole = prompt(&story, "Work");
    let read: Prompt = serde_json::from_str(&serde_json::to_string(&whole).unwrap()).unwrap();
    assert_eq!(read, whole);
}

#[tokio::test(start_paused = true)]
async fn rejection_is_recorded_with_decider_and_reason() {
    let journal = Journal::default();
    let play = Play::new([Reply::call("gated", json!({"id": "a"})), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;
    run.reject(&path("Work/0.0"), "too dear", "bob").await.unwrap();

    let story = play.story(&run).await;

    let outcome = calls(&story, "Work")[0].approval.clone().unwrap().outcome;
    let Some(ApprovalOutcome::Decided { decision, actor, reason, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((decision, actor.by.as_deref(), reason.as_deref()), (Decision::Rejected, Some("bob"), Some("too dear")));
}

#[tokio::test(start_paused = true)]
async fn prompt_waits_while_its_nested_brain_waits() {
    let inner = || {
        brain("Inner").r#loop("Pay", |cx| {
            cx.system("Pay.")
                .input("Pay.")
                .tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
        })
    };
    let middle = move || brain("Middle").brain("Deeper", inner()).map_output(|(), _| ());
    let outer = brain("Outer").r#loop("Chat", move |cx| {
        cx.system("Talk.").input("Go.").tool("middle", |t| t.brain(middle()).description("Pays"))
    });
    let replies = [Reply::call("middle", json!({})), Reply::call("pay", json!({})), Reply::text("Paid."), done()];
    let play = Play::new(replies);
    let run = play.start(&outer, ()).await;

    let pending = waits(&run).await;
    let waiting = record(&run, "Chat");
    assert_eq!(pending, ["Chat/0.0/Deeper/Pay/0.0"]);
    assert_eq!(waiting.state, PromptState::WaitingForApproval);
    assert_eq!(calls_of(&waiting)[0].state, CallState::Running);
    run.approve(&path(&pending[0]), "ann").await.unwrap();
    let story = play.story(&run).await;

    let mut states: Vec<_> = (1..=story.log().len())
        .filter_map(|until| {
            let prompts = Prompts::of(story.log()[..until].iter().map(|event| &**event));
            prompts.get(&path("Chat")).map(|prompt| prompt.state)
        })
        .collect();
    states.dedup();
    let expected =
        [PromptState::Running, PromptState::WaitingForApproval, PromptState::Running, PromptState::Completed];
    assert_eq!(states, expected);
}

#[tokio::test(start_paused = true)]
async fn prompts_of_a_conversation_have_ids_of_their_own_and_the_run_has_the_same() {
    let helper = brain("Helper").r#loop("Chat", |cx| cx.system("Help."));
    let runner = Runner::new(ScriptedModel::new(["One.", "Two."].map(Reply::text)))
        .clock(TestClock::default())
        .ids(CountedIds::default());
    let chat = runner.conversation("c");
    let mut of_runs = BTreeSet::new();
    for said in ["one", "two"] {
        let run = chat.send(&helper, (), said).await.unwrap();
        run.settled().await;
        of_runs.insert(record(&run, "Chat").id);
    }

    let prompts = chat.prompts().await.unwrap();

    let ids: BTreeSet<_> = prompts.iter().map(|(_, prompt)| prompt.id.clone()).collect();
    assert_eq!((ids.len(), &ids), (2, &of_runs));
}

#[tokio::test(start_paused = true)]
async fn final_text_exists_once_the_loop_has_answered() {
    let journal = Journal::default();
    let saying = Reply::call("gated", json!({"id": "a"}));
    let play = Play::new([saying, Reply::text("It is done.")]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;
    let waiting = (run.answer(), record(&run, "Work").answer());
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    let story = play.story(&run).await;

    assert_eq!(waiting, (None, None));
    assert_eq!(run.answer().as_deref(), Some("It is done."));
    assert_eq!(prompt(&story, "Work").answer().as_deref(), Some("It is done."));
}

#[tokio::test(start_paused = true)]
async fn answer_has_its_cost() {
    let usage = Usage { input: 1_000, output: 0, ..Usage::default() };
    let prices = json!({"scripted/*": {"input": 1_000, "output": 0}});
    let play = Play::priced(ScriptedModel::new([done().usage(usage)]), true, &prices);
    let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hello!"));

    let prompt = prompt(&play.run(&greeter, ()).await, "Greet");

    let cost = prompt.output[0].kind.cost().unwrap();
    assert_eq!((cost.amount.to_string().as_str(), cost.currency.as_str()), ("1", "EUR"));
}

#[tokio::test(start_paused = true)]
async fn answer_of_calls_only_adds_no_text_to_the_record() {
    let journal = Journal::default();
    let usage = Usage { input: 1_000, output: 0, ..Usage::default() };
    let prices = json!({"scripted/*": {"input": 1_000, "output": 0}});
    let job = |id: &str| ("work", json!({ "id": id }));
    let silent = Reply::calls([job("a"), job("b")]).and_text(" \n").and_reasoning("Both are due.").usage(usage);
    let replies = [silent, Reply::calls([job("c")]), Reply::calls([job("d")]).and_text("One more."), done()];
    let play = Play::priced(ScriptedModel::new(replies), true, &prices);

    let story = play.run(&workshop(&journal, |config| config.tools([worker("work", |t| t)])), ()).await;

    let record = prompt(&story, "Work");
    let entries = record.output.iter().map(|output| match &output.kind {
        OutputKind::Tool(call) => call.arguments["id"].as_str().unwrap().to_owned(),
        kind => format!("text: {}", kind.text().unwrap()),
    });
    assert_eq!(entries.collect::<Vec<_>>(), ["a", "b", "c", "text: One more.", "d", "text: Done."]);
    let first = &record.output[0].kind;
    let text = Part::Text { text: " \n".to_owned() };
    let thought = Part::Reasoning { text: "Both are due.".to_owned(), data: None };
    assert_eq!(**first.parts().unwrap(), [thought, text, Part::Call { index: 0 }, Part::Call { index: 1 }]);
    assert_eq!(first.cost().unwrap().amount.to_string(), "1");
    assert_eq!(record.output[1].kind.parts(), None, "the first call has the answer");
    let read: Prompt = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
    assert_eq!(read, record);
    let kinds = |messages: &[Message]| -> Vec<String> {
        let one = |message: &Message| match message {
            Message::User { .. } => "user".to_owned(),
            Message::Assistant { parts, .. } => format!("assistant {}", parts.len()),
            Message::Tool { .. } => "tool".to_owned(),
        };
        messages.iter().map(one).collect()
    };
    let sent = play.last_request().messages.messages();
    assert_eq!(
        kinds(&sent),
        ["user", "assistant 3", "tool", "tool", "assistant 1", "tool", "assistant 2", "tool"],
        "{sent:?}"
    );
}
