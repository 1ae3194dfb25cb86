//! `write_file`, `read_file` and `list_files`: no name leads out of the folder, and everything has a limit.

use std::os::unix::fs::symlink;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{LARGEST_BLOB, ToolResult};
use positronic_core::store::MemoryStore;
use positronic_core::testing::Story;
use positronic_toolbox::{self as toolbox, CodeOptions, CodeRunner, FolderError, FolderOptions, Overwrite};
use serde_json::{Value, json};

use crate::desk::{Place, desk, reasons, shown_files};
use crate::support::{Play, done, error_of, path, results, success, waits};

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

#[tokio::test]
async fn file_is_written_listed_read_and_shown() {
    let place = Place::new();
    let folder = place.folder.clone();
    let play = Play::new([
        Reply::calls([write("notes/tea.md", "Tea is hot."), write("./a.csv", "1,2")]),
        Reply::calls([
            ("list_files", json!({})),
            ("list_files", json!({"folder": "notes"})),
            ("read_file", json!({"path": "notes/tea.md"})),
        ]),
        done(),
    ]);

    let story = play.run(&desk::<Value>(move || toolbox::files(&folder).into()), ()).await;

    let results = results(&story, "Work");
    assert_eq!(results[0], success(json!({"path": "notes/tea.md", "size": 11})));
    let tea = json!({"path": "notes/tea.md", "kind": "file", "size": 11});
    let folder = json!({"path": "notes", "kind": "folder"});
    assert_eq!(results[2], success(json!({"files": [{"path": "a.csv", "kind": "file", "size": 3}, folder, tea]})));
    assert_eq!(results[3], success(json!({"files": [tea]})));
    assert_eq!(results[4], success("Tea is hot."));
    let files = shown_files(&story);
    assert_eq!((&*files[0].name, &*files[0].media_type, files[0].size), ("notes/tea.md", "text/markdown", 11));
    assert_eq!(files[0].sha256.len(), 64);
    assert_eq!(files[1].media_type, "text/csv");
    assert_eq!(std::fs::read_to_string(place.outside.path().join("out/notes/tea.md")).unwrap(), "Tea is hot.");
}

#[tokio::test]
async fn names_that_escape_the_folder_or_deceive_are_refused() {
    let place = Place::new();
    let folder = place.folder.clone();
    let secret = place.secret();
    let names = [
        "../secret.txt",
        &secret,
        "a/../../secret.txt",
        "a\\b",
        "a\nb",
        "a\u{202e}txt.exe",
        "",
        "a\u{200b}",
        " a",
        "a/ b",
    ];
    let batch: Vec<_> = names.iter().map(|name| write(name, "mine")).collect();
    let reads: Vec<_> = names.iter().map(|name| ("read_file", json!({"path": name}))).collect();
    let lists: Vec<_> = names[..2].iter().map(|name| ("list_files", json!({"folder": name}))).collect();
    let play = Play::new([Reply::calls(batch), Reply::calls(reads), Reply::calls(lists), done()]);

    let story = play.run(&desk::<Value>(move || toolbox::files(&folder).into()), ()).await;

    let results = results(&story, "Work");
    assert_eq!(results.len(), 22);
    for result in &results {
        assert!(error_of(result).contains("is not a valid path in the output folder"), "{result:?}");
    }
    assert!(error_of(&results[5]).contains(r"a\u{202e}txt.exe"), "what cannot be seen is shown: {:?}", results[5]);
    assert!(place.files().is_empty());
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "the secret");
}

#[test]
fn odd_but_harmless_names_stay_inside() {
    let place = Place::new();

    for name in ["．．／secret.txt", "…/a", "%2e%2e%2fa", "~", "-rf", "写作/ü.md", "..", "..."] {
        let written = place.folder.write(name, b"x");
        assert_eq!(written.is_err(), name == "..", "{name}");
    }

    assert_eq!(std::fs::read_dir(place.outside.path()).unwrap().count(), 2, "the folder and the secret");
    assert_eq!(place.folder.read("．．／secret.txt", 0).unwrap().text, "x");
}

#[test]
fn links_lead_nowhere_else() {
    let place = Place::new();
    let out = place.folder.path();
    symlink(place.secret(), out.join("file")).unwrap();
    symlink(place.outside.path(), out.join("dir")).unwrap();
    symlink("../secret.txt", out.join("relative")).unwrap();
    symlink("loop", out.join("loop")).unwrap();

    for path in ["file", "dir/secret.txt", "relative", "loop"] {
        assert!(place.folder.read(path, 0).is_err(), "{path} is read");
        assert!(place.folder.describe(path).is_err(), "{path} is described");
    }
    assert!(place.folder.write("dir/new.txt", b"x").is_err());
    assert!(place.folder.list(Some("dir")).is_err());
    assert!(place.folder.folder("dir").is_err());
    place.folder.write("file", b"mine").unwrap();
    assert_eq!(place.folder.read("file", 0).unwrap().text, "mine", "a link is replaced and not followed");
    assert_eq!(std::fs::read_to_string(place.secret()).unwrap(), "the secret");
    assert!(!place.outside.path().join("new.txt").exists());
    let kinds: Vec<_> = place.folder.list(None).unwrap().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, ["link", "file", "link", "link"]);
}

#[test]
fn special_files_are_neither_read_nor_waited_for() {
    let place = Place::new();
    place.folder.write("sub/a", b"x").unwrap();
    let pipe = place.folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());

    assert_eq!(place.folder.read("sub", 0).unwrap_err().to_string(), "`sub` is not a file but a folder");
    assert_eq!(place.folder.write("sub", b"x").unwrap_err().to_string(), "`sub` is not a file but a folder");
    assert_eq!(place.folder.read("pipe", 0).unwrap_err().to_string(), "`pipe` is not a file but a pipe or a device");
    assert!(matches!(place.folder.read("none", 0), Err(FolderError::Missing { .. })));
    place.folder.write("pipe", b"a file now").unwrap();
    assert_eq!(place.folder.read("pipe", 0).unwrap().text, "a file now");
}

#[test]
fn files_and_the_folder_have_size_limits() {
    let options = FolderOptions::builder().max_file(10).max_total(25).max_files(3).build();
    let place = Place::with(options);

    let large = place.folder.write("a", &[b'x'; 11]).unwrap_err().to_string();
    assert_eq!(large, "`a` has 11 bytes, but at most 10 are allowed");
    place.folder.write("a", &[b'x'; 10]).unwrap();
    place.folder.write("b", &[b'x'; 10]).unwrap();
    let full = place.folder.write("c", &[b'x'; 6]).unwrap_err().to_string();
    assert_eq!(full, "the output folder is full: 26 bytes of at most 25 bytes");
    place.folder.write("a", &[b'y'; 5]).unwrap();
    place.folder.write("c", &[b'x'; 10]).unwrap();
    let many = place.folder.write("d", b"").unwrap_err().to_string();
    assert_eq!(many, "the output folder is full: 4 files of at most 3 files");
    assert_eq!(place.files(), ["a", "b", "c"], "nothing is left of what did not fit");
}

#[tokio::test]
async fn long_file_is_read_in_parts_that_split_no_character() {
    let place = Place::with(FolderOptions::builder().max_read(5).build());
    place.folder.write("long", "aüüüb".as_bytes()).unwrap();
    let folder = place.folder.clone();
    let reads = [0, 5, 8, 100].map(|offset| ("read_file", json!({"path": "long", "offset": offset})));
    let play = Play::new([Reply::calls(reads), done()]);

    let story = play.run(&desk::<Value>(move || vec![toolbox::read_file(&folder)]), ()).await;

    let results = results(&story, "Work");
    assert_eq!(results[0], success("aüü\n[cut: the file has 8 bytes; read on with `offset` 5]"));
    assert_eq!(results[1], success("üb"));
    assert_eq!(results[2], success(""));
    assert_eq!(results[3], success(""));
}

#[test]
fn binary_file_is_not_read_as_text() {
    let place = Place::new();
    for (name, bytes) in [("a.png", &b"\x89PNG\r\n"[..]), ("b.txt", b"a\0b"), ("c", b"a\xffb"), ("d", b"\xc3")] {
        place.folder.write(name, bytes).unwrap();
        assert!(matches!(place.folder.read(name, 0), Err(FolderError::Binary { .. })), "{name}");
    }
    let said = place.folder.read("a.png", 0).unwrap_err().to_string();
    assert_eq!(said, "`a.png` is not text but 6 bytes of image/png; a program can read it");
}

#[tokio::test]
async fn author_sets_whether_a_file_is_replaced_asked_about_or_preserved() {
    let place = Place::with(FolderOptions::builder().overwrite(Overwrite::Refuse).build());
    place.folder.write("a", b"old").unwrap();
    let folder = place.folder.clone();
    let play = Play::new([Reply::calls([write("a", "new")]), done()]);
    let story = play.run(&desk::<Value>(move || vec![toolbox::write_file(&folder)]), ()).await;
    let refused = "the file `a` exists already and may not be replaced; choose another name";
    assert_eq!(error_of(&results(&story, "Work")[0]), refused);
    assert_eq!(place.folder.read("a", 0).unwrap().text, "old");

    let place = Place::with(FolderOptions::builder().overwrite(Overwrite::Ask).build());
    place.folder.write("a", b"old").unwrap();
    let folder = place.folder.clone();
    let play = Play::new([Reply::calls([write("a", "new"), write("b", "new")]), done()]);
    let run = play.start(&desk::<Value>(move || vec![toolbox::write_file(&folder)]), ()).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    assert_eq!(reasons(&run), ["`a` is there already and would be replaced"]);
    run.reject(&path("Work/0.0"), "keep it", "ann").await.unwrap();
    let story = play.story(&run).await;
    assert!(matches!(results(&story, "Work")[0], ToolResult::Denied { .. }));
    assert_eq!(place.folder.read("a", 0).unwrap().text, "old");
    assert_eq!(place.folder.read("b", 0).unwrap().text, "new");
}

#[tokio::test]
async fn concurrent_write_without_an_approval_does_not_replace_a_file() {
    for (overwrite, says) in [
        (Overwrite::Ask, "the file `a` exists by now, and its replacement was not approved"),
        (Overwrite::Refuse, "the file `a` exists already and may not be replaced"),
    ] {
        let place = Place::with(FolderOptions::builder().overwrite(overwrite).build());
        let folder = place.folder.clone();
        let play =
            Play::new([Reply::calls([write("a", "one"), write("a", "two"), write("b", "x"), write("b", "x")]), done()]);

        let story = play.run(&desk::<Value>(move || vec![toolbox::write_file(&folder)]), ()).await;

        let results = results(&story, "Work");
        let first = usize::from(results[1].is_success());
        assert!(results[first].is_success(), "{results:?}");
        assert!(error_of(&results[1 - first]).starts_with(says), "{results:?}");
        assert_eq!(place.folder.read("a", 0).unwrap().text, ["one", "two"][first]);
        assert!(results[2..].iter().all(ToolResult::is_success), "the same file again replaces nothing: {results:?}");
        assert_eq!(place.files(), ["a", "b"]);
    }
}

#[tokio::test]
async fn approval_covers_the_call_and_not_the_earlier_file() {
    let place = Place::with(FolderOptions::builder().overwrite(Overwrite::Ask).build());
    place.folder.write("a", b"old").unwrap();
    let folder = place.folder.clone();
    let play =
        Play::new([Reply::calls([write("a", "new"), write("b", "new")]), Reply::calls([write("b", "newer")]), done()]);
    let run = play.start(&desk::<Value>(move || vec![toolbox::write_file(&folder)]), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0"]);
    place.folder.write("a", b"what another program wrote").unwrap();
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);
    run.approve(&path("Work/1.0"), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(results(&story, "Work").iter().all(ToolResult::is_success));
    assert_eq!(place.folder.read("a", 0).unwrap().text, "new");
    assert_eq!(place.folder.read("b", 0).unwrap().text, "newer");
}

#[tokio::test]
async fn oversized_file_is_described_and_stays_in_the_folder_only() {
    let limits = FolderOptions::builder().max_file(64 << 20).build();
    for (more, kept) in [(0, true), (1, false)] {
        let place = Place::with(limits.clone());
        let runner = CodeRunner::new(&place.folder, CodeOptions::builder().unattended(["sh"]).build());
        let size = LARGEST_BLOB as u64 + more;
        let code = format!("head -c {size} /dev/zero > zeros.bin");
        let play = Play::new([Reply::call("run_code", json!({"language": "sh", "code": code})), done()]);

        let run = play.start(&desk::<Value>(move || vec![toolbox::run_code(&runner)]), ()).await;

        let story = play.story(&run).await;
        assert!(results(&story, "Work")[0].is_success(), "{:?}", results(&story, "Work"));
        let [file] = &*shown_files(&story) else { panic!("one file") };
        assert_eq!((&*file.name, file.size, file.blob().is_some()), ("zeros.bin", size, kept));
        let bytes = play.test.runner().client().blob(&file.sha256).await.unwrap();
        assert_eq!(bytes.map(|bytes| bytes.len() as u64), kept.then_some(size));
    }
}

#[test]
fn nested_folder_is_a_folder_of_its_own() {
    let place = Place::new();
    let run = place.folder.folder("runs/7").unwrap();

    run.write("a", b"x").unwrap();

    assert_eq!(place.files(), ["runs", "runs/7", "runs/7/a"]);
    assert!(run.write("../8/a", b"x").is_err());
    assert_eq!(run.path(), place.folder.path().join("runs/7"));
}

#[tokio::test]
async fn deleted_file_stays_deleted_and_its_bytes_stay_with_the_run() {
    let (place, store) = (Place::new(), MemoryStore::new());
    let process = |replies: Vec<Reply>| {
        let folder = place.folder.clone();
        let desk = desk::<Value>(move || {
            let asks =
                Tool::new("send", |t| t.requires_approval("it goes out").execute(async |_: NoArgs, _| Ok("sent")));
            toolbox::files(&folder).into_iter().chain([asks]).collect()
        });
        let runner = Runner::new(ScriptedModel::new(replies)).store(store.clone());
        (runner.brain(&desk), desk)
    };
    let (first, desk) = process(vec![Reply::calls([write("tea.md", "Tea is hot."), ("send", json!({}))])]);
    let run = first.start(&desk, ()).await.unwrap();
    waits(&run).await;
    first.release().await;
    std::fs::remove_file(place.folder.path().join("tea.md")).unwrap();

    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    let read = Reply::call("read_file", json!({"path": "tea.md"}));
    let (second, _) = process(vec![read, done()]);
    let run = second.resume(run.id()).await.unwrap();
    run.result().await.unwrap();

    assert!(place.files().is_empty(), "the deletion was intended");
    let read = results(&Story::of(&run).await, "Work").pop().unwrap();
    assert!(error_of(&read).contains("there is no"), "the model reads the error: {read:?}");
    let [file] = &second.client().files(run.id()).await.unwrap()[..] else { panic!("one was made") };
    assert_eq!(second.client().blob(&file.file.sha256).await.unwrap().unwrap(), b"Tea is hot.");
}
