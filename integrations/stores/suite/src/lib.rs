//! The contract of an [`EventStore`](positronic_core::store::EventStore), as tests for any implementation.
//!
//! Each case is an async function. Its argument opens a store that is empty at first; every call returns another handle of
//! the same store, like another process. [`store_suite!`](crate::store_suite!) makes a test of each case:
//!
//! ```
//! # #[cfg(test)]
//! mod memory {
//!     positronic_store_suite::store_suite!({
//!         let store = positronic_core::store::MemoryStore::new();
//!         move || store.clone()
//!     });
//! }
//! ```
//!
//! [`FaultyStore`] wraps any store with faults, for tests of what stands on it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a case fails as a test does"
)]

mod entries;
mod faults;
mod figures;
mod files;
mod lists;
mod log;
mod mailbox;
mod sample;
mod schedules;
mod timers;
mod watching;
mod workers;

pub use entries::*;
pub use faults::{Fault, FaultyStore};
pub use figures::*;
pub use files::*;
pub use lists::*;
pub use log::*;
pub use mailbox::*;
pub use sample::{Sample, event};
pub use schedules::*;
pub use timers::*;
pub use watching::*;
pub use workers::*;

/// Makes a test of each case of the suite. The expression is evaluated for each case and returns a function that opens
/// handles of an empty store. The tests need tokio with its macros and threads.
#[macro_export]
macro_rules! store_suite {
    ($open:expr) => {
        $crate::store_suite!($open;
            append_is_read_back,
            missing_run_is_unknown,
            wrong_number_is_a_conflict,
            refused_append_leaves_nothing,
            older_epoch_is_fenced,
            event_with_another_number_is_refused,
            one_of_two_racing_appends_wins,
            range_is_read,
            snapshot_is_replaced,
            saved_prompts_are_added,
            sink_positions_are_kept,
            one_worker_takes_the_sinks_of_a_dead_one,
            signal_is_found_by_its_id,
            run_begins_only_after_an_existing_one,
            many_tasks_append_to_many_runs,
            summary_follows_the_appends,
            runs_are_listed_by_any_filter,
            pending_items_are_listed_by_any_filter,
            lists_are_read_in_pages,
            pending_items_are_replaced_and_keep_their_age,
            figures_add_up_runs,
            figures_follow_the_appends,
            figures_are_narrowed,
            search_ignores_case,
            search_is_narrowed_and_continued,
            run_that_is_over_is_removed,
            run_with_a_successor_is_not_removed,
            webhook_is_stored_until_it_is_taken,
            repeated_webhook_counts_once,
            webhook_expires,
            webhook_is_taken_once,
            one_of_many_takers_gets_the_webhook,
            webhook_is_discarded,
            webhooks_are_listed,
            blob_is_stored_under_its_hash,
            oversized_blob_is_refused,
            unreferenced_blobs_are_swept,
            blob_is_removed_with_its_last_run,
            refused_append_references_no_blob,
            timer_is_set_and_deleted_by_appends,
            timers_are_listed_by_any_filter,
            timer_fires_once,
            refused_append_changes_no_timer,
            one_of_many_fires_the_timer,
            entry_is_changed_at_its_revision,
            one_of_many_writers_changes_the_entry,
            entries_are_listed_by_any_filter,
            one_of_many_servers_starts_a_tick,
            lease_is_live_until_it_lapses,
            due_runs_are_free_ones_with_work,
            due_run_is_reserved_for_one_worker,
            many_workers_reserve_each_run_once,
            reservation_ends_with_its_lease,
            paused_run_is_due_after_its_pause_or_a_signal,
            refused_run_is_hidden_from_the_same_code,
            deferral_of_a_changed_run_is_ignored,
            watcher_sees_appends,
            watcher_sees_a_future_run,
            watcher_sees_appends_of_others,
            dropped_watcher_sees_nothing,
        );
    };
    ($open:expr; $($case:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::$case($open).await;
            }
        )+
    };
}
