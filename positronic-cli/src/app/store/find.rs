//! Lookup of runs by their id, its beginning or its end, or as the last one, and of conversations by their id or its beginning.

use positronic_core::record::{Path, RunId, RunSummary};
use positronic_core::runner::{Client, Ids as _, UuidIds};
use positronic_core::store::{RunFilter, StoreError};

use crate::app::{Failure, ProjectStore, Ui};
use crate::cli::{LAST, did_you_mean};
use crate::render::DASHES;

/// Maximum number of listed candidates, and of runs searched for a similar id.
const CANDIDATES: usize = 8;
const SEARCHED: usize = 1000;

/// Length of a generated id of a conversation, and minimum length of a prefix that continues a chat.
const LENGTH: usize = 8;
const SHORTEST: usize = 4;

/// What an id or a prefix names.
pub(crate) enum Found<T> {
    One(T),
    /// Several, each as a line.
    Several(Vec<String>),
    Nothing,
}

impl<T> Found<T> {
    fn of(mut all: Vec<T>, line: impl Fn(&T) -> String) -> Self {
        if all.len() > 1 {
            let more = (all.len() > CANDIDATES).then(|| "and more; write more of the id".to_owned());
            return Self::Several(all.iter().take(CANDIDATES).map(line).chain(more).collect());
        }
        all.pop().map_or(Self::Nothing, Self::One)
    }
}

fn ambiguous(written: &str, what: &str, candidates: Vec<String>) -> Failure {
    Failure::usage(format!("`{written}` is ambiguous: the ids of several {what}s match")).hints(candidates)
}

fn unknown<'a>(
    (what, written): (&str, &str),
    store: &ProjectStore,
    known: impl IntoIterator<Item = &'a str>,
    list: &str,
) -> Failure {
    Failure::usage(format!("unknown {what} `{written}` in {}", store.location))
        .hints(did_you_mean(written, known, ""))
        .hint(format!("`{list}` lists the {what}s"))
}

/// Opens the store for reading, and finds a run in it.
pub(crate) async fn open_run(written: &str, ui: &Ui) -> Result<(Client, RunSummary), Failure> {
    let store = ProjectStore::open_to_read(ui).await?;
    let row = find_run(&store, written, ui).await?;
    Ok((store.client(), row))
}

/// Minimum length of the end of an id.
const SHORTEST_END: usize = 4;

/// Finds a run by its id, the beginning or the end of it, or as the last one.
pub(crate) async fn find_run(store: &ProjectStore, written: &str, ui: &Ui) -> Result<RunSummary, Failure> {
    let list = ui.command(&["runs"]);
    if written.trim().is_empty() {
        // An unset shell variable expands to nothing.
        return Err(Failure::usage("the id of the run is empty").hint(format!("`{list}` lists the runs")));
    }
    match lookup_run(store, written).await? {
        Found::One(row) => Ok(row),
        Found::Several(candidates) => Err(ambiguous(written, "run", candidates)),
        Found::Nothing => {
            let rows = store.client().store().runs(&RunFilter::builder().limit(SEARCHED).build()).await?;
            Err(unknown(("run", written), store, rows.iter().map(|row| row.run.as_str()), &list))
        }
    }
}

/// Looks up a run by its id, the beginning or the end of it, or as the last one.
pub(crate) async fn lookup_run(store: &ProjectStore, written: &str) -> Result<Found<RunSummary>, StoreError> {
    let client = store.client();
    // Also if a run has such an id, as one that a program has started.
    if LAST.contains(&written) {
        return Ok(last_started(&client).await?.map_or(Found::Nothing, Found::One));
    }
    match client.store().run(&RunId::new(written)).await {
        Err(StoreError::NoSuchRun { .. }) => {}
        found => return found.map(Found::One),
    }
    let mut rows = Vec::new();
    for prefix in [Some(written.to_owned()), generated(written)].into_iter().flatten() {
        if rows.is_empty() && !prefix.is_empty() {
            rows = client.store().runs(&RunFilter::builder().prefix(prefix).limit(CANDIDATES + 1).build()).await?;
        }
    }
    if written.len() >= SHORTEST_END && written.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let ends = vec![written.to_ascii_lowercase()];
        let by_end = client.store().runs(&RunFilter::builder().ends(ends).limit(CANDIDATES + 1).build()).await?;
        rows.extend(by_end.into_iter().filter(|row| row.run.as_str().len() > written.len()));
        rows.sort_by_cached_key(RunSummary::cursor);
        rows.dedup_by(|one, other| one.run == other.run);
    }
    Ok(Found::of(rows, |row| format!("{}  {}, {}", row.run, row.brain, row.status.as_str())))
}

/// Finds the run that was started last, and not by another run.
async fn last_started(client: &Client) -> Result<Option<RunSummary>, StoreError> {
    let mut filter = RunFilter::builder().limit(CANDIDATES).build();
    loop {
        let rows = client.store().runs(&filter).await?;
        let Some(last) = rows.last().map(RunSummary::cursor) else { return Ok(None) };
        if let Some(row) = rows.into_iter().find(|row| row.parent.is_none()) {
            return Ok(Some(row));
        }
        filter.after = Some(last);
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
pub(crate) fn parse_call(written: &str) -> Result<Path, Failure> {
    Path::parse(written)
        .map_err(|error| Failure::usage(format!("invalid call path `{written}`")).hint(error.to_string()))
}

/// Finds a conversation by its id or a prefix of it.
pub(crate) async fn find_conversation(store: &ProjectStore, written: &str, ui: &Ui) -> Result<String, Failure> {
    match lookup_conversation(&store.client(), written).await? {
        Found::One(id) => Ok(id),
        Found::Several(candidates) => Err(ambiguous(written, "conversation", candidates)),
        Found::Nothing => {
            let all = store.client().conversations().list().await?;
            let list = ui.command(&["conversations"]);
            Err(unknown(("conversation", written), store, all.iter().map(|one| one.id.as_str()), &list))
        }
    }
}

async fn lookup_conversation(client: &Client, written: &str) -> Result<Found<String>, StoreError> {
    let mut all = client.conversations().list().await?;
    if all.iter().any(|one| one.id == written) {
        return Ok(Found::One(written.to_owned()));
    }
    all.retain(|one| !written.is_empty() && one.id.starts_with(written));
    let line = |id: &String| {
        let last = all.iter().find(|one| one.id == *id).map(|one| &one.last);
        last.map_or_else(String::new, |last| format!("{id}  {}, {}", last.brain, last.status.as_str()))
    };
    Ok(Found::of(all.iter().map(|one| one.id.clone()).collect(), line))
}

/// Finds the conversation that a chat continues. An unknown name begins a conversation; an unambiguous prefix of a
/// generated id is that id.
pub(crate) async fn continued_conversation(store: &ProjectStore, written: &str) -> Result<String, Failure> {
    let is_hex = |id: &str| id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_beginning = (SHORTEST..LENGTH).contains(&written.len()) && is_hex(written);
    match lookup_conversation(&store.client(), written).await? {
        Found::One(id) if is_beginning && id.len() == LENGTH && is_hex(&id) => Ok(id),
        Found::Several(candidates) if is_beginning => Err(ambiguous(written, "conversation", candidates)),
        Found::One(_) | Found::Several(_) | Found::Nothing => Ok(written.to_owned()),
    }
}

/// Generates an unused id: short enough to type, and random from its first digit, so that a prefix is enough.
pub(crate) async fn new_id(client: &Client) -> Result<String, StoreError> {
    loop {
        let drawn = UuidIds.run();
        // The last digits are random, the first ones are the time.
        let digits: String = drawn.as_str().chars().rev().filter(char::is_ascii_hexdigit).take(LENGTH).collect();
        let taken = RunFilter::builder().conversation(digits.as_str()).limit(1).build();
        if client.store().runs(&taken).await?.is_empty() && !exists(client, &digits).await? {
            return Ok(digits);
        }
    }
}

/// Returns whether the id of the conversation's first run is used.
async fn exists(client: &Client, id: &str) -> Result<bool, StoreError> {
    match client.store().run(&RunId::new(format!("{id}-0"))).await {
        Ok(_) => Ok(true),
        Err(StoreError::NoSuchRun { .. }) => Ok(false),
        Err(error) => Err(error),
    }
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
