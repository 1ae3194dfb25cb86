//! The mailbox: webhooks that arrived before a run waited for them.

use positronic_core::record::{Actor, Seq, SignalId, Timestamp};
use positronic_core::store::{
    DeliveryState, EventStore, InboundWebhook, MailboxEntry, PostOutcome, RunFilter, StoreError,
};
use serde_json::json;

use super::Sample;

/// Makes a webhook.
pub(super) fn mail(id: &str, at: i64, expires: i64) -> InboundWebhook {
    InboundWebhook {
        id: SignalId::from(id),
        webhook: "slack".to_owned(),
        identifier: "thread".to_owned(),
        payload: json!({ "text": "It has arrived.", "id": id }),
        actor: Actor::builder().by("ann").build(),
        at: Timestamp(at),
        expires: Timestamp(expires),
        refusal: None,
    }
}

/// A webhook is found by its name and identifier, the oldest first.
pub async fn webhook_is_stored_until_it_is_taken<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let (late, early) = (mail("mail-1", 20, 100), mail("mail-2", 10, 100));
    let elsewhere = InboundWebhook { identifier: "another".to_owned(), ..mail("mail-3", 5, 100) };
    for mail in [&late, &early, &elsewhere] {
        assert_eq!(store.post(mail).await, Ok(PostOutcome::New));
    }

    assert_eq!(other.mail("slack", "thread", Timestamp(0), Timestamp(50)).await, Ok(Some(early)));
    assert_eq!(other.mail("slack", "another", Timestamp(0), Timestamp(50)).await, Ok(Some(elsewhere)));
    assert_eq!(
        other.mail("slack", "another", Timestamp(5), Timestamp(50)).await.unwrap().unwrap().id.as_str(),
        "mail-3"
    );
    assert_eq!(other.mail("slack", "another", Timestamp(6), Timestamp(50)).await, Ok(None), "it is too old");
    assert_eq!(other.mail("slack", "another", Timestamp(0), Timestamp(100)).await, Ok(None), "it has expired");
    assert_eq!(other.mail("stripe", "thread", Timestamp(0), Timestamp(50)).await, Ok(None));
}

/// A webhook with a known signal id is the same one, whatever its payload.
pub async fn repeated_webhook_counts_once<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let first = mail("mail-1", 10, 100);
    let again = InboundWebhook { payload: json!("something else"), ..mail("mail-1", 20, 200) };

    assert_eq!(store.post(&first).await, Ok(PostOutcome::New));
    assert_eq!(store.post(&again).await, Ok(PostOutcome::Duplicate));
    assert_eq!(store.mail("slack", "thread", Timestamp(0), Timestamp(50)).await, Ok(Some(first.clone())));

    let run = Sample::new("run-1").says("one").says("two").appended(&store).await;
    let run = run.says("the answer").delivers(&first.id).appended(&store).await;
    assert_eq!(store.mail("slack", "thread", Timestamp(0), Timestamp(50)).await, Ok(None));
    assert_eq!(store.post(&again).await, Ok(PostOutcome::Delivered { run: run.run, seq: Seq(2) }));
}

/// A webhook is removed when it expires, also if it was taken.
pub async fn webhook_expires<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let (taken, free) = (mail("mail-1", 10, 100), mail("mail-2", 10, 100));
    assert_eq!(store.post(&taken).await, Ok(PostOutcome::New));
    assert_eq!(store.post(&free).await, Ok(PostOutcome::New));
    _ = Sample::new("run-1").says("one").delivers(&taken.id).appended(&store).await;

    assert_eq!(store.post(&mail("mail-3", 99, 200)).await, Ok(PostOutcome::New));
    assert_eq!(store.post(&mail("mail-2", 99, 200)).await, Ok(PostOutcome::Duplicate));
    assert_eq!(store.post(&mail("mail-1", 100, 200)).await, Ok(PostOutcome::New));
    assert_eq!(store.post(&mail("mail-2", 100, 200)).await, Ok(PostOutcome::New));
}

/// The first append that takes a webhook gets it; another one is refused as a whole. An append that takes an unknown
/// webhook is accepted.
pub async fn webhook_is_taken_once<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let (mail, free) = (mail("mail-1", 10, 100), mail("mail-2", 20, 100));
    store.post(&mail).await.unwrap();
    store.post(&free).await.unwrap();

    let first = Sample::new("run-1").says("one").delivers(&mail.id).appended(&store).await;
    let late = Sample::new("run-2").says("one").delivers(&free.id).delivers(&mail.id).append(&store).await;

    let (id, run) = (mail.id.clone(), first.run.clone());
    assert_eq!(late, Err(StoreError::Taken { mail: id, run: run.clone(), seq: Seq(0) }));
    assert_eq!(store.run(&"run-2".into()).await, Err(StoreError::NoSuchRun { run: "run-2".into() }));
    assert_eq!(store.mail("slack", "thread", Timestamp(0), Timestamp(50)).await, Ok(Some(free)));
    assert_eq!(store.post(&mail).await, Ok(PostOutcome::Delivered { run, seq: Seq(0) }));
    _ = Sample::new("run-2").says("one").delivers(&SignalId::from("none")).appended(&store).await;
}

/// One of many runs that take a webhook concurrently gets it, and nothing is written for the others.
pub async fn one_of_many_takers_gets_the_webhook<S: EventStore>(open: impl Fn() -> S) {
    let stores: Vec<_> = std::iter::repeat_with(&open).take(8).collect();
    let mail = mail("mail-1", 10, 100);
    stores[0].post(&mail).await.unwrap();

    let deliveries = stores.iter().enumerate().map(|(number, store)| {
        let mut sample = Sample::new(&format!("run-{number}")).says("the answer").delivers(&mail.id);
        async move { sample.append(store).await.map(|()| sample.run) }
    });
    let taken = futures::future::join_all(deliveries).await;

    let has: Vec<_> = taken.iter().filter_map(|taken| taken.as_ref().ok()).collect();
    assert_eq!(has.len(), 1, "{taken:?}");
    let refused = Err(StoreError::Taken { mail: mail.id.clone(), run: has[0].clone(), seq: Seq(0) });
    assert!(taken.iter().all(|taken| taken.is_ok() || *taken == refused), "{taken:?}");
    assert_eq!(stores[0].runs(&RunFilter::default()).await.unwrap().len(), 1);
}

/// A discarded webhook may arrive again; a taken one stays known.
pub async fn webhook_is_discarded<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let (refused, taken) = (mail("mail-1", 10, 100), mail("mail-2", 10, 100));
    store.post(&refused).await.unwrap();
    store.post(&taken).await.unwrap();
    _ = Sample::new("run-1").says("one").delivers(&taken.id).appended(&store).await;

    for mail in [&refused, &taken] {
        assert_eq!(store.discard(&mail.id).await, Ok(()));
    }
    assert_eq!(store.discard(&SignalId::from("none")).await, Ok(()));

    assert_eq!(store.mail("slack", "thread", Timestamp(0), Timestamp(50)).await, Ok(None));
    assert_eq!(store.post(&refused).await, Ok(PostOutcome::New));
    assert!(matches!(store.post(&taken).await, Ok(PostOutcome::Delivered { .. })));
}

/// The mailbox lists stored and taken webhooks, the oldest first, until they expire or are discarded.
pub async fn webhooks_are_listed<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let (kept, taken) = (mail("mail-1", 20, 100), mail("mail-2", 10, 100));
    store.post(&kept).await.unwrap();
    store.post(&taken).await.unwrap();
    let run = Sample::new("run-1").says("one").delivers(&taken.id).appended(&store).await;

    let entry = |mail: &InboundWebhook, delivery: DeliveryState| MailboxEntry {
        id: mail.id.clone(),
        webhook: mail.webhook.clone(),
        identifier: mail.identifier.clone(),
        at: mail.at,
        expires: mail.expires,
        delivery,
    };
    let both = [
        entry(&taken, DeliveryState::Delivered { run: run.run, seq: Seq(0) }),
        entry(&kept, DeliveryState::Undelivered(kept.clone())),
    ];
    assert_eq!(other.mailbox().await, Ok(both.to_vec()));
    for entry in &both {
        assert_eq!(other.mailbox_entry(&entry.id).await, Ok(Some(entry.clone())));
    }
    assert_eq!(other.mailbox_entry(&SignalId::from("none")).await, Ok(None));
    store.discard(&kept.id).await.unwrap();
    assert_eq!(other.mailbox().await, Ok(both[..1].to_vec()));
}
