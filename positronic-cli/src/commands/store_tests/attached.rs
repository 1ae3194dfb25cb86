//! Files that a person attaches to a message, and those that a model makes.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Attachment, Citation, Message, ModelResponse, Part, ProviderToolUse, Tier};
use serde_json::{Value, json};

use super::desk::Desk;
use crate::app::{Project, Settings};
use crate::commands::tests::{Outcome, at_desk, call_given};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

fn viewer() -> Brain<(), ()> {
    brain("Viewer")
        .r#loop("Look", |cx| {
            cx.system("You look.")
                .tool("zoom", |t| t.requires_approval("it takes time").execute(async |_: NoArgs, _| Ok("closer")))
        })
        .build()
}

fn project(model: &Arc<ScriptedModel>) -> Project {
    let model = Arc::clone(model) as Arc<dyn positronic_core::model::Model>;
    let count = brain("Count").step("Count", async |_| Ok(3));
    Project::new().brain(viewer()).brain(count).model(Tier::Normal, model)
}

fn scripted(replies: impl IntoIterator<Item = Reply>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(replies))
}

/// A folder with a picture.
fn desk() -> (Desk, String) {
    let desk = Desk::new();
    let picture = desk.path("bees.jpg");
    std::fs::write(&picture, PNG).unwrap();
    (desk, picture)
}

/// A text, and its files with the numbers of their loaded bytes.
type Said = (String, Vec<(String, Option<usize>)>);

/// Returns the texts and the files of the user messages in the last request.
fn user_messages(model: &ScriptedModel) -> Vec<Said> {
    let messages = model.requests().last().unwrap().messages.messages();
    let message = |message: &Message| match message {
        Message::User { text, files } => {
            let file = |file: &Attachment| (file.file().name.clone(), file.bytes().map(<[u8]>::len));
            Some((text.clone(), files.iter().map(file).collect()))
        }
        _ => None,
    };
    messages.iter().filter_map(message).collect()
}

fn sent(text: &str, files: &[(&str, Option<usize>)]) -> Said {
    (text.to_owned(), files.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect())
}

/// An answer with everything that people see.
fn answer() -> Reply {
    let source = |url: &str, title: &str| Citation::builder().url(url).title(title).build();
    let search = {
        let mut search = ProviderToolUse::new("web_search");
        search.input = Some("bees\u{1b}[2J".to_owned());
        search.sources =
            (1..6).map(|page| source(&format!("https://bees.org/{page}"), "Bees\n# of the world")).collect();
        search
    };
    let mut code = ProviderToolUse::new("code_execution");
    (code.input, code.error) = (Some("1/0".to_owned()), Some("division by zero".to_owned()));
    let cited =
        vec![source("https://bees.org/1", "Bees | [of] the world"), Citation::builder().title("paper.pdf").build()];
    let parts = vec![
        Part::ProviderTool(Box::new(search)),
        Part::ProviderTool(Box::new(code)),
        Part::Text { text: "Bees dance".to_owned() },
        Part::Citations { citations: cited, data: None },
        Part::Text { text: ", all of them.".to_owned() },
        Part::File { file: Attachment::new("dance.png", "image/png", *b"dance"), data: None },
    ];
    Reply::response(ModelResponse { parts, ..ModelResponse::default() })
}

/// Runs the viewer with a message and two files.
fn looked(desk: &Desk, picture: &str) {
    let model = scripted([answer()]);
    let attach = ["--attach", picture, "--attach", "https://bees.org/hive.jpg"];
    let arguments = [&["run", "viewer", "--id", "look", "--message", "What is it?"][..], &attach].concat();
    let ran = desk.call(&project(&model), &arguments);
    assert_eq!(ran.code, 0, "{}", ran.err);
    insta::assert_snapshot!("attached_run_lines", ran.err);
    assert_eq!(user_messages(&model), [sent("What is it?", &[("bees.jpg", Some(PNG.len())), ("hive.jpg", None)])]);
}

fn look(desk: &Desk, arguments: &[&str]) -> Outcome {
    desk.call(&Project::new(), arguments)
}

#[test]
fn attached_files_reach_the_model_and_people_see_them_with_sources_and_tools_of_the_provider() {
    let (desk, picture) = desk();
    looked(&desk, &picture);

    insta::assert_snapshot!(look(&desk, &["files", "look"]).out, @r"
    NAME       TYPE        SIZE      SHA-256       FROM
    bees.jpg   image/png   16 bytes  02a3e298f153  a message
    hive.jpg   image/jpeg                          a message
    dance.png  image/png   5 bytes   2c371c2ada73  the model
    ");
    let lines: Vec<Value> =
        look(&desk, &["files", "look", "--json"]).out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let from: Vec<_> = lines.iter().map(|file| (&file["from"], &file["place"], &file["tool"])).collect();
    let (message, model) = (json!("message"), json!("model"));
    assert_eq!(
        from,
        [(&message, &json!("Look"), &Value::Null); 2]
            .into_iter()
            .chain([(&model, &json!("Look/0"), &Value::Null)])
            .collect::<Vec<_>>()
    );
    let out = desk.path("out");
    assert_eq!(look(&desk, &["files", "look", "--save", &out]).code, 0);
    assert_eq!(std::fs::read(desk.path("out/bees.jpg")).unwrap(), PNG);
    assert_eq!(std::fs::read(desk.path("out/dance.png")).unwrap(), b"dance");

    let tree = look(&desk, &["show", "look"]).out;
    // The other lines have times.
    let tree: String = tree.lines().filter(|line| line.starts_with("  ")).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!("attached_show", tree);
    let report = look(&desk, &["report", "look"]).out;
    insta::assert_snapshot!("attached_report", report.split_once("## Steps\n").unwrap().1);
    let events = look(&desk, &["events", "look"]).out;
    assert!(
        events.lines().any(|line| line.contains("begins with: What is it? [bees.jpg (image/png, 16 bytes), h")),
        "{events}"
    );
}

#[test]
fn file_that_cannot_be_attached_starts_nothing() {
    let (desk, picture) = desk();
    let model = scripted([]);
    let run = |arguments: &[&str]| desk.call(&project(&model), &[&["run"], arguments].concat());

    let missing = run(&["viewer", "--attach", &picture, "--attach", &desk.path("none.png")]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""), "{}", missing.err);
    let loopless = run(&["count", "--attach", &picture]);
    assert_eq!(loopless.err, "error: `Count` accepts no message: it has no loop of its own\n  remove --attach\n");
    assert!(!std::path::Path::new(&desk.path("runs.db")).exists(), "no store was opened");
}

#[test]
fn file_without_a_text_is_a_message() {
    let (desk, picture) = desk();
    let model = scripted([Reply::text("Bees.")]);

    let ran = desk.call(&project(&model), &["run", "viewer", "--attach", &picture]);

    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("begins with: bees.jpg (image/png, 16 bytes)"), "{}", ran.err);
    assert_eq!(user_messages(&model), [sent("", &[("bees.jpg", Some(PNG.len()))])]);
}

#[test]
fn send_attaches_files_to_a_message_once() {
    let (desk, picture) = desk();
    let model = scripted([Reply::call("zoom", json!({}))]);
    assert_eq!(desk.call(&project(&model), &["run", "viewer", "--id", "look", "--message", "Zoom."]).code, 3);
    let send = |arguments: &[&str]| look(&desk, &[&["send", "look", "--id", "s"], arguments].concat());

    let sent_once = send(&["--attach", &picture]);
    assert_eq!(sent_once.code, 0, "{}", sent_once.err);
    assert!(send(&["--attach", &picture]).out.starts_with("already accepted"));
    assert!(send(&["--message", "Look.", "--attach", &picture]).err.contains("was already used with other content"));
    assert_eq!(send(&["--attach", &picture, "--webhook", "a", "--identifier", "b", "--payload", "1"]).code, 2);
    assert_eq!(send(&["--attach", &desk.path("none.png")]).code, 2);

    assert_eq!(look(&desk, &["approve", "look"]).code, 0);
    let model = scripted([Reply::text("Bees.")]);
    let worked = desk.call(&project(&model), &["work", "look"]);
    assert_eq!(worked.code, 0, "{}", worked.err);
    assert_eq!(user_messages(&model), [sent("Zoom.", &[]), sent("", &[("bees.jpg", Some(PNG.len()))])]);
}

#[test]
fn attached_file_moves_with_the_run_and_stays_until_it_is_pruned() {
    let ((desk, picture), other) = (desk(), Desk::new());
    looked(&desk, &picture);
    let file = desk.path("run.jsonl");

    assert_eq!(desk.json(&["export", "look", &file])["files"], 2);
    assert_eq!(other.json(&["import", &file])["files"], 2);
    let forked = other.json(&["fork", "look", "--at", "1"]);
    let fork = forked["run"].as_str().unwrap();
    let model = scripted([Reply::text("Still bees.")]);
    let worked = other.call(&project(&model), &["work", fork]);
    assert_eq!(worked.code, 0, "{}", worked.err);
    let sent_again = sent("What is it?", &[("bees.jpg", Some(PNG.len())), ("hive.jpg", None)]);
    assert_eq!(user_messages(&model), [sent_again]);

    // Files that were stored within the last hour stay in any case.
    let age = |desk: &Desk| {
        let db = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
        db.execute("UPDATE blobs SET at = 0", []).unwrap();
    };
    age(&other);
    assert_eq!(other.json(&["prune", "--before", "0s", "--status", "cancelled"])["files"], 0, "runs refer to them");
    let saved = other.call(&Project::new(), &["files", fork, "--save", &other.path("out")]);
    assert_eq!(saved.code, 0, "{}", saved.err);
    assert_eq!(std::fs::read(other.path("out/bees.jpg")).unwrap(), PNG);
    let pruned = other.json(&["prune", "--before", "0s"]);
    assert_eq!((&pruned["removed"], &pruned["files"]), (&json!(2), &json!(2)), "{pruned}");
}

#[test]
fn export_has_the_file_of_a_message_that_no_loop_has_received() {
    let ((desk, picture), other) = (desk(), Desk::new());
    let slow =
        brain("Slow").step("Wait", async |_| Err::<(), _>(Error::new("no"))).r#loop("Look", |cx| cx.system("Look."));
    let project = Project::new().brain(slow).model(Tier::Normal, scripted([]) as Arc<_>);
    assert_eq!(desk.call(&project, &["run", "slow", "--id", "look", "--attach", &picture]).code, 1);

    let file = desk.path("run.jsonl");
    assert_eq!(desk.json(&["export", "look", &file])["files"], 1);
    assert_eq!(other.json(&["import", &file])["files"], 1);
}

#[test]
fn recorded_run_with_a_file_is_played() {
    let ((desk, picture), other) = (desk(), Desk::new());
    let said = ["--message", "What is it?", "--attach", &picture];
    let run = |desk: &Desk, project: &Project, more: &[&str]| {
        desk.call(project, &[&["run", "viewer", "--id", "look"][..], &said, more].concat())
    };
    assert_eq!(run(&desk, &project(&scripted([Reply::text("Bees.")])), &[]).code, 0);
    let cassette = desk.path("bees.jsonl");
    assert_eq!(look(&desk, &["record", "look", &cassette]).code, 0);

    let played = run(&other, &Project::new().brain(viewer()), &["--cassette", &cassette]);

    assert_eq!(played.code, 0, "{}", played.err);
    assert!(played.err.contains("Bees."), "{}", played.err);
    let files = other.call(&Project::new(), &["files", "look", "--save", &other.path("out")]);
    assert_eq!((files.code, std::fs::read(other.path("out/bees.jpg")).unwrap()), (0, PNG.to_vec()), "{}", files.err);
}

#[test]
fn chat_attaches_files_to_the_next_message() {
    let (desk, picture) = desk();
    let model = scripted([answer(), Reply::text("Yes.")]);
    // Lines that are typed can be commands.
    let settings = Settings { stdin_is_terminal: true, ..desk.settings() };
    let lines = format!(
        "/attach {picture}\n/attach\n/detach none\n/attach {}\nWhat is it?\n/files\nSure?\n/quit\n",
        desk.path("none.png")
    );

    let chat = ["chat", "viewer", "--conversation", "c", "--plain"];
    let said = at_desk(
        call_given(&project(&model), &chat, &lines, settings),
        std::path::Path::new(&desk.path("")).components().as_path(),
    );

    assert_eq!((said.code, said.out.as_str()), (0, "Bees dance, all of them.\nYes.\n"), "{}", said.err);
    assert!(said.err.contains("attached to the next message: bees.jpg (image/png, 16 bytes)"), "{}", said.err);
    assert!(
        said.err.contains("no file `none` is attached") && said.err.contains("none.png: No such file"),
        "{}",
        said.err
    );
    let listed = "bees.jpg (image/png, 16 bytes)  attached\ndance.png (image/png, 5 bytes)  desk/files/c/dance.png\n";
    assert!(said.err.contains(listed), "{}", said.err);
    assert!(!std::path::Path::new(&desk.path("files/c/bees.jpg")).exists(), "the person has it");
    assert_eq!(
        user_messages(&model),
        [sent("What is it?", &[("bees.jpg", Some(PNG.len()))]), sent("Sure?", &[])],
        "a file belongs to one message"
    );
    let markdown = look(&desk, &["conversations", "export", "c", "--format", "markdown"]).out;
    insta::assert_snapshot!("attached_markdown", markdown);
}
