//! `positronic triggers`: lists or deletes triggers, the next one first.

use std::fmt::Write as _;

use positronic_core::record::{Timer, Timestamp, TriggerId};
use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::store::TimerFilter;
use serde_json::json;

use crate::app::{Failure, ProjectStore, Ui};
use crate::cli::{Exit, TriggersArgs};
use crate::render::figures::{age, duration, left};
use crate::render::one_line;

pub(crate) async fn triggers(args: &TriggersArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    match &args.delete {
        Some(id) => delete(id, args, ui).await,
        None => list(args, ui).await,
    }
}

async fn delete(id: &str, args: &TriggersArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    let was_there = store.client().delete_trigger(&TriggerId::new(id)).await?;
    if !was_there {
        let list = ui.command(&["triggers"]);
        let id = one_line(id);
        return Err(Failure::usage(format!("there is no trigger `{id}` in {}", store.location))
            .hint(format!("`{list}` lists them; a trigger without an interval is deleted when it fires")));
    }
    if args.json {
        ui.json_line(&json!({"deleted": id}))?;
    } else {
        ui.notice(&format!("deleted the trigger {id}; the runs that it started continue"))?;
    }
    Ok(Exit::Done)
}

async fn list(args: &TriggersArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_to_read(ui).await?;
    let mut timers = store.client().triggers(&TimerFilter::default()).await?;
    timers.retain(|timer| args.user.is_none() || timer.user == args.user);
    if args.json {
        for timer in &timers {
            ui.json_line(timer)?;
        }
        return Ok(Exit::Done);
    }
    if timers.is_empty() {
        ui.notice(&format!("no trigger is set in {}", store.location))?;
        return Ok(Exit::Done);
    }
    let now = SystemClock.now();
    for timer in &timers {
        ui.row(&head(timer, now))?;
        ui.row(&format!("  {}", timer.trigger.what))?;
        let delete = ui.command(&["triggers", "--delete", timer.trigger.id.as_str()]);
        ui.print(&format!("    {}", one_line(&delete)))?;
    }
    Ok(Exit::Done)
}

/// Renders when a trigger is due, and which brain it starts for which user.
fn head(timer: &Timer, now: Timestamp) -> String {
    let Timer { trigger, brain, user, conversation, .. } = timer;
    let mut head = trigger.id.to_string();
    _ = match trigger.due > now {
        true => write!(head, " is due in {}", left(trigger.due.since(now))),
        false => write!(head, " has been due for {}", age(now.since(trigger.due))),
    };
    if let Some(every) = trigger.every {
        _ = write!(head, ", every {}", duration(every));
    }
    _ = write!(head, "; it starts {brain}");
    _ = user.as_ref().map(|user| write!(head, " for {user}"));
    _ = conversation.as_ref().map(|conversation| write!(head, " in the conversation {conversation}"));
    head
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use positronic_core::record::{RunId, Trigger};
    use serde_json::Value;

    use super::*;

    #[test]
    fn trigger_is_listed_with_its_time_and_brain() {
        let once = Trigger::once("t-1".into(), "water", Timestamp(600_000_000));
        let mut timer = Timer {
            trigger: once.clone(),
            brain: "Gardener".into(),
            options: Value::Null,
            user: None,
            conversation: None,
            budget: None,
            origin: RunId::from("run-1"),
            fired: 0,
            starter: None,
            scheduled: None,
        };
        assert_eq!(head(&timer, Timestamp(0)), "t-1 is due in 10m; it starts Gardener");

        timer.trigger = once.every(Duration::from_hours(24));
        (timer.user, timer.conversation) = (Some("ann".to_owned()), Some("garden".to_owned()));
        assert_eq!(
            head(&timer, Timestamp(660_000_000)),
            "t-1 has been due for 1m, every 24 h 0 min; it starts Gardener for ann in the conversation garden"
        );
    }
}
