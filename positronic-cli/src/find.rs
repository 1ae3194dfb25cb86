//! Lookup of runs by id or unambiguous prefix.

use std::collections::{BTreeMap, BTreeSet};

use positronic_core::record::{Path, RunId, RunSummary};
use positronic_core::runner::Client;
use positronic_core::store::{RunFilter, StoreError};

use crate::failure::Failure;
use crate::kept::Kept;
use crate::suggest::nearest;
use crate::ui::Ui;

/// Maximum number of listed candidates, and of runs searched for a similar id.
const CANDIDATES: usize = 8;
const SEARCHED: usize = 1000;

/// Minimum length of a shortened id: its timestamp, so that runs of other moments differ.
const SHORTEST: usize = 13;

/// Finds a run by its id or a prefix of it.
pub(crate) async fn find(kept: &Kept, written: &str, ui: &Ui) -> Result<RunSummary, Failure> {
    if written.trim().is_empty() {
        // An unset shell variable expands to nothing.
        let hint = format!("`{}` lists the runs", ui.command(&["runs"]));
        return Err(Failure::Misused { message: "the id of the run is empty".to_owned(), hint });
    }
    let client = kept.client();
    match client.store().run(&RunId::new(written)).await {
        Err(StoreError::NoSuchRun { .. }) => {}
        found => return Ok(found?),
    }
    let mut rows = Vec::new();
    for written in [Some(written.to_owned()), generated(written)].into_iter().flatten() {
        if rows.is_empty() {
            rows = client.store().runs(&RunFilter::builder().prefix(written).most(CANDIDATES + 1).build()).await?;
        }
    }
    match rows.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            let rows = client.store().runs(&RunFilter::builder().most(SEARCHED).build()).await?;
            let near = nearest(written, rows.iter().map(|row| row.run.as_str())).into_iter().map(str::to_owned);
            let (place, list) = (kept.place.clone(), ui.command(&["runs"]));
            Err(Failure::UnknownRun { written: written.to_owned(), place, near: near.collect(), list })
        }
        several => {
            let mut candidates: Vec<String> = several
                .iter()
                .take(CANDIDATES)
                .map(|row| format!("{}  {}, {}", row.run, row.brain, row.status.as_str()))
                .collect();
            if several.len() > CANDIDATES {
                candidates.push("and more; use a longer prefix".to_owned());
            }
            Err(Failure::AmbiguousRun { written: written.to_owned(), candidates })
        }
    }
}

/// Positions of the dashes in a generated id.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// Normalizes an id as the runtime generates it: lower case, with dashes.
fn generated(written: &str) -> Option<String> {
    let digits: String =
        written.chars().filter(|letter| *letter != '-').map(|letter| letter.to_ascii_lowercase()).collect();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut id = String::new();
    for digit in digits.chars() {
        if DASHES.contains(&id.len()) {
            id.push('-');
        }
        id.push(digit);
    }
    Some(id)
}

/// Parses the path of a call.
pub(crate) fn call(written: &str) -> Result<Path, Failure> {
    Path::parse(written).map_err(|error| Failure::NoCall { written: written.to_owned(), reason: error.to_string() })
}

/// Unambiguous short forms of run ids.
#[derive(Debug, Default)]
pub(crate) struct Short(BTreeMap<RunId, String>);

impl Short {
    /// Shortens the ids of runs. Only generated ids are shortened; custom ids stay unchanged.
    pub(crate) async fn of(client: &Client, runs: impl IntoIterator<Item = &RunId>) -> Result<Self, StoreError> {
        let runs: BTreeSet<&RunId> = runs.into_iter().filter(|run| is_generated(run)).collect();
        let mut beginnings: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for run in &runs {
            let beginning = run.as_str().get(..SHORTEST).unwrap_or_default();
            if !beginnings.contains_key(beginning) {
                let rows = client.store().runs(&RunFilter::builder().prefix(beginning).build()).await?;
                beginnings.insert(beginning, rows.into_iter().map(|row| row.run.as_str().to_owned()).collect());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_may_be_upper_case_and_without_dashes() {
        assert_eq!(generated("0193A1B2C3D47").unwrap(), "0193a1b2-c3d4-7");
        assert_eq!(generated("0193-a1b2").unwrap(), "0193a1b2");
        assert_eq!(generated("ticket-1"), None);
    }
}
