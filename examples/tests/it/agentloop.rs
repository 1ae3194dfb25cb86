use std::sync::Arc;

use positronic_core::machine::RunState;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::{Event, EventKind, LoopOutcome, ModelRequest, OutputFormat};
use positronic_core::testing::{Story, Test};
use positronic_examples::agentloop::{CASSETTE, GOAL, Search, Task, Work, agentloop};
use serde::Deserialize as _;
use serde_json::json;
use tempfile::TempDir;

use crate::durable::Desk;

/// The bundled task, with its files in this folder.
pub(crate) fn task(folder: &TempDir) -> Task {
    Task { folder: folder.path().display().to_string(), search: Search::Bundled, ..Task::default() }
}

fn work(story: &Story) -> Work {
    Work::deserialize(story.state()).unwrap()
}

/// Removes machine-dependent parts: the folder's path, and missing restrictions of the sandbox.
fn stable(text: &str, folder: &TempDir) -> String {
    let place = folder.path().canonicalize().unwrap().display().to_string();
    let mut text = text.replace(&place, "[folder]");
    while let Some((before, rest)) = text.split_once(r#","notes":["#) {
        let (_, after) = rest.split_once(']').unwrap();
        text = format!("{before}{after}");
    }
    text
}

#[tokio::test(start_paused = true)]
async fn agent_researches_computes_and_reports_its_goal() {
    let folder = tempfile::tempdir().unwrap();

    let story = Test::play(CASSETTE, agentloop(), task(&folder)).await;

    let work = work(&story);
    assert_eq!(work.steps[3].came, "the mean of 3 heights is 4662 m", "a program has computed it");
    assert_eq!(work.finished.unwrap().artifacts, ["report.md", "heights.csv"]);
    let report = std::fs::read_to_string(format!("{}/report.md", work.folder)).unwrap();
    assert!(report.contains("4,662 m") && report.contains("https://example.org/dufourspitze"), "{report}");
    insta::assert_snapshot!("transcript", stable(&story.transcript(), &folder));
}

#[tokio::test(start_paused = true)]
async fn state_is_readable_after_every_step() {
    let folder = tempfile::tempdir().unwrap();
    let story = Test::play(CASSETTE, agentloop(), task(&folder)).await;

    let mut seen: Vec<String> = Vec::new();
    for until in 1..=story.log().len() {
        let state = RunState::replay(story.log()[..until].iter().map(|event| &**event)).unwrap();
        let Ok(work) = Work::deserialize(&*state.root.unwrap().state) else { continue };
        let Work { steps, findings, files, finished, .. } = work;
        let last = steps.last().map_or_else(String::new, |step| format!("{}: {}", step.action, step.came));
        let (pages, finished) = (findings.len(), finished.is_some());
        let line = format!("{} steps, {pages} pages, files {files:?}, finished {finished} | {last}", steps.len());
        if seen.last() != Some(&line) {
            seen.push(line);
        }
    }

    insta::assert_snapshot!("states", seen.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn unknown_action_is_requested_again_with_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let story = Test::play(CASSETTE, agentloop(), task(&folder)).await;

    let refused = |event: &&Arc<Event>| matches!(event.kind, EventKind::LoopAnswerRefused { .. });
    let refused: Vec<_> = story.log().iter().filter(refused).collect();

    let [refused] = refused.as_slice() else { panic!("{refused:?}") };
    let fields = refused.kind.to_value();
    assert_eq!(
        fields["message"],
        "there is no action `search`; the actions are `search_web`, `run_code`, `write_file`, `finish`"
    );
    // It costs no step: the iteration continues with the next try.
    assert_eq!(refused.path.as_str(), "Work/0");
}

/// Lists the actions that a request allows.
fn offers(request: &ModelRequest, action: &str) -> bool {
    let context = request.context.iter().map(|item| item.text.as_str());
    std::iter::once(&*request.system).chain(context).any(|text| text.contains(action))
}

#[tokio::test(start_paused = true)]
async fn agent_summarizes_in_one_last_iteration_after_fifty_steps() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::from_fn(|request| {
        if request.settings.output == OutputFormat::Text {
            return Reply::text("Searched for heights, and found pages.");
        }
        if offers(request, "search_web") {
            return Reply::action("One more.", "search_web", json!({ "query": "height" }));
        }
        Reply::action("There is no time left.", "finish", json!({ "summary": "Pages were found, and no mean." }))
    });

    let story = Test::new(model).run(agentloop(), task(&folder)).await;

    let work = work(&story);
    assert_eq!(work.steps.len(), 50);
    assert_eq!(work.finished.unwrap().summary, "Pages were found, and no mean.");
    let compacted = story.log().iter().filter(|event| matches!(event.kind, EventKind::LoopCompacted { .. })).count();
    assert_eq!(compacted, 3, "after 20 iterations, and whenever 15 more stand behind the summary");
    let ended = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopComplete { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    assert_eq!(ended, Some(LoopOutcome::Exited { tool: "finish".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn agent_without_a_summary_keeps_its_partial_result() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::from_fn(|request| {
        if request.settings.output == OutputFormat::Text {
            return Reply::text("Nothing yet.");
        }
        if offers(request, "search_web") {
            return Reply::action("A note.", "write_file", json!({ "path": "notes.md", "content": "nothing yet\n" }));
        }
        Reply::action("I am not done.", "finish", json!({ "summary": " " }))
    });

    let story = Test::new(model).run(agentloop(), task(&folder)).await;

    let positronic_core::runner::Settled::Completed(result) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(
        (&result["finished"], &result["summary"], &result["artifacts"]),
        (&json!(false), &json!("The agent had used up its steps."), &json!(["notes.md"]))
    );
}

#[tokio::test(start_paused = true)]
async fn folder_creation_failure_fails_the_run_before_the_first_request() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("taken"), "").unwrap();
    let place = folder.path().join("taken").display().to_string();
    let model = ScriptedModel::new([]);

    let story = Test::new(model).run(agentloop(), Task { folder: place.clone(), ..Task::default() }).await;

    let failed = format!("{:?}", story.settled());
    assert!(failed.contains("the folder for its files cannot be created") && failed.contains(&place), "{failed}");
}

/// Removes times and durations.
fn timeless(report: &str) -> String {
    let mut lines = Vec::new();
    for line in report.lines() {
        let mut words: Vec<&str> = line.split(' ').collect();
        for place in 1..words.len() {
            let is_unit = matches!(words[place].trim_end_matches([')', ':']), "ms" | "s");
            if is_unit && words[place - 1].chars().all(|letter| letter.is_ascii_digit() || letter == '.') {
                words[place - 1] = "N";
            }
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

#[test]
fn bundled_goal_runs_without_a_key_and_reports_every_step() {
    let desk = Desk::new();

    let said = desk.expect(&["run", "agentloop", "--id", "heights"], 0);
    desk.expect(&["report", "heights", "--out", "run.md"], 0);

    assert!(said.contains("The program misspelt the file's name."), "reasons are shown during the run: {said}");
    assert!(said.contains("Mont Blanc (bundled page)"), "{said}");
    assert!(desk.expect(&["show", "heights"], 0).contains("The program misspelt the file's name."));
    assert!(desk.0.path().join("agentloop/heights/report.md").is_file());
    let report = std::fs::read_to_string(desk.0.path().join("run.md")).unwrap();
    let began = report.lines().find(|line| line.starts_with("- Began: ")).unwrap();
    let report = timeless(&report.replace(began, "- Began: [then]"));
    let report = report.replace(&desk.0.path().canonicalize().unwrap().display().to_string(), "[desk]");
    // The report also names the restrictions that this machine lacks.
    let noted = |line: &&str| !line.contains("not enforced on this machine") && !line.contains("needs approval");
    insta::assert_snapshot!("report", report.lines().filter(noted).collect::<Vec<_>>().join("\n"));
    desk.expect(&["report", "heights", "--out", "run.md"], 2);
    let early = desk.json(&["state", "heights", "--at", "20"]);
    assert_eq!(early["state"]["steps"].as_array().unwrap().len(), 2, "as it was then: {}", early["state"]);
    let document = desk.json(&["report", "heights"]);
    let nodes = document["timeline"]["nodes"].as_array().unwrap();
    let tools: Vec<_> = nodes.iter().filter_map(|node| node["kind"]["tool"].as_str()).collect();
    assert!(tools.contains(&"write_file"), "{tools:?}");
}

#[test]
fn preapproved_programs_skip_the_cassettes_approvals() {
    let desk = Desk::new();

    let said = desk.expect(&["run", "agentloop", "-o", "unattended=sh"], 0);

    let left = "nothing waited for 2 decisions of people in the cassette, the first after `Work/2.0`\n";
    assert!(said.contains(left) && !said.contains("not used"), "{said}");
}

#[test]
fn another_goal_without_an_endpoint_is_refused() {
    let desk = Desk::new();

    desk.expect(&["run", "agentloop", "-o", "goal="], 2);
    let said = desk.expect(&["run", "agentloop", "-o", "goal=Buy a yacht"], 5);

    assert!(said.contains("the cassette of `Agent loop` only answers for its own `goal`"), "{said}");
    assert!(said.contains(&GOAL[..30]) && said.contains("OPENAI_API_KEY"), "{said}");
    assert!(!desk.0.path().join("agentloop").exists() && desk.call(&["runs", "--json"]).stdout.is_empty());
    // The cassette does not depend on the folder of the files.
    desk.expect(&["run", "agentloop", "-o", "folder=elsewhere", "--id", "heights"], 0);
    assert!(desk.0.path().join("elsewhere/heights/report.md").is_file());
    // A run whose goal has changed on its way does not continue either.
    let forked = desk.json(&["fork", "heights", "--at", "4", "-o", "goal=Buy a yacht"]);
    let said = desk.expect(&["work", forked["run"].as_str().unwrap()], 5);
    assert!(said.contains("only answers for its own `goal`"), "{said}");
}
