//! `positronic send`: a message, an answer to a call, a webhook.

use positronic_core::record::{SignalId, SignalKind};
use positronic_core::runner::{Control, Delivered, Ids as _, UuidIds};
use serde_json::{Value, json};

use super::block_on;
use super::signal::say;
use crate::cli::SendArgs;
use crate::display::figures::age;
use crate::failure::{Exit, Failure};
use crate::find::call;
use crate::kept::Kept;
use crate::ui::Ui;

pub(crate) fn send(args: &SendArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    match &args.run {
        Some(run) => say(run, args.id.as_deref(), &[kind(args)?], &args.by, ui),
        None => deliver(args, ui),
    }
}

fn kind(args: &SendArgs) -> Result<(SignalKind, String), Failure> {
    if let Some(text) = &args.message {
        let kind = SignalKind::Message { to: None, text: text.clone(), message_id: args.id.clone() };
        return Ok((kind, "sent the message".to_owned()));
    }
    if let Some([written, payload]) = args.reply.as_deref() {
        let call = call(written)?;
        let payload: Value = serde_json::from_str(payload).map_err(|error| Failure::Misused {
            message: format!("the answer to `{call}` is no JSON: {error}"),
            hint: "a text is written '\"so\"'".to_owned(),
        })?;
        let done = format!("answered {call}");
        return Ok((SignalKind::Reply { call, payload }, done));
    }
    let (name, identifier, payload) = webhook(args);
    let done = format!("delivered the webhook {name} {identifier}");
    Ok((SignalKind::Webhook { name, identifier, payload }, done))
}

fn webhook(args: &SendArgs) -> (String, String, Value) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&args.webhook), text(&args.identifier), args.payload.clone().unwrap_or_default())
}

/// Delivers a webhook to whichever run waits for it.
fn deliver(args: &SendArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = Kept::open(ui)?;
    let (name, identifier, payload) = webhook(args);
    let id = args.id.as_deref().map_or_else(|| UuidIds.signal(), SignalId::new);
    let actor = ui.actor(args.by.by.as_deref());
    let delivered = block_on(async { kept.control().deliver(id.clone(), &name, &identifier, payload, actor).await })?;
    let (document, told) = match &delivered {
        Delivered::To { run, seq } => (
            json!({"id": id, "delivered": {"run": run, "seq": seq}}),
            format!("delivered the webhook {name} {identifier} (event {seq} of {run})"),
        ),
        Delivered::Kept => (
            json!({"id": id, "delivered": null}),
            format!("nobody waits for {name} {identifier} yet; it is kept for {}", age(Control::KEEP)),
        ),
    };
    if args.by.json {
        ui.json_line(&document)?;
    } else {
        ui.tell(&told)?;
    }
    Ok(Exit::Done)
}
