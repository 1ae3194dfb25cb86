//! What every store has to do, as tests that any implementation can run.
//!
//! Each case is an async function that takes a way to open an empty store; opened twice, it is the same store, as two
//! processes have it. [`store_suite!`](crate::store_suite) makes a test of each:
//!
//! ```
//! # #[cfg(test)]
//! mod memory {
//!     positronic_core::store_suite!({
//!         let store = positronic_core::store::MemoryStore::new();
//!         move || store.clone()
//!     });
//! }
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a case fails as a test does"
)]

mod files;
mod lists;
mod log;
mod mailbox;
mod sample;
mod timers;
mod watching;
mod workers;

pub use files::*;
pub use lists::*;
pub use log::*;
pub use mailbox::*;
pub use sample::{Sample, event};
pub use timers::*;
pub use watching::*;
pub use workers::*;

/// Makes a test of each case of the suite. The expression gives a way to open an empty store, and is evaluated for each
/// case; the tests need tokio with its macros and threads.
#[macro_export]
macro_rules! store_suite {
    ($open:expr) => {
        $crate::store_suite!($open;
            an_append_is_read_back,
            a_run_that_does_not_exist_is_unknown,
            a_wrong_number_is_a_conflict,
            what_is_refused_leaves_nothing,
            an_older_attachment_is_fenced,
            an_event_with_another_number_is_refused,
            of_two_that_race_for_a_number_one_wins,
            a_range_is_read,
            a_snapshot_is_replaced,
            a_signal_is_found_by_its_id,
            a_run_begins_only_after_one_that_is_there,
            many_tasks_append_to_many_runs,
            a_row_follows_the_appends,
            runs_are_listed_by_any_filter,
            what_waits_is_listed_by_any_filter,
            what_waits_is_replaced_and_keeps_its_age,
            a_text_is_found_whatever_its_case,
            a_run_is_removed_when_it_is_over,
            a_run_stays_while_another_one_goes_on_after_it,
            mail_is_kept_until_somebody_takes_it,
            mail_that_came_twice_counts_once,
            mail_expires,
            mail_is_taken_once,
            of_many_that_take_a_mail_one_has_it,
            mail_is_thrown_away,
            mail_is_listed,
            bytes_are_kept_under_their_hash,
            a_file_that_is_too_large_is_refused,
            what_no_run_refers_to_is_swept,
            a_file_goes_with_its_last_run,
            an_append_that_is_refused_refers_to_nothing,
            a_timer_is_set_and_deleted_by_appends,
            timers_are_listed_by_any_filter,
            a_timer_fires_once,
            a_refused_append_changes_no_timer,
            of_many_that_fire_a_timer_one_does,
            a_worker_is_alive_while_it_holds,
            a_watcher_is_told_of_appends,
            a_watcher_is_told_of_a_run_to_come,
            a_watcher_is_told_of_the_appends_of_others,
            a_dropped_watcher_is_told_nothing,
        );
    };
    ($open:expr; $($case:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::testing::store_suite::$case($open).await;
            }
        )+
    };
}
