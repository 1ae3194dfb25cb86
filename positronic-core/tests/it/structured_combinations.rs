//! Structured actions with the other features of a loop: compaction, memory, modes, brains, concurrency, retries.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::IntoBrain as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EndReason, Message, ModelRequest, OutputFormat, Start, ToolResult};
use positronic_core::runner::Settled;
use positronic_plugins::{Compaction, Memory, MemoryFacts, Modes};
use serde_json::{Value, json};

use crate::support::boundaries::crash_everywhere;
use crate::support::boundaries::{Ledger, Tale};
use crate::support::contexts;
use crate::support::{
    Board, Job, Journal, Play, Shop, ShopBuilder, ShopLoop, error_of, events_named, results, success, waits, worker,
    workshop,
};

fn job(id: &str) -> Value {
    json!({ "id": id })
}

fn act(action: &str, input: Value) -> Reply {
    Reply::action("It is due.", action, input)
}

/// Renders a request's messages, one per line; assistant messages are marked if they are structured actions.
fn render_messages(request: &ModelRequest) -> Vec<String> {
    let line = |message| match message {
        Message::User { text, .. } => text.trim_end().replace('\n', " | "),
        Message::Assistant { .. } => "–".to_owned(),
        Message::Tool { text, .. } => panic!("a model that decides reads no result of a tool: {text}"),
    };
    request.messages.messages().into_iter().map(line).collect()
}

/// Returns the actions that a request allows.
fn actions(request: &ModelRequest) -> Vec<String> {
    let OutputFormat::JsonSchema { schema, .. } = &request.settings.output else { panic!("{:?}", request.settings) };
    serde_json::from_value(schema["properties"]["action"]["enum"].clone()).unwrap()
}

fn reader(ledger: &Ledger) -> Brain<(), u32> {
    let deeds = ledger.clone();
    brain("Reader")
        .state(0_u32)
        .r#loop("Read", move |cx| {
            let deeds = deeds.clone();
            cx.system("Read.")
                .input("Read the book.")
                .structured_actions()
                .plugin(Compaction::new().iterations(4).keep(2))
                .tool("read", move |t| {
                    t.idempotent().execute(move |page: Job, cx| {
                        deeds.act_once(cx.idempotency_key(), &page.id);
                        async move { Ok(cx.result(format!("page {}", page.id)).update(|read| *read += 1)) }
                    })
                })
                .tool("finish", |t| t.exit().idempotent().execute(async |_: NoArgs, _| Ok("read")))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn older_actions_are_summarized_and_an_action_stays_with_its_result() {
    let summed = Reply::text("Two pages are read.");
    let pages = ["1", "2", "3", "4"].map(|page| act("read", job(page)));
    let play = Play::new(pages.into_iter().chain([summed, act("read", job("5")), act("finish", json!({}))]));

    let story = play.run(&reader(&Ledger::default()), ()).await;

    assert_eq!(*story.state(), json!(5));
    let requests = play.requests();
    assert_eq!(requests[4].settings.output, OutputFormat::Text, "the summary is no decision");
    let summary = "Summary of the conversation before this point: |  | Two pages are read.";
    let (third, fourth) = ("The result of `read`: | page 3", "The result of `read`: | page 4");
    assert_eq!(render_messages(&requests[5]), [summary, "–", third, "–", fourth]);
    assert_eq!(
        render_messages(&requests[6]),
        [summary, "–", third, "–", fourth, "–", "The result of `read`: | page 5"]
    );
    assert_eq!(results(&story, "Read").len(), 6, "the record is baseline");
}

#[tokio::test(start_paused = true)]
async fn promise_14_and_21_hold_with_compacted_structured_actions() {
    let ledger = Ledger::default();
    let tale = Tale {
        definition: reader(&ledger).definition(),
        options: Value::Null,
        ledger,
        says: Arc::new(|request| match (request.path.as_str(), &request.settings.output) {
            (_, OutputFormat::Text) => Reply::text(format!("{} messages", request.messages.len())),
            ("Read/6", _) => act("finish", json!({})),
            (_, _) if request.attempt == 0 => Reply::text("Let me think."),
            (place, _) => act("read", job(place)),
        }),
        answers: Arc::new(|pending| panic!("no approval is pending: {pending:?}")),
    };

    let baseline = tale.undisturbed().await;
    assert!(baseline.log.iter().any(|event| event.kind.name() == "LOOP_COMPACTED"));
    let kept = positronic_core::machine::RunState::replay(baseline.log.iter().map(|event| &**event)).unwrap();
    let kept = kept.root.unwrap().plugins.get("compaction").map(|kept| Value::clone(&kept.state)).unwrap();
    crash_everywhere(&tale, "compaction", &kept).await;
}

#[tokio::test(start_paused = true)]
async fn one_run_remembers_facts_for_the_next() {
    let facts = MemoryFacts::default();
    let companion = |says: &'static str| {
        let memory = Memory::new(facts.clone());
        brain("Companion").r#loop("Chat", move |cx| {
            let config = cx.system("Help.").input(says).structured_actions().plugin(memory.clone());
            config.tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("bye")))
        })
    };
    let model = Arc::new(ScriptedModel::new([
        act("memory.store", json!({"fact": "Ann eats no nuts."})),
        act("finish", json!({})),
        act("memory.search", json!({"query": "nuts"})),
        act("finish", json!({})),
    ]));
    for says in ["I eat no nuts.", "A cake without nuts, please."] {
        let runner = Runner::new(Arc::clone(&model));
        let start = Start { user: Some("ann".to_owned()), ..Start::default() };
        let run = runner.start_with(&companion(says), (), start).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Completed(_)));
    }

    let requests = model.requests();
    let known = contexts(&requests[2]);
    assert!(known[0].starts_with("memory: ") && known[0].contains("Ann eats no nuts."), "{known:?}");
    assert!(requests[2].system.contains("Act only by the actions below."), "{}", requests[2].system);
    let found = render_messages(&requests[3]).pop().unwrap();
    assert!(found.starts_with("The result of `memory.search`:") && found.contains("Ann eats no nuts."), "{found}");
}

#[tokio::test(start_paused = true)]
async fn actions_of_one_answer_run_concurrently_and_a_sequential_one_alone() {
    let journal = Journal::default();
    let batches = |config: ShopLoop| {
        let tools = [
            worker("read", |t| t.read_only()),
            worker("alone", ShopBuilder::sequential),
            worker("finish", ShopBuilder::exit),
        ];
        config.tools(tools).structured_actions_in_batches()
    };
    let slow = |id: &str| json!({"id": id, "takes": 1000});
    let play = Play::free([
        Reply::actions("All.", [("read", slow("a")), ("read", slow("b")), ("alone", slow("c")), ("read", slow("d"))]),
        Reply::actions("Done.", [("finish", job("end"))]),
    ]);
    let before = tokio::time::Instant::now();

    let story = play.run(&workshop(&journal, batches), ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    let did = journal.take();
    assert_eq!(did[..2], ["a", "b"], "both have begun before one has ended: {did:?}");
    let alone = did.iter().position(|deed| deed == "c").unwrap();
    assert_eq!(did[alone + 1], "c-", "no other action runs concurrently: {did:?}");
    assert_eq!(before.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn brain_as_an_action_selects_its_own_actions_and_its_failure_is_a_result() {
    let journal = Journal::default();
    let researcher = || {
        brain("Researcher").services::<Journal>().state(Board::default()).r#loop("Look", |cx| {
            let tools = [worker("gated", |t| t.requires_approval("it costs")), worker("finish", ShopBuilder::exit)];
            cx.system("Look.").structured_actions().action_retries(1).tools(tools)
        })
    };
    let outer = workshop(&journal, move |config| {
        config.brain("research", researcher()).tools([worker("finish", ShopBuilder::exit)]).structured_actions()
    });
    let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
        "Work/0" | "Work/1" => act("research", json!({})),
        "Work/0.0/Look/0" => act("gated", job("looked")),
        "Work/1.0/Look/0" => Reply::text("I do not know."),
        _ => act("finish", job("end")),
    });
    let play = Play::of(model, true);
    let run = play.start(&outer, ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0/Look/0.0"]);
    run.approve(&crate::support::path("Work/0.0/Look/0.0"), "ann").await.unwrap();
    let story = play.story(&run).await;

    let results = results(&story, "Work");
    assert_eq!(results[0], success(json!({"done": ["looked", "end"]})));
    let why = "the model of the loop `Work/1.0/Look` was asked 2 times and gave no valid action";
    assert!(error_of(&results[1]).contains(why), "{}", error_of(&results[1]));
    assert!(matches!(story.settled(), Settled::Completed(_)), "the one around chooses something else");
}

#[tokio::test(start_paused = true)]
async fn transient_action_failure_is_retried_and_a_permanent_one_is_reported() {
    let journal = Journal::default();
    let flaky = |id: &'static str, works_at: u32| {
        Tool::new(id, move |t: ShopBuilder| {
            t.idempotent().execute(move |_: Job, cx: Shop| async move {
                cx.services.note(id);
                let tries = cx.services.count();
                if tries < works_at { Err(Error::transient(format!("try {tries}"))) } else { Ok("at last") }
            })
        })
    };
    let shop = workshop(&journal, move |config| {
        config.tools([flaky("soon", 3), flaky("never", 99), worker("finish", ShopBuilder::exit)]).structured_actions()
    });
    let play = Play::new([act("soon", job("a")), act("never", job("b")), act("finish", job("end"))]);

    let story = play.run(&shop, ()).await;

    let results = results(&story, "Work");
    assert_eq!(results[0], success("at last"));
    assert_eq!(results[1], ToolResult::error("try 7"));
    assert_eq!(journal.take(), ["soon", "soon", "soon", "never", "never", "never", "never", "end"]);
    assert_eq!(events_named(&story, "LOOP_TOOL_RETRY").len(), 2 + 3);
    assert_eq!(render_messages(&play.last_request()).pop().unwrap(), "The result of `never`: | Error: try 7");
}

#[tokio::test(start_paused = true)]
async fn mode_changes_the_offered_actions_and_can_end_the_loop() {
    let tool = |name: &'static str| Tool::new(name, |t| t.execute(async |_: NoArgs, _| Ok("done")));
    let modes = || {
        Modes::new("asking")
            .mode("asking", |m| m.prompt("Ask.").tools(["ask"]).leads_to(["solving"]))
            .mode("solving", |m| m.prompt("Solve.").tools(["solve"]).leads_to(["solved"]))
            .mode("solved", |m| m.exit())
    };
    let support = brain("Support").r#loop("Chat", move |cx| {
        cx.system("Help.").input("It leaks.").tools([tool("ask"), tool("solve")]).plugin(modes()).structured_actions()
    });
    let play = Play::new([
        act("ask", json!({})),
        act("mode.enter", json!({"mode": "solving"})),
        act("ask", json!({})),
        act("solve", json!({})),
        act("mode.enter", json!({"mode": "solved"})),
    ]);

    let story = play.run(&support, ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    let seen: Vec<_> = play.requests().iter().map(|request| actions(request).join(" ")).collect();
    let (asking, solving) = ("ask mode.enter", "solve mode.enter");
    assert_eq!(seen, [asking, asking, solving, solving, solving]);
    assert_eq!(events_named(&story, "LOOP_ANSWER_REFUSED"), ["Chat/2"], "tools of other modes are not offered");
}

#[tokio::test(start_paused = true)]
async fn structured_loop_ends_at_the_step_limit_with_a_partial_result() {
    let journal = Journal::default();
    let endless = || ScriptedModel::from_fn(|request| act("safe", job(request.path.as_str())));
    for (on_limit, fails) in [(OnLimit::Exit, false), (OnLimit::Error, true)] {
        let shop = workshop(&journal, move |config| {
            config
                .tools([worker("safe", |t| t), worker("finish", ShopBuilder::exit)])
                .structured_actions()
                .on_limit(on_limit)
        });

        let story = Play::of(endless(), true).run(&shop, ()).await;

        assert_eq!(journal.take().len(), 50, "the default is fifty");
        assert_eq!(story.state()["done"].as_array().unwrap().len(), 50, "completed work is preserved");
        match story.settled() {
            Settled::Failed(failure) if fails => assert_eq!(failure.code, EndReason::Limit),
            Settled::Completed(_) if !fails => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn system_prompt_that_was_sent_describes_the_actions_once_when_it_is_sent_again() {
    let helper = |system: String| {
        brain("Helper").r#loop("Chat", move |cx| {
            let config = cx.system(system.as_str()).input("Hello.").structured_actions();
            config.tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("bye")))
        })
    };
    let model = Arc::new(ScriptedModel::new([act("finish", json!({})), act("finish", json!({}))]));
    let runner = Runner::new(Arc::clone(&model));
    runner.start(&helper("Help.".to_owned()), ()).await.unwrap().settled().await;
    let sent = model.requests()[0].system.to_string();

    runner.start(&helper(sent.replacen("Help.", "Help them.", 1)), ()).await.unwrap().settled().await;

    let again = model.requests()[1].system.to_string();
    assert_eq!(again, sent.replacen("Help.", "Help them.", 1));
}
