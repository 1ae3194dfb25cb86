//! Updates of plugins of runs.

use std::sync::Arc;

use positronic_core::dsl::{Options, Plugin, PluginState, PluginUpdate, ReceivedUpdate, Services, State};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Tier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::desk::Desk;
use crate::app::Project;

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Tone {
    name: String,
}

#[derive(Serialize, Deserialize)]
struct SetTone {
    tone: String,
}

impl PluginUpdate for SetTone {
    type State = Tone;
}

impl PluginState for Tone {
    const NAME: &'static str = "tone";

    fn update(&mut self, update: &ReceivedUpdate<'_>) -> Result<()> {
        let SetTone { tone } = update.read()?;
        self.name = tone;
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Toned;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Toned {
    type State = Tone;

    fn initial(&self) -> Tone {
        Tone::default()
    }
}

fn project(replies: impl IntoIterator<Item = Reply>) -> Project {
    let writer = brain("Writer").r#loop("Write", |cx| {
        cx.system("Write.").input("Write a letter.").plugin(Toned).tool("send", |t| {
            t.description("Sends it").requires_approval("it goes out").execute(async |_: NoArgs, _| Ok("sent"))
        })
    });
    Project::new().brain(writer).model(Tier::Normal, Arc::new(ScriptedModel::new(replies)))
}

#[test]
fn update_of_a_plugin_is_sent_once_and_shown_with_its_outcome() {
    let desk = Desk::new();
    let begun = desk.call(&project([Reply::call("send", json!({}))]), &["run", "writer", "--id", "letter"]);
    assert_eq!(begun.code, 3, "{}", begun.err);
    let send = |plugin: &str, update: &str| {
        let outcome = desk.call(&Project::new(), &["send", "letter", "--plugin", plugin, update, "--id", update]);
        (outcome.code, outcome.out + &outcome.err)
    };

    insta::assert_snapshot!(send("tone", r#"{"tone": "warm"}"#).1, @"sent the update of the plugin tone (event 8 of letter)");
    insta::assert_snapshot!(send("tone", r#"{"tone": "warm"}"#).1, @"already accepted: sent the update of the plugin tone (event 8 of letter)");
    insta::assert_snapshot!(send("tone", "3").1, @"sent the update of the plugin tone (event 9 of letter)");
    insta::assert_snapshot!(send("notes", "4").1, @r"
    error: no open loop of the run has a state of the plugin `notes`
      nothing was changed; `desk show letter` shows the run
    ");
    assert_eq!(desk.refused(&["send", "letter", "--plugin", "tone", "{"]).chars().next(), Some('2'));

    desk.call(&Project::new(), &["approve", "letter"]);
    let done = desk.call(&project([Reply::text("It is sent.")]), &["work", "letter"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let shown = desk.call(&Project::new(), &["report", "letter"]).out;
    let told: Vec<_> =
        shown.lines().filter(|line| line.contains("the plugin tone") || line.contains("refused")).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    - the plugin tone was updated by ann: {"tone":"warm"}
    - the plugin tone was updated by ann: 3
    - the plugin tone refused an update: the update is not a \`positronic_cli::commands::store_tests::plugin_updates::SetTone\`: invalid type: integer \`3\`, expected struct SetTone
    "#);
}
