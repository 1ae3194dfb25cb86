//! Entry points: parsing arguments, dispatching commands, and exit codes.

use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use futures::future::LocalBoxFuture;
use positronic_core::record::Timestamp;
use positronic_core::runner::{Clock as _, SystemClock};

use crate::app::{
    Failure, Log, LogSettings, MAX_COLUMNS, Output, Project, Settings, Streams, Ui, block_on, cargo, usage_panic,
};
use crate::cli::options::shell_word;
use crate::cli::{Cli, Command, Exit};
#[cfg(feature = "serve")]
use crate::cli::{LogArgs, LogFormat};
use crate::commands;
use crate::render::{sanitise, shorten};
use crate::session::{interrupts, left_by};

/// The usual stack size of a process's first thread.
const STACK: usize = 8 << 20;

/// Runs the command of a project's own binary.
pub(crate) fn project(project: &Project) -> ExitCode {
    process(|arguments, ui| in_project(project, arguments, ui))
}

/// Runs the `positronic` command: commands that need a brain's code run in the project's binary, all others in
/// this process.
#[must_use = "the exit code says how the command ended"]
pub fn positronic() -> ExitCode {
    process(|arguments, ui| {
        with_command(arguments, ui, |command, ui| {
            if command.needs_brains()
                && let Some(exit) = cargo::delegate(arguments.get(1..).unwrap_or_default(), ui)?
            {
                return Ok(exit);
            }
            block_on(dispatch(None, command, ui))
        })
    })
}

/// Runs a command of a project, given the arguments with the program's name before them.
pub(crate) fn in_project(project: &Project, arguments: &[OsString], ui: &mut Ui) -> u8 {
    with_command(arguments, ui, |command, ui| {
        if command.needs_brains() {
            project.check()?;
        }
        block_on(dispatch(Some(project), command, ui))
    })
}

impl Project {
    /// Runs the command of the process's arguments, and returns its exit code. It starts its own runtime; to open services
    /// asynchronously first, await [`Project::run`] instead.
    ///
    /// # Panics
    ///
    /// When it is called inside a runtime.
    #[must_use = "the exit code says how the command ended"]
    #[track_caller]
    pub fn main(self) -> ExitCode {
        if tokio::runtime::Handle::try_current().is_ok() {
            usage_panic(
                "`Project::main` starts a runtime of its own and was called inside another one; await `Project::run` there: \
                 `project.run().await`",
            );
        }
        project(&self)
    }

    /// Runs the command of the process's arguments, as [`Project::main`] does, inside the caller's runtime, and returns its
    /// exit code. Services can be opened asynchronously first:
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    ///
    /// use positronic_cli::Project;
    /// use positronic_core::prelude::*;
    /// # struct Database;
    /// # impl Database { async fn connect() -> Result<Self> { Ok(Self) } async fn name(&self) -> Result<String> { Ok(String::new()) } }
    ///
    /// #[tokio::main]
    /// async fn main() -> Result<ExitCode> {
    ///     let database = Database::connect().await?;
    ///     let hello = brain("Hello").services::<Database>().step("Greet", async |cx| cx.services.name().await);
    ///     Ok(Project::new().brain(hello.bind(database)).run().await)
    /// }
    /// ```
    ///
    /// The command has its own thread and runtime, and continues when the future is dropped. Services of the caller's
    /// runtime work as long as that runtime runs.
    pub async fn run(self) -> ExitCode {
        let ended = on_thread(move || project(&self)).await;
        ended.unwrap_or_else(|| ExitCode::from(Exit::Environment.code()))
    }
}

/// Runs a command on its own thread, where it can start a runtime. Returns `None` if the thread cannot start or the command
/// panics.
pub(crate) async fn on_thread<T: Send + 'static>(command: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, ended) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("positronic".to_owned()).stack_size(STACK);
    thread.spawn(move || _ = sender.send(command())).ok()?;
    ended.await.ok()
}

/// Runs a command, with the brains of a project if there is one.
///
/// Each command's future is made here and polled by the caller: in a future of this function, a build without optimisation
/// would keep room for all of them on the stack.
fn dispatch<'a>(
    project: Option<&'a Project>,
    command: &'a Command,
    ui: &'a mut Ui,
) -> LocalBoxFuture<'a, Result<Exit, Failure>> {
    let program = ui.program.clone();
    if let Command::Run(_) | Command::Work(_) | Command::Serve(_) = command {
        ui.settings.warn_of_unused_endpoint(matches!(command, Command::Serve(_)));
    }
    let with_brains = move || project.map_or_else(|| cargo::no_project(&program), Ok);
    match command {
        Command::List(args) => Box::pin(async move { commands::start::list::list(with_brains()?, args, ui) }),
        Command::Show(args) => match project {
            Some(project) => Box::pin(commands::read::show::show(project, args, ui)),
            // Runs can be inspected without a project.
            None => Box::pin(commands::read::show::show_run(None, args, ui)),
        },
        Command::Models(args) => Box::pin(commands::start::models::models(project, args, ui)),
        Command::Run(args) => Box::pin(async move { commands::start::run::run(with_brains()?, args, ui).await }),
        Command::Chat(args) => Box::pin(async move { commands::start::chat::chat(with_brains()?, args, ui).await }),
        Command::Work(args) => Box::pin(async move { commands::serve::work::work(with_brains()?, args, ui).await }),
        #[cfg(not(feature = "serve"))]
        Command::Inspect(_) | Command::Mcp(_) | Command::Serve(_) | Command::Token(_) => {
            Box::pin(std::future::ready(Err(Failure::feature("this command is not part of this binary", "serve"))))
        }
        #[cfg(feature = "serve")]
        Command::Inspect(args) => Box::pin(commands::transfer::file::inspect(args, ui)),
        #[cfg(feature = "serve")]
        Command::Serve(args) => Box::pin(async move { commands::serve::work::serve(with_brains()?, args, ui).await }),
        #[cfg(feature = "serve")]
        Command::Mcp(args) => Box::pin(async move { commands::serve::work::mcp(with_brains()?, args, ui).await }),
        #[cfg(feature = "serve")]
        Command::Token(args) => Box::pin(commands::serve::token::token(args, ui)),
        Command::Fork(args) => Box::pin(commands::change::fork::fork(project, args, ui)),
        Command::New(args) => Box::pin(async move { commands::start::new::new(args, ui) }),
        Command::Conversations(args) => Box::pin(commands::read::conversations::conversations(args, ui)),
        Command::Runs(args) => Box::pin(commands::read::runs::runs(project, args, ui)),
        Command::Inbox(args) => Box::pin(commands::read::inbox::inbox(args, ui)),
        Command::Watch(args) => Box::pin(commands::read::watch::watch(args, ui)),
        Command::Result(args) => Box::pin(commands::read::result::result(args, ui)),
        Command::Events(args) => Box::pin(commands::read::events::events(args, ui)),
        Command::Triggers(args) => Box::pin(commands::change::triggers::triggers(args, ui)),
        Command::Schedule(args) => Box::pin(commands::change::schedule::schedule(project, args, ui)),
        Command::Files(args) => Box::pin(commands::read::files::files(args, ui)),
        Command::Approve(args) => Box::pin(commands::change::signal::approve(project, args, ui)),
        Command::Reject(args) => Box::pin(commands::change::signal::reject(project, args, ui)),
        Command::Send(args) => Box::pin(commands::change::send::send(project, args, ui)),
        Command::Pause(args) => Box::pin(commands::change::signal::pause(project, args, ui)),
        Command::Resume(args) => Box::pin(commands::change::signal::resume(project, args, ui)),
        Command::Undo(args) => Box::pin(commands::change::undo::undo(args, ui)),
        Command::Retry(args) => Box::pin(commands::change::retry::retry(project, args, ui)),
        Command::Cancel(args) => Box::pin(commands::change::signal::cancel(project, args, ui)),
        Command::State(args) => Box::pin(commands::read::state::state(args, ui)),
        Command::Record(args) => Box::pin(commands::transfer::record::record(args, ui)),
        Command::Report(args) => Box::pin(commands::read::report::report(args, ui)),
        Command::Costs(args) => Box::pin(commands::read::costs::costs(args, ui)),
        Command::Diff(args) => Box::pin(commands::read::diff::diff(args, ui)),
        Command::Export(args) => Box::pin(commands::transfer::file::export(args, ui)),
        Command::Import(args) => Box::pin(commands::transfer::file::import(args, ui)),
        Command::Prune(args) => Box::pin(commands::change::prune::prune(args, ui)),
        Command::Backup(args) => Box::pin(commands::transfer::backup::backup(args, ui)),
    }
}

fn process(run: impl FnOnce(&[OsString], &mut Ui) -> u8 + Send) -> ExitCode {
    crate::session::survive_large_files();
    let (settings, streams) = (Settings::from_env(), Streams::standard());
    escape_panics(streams.err().clone());
    if SystemClock.now() <= Timestamp(0) {
        return cannot_start("the clock of this machine is before 1970; set it first");
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let log = Log::start(&log_settings(&settings, &arguments), streams.err());
    let command = || {
        let mut ui = Ui::standard(settings, streams.clone(), log);
        let code = run(&arguments, &mut ui);
        let is_dropped = ui.drops_unread;
        drop(ui);
        drain(&streams, is_dropped).map_or(code, Exit::code)
    };
    // The stack of the first thread is as small as `ulimit -s` says.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(STACK);
        match thread.spawn_scoped(scope, command) {
            // After a panic, whose message is printed.
            Ok(command) => ExitCode::from(command.join().unwrap_or(101)),
            Err(error) => cannot_start(&format!(
                "cannot start a thread: {error}; the limits of this process are too low, see `ulimit -v` and `ulimit -u`"
            )),
        }
    })
}

/// Returns what the environment and the flags of `serve` say about the log.
#[cfg(feature = "serve")]
fn log_settings(settings: &Settings, arguments: &[OsString]) -> LogSettings {
    let mut log = settings.log.clone();
    if let Ok(Cli { command: Command::Serve(args), .. }) = Cli::try_parse_from(arguments) {
        let LogArgs { quiet, verbose, log: format } = args.log;
        let filter = if quiet { Some("error") } else { verbose.then_some("info") };
        log.filter = log.filter.or_else(|| filter.map(str::to_owned));
        if format == LogFormat::Json {
            log.format = Some("json".to_owned());
        }
    }
    log
}

#[cfg(not(feature = "serve"))]
fn log_settings(settings: &Settings, _: &[OsString]) -> LogSettings {
    settings.log.clone()
}

fn cannot_start(reason: &str) -> ExitCode {
    // A closed stderr leaves no place to report to.
    _ = writeln!(io::stderr(), "error: {reason}");
    ExitCode::from(Exit::Environment.code())
}

/// How long a process that drops what nothing reads waits for its readers at the end.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// The pause between two checks whether a slow reader has read everything.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until the readers have read what is kept for them. Returns the exit code of an interrupt that ends the wait.
fn drain(streams: &Streams, is_dropped: bool) -> Option<Exit> {
    if is_dropped || streams.are_drained(DRAIN_INTERVAL) {
        streams.are_drained(DRAIN_LIMIT);
        return None;
    }
    // The handlers of interrupts belong to the runtime of the command, which is gone.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let mut interrupts = interrupts();
        loop {
            tokio::select! {
                Some(interrupt) = interrupts.recv() => return Some(left_by(interrupt)),
                () = tokio::time::sleep(DRAIN_INTERVAL) => if streams.are_drained(Duration::ZERO) {
                    return None;
                },
            }
        }
    })
}

/// Escapes control and invisible characters in panic messages: a tool may panic with a text that a
/// model wrote, and the message goes to a terminal.
fn escape_panics(err: Output) {
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        let trace = std::backtrace::Backtrace::capture();
        let trace = match trace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
            _ => String::new(),
        };
        err.say(&format!("{}{trace}\n", panic_message(name, panic)));
    }));
}

fn panic_message(thread: &str, panic: &impl std::fmt::Display) -> String {
    format!("thread '{}' {}", sanitise(thread), sanitise(&panic.to_string()))
}

fn with_command(
    arguments: &[OsString],
    ui: &mut Ui,
    run: impl FnOnce(&Command, &mut Ui) -> Result<Exit, Failure>,
) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Without any argument the help is the answer, as in a new project's first `cargo run`.
            if arguments.len() <= 1 && error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                _ = Cli::command().print_help();
                return Exit::Done.code();
            }
            let error = escaped_usage_error(error, arguments);
            // A closed stream leaves nowhere to report to.
            _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
        }
    };
    ui.color = cli.color;
    ui.store_args = cli.store_args.clone();
    if let Some(called) = arguments.first().and_then(|path| called(path, ui.settings.cargo_package.as_deref())) {
        ui.program = called;
    }
    let exit = run(&cli.command, ui).unwrap_or_else(|failure| report(&failure, ui));
    match ui.unwritten() {
        Some(error) if exit == Exit::Done => report(&Failure::from(error), ui).code(),
        _ => exit.code(),
    }
}

/// Returns the command line that starts this program: its name if the shell finds it, else its
/// path, or `cargo run` if cargo has started it.
fn called(path: &OsStr, cargo_package: Option<&str>) -> Option<String> {
    let file = Path::new(path).file_name()?.to_string_lossy().into_owned();
    let name = file.strip_suffix(EXE_SUFFIX).map(str::to_owned).unwrap_or(file);
    let by_path = Path::new(path).components().count() > 1;
    Some(match cargo_package.filter(|_| by_path) {
        Some(package) if package == name => format!("cargo run -p {} --", shell_word(package)),
        Some(package) => format!("cargo run -p {} --bin {} --", shell_word(package), shell_word(&name)),
        None if by_path => shell_word(&path.to_string_lossy()),
        None => shell_word(&name),
    })
}

/// Rebuilds a usage error with the terminal control characters of the arguments escaped, and long arguments shortened.
fn escaped_usage_error(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let safe = |text: &str| shorten(&sanitise(text), MAX_COLUMNS);
    let shown: Vec<_> = arguments.iter().map(|argument| safe(&argument.to_string_lossy())).collect();
    if arguments.iter().zip(&shown).all(|(argument, shown)| argument == shown.as_str()) {
        return error;
    }
    // The escaped arguments may be valid: then the message itself is escaped, without colours.
    Cli::try_parse_from(shown).err().unwrap_or_else(|| {
        let message = error.to_string().lines().map(|line| safe(line) + "\n").collect::<String>();
        clap::Error::raw(error.kind(), message.trim_start_matches("error: "))
    })
}

/// Reports a failure; a closed output pipe, as with `head`, is not a failure.
fn report(failure: &Failure, ui: &mut Ui) -> Exit {
    if failure.output == Some(io::ErrorKind::BrokenPipe) {
        return Exit::Done;
    }
    _ = ui.failure(failure);
    failure.exit
}

#[cfg(test)]
mod tests;
