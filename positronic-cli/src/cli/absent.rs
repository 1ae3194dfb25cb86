//! Commands of features that this build does not have: they are there, so that they can say what to switch on.

use std::ffi::OsString;

use clap::Args;

/// The arguments of a command that this build does not have.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct AbsentArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}
