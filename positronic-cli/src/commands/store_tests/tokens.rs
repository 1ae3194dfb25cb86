//! Access tokens.

use serde_json::Value;

use super::Desk;
use crate::app::Project;
use crate::commands::tests::{Full, Paper, ui, words};
use crate::start::in_project;

#[test]
fn token_that_could_not_be_shown_is_revoked() {
    let desk = Desk::new();
    let tokens = || desk.call(&Project::new(), &["token", "list", "--json"]).out.lines().count();
    for json in [&[][..], &["--json"]] {
        let arguments = [&["token", "create", "billing"][..], json].concat();
        let err = Paper::default();
        let mut ui = ui(Box::new(Full), Box::new(err.clone()), desk.settings());

        assert_eq!(in_project(&Project::new(), &words(&arguments), &mut ui), 6);

        assert!(err.text().contains("the token could not be shown, so it is revoked"), "{}", err.text());
        assert_eq!(tokens(), 0);
    }
    let created: Value = desk.json(&["token", "create", "billing"]);
    assert!(created["token"].as_str().unwrap().starts_with("pos_"));
    assert_eq!(tokens(), 1);
}
