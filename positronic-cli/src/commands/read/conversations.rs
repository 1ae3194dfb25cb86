//! `positronic conversations`: lists, shows and exports conversations.

use positronic_core::record::{EventKind, Seq};
use positronic_core::runner::{Clock as _, SystemClock};
use serde_json::json;

use crate::app::{
    Failure, ProjectStore, Recorded, Ui, find_conversation, format_of, output_path, runs_without_worker,
    write_conversation,
};
use crate::cli::{
    ConversationExportArgs, ConversationListArgs, ConversationShowArgs, Conversations, ConversationsArgs, Exit, Format,
};
use crate::render::{ConversationRow, Style, conversation_table, truncate, words};

pub(crate) async fn conversations(args: &ConversationsArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    match &args.what {
        None => list(&args.list, ui).await,
        Some(Conversations::List(args)) => list(args, ui).await,
        Some(Conversations::Show(args)) => show(args, ui).await,
        Some(Conversations::Export(args)) => export(args, ui).await,
    }
}

async fn list(args: &ConversationListArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_to_read(ui).await?;
    let now = SystemClock.now();
    let mut all = listed(&store, args).await?;
    let truncated = truncate(&mut all, args.limit, "last");
    let unclaimed =
        runs_without_worker(&store.client(), all.iter().map(|conversation| &conversation.summary.last), now).await?;
    if args.json {
        for ConversationRow { summary, last_message } in &all {
            let last = &summary.last;
            ui.json_line(&json!({
                "conversation": summary.id,
                "brain": last.brain,
                "user": last.user,
                "runs": summary.runs,
                "status": last.status,
                "at": last.at,
                "last_run": last.run,
                "last_message": last_message,
            }))?;
        }
    } else if all.is_empty() {
        ui.notice(&match &args.user {
            Some(user) => format!("no conversation in {} belongs to {user}", store.location),
            None => format!("there are no conversations in {} yet; `{}` begins one", store.location, {
                ui.command(&["chat", "BRAIN"])
            }),
        })?;
    } else {
        ui.print(&conversation_table(&all, &unclaimed, now, ui.columns()))?;
        if let Some(truncated) = truncated {
            ui.notice(&truncated)?;
        }
    }
    Ok(Exit::Done)
}

/// Lists the conversations, at least one beyond the limit if there is one.
async fn listed(store: &ProjectStore, args: &ConversationListArgs) -> Result<Vec<ConversationRow>, Failure> {
    let client = store.client();
    let mut listed = Vec::new();
    for summary in client.conversations().list().await? {
        if listed.len() > args.limit.get() {
            break;
        }
        if args.user.is_some() && summary.last.user != args.user {
            continue;
        }
        let first = client.store().read(&summary.last.run, Seq(0), 1).await?;
        let last_message = first.first().and_then(|event| match &event.kind {
            EventKind::BrainStart(start) => {
                let message = start.start.as_ref()?.message.as_ref()?;
                Some(words::message(&message.text, &message.files))
            }
            _ => None,
        });
        listed.push(ConversationRow { summary, last_message });
    }
    Ok(listed)
}

async fn show(args: &ConversationShowArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let recorded = recorded(&args.conversation, ui).await?;
    if args.json {
        ui.document(&recorded.json())?;
        return Ok(Exit::Done);
    }
    let style = Style {
        width: ui.columns(),
        colour: ui.out_colour(),
        unicode: ui.settings.unicode,
        stream_lines: usize::MAX,
        ..Style::default()
    };
    // The text is already escaped, and may have colours.
    let text = recorded.text(usize::MAX, &style, args.all, SystemClock.now());
    ui.frame(text.trim_start_matches('\n'))?;
    if let Some(budget) = recorded.budget() {
        ui.print(&format!("\n{budget}"))?;
    }
    Ok(Exit::Done)
}

async fn export(args: &ConversationExportArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let output_path = output_path(args.out.as_deref(), args.force)?;
    let recorded = recorded(&args.conversation, ui).await?;
    let format = args.format.unwrap_or_else(|| format_of(output_path));
    match output_path {
        None if format == Format::Markdown => ui.print(&recorded.markdown(args.all))?,
        None => ui.document(&recorded.json())?,
        Some(file) => {
            write_conversation(file, &recorded, format, args.all)?;
            ui.print(&format!("wrote the conversation {} to {}", recorded.id, file.display()))?;
        }
    }
    Ok(Exit::Done)
}

async fn recorded(written: &str, ui: &Ui) -> Result<Recorded, Failure> {
    let store = ProjectStore::open_to_read(ui).await?;
    let id = find_conversation(&store, written, ui).await?;
    Recorded::read(&store.client(), &id).await
}
