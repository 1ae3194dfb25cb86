//! The `positronic` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    positronic_cli::positronic()
}
