//! The guide's list of commands and exit codes.

use std::path::Path;
use std::process::Command;

#[test]
fn guide_lists_every_subcommand_and_exit_code() {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("positronic-examples"));
    let help = String::from_utf8(command.arg("--help").output().unwrap().stdout).unwrap();
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/command-line.md")).unwrap();
    let listed = |title: &str| -> Vec<String> {
        let section = help.split_once(title).unwrap().1.split("\n\n").next().unwrap().to_owned();
        let rows = section.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        rows.filter_map(|row| row.split_whitespace().next().map(str::to_owned)).collect()
    };
    for command in listed("Commands:").iter().filter(|command| *command != "help") {
        assert!(
            page.contains(&format!("`{command}`")) || page.contains(&format!("`{command} ")),
            "`{command}` is missing"
        );
    }
    let codes = listed("Exit codes:");
    assert_eq!(codes.len(), 12);
    for code in codes {
        assert!(page.contains(&format!("| {code} |")), "exit code {code} is missing");
    }
}
