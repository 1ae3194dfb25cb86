//! `positronic serve`: the API and the inspector page, and the work on the runs beside them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use positronic_bridges::Bridges;
use positronic_core::definition::{BrainDefinition, StartOn};
use positronic_core::dsl::ProjectWebhook;
use positronic_core::model::Model as _;
use positronic_core::record::{ClaimRefusal, Event};
use positronic_core::runner::{Client, Clock as _, NoRunner, Runner, Server, SystemClock};
use positronic_server::webhooks::{Hooks, HttpTransport, PrivateAddresses, WebhookSender, WebhookService};
use positronic_server::{Brains, DeciderPolicy, Listener, Login, Options, Shutdown, Token, Url, redact_fields};
use serde_json::Value;

use super::all_runs::Shown;
use super::monitoring::Monitoring;
use super::runners::Runners;
use super::serve_log::{Level, ServeLog};
use super::served_brains::Served;
use crate::app::{
    CassetteSession, ChosenCassette, Failure, ModelSettings, Models, NoModel, Project, ProjectStore, Settings, Ui,
    Unread, can_continue_after, cannot_listen, chosen_cassette, models_for_run, parse_options, price_table,
    read_webhooks, sign_in_url,
};
use crate::cli::{Exit, ModelArgs, OutputArgs, ServeArgs};
use crate::session::interrupts;

pub(crate) async fn serve(project: &Project, args: &ServeArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    ui.outlive_readers(Unread::IsDropped);
    let log = ServeLog::new(&args.log);
    let served = Served::read(&args.brain, project)?;
    let prices = price_table(args.model.prices.as_deref(), &ui.settings)?;
    ui.prices = Some(prices.clone());
    let store = ProjectStore::open(ui).await?;
    let runners = Runners::new(project, &args.model, &store, ui.settings.clone());
    runners.check()?;
    let client = store.client();
    let login = ui.settings.user.as_deref().map_or_else(Login::default, Login::of);
    let shutdown = Shutdown::default();
    let monitoring = Monitoring::start(&store, ui)?;
    let webhooks = args.webhooks.as_deref().or(ui.settings.webhooks.as_deref());
    let hooks = webhooks.map_or_else(|| Ok(Hooks::default()), |path| read_webhooks(path, Settings::variable))?;
    for sender in hooks.names() {
        project.has_webhook(sender).map_err(|hints| {
            let message = format!("the webhook file has the sender `{sender}`, and the project lists no such webhook");
            Failure::usage(message).hints(hints)
        })?;
    }
    for start in project.starts.iter().filter(|start| !hooks.names().any(|name| name == start.webhook)) {
        let (webhook, brain) = (&start.webhook, &start.brain);
        let text =
            format!("the webhook `{webhook}` starts no run of `{brain}` here: --webhooks lists no sender of this name");
        ui.log_line(&log.notice(Level::Warn, SystemClock.now(), &text).unwrap_or_default())?;
    }
    let bridges =
        Bridges::builder().protocols(args.bridge.clone()).push_notifications(true).program(&ui.program).build();
    let options = Options::builder()
        .brains(ProjectBrains { works: !args.no_work, ..ProjectBrains::of(project, &store, &args.model, ui) })
        .login(login.clone())
        .program(ui.command_start())
        .prices(prices)
        .metrics(monitoring.text(&store))
        .hooks(hooks)
        .webhook_addresses(addresses(args))
        .trusted_proxies(args.trusted_proxy.clone())
        .cors_origins(args.cors_origin.clone())
        .routes(bridges.routes())
        .deciders(args.deciders.iter().cloned().collect::<DeciderPolicy>())
        .shutdown(shutdown.clone());
    let mut options = if args.redact.is_empty() {
        options.build()
    } else {
        options.redact(redact_fields(args.redact.clone())).build()
    };
    options.set_public_url(args.public_url.clone());
    let listener = bind(args.listen, &client, ui).await?;
    let address = listener.address().map_err(|error| cannot_listen(args.listen, &error))?;
    let url = sign_in_url(&page_url(address, args.public_url.as_ref()), &login)?;
    let _sender = webhook_sender(&client, address, args)?;
    let work = if args.no_work { "serving" } else { "serving and working on" };
    let text = format!("{work} the runs in {}; press Ctrl-C to stop", store.location);
    if let Some(line) = log.notice(Level::Info, SystemClock.now(), &text) {
        ui.log_line(&line)?;
    }
    if !address.ip().is_loopback() && args.public_url.is_none() {
        let text = "requests from other machines are refused: set --public-url to the URL that they use";
        ui.log_line(&log.notice(Level::Warn, SystemClock.now(), text).unwrap_or_default())?;
    }
    ui.print(&url)?;
    let api = tokio::spawn(listener.serve(client.clone(), options));
    let exit = if args.no_work {
        _ = interrupts().recv().await;
        Exit::Done
    } else {
        let runners = runners.serving(served).streaming_to(client.clone()).each(monitoring.watches());
        let server = Server::new(client, runners);
        Shown::new((false, OutputArgs::default()), &store, ui).logging(log).serve(&server, interrupts()).await?
    };
    shutdown.begin();
    monitoring.end().await;
    match api.await {
        Ok(()) => Ok(exit),
        Err(error) => Err(Failure::environment(format!("the server has stopped: {error}"))),
    }
}

const fn addresses(args: &ServeArgs) -> PrivateAddresses {
    if args.private_webhooks { PrivateAddresses::Allow } else { PrivateAddresses::Refuse }
}

/// Starts to send outgoing webhooks, with links to the page.
fn webhook_sender(client: &Client, address: SocketAddr, args: &ServeArgs) -> Result<WebhookService, Failure> {
    let transport = HttpTransport::new(addresses(args)).map_err(|error| Failure::environment(error.to_string()))?;
    let here = || Url::parse(&format!("http://{}/", reachable(address))).ok();
    let sender = WebhookSender::builder().client(client.clone()).transport(transport);
    Ok(match args.public_url.clone().or_else(here) {
        Some(url) => sender.public_url(url).build().spawn(),
        None => sender.build().spawn(),
    })
}

/// Binds an address. Other machines may reach the server only if callers need tokens.
async fn bind(address: SocketAddr, client: &Client, ui: &Ui) -> Result<Listener, Failure> {
    let now = SystemClock.now();
    if !address.ip().is_loopback() && Token::list(client).await?.iter().all(|token| token.has_expired(now)) {
        let message =
            format!("--listen {address} is reachable from other machines, and the store has no valid access tokens");
        return Err(Failure::usage(message)
            .hint(format!("create one with: {}", ui.command(&["token", "create", "NAME"])))
            .hint("or listen on 127.0.0.1"));
    }
    Listener::bind(address).await.map_err(|error| cannot_listen(address, &error))
}

/// Returns the address under which this machine reaches a server that listens on all of its addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}

/// Returns the URL of the page.
fn page_url(address: SocketAddr, public: Option<&Url>) -> String {
    let base = public
        .map_or_else(|| format!("http://{}", reachable(address)), |url| url.as_str().trim_end_matches('/').to_owned());
    format!("{base}/ui")
}

/// The brains of a project, whose runs are started for the workers of the store.
pub(super) struct ProjectBrains {
    definitions: Vec<Arc<BrainDefinition>>,
    starts: Vec<Arc<StartOn>>,
    webhooks: Vec<ProjectWebhook>,
    starter: Runner,
    /// The options with which `run` starts a brain, by its title.
    options: HashMap<String, Value>,
    models: RequestModels,
    /// Whether workers of this process continue runs.
    works: bool,
}

/// Where the models of requests that are sent outside of runs come from.
struct RequestModels {
    project: Project,
    store: ProjectStore,
    args: ModelArgs,
    settings: Settings,
}

impl RequestModels {
    /// Returns a runner with the models of a brain. A cassette plays from its beginning.
    fn runner(&self, title: &str) -> Result<Runner, Failure> {
        let models = models_for_run(&self.project, &self.args, title, &self.settings)?;
        Ok(models.runner(&self.project, &self.store))
    }

    /// Names the models that would answer next in a run of a brain with these events.
    async fn next(&self, title: &str, log: &[Arc<Event>]) -> Result<Vec<String>, Failure> {
        let models = models_for_run(&self.project, &self.args, title, &self.settings)?;
        let CassetteSession::Plays(cassette) = &models.cassette else {
            let all = std::iter::once(&models.normal).chain(&models.high).map(|model| model.name());
            return Ok(all.filter(|name| name != NoModel::NAME).collect());
        };
        can_continue_after(cassette, &self.store, log).await?;
        Ok(vec![cassette.name()])
    }
}

impl ProjectBrains {
    pub(super) fn of(project: &Project, store: &ProjectStore, model: &ModelArgs, ui: &Ui) -> Self {
        let wanted = ModelSettings { model, record: None };
        let options = project.brains.iter().filter_map(|entry| {
            let playing = chosen_cassette(project, entry, wanted, &ui.settings).ok()?;
            let recorded = playing.as_ref().and_then(ChosenCassette::options).map(Value::to_string);
            let options = parse_options(entry, &[], recorded.as_deref()).ok()?;
            Some((entry.definition.title.clone(), options))
        });
        Self {
            definitions: project.brains.iter().map(|entry| Arc::clone(&entry.definition)).collect(),
            starts: project.starts.clone(),
            webhooks: project.webhooks.clone(),
            starter: Models::none().runner(project, store).submit_only(),
            options: options.collect(),
            models: RequestModels {
                project: project.clone(),
                store: store.clone(),
                args: model.clone(),
                settings: ui.settings.clone(),
            },
            works: false,
        }
    }
}

impl Brains for ProjectBrains {
    fn definitions(&self) -> Vec<Arc<BrainDefinition>> {
        self.definitions.clone()
    }

    fn runner<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        Box::pin(std::future::ready(Ok(self.starter.clone())))
    }

    fn models<'a>(&'a self, title: &'a str) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        let runner = self.models.runner(title);
        Box::pin(std::future::ready(runner.map_err(|failure| NoRunner { message: failure.to_string(), refusal: None })))
    }

    fn next_models<'a>(
        &'a self,
        title: &'a str,
        log: &'a [Arc<Event>],
    ) -> BoxFuture<'a, Result<Vec<String>, NoRunner>> {
        Box::pin(async move {
            if !self.works {
                return Ok(Vec::new());
            }
            let models = self.models.next(title, log).await;
            models.map_err(|failure| {
                let refusal = (failure.exit == Exit::NoModel).then_some(ClaimRefusal::NoModel);
                NoRunner { message: failure.to_string(), refusal }
            })
        })
    }

    fn starts(&self) -> Vec<Arc<StartOn>> {
        self.starts.clone()
    }

    fn webhooks(&self) -> Vec<ProjectWebhook> {
        self.webhooks.clone()
    }

    fn default_options(&self, brain: &BrainDefinition) -> Value {
        self.options.get(&brain.title).cloned().unwrap_or_default()
    }
}
