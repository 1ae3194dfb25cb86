//! Entries.

use positronic_core::store::{Entry, EntryFilter, EventStore, StoreError};
use serde_json::{Value, json};

const KIND: &str = "note";

async fn put(store: &impl EventStore, key: &str, value: Value, expected: Option<u64>) -> Result<u64, StoreError> {
    store.put_entry(KIND, key, &value, expected).await
}

fn changed(key: &str) -> StoreError {
    StoreError::EntryChanged { kind: KIND.to_owned(), key: key.to_owned() }
}

/// A writer that expects another revision changes nothing.
pub async fn entry_is_changed_at_its_revision<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let odd = "a/ä 'quoted' \u{0}";
    assert_eq!(store.entry(KIND, odd).await, Ok(None));
    assert_eq!(put(&store, odd, json!(1), Some(1)).await, Err(changed(odd)));

    assert_eq!(put(&store, odd, json!({"text": "a \u{0} in it"}), None).await, Ok(1));
    assert_eq!(put(&other, odd, json!(2), None).await, Err(changed(odd)));
    assert_eq!(other.entry(KIND, odd).await, Ok(Some(Entry::new(odd, 1, json!({"text": "a \u{0} in it"})))));

    assert_eq!(put(&other, odd, json!([3]), Some(1)).await, Ok(2));
    assert_eq!(put(&store, odd, json!(4), Some(1)).await, Err(changed(odd)));
    assert_eq!(store.entry(KIND, odd).await, Ok(Some(Entry::new(odd, 2, json!([3])))));
    assert_eq!(store.entry("another kind", odd).await, Ok(None));

    assert_eq!(store.remove_entry(KIND, odd, 1).await, Err(changed(odd)));
    assert_eq!(store.remove_entry(KIND, odd, 2).await, Ok(()));
    assert_eq!(store.remove_entry(KIND, odd, 2).await, Ok(()), "it is gone");
    assert_eq!(other.entry(KIND, odd).await, Ok(None));
}

/// Of many writers with the same expectation, one changes the entry.
pub async fn one_of_many_writers_changes_the_entry<S: EventStore>(open: impl Fn() -> S) {
    let stores = [open(), open(), open(), open()];
    for expected in [None, Some(1)] {
        let racing = stores.iter().enumerate().map(|(number, store)| put(store, "key", json!(number), expected));
        let done = futures::future::join_all(racing).await;

        let winners: Vec<_> = done.iter().flat_map(Result::as_ref).collect();
        assert_eq!(winners, [&expected.unwrap_or_default() + 1].iter().collect::<Vec<_>>());
        assert!(done.iter().filter_map(|done| done.as_ref().err()).all(|error| *error == changed("key")));
        let winner = done.iter().position(Result::is_ok).map(|number| json!(number));
        assert_eq!(stores[0].entry(KIND, "key").await.unwrap().map(|entry| entry.value), winner);
    }
}

/// Lists contain what [`EntryFilter::passes`] accepts, in the order of the keys' bytes.
pub async fn entries_are_listed_by_any_filter<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let mut keys = vec!["", "%", "B", "a", "a%", "a/1", "a/10", "a/2", "a_", "b", "ä"];
    for (number, key) in keys.iter().enumerate() {
        put(&store, key, json!(number), None).await.unwrap();
        store.put_entry("another kind", key, &json!("other"), None).await.unwrap();
    }
    keys.sort_unstable();
    for prefix in ["", "a", "a/", "a%", "ä", "x"] {
        for after in [None, Some(""), Some("a/1"), Some("zz")] {
            for (reverse, limit) in [(false, None), (true, None), (false, Some(2)), (true, Some(2))] {
                let mut filter = EntryFilter::builder().kind(KIND).prefix(prefix).reverse(reverse).build();
                (filter.after, filter.limit) = (after.map(str::to_owned), limit);

                let found = store.entries(&filter).await.unwrap();

                let mut wanted: Vec<_> = keys.iter().copied().filter(|key| filter.passes(key)).collect();
                if reverse {
                    wanted.reverse();
                }
                wanted.truncate(limit.unwrap_or(usize::MAX));
                let found: Vec<_> = found.iter().map(|entry| entry.key.as_str()).collect();
                assert_eq!(found, wanted, "{filter:?}");
            }
        }
    }
}
