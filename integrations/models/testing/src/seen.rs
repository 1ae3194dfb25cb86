//! What people see of a run.

use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::transcript;
use positronic_core::record::Seq;
use positronic_core::runner::RunHandle;

/// Returns the timeline of a run.
pub async fn timeline<R>(run: &RunHandle<R>) -> Timeline {
    let events = run.events(Seq(0)).await.unwrap();
    Timeline::of(events.iter().map(|event| &**event))
}

/// Returns what people see of a run, as text.
pub async fn seen<R>(run: &RunHandle<R>) -> String {
    transcript(&timeline(run).await)
}
