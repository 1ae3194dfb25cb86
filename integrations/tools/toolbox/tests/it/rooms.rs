//! `run_code`: the limits of the folder and of all processes together bind programs while they run, and nothing that a program leaves
//! behind makes the folder unusable.

use std::process::Command;

use positronic_toolbox::{CodeError, CodeLimits, CodeOptions, CodeRunner, FolderOptions, OutputFolder, Ran};

use crate::code::{limited, runner};
use crate::desk::Place;

/// A program that writes until it is stopped.
fn writes(what: &str) -> String {
    format!("import itertools, os, time\nfor n in itertools.count():\n    {what}\n    time.sleep(0.002)\n")
}

async fn refused(place: &Place) -> String {
    match runner(place).run("sh", "echo hello").await {
        Err(error @ CodeError::NoRoom { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn program_that_fills_the_folder_is_killed_and_the_next_one_is_refused() {
    let limits = FolderOptions::builder().max_total(1_000_000).max_files(50).build();
    let large = "open('f%d' % (n % 40), 'ab').write(b'x' * 20_000)";
    for (code, limit) in [
        (writes(large), "of at most 1000000 bytes"),
        (writes("open('f%d' % n, 'w')"), "of at most 50 files"),
        (writes("open(os.environ['TMPDIR'] + '/f%d' % n, 'wb').write(b'x' * 20_000)"), "of at most"),
        (writes("os.mkdir('d'); os.chdir('d'); n > 70 and open('f', 'wb').write(b'x' * 200_000)"), "of at most"),
    ] {
        let place = Place::with(limits.clone());

        let ran = runner(&place).run("python3", &code).await.unwrap();

        let stopped = ran.stopped.unwrap_or_default();
        assert!(stopped.starts_with("the output folder is full: ") && stopped.contains(limit), "{code}: {stopped}");
        assert!(stopped.ends_with("the program was killed with all its processes"), "{stopped}");
        if code.contains("TMPDIR") {
            assert_eq!(place.files(), [""; 0], "what was in the program's own folder is gone");
            continue;
        }
        let error = refused(&place).await;
        assert!(error.starts_with("the program was not run: the output folder is full: "), "{error}");
        let full = place.folder.write("new", b"x").unwrap_err().to_string();
        assert!(full.contains("is full"), "{full}");
    }
}

#[tokio::test]
async fn shorter_files_make_room_in_a_full_folder() {
    let place = Place::with(FolderOptions::builder().max_total(100).build());
    std::fs::write(place.folder.path().join("a"), [b'x'; 90]).unwrap();
    std::fs::write(place.folder.path().join("b"), [b'x'; 90]).unwrap();
    refused(&place).await;

    place.folder.write("a", b"short").unwrap();

    let ran = runner(&place).run("sh", "echo hello").await.unwrap();
    assert_eq!((ran.stdout.as_str(), ran.stopped), ("hello\n", None));
}

#[tokio::test]
async fn program_in_a_folder_within_its_limits_is_not_stopped() {
    let place = Place::with(FolderOptions::builder().max_total(100_000).max_files(3).build());
    let code = "import time\nfor name in 'abc':\n    open(name, 'wb').write(b'x' * 30_000)\n    time.sleep(0.15)\n";

    let ran = runner(&place).run("python3", code).await.unwrap();

    assert_eq!((ran.exit_code, ran.stopped, ran.files.len()), (Some(0), None, 3), "its own file does not count");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn memory_of_all_processes_of_a_program_is_limited_together() {
    let code = "import os, time\n\
        for _ in range(3):\n    \
            if os.fork() == 0: break\n\
        held = bytearray(b'x') * (100 << 20)\n\
        time.sleep(60)\n";
    let place = Place::new();

    let ran =
        limited(&place, CodeLimits::builder().total_memory(200 << 20).build()).run("python3", code).await.unwrap();

    let stopped = ran.stopped.unwrap_or_default();
    assert!(stopped.contains("bytes of memory together, of at most 209715200, and were killed"), "{stopped}");
}

/// A program that leaves behind all that is hard to read. Its names must be in the notes.
const LEAVES: &str = "import os\n\
    os.mkdir('closed', 0)\n\
    os.mkdir('blind', 0o300)\n\
    open('blind/inner', 'w').write('seen')\n\
    os.mkdir(os.environ['TMPDIR'] + '/closed', 0)\n\
    os.close(os.open('unreadable', os.O_CREAT | os.O_WRONLY, 0))\n\
    os.symlink('loop', 'loop')\n\
    open(b'odd\\xff', 'w').write('x')\n\
    try: os.mkfifo('pipe')\n\
    except PermissionError: pass\n\
    for n in range(100): os.mkdir('deep'); os.chdir('deep')\n\
    open('bottom', 'w').write('x')\n\
    print('done')\n";

async fn run_that_leaves_unreadable_files() -> Ran {
    let place = Place::new();

    let ran = runner(&place).run("python3", LEAVES).await.unwrap();

    assert_eq!((ran.exit_code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    let notes = ran.notes.join("\n");
    for name in ["odd\u{fffd}`: its name is not UTF-8", "deep/deep`: it is nested too deep"] {
        assert!(notes.contains(name), "{name}: {notes}");
    }
    let own = std::fs::read_dir(place.folder.path()).unwrap().flatten();
    let own: Vec<_> = own.filter(|entry| entry.file_name().to_string_lossy().starts_with(".positronic-")).collect();
    assert!(own.is_empty(), "{own:?}");
    place.folder.write("closed/note.md", b"hello").unwrap();
    let next = runner(&place).run("sh", "cat closed/note.md blind/inner").await.unwrap();
    assert_eq!((next.stdout.as_str(), next.exit_code), ("helloseen", Some(0)), "{next:?}");
    assert!(place.files().contains(&"blind/inner".to_owned()));
    ran
}

#[tokio::test]
async fn files_that_a_program_makes_unreadable_are_named_and_its_result_is_kept() {
    run_that_leaves_unreadable_files().await;
}

#[tokio::test]
async fn files_that_a_program_of_an_ordinary_user_makes_unreadable_are_named() {
    if !is_ordinary_user("rooms::files_that_a_program_of_an_ordinary_user_makes_unreadable_are_named") {
        return;
    }
    let notes = run_that_leaves_unreadable_files().await.notes.join("\n");
    for name in ["`closed`: it could not be read", "`blind`: it could not be read", "`unreadable`"] {
        assert!(notes.contains(name), "{name}: {notes}");
    }
}

/// Returns whether this process is not root. For root, the test runs again as another user, if that is possible.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn is_ordinary_user(test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    // The user may not reach the folder of the test program.
    let place = tempfile::TempDir::new().unwrap();
    let program = place.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut again = Command::new("setpriv");
    match again.args(user).arg(program).args(["--exact", test]).env("TMPDIR", "/tmp").output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}{output:?}");
        }
        Err(error) => eprintln!("skipped: `setpriv` cannot run the test as another user: {error}"),
    }
    false
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn blocks_beyond_the_end_of_a_file_are_refused_and_others_allowed() {
    let place = Place::new();
    if !runner(&place).missing_protections().is_empty() {
        return;
    }
    let code = "fallocate --length 1000 a && fallocate --keep-size --length 1000000 a; echo $?; stat -c %b a";

    let ran = runner(&place).run("sh", code).await.unwrap();

    assert!(ran.stdout.starts_with("1\n"), "{ran:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_that_the_author_lets_programs_read_cannot_be_locked() {
    let place = Place::new();
    if !runner(&place).missing_protections().is_empty() {
        return;
    }
    let locks = |path: &str| {
        format!(
            "import fcntl\nfcntl.flock(open('{path}', 'a+' if '{path}' == 'own' else 'r'), fcntl.LOCK_EX)\nprint('locked')"
        )
    };
    let options = CodeOptions::builder().readable(vec![place.secret().into()]).build();

    let own = runner(&place).run("python3", &locks("own")).await.unwrap();
    let read = CodeRunner::new(&place.folder, options).run("python3", &locks(&place.secret())).await.unwrap();

    assert_eq!(own.stdout, "locked\n", "{own:?}");
    assert!(read.stdout.is_empty() && read.stderr.contains("PermissionError"), "{read:?}");
}

#[test]
fn listing_names_what_it_skips() {
    let place = Place::new();
    let deep: String = "d/".repeat(70);
    std::fs::create_dir_all(place.folder.path().join(&deep)).unwrap();
    std::fs::write(place.folder.path().join(deep).join("bottom"), "x").unwrap();

    let entries = OutputFolder::open(place.folder.path()).unwrap().list(None).unwrap();

    let skipped: Vec<_> = entries.iter().filter_map(|entry| entry.skipped).collect();
    assert_eq!((entries.len(), skipped), (64, vec!["it is nested too deep"]));
}
