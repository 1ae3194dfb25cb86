//! `positronic send`: a message, an answer to a call, a webhook; and away with a webhook that is kept.

use positronic_core::record::{EventKind, SignalId, SignalKind};
use positronic_core::runner::{Client, Delivered, Ids as _, UuidIds};
use positronic_core::store::{DeliveryState, MailboxEntry, StoreError};
use serde_json::{Value, json};

use crate::app::failure::Failure;
use crate::app::find::call;
use crate::app::json::value;
use crate::app::runtime::block_on;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::cli::SendArgs;
use crate::cli::exit::Exit;
use crate::render::figures::age;
use crate::session::signals::say;

pub(crate) fn send(args: &SendArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    match (&args.run, &args.discard) {
        (_, Some(id)) => discard(id, args.by.json, ui),
        (Some(run), None) => {
            let said = kind(args, ui)?;
            say(run, args.id.as_deref(), &[said], &args.by, ui)
        }
        (None, None) => deliver(args, ui),
    }
}

fn kind(args: &SendArgs, ui: &mut Ui) -> Result<(SignalKind, String), Failure> {
    if let Some(text) = &args.message {
        let kind = SignalKind::Message { to: None, text: text.clone(), message_id: args.id.clone() };
        return Ok((kind, "sent the message".to_owned()));
    }
    if let Some([written, payload]) = args.reply.as_deref() {
        let call = call(written)?;
        let payload = value("--reply", payload, ui)?;
        let done = format!("answered {call}");
        return Ok((SignalKind::Reply { call, payload }, done));
    }
    let (name, identifier, payload) = webhook(args, ui)?;
    let done = format!("delivered the webhook {name} {identifier}");
    Ok((SignalKind::Webhook { name, identifier, payload }, done))
}

fn webhook(args: &SendArgs, ui: &mut Ui) -> Result<(String, String, Value), Failure> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let payload = args.payload.as_ref().map(|given| value("--payload", given, ui)).transpose()?;
    Ok((text(&args.webhook), text(&args.identifier), payload.unwrap_or_default()))
}

/// Delivers a webhook to whichever run waits for it.
fn deliver(args: &SendArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let (name, identifier, payload) = webhook(args, ui)?;
    let kept = ProjectStore::open(ui)?;
    let id = args.id.as_deref().map_or_else(|| UuidIds.signal(), SignalId::new);
    let actor = ui.actor(args.by.by.as_deref());
    let (delivered, mut before) = block_on(async {
        let client = kept.client();
        let before = client.store().mailbox().await?;
        if let Some(entry) = before.iter().find(|entry| entry.id == id) {
            let sent = (name.as_str(), identifier.as_str(), &payload);
            if !is_same(&client, entry, sent).await? {
                return Err(Failure::another(&id));
            }
        }
        let delivered = client.deliver(id.clone(), &name, &identifier, payload, actor).await?;
        Ok::<_, Failure>((delivered, before))
    })?;
    let known = before.iter().any(|entry| entry.id == id);
    before.retain(|entry| entry.webhook == name && entry.identifier == identifier);
    let taken = before.iter().rev().find_map(|entry| match &entry.delivery {
        DeliveryState::Delivered { run, seq } => Some((run, seq)),
        DeliveryState::Undelivered(_) => None,
    });
    let again = if known { "known already: " } else { "" };
    let (document, told) = match &delivered {
        Delivered::To { run, seq } => (
            json!({"id": id, "known": known, "delivered": {"run": run, "seq": seq}}),
            format!("{again}delivered the webhook {name} {identifier} (event {seq} of {run})"),
        ),
        Delivered::Kept => {
            let told = match taken {
                // The next question may be another one than the one that this was meant for.
                Some((run, seq)) => format!(
                    "nobody waits for {name} {identifier}: event {seq} of {run} took one already. This one is kept for {}, \
                     and answers the next call that waits",
                    age(Client::KEEP)
                ),
                None => {
                    format!("{again}nobody waits for {name} {identifier} yet; it is kept for {}", age(Client::KEEP))
                }
            };
            let told = format!("{told}. Away with it: {}", ui.command(&["send", "--discard", id.as_str()]));
            let taken = taken.map(|(run, seq)| json!({"run": run, "seq": seq}));
            (json!({"id": id, "known": known, "delivered": null, "taken_before": taken}), told)
        }
    };
    if args.by.json {
        ui.json_line(&document)?;
    } else {
        ui.tell(&told)?;
    }
    Ok(Exit::Done)
}

/// Says whether a webhook that is known is the one that is sent now; where its run is gone, nobody can tell.
async fn is_same(client: &Client, entry: &MailboxEntry, sent: (&str, &str, &Value)) -> Result<bool, Failure> {
    let payload = match &entry.delivery {
        DeliveryState::Undelivered(mail) => Some(mail.payload.clone()),
        DeliveryState::Delivered { run, seq } => match client.store().read(run, *seq, 1).await {
            Err(StoreError::NoSuchRun { .. }) => None,
            log => log?.first().and_then(|event| match &event.kind {
                EventKind::LoopResume { payload, .. } => Some(payload.clone()),
                _ => None,
            }),
        },
    };
    let payload = payload.as_ref().unwrap_or(sent.2);
    Ok((entry.webhook.as_str(), entry.identifier.as_str(), payload) == sent)
}

/// Throws a webhook away that is kept.
fn discard(id: &str, json: bool, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = ProjectStore::known(ui)?;
    let entry = block_on(async {
        let client = kept.client();
        let entry = client.store().mailbox().await?.into_iter().find(|entry| entry.id.as_str() == id);
        if let Some(MailboxEntry { delivery: DeliveryState::Undelivered(mail), .. }) = &entry {
            client.store().discard(&mail.id).await?;
        }
        Ok::<_, Failure>(entry)
    })?;
    let hints = vec![format!("`{}` lists what is kept", ui.command(&["inbox", "--mail"]))];
    match entry {
        Some(MailboxEntry { delivery: DeliveryState::Undelivered(mail), .. }) if json => {
            ui.json_line(&json!({"discarded": mail.id}))?;
            Ok(Exit::Done)
        }
        Some(MailboxEntry { delivery: DeliveryState::Undelivered(mail), .. }) => {
            ui.tell(&format!("threw the webhook {} {} away", mail.webhook, mail.identifier))?;
            Ok(Exit::Done)
        }
        Some(MailboxEntry { delivery: DeliveryState::Delivered { run, seq }, .. }) => {
            let message = format!("the webhook `{id}` is not kept any more: event {seq} of {run} has it");
            Err(Failure::Refused { message, hints })
        }
        None => Err(Failure::Refused { message: format!("no webhook `{id}` is kept"), hints }),
    }
}
