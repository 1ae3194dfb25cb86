//! `finish`: the exit tool of an agent.

use positronic_core::dsl::{Options, Services, State, Tool, ToolContext};
use positronic_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blocking::blocking;
use super::folder::{FolderError, OutputFolder};

/// What an agent says at its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// What was reached and what was not, in a few sentences.
    pub summary: String,
    /// The paths of the files in the output folder that are the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
}

/// Creates the exit tool. The agent's summary is the call's result.
///
/// With a folder, every artifact must be a file in it; else the call fails, and the loop continues.
#[must_use]
pub fn finish<O: Options, S: State, V: Services>(folder: Option<&OutputFolder>) -> Tool<O, S, V> {
    finish_with(folder, |_, _| {})
}

/// Creates the exit tool, and stores the agent's summary in the state.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_toolbox::{self as toolbox, Finished};
///
/// let agent = brain("Agent").state(None::<Finished>).r#loop("Work", |cx| {
///     cx.system("Reach the goal.").tools([toolbox::finish_with(None, |end, finished| *end = Some(finished))])
/// });
/// # let _ = agent;
/// ```
#[must_use]
pub fn finish_with<O: Options, S: State, V: Services>(
    folder: Option<&OutputFolder>,
    keep: impl Fn(&mut S, Finished) + Send + Sync + 'static,
) -> Tool<O, S, V> {
    let folder = folder.cloned();
    let keep = std::sync::Arc::new(keep);
    Tool::new("finish", |t| {
        t.title("Finish")
            .description("Ends the work: says what was reached, and which files are the result.")
            .exit()
            .idempotent()
            .execute(move |finished: Finished, cx: ToolContext<O, S, V>| {
                let (folder, keep) = (folder.clone(), std::sync::Arc::clone(&keep));
                async move {
                    if finished.summary.trim().is_empty() {
                        return Err(Error::new("the summary is empty; say what was reached"));
                    }
                    if let Some(folder) = folder {
                        let artifacts = finished.artifacts.clone();
                        blocking(move || exist(&folder, &artifacts)).await?;
                    }
                    Ok(cx.result(&finished).update(move |state| keep(state, finished)))
                }
            })
    })
}

fn exist(folder: &OutputFolder, artifacts: &[String]) -> Result<()> {
    let wrong: Vec<_> = artifacts
        .iter()
        .filter_map(|path| folder.describe(path).err())
        .map(|error: FolderError| error.to_string())
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(Error::new(wrong.join("; "))) }
}
