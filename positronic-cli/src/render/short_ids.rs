//! Short forms of run ids.

use std::collections::{BTreeMap, BTreeSet};

use positronic_core::record::RunId;
use positronic_core::runner::Client;
use positronic_core::store::{RunFilter, RunPages, StoreError};

/// Minimum length of a shortened id: its timestamp, so that runs of other moments differ.
const SHORTEST: usize = 13;

/// Positions of the dashes in a generated id.
pub(crate) const DASHES: [usize; 4] = [8, 13, 18, 23];

/// Unambiguous short forms of run ids.
#[derive(Debug, Default)]
pub(crate) struct ShortIds(BTreeMap<RunId, String>);

impl ShortIds {
    /// Shortens the ids of runs. Only generated ids are shortened; custom ids stay unchanged.
    pub(crate) async fn of(client: &Client, runs: impl IntoIterator<Item = &RunId>) -> Result<Self, StoreError> {
        let runs: BTreeSet<&RunId> = runs.into_iter().filter(|run| is_generated(run)).collect();
        let mut beginnings: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for run in &runs {
            let beginning = run.as_str().get(..SHORTEST).unwrap_or_default();
            if !beginnings.contains_key(beginning) {
                let mut ids = BTreeSet::new();
                let mut pages = RunPages::new(client.store(), RunFilter::builder().prefix(beginning).build());
                while let Some(page) = pages.next().await? {
                    ids.extend(page.into_iter().map(|row| row.run.as_str().to_owned()));
                }
                beginnings.insert(beginning, ids);
            }
        }
        let short = |run: &RunId| {
            let whole = run.as_str();
            let others = beginnings.get(whole.get(..SHORTEST).unwrap_or_default());
            let shared = others.into_iter().flatten().filter(|other| *other != whole);
            let length = shared.map(|other| common(whole, other) + 1).max().unwrap_or(0).max(SHORTEST);
            // A trailing dash distinguishes nothing.
            let length = if whole.as_bytes().get(length - 1) == Some(&b'-') { length + 1 } else { length };
            whole.get(..length).unwrap_or(whole).to_owned()
        };
        Ok(Self(runs.into_iter().map(|run| (run.clone(), short(run))).collect()))
    }

    pub(crate) fn get<'a>(&'a self, run: &'a RunId) -> &'a str {
        self.0.get(run).map_or(run.as_str(), String::as_str)
    }
}

/// Returns whether the runtime generated an id.
fn is_generated(run: &RunId) -> bool {
    let id = run.as_str();
    id.len() == 36
        && id
            .bytes()
            .enumerate()
            .all(|(at, byte)| if DASHES.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}
