//! Saved prompts equal those folded from the log, wherever a part ends and wherever the run is resumed.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;
use crate::dsl::{Options, Plugin, PluginState, Preparation, Runnable, Services, State, each};
use crate::model::scripted::{Reply, ScriptedModel};
use crate::prelude::*;
use crate::record::{AnswerWithoutText, Event, OutputKind, Segment};
use crate::runner::Settled;

/// Replaces older messages by the model's summary.
struct Shortening;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Shortened {}

impl PluginState for Shortened {
    const NAME: &'static str = "shortening";
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Shortening {
    type State = Shortened;

    fn initial(&self) -> Shortened {
        Shortened {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Shortened>) -> crate::Result<()> {
        if cx.messages().len() > 4 {
            let summary = cx.model().system("Summarise.").ask("The messages.").await?;
            cx.compact(2, summary);
        }
        Ok(())
    }
}

/// Everything that readers get of prompts.
fn shown(prompts: &Prompts) -> Value {
    let each = prompts.iter().map(|prompt| {
        let (sent, next) = (prompts.transcript(&prompt.path).messages(), prompts.next_messages(&prompt.path));
        let own = prompts.transcript_by(&prompt.path, |outputs| Some(messages(outputs))).messages();
        json!([prompt, sent, next, own])
    });
    let conversation = prompts.conversation();
    json!([each.collect::<Vec<_>>(), conversation.last_block(), conversation.dialogue().messages(), &*conversation])
}

fn stored(part: &PromptsPart) -> PromptsPart {
    serde_json::from_str(&serde_json::to_string(part).unwrap()).unwrap()
}

/// Checks that a record makes the messages that it made when each answer, also one without text, had an entry of its own.
fn makes_the_messages_of_texts(prompt: &Prompt) {
    let mut older = Vec::new();
    for output in &prompt.output {
        let mut output = output.clone();
        if let OutputKind::Tool(call) = &mut output.kind
            && let Some(answer) = call.answer.take()
        {
            let AnswerWithoutText { iteration, parts, cost, by, duration } = *answer;
            let kind = OutputKind::Text { iteration, parts, cost, by };
            older.push(Output { at: output.at, duration, id: None, kind });
        }
        older.push(output);
    }
    assert_eq!(messages(&prompt.output), messages(&older));
}

/// Saves a part every `every` events and compares after each event.
fn check(log: &[Arc<Event>], history: &History, every: u64, as_worker: fn(Prompts) -> Prompts) {
    let mut folded = as_worker(Prompts::after(history.clone()));
    let (mut parts, mut end) = (Vec::new(), Seq(0));
    for event in log {
        folded.apply(event);
        folded.iter().for_each(makes_the_messages_of_texts);
        let next = event.seq.next();
        if next.0 % every == 0 {
            let (from, part) = folded.part(next);
            assert_eq!(from, end);
            parts.push(part);
            end = next;
        }
        let mut restored = as_worker(Prompts::restored(history.clone(), parts.iter().map(stored), end).unwrap());
        for event in log.iter().filter(|event| end <= event.seq && event.seq < next) {
            restored.apply(event);
        }
        assert_eq!(shown(&restored), shown(&folded), "parts of {every} up to {end}, read up to {next}");
    }
}

fn check_everywhere(log: &[Arc<Event>], lengths: &[u64]) {
    let history = History::from(vec![Message::user("Hello."), Message::user("Are you there?")]);
    for every in lengths {
        check(log, &history, *every, |prompts| prompts);
    }
}

async fn log_of(brain: &impl Runnable<Options = ()>, replies: Vec<Reply>) -> Vec<Arc<Event>> {
    let runner = Runner::new(ScriptedModel::new(replies));
    let run = runner.start(brain, ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)), "{:?}", run.settled().await);
    run.events(Seq(0)).await.unwrap()
}

/// A dialogue whose turns follow as loops, with the calls of a turn in one batch each.
async fn dialogue(line: &str, compaction: bool) -> Vec<Arc<Event>> {
    let dialogue: Value = serde_json::from_str(line).unwrap();
    let tools: Vec<_> = dialogue["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let (name, about) = (tool["name"].as_str().unwrap(), tool["description"].as_str().unwrap());
            Tool::dynamic(name, about, tool["parameters"].clone(), async |arguments: Value, cx| {
                cx.display_widget("arguments", &arguments, "the arguments")?;
                Ok(arguments)
            })
        })
        .collect();
    let mut assistant = brain("Assistant").step("Begin", async |_| Ok(()));
    for (number, turn) in dialogue["turns"].as_array().unwrap().iter().enumerate() {
        let (user, tools) = (turn["user"].as_str().unwrap().to_owned(), tools.clone());
        let turns = assistant.r#loop(&format!("Turn {number}"), move |cx| {
            let config = cx.system("Help.").input(&user).tools(tools.clone()).unlimited();
            if compaction { config.plugin(Shortening) } else { config }
        });
        // The type of a builder names its last stage.
        assistant = turns.step(&format!("Then {number}"), async |_| Ok(()));
    }
    let model = move |request: &crate::record::ModelRequest| {
        if request.tools.tools().is_empty() {
            return Reply::text("A summary.");
        }
        let (stage, iteration) = request.path.as_str().rsplit_once('/').unwrap();
        let turn: usize = stage.strip_prefix("Turn ").unwrap().parse().unwrap();
        let calls = dialogue["turns"][turn]["calls"].as_array().unwrap();
        match calls.get(iteration.parse::<usize>().unwrap()) {
            Some(call) => Reply::call(call["name"].as_str().unwrap(), call["arguments"].clone()),
            None => Reply::text("Next."),
        }
    };
    let runner = Runner::new(ScriptedModel::from_fn(model));
    let run = runner.start(&assistant, ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)), "{:?}", run.settled().await);
    run.events(Seq(0)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn saved_prompts_of_real_dialogues_equal_the_fold_of_their_logs() {
    for (number, line) in (0..).zip(include_str!("../../../../../tests/data/bfcl/multi_turn.jsonl").lines()) {
        check_everywhere(&dialogue(line, false).await, &[1 + number, 25]);
    }
}

#[tokio::test(start_paused = true)]
async fn saved_prompts_of_compacted_loops_equal_the_fold_of_their_logs() {
    let mut compacted = 0;
    for line in include_str!("../../../../../tests/data/bfcl/multi_turn.jsonl").lines().take(4) {
        let log = dialogue(line, true).await;
        compacted += log.iter().filter(|event| event.kind.name() == "LOOP_COMPACTED").count();
        check_everywhere(&log, &[2, 5, 11]);
    }
    assert!(compacted > 10, "{compacted}");
}

#[test]
fn saved_prompts_of_a_log_of_the_first_format_equal_its_fold() {
    let lines = include_str!("../../../../tests/data/format-1.jsonl").lines();
    let log: Vec<_> = lines.filter_map(|line| Event::from_json(line).ok()).map(Arc::new).collect();
    assert!(log.len() > 10);
    let mut runs: Vec<Vec<Arc<Event>>> = Vec::new();
    for event in log {
        if event.seq == Seq(0) {
            runs.push(Vec::new());
        }
        runs.last_mut().unwrap().push(event);
    }
    runs.iter().for_each(|run| check_everywhere(run, &[1, 3, 11]));
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_long_loop_are_together_about_as_large_as_its_outputs() {
    let reader = brain("Reader").r#loop("Read", |cx| {
        let config = cx.system("Read.").input("Read.").unlimited();
        config.tool("read", |t| t.execute(async |_: NoArgs, _| Ok("x".repeat(500))))
    });
    let replies = (0..400).map(|_| Reply::call("read", json!({}))).chain([Reply::text("Done.")]);
    let log = log_of(&reader, replies.collect()).await;
    let (mut folded, mut bytes) = (Prompts::default(), 0);
    for event in &log {
        folded.apply(event);
        if event.seq.0 % 64 == 0 {
            bytes += serde_json::to_string(&folded.part(event.seq.next()).1).unwrap().len();
        }
    }

    let outputs = serde_json::to_string(&folded.iter().collect::<Vec<_>>()).unwrap().len();

    assert!(bytes < outputs * 6 / 5, "{bytes} bytes for {outputs}");
}

#[tokio::test(start_paused = true)]
async fn saved_prompts_of_a_dialogue_that_was_handed_over_equal_the_fold_of_their_log() {
    let failing = brain("Failing").r#loop("Talk", |cx| cx.system("Refuse.").max_iterations(1).on_limit(OnLimit::Error));
    let billing = brain("Billing").r#loop("Talk", |cx| cx.system("Answer.")).build();
    let (failing, billing) = (failing.build(), billing);
    let desk = brain("Desk")
        .r#loop("Chat", move |cx| {
            cx.system("Help.")
                .input("My bill?")
                .tool("look", |t| t.read_only().execute(async |_: NoArgs, _| Ok("twice")))
                .handoff("failing", failing.clone())
                .handoff("billing", billing.clone())
                .plugin(Shortening)
        })
        .r#loop("Note", |cx| cx.system("Note.").continue_from("Chat"));
    let says = |request: &crate::record::ModelRequest| match (&*request.system, request.path.as_str()) {
        ("Help.", "Chat/0" | "Chat/2") => Reply::call("look", json!({})),
        ("Help.", "Chat/1") => Reply::call("failing", json!({})),
        ("Help.", _) => Reply::call("billing", json!({})),
        ("Refuse.", _) => Reply::call("none", json!({})),
        (system, _) => Reply::text(system),
    };
    let run = Runner::new(ScriptedModel::from_fn(says)).start(&desk, ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)), "{:?}", run.settled().await);
    let log = run.events(Seq(0)).await.unwrap();
    assert!(log.iter().any(|event| event.kind.name() == "LOOP_COMPACTED"));
    check_everywhere(&log, &[1, 2, 5]);
}

#[tokio::test(start_paused = true)]
async fn worker_keeps_prompts_of_open_items_and_rounds_only() {
    let item = brain("Item").options::<u32>().r#loop("Ask", |cx| {
        cx.system("Answer.").input("How long?").tool("look", |t| t.execute(async |_: NoArgs, _| Ok("seen")))
    });
    let round = brain("Round").options::<u32>().r#loop("Ask", |cx| cx.system("Improve.").input("Once more."));
    let all = brain("All")
        .map("Items", |()| (0..20).collect(), each(item.result(|()| 1_u32)).limit(3), |(), all| all.len())
        .repeat("Rounds", 4, round.result(|()| 1_u32), |_| 0, |count, _| count + 1, |count| *count >= 23)
        .r#loop("Report", |cx| cx.system("Report.").input("What came out?"));
    let says = |request: &crate::record::ModelRequest| match (&*request.system, request.path.last()) {
        ("Answer.", Some(Segment::Iteration(0))) => Reply::call("look", json!({})),
        (system, _) => Reply::text(system),
    };
    let run = Runner::new(ScriptedModel::from_fn(says)).start(&all, ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)), "{:?}", run.settled().await);
    let log = run.events(Seq(0)).await.unwrap();
    for every in [1, 7, 40] {
        check(&log, &History::default(), every, Prompts::dropping_ended);
    }

    let (mut folded, whole) =
        (Prompts::default().in_run(run.id()).dropping_ended(), Prompts::of(log.iter().map(|event| &**event)));
    let most = log.iter().map(|event| {
        folded.apply(event);
        folded.iter().count()
    });

    assert_eq!(most.max(), Some(3));
    assert_eq!(shown(&run.prompts()), shown(&folded));
    let left: Vec<_> = folded.iter().map(|prompt| prompt.path.to_string()).collect();
    assert_eq!((left, whole.iter().count()), (vec!["Report".to_owned()], 24));
}
