//! Lookup of runs by id or unambiguous prefix.

use positronic_core::record::{Path, RunId, RunSummary};
use positronic_core::store::{RunFilter, StoreError};

use crate::app::failure::Failure;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::cli::suggest::nearest;
use crate::render::short_ids::DASHES;

/// Maximum number of listed candidates, and of runs searched for a similar id.
const CANDIDATES: usize = 8;
const SEARCHED: usize = 1000;

/// Finds a run by its id or a prefix of it.
pub(crate) async fn find(store: &ProjectStore, written: &str, ui: &Ui) -> Result<RunSummary, Failure> {
    if written.trim().is_empty() {
        // An unset shell variable expands to nothing.
        let hint = format!("`{}` lists the runs", ui.command(&["runs"]));
        return Err(Failure::Misused { message: "the id of the run is empty".to_owned(), hint });
    }
    let client = store.client();
    match client.store().run(&RunId::new(written)).await {
        Err(StoreError::NoSuchRun { .. }) => {}
        found => return Ok(found?),
    }
    let mut rows = Vec::new();
    for written in [Some(written.to_owned()), generated(written)].into_iter().flatten() {
        if rows.is_empty() {
            rows = client.store().runs(&RunFilter::builder().prefix(written).limit(CANDIDATES + 1).build()).await?;
        }
    }
    match rows.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            let rows = client.store().runs(&RunFilter::builder().limit(SEARCHED).build()).await?;
            let near = nearest(written, rows.iter().map(|row| row.run.as_str())).into_iter().map(str::to_owned);
            let (place, list) = (store.location.clone(), ui.command(&["runs"]));
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
