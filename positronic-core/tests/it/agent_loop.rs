//! Claims of the agent loop design that no other test covers; `docs/guide/appendix/agent-loop.md` lists all claims.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::Prompts;
use positronic_core::record::{
    CallState, Decision, EventKind, OutputKind, PromptState, Seq, Start, ToolOutput, ToolResult, hash_json,
};
use positronic_core::testing::{CountedIds, TestClock};
use serde_json::json;

use crate::support::{Journal, Play, batch, done, path, prompt, results, success, tool_texts, tools, waits, workshop};

#[tokio::test(start_paused = true)]
async fn prompt_started_by_the_system_has_no_input() {
    let quiet = brain("Quiet").r#loop("Work", |cx| cx.system("Do your iteration."));

    let story = Play::new([done()]).run(&quiet, ()).await;

    assert_eq!(prompt(&story, "Work").input, None);
}

#[tokio::test(start_paused = true)]
async fn prompt_is_running_then_waiting_then_completed() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a")]), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    let story = play.story(&run).await;

    let mut states = Vec::new();
    for until in 1..=story.log().len() {
        let prompts = Prompts::of(story.log()[..until].iter().map(|event| &**event));
        states.extend(prompts.get(&path("Work")).map(|prompt| prompt.state));
    }
    states.dedup();

    let waiting = PromptState::WaitingForApproval;
    assert_eq!(states, [PromptState::Running, waiting, PromptState::Running, PromptState::Completed]);
}

/// Lists the entries of calls, each as `tool state result`.
fn entries<'a>(outputs: impl Iterator<Item = &'a OutputKind>) -> Vec<String> {
    let calls = outputs.filter_map(|output| match output {
        OutputKind::Tool(call) => Some(&**call),
        _ => None,
    });
    let entry = |ToolOutput { tool, state, result, .. }: &ToolOutput| match result {
        None => format!("{tool} {state:?}"),
        Some(ToolResult::Success { .. }) => format!("{tool} {state:?} success"),
        Some(ToolResult::Error { .. }) => format!("{tool} {state:?} error"),
        Some(other) => format!("{tool} {state:?} {other:?}"),
    };
    calls.map(entry).collect()
}

#[tokio::test(start_paused = true)]
async fn pending_success_and_error_replace_one_entry_in_place() {
    let journal = Journal::default();
    let calls = Reply::calls([("gated", json!({"id": "a"})), ("gated", json!({"id": "b", "fails": true}))]);
    let play = Play::new([calls, done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;
    let record = || run.prompts().get(&path("Work")).cloned().unwrap();
    let pending = record();
    assert_eq!(pending.state, PromptState::WaitingForApproval);
    let shown = |prompt: &positronic_core::record::Prompt| entries(prompt.output.iter().map(|output| &output.kind));
    assert_eq!(shown(&pending), ["gated Pending", "gated Pending"]);

    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    play.story(&run).await;

    let ended = record();
    assert_eq!(shown(&ended), ["gated Done success", "gated Done error"]);
    assert_eq!(ended.output.len(), pending.output.len() + 1, "only the last answer is a new entry");
    let OutputKind::Tool(call) = &ended.output[0].kind else { panic!("{:?}", ended.output) };
    assert_eq!((call.path.clone(), call.state), (path("Work/0.0"), CallState::Done));
}

struct Desk {
    greeting: String,
}

#[tokio::test(start_paused = true)]
async fn tool_has_state_services_and_user_and_shows_widgets_and_files() {
    let greet = || {
        Tool::new("greet", |t: positronic_core::dsl::ToolBuilder<(), u32, Desk>| {
            t.execute(async |_: NoArgs, cx| {
                let text = format!("{}, {}: {}", cx.services.greeting, cx.user_id().unwrap_or("nobody"), cx.state);
                cx.display_widget("card", &text, "a card")?;
                cx.save_file("greeting.txt", "text/plain", text.clone()).await?;
                Ok(cx.result(text).update(|greeted| *greeted += 1))
            })
        })
    };
    let brain = brain("Desk").services::<Desk>().state(7).r#loop("Greet", move |cx| cx.system("").tools([greet()]));
    let model = Arc::new(ScriptedModel::new([Reply::call("greet", json!({})), done()]));
    let runner = Runner::new(Arc::clone(&model)).clock(TestClock::default()).ids(CountedIds::default());
    let start = Start { user: Some("ann".to_owned()), ..Start::default() };

    let bound = brain.bind(Desk { greeting: "Good day".to_owned() });
    let run = runner.start_with(&bound, (), start).await.unwrap();

    assert_eq!(run.result().await.unwrap(), 8);
    let story = positronic_core::testing::Story::of(&run).await;
    assert_eq!(results(&story, "Greet"), [success("Good day, ann: 7")]);
    let asides: Vec<_> = prompt(&story, "Greet").output.into_iter().filter(|output| output.kind.is_aside()).collect();
    assert!(matches!(&asides[0].kind, OutputKind::Widget(widget) if widget.data == "Good day, ann: 7"), "{asides:?}");
    assert!(matches!(&asides[1].kind, OutputKind::File(output) if output.file.name == "greeting.txt"), "{asides:?}");
    let read = tool_texts(&model.requests().pop().unwrap());
    assert_eq!(read, ["Good day, ann: 7\n[file greeting.txt, text/plain, 16 bytes]"]);
}

#[tokio::test(start_paused = true)]
async fn events_are_read_from_any_number() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")]), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    let story = play.story(&run).await;

    for from in 0..story.log().len() {
        let read = run.events(Seq(u64::try_from(from).unwrap())).await.unwrap();
        assert_eq!(read, story.log()[from..]);
    }
}

#[tokio::test(start_paused = true)]
async fn log_records_who_decided_when_why_and_with_which_arguments() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a")]), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;
    tokio::time::advance(std::time::Duration::from_secs(90)).await;
    run.reject(&path("Work/0.0"), "too risky", "ann").await.unwrap();

    let story = play.story(&run).await;

    let asked = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopApprovalRequested { reason, arguments_hash, .. } => {
            Some((event.at, reason.clone(), arguments_hash.clone()))
        }
        _ => None,
    });
    let (asked_at, reason, hash) = asked.unwrap();
    assert_eq!((reason.as_str(), hash), ("it is dangerous", hash_json(&json!({"id": "a"}))));
    let decided = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopApprovalDecided { decision, reason, actor, .. } => {
            Some((event.at, *decision, reason.clone(), actor.by.clone()))
        }
        _ => None,
    });
    let (decided_at, decision, reason, by) = decided.unwrap();
    assert_eq!((decision, reason.as_deref(), by.as_deref()), (Decision::Rejected, Some("too risky"), Some("ann")));
    assert_eq!(decided_at.since(asked_at), std::time::Duration::from_secs(90));
}

/// Splits a request into its preamble and its messages.
fn parts(request: &positronic_core::record::ModelRequest) -> (String, Vec<String>) {
    let messages = request.messages.messages();
    let before = format!("{} {:?} {:?} {:?}", request.system, request.context, request.tools, request.settings);
    (before, messages.iter().map(|message| serde_json::to_string(message).unwrap()).collect())
}

#[tokio::test(start_paused = true)]
async fn request_extends_the_messages_of_the_previous_one() {
    for deciding in [false, true] {
        let act = |id: &str| match deciding {
            false => batch([("safe", id)]),
            true => Reply::action("Next.", "safe", json!({ "id": id })),
        };
        let end = match deciding {
            false => batch([("finish", "end")]),
            true => Reply::action("Done.", "finish", json!({"id": "end"})),
        };
        let brain = workshop(&Journal::default(), move |config| {
            let finish = crate::support::worker("finish", |t| t.exit());
            let config =
                config.context("house", "We close at nine.").tools([crate::support::worker("safe", |t| t), finish]);
            if deciding { config.structured_actions() } else { config }
        });
        let play = Play::new([act("a"), act("b"), act("c"), end]);

        play.run(&brain, ()).await;

        let requests: Vec<_> = play.requests().iter().map(parts).collect();
        assert_eq!(requests.len(), 4);
        for pair in requests.windows(2) {
            let [(before, messages), (after, more)] = pair else { panic!("a pair") };
            assert_eq!(before, after, "the preamble is unchanged");
            assert_eq!(more[..messages.len()], messages[..]);
            assert!(more.len() > messages.len());
        }
    }
}
