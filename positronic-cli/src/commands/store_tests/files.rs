//! The files of a run.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Tier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::desk::Desk;
use crate::app::Project;

/// Saves a file under each name that the model gives, with the name as its content.
fn saves(names: &[&str]) -> Project {
    #[derive(Deserialize, JsonSchema)]
    struct Save {
        /// The name of the file
        name: String,
    }
    let reporter = brain("Reporter").r#loop("Work", |cx| {
        cx.system("Report.").input("Go.").tool("save", |t| {
            t.description("Saves a file").sequential().execute(async |Save { name }, cx| {
                cx.save_file(name.clone(), "text/plain", format!("{name}!")).await.map(|_| ())
            })
        })
    });
    let calls = names.iter().map(|name| Reply::call("save", json!({"name": name})));
    let model = ScriptedModel::new(calls.chain([Reply::text("Saved.")]));
    Project::new().brain(reporter).model(Tier::Normal, Arc::new(model))
}

fn saved(desk: &Desk, names: &[&str]) {
    let ran = desk.call(&saves(names), &["run", "reporter", "--id", "report"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn files_are_listed_and_saved_inside_the_folder_only() {
    let desk = Desk::new();
    saved(&desk, &["sales.csv", "../../escape.txt", "/tmp/absolute"]);
    let call = |arguments: &[&str]| desk.call(&Project::new(), &[&["files", "report"], arguments].concat());
    let out = desk.path("out");
    let written = || {
        let folder = std::fs::read_dir(desk.path("out")).unwrap();
        let mut names: Vec<_> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };

    insta::assert_snapshot!(call(&[]).out, @r#"
    NAME              TYPE        SIZE      SHA-256       FROM
    sales.csv         text/plain  10 bytes  a98c361361d4  save
    ../../escape.txt  text/plain  17 bytes  c3c9fc9f5e44  save
    /tmp/absolute     text/plain  14 bytes  8ee00d59dea8  save
    "#);
    let sales = desk.json(&["files", "report", "sales.csv"]);
    assert_eq!(
        (&sales["size"], &sales["from"], &sales["tool"], &sales["place"]),
        (&json!(10), &json!("tool"), &json!("save"), &json!("Work/0.0")),
        "{sales}"
    );
    let unknown = desk.refused(&["files", "report", "sale.csv"]);
    assert!(unknown.contains("the run has no file `sale.csv`") && unknown.contains("`sales.csv`?"), "{unknown}");

    std::fs::write(desk.path("plain"), "").unwrap();
    assert_eq!(
        desk.refused(&["files", "report", "--save", &desk.path("plain")]),
        "2\nerror: desk/plain is a file and not a folder\n  name a folder\n"
    );
    let saved = call(&["sales.csv", "--save", &out]);
    assert_eq!(
        (saved.code, saved.out.as_str(), saved.err.as_str()),
        (0, "desk/out/sales.csv  10 bytes\n", "1 file in desk/out\n")
    );
    assert_eq!(std::fs::read_to_string(desk.path("out/sales.csv")).unwrap(), "sales.csv!");
    assert_eq!(call(&["sales.csv", "--save", &out]).code, 0);
    assert_eq!(written(), ["sales.csv"], "the same content is saved once");

    std::fs::write(desk.path("other.txt"), "kept").unwrap();
    std::fs::remove_file(desk.path("out/sales.csv")).unwrap();
    std::os::unix::fs::symlink(desk.path("other.txt"), desk.path("out/sales.csv")).unwrap();
    assert_eq!(call(&["--save", &out]).code, 0);
    assert_eq!(written(), ["absolute", "escape.txt", "sales (2).csv", "sales.csv"]);
    assert_eq!(std::fs::read_to_string(desk.path("other.txt")).unwrap(), "kept", "a link is not followed");
    assert_eq!(std::fs::read_to_string(desk.path("out/sales (2).csv")).unwrap(), "sales.csv!");
    assert!(desk.call(&Project::new(), &["show", "report"]).out.contains("10 bytes"));
}

#[test]
fn export_contains_the_files_and_import_checks_them() {
    let (desk, other) = (Desk::new(), Desk::new());
    saved(&desk, &["one.txt", "two.txt"]);
    let file = desk.path("run.jsonl");
    assert_eq!(desk.json(&["export", "report", &file])["files"], 2);
    let text = std::fs::read_to_string(&file).unwrap();
    let broken = |text: &str| {
        std::fs::write(desk.path("broken.jsonl"), text).unwrap();
        other.refused(&["import", &desk.path("broken.jsonl")])
    };

    // `one.txt!` and another content of the same length.
    let damaged = broken(&text.replace("b25lLnR4dCE=", "b25lLnR4dD8="));
    assert!(damaged.contains("a file is damaged: its hash is `"), "{damaged}");
    let cut = broken(text.trim_end().rsplit_once('\n').unwrap().0);
    assert!(cut.contains("the file ends after 1 of 2 files"), "{cut}");
    assert_eq!(other.json(&["import", &file])["files"], 2);

    let out = other.path("out");
    assert_eq!(other.call(&Project::new(), &["files", "report", "--save", &out]).code, 0);
    assert_eq!(std::fs::read_to_string(other.path("out/two.txt")).unwrap(), "two.txt!");
    assert_eq!(text, other.call(&Project::new(), &["export", "report"]).out, "as it came");
}

#[test]
fn damaged_file_is_reported_and_hides_no_other() {
    let desk = Desk::new();
    saved(&desk, &["one.txt", "two.txt"]);
    let db = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    db.execute("UPDATE blobs SET bytes = x'00' WHERE id = 1", []).unwrap();
    let out = desk.path("out");

    let saved = desk.call(&Project::new(), &["files", "report", "--save", &out]);

    assert_eq!((saved.code, saved.out.as_str()), (6, "desk/out/two.txt  8 bytes\n"));
    assert!(saved.err.contains("error: `one.txt` cannot be written: the stored file `"), "{}", saved.err);
    let exported = desk.call(&Project::new(), &["export", "report", &desk.path("run.jsonl")]);
    assert!(exported.err.contains("skipped a file: `one.txt`: the stored file `"), "{}", exported.err);
    assert_eq!(exported.code, 0);
}
