//! `positronic inbox`: what waits for a person, over all runs.

use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::store::{PendingFilter, StoreError};
use serde_json::json;

use super::block_on;
use crate::cli::InboxArgs;
use crate::failure::{Exit, Failure};
use crate::find::Short;
use crate::kept::Kept;
use crate::lists::{answers, entry};
use crate::ui::Ui;

pub(crate) fn inbox(args: &InboxArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = Kept::look(ui)?;
    let filter = PendingFilter { person: !args.all, most: Some(args.limit), ..PendingFilter::default() };
    let (waiters, short) = block_on(async {
        let control = kept.control();
        let waiters = control.store().pending(&filter).await?;
        let short = Short::of(&control, waiters.iter().map(|waiter| &waiter.run)).await?;
        Ok::<_, StoreError>((waiters, short))
    })?;
    if args.json {
        for waiter in &waiters {
            let answers = answers(waiter.run.as_str(), &waiter.pending, ui);
            let (run, brain, at, pending) = (&waiter.run, &waiter.brain, waiter.at, &waiter.pending);
            ui.json_line(&json!({"run": run, "brain": brain, "at": at, "pending": pending, "answers": answers}))?;
        }
        return Ok(Exit::Done);
    }
    if waiters.is_empty() {
        let rest = if args.all { "" } else { " for a person; --all lists what waits for machines, too" };
        ui.notice(&format!("nothing in {} waits{rest}", kept.place))?;
    }
    let now = SystemClock.now();
    for (index, waiter) in waiters.iter().enumerate() {
        if index > 0 {
            ui.blank()?;
        }
        ui.tell(&entry(waiter, short.get(&waiter.run), now, ui.columns(), ui))?;
    }
    if waiters.len() == args.limit {
        ui.notice(&format!("the first {} are shown; --limit shows more", args.limit))?;
    }
    Ok(Exit::Done)
}
