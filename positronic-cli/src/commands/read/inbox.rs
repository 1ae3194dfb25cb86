//! `positronic inbox`: pending items of all runs.

use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::store::{DeliveryState, PendingFilter};
use serde_json::json;

use crate::app::{Failure, ProjectStore, Ui, currency};
use crate::cli::{Exit, InboxArgs};
use crate::render::figures::{age, left};
use crate::render::{ShortIds, arguments, one_line, truncate};
use crate::session::{LISTED_ROWS, answer_commands, pending_entry};

pub(crate) async fn inbox(args: &InboxArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if args.mail {
        return mail(args, ui).await;
    }
    let store = ProjectStore::open_to_read(ui).await?;
    let filter = PendingFilter::builder().person(!args.all).limit(args.limit.get().saturating_add(1)).build();
    let client = store.client();
    let mut items = client.store().pending(&filter).await?;
    let truncated = truncate(&mut items, args.limit, "first");
    let short = ShortIds::of(&client, items.iter().map(|item| &item.run)).await?;
    let now = SystemClock.now();
    if args.json {
        for item in &items {
            let answers = answer_commands(item.run.as_str(), &item.pending, now, ui);
            let (run, brain, at, pending) = (&item.run, &item.brain, item.at, &item.pending);
            let older = &item.about.older_answers;
            let mut line = json!({"run": run, "brain": brain, "at": at, "pending": pending, "answers": answers});
            if let Some(fields) = line.as_object_mut().filter(|_| !older.is_empty()) {
                fields.insert("older_answers".to_owned(), json!(older));
            }
            ui.json_line(&line)?;
        }
        return Ok(Exit::Done);
    }
    if items.is_empty() {
        let rest = if args.all { "" } else { " for a person; --all also lists what waits for machines" };
        ui.notice(&format!("nothing in {} waits{rest}", store.location))?;
    }
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            ui.blank()?;
        }
        let currency = currency(&store.client(), &item.run, &item.pending).await?;
        let room = (ui.columns(), (!args.full).then_some(LISTED_ROWS));
        ui.print(&pending_entry(item, short.get(&item.run), currency.as_deref(), now, room, ui))?;
        for older in item.about.older_answers.iter() {
            let (tool, received) = (&older.tool, age(now.since(older.received)));
            ui.row(&format!("  the answer to {tool}, received {received} ago, is older than its question"))?;
        }
    }
    if let Some(truncated) = truncated {
        ui.notice(&truncated)?;
    }
    Ok(Exit::Done)
}

/// Lists the webhooks that no call waits for yet.
async fn mail(args: &InboxArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_to_read(ui).await?;
    let entries = store.client().store().mailbox().await?;
    let now = SystemClock.now();
    let mut mails: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.delivery {
            DeliveryState::Undelivered(mail) if mail.expires > now => Some(mail),
            _ => None,
        })
        .collect();
    let truncated = truncate(&mut mails, args.limit, "first");
    if args.json {
        for mail in &mails {
            ui.json_line(mail)?;
        }
        return Ok(Exit::Done);
    }
    if mails.is_empty() {
        ui.notice(&format!("no webhook in {} waits for delivery", store.location))?;
    }
    for mail in mails {
        let (since, left) = (age(now.since(mail.at)), left(mail.expires.since(now)));
        // A webhook that starts runs may have no identifier.
        let name = format!("{} {}", mail.webhook, mail.identifier);
        let head = format!("{}, for {since}; {left} left", name.trim_end());
        let payload = arguments(&mail.payload);
        ui.row(&head)?;
        ui.row(&format!("  with {payload}"))?;
        if let Some(refusal) = &mail.refusal {
            ui.row(&format!("  started no run: {}", one_line(refusal)))?;
        }
        let discard = ui.command(&["send", "--discard", mail.id.as_str()]);
        ui.print(&format!("    {}", one_line(&discard)))?;
    }
    if let Some(truncated) = truncated {
        ui.notice(&truncated)?;
    }
    Ok(Exit::Done)
}
