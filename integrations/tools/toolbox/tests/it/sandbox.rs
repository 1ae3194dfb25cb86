//! `run_code`: programs are confined to their folder, and end with all their child processes.

use std::time::Duration;

use positronic_core::model::scripted::Reply;
use positronic_toolbox::{self as toolbox, CodeLimits, CodeOptions, CodeRunner, FolderOptions, OnMissing, Protection};
use serde_json::{Value, json};

use crate::code::{limited, runner};
use crate::desk::{Place, desk};
use crate::support::Play;

/// Returns whether this machine supports all of these restrictions. If it does not, the test is skipped, and
/// `available_kernel_features_are_used` checks that there is a reason.
fn is_supported(protections: &[Protection]) -> bool {
    let missing = runner(&Place::new()).missing_protections();
    protections.iter().all(|protection| !missing.contains(protection))
}

/// Counts the processes with this word as an argument; a substring would match unrelated processes.
fn processes_with(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| [0, b' '].contains(byte)).any(|part| part == word.as_bytes())).count()
}

/// Waits until no process has a word in its command line.
async fn all_gone(word: &str) {
    for _ in 0..800 {
        if processes_with(word) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{} processes are left", processes_with(word));
}

/// Waits until a program has created the file `begun`.
async fn begun(place: &Place) {
    for _ in 0..1000 {
        if place.files().contains(&"begun".to_owned()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the program has not begun");
}

#[tokio::test]
async fn program_inherits_no_environment() {
    let place = Place::new();
    let options = CodeOptions::builder().environment(vec![("GREETING".to_owned(), "hello".to_owned())]).build();

    let ran =
        CodeRunner::new(&place.folder, options).run("sh", "env | cut -d= -f1 | sort | tr '\\n' ' '").await.unwrap();

    let mut names: Vec<_> = ran.stdout.split_whitespace().collect();
    names.retain(|name| !matches!(*name, "PWD" | "OLDPWD" | "SHLVL" | "_"));
    assert_eq!(names, ["GREETING", "HOME", "LANG", "PATH", "TMPDIR"]);
}

#[tokio::test]
async fn no_files_outside_the_folder_are_read_or_written() {
    if !is_supported(&[Protection::Files]) {
        return;
    }
    let place = Place::new();
    std::os::unix::fs::symlink(place.outside.path(), place.folder.path().join("link")).unwrap();
    let secret = place.secret();
    let code = format!(
        "import os\n\
        def tried(what):\n\
        \x20   try: print('did it:', what())\n\
        \x20   except OSError: print('refused')\n\
        tried(lambda: open({secret:?}).read())\n\
        tried(lambda: open('../secret.txt').read())\n\
        tried(lambda: open('link/secret.txt').read())\n\
        tried(lambda: os.listdir('/'))\n\
        tried(lambda: open('/etc/passwd').read())\n\
        tried(lambda: open('/proc/%d/environ' % os.getppid()).read())\n\
        tried(lambda: open('/tmp/positronic-escaped', 'w'))\n\
        tried(lambda: os.truncate({secret:?}, 0))\n\
        tried(lambda: os.rename({secret:?}, 'mine.txt'))\n\
        tried(lambda: os.link({secret:?}, 'mine.txt'))\n\
        tried(lambda: os.unlink({secret:?}))\n\
        tried(lambda: os.mknod('disk', 0o60600, os.makedev(8, 0)))\n\
        os.mkdir('sub'); open('sub/a', 'w'); os.rename('sub/a', 'b'); print('the folder is its own')\n"
    );

    let ran = runner(&place).run("python3", &code).await.unwrap();

    let refused = "refused\n".repeat(12);
    assert_eq!(ran.stdout, format!("{refused}the folder is its own\n"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(place.outside.path().join("secret.txt")).unwrap(), "the secret");
}

#[tokio::test]
async fn program_has_no_network() {
    if !is_supported(&[Protection::Network]) {
        return;
    }
    let place = Place::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let code = format!(
        "import socket\n\
        for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):\n\
        \x20   try: socket.socket(family); print('a socket')\n\
        \x20   except OSError as error: print(error.strerror)\n\
        one, other = socket.socketpair(); one.send(b'a pair is its own'); print(other.recv(20).decode())\n\
        try: socket.create_connection(('127.0.0.1', {port})); print('connected')\n\
        except OSError as error: print(error.strerror)\n"
    );

    let ran = runner(&place).run("python3", &code).await.unwrap();

    let refused = "Operation not permitted\n";
    assert_eq!(ran.stdout, format!("{}a pair is its own\n{refused}", refused.repeat(3)), "{}", ran.stderr);
}

#[tokio::test]
async fn other_processes_are_unreachable_and_root_has_no_privileges() {
    if !is_supported(&[Protection::Processes]) {
        return;
    }
    let place = Place::new();
    let code = format!(
        "import os, ctypes\n\
        try: os.kill({}, 0); print('reached it')\n\
        except OSError as error: print(error.strerror)\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        for call in (lambda: libc.ptrace(16, {}, 0, 0), lambda: libc.unshare(0x10000000), lambda: libc.chroot(b'.'), lambda: os.setsid()):\n\
        \x20   try: print(call() or 'did it')\n\
        \x20   except OSError as error: print(error.strerror)\n\
        print(open('/dev/null').read() == '')\n",
        std::process::id(),
        std::process::id()
    );

    let ran = runner(&place).run("python3", &code).await.unwrap();

    assert_eq!(ran.stdout, "Operation not permitted\n-1\n-1\n-1\nOperation not permitted\nTrue\n", "{}", ran.stderr);
}

#[tokio::test]
async fn timeout_kills_grandchildren_and_keeps_the_output() {
    let place = Place::new();
    let limits = CodeLimits::builder().time(Duration::from_millis(1500)).build();
    // In the background, orphaned, and ignoring every ignorable signal.
    let code = "echo begun\ntrap '' TERM HUP INT\n(sh -c 'sleep 7341 & sleep 7341' &)\nsleep 7341\n";

    let ran = limited(&place, limits).run("sh", code).await.unwrap();

    assert_eq!(ran.exit_code, None);
    assert_eq!(
        ran.stopped.as_deref(),
        Some("the program took longer than 1.5s, and was killed with all its processes")
    );
    assert_eq!(ran.stdout, "begun\n");
    all_gone("7341").await;
}

#[tokio::test]
async fn background_processes_end_with_the_program() {
    let place = Place::new();

    let ran = runner(&place).run("sh", "sleep 7342 & sleep 7342 & echo done").await.unwrap();

    assert_eq!((ran.exit_code, &*ran.stdout), (Some(0), "done\n"), "the call does not wait for background processes");
    all_gone("7342").await;
}

#[tokio::test]
async fn process_cannot_leave_its_group() {
    if !is_supported(&[Protection::Group]) {
        return;
    }
    let place = Place::new();
    let code = "import os, subprocess\n\
        for leave in (os.setsid, lambda: os.setpgid(0, 0)):\n\
        \x20   if os.fork() == 0:\n\
        \x20       try: leave()\n\
        \x20       except PermissionError: os.write(1, b'stays\\n')\n\
        \x20       os.execlp('sleep', 'sleep', '7343')\n\
        import time; time.sleep(0.3)\n";

    let ran = runner(&place).run("python3", code).await.unwrap();

    assert_eq!(ran.stdout, "stays\nstays\n", "{}", ran.stderr);
    all_gone("7343").await;
}

#[tokio::test]
async fn dropping_the_call_kills_the_group() {
    let place = Place::new();
    let runner = runner(&place);
    let running = tokio::spawn(async move { runner.run("sh", "sleep 7344 & touch begun; sleep 7344").await });
    begun(&place).await;
    while processes_with("7344") < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    running.abort();

    all_gone("7344").await;
}

#[tokio::test]
async fn cancelling_the_run_kills_the_group() {
    let place = Place::new();
    let code = CodeRunner::new(&place.folder, CodeOptions::builder().unattended(["sh"]).build());
    let play = Play::new([Reply::call("run_code", json!({"language": "sh", "code": "touch begun; sleep 7345"}))]);
    let run = play.start(&desk::<Value>(move || vec![toolbox::run_code(&code)]), ()).await;
    begun(&place).await;

    run.cancel("enough").await.unwrap();

    all_gone("7345").await;
}

#[tokio::test]
async fn memory_time_files_and_file_size_are_limited() {
    if !is_supported(&[Protection::Resources]) {
        return;
    }
    let place = Place::with(FolderOptions::builder().max_file(100_000).build());
    let limits = CodeLimits::builder().memory(256 << 20).cpu_seconds(1).open_files(20).build();
    let runner = limited(&place, limits);

    let hungry = runner.run("python3", "x = bytearray(1 << 30)").await.unwrap();
    assert!(hungry.stderr.contains("MemoryError"), "{hungry:?}");

    let busy = runner.run("python3", "while True: pass").await.unwrap();
    assert_eq!(busy.stopped.as_deref(), Some("the program used more than 1 seconds of processor time"));

    let open = runner.run("python3", "files = [open('/dev/null') for _ in range(30)]").await.unwrap();
    assert!(open.stderr.contains("Too many open files"), "{open:?}");

    let large = runner.run("python3", "open('large', 'wb').write(bytes(200_000))").await.unwrap();
    assert!(large.stderr.contains("File too large"), "{large:?}");
    let endless = runner.run("sh", "exec cat /dev/zero > endless").await.unwrap();
    assert_eq!(endless.stopped.as_deref(), Some("the program wrote a larger file than it may"), "{endless:?}");
}

#[tokio::test]
async fn number_of_processes_is_limited() {
    if !is_supported(&[Protection::Count]) {
        return;
    }
    let place = Place::new();
    let runner = limited(&place, CodeLimits::builder().processes(8).build());

    let few = runner.run("sh", "for n in 1 2 3 4; do sleep 0.1 & done; wait; echo well").await.unwrap();
    assert_eq!((few.stopped, &*few.stdout), (None, "well\n"), "{}", few.stderr);

    let code = "import subprocess\n\
        begun = []\n\
        try:\n\
        \x20   while len(begun) < 40: begun.append(subprocess.Popen(['sleep', '7346']))\n\
        except OSError as error: print(len(begun), error.strerror)\n";
    let many = runner.run("python3", code).await.unwrap();
    // By the kernel, or by the library's own count.
    let stopped = "the program had more than 8 processes, and was killed with all of them";
    let is_limited = many.stdout == "7 Resource temporarily unavailable\n" || many.stopped.as_deref() == Some(stopped);
    assert!(is_limited, "{many:?}");
    all_gone("7346").await;
}

#[cfg(target_os = "linux")]
#[test]
fn available_kernel_features_are_used() {
    use landlock::{
        ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetError, Scope,
    };

    let asked = || {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let rules = rules.handle_access(AccessFs::from_all(ABI::V6))?.scope(Scope::from_all(ABI::V6))?.create()?;
        rules.restrict_self().map(|_| ())
    };
    let landlock: Result<(), RulesetError> = std::thread::spawn(asked).join().unwrap();
    let filters = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    let missing = runner(&Place::new()).missing_protections();

    if landlock.is_ok() {
        assert!(!missing.contains(&Protection::Files), "{missing:?}");
    }
    if filters.contains("errno") {
        assert!(!missing.contains(&Protection::Network) && !missing.contains(&Protection::Group), "{missing:?}");
    }
    if landlock.is_ok() && filters.contains("errno") {
        assert!(!missing.contains(&Protection::Processes), "{missing:?}");
    }
    assert!(!missing.contains(&Protection::Resources), "every Linux has them");
}

/// Works on a thread that sees a kernel with neither Landlock nor seccomp filters.
#[cfg(target_os = "linux")]
fn on_an_old_kernel<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    use std::collections::BTreeMap;

    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

    let thread = std::thread::spawn(move || {
        let calls = [libc::SYS_landlock_create_ruleset, libc::SYS_seccomp];
        let rules: BTreeMap<_, _> = calls.into_iter().map(|call| (call, vec![])).collect();
        let refuse = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
        let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let filter: BpfProgram =
            SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).unwrap().try_into().unwrap();
        apply_filter(&filter).unwrap();
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    });
    thread.join().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn result_names_restrictions_that_an_old_kernel_lacks() {
    let place = Place::new();
    let (runner, secret) = (runner(&place), place.secret());

    let ran = on_an_old_kernel(async move { runner.run("sh", &format!("cat {secret}")).await.unwrap() });

    assert_eq!(ran.stdout, "the secret", "the program is unrestricted");
    assert_eq!(
        ran.not_enforced,
        [Protection::Files, Protection::Network, Protection::Group, Protection::Processes],
        "limits, counts and another user need neither"
    );
    let notes = ran.to_json()["notes"].to_string();
    assert!(
        notes.contains("not enforced on this machine: the program could reach files outside the folder"),
        "{notes}"
    );
    assert!(notes.contains("not enforced on this machine: the program could reach the network"), "{notes}");
}

#[cfg(target_os = "linux")]
#[test]
fn program_without_landlock_gets_no_capability_to_reach_its_folder() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new();
    std::fs::set_permissions(place.outside.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let runner = runner(&place);

    let ran = on_an_old_kernel(async move { runner.run("sh", "id -u").await.unwrap() });

    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(ran.not_enforced.contains(&Protection::User), is_root, "{ran:?}");
    assert_eq!(ran.stdout == "0\n", is_root, "{ran:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn author_can_require_every_restriction() {
    let place = Place::new();
    let options = CodeOptions::builder().on_missing(OnMissing::Refuse).build();
    let runner = CodeRunner::new(&place.folder, options);

    let error = on_an_old_kernel(async move { runner.run("sh", "touch ran").await.unwrap_err().to_string() });

    assert!(error.contains("the program was not run") && error.contains("could reach the network"), "{error}");
    assert!(place.files().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn group_ends_on_an_old_kernel_too() {
    let place = Place::new();
    let limits = CodeLimits::builder().time(Duration::from_millis(800)).build();
    let runner = limited(&place, limits);

    let ran = on_an_old_kernel(async move { runner.run("sh", "(sh -c 'sleep 7347' &); sleep 7347").await.unwrap() });

    assert!(ran.stopped.is_some());
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(all_gone("7347"));
}

/// The next test runs this one in its own process and kills it.
#[tokio::test]
#[ignore = "is a part of another test"]
async fn killed_process() {
    let place = Place::new();
    runner(&place).run("sh", "sleep 7348 & sleep 7348").await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn group_ends_with_its_parent_even_by_kill_9() {
    let me = std::env::current_exe().unwrap();
    let mut other = std::process::Command::new(me)
        .args(["--ignored", "--exact", "sandbox::killed_process"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..1000 {
        if processes_with("7348") == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(processes_with("7348"), 2, "the program has begun");

    other.kill().unwrap();
    other.wait().unwrap();

    all_gone("7348").await;
}
