//! Safe names for saved files: the original names come from tools, possibly from a model.

use positronic_core::record::is_invisible;

/// Maximum length of a name in bytes, without its extension.
const LONGEST: usize = 120;

/// Names that an operating system reserves.
const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Returns a file name that is valid on every system: without a folder or terminal control characters, not
/// hidden, and not too long.
pub(crate) fn safe_file_name(name: &str) -> String {
    let last = name.trim().rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |letter: char| match letter {
        '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\u{fffd}' => '_',
        letter if letter.is_control() || is_invisible(letter) => '_',
        letter => letter,
    };
    let mut safe: String = last.chars().map(plain).collect();
    let ending = safe.rfind('.').filter(|dot| *dot > 0 && safe.len() - dot <= 16).map(|dot| safe.split_off(dot));
    let mut length = safe.len().min(LONGEST);
    while !safe.is_char_boundary(length) {
        length -= 1;
    }
    safe.truncate(length);
    safe.push_str(&ending.unwrap_or_default());
    let safe = safe.trim_matches(['.', ' ']);
    let stem = safe.split('.').next().unwrap_or_default().to_lowercase();
    let reserved =
        RESERVED.contains(&stem.as_str()) || (stem.len() == 4 && (stem.starts_with("com") || stem.starts_with("lpt")));
    match safe {
        "" => "file".to_owned(),
        safe if reserved => format!("_{safe}"),
        safe => safe.to_owned(),
    }
}

/// Appends a number to a duplicate name; the first file has none.
pub(crate) fn numbered_name(name: &str, number: usize) -> String {
    if number == 1 {
        return name.to_owned();
    }
    match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, ending)) => format!("{stem} ({number}).{ending}"),
        None => format!("{name} ({number})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_cannot_leave_the_folder() {
        for (name, expected) in [
            ("list.md", "list.md"),
            ("../../etc/passwd", "passwd"),
            ("/etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("..", "file"),
            (".bashrc", "bashrc"),
            ("", "file"),
            ("a/", "file"),
            ("plan\u{1b}[2J\u{202e}.txt", "plan_[2J_.txt"),
            ("a:b?\n.txt", "a_b__.txt"),
            ("a\u{200d}\u{3164}\u{e0100}.txt", "a___.txt"),
            ("C:\\x", "x"),
            ("NUL.txt", "_NUL.txt"),
            ("con.tar.gz", "_con.tar.gz"),
            ("LPT1", "_LPT1"),
            ("größe 1.csv", "größe 1.csv"),
            ("旅行.md", "旅行.md"),
        ] {
            assert_eq!(safe_file_name(name), expected, "{name:?}");
        }
        let long = safe_file_name(&format!("{}.pdf", "ü".repeat(500)));
        assert!(long.len() <= LONGEST + 4 && long.ends_with("ü.pdf"), "{long}");
        let all = safe_file_name(&format!("{}.{}", "a".repeat(500), "x".repeat(500)));
        assert!(all.len() <= LONGEST, "{all}");
    }

    proptest::proptest! {
        #[test]
        fn fuzz_file_names(name in "[./\\\\:~a-c\u{0}\u{a}\u{1b}\u{202e}\u{3164}é ]{0,40}|.{0,300}") {
            let safe = safe_file_name(&name);

            proptest::prop_assert!(!safe.contains(['/', '\\']) && !safe.starts_with('.') && !safe.is_empty(), "{:?}", safe);
            proptest::prop_assert!(!safe.chars().any(|letter| letter.is_control() || is_invisible(letter)), "{:?}", safe);
            proptest::prop_assert_eq!(std::path::Path::new(&safe).components().count(), 1);
        }
    }
}
