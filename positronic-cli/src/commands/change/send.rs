//! `positronic send`: sends a message, a reply to a call, an update of a plugin or a webhook, or deletes a stored webhook.

use positronic_core::record::{Attachment, EventKind, SignalId, SignalKind, UserMessage};
use positronic_core::runner::{Client, Delivered, DeliveryError, Ids as _, UuidIds};
use positronic_core::store::{DeliveryState, MailboxEntry, StoreError};
use serde_json::{Value, json};

use crate::app::{
    Failure, Models, Project, ProjectStore, Ui, attachments, find_run, flag_json, message, parse_call,
    store_attachments,
};
use crate::cli::{Exit, SendArgs};
use crate::render::figures::age;
use crate::session::send_signals;

pub(crate) async fn send(project: Option<&Project>, args: &SendArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    match (&args.run, &args.discard) {
        (_, Some(id)) => discard(id, args.by.json, ui).await,
        (Some(run), None) => {
            let attached = attachments(&args.attach)?;
            let signal = kind(args, &attached, ui)?;
            if !attached.is_empty() {
                let store = ProjectStore::open_existing(ui).await?;
                find_run(&store, run, ui).await?;
                store_attachments(&attached, &store.client()).await?;
            }
            send_signals(project, run, args.id.as_deref(), &[signal], &args.by, ui).await
        }
        (None, None) => deliver(project, args, ui).await,
    }
}

fn kind(args: &SendArgs, attached: &[Attachment], ui: &mut Ui) -> Result<(SignalKind, String), Failure> {
    let to = args.r#loop.as_deref().map(parse_call).transpose()?;
    if let Some(UserMessage { text, files, .. }) = message(args.message.as_ref(), attached) {
        let kind = SignalKind::Message { to, text, message_id: args.id.clone(), files, caller_tools: None };
        return Ok((kind, "sent the message".to_owned()));
    }
    if let Some([written, payload]) = args.reply.as_deref() {
        let call = parse_call(written)?;
        let payload = flag_json("--reply", payload, ui)?;
        let done = format!("answered {call}");
        return Ok((SignalKind::Reply { call, payload }, done));
    }
    if let Some([plugin, update]) = args.plugin.as_deref() {
        let update = flag_json("--plugin", update, ui)?;
        let done = format!("sent the update of the plugin {plugin}");
        return Ok((SignalKind::UpdatePlugin { to, plugin: plugin.clone(), update }, done));
    }
    let (name, identifier, payload) = webhook(args, ui)?;
    let done = format!("delivered the webhook {name} {identifier}");
    Ok((SignalKind::Webhook { name, identifier, payload }, done))
}

fn webhook(args: &SendArgs, ui: &mut Ui) -> Result<(String, String, Value), Failure> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let payload = args.payload.as_ref().map(|given| flag_json("--payload", given, ui)).transpose()?;
    Ok((text(&args.webhook), text(&args.identifier), payload.unwrap_or_default()))
}

/// Delivers a webhook to the run that waits for it, or starts a run if the project says so.
async fn deliver(project: Option<&Project>, args: &SendArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let (name, identifier, payload) = webhook(args, ui)?;
    let store = ProjectStore::open(ui).await?;
    let id = args.id.as_deref().map_or_else(|| UuidIds.signal(), SignalId::new);
    let actor = ui.actor(args.by.by.as_deref());
    let client = store.client();
    let mut before = client.store().mailbox().await?;
    if let Some(entry) = before.iter().find(|entry| entry.id == id) {
        let sent = (name.as_str(), identifier.as_str(), &payload);
        if !is_same(&client, entry, sent).await? {
            return Err(Failure::reused_id(&id));
        }
    }
    let is_known = |project: &&Project| {
        let starts = project.starts.iter().any(|start| start.webhook == name);
        starts || project.webhooks.iter().any(|known| known.name() == name)
    };
    let starts = project.filter(is_known);
    let delivered = match starts {
        None => client.deliver(id.clone(), &name, &identifier, payload, actor).await?,
        Some(project) => {
            let runner = Models::none().runner(project, &store).submit_only();
            let delivered = runner.deliver(id.clone(), &name, &identifier, payload, actor).await;
            delivered.map_err(|error| match error {
                DeliveryError::Signal(error) => error.into(),
                refused => Failure::refused(refused.to_string()),
            })?
        }
    };
    let known = before.iter().any(|entry| entry.id == id);
    before.retain(|entry| entry.webhook == name && entry.identifier == identifier);
    let taken = before.iter().rev().find_map(|entry| match &entry.delivery {
        DeliveryState::Delivered { run, seq } => Some((run, seq)),
        DeliveryState::Undelivered(_) => None,
    });
    let again = if known { "already accepted: " } else { "" };
    let (document, message) = match &delivered {
        Delivered::To { run, .. } if delivered.is_start() => (
            json!({"id": id, "known": known, "started": {"run": run}}),
            format!(
                "{again}started the run {run} by the webhook {name}. Work on it with: {}",
                ui.command(&["work", run.as_str()])
            ),
        ),
        Delivered::To { run, seq } => (
            json!({"id": id, "known": known, "delivered": {"run": run, "seq": seq}}),
            format!("{again}delivered the webhook {name} {identifier} (event {seq} of {run})"),
        ),
        Delivered::Kept => {
            let message = match taken {
                // The webhook may be a duplicate that would answer a later call.
                Some((run, seq)) => format!(
                    "no call waits for {name} {identifier}: event {seq} of {run} already received one. This webhook is stored for {}, \
                     and answers the next call that waits",
                    age(Client::KEEP)
                ),
                None => {
                    format!(
                        "{again}no call waits for {name} {identifier} yet; the webhook is stored for {}",
                        age(Client::KEEP)
                    )
                }
            };
            let message = format!("{message}. Delete it with: {}", ui.command(&["send", "--discard", id.as_str()]));
            let taken = taken.map(|(run, seq)| json!({"run": run, "seq": seq}));
            (json!({"id": id, "known": known, "delivered": null, "taken_before": taken}), message)
        }
    };
    if args.by.json {
        ui.json_line(&document)?;
    } else {
        ui.print(&message)?;
    }
    Ok(Exit::Done)
}

/// Returns whether a known webhook has the content that is sent now; without its run, it is assumed.
async fn is_same(client: &Client, entry: &MailboxEntry, sent: (&str, &str, &Value)) -> Result<bool, Failure> {
    let payload = match &entry.delivery {
        DeliveryState::Undelivered(mail) => Some(mail.payload.clone()),
        DeliveryState::Delivered { run, seq } => match client.store().read(run, *seq, 1).await {
            Err(StoreError::NoSuchRun { .. }) => None,
            log => log?.first().and_then(|event| match &event.kind {
                EventKind::LoopResume { payload, .. } | EventKind::StageResume { payload, .. } => Some(payload.clone()),
                _ => None,
            }),
        },
    };
    let payload = payload.as_ref().unwrap_or(sent.2);
    Ok((entry.webhook.as_str(), entry.identifier.as_str(), payload) == sent)
}

/// Deletes a stored webhook.
async fn discard(id: &str, json: bool, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    let client = store.client();
    let entry = client.store().mailbox().await?.into_iter().find(|entry| entry.id.as_str() == id);
    if let Some(MailboxEntry { delivery: DeliveryState::Undelivered(mail), .. }) = &entry {
        client.store().discard(&mail.id).await?;
    }
    let list = format!("`{}` lists the stored webhooks", ui.command(&["inbox", "--mail"]));
    match entry {
        Some(MailboxEntry { delivery: DeliveryState::Undelivered(mail), .. }) if json => {
            ui.json_line(&json!({"discarded": mail.id}))?;
            Ok(Exit::Done)
        }
        Some(MailboxEntry { delivery: DeliveryState::Undelivered(mail), .. }) => {
            ui.print(&format!("deleted the webhook {} {}", mail.webhook, mail.identifier))?;
            Ok(Exit::Done)
        }
        Some(MailboxEntry { delivery: DeliveryState::Delivered { run, seq }, .. }) => {
            Err(Failure::refused(format!("the webhook `{id}` was delivered as event {seq} of {run}")).hint(list))
        }
        None => Err(Failure::refused(format!("no stored webhook `{id}`")).hint(list)),
    }
}
