//! Short forms of run ids.
//!
//! A generated id begins with its time, so that all runs of a minute begin alike; its end is random. So the short form is the end,
//! as long as it takes to tell it from those of all other runs.

use std::collections::{BTreeMap, BTreeSet};

use positronic_core::record::RunId;
use positronic_core::runner::Client;
use positronic_core::store::{RunFilter, RunPages, StoreError};

/// Minimum length of a shortened id: long enough to stay unique while some hundreds of runs are added.
const SHORTEST: usize = 6;
/// The number of random digits at the end of a generated id; that of a child run has more.
const RANDOM: usize = 12;
/// How many ends one query looks for.
const AT_ONCE: usize = 500;

/// Positions of the dashes in a generated id.
pub(crate) const DASHES: [usize; 4] = [8, 13, 18, 23];

/// Unambiguous short forms of run ids.
#[derive(Debug, Default)]
pub(crate) struct ShortIds(BTreeMap<RunId, String>);

impl ShortIds {
    /// Shortens the ids of runs. Only generated ids are shortened; custom ids stay unchanged.
    pub(crate) async fn of(client: &Client, runs: impl IntoIterator<Item = &RunId>) -> Result<Self, StoreError> {
        let runs: BTreeSet<&RunId> = runs.into_iter().filter(|run| is_generated(run)).collect();
        let ends: BTreeSet<&str> = runs.iter().map(|run| end(run.as_str(), SHORTEST)).collect();
        let ends: Vec<String> = ends.into_iter().map(str::to_owned).collect();
        let mut alike: BTreeMap<String, Vec<RunId>> = BTreeMap::new();
        for ends in ends.chunks(AT_ONCE) {
            let mut pages = RunPages::new(client.store(), RunFilter::builder().ends(ends.to_vec()).build());
            while let Some(page) = pages.next().await? {
                for row in page {
                    alike.entry(end(row.run.as_str(), SHORTEST).to_owned()).or_default().push(row.run);
                }
            }
        }
        let short = |run: &RunId| {
            let whole = run.as_str();
            let others = alike.get(end(whole, SHORTEST)).into_iter().flatten().filter(|other| *other != run);
            let length = others.map(|other| common(whole, other.as_str()) + 1).max().unwrap_or(0).max(SHORTEST);
            if length > RANDOM { whole } else { end(whole, length) }.to_owned()
        };
        Ok(Self(runs.into_iter().map(|run| (run.clone(), short(run))).collect()))
    }

    pub(crate) fn get<'a>(&'a self, run: &'a RunId) -> &'a str {
        self.0.get(run).map_or(run.as_str(), String::as_str)
    }
}

/// Returns whether the runtime generated an id, that of a child run also.
fn is_generated(run: &RunId) -> bool {
    let id = run.as_str();
    let of_child = id
        .strip_prefix("child-")
        .is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    of_child
        || id.len() == 36
            && id
                .bytes()
                .enumerate()
                .all(|(at, byte)| if DASHES.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// Returns the last characters of an id.
fn end(id: &str, length: usize) -> &str {
    id.get(id.len().saturating_sub(length)..).unwrap_or(id)
}

/// Returns how many last characters two ids have in common.
fn common(one: &str, other: &str) -> usize {
    one.bytes().rev().zip(other.bytes().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_are_shortened_and_those_of_people_are_not() {
        for (id, expected) in [
            ("01a2208d-d510-72b4-b032-26566c21251c", true),
            ("child-72a66514c53a14dd81d68cefd8005da8", true),
            ("child-of-mine", false),
            ("invoice-7", false),
        ] {
            assert_eq!(is_generated(&RunId::from(id)), expected, "{id}");
        }
    }
}
