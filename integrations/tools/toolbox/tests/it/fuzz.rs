//! Random file names: none leads out of the folder.

use positronic_toolbox::OutputFolder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const PARTS: &[&str] = &[
    "..",
    ".",
    "/",
    "//",
    "\\",
    "a",
    "b.md",
    "link",
    "link/",
    "~",
    ":",
    "C:",
    "\0",
    "\n",
    "\u{202e}",
    "\u{3164}",
    "\u{ff0f}",
    "é",
    " ",
    ".positronic-",
    "%2e%2e",
];

proptest! {
    #[test]
    fn fuzz_folder_names(name in vec(select(PARTS), 0..8).prop_map(|parts| parts.concat()), rest in ".{0,4}") {
        let around = tempfile::tempdir().unwrap();
        let (inside, outside) = (around.path().join("inside"), around.path().join("outside"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink("../outside", inside.join("link")).unwrap();
        let folder = OutputFolder::open(&inside).unwrap();
        let name = name + &rest;

        let written = folder.write(&name, b"text");

        let names = |folder: &std::path::Path| std::fs::read_dir(folder).unwrap().count();
        prop_assert_eq!((names(&outside), names(around.path())), (0, 2), "{:?}", name);
        if written.is_ok() {
            prop_assert_eq!(folder.bytes(&name).unwrap(), b"text", "a file is read under the name it was written");
        }
    }
}
