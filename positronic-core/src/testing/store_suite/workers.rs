//! Leases of workers.

use crate::store::EventStore;

/// A lease is live for every handle from its acquisition until its release, and its name is not used again.
pub async fn lease_is_live_until_released<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let first = store.acquire_lease().await.unwrap();
    let second = other.acquire_lease().await.unwrap();
    assert_ne!(first.name(), second.name());
    for id in [first.name(), second.name()] {
        assert_eq!(store.is_lease_live(id).await, Ok(true));
        assert_eq!(other.is_lease_live(id).await, Ok(true));
    }

    let id = first.name().to_owned();
    drop(first);

    assert_eq!(store.is_lease_live(&id).await, Ok(false));
    assert_eq!(other.is_lease_live(&id).await, Ok(false));
    assert_eq!(store.is_lease_live(second.name()).await, Ok(true));
    assert_ne!(store.acquire_lease().await.unwrap().name(), id);
    for name in ["", "nobody", "../lock", "lock", "0-0"] {
        assert_eq!(store.is_lease_live(name).await, Ok(false), "{name:?}");
    }
}
