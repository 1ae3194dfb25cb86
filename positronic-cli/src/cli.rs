//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::failure::EXIT_CODES;

/// Makes, lists, shows and runs brains.
#[derive(Debug, Parser)]
#[command(name = "positronic", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Makes a project with a first brain
    New(NewArgs),
    /// Lists the project's brains
    List(ListArgs),
    /// Shows a brain: its stages, its options, an example call
    Show(ShowArgs),
    /// Runs a brain
    Run(RunArgs),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").multiple(false).args(["version", "git", "path"]))]
pub(crate) struct NewArgs {
    /// The folder to make; its name becomes the package's name
    pub(crate) dir: PathBuf,
    /// The framework's version; this command's own where nothing is said
    #[arg(long)]
    pub(crate) version: Option<String>,
    /// The framework's git repository
    #[arg(long, value_name = "URL")]
    pub(crate) git: Option<String>,
    /// A commit, tag or branch of the git repository
    #[arg(long, requires = "git")]
    pub(crate) rev: Option<String>,
    /// A checkout of the framework
    #[arg(long, value_name = "CHECKOUT")]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The brain's title, or its beginning; case, blanks and dashes do not matter
    pub(crate) brain: String,
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `run --help` says about the environment.
const ENVIRONMENT: &str = "\
Environment:
  OPENAI_API_KEY   the key of the endpoint
  OPENAI_BASE_URL  the endpoint, up to and including the version; OpenAI's own where it is not set
  OPENAI_MODEL     the model where --model names none
  NO_COLOR         no colours

Without a key and an address, the brain's own cassette is played.";

#[derive(Debug, Args)]
#[command(after_help = ENVIRONMENT)]
pub(crate) struct RunArgs {
    /// The brain's title, or its beginning; case, blanks and dashes do not matter
    pub(crate) brain: String,
    /// An option, read as the brain's schema says; `a.b=1` reaches into an object, a repeated key fills a list
    #[arg(short = 'o', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// All options as JSON, or @FILE with them; -o is laid over it
    #[arg(long, value_name = "JSON")]
    pub(crate) options: Option<String>,
    /// The model; `openai-responses/NAME` asks over the Responses API, everything else over chat completions
    #[arg(long, value_name = "NAME", conflicts_with = "cassette")]
    pub(crate) model: Option<String>,
    /// Writes every event as one line of JSON, instead of the result
    #[arg(long)]
    pub(crate) json: bool,
    /// Tells the progress line by line
    #[arg(long)]
    pub(crate) plain: bool,
    /// Plays a recording instead of asking a model; it answers approvals and waits, too, and brings its options
    #[arg(long, value_name = "FILE")]
    pub(crate) cassette: Option<PathBuf>,
    /// Records the run's model traffic and its answers
    #[arg(long, value_name = "FILE", conflicts_with = "cassette")]
    pub(crate) record: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound_and_reads_well() {
        Cli::command().debug_assert();
        insta::assert_snapshot!("help", Cli::command().term_width(80).render_long_help().to_string());
        let mut command = Cli::command().term_width(80);
        let run = command.find_subcommand_mut("run").unwrap();
        insta::assert_snapshot!("help_run", run.render_help().to_string());
    }
}
