//! From the process's arguments to its exit code.

use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::commands;
use crate::display::text::sanitise;
use crate::failure::{Exit, Failure};
use crate::project::Project;
use crate::settings::Settings;
use crate::ui::Ui;

/// Runs the command of a project's own binary.
pub(crate) fn project(project: &Project) -> ExitCode {
    process(|arguments, ui| in_project(project, arguments, ui))
}

/// Runs the `positronic` command: what needs a brain's code by the binary of the project around, everything else by
/// itself.
#[must_use = "the exit code says how the command ended"]
pub fn positronic() -> ExitCode {
    process(|arguments, ui| {
        with_command(arguments, ui, |command, ui| {
            if !command.needs_brains() {
                return without_brains(command, ui);
            }
            match (crate::cargo::hand_over(arguments.get(1..).unwrap_or_default(), ui), command) {
                // Where there is no project, a run can be looked at all the same.
                (Err(Failure::NoProject { .. }), Command::Show(args)) => commands::show_run(args, ui),
                (Err(Failure::NoProject { .. }), Command::Fork(args)) => commands::fork(None, args, ui),
                (handed, _) => handed,
            }
        })
    })
}

/// Runs a command of a project, given the arguments with the program's name before them.
pub(crate) fn in_project(project: &Project, arguments: &[OsString], ui: &mut Ui) -> u8 {
    with_command(arguments, ui, |command, ui| match command {
        Command::List(args) => commands::list(project, args, ui),
        Command::Show(args) => commands::show(project, args, ui),
        Command::Run(args) => commands::run(project, args, ui),
        Command::Work(args) => commands::work(project, args, ui),
        Command::Fork(args) => commands::fork(Some(project), args, ui),
        other => without_brains(other, ui),
    })
}

fn without_brains(command: &Command, ui: &mut Ui) -> Result<Exit, Failure> {
    match command {
        Command::New(args) => commands::new(args, ui),
        Command::Runs(args) => commands::runs(args, ui),
        Command::Inbox(args) => commands::inbox(args, ui),
        Command::Watch(args) => commands::watch(args, ui),
        Command::Events(args) => commands::events(args, ui),
        Command::Approve(args) => commands::approve(args, ui),
        Command::Reject(args) => commands::reject(args, ui),
        Command::Send(args) => commands::send(args, ui),
        Command::Pause(args) => commands::pause(args, ui),
        Command::Resume(args) => commands::resume(args, ui),
        Command::Cancel(args) => commands::cancel(args, ui),
        Command::State(args) => commands::state(args, ui),
        Command::Diff(args) => commands::diff(args, ui),
        Command::Export(args) => commands::export(args, ui),
        Command::Import(args) => commands::import(args, ui),
        Command::Prune(args) => commands::prune(args, ui),
        Command::List(_) | Command::Show(_) | Command::Run(_) | Command::Work(_) | Command::Fork(_) => {
            Err(Failure::NoProject { from: std::env::current_dir()? })
        }
    }
}

fn process(run: impl FnOnce(&[OsString], &mut Ui) -> u8) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(run(&arguments, &mut Ui::standard(Settings::from_env())))
}

fn with_command(
    arguments: &[OsString],
    ui: &mut Ui,
    run: impl FnOnce(&Command, &mut Ui) -> Result<Exit, Failure>,
) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let error = harmless(error, arguments, ui.settings.unicode);
            // Where the stream is closed there is nobody to tell.
            _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
        }
    };
    ui.color = cli.color;
    ui.place = cli.place.clone();
    if let Some(name) = arguments.first().and_then(|path| name(path)) {
        ui.program = name;
    }
    run(&cli.command, ui).unwrap_or_else(|failure| told(&failure, ui)).code()
}

/// Returns the name of a program from the path that it was called by.
fn name(path: &OsStr) -> Option<String> {
    let file = Path::new(path).file_name()?.to_string_lossy().into_owned();
    Some(file.strip_suffix(EXE_SUFFIX).map(str::to_owned).unwrap_or(file))
}

/// Says the error again of arguments that hold what a terminal would obey, with signs in its place.
fn harmless(error: clap::Error, arguments: &[OsString], unicode: bool) -> clap::Error {
    let safe = arguments.iter().map(|argument| sanitise(&argument.to_string_lossy(), unicode));
    Cli::try_parse_from(safe).err().unwrap_or(error)
}

/// Tells a failure; a reader that has gone away, as `head` does, is none.
fn told(failure: &Failure, ui: &mut Ui) -> Exit {
    if matches!(failure, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe) {
        return Exit::Done;
    }
    _ = ui.failure(failure);
    failure.exit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_line_is_not_said_back_to_the_terminal_as_it_is() {
        let arguments = ["desk", "run", "idle", "\u{1b}[2J\u{9b}31m"].map(OsString::from);
        let error = Cli::try_parse_from(&arguments).unwrap_err();

        let said = harmless(error, &arguments, true).to_string();

        assert!(said.starts_with("error: unexpected argument '␛[2J\u{fffd}31m' found"), "{said}");
    }

    #[test]
    fn a_program_is_called_by_its_files_name() {
        assert_eq!(name(OsStr::new("target/debug/my.desk")), Some("my.desk".to_owned()));
        assert_eq!(name(OsStr::new("..")), None);
    }
}
