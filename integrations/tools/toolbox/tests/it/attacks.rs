//! Attacks from inside a program: each is refused, and nothing outside the folder changes.
//!
//! If this test runs as root, a program runs twice: as root, and as `nobody`, by a thread that has become that
//! user.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use positronic_toolbox::{CodeLimits, CodeOptions, CodeRunner, Ran};
use rustix::fs::{Gid, Uid};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::desk::Place;

const NOBODY: u32 = 65_534;

/// The user that runs the program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Me,
    Nobody,
}

impl Who {
    fn all() -> &'static [Self] {
        if geteuid().is_root() { &[Self::Me, Self::Nobody] } else { &[Self::Me] }
    }

    /// Creates a folder of this user, and a folder `shown` next to it whose file any user may write.
    fn place(self) -> (Place, PathBuf) {
        let place = Place::new();
        let shown = place.outside.path().join("shown");
        std::fs::create_dir(&shown).unwrap();
        std::fs::write(shown.join("victim"), "as it was").unwrap();
        std::fs::set_permissions(shown.join("victim"), Permissions::from_mode(0o666)).unwrap();
        if self == Self::Nobody {
            let inside = [place.outside.path(), place.folder.path(), &shown, &shown.join("victim")];
            for path in inside {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        (place, shown)
    }

    /// Runs a program as this user.
    fn run(self, place: &Place, options: CodeOptions, language: &str, code: &str) -> Ran {
        let runner = CodeRunner::new(&place.folder, options);
        let work = || {
            if self == Self::Nobody {
                let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
                set_thread_groups(&[]).unwrap();
                set_thread_res_gid(gid, gid, gid).unwrap();
                set_thread_res_uid(uid, uid, uid).unwrap();
                set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(runner.run(language, code)).unwrap()
        };
        std::thread::scope(|scope| scope.spawn(work).join().unwrap())
    }
}

/// Returns whether this machine supports every restriction.
fn is_fully_supported(ran: &Ran) -> bool {
    ran.not_enforced.is_empty()
}

/// Returns all metadata of a file: any change updates the last field.
fn known(path: &Path) -> (u32, u32, u32, u64, String, i64, i64, i64) {
    let known = std::fs::metadata(path).unwrap();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    (known.mode(), known.uid(), known.gid(), known.nlink(), text, known.mtime_nsec(), known.ctime(), known.ctime_nsec())
}

/// System calls by name and number, with arguments in Python. `victim` is a file outside, `fd` the same file open for
/// reading, `me` the process of this test.
fn attacks() -> Vec<(&'static str, i64, &'static str)> {
    let mut attacks = vec![
        // Metadata by path, by directory and path, by descriptor.
        ("fchmodat", libc::SYS_fchmodat, "-100, victim, 0o4777"),
        ("fchmodat of a mode without such bits", libc::SYS_fchmodat, "-100, victim, 0o777"),
        ("fchmodat2", 452, "-100, victim, 0o4777, 0"),
        ("fchmodat2 of a descriptor", 452, "fd, b'', 0o777, 0x1000"),
        ("fchmod", libc::SYS_fchmod, "fd, 0o4777"),
        ("fchmod of a mode without such bits", libc::SYS_fchmod, "fd, 0o777"),
        ("fchmodat through /proc", libc::SYS_fchmodat, "-100, b'/proc/self/fd/%d' % fd, 0o777"),
        ("fchownat", libc::SYS_fchownat, "-100, victim, os.getuid(), os.getgid(), 0"),
        ("fchown", libc::SYS_fchown, "fd, os.getuid(), os.getgid()"),
        ("utimensat", libc::SYS_utimensat, "-100, victim, 0, 0"),
        ("utimensat with times", libc::SYS_utimensat, "-100, victim, zeros, 0"),
        ("utimensat of a descriptor", libc::SYS_utimensat, "fd, 0, 0, 0"),
        ("setxattr", libc::SYS_setxattr, "victim, b'user.x', b'1', 1, 0"),
        ("lsetxattr", libc::SYS_lsetxattr, "victim, b'user.x', b'1', 1, 0"),
        ("fsetxattr", libc::SYS_fsetxattr, "fd, b'user.x', b'1', 1, 0"),
        ("setxattrat", 463, "-100, victim, 0, b'user.x', zeros, 16"),
        ("file_setattr", 469, "-100, victim, zeros, 24, 0"),
        ("ioctl FS_IOC_SETFLAGS", libc::SYS_ioctl, "fd, 0x40086602, zeros"),
        ("ioctl FS_IOC_FSSETXATTR", libc::SYS_ioctl, "fd, 0x401c5820, zeros"),
        ("fcntl F_SETLEASE", libc::SYS_fcntl, "fd, 1024, 0"),
        ("truncate", libc::SYS_truncate, "victim, 0"),
        ("linkat", libc::SYS_linkat, "-100, victim, -100, b'mine', 0"),
        ("linkat of a descriptor", libc::SYS_linkat, "fd, b'', -100, b'mine', 0x1000"),
        ("openat2", 437, "-100, victim, zeros, 24"),
        ("name_to_handle_at", libc::SYS_name_to_handle_at, "-100, victim, zeros, zeros, 0"),
        ("inotify_add_watch", libc::SYS_inotify_add_watch, "0, b'/', 0x100"),
        // Set-user-ID programs in the folder.
        ("openat with a set-user-ID bit", libc::SYS_openat, "-100, b'own', 0o102, 0o4755"),
        ("openat with a set-group-ID bit", libc::SYS_openat, "-100, b'own', 0o102, 0o2755"),
        ("O_TMPFILE with a set-user-ID bit", libc::SYS_openat, "-100, b'.', 0o20200002, 0o4755"),
        ("fchmodat of a file of its own", libc::SYS_fchmodat, "-100, b'kept', 0o4755"),
        ("mknodat of a device", libc::SYS_mknodat, "-100, b'disk', 0o60600, 0x800"),
        // Other processes.
        ("kill", libc::SYS_kill, "me, 0"),
        ("tgkill", libc::SYS_tgkill, "me, me, 0"),
        ("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo, "me, 0, zeros"),
        ("pidfd_send_signal", libc::SYS_pidfd_send_signal, "os.pidfd_open(me), 0, 0, 0"),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, "os.pidfd_open(me), 0, 0"),
        ("fcntl F_SETOWN", libc::SYS_fcntl, "0, 8, me"),
        ("ioctl FIOSETOWN", libc::SYS_ioctl, "0, 0x8901, zeros"),
        ("ptrace", libc::SYS_ptrace, "16, me, 0, 0"),
        ("process_vm_readv", libc::SYS_process_vm_readv, "me, zeros, 1, zeros, 1, 0"),
        ("process_vm_writev", libc::SYS_process_vm_writev, "me, zeros, 1, zeros, 1, 0"),
        ("kcmp", libc::SYS_kcmp, "me, os.getpid(), 0, 0, 0"),
        ("prlimit64", libc::SYS_prlimit64, "me, 7, 0, zeros"),
        ("setpriority", libc::SYS_setpriority, "0, me, 5"),
        ("setpriority of a user", libc::SYS_setpriority, "2, 0, 19"),
        ("sched_setscheduler", libc::SYS_sched_setscheduler, "me, 3, zeros"),
        ("sched_setattr", libc::SYS_sched_setattr, "me, zeros, 0"),
        ("sched_setaffinity", libc::SYS_sched_setaffinity, "me, 8, b'\\1' + bytes(7)"),
        ("ioprio_set", libc::SYS_ioprio_set, "1, me, 0x6000"),
        ("clone with CLONE_PARENT", libc::SYS_clone, "0x8000 | 17, 0, 0, 0, 0"),
        ("clone with a user namespace", libc::SYS_clone, "0x10000000 | 17, 0, 0, 0, 0"),
        ("clone3", libc::SYS_clone3, "zeros, 64"),
        ("setsid", libc::SYS_setsid, ""),
        ("setpgid", libc::SYS_setpgid, "0, 0"),
        ("prctl PR_SET_PTRACER", libc::SYS_prctl, "0x59616d61, me, 0, 0, 0"),
        ("prctl PR_SET_CHILD_SUBREAPER", libc::SYS_prctl, "36, 1, 0, 0, 0"),
        // Sockets, queues, shared memory.
        ("socket", libc::SYS_socket, "1, 1, 0"),
        ("socketpair of datagrams", libc::SYS_socketpair, "1, 2, 0, zeros"),
        ("socketpair of raw datagrams", libc::SYS_socketpair, "1, 3, 0, zeros"),
        ("socketpair of packets", libc::SYS_socketpair, "1, 5, 0, zeros"),
        ("socketpair of another family", libc::SYS_socketpair, "30, 1, 0, zeros"),
        ("shmget", libc::SYS_shmget, "0x7531, 4096, 0o1666"),
        ("msgget", libc::SYS_msgget, "0x7531, 0o1666"),
        ("semget", libc::SYS_semget, "0x7531, 1, 0o1666"),
        ("mq_open", libc::SYS_mq_open, "b'positronic', 0o102, 0o600, 0"),
        ("memfd_create", libc::SYS_memfd_create, "b'x', 0"),
        // The kernel.
        ("unshare", libc::SYS_unshare, "0x10000000"),
        ("setns", libc::SYS_setns, "fd, 0"),
        ("chroot", libc::SYS_chroot, "b'.'"),
        ("mount", libc::SYS_mount, "b'none', b'.', b'tmpfs', 0, 0"),
        ("open_tree", libc::SYS_open_tree, "-100, b'.', 1"),
        ("io_uring_setup", libc::SYS_io_uring_setup, "1, bytes(120)"),
        ("bpf", libc::SYS_bpf, "0, zeros, 64"),
        ("perf_event_open", libc::SYS_perf_event_open, "zeros, 0, -1, -1, 0"),
        ("userfaultfd", libc::SYS_userfaultfd, "1"),
        ("keyctl", libc::SYS_keyctl, "0, -3, 0, 0, 0"),
        ("add_key", libc::SYS_add_key, "b'user', b'x', b'1', 1, -3"),
        ("personality", libc::SYS_personality, "0x0040000"),
        ("setresuid", libc::SYS_setresuid, "0, 0, 0"),
        ("setgroups", libc::SYS_setgroups, "0, 0"),
        ("capset", libc::SYS_capset, "zeros, zeros"),
        ("seccomp", libc::SYS_seccomp, "2, 0, zeros"),
    ];
    #[cfg(target_arch = "x86_64")]
    attacks.extend([
        ("chmod", libc::SYS_chmod, "victim, 0o4777"),
        ("chmod by its number of the x32 interface", libc::SYS_chmod | 0x4000_0000, "victim, 0o4777"),
        ("chown", libc::SYS_chown, "victim, os.getuid(), os.getgid()"),
        ("lchown", libc::SYS_lchown, "victim, os.getuid(), os.getgid()"),
        ("utime", libc::SYS_utime, "victim, 0"),
        ("utimes", libc::SYS_utimes, "victim, 0"),
        ("futimesat", libc::SYS_futimesat, "-100, victim, 0"),
        ("open with a set-user-ID bit", libc::SYS_open, "b'own', 0o102, 0o4755"),
        ("creat with a set-user-ID bit", libc::SYS_creat, "b'own', 0o4755"),
    ]);
    attacks
}

#[test]
fn system_calls_that_reach_outside_the_folder_are_refused() {
    for who in Who::all() {
        let (place, shown) = who.place();
        place.folder.write("kept", b"").unwrap();
        let victim = shown.join("victim");
        let before = known(&victim);
        let mut code = format!(
            "import ctypes, errno, os\n\
            libc = ctypes.CDLL(None, use_errno=True)\n\
            libc.syscall.restype = ctypes.c_long\n\
            victim, me, zeros = {:?}.encode(), {}, bytes(256)\n\
            fd = os.open(victim, os.O_RDONLY)\n\
            def attack(name, number, *arguments):\n\
            \x20   pid = os.getpid()\n\
            \x20   result = libc.syscall(ctypes.c_long(number), *[one if isinstance(one, bytes) else ctypes.c_long(one) for one in arguments])\n\
            \x20   if os.getpid() != pid: os._exit(0)\n\
            \x20   error = errno.errorcode.get(ctypes.get_errno())\n\
            \x20   if result != -1 or error not in ('EPERM', 'ENOSYS', 'EACCES', 'ENOTSUP', 'EXDEV'):\n\
            \x20       print(name, 'got through:', result, error)\n",
            victim.display().to_string(),
            std::process::id(),
        );
        for (name, number, arguments) in attacks() {
            writeln!(code, "attack({name:?}, {number}, {arguments})").unwrap();
        }
        code.push_str("print('tried all')\n");

        let ran = who.run(&place, CodeOptions::builder().readable(vec![shown]).build(), "python3", &code);

        if is_fully_supported(&ran) {
            assert_eq!(ran.stdout, "tried all\n", "{who:?}: {}", ran.stderr);
            assert_eq!(known(&victim), before, "{who:?}");
            assert!(ran.files.is_empty(), "{who:?}: {:?}", ran.files);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn system_call_number_of_another_architecture_ends_the_program() {
    // `mov eax, 20; int 0x80; ret`: getpid, as 32-bit programs call it.
    let code = "import ctypes, mmap\n\
        code = mmap.mmap(-1, 4096, prot=7)\n\
        code.write(bytes.fromhex('b814000000cd80c3'))\n\
        print('before', flush=True)\n\
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()\n\
        print('after')\n";
    for who in Who::all() {
        let (place, _) = who.place();

        let ran = who.run(&place, CodeOptions::default(), "python3", code);

        if is_fully_supported(&ran) {
            assert_eq!((&*ran.stdout, ran.exit_code), ("before\n", None), "{who:?}: {ran:?}");
        }
    }
}

#[test]
fn root_program_cannot_leave_the_folder() {
    let code = "cp /bin/sh mine; chmod 4755 mine || echo refused\n\
        chmod 6755 mine || echo refused; install -m 4755 /bin/sh mine2 2>/dev/null || echo refused\n";
    for who in Who::all() {
        let (place, _) = who.place();

        let ran = who.run(&place, CodeOptions::default(), "sh", code);

        if is_fully_supported(&ran) {
            assert_eq!(ran.stdout, "refused\n".repeat(3), "{who:?}: {}", ran.stderr);
            for entry in std::fs::read_dir(place.folder.path()).unwrap().flatten() {
                assert_eq!(entry.metadata().unwrap().mode() & 0o6000, 0, "{who:?}: {:?}", entry.path());
            }
        }
    }
}

#[test]
fn root_program_runs_as_another_user_and_its_files_return_to_their_owners() {
    if !geteuid().is_root() {
        return;
    }
    let (place, _) = Who::Me.place();
    for name in ["mine", "others", "dir/.hidden/deep"] {
        place.folder.write(name, b"text").unwrap();
    }
    let inside = |name: &str| place.folder.path().join(name);
    chown(inside("others"), Some(1234), Some(2345)).unwrap();
    let code = "id -u; cat mine; echo more >> mine; echo more >> others; echo more >> dir/.hidden/deep\n\
        touch mine made; chmod 600 made; mkdir -p new/dir; ln -s /etc/passwd link\n";

    let ran = Who::Me.run(&place, CodeOptions::default(), "sh", code);

    if !is_fully_supported(&ran) {
        return;
    }
    let (id, rest) = ran.stdout.split_once('\n').unwrap();
    assert!(id != "0" && rest == "text", "{ran:?}");
    assert_eq!(ran.exit_code, Some(0), "{}", ran.stderr);
    let owner = |name: &str| (inside(name).metadata().unwrap().uid(), inside(name).metadata().unwrap().gid());
    for name in ["", "mine", "made", "new", "new/dir", "dir/.hidden/deep"] {
        assert_eq!(owner(name), (0, 0), "{name}");
    }
    let link = inside("link").symlink_metadata().unwrap();
    assert_eq!((link.uid(), link.gid()), (0, 0), "the link itself");
    assert_eq!(owner("others"), (1234, 2345));
    assert_eq!(std::fs::read_to_string(inside("others")).unwrap(), "textmore\n");
}

#[test]
fn file_with_a_hard_link_outside_is_not_lent() {
    if !geteuid().is_root() {
        return;
    }
    let (place, shown) = Who::Me.place();
    std::fs::set_permissions(shown.join("victim"), Permissions::from_mode(0o600)).unwrap();
    std::fs::hard_link(shown.join("victim"), place.folder.path().join("link")).unwrap();
    let before = known(&shown.join("victim"));

    let ran = Who::Me.run(&place, CodeOptions::default(), "sh", "chmod 666 link || echo x > link || echo refused");

    if is_fully_supported(&ran) {
        assert_eq!(ran.stdout, "refused\n");
        assert_eq!(known(&shown.join("victim")), before);
    }
}

#[test]
fn program_inherits_no_descriptors_of_this_process() {
    let (place, shown) = Who::Me.place();
    let held = std::fs::File::open(shown.join("victim")).unwrap();
    fcntl_setfd(&held, FdFlags::empty()).unwrap();
    let code = "import os\n\
        for fd in range(3, 4096):\n\
        \x20   try: print(fd, os.fstat(fd))\n\
        \x20   except OSError: pass\n";

    let ran = Who::Me.run(&place, CodeOptions::default(), "python3", code);

    assert_eq!((&*ran.stdout, ran.exit_code), ("", Some(0)), "{ran:?}");
    drop(held);
}

#[test]
fn common_programs_work() {
    let shell = "set -e\n\
        touch a; touch a; printf 'b\\na\\n' > b; sort b > c; cp b d; cp -r . ../x 2>/dev/null && exit 9; mv d e; ln -s e l; ln e h\n\
        mkdir -p x/y/z; tar cf t.tar b x; mkdir out; tar xmf t.tar -C out; gzip -k b 2>/dev/null || test $? = 2; gunzip -c b.gz | cmp - b\n\
        sed -i s/a/z/ b 2>/dev/null; grep -q z b; find . -name '*.tar' | xargs ls -l > list; awk '{print $1}' list | head -1 | tee f > /dev/null\n\
        seq 3 | wc -l; n=$(mktemp); rm \"$n\"; date > /dev/null; test -z \"$(diff b b)\"; (sleep 0.01 & wait); df . > /dev/null; du -s . > /dev/null\n\
        timeout 5 true; nice true; env -i true; rm -r out x; stat a > /dev/null; dd if=/dev/zero of=zeros bs=1k count=4 2>/dev/null; kill -0 $$; echo well\n";
    let python = "import asyncio, concurrent.futures, csv, json, os, shutil, signal, sqlite3, subprocess, tempfile, threading, time, zipfile\n\
        assert subprocess.run(['echo', 'a'], capture_output=True, text=True).stdout == 'a\\n'\n\
        assert subprocess.check_output('echo b | cat', shell=True) == b'b\\n'\n\
        async def sub():\n\
        \x20   made = await asyncio.create_subprocess_exec('echo', 'c', stdout=subprocess.PIPE)\n\
        \x20   return (await made.communicate())[0]\n\
        assert asyncio.run(sub()) == b'c\\n'\n\
        with concurrent.futures.ThreadPoolExecutor(4) as pool: assert list(pool.map(abs, [-1, -2])) == [1, 2]\n\
        db = sqlite3.connect('d.sqlite'); db.execute('create table t (x)'); db.execute('insert into t values (1)'); db.commit(); db.close()\n\
        with tempfile.TemporaryDirectory() as dir: open(dir + '/x', 'w').write('x')\n\
        open('f', 'w').write('f'); shutil.copyfile('f', 'g'); shutil.move('g', 'h'); os.replace('h', 'i')\n\
        with zipfile.ZipFile('z.zip', 'w') as z: z.write('f')\n\
        zipfile.ZipFile('z.zip').extractall('out'); shutil.rmtree('out')\n\
        child = os.fork()\n\
        if child == 0: time.sleep(60)\n\
        os.kill(child, signal.SIGTERM); assert os.waitpid(child, 0)[1] == signal.SIGTERM\n\
        signal.setitimer(signal.ITIMER_REAL, 10); os.nice(1); os.cpu_count(); os.sched_getaffinity(0)\n\
        print('well')\n";
    for who in Who::all() {
        for (language, code) in [("sh", shell), ("python3", python)] {
            let (place, _) = who.place();

            let ran = who.run(&place, CodeOptions::default(), language, code);

            assert!(ran.stdout.ends_with("well\n") && ran.exit_code == Some(0), "{who:?}: {ran:?}");
        }
    }
}

#[test]
fn own_files_can_be_touched_and_their_modes_changed_where_no_other_is_reachable() {
    let code = "import os\n\
        def tried(name, what):\n\
        \x20   try: what(); print(name)\n\
        \x20   except OSError as error: print(name, error.strerror)\n\
        fd = os.open('a', os.O_CREAT | os.O_RDWR)\n\
        tried('touch', lambda: os.utime(fd))\n\
        tried('times', lambda: os.utime(fd, (1, 1)))\n\
        tried('mode', lambda: os.chmod('a', 0o755))\n\
        tried('times by name', lambda: os.utime('a'))\n";
    for who in Who::all() {
        let (place, _) = who.place();

        let ran = who.run(&place, CodeOptions::default(), "python3", code);

        if is_fully_supported(&ran) {
            let mode = if geteuid().is_root() && *who == Who::Me { "mode" } else { "mode Operation not permitted" };
            let expected = format!("touch\ntimes\n{mode}\ntimes by name Operation not permitted\n");
            assert_eq!(ran.stdout, expected, "{who:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn endless_process_creation_is_stopped() {
    let limits = CodeLimits::builder().processes(10).build();
    for who in Who::all() {
        let (place, _) = who.place();
        let options = CodeOptions::builder().limits(limits.clone()).build();

        let ran = who.run(&place, options, "sh", "f() { f & f & wait; }; f 2>/dev/null; echo over");

        assert!(ran.exit_code.is_some() || ran.stopped.is_some(), "{who:?}: {ran:?}");
    }
}

#[test]
fn folder_below_a_root_only_directory_is_reached_by_one_capability() {
    if !geteuid().is_root() {
        return;
    }
    let (place, shown) = Who::Me.place();
    for path in [place.outside.path(), &shown] {
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    }
    std::fs::write(shown.join("private"), "for root").unwrap();
    std::fs::set_permissions(shown.join("private"), Permissions::from_mode(0o600)).unwrap();
    let tried = format!(
        "id -u; for file in {} {}; do cat $file 2>/dev/null || echo refused; done; cat {} 2>/dev/null; echo x > \"$PWD/made\" && cat made",
        place.secret(),
        "/etc/shadow",
        shown.join("private").display()
    );

    for (readable, private) in [(vec![], ""), (vec![shown.clone()], "for root")] {
        let options = CodeOptions::builder().readable(readable).build();
        let ran = Who::Me.run(&place, options, "sh", &tried);

        if is_fully_supported(&ran) {
            let (id, rest) = ran.stdout.split_once('\n').unwrap();
            assert_ne!(id, "0");
            assert_eq!(rest, format!("refused\nrefused\n{private}x\n"), "{ran:?}");
        }
    }
}
