//! The store: reading commands, `prune`, and damaged files.

use std::path::Path;

use serde_json::json;

use super::desk::{Desk, begun};
use crate::app::Project;
use crate::commands::tests::project;

#[test]
fn reading_commands_create_no_store() {
    let desk = Desk::new();

    for arguments in [&["runs"][..], &["inbox"], &["inbox", "--mail"], &["show", "one"], &["prune", "--before", "1d"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(desk.refused(arguments), @r"
            6
            error: no store found at desk/runs.db
              check --store and POSITRONIC_STORE; `run` and `import` create a missing store
            ");
        }
    }
    assert!(!Path::new(&desk.path("runs.db")).exists());
}

#[test]
#[cfg(unix)]
fn store_that_cannot_be_reached_is_not_a_missing_one() {
    let desk = Desk::new();
    // As in a folder that the user must not enter, which tests of a privileged user cannot have.
    std::os::unix::fs::symlink(desk.path("runs.db"), desk.path("runs.db")).unwrap();

    for arguments in [&["runs"][..], &["show", "one"], &["prune", "--before", "1d"], &["backup", "copy.db"]] {
        let refused = desk.refused(arguments);
        assert!(refused.starts_with("6\nerror: cannot open the store desk/runs.db: "), "{refused}");
        assert!(!refused.contains("no store found"), "{refused}");
    }
}

#[test]
fn prune_removes_only_ended_runs() {
    let desk = Desk::new();
    begun(&desk, "open");
    assert_eq!(desk.call(&project(), &["run", "survey", "--id", "over"]).code, 0);

    assert_eq!(desk.json(&["prune", "--before", "30d"])["runs"], json!([]));
    assert_eq!(desk.json(&["prune", "--before", "0s", "--dry-run"])["runs"], json!(["over"]));
    assert!(desk.refused(&["prune", "--before", "0s", "--status", "waiting"]).starts_with("2\n"));
    assert_eq!(desk.json(&["prune", "--before", "0s"])["removed"], 1);
    assert_eq!(desk.json(&["runs"])["run"], "open");
}

#[test]
fn invalid_store_is_reported() {
    let desk = Desk::new();
    std::fs::write(desk.path("runs.db"), "dear diary, today I went to the mountains and it was a good day").unwrap();

    let told = desk.refused(&["runs"]);
    assert!(told.starts_with("6\nerror: `desk/runs.db` is not an event store"), "{told}");
    assert_eq!(desk.call(&project(), &["run", "survey"]).code, 6);
}

#[test]
fn folder_is_refused_as_a_store() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("runs.db")).unwrap();

    for arguments in [&["runs"][..], &["show", "one"], &["approve", "one"], &["pause", "one"]] {
        let told = desk.refused(arguments);
        assert!(told.starts_with("6\nerror: `desk/runs.db` is a folder, not an event store"), "{told}");
    }
}

#[test]
fn reading_commands_do_not_write() {
    let desk = Desk::new();
    let path = desk.path("runs.db");
    std::fs::write(&path, "").unwrap();

    for arguments in [&["runs"][..], &["inbox"], &["show", "one"], &["watch", "one"], &["state", "one"]] {
        let looked = desk.call(&Project::new(), arguments);
        assert_eq!(looked.code, 6, "{arguments:?}: an empty file is no store");
        assert!(
            looked.err.contains("the file is empty") && looked.err.contains("create a store in this one"),
            "{}",
            looked.err
        );
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "{arguments:?} made one of it");
    }
    begun(&desk, "one");
    assert_eq!(desk.call(&Project::new(), &["runs", "--json"]).out.lines().count(), 1);
}

#[test]
fn unreadable_row_hides_no_other_run() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    begun(&desk, "ticket-2");
    let file = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    file.execute("UPDATE runs SET summary = '{' WHERE run = 'ticket-1'", []).unwrap();

    let listed = desk.call(&Project::new(), &["runs"]);

    assert_eq!(listed.code, 0);
    assert!(listed.out.contains("ticket-2") && !listed.out.contains("ticket-1"), "{}", listed.out);
    let left_out = "skipped ticket-1: cannot read the row about the run `ticket-1` in ";
    assert!(listed.err.starts_with(left_out), "{}", listed.err);
}

#[test]
fn unreadable_log_hides_no_other_run() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    begun(&desk, "ticket-2");
    let file = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    let key: i64 = file.query_row("SELECT key FROM runs WHERE run = 'ticket-1'", [], |row| row.get(0)).unwrap();
    file.execute("DELETE FROM events WHERE id = ?1 * 4294967296 + 5", [key]).unwrap();

    let listed = desk.call(&project(), &["runs"]);
    let lines = desk.call(&project(), &["runs", "--json"]);

    assert_eq!((listed.code, lines.code), (0, 0), "{}", listed.err);
    let row = |run: &str| listed.out.lines().find(|line| line.starts_with(run)).unwrap();
    assert!(row("ticket-1").ends_with("cannot read its log"), "{}", listed.out);
    assert!(!row("ticket-2").contains("cannot read"), "{}", listed.out);
    let said = "cannot read event 5 of the run `ticket-1` in `desk/runs.db`: found event 6 instead";
    assert_eq!(listed.err.matches(said).count(), 1, "{}", listed.err);
    assert!(listed.err.contains("`desk export RUN FILE`"), "{}", listed.err);
    let marked = |line: &&str| line.contains("\"ticket-1\"") && line.contains("\"unreadable\":\"cannot read event 5");
    assert_eq!((lines.out.lines().count(), lines.out.lines().filter(marked).count()), (2, 1), "{}", lines.out);
}

#[test]
fn truncated_log_is_reported_as_damaged() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    let file = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    file.execute("DELETE FROM events WHERE id = (SELECT max(id) FROM events)", []).unwrap();

    for arguments in
        [&["show", "ticket-1"][..], &["export", "ticket-1"], &["state", "ticket-1"], &["approve", "ticket-1"]]
    {
        let told = desk.refused(arguments);
        assert!(told.starts_with("6\n") && told.contains("it ends at event 8, but its row says event 9"), "{told}");
    }
}

#[test]
fn backup_copies_a_store_and_replaces_no_file() {
    let desk = Desk::new();
    begun(&desk, "one");
    let backup = desk.path("backup.db");

    let made = desk.call(&Project::new(), &["backup", &backup]);

    assert_eq!((made.code, &*made.out), (0, ""), "{}", made.err);
    assert!(made.err.starts_with("copied the store desk/runs.db to desk/backup.db ("), "{}", made.err);
    assert_eq!(desk.call(&Project::new(), &["runs", "--json", "--store", &backup]).out.lines().count(), 1);
    let again = desk.refused(&["backup", &backup]);
    assert!(again.contains("the file exists already; name a new one"), "{again}");
    let absent = desk.refused(&["backup", &desk.path("new.db"), "--store", &desk.path("absent.db")]);
    assert!(absent.starts_with("6\nerror: no store found at desk/absent.db"), "{absent}");
    let database = desk.refused(&["backup", &desk.path("new.db"), "--store", "postgres://ann:s3cret@db/runs?schema=a"]);
    insta::assert_snapshot!(database, @r"
    2
    error: cannot copy postgres://ann@db/runs?schema=a into a file: PostgreSQL has its own backups
      pg_dump --format=custom --schema=a --file=FILE DATABASE
    ");
}

#[test]
fn unknown_scheme_of_a_store_is_a_usage_error_and_creates_no_folder() {
    let desk = Desk::new();
    let path = "write the path of the file without a scheme, such as --store runs.db";
    let kinds = "name a file, such as --store runs.db, or a database, such as --store postgres://USER@HOST/DATABASE";
    for (store, scheme, hint) in [
        ("mysql://ann:s3cret@db/runs", "mysql", kinds),
        ("sqlite://runs.db", "sqlite", path),
        ("file:///runs.db", "file", path),
    ] {
        for arguments in [&["runs"][..], &["prune", "--before", "1d"], &["backup", "new.db"]] {
            let refused = desk.refused(&[arguments, &["--store", store]].concat());
            let expected = format!(
                "2\nerror: cannot open a store at `{scheme}://…`: a store is a file or a PostgreSQL database\n  {hint}\n"
            );
            assert_eq!(refused, expected);
        }
    }
}

#[test]
#[cfg(unix)]
fn device_is_no_store() {
    let desk = Desk::new();

    let refused = desk.call(&project(), &["run", "survey", "--store", "/dev/null"]);

    assert_eq!(refused.code, 6, "{}", refused.err);
    assert!(refused.err.contains("/dev/null: it is a device or a pipe"), "{}", refused.err);
}

#[test]
fn names_of_the_last_run_are_refused_as_ids() {
    let desk = Desk::new();
    begun(&desk, "one");

    for id in ["@", "last"] {
        assert_eq!(desk.call(&project(), &["run", "survey", "--id", id]).code, 2);
    }

    assert_eq!(desk.json(&["show", "last"])["run"]["run"], "one");
}

#[test]
fn empty_name_of_a_file_is_a_usage_error() {
    let refused = Desk::new().call(&project(), &["run", "survey", "--options", "@"]);

    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("the name of the file after `@` is empty"), "{}", refused.err);
}
