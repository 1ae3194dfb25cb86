//! The shell commands of the guide: each subcommand and flag exists.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Returns the commands of a page's shell blocks, each without the word `positronic`, its comment and what is before a pipe.
fn commands(page: &str) -> Vec<String> {
    let mut shell = false;
    let mut found = Vec::new();
    for line in page.lines() {
        match line.trim() {
            "```sh" => shell = true,
            "```" => shell = false,
            line if shell => {
                let line = line.split(" #").next().unwrap();
                found.extend(line.split_once("positronic ").map(|(_, command)| command.to_owned()));
            }
            _ => {}
        }
    }
    found
}

/// Asks the command for the help of what stands before the first flag: a subcommand, perhaps one within another.
fn help(words: &[String]) -> Option<String> {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("positronic-examples"));
    let output = command.args(words).arg("--help").output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn every_command_and_flag_of_the_guide_exists() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide");
    let mut known = BTreeMap::new();
    let mut checked = 0;
    for page in std::fs::read_dir(guide).unwrap() {
        let path = page.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        for command in commands(&std::fs::read_to_string(&path).unwrap()) {
            let words = command.split_whitespace().take_while(|word| !word.starts_with('-'));
            let help =
                known.entry(words.map(str::to_owned).collect::<Vec<_>>()).or_insert_with_key(|words| help(words));
            let help = help.as_ref().unwrap_or_else(|| panic!("{}: no command `{command}`", path.display()));
            for flag in command.split_whitespace().filter(|word| word.starts_with("--")) {
                let exists = help.split([' ', '\n', ',']).any(|word| word == flag);
                assert!(exists, "{}: `{flag}` of `positronic {command}` does not exist", path.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn guide_lists_every_subcommand_and_exit_code() {
    let help = help(&[]).unwrap();
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
    assert_eq!(codes.len(), 10);
    for code in codes {
        assert!(page.contains(&format!("| {code} |")), "exit code {code} is missing");
    }
}
