//! Plugin state: read by tools, migrated from another version, or refused.

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::EventKind;
use positronic_core::runner::Settled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Notebook, Notes, note, secretary};
use crate::support::contexts;
use crate::support::{Play, done, results, success};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Renamed {
    entries: Vec<String>,
}

impl PluginState for Renamed {
    const NAME: &'static str = "notes";
    const VERSION: u32 = 1;

    fn migrate(version: u32, kept: Value) -> Result<Self> {
        if version != 0 {
            return Err(Error::new(format!("nobody knows version {version}")));
        }
        let before: Notes = serde_json::from_value(kept)?;
        Ok(Self { entries: before.lines })
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Careless {
    entries: Vec<String>,
}

impl PluginState for Careless {
    const NAME: &'static str = "notes";
}

/// Shows the stored `notes`.
#[derive(Debug, Clone, Copy)]
struct Reader<P>(std::marker::PhantomData<P>);

trait Entries: PluginState {
    fn entries(&self) -> &[String];
}

impl Entries for Renamed {
    fn entries(&self) -> &[String] {
        &self.entries
    }
}

impl Entries for Careless {
    fn entries(&self) -> &[String] {
        &self.entries
    }
}

impl<P: Entries, O: Options, S: State, V: Services> Plugin<O, S, V> for Reader<P> {
    type State = P;

    fn initial(&self) -> P {
        unreachable!("there is something")
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, P>) -> Result<()> {
        let entries = cx.state.entries().join("; ");
        cx.context("entries", entries);
        Ok(())
    }
}

fn reading<P: Entries>() -> Brain<(), ()> {
    secretary().r#loop("Read", |cx| cx.system("Read.").plugin(Reader::<P>(std::marker::PhantomData))).build()
}

#[tokio::test(start_paused = true)]
async fn state_of_another_version_is_migrated() {
    let play = Play::new([note("milk"), done(), done()]);

    let story = play.run(&reading::<Renamed>(), ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)));
    assert_eq!(contexts(&play.last_request()), ["entries: milk"]);
    let kept = story.log().iter().rev().find_map(|event| match &event.kind {
        EventKind::LoopIteration(iteration) => iteration.plugins.get("notes").cloned(),
        _ => None,
    });
    assert_eq!(serde_json::to_value(kept).unwrap(), json!({"version": 1, "state": {"entries": ["milk"]}}));
}

#[tokio::test(start_paused = true)]
async fn incompatible_state_is_refused_with_an_explanation() {
    let story = Play::new([note("milk"), done()]).run(&reading::<Careless>(), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(
        failure.message,
        "the loop `Read` cannot be configured: the plugin `notes` failed: cannot decode the stored state of \
         the plugin `notes` as `it::plugins::plugin_state::Careless`: \"entries\" is a required property; raise its `VERSION` and write `migrate`"
    );
}

#[tokio::test(start_paused = true)]
async fn tools_read_the_state_of_plugins() {
    let reading = brain("Reading").r#loop("Work", |cx| {
        cx.system("Work.")
            .plugin(Notebook)
            .tool("last", |t| t.execute(async |_: NoArgs, cx| Ok(cx.plugin_state::<Notes>()?.lines.last().cloned())))
    });
    let play = Play::new([note("milk"), Reply::call("last", json!({})), done()]);

    let story = play.run(&reading, ()).await;

    assert_eq!(results(&story, "Work"), [success("noted"), success("milk")]);
    let unknown = brain("Unknown").step("Look", async |cx| cx.plugin_state::<Notes>().map(|notes| notes.lines.len()));
    let Settled::Failed(failure) = Play::new([]).run(&unknown, ()).await.settled().clone() else { panic!("it fails") };
    assert_eq!(failure.message, "the step `Look` failed: no plugin `notes` has been prepared in this brain");
}
