//! `positronic chat`: a conversation with a brain.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::RunSummary;
use positronic_core::runner::Runner;

use crate::app::cassette_position::Follower;
use crate::app::failure::Failure;
use crate::app::find_conversation::{known, new_id};
use crate::app::models::{CassetteSession, Models, Playing, Wanted, cassette, choose};
use crate::app::money_limit::{Limited, keepable};
use crate::app::project::{Entry, Project};
use crate::app::recording::save;
use crate::app::run_options::{Given, hears, options};
use crate::app::runtime::block_on;
use crate::app::store::ProjectStore;
use crate::app::store::unkept;
use crate::app::ui::Ui;
use crate::chat::{ChatContext, Left, OutputMode, chat_ui, piped};
use crate::cli::ChatArgs;
use crate::cli::exit::Exit;
use crate::session::outcome::left_by;

/// The folder beside the store in which the conversations' files are saved.
const FILES: &str = "files";

pub(crate) fn chat(project: &Project, args: &ChatArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if let (true, Some(store)) = (args.memory, &ui.place.store) {
        let message = format!("a conversation in memory is not kept in {}", store.display());
        return Err(Failure::Misused { message, hint: "say --memory or --store FILE".to_owned() });
    }
    let entry = project.find(&args.brain)?;
    hears(entry, || format!("run it with: {}", ui.command(&["run", &entry.definition.title])))?;
    let wanted = Wanted { model: &args.model, record: args.record.as_deref() };
    let playing = cassette(project, entry, wanted, &ui.settings)?;
    let goal = playing.as_ref().and_then(Playing::goal);
    let given = Given { pairs: &args.pairs, document: args.options.as_deref() };
    let options = options(entry, given, playing.as_ref().and_then(Playing::options), ui)?;
    let models = choose(project, entry, wanted, &options, playing, &ui.settings)?;
    let (said, each) = (args.budget.budget(), args.each.budget());
    let given = [("--max-money", said.as_ref()), ("--answer-max-money", each.as_ref())];
    keepable(Limited::of(&given, &entry.definition), &models)?;
    let kept = if args.memory {
        ProjectStore::memory()
    } else {
        ProjectStore::open(ui).map_err(|failure| unkept(&failure))?
    };
    if let Some(notice) = &models.notice {
        ui.notice(notice)?;
    }
    if let Some(goal) = goal {
        ui.notice(&goal)?;
    }
    let id = block_on(conversation(&kept, entry, args, ui))?;
    let known = block_on(async { Ok::<_, Failure>(kept.client().budget(&id, None).await?) })?;
    let known = known.map(|known| known.budget);
    keepable(Limited::before(&id, known.as_ref()), &models)?;
    let budget = match (&said, &known) {
        // What is not said again stays.
        (Some(said), Some(known)) => Some(said.or(known)),
        _ => said.clone(),
    };
    let follower = match &models.tape {
        CassetteSession::Plays(cassette) => Some(Arc::new(Follower::new(cassette))),
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
        given_budget: said,
        prompt_budget: each,
        follower,
        files_dir: match &args.files {
            Some(folder) => Some(folder.clone()),
            None => kept.path.as_ref().and_then(|store| store.parent()).map(|beside| beside.join(FILES)),
        },
        prices: crate::app::prices::prices(args.model.prices.as_deref(), &ui.settings)?,
        ui: ui.silent(),
        store: kept.clone(),
    };
    if let Some(said) = block_on(context.asks_for_more())? {
        ui.notice(&said)?;
    }
    let runner = models.runner(project, &kept);
    let left = run(context, runner, &models, args, ui);
    save(&models, args.record.as_deref(), ui)?;
    left
}

fn run(
    mut context: ChatContext,
    runner: Runner,
    models: &Models,
    args: &ChatArgs,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    let settings = &ui.settings;
    let terminal = settings.stdin_is_terminal && settings.stderr_is_terminal && !settings.dumb;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // The cassette continues behind what earlier chats have played.
    runtime.block_on(context.wind(&runner))?;
    let exit = if terminal && !args.plain && !args.json {
        let left = runtime.block_on(chat_ui(&mut context, runner, args.history, ui));
        left.and_then(|left| say_goodbye(&context, &left, ui))
    } else {
        ui.goes_on_unread();
        ui.prices = Some(context.prices.clone());
        let mode = OutputMode { json: args.json, plain: args.plain };
        runtime.block_on(piped(&mut context, &runner, &models.tape, mode, ui))
    };
    // A thread that reads stdin must not hold the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Names the command that continues the conversation.
fn say_goodbye(context: &ChatContext, left: &Left, ui: &mut Ui) -> Result<Exit, Failure> {
    ui.goes_on_unread();
    if left.said && context.store.lasts() {
        let stays = if left.waits { "the run waits for your answer" } else { "the conversation stays" };
        ui.lines(&format!("\n{stays}; come back with: {}", context.back()))?;
    }
    Ok(match left.by {
        Some(interrupt) => left_by(interrupt),
        None if left.waits => Exit::Unanswered,
        None => Exit::Done,
    })
}

/// Finds the conversation that is meant, or makes the id of a new one.
async fn conversation(kept: &ProjectStore, entry: &Entry, args: &ChatArgs, ui: &Ui) -> Result<String, Failure> {
    let client = kept.client();
    let id = match &args.conversation {
        Some(written) => known(kept, written, ui).await?,
        None if args.last => {
            let mut all = client.conversations().await?.into_iter();
            let is_meant = |last: &RunSummary| *last.brain == *entry.definition.title && last.user == args.user;
            let last = all.find(|one| is_meant(&one.last));
            last.map(|last| last.id).ok_or_else(|| Failure::Misused {
                message: match &args.user {
                    Some(user) => {
                        format!("{user} has no conversation with `{}` in {} yet", entry.definition.title, kept.place)
                    }
                    None => format!(
                        "there is no conversation with `{}` in {} that is no user's",
                        entry.definition.title, kept.place
                    ),
                },
                hint: "without --last, a new one begins; --user NAME looks among the conversations of a user"
                    .to_owned(),
            })?
        }
        None => new_id(&client).await?,
    };
    let last = client.conversation(&id).await?.into_iter().next();
    if let Some(last) = last {
        belongs(&id, last.user.as_deref(), args.user.as_deref())?;
    }
    Ok(id)
}

/// Refuses to continue a user's conversation where no user is named, and one without a user where one is: a typed id does not
/// suffice to speak as another user. Two different users are told apart when a message is taken.
fn belongs(id: &str, owner: Option<&str>, user: Option<&str>) -> Result<(), Failure> {
    match (owner, user) {
        (Some(_), None) => Err(Failure::Misused {
            message: format!("the conversation `{id}` belongs to a user"),
            hint: "say --user NAME to continue it as that user, or leave out -c to begin a new one".to_owned(),
        }),
        (None, Some(_)) => Err(Failure::Misused {
            message: format!("the conversation `{id}` belongs to no user"),
            hint: "leave out --user to continue it, or name another conversation to begin a new one".to_owned(),
        }),
        (None, None) | (Some(_), Some(_)) => Ok(()),
    }
}
