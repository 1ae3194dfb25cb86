//! `positronic conversations`: those of the store, one of them to be read, and written down.

use positronic_core::record::{EventKind, Seq};
use positronic_core::runner::{Clock as _, SystemClock};
use serde_json::json;

use crate::app::conversation::Recorded;
use crate::app::conversation::{form, write};
use crate::app::failure::Failure;
use crate::app::find_conversation::find;
use crate::app::output_file::refuse_known;
use crate::app::runtime::block_on;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::app::unclaimed::unclaimed;
use crate::cli::exit::Exit;
use crate::cli::{
    ConversationExportArgs, ConversationListArgs, ConversationShowArgs, Conversations, ConversationsArgs, Format,
};
use crate::render::Style;
use crate::render::conversation_table::{Talk, talks};
use crate::render::run_table::more;

pub(crate) fn conversations(args: &ConversationsArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    match &args.what {
        None => list(&args.list, ui),
        Some(Conversations::List(args)) => list(args, ui),
        Some(Conversations::Show(args)) => show(args, ui),
        Some(Conversations::Export(args)) => export(args, ui),
    }
}

fn list(args: &ConversationListArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = ProjectStore::look(ui)?;
    let now = SystemClock.now();
    let (all, alone) = block_on(async {
        let all = listed(&kept, args).await?;
        let alone = unclaimed(&kept.client(), all.iter().map(|talk| &talk.summary.last), now).await?;
        Ok::<_, Failure>((all, alone))
    })?;
    if args.json {
        for Talk { summary, said } in &all {
            let last = &summary.last;
            ui.json_line(&json!({
                "conversation": summary.id,
                "brain": last.brain,
                "user": last.user,
                "runs": summary.runs,
                "status": last.status,
                "at": last.at,
                "last_run": last.run,
                "said": said,
            }))?;
        }
    } else if all.is_empty() {
        ui.notice(&match &args.user {
            Some(user) => format!("no conversation in {} belongs to {user}", kept.place),
            None => format!("there are no conversations in {} yet; `{}` begins one", kept.place, {
                ui.command(&["chat", "BRAIN"])
            }),
        })?;
    } else {
        let (columns, unicode) = (ui.columns(), ui.settings.unicode);
        ui.tell(&talks(&all, &alone, now, columns, unicode))?;
        if all.len() == args.limit {
            ui.notice(&more("last", args.limit))?;
        }
    }
    Ok(Exit::Done)
}

async fn listed(kept: &ProjectStore, args: &ConversationListArgs) -> Result<Vec<Talk>, Failure> {
    let client = kept.client();
    let mut listed = Vec::new();
    for summary in client.conversations().await? {
        if listed.len() >= args.limit {
            break;
        }
        if args.user.is_some() && summary.last.user != args.user {
            continue;
        }
        let first = client.store().read(&summary.last.run, Seq(0), 1).await?;
        let said = first.first().and_then(|event| match &event.kind {
            EventKind::BrainStart(start) => Some(start.start.as_ref()?.message.as_ref()?.text.clone()),
            _ => None,
        });
        listed.push(Talk { summary, said });
    }
    Ok(listed)
}

fn show(args: &ConversationShowArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let recorded = recorded(&args.conversation, ui)?;
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
    // It is harmless already, and may be coloured.
    let text = recorded.text(usize::MAX, &style, args.all, SystemClock.now());
    ui.frame(text.trim_start_matches('\n'))?;
    if let Some(budget) = recorded.budget() {
        ui.tell(&format!("\n{budget}"))?;
    }
    Ok(Exit::Done)
}

fn export(args: &ConversationExportArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let to_file = args.out.as_deref().filter(|file| file.as_os_str() != "-");
    refuse_known(to_file, args.force)?;
    let recorded = recorded(&args.conversation, ui)?;
    let format = args.format.unwrap_or_else(|| form(to_file));
    match to_file {
        None if format == Format::Markdown => ui.tell(&recorded.markdown(args.all))?,
        None => ui.document(&recorded.json())?,
        Some(file) => {
            write(file, &recorded, format, args.all)?;
            ui.tell(&format!("wrote the conversation {} to {}", recorded.id, file.display()))?;
        }
    }
    Ok(Exit::Done)
}

fn recorded(written: &str, ui: &Ui) -> Result<Recorded, Failure> {
    let kept = ProjectStore::look(ui)?;
    block_on(async {
        let id = find(&kept, written, ui).await?;
        Recorded::read(&kept.client(), &id).await
    })
}
