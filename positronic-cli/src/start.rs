//! From the process's arguments to its exit code.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::commands;
use crate::failure::{Exit, Failure};
use crate::project::Project;
use crate::settings::Settings;
use crate::ui::Ui;

/// Runs the command of a project's own binary.
pub(crate) fn project(project: &Project) -> ExitCode {
    process(|arguments, ui| in_project(project, arguments, ui))
}

/// Runs the `positronic` command: `new` by itself, everything else by the binary of the project around.
#[must_use = "the exit code says how the command ended"]
pub fn positronic() -> ExitCode {
    process(|arguments, ui| {
        with_command(arguments, ui, |command, ui| match command {
            Command::New(args) => commands::new(args, ui),
            Command::List(_) | Command::Show(_) | Command::Run(_) => {
                crate::cargo::hand_over(arguments.get(1..).unwrap_or_default(), ui)
            }
        })
    })
}

/// Runs a command of a project, given the arguments with the program's name before them.
pub(crate) fn in_project(project: &Project, arguments: &[OsString], ui: &mut Ui) -> u8 {
    with_command(arguments, ui, |command, ui| match command {
        Command::New(args) => commands::new(args, ui),
        Command::List(args) => commands::list(project, args, ui),
        Command::Show(args) => commands::show(project, args, ui),
        Command::Run(args) => commands::run(project, args, ui),
    })
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
            // Where the stream is closed there is nobody to tell.
            _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
        }
    };
    ui.color = cli.color;
    run(&cli.command, ui).unwrap_or_else(|failure| told(&failure, ui)).code()
}

/// Tells a failure; a reader that has gone away, as `head` does, is none.
fn told(failure: &Failure, ui: &mut Ui) -> Exit {
    if matches!(failure, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe) {
        return Exit::Done;
    }
    _ = ui.failure(failure);
    failure.exit()
}
