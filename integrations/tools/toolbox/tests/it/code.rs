//! `run_code`: programs work in the folder and report their results.

use positronic_core::model::scripted::Reply;
use positronic_core::record::ToolResult;
use positronic_toolbox::{self as toolbox, CodeError, CodeLimits, CodeOptions, CodeRunner, FolderOptions, Interpreter};
use serde_json::{Value, json};

use crate::desk::{Place, desk, reasons, shown_files};
use crate::support::{Play, calls, done, error_of, path, results, waits};

pub(crate) fn runner(place: &Place) -> CodeRunner {
    CodeRunner::new(&place.folder, CodeOptions::default())
}

pub(crate) fn limited(place: &Place, limits: CodeLimits) -> CodeRunner {
    CodeRunner::new(&place.folder, CodeOptions::builder().limits(limits).build())
}

#[tokio::test]
async fn files_beyond_the_folder_limit_are_not_read() {
    let place = Place::with(FolderOptions::builder().max_total(100_000).build());

    let ran = runner(&place).run("sh", "for n in 1 2 3; do truncate -s 60000 $n; done; echo x > a").await.unwrap();

    let files: Vec<_> = ran.files.iter().map(|file| (&*file.name, file.size)).collect();
    assert_eq!(files, [("1", 60_000), ("a", 2)]);
    assert_eq!(
        ran.notes[1],
        "2 new or changed files are not listed, since the files are larger than the folder may be"
    );
}

#[tokio::test]
async fn some_of_many_unlistable_files_are_named() {
    let place = Place::new();

    let ran = runner(&place).run("python3", "for n in range(50): open('a\\n%02d' % n, 'w')").await.unwrap();

    assert!(ran.notes[9].contains("a\\n09") && ran.files.is_empty(), "{ran:?}");
    assert_eq!(ran.notes[10..], ["40 more files are not listed for reasons like these"]);
}

#[tokio::test]
async fn output_error_output_and_exit_code_are_separate_and_files_stay() {
    let place = Place::new();
    place.folder.write("numbers.csv", b"1\n2\n3\n").unwrap();
    let code = "import sys\n\
        total = sum(int(line) for line in open('numbers.csv'))\n\
        open('total.txt', 'w').write(str(total))\n\
        print('the total is', total)\n\
        print('careful', file=sys.stderr)\n\
        sys.exit(3)\n";

    let ran = runner(&place).run("python3", code).await.unwrap();

    assert_eq!((ran.exit_code, &*ran.stdout, &*ran.stderr), (Some(3), "the total is 6\n", "careful\n"));
    assert_eq!(ran.stopped, None);
    let files: Vec<_> = ran.files.iter().map(|file| (&*file.name, file.size, &*file.media_type)).collect();
    assert_eq!(files, [("total.txt", 1, "text/plain")], "unchanged files are not listed");
    assert_eq!(place.files(), ["numbers.csv", "total.txt"], "nothing of the program itself is left");

    let ran = runner(&place).run("sh", "cat total.txt; echo more >> numbers.csv").await.unwrap();
    assert_eq!(ran.stdout, "6", "the next program finds the files of the one before");
    assert_eq!(ran.files[0].name, "numbers.csv", "a changed file is listed, too");
}

#[tokio::test]
async fn program_imports_files_of_write_file_and_its_traceback_names_the_line() {
    let place = Place::new();
    place.folder.write("helper.py", b"def twice(n): return 2 * n\n").unwrap();

    let ran = runner(&place)
        .run("python3", "import helper\nprint(helper.twice(21))\nraise SystemError('oops')")
        .await
        .unwrap();

    assert_eq!(ran.stdout, "42\n");
    assert!(ran.stderr.contains("line 3") && ran.stderr.contains("oops"), "{}", ran.stderr);
    assert_eq!(ran.exit_code, Some(1));
}

#[tokio::test]
async fn hidden_and_nested_files_count_and_the_folder_is_removed_at_any_depth() {
    let options = FolderOptions::builder().max_total(100_000).max_files(5).build();
    let deep = "import os; os.chdir(os.environ['HOME'])\n\
        for _ in range(1500): os.mkdir('d'); os.chdir('d')\n\
        open('f', 'w')";
    let hidden = "mkdir .positronic-mine; head -c 200000 /dev/zero > .positronic-mine/x";
    let many = "for n in 1 2 3 4 5 6; do ln -s x .positronic-$n; done";
    for (language, code, expected) in
        [("python3", deep, None), ("sh", hidden, Some("200000 bytes")), ("sh", many, Some("6 files"))]
    {
        let place = Place::with(options.clone());

        let ran = runner(&place).run(language, code).await.unwrap();

        let left = std::fs::read_dir(place.folder.path()).unwrap().count();
        match expected {
            None => assert_eq!((left, ran.notes), (0, vec![]), "{code}: {}", ran.stderr),
            Some(full) => {
                assert!(ran.notes[0].starts_with(&format!("the output folder is full: {full} of at most")), "{ran:?}");
                let refused = place.folder.write("a", b"").unwrap_err().to_string();
                assert!(refused.contains("the output folder is full"), "{refused}");
            }
        }
    }
}

#[tokio::test]
async fn modules_in_the_folder_neither_run_by_themselves_nor_shadow_the_standard_library() {
    let place = Place::new();
    let planted = ["sitecustomize", "usercustomize", "json", "runpy", "linecache", "encodings", "os", "site", "_json"];
    for name in planted {
        place.folder.write(&format!("{name}.py"), format!("print('planted {name}')").as_bytes()).unwrap();
    }
    place.folder.write("helper.py", b"value = 42").unwrap();
    let code = "import json, runpy, linecache, os, sys\n\
        import helper\n\
        print(json.dumps([helper.value, __name__, __file__ == sys.argv[0], len(sys.argv)]))\n\
        print(sys.modules['__main__'].json is json)\n";

    let ran = runner(&place).run("python3", code).await.unwrap();

    assert_eq!((&*ran.stdout, &*ran.stderr), ("[42, \"__main__\", true, 1]\nTrue\n", ""));
}

#[tokio::test]
async fn approval_lists_the_files_that_the_program_can_load() {
    let place = Place::new();
    for name in ["helper.py", "tools/util.py", "notes.md"] {
        place.folder.write(name, b"").unwrap();
    }
    let code = runner(&place);
    let play = Play::new([
        Reply::calls([
            ("run_code", json!({"language": "python3", "code": "import helper"})),
            ("run_code", json!({"language": "sh", "code": "ls"})),
        ]),
        done(),
    ]);

    let run = play.start(&desk::<Value>(move || vec![toolbox::run_code(&code)]), ()).await;

    waits(&run).await;
    let reasons = reasons(&run);
    assert!(reasons[0].ends_with("; it can load helper.py, tools/util.py, which are in the folder"), "{reasons:?}");
    assert!(!reasons[1].contains("can load"), "{reasons:?}");
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_with_a_notice() {
    let place = Place::new();
    let limits = CodeLimits::builder().output(1000).build();

    let ran = limited(&place, limits).run("python3", "print('first', 'x' * 5_000_000, 'last', end='')").await.unwrap();

    assert!(ran.stdout.starts_with("first xxx") && ran.stdout.ends_with("xxx last"), "{}", ran.stdout.len());
    assert!(ran.stdout.contains("[cut: 4999011 bytes are left out here; the limit is 1000]"), "{}", ran.stdout);
}

#[tokio::test]
async fn input_is_empty_and_output_need_not_be_text() {
    let place = Place::new();

    let ran = runner(&place).run("sh", "cat; printf 'a\\377b'").await.unwrap();

    assert_eq!(ran.stdout, "a\u{fffd}b");
}

#[tokio::test]
async fn missing_interpreter_and_unknown_language_are_clear_errors() {
    let place = Place::new();
    let options = CodeOptions::builder()
        .interpreters(vec![
            Interpreter::new("cobol", "positronic-no-cobol", "cbl"),
            Interpreter::new("own", "/no/where", "x"),
        ])
        .build();
    let runner = CodeRunner::new(&place.folder, options);

    let missing = runner.run("cobol", "").await.unwrap_err().to_string();
    assert!(missing.starts_with(
        "cannot find `cobol` on this machine: searched `/usr/local/bin/positronic-no-cobol` or `/usr/bin/"
    ));
    assert!(matches!(runner.run("own", "").await, Err(CodeError::NoInterpreter { .. })));
    let unknown = runner.run("python3", "").await.unwrap_err().to_string();
    assert_eq!(unknown, "unknown language `python3`; available are `cobol`, `own`");
}

#[tokio::test]
async fn programs_in_one_folder_run_one_after_the_other() {
    let place = Place::new();
    let runner = runner(&place);
    let program =
        |name: &str| format!("test -e busy && echo together; touch busy; sleep 0.2; rm busy; echo {name} > {name}.txt");
    let (one, other) = (program("one"), program("other"));

    let (one, other) = tokio::join!(runner.run("sh", &one), runner.run("sh", &other));

    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((&*one.stdout, &*other.stdout), ("", ""));
    assert_eq!((&*one.files[0].name, one.files.len()), ("one.txt", 1), "a new file belongs to one program");
    assert_eq!((&*other.files[0].name, other.files.len()), ("other.txt", 1));
}

#[tokio::test]
async fn approval_is_required_unless_the_language_is_allowed_by_name() {
    let place = Place::new();
    let code = CodeRunner::new(&place.folder, CodeOptions::builder().unattended(["sh"]).build());
    let missing = code.missing_protections();
    let batch = Reply::calls([
        ("run_code", json!({"language": "sh", "code": "echo tea > tea.txt"})),
        ("run_code", json!({"language": "python3", "code": "print(6 * 7)"})),
    ]);
    let play = Play::new([batch, done()]);
    let run = play.start(&desk::<Value>(move || vec![toolbox::run_code(&code)]), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.1"]);
    let reason = reasons(&run).remove(0);
    assert!(reason.starts_with("it runs a python3 program"), "{reason}");
    assert_eq!(reason.contains("without a network"), missing.is_empty(), "{reason}");
    assert!(missing.iter().all(|missing| reason.contains(missing.missing())), "{reason}");
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    let story = play.story(&run).await;

    let results = results(&story, "Work");
    let ToolResult::Success { output, .. } = &results[1] else { panic!("{results:?}") };
    assert_eq!((&output["exit_code"], &output["stdout"]), (&json!(0), &json!("42\n")));
    let files: Vec<_> = shown_files(&story).into_iter().map(|file| file.name).collect();
    assert_eq!(files, ["tea.txt"], "a new file is an output");
    assert!(calls(&story, "Work").iter().all(|call| call.tool == "run_code"));
}

#[tokio::test]
async fn invalid_arguments_run_nothing() {
    let place = Place::new();
    let code = CodeRunner::new(&place.folder, CodeOptions::builder().unattended(["sh"]).build());
    let batch = Reply::calls([
        ("run_code", json!({"language": "sh"})),
        ("run_code", json!({"language": "sh", "code": "touch a", "network": true})),
        ("run_code", json!({"language": "perl", "code": "1"})),
    ]);
    let play = Play::new([batch, done()]);

    let story = play.run(&desk::<Value>(move || vec![toolbox::run_code(&code)]), ()).await;

    let results = results(&story, "Work");
    assert!(error_of(&results[0]).contains("\"code\" is a required property"));
    assert!(error_of(&results[1]).contains("network"), "{}", error_of(&results[1]));
    assert_eq!(error_of(&results[2]), "unknown language `perl`; available are `python3`, `sh`");
    assert!(place.files().is_empty());
}
