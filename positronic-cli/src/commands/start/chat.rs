//! `positronic chat`: a conversation with a brain.

use std::sync::Arc;

use positronic_core::record::RunSummary;
use positronic_core::runner::Runner;

use crate::app::{
    CassetteFollower, CassetteSession, Failure, ModelSettings, Models, Prepared, Project, ProjectBrain, ProjectStore,
    Ui, Unread, check_accepts_messages, check_enforceable, continued_conversation, new_id, open_store, prepare,
    save_recording,
};
use crate::chat::{ChatContext, Left, chat_ui, piped};
use crate::cli::{ChatArgs, Exit};
use crate::session::left_by;

/// The folder next to the store for the conversations' files.
const FILES: &str = "files";

pub(crate) async fn chat(project: &Project, args: &ChatArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let entry = project.find(&args.brain)?;
    check_accepts_messages(entry, || format!("run it with: {}", ui.command(&["run", &entry.definition.title])))?;
    let settings = ModelSettings { model: &args.model, record: args.record.as_deref() };
    let Prepared { options, models, goal } = prepare(project, entry, settings, &args.options, ui)?;
    let (given_budget, answer_budget) = (args.budget.budget(), args.each.budget());
    let (title, brain_budget) = (&entry.definition.title, entry.definition.budget.as_ref());
    let limits = [
        ("--max-money is a money limit", given_budget.as_ref()),
        ("--answer-max-money is a money limit", answer_budget.as_ref()),
        (&*format!("`{title}` has a money limit"), brain_budget),
    ];
    check_enforceable(&limits, &models)?;
    let store = open_store(args.memory, ui).await?;
    if let Some(notice) = &models.notice {
        ui.notice(notice)?;
    }
    if let Some(goal) = goal {
        ui.notice(&goal)?;
    }
    let id = conversation(&store, entry, args).await?;
    let known = store.client().conversations().budget(&id, None).await?;
    let known = known.map(|known| known.budget);
    check_enforceable(&[(&*format!("the conversation `{id}` has a money limit"), known.as_ref())], &models)?;
    let budget = match (&given_budget, &known) {
        // Limits without a flag keep their amount.
        (Some(given_budget), Some(known)) => Some(given_budget.or(known)),
        _ => given_budget.clone(),
    };
    let follower = match &models.cassette {
        CassetteSession::Plays(cassette) => Some(Arc::new(CassetteFollower::new(cassette))),
        CassetteSession::None | CassetteSession::Records(_) => None,
    };
    let context = ChatContext {
        definition: Arc::clone(&entry.definition),
        options,
        id,
        user: args.user.clone(),
        actor: ui.actor(args.user.as_deref()),
        busy: args.busy.into(),
        budget,
        given_budget,
        prompt_budget: answer_budget,
        follower,
        files_dir: match &args.files {
            Some(folder) => Some(folder.clone()),
            None => store.path.as_ref().and_then(|store| store.parent()).map(|beside| beside.join(FILES)),
        },
        prices: crate::app::price_table(args.model.prices.as_deref(), &ui.settings)?,
        ui: ui.silent(),
        store: store.clone(),
    };
    if let Some(notice) = context.asks_for_more().await? {
        ui.notice(&notice)?;
    }
    let runner = models.runner(project, &store);
    let left = converse(context, runner, &models, args, ui).await;
    save_recording(&models, args.record.as_deref(), ui)?;
    left
}

async fn converse(
    mut context: ChatContext,
    runner: Runner,
    models: &Models,
    args: &ChatArgs,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let settings = &ui.settings;
    let terminal = settings.stdin_is_terminal && settings.stderr_is_terminal && !settings.dumb;
    // Recorded answers are not played again.
    context.advance_cassette(&runner).await?;
    if terminal && !args.output.plain && !args.output.json {
        ui.detach_streams(Unread::IsKept);
        let left = chat_ui(&mut context, runner, args.history, ui).await;
        left.and_then(|left| report_left_chat(&context, &left, ui))
    } else {
        ui.outlive_readers(Unread::IsKept);
        ui.prices = Some(context.prices.clone());
        piped(&mut context, &runner, &models.cassette, args.output, ui).await
    }
}

/// Prints how to continue the conversation.
fn report_left_chat(context: &ChatContext, left: &Left, ui: &mut Ui) -> Result<Exit, Failure> {
    ui.ignore_failed_streams();
    if left.said && context.store.is_persistent() {
        let stays = if left.waits { "the run waits for your answer" } else { "the conversation is stored" };
        ui.lines(&format!("\n{stays}; continue it with: {}", context.back()))?;
    }
    Ok(match left.by {
        Some(interrupt) => left_by(interrupt),
        None if left.waits => Exit::Unanswered,
        None => Exit::Done,
    })
}

/// Finds the named conversation, or generates the id of a new one.
async fn conversation(store: &ProjectStore, entry: &ProjectBrain, args: &ChatArgs) -> Result<String, Failure> {
    let client = store.client();
    let id = match &args.conversation {
        Some(written) => continued_conversation(store, written).await?,
        None if args.last => {
            let mut all = client.conversations().list().await?.into_iter();
            let is_meant = |last: &RunSummary| *last.brain == *entry.definition.title && last.user == args.user;
            let last = all.find(|one| is_meant(&one.last));
            last.map(|last| last.id).ok_or_else(|| {
                let with = format!("conversation with `{}` in {}", entry.definition.title, store.location);
                Failure::usage(match &args.user {
                    Some(user) => format!("{user} has no {with} yet"),
                    None => format!("no {with} is without a user"),
                })
                .hint("leave out --last to begin a new one; --user NAME finds the conversations of a user")
            })?
        }
        None => new_id(&client).await?,
    };
    let last = client.conversations().runs(&id).await?.into_iter().next();
    if let Some(last) = last {
        belongs(&id, last.user.as_deref(), args.user.as_deref())?;
    }
    Ok(id)
}

/// Refuses to continue a user's conversation without `--user`, and one without a user with it: knowing an id must not be
/// enough to speak as another user. A message checks that two named users are the same.
fn belongs(id: &str, owner: Option<&str>, user: Option<&str>) -> Result<(), Failure> {
    match (owner, user) {
        (Some(_), None) => Err(Failure::usage(format!("the conversation `{id}` belongs to a user"))
            .hint("use --user NAME to continue it as that user, or leave out -c to begin a new one")),
        (None, Some(_)) => Err(Failure::usage(format!("the conversation `{id}` belongs to no user"))
            .hint("leave out --user to continue it, or name another conversation to begin a new one")),
        (None, None) | (Some(_), Some(_)) => Ok(()),
    }
}
