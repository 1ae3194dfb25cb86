//! A temporary folder with a store, and the brains of the tests.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Tier;
use positronic_providers::Providers;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::app::{Project, Settings};
use crate::commands::tests::{Outcome, at_desk, call_given, call_with, desk};

/// A folder with a store.
pub(in crate::commands) struct Desk {
    folder: TempDir,
}

impl Desk {
    pub(in crate::commands) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(in crate::commands) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn settings(&self) -> Settings {
        let store = Some(self.folder.path().join("runs.db"));
        Settings { store, user: Some("ann".into()), ..Settings::default() }
    }

    pub(in crate::commands) fn call(&self, project: &Project, arguments: &[&str]) -> Outcome {
        at_desk(call_with(project, arguments, self.settings()), self.folder.path())
    }

    /// Calls a command with a key in the environment.
    pub(in crate::commands) fn with_key(&self, project: &Project, key: &str, arguments: &[&str]) -> Outcome {
        let providers = Providers::from_variables(|name| (name == "OPENAI_API_KEY").then(|| key.to_owned()));
        let settings = Settings { providers, ..self.settings() };
        at_desk(call_with(project, arguments, settings), self.folder.path())
    }

    /// Calls a command with lines on its stdin.
    pub(super) fn say(&self, project: &Project, lines: &str, arguments: &[&str]) -> Outcome {
        at_desk(call_given(project, arguments, lines, self.settings()), self.folder.path())
    }

    /// Calls a command that needs no brain, and expects it to succeed.
    pub(in crate::commands) fn json(&self, arguments: &[&str]) -> Value {
        let outcome = self.call(&Project::new(), &[arguments, &["--json"]].concat());
        assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.err);
        serde_json::from_str(if outcome.out.is_empty() { "null" } else { &outcome.out }).unwrap()
    }

    pub(in crate::commands) fn refused(&self, arguments: &[&str]) -> String {
        let outcome = self.call(&Project::new(), arguments);
        assert_eq!(outcome.out, "");
        format!("{}\n{}", outcome.code, outcome.err)
    }
}

pub(in crate::commands) fn scripted(replies: impl IntoIterator<Item = Reply>) -> Project {
    Project::new().brain(desk()).brain(batch()).model(Tier::Normal, Arc::new(ScriptedModel::new(replies)))
}

pub(super) fn refund(amount: u32) -> Reply {
    Reply::call("refund", json!({"amount": amount}))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Note {
    /// What to note
    text: String,
}

/// A brain with two calls that need approval.
pub(super) fn batch() -> Brain<(), Vec<String>> {
    brain("Batch")
        .state(Vec::new())
        .r#loop("Work", |cx| {
            cx.system("You note.").input("Note it.").tool("note", |t| {
                t.description("Notes something")
                    .approval(|args: &Note, _| Some(format!("to note {}", args.text)))
                    .execute(async |Note { text }, cx| Ok(cx.result("noted").update(move |notes| notes.push(text))))
            })
        })
        .build()
}

pub(super) fn begun(desk: &Desk, id: &str) {
    let outcome = desk.call(&scripted([refund(70)]), &["run", "help desk", "-o", "customer=ada", "--id", id]);
    assert_eq!(outcome.code, 3, "{}", outcome.err);
}

pub(super) fn begun_batch(desk: &Desk, id: &str) {
    let calls = Reply::calls([("note", json!({"text": "a"})), ("note", json!({"text": "b"}))]);
    assert_eq!(desk.call(&scripted([calls]), &["run", "batch", "--id", id]).code, 3);
}
