mod support;

use std::io::Write;
use std::sync::Arc;

use positronic_core::dsl::Action;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, Tier};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use clap::Parser as _;

use self::support::call;
pub(in crate::commands) use self::support::{
    Full, Outcome, Paper, at_desk, call_given, call_unread, call_with, paper_ui, ui, without_times, words,
};
use crate::app::{Project, Settings};
use crate::start::in_project;

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct DeskOptions {
    /// Who asks
    customer: String,
    /// How much may be refunded without asking
    #[serde(default)]
    limit: u32,
}

#[derive(Serialize, Deserialize, Default)]
pub(super) struct Desk {
    customer: String,
    refunds: Vec<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Refund {
    amount: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Letter {
    #[expect(dead_code, reason = "only the schema counts")]
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Post {
    #[expect(dead_code, reason = "only the schema counts")]
    stars: u32,
}

pub(super) fn desk() -> Brain<DeskOptions, Desk> {
    brain("Help Desk")
        .description("Refunds what can be refunded")
        .options::<DeskOptions>()
        .step("Open", async |cx| Ok(Desk { customer: cx.options.customer.clone(), refunds: Vec::new() }))
        .r#loop("Chat", |cx| {
            cx.system(format!("You help {}.", cx.state.customer))
                .tool("refund", |t| {
                    t.description("Refunds an amount")
                        .approval(|args: &Refund, cx| {
                            (args.amount > cx.options.limit).then(|| format!("a refund of {}", args.amount))
                        })
                        .execute(async |Refund { amount }, cx| {
                            Ok(cx.result("refunded").update(move |desk| desk.refunds.push(amount)))
                        })
                })
                .tool("write", |t| {
                    t.description("Writes a letter and waits for the answer")
                        .wait(|_: &Letter, cx| [webhook::<Post>("post").on(&cx.state.customer)])
                        .execute(async |_: Letter, _| Ok("posted"))
                })
        })
        .brain("Survey", survey())
        .map_output(|desk, _| desk)
        .build()
}

fn survey() -> Brain<(), u32> {
    brain("Survey").step("Ask", async |_| Ok(5_u32)).build()
}

fn idle() -> Brain<(), ()> {
    brain("Idle").r#loop("Chat", |cx| cx.system("You help.")).build()
}

fn broken() -> Brain<(), ()> {
    brain("Broken").step("Fall", async |_| Err::<(), _>(Error::new("the floor is wet"))).build()
}

const CASSETTE: &str = r#"{"cassette": 1, "note": "written by hand"}
{"at": "Chat", "reply": {"calls": [{"name": "refund", "arguments": {"amount": 70}}]}}
{"at": "Chat", "reply": {"calls": [{"name": "write", "arguments": {"text": "Done."}}]}}
{"at": "Chat", "reply": {"text": "All is well."}}
{"after": "Chat/0.0", "signal": {"type": "approve", "call": "Chat/0.0", "arguments": {"amount": 60}}}
{"after": "Chat/1.0", "signal": {"type": "webhook", "name": "post", "identifier": "ada", "payload": {"stars": 5}}}
"#;

#[test]
fn project_without_an_action_that_a_brain_names_is_refused() {
    let action = |name: &str| Action::new(name, |t| t.exit().execute(async |_: NoArgs, _| Ok("done")));
    let agent = || {
        let inner = brain("Inner").actions(["finsh"]).r#loop("Act", |cx| cx.system("Act.").actions(["finsh"]));
        brain("Agent").step("Begin", async |_| Ok(())).brain("Nested", inner).map_output(|state, _| state)
    };
    let project = Project::new().action(action("finish")).action(action("search_web")).brain(agent());

    let listed = call(&project, &["list"]);

    assert_eq!((listed.code, listed.out.as_str()), (2, ""));
    insta::assert_snapshot!(listed.err, @r"
    error: the brain `Inner` names the action `finsh`, which the project does not have
      did you mean `finish`?
      the project has the actions finish, search_web
    ");
    let bare = call(&Project::new().brain(agent()), &["run", "agent"]);
    insta::assert_snapshot!(bare.err, @r"
    error: the brain `Inner` names the action `finsh`, which the project does not have
      the project has no actions; add one with `Project::action`
    ");
    let right = Project::new().action(action("finsh")).brain(agent());
    assert_eq!(call(&right, &["list"]).code, 0);
}

#[tokio::test]
async fn command_runs_inside_a_runtime_with_services_opened_there() {
    type Asked = tokio::sync::mpsc::Sender<tokio::sync::oneshot::Sender<String>>;
    let (database, mut asked) = tokio::sync::mpsc::channel::<tokio::sync::oneshot::Sender<String>>(1);
    tokio::spawn(async move {
        while let Some(reply) = asked.recv().await {
            _ = reply.send("from the caller's runtime".to_owned());
        }
    });
    let ping = brain("Ping").services::<Asked>().step("Ask", async |cx| {
        let (reply, answer) = tokio::sync::oneshot::channel();
        cx.services.send(reply).await?;
        Ok(answer.await?)
    });
    let project = Project::new().brain(ping.bind(database));

    let ended = crate::start::on_thread(move || call(&project, &["run", "ping"])).await.unwrap();

    assert_eq!((ended.code, ended.out.trim_end()), (0, "\"from the caller's runtime\""), "{}", ended.err);
}

#[tokio::test]
#[should_panic(expected = "await `Project::run` there: `project.run().await`")]
async fn main_inside_a_runtime_names_run() {
    _ = project().main();
}

pub(super) fn project() -> Project {
    Project::new().brain(desk()).brain(broken()).brain(survey()).brain(idle()).cassette("Help Desk", CASSETTE)
}

#[test]
fn full_disk_behind_the_output_ends_no_run_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { store: Some(folder.path().join("runs.db")), ..Settings::default() };
    let greet = brain("Greet").step("Greet", async |_| Ok("hello".to_owned()));
    let project = Project::new().brain(greet).model(Tier::Normal, Arc::new(ScriptedModel::new([])));
    let run = |out: Box<dyn Write + Send>, id: &str| {
        let mut ui = ui(out, Box::new(Full), settings.clone());
        in_project(&project, &words(&["run", "greet", "--json", "--id", id]), &mut ui)
    };

    assert_eq!(run(Box::<Paper>::default(), "a"), 0, "progress is not data");
    assert_eq!(run(Box::new(Full), "b"), 6);

    for id in ["a", "b"] {
        let result = call_with(&project, &["result", id, "--json"], settings.clone());
        assert_eq!(result.code, 0, "{}", result.out);
    }
}

#[test]
fn list_names_the_brains() {
    let outcome = call(&project(), &["list"]);

    insta::assert_snapshot!(outcome.out, @r"
    Help Desk  Refunds what can be refunded
    Broken
    Survey
    Idle
    ");
    let lines = call(&project(), &["list", "--json"]).out;
    assert_eq!(serde_json::from_str::<Value>(lines.lines().next().unwrap()).unwrap()["title"], "Help Desk");
}

#[test]
fn show_prints_an_example_call_of_a_brain() {
    let outcome = call(&project(), &["show", "help"]);

    assert_eq!(outcome.code, 0);
    insta::assert_snapshot!(outcome.out);
    let document: Value = serde_json::from_str(&call(&project(), &["show", "HELP DESK", "--json"]).out).unwrap();
    assert_eq!(document["example"], "desk run 'Help Desk' -o customer=text");
    assert_eq!(document["stages"][1], json!({"name": "Chat", "kind": "loop"}));
}

#[test]
fn run_without_a_key_plays_the_bundled_cassette_and_reports_it() {
    let outcome = call(&project(), &["run", "help desk", "-o", "customer=ada"]);

    insta::assert_snapshot!("run_cassette_err", outcome.err);
    assert_eq!(serde_json::from_str::<Value>(&outcome.out).unwrap(), json!({"customer": "ada", "refunds": [60]}));
    assert_eq!(outcome.code, 0);
}

#[test]
fn json_writes_every_event_as_a_line() {
    let outcome = call(&project(), &["run", "help desk", "-o", "customer=ada", "--json"]);

    let events: Vec<Event> = outcome.out.lines().map(|line| Event::from_json(line).unwrap()).collect();
    assert!(events.iter().zip(0..).all(|(event, seq)| event.seq.0 == seq));
    assert_eq!(events.last().map(|event| event.kind.name()), Some("BRAIN_COMPLETE"));
}

#[test]
fn failed_run_prints_its_reason() {
    let outcome = call(&project(), &["run", "broken"]);

    assert_eq!((outcome.code, outcome.out.as_str()), (1, ""));
    insta::assert_snapshot!("run_broken_err", outcome.err);
}

#[test]
fn unanswered_wait_has_its_own_exit_code_and_prints_how_to_answer() {
    let model = ScriptedModel::new([Reply::call("refund", json!({"amount": 70}))]);
    let project = project().model(Tier::Normal, Arc::new(model));

    let outcome = call(&project, &["run", "help desk", "-o", "customer=ada"]);

    assert_eq!((outcome.code, outcome.out.as_str()), (3, ""));
    insta::assert_snapshot!("run_unanswered_err", outcome.err);

    let model = ScriptedModel::new([Reply::call("write", json!({"text": "Hi"}))]);
    let project = crate::Project::new().brain(desk()).model(Tier::Normal, Arc::new(model));
    let outcome = call(&project, &["run", "help desk", "-o", "customer=ada"]);
    assert_eq!(outcome.code, 3);
    let line =
        r#"{"after":"Chat/0.0","signal":{"identifier":"ada","name":"post","payload":{"stars":1},"type":"webhook"}}"#;
    assert!(outcome.err.contains(line), "{}", outcome.err);
}

#[test]
fn recorded_run_can_be_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    let file = file.to_str().unwrap();
    let model = ScriptedModel::new([Reply::call("refund", json!({"amount": 7})), Reply::text("Done.")]);
    let recorded = project().model(Tier::Normal, Arc::new(model));
    let flags = ["run", "help desk", "-o", "customer=ada", "-o", "limit=10"];

    let first = call(&recorded, &[&flags[..], &["--record", file]].concat());
    let again = call(&project(), &["run", "help desk", "--cassette", file]);

    assert_eq!((first.code, again.code), (0, 0), "{}{}", first.err, again.err);
    assert_eq!(first.out, again.out);
    assert!(std::fs::read_to_string(file).unwrap().starts_with(r#"{"cassette":1,"model":"scripted/scripted""#));
}

#[test]
fn terminal_controls_are_not_echoed() {
    // A store of its own: the working folder may have one of an older format.
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { store: Some(folder.path().join("runs.db")), ..Settings::default() };
    assert_eq!(call_with(&project(), &["run", "broken"], settings.clone()).code, 1);
    for arguments in [
        &["show", "\u{1b}[2Jno\u{9b}31m"][..],
        &["run", "idle", "-o", "\u{1b}]0;x\u{7}"],
        &["run", "idle", "--cassette", "\u{1b}[2J"],
    ] {
        let outcome = call_with(&project(), arguments, settings.clone());
        assert!(outcome.err.contains('␛'), "{:?}", outcome.err);
        assert!(!outcome.err.contains(|letter: char| letter.is_control() && letter != '\n'), "{:?}", outcome.err);
    }
}

#[test]
fn all_problems_of_a_command_line_are_reported_at_once() {
    let project = project();
    let told = |arguments: &[&str]| {
        let outcome = call(&project, arguments);
        assert_eq!(outcome.out, "");
        format!("{}\n{}", outcome.code, outcome.err)
    };

    insta::assert_snapshot!(told(&["run", "helpdesk", "-o", "custmer=ada", "-o", "limit=few"]), @r"
    2
    error: 3 problems with the options of `Help Desk`:
      custmer: unknown option; did you mean `customer`?
      limit: got `few`, expected a whole number, at least 0 and at most 4294967295
      customer: missing, expected text
      for example: -o customer=text
    ");
    insta::assert_snapshot!(told(&["run", "helpdesk"]), @r"
    2
    error: 1 problem with the options of `Help Desk`:
      customer: missing, expected text
      for example: -o customer=text
    ");
    insta::assert_snapshot!(told(&["show", "surveys", "--store", "runs.db"]), @r"
    6
    error: no store found at runs.db
      check --store and POSITRONIC_STORE; `run` and `import` create a missing store
    ");
    insta::assert_snapshot!(told(&["run", "idle"]), @r"
    5
    error: no model is configured, and `Idle` has no bundled cassette
      set the key of a provider, such as OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or OPENAI_BASE_URL for another compatible endpoint
      or run without a key: --cassette FILE plays a cassette that --record FILE has written
    ");
    insta::assert_snapshot!(told(&["run", "help desk", "-o", "customer=ada", "--cassette", "missing.jsonl"]), @r"
    5
    error: cannot play the cassette missing.jsonl: No such file or directory (os error 2)
    ");
    insta::assert_snapshot!(told(&["run", "help desk", "--options", "@missing.json"]), @r"
    6
    error: cannot read missing.json: No such file or directory (os error 2)
    ");
    insta::assert_snapshot!(told(&["run", "help desk", "-o", "customer=ada", "--record", "x.jsonl"]), @r"
    5
    error: cannot record: no model is configured
      set the key of a provider, such as OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or OPENAI_BASE_URL for another compatible endpoint
    ");
}

#[test]
fn overflowing_number_is_reported_as_an_invalid_option() {
    let project = project();
    for given in
        [&["-o", "customer=ada", "-o", "limit=99999999999"][..], &["--options", r#"{"customer": "ada", "limit": -1}"#]]
    {
        let outcome = call(&project, &[&["run", "helpdesk"][..], given].concat());
        assert_eq!(outcome.code, 2, "{}", outcome.err);
        assert!(outcome.err.contains("expected a whole number, at least 0 and at most 4294967295"), "{}", outcome.err);
    }
    let long = format!("limit={}", "9".repeat(5000));
    assert!(call(&project, &["run", "helpdesk", "-o", &long]).err.len() < 300, "a wrong value is not said back whole");
}

#[test]
fn invalid_name_is_refused() {
    let project = project();
    for (flag, name, said) in [("--id", "", "is empty"), ("--id", "a\nb", "line break"), ("--user", " ", "is empty")] {
        // What clap refuses goes to the process's own stderr.
        let error = crate::cli::Cli::try_parse_from(["desk", "run", "idle", flag, name]).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        assert_eq!(call(&project, &["run", "idle", flag, name]).code, 2);
    }
    for wrong in [["desk", "state", "x", "--at", "-1"], ["desk", "runs", "--limit", "0", "--json"]] {
        let error = crate::cli::Cli::try_parse_from(wrong).unwrap_err().to_string();
        assert!(error.contains("invalid value"), "{error}");
    }
}

#[test]
fn endpoint_to_which_a_command_exports_nothing_is_named_once() {
    let logged = |arguments: &[&str], variables: &[&str]| {
        let (log, set) = (Paper::default(), |name: &str| variables.contains(&name).then(|| "true".into()));
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let _default = tracing::subscriber::set_default(subscriber);
        call_with(&Project::new(), arguments, Settings::from_variables(set));
        log.text()
    };
    let (endpoint, traces) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.db").display().to_string();
    let work = ["work", "--once", "--store", &store];

    for (arguments, variable) in [(&work[..], endpoint), (&["run", "nothing"], traces)] {
        let log = logged(arguments, &[variable]);
        assert_eq!(log.matches("WARN").count(), 1, "{log}");
        assert!(log.contains(&format!("{variable} is set, but ")), "{log}");
    }
    for (arguments, variables) in [
        (&["run", "nothing"][..], &[][..]),
        (&["run", "nothing"], &[endpoint, "OTEL_SDK_DISABLED"]),
        (&["list"], &[endpoint]),
    ] {
        assert_eq!(logged(arguments, variables), "", "{arguments:?} {variables:?}");
    }
}
