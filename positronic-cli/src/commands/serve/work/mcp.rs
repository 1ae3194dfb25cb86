//! `positronic mcp`: the brains as tools for the MCP client that started the command, over its standard streams, and the work on the
//! runs beside them.

use futures::StreamExt as _;
use positronic_bridges::Bridges;
use positronic_core::runner::{ServeEvent, Server};
use positronic_server::extension::LocalCaller;
use positronic_server::{Caller, Options, Scope, Shutdown};

use super::runners::Runners;
use super::serve::ProjectBrains;
use crate::app::{Failure, Project, ProjectStore, Ui};
use crate::cli::{Exit, McpArgs};
use crate::session::interrupts;

/// The caller's name without a user, and how it reaches the runs.
const NAME: &str = "mcp";

pub(crate) async fn mcp(project: &Project, args: &McpArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let titles = args.brain.iter().map(|name| Ok(project.find(name)?.definition.title.clone()));
    let titles: Vec<String> = titles.collect::<Result<_, Failure>>()?;
    let store = ProjectStore::open(ui).await?;
    let runners = Runners::new(project, &args.model, &store, ui.settings.clone());
    runners.check()?;
    let client = store.client();
    let shutdown = Shutdown::default();
    let options = Options::builder().brains(ProjectBrains::of(project, &store, &args.model, ui));
    let options = options.shutdown(shutdown.clone()).build();
    let caller = match args.user.as_ref().or(ui.settings.user.as_ref()) {
        Some(user) => Caller::user(user, Scope::ALL),
        None => Caller::service(NAME, Scope::ALL),
    };
    let caller = LocalCaller::new(client.clone(), options, caller.brains(titles), NAME);
    let server = Server::new(client.clone(), runners.streaming_to(client));
    let mut events = server.events();
    // The protocol has stdout; everything else goes to stderr.
    let bridges = Bridges::builder().program(&ui.program).build();
    let mut serving = Box::pin(bridges.serve_mcp(caller, tokio::io::stdin(), tokio::io::stdout()));
    let (mut interrupts, mut is_stopping) = (interrupts(), false);
    let served = loop {
        tokio::select! {
            served = &mut serving => break served,
            _ = interrupts.recv() => {
                // The second one does not wait until the calls in flight are answered.
                if std::mem::replace(&mut is_stopping, true) {
                    break Ok(());
                }
                shutdown.begin();
            }
            Some(event) = events.next() => report(event, ui)?,
        }
    };
    server.release().await;
    served.map_err(|error| Failure::environment(format!("the MCP client cannot be served: {error}")))?;
    Ok(Exit::Done)
}

/// Reports work that could not be done.
fn report(event: ServeEvent, ui: &mut Ui) -> Result<(), Failure> {
    match event {
        ServeEvent::Refused { run, error } => ui.notice(&format!("skipped the run {run}: {error}"))?,
        ServeEvent::Failed(error) => {
            ui.notice(&format!("cannot list the work of the store, trying again: {error}"))?;
        }
        _ => {}
    }
    Ok(())
}
