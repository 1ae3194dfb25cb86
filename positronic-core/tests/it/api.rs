//! The public API by name, so that its changes show in reviews.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, UseTree, Visibility};

/// Public names by module. A re-export is listed in the re-exporting module.
type Api = BTreeMap<String, Vec<String>>;

/// The crates of the snapshot, and their folders.
const CRATES: &[(&str, &str)] = &[
    ("positronic_core", "."),
    ("positronic_mcp", "../integrations/tools/mcp"),
    ("positronic_model_http", "../integrations/models/http"),
    ("positronic_net", "../integrations/net"),
    ("positronic_openai", "../integrations/models/openai"),
    ("positronic_plugins", "../integrations/plugins"),
    ("positronic_query", "../integrations/query"),
    ("positronic_sqlite", "../integrations/stores/sqlite"),
    ("positronic_store_suite", "../integrations/stores/suite"),
    ("positronic_templates", "../integrations/templates"),
    ("positronic_toolbox", "../integrations/tools/toolbox"),
];

#[test]
fn public_names_match_the_snapshot() {
    let mut api = Api::new();
    for (name, folder) in CRATES {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("src");
        module(name, &src.join("lib.rs"), &src, &mut api);
    }

    let text: String = api.iter().map(|(module, names)| format!("{module}: {}\n", names.join(" "))).collect();
    insta::assert_snapshot!(text);
}

/// The modules that an author of brains reads; each other one says for whom it is.
const FOR_AUTHORS: [&str; 5] = ["dsl", "model", "model::scripted", "runner", "testing"];

#[test]
fn authors_need_fewer_than_half_of_the_types() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut api = Api::new();
    module("positronic_core", &src.join("lib.rs"), &src, &mut api);
    let types = |names: &[String]| {
        names.iter().filter(|name| name.chars().any(char::is_lowercase) && name.starts_with(char::is_uppercase)).count()
    };

    let (mut own, mut all) = (0, 0);
    for (path, names) in &api {
        let Some(name) = path.strip_prefix("positronic_core::").filter(|name| *name != "prelude") else { continue };
        all += types(names);
        if FOR_AUTHORS.contains(&name) {
            own += types(names);
        } else if !name.contains("::") {
            let docs = fs::read_to_string(src.join(name).join("mod.rs")).unwrap();
            assert!(docs.contains("//! This module is for "), "`{name}` does not say for whom it is");
        }
    }
    assert!(own * 2 < all, "{own} of {all}");
    assert!(own < 175, "{own}");
}

#[test]
fn types_of_one_name_are_one_type() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut api = Api::new();
    module("positronic_core", &src.join("lib.rs"), &src, &mut api);
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, names) in &api {
        let is_type = |name: &&String| name.starts_with(char::is_uppercase);
        for name in names.iter().filter(is_type) {
            modules.entry(name).or_default().push(path.strip_prefix("positronic_core::").unwrap_or(""));
        }
    }
    modules.retain(|_, modules| {
        modules.retain(|module| !["", "prelude"].contains(module));
        modules.len() > 1
    });

    // These are re-exports.
    let known = [
        ("Busy", vec!["record", "runner"]),
        ("LARGEST_BLOB", vec!["record", "store"]),
        ("RetryPolicy", vec!["model", "record"]),
    ];
    assert_eq!(modules, BTreeMap::from(known));
}

/// Adds the public names of the module in `file`, with submodules in `folder`.
fn module(path: &str, file: &Path, folder: &Path, api: &mut Api) {
    let code = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
    let mut names = Vec::new();
    for item in code.items {
        let (vis, attrs, ident) = match &item {
            Item::Const(item) => (&item.vis, &item.attrs, item.ident.to_string()),
            Item::Enum(item) => (&item.vis, &item.attrs, item.ident.to_string()),
            Item::Fn(item) => (&item.vis, &item.attrs, item.sig.ident.to_string()),
            Item::Struct(item) => (&item.vis, &item.attrs, item.ident.to_string()),
            Item::Trait(item) => (&item.vis, &item.attrs, item.ident.to_string()),
            Item::Type(item) => (&item.vis, &item.attrs, item.ident.to_string()),
            Item::Macro(item) if item.attrs.iter().any(|attr| attr.path().is_ident("macro_export")) => {
                api.entry("macros".to_owned()).or_default().extend(item.ident.iter().map(|name| format!("{name}!")));
                continue;
            }
            Item::Use(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                imported(&item.tree, &mut names);
                continue;
            }
            Item::Mod(item) if item.content.is_none() => {
                if is_public(&item.vis) && !is_hidden(&item.attrs) {
                    let name = item.ident.to_string();
                    let (file, inner) = found(folder, &name);
                    module(&format!("{path}::{name}"), &file, &inner, api);
                }
                continue;
            }
            _ => continue,
        };
        if is_public(vis) && !is_hidden(attrs) {
            names.push(ident);
        }
    }
    names.sort_unstable();
    api.insert(path.to_owned(), names);
}

/// Finds a module's file and the folder of its submodules.
fn found(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let name = name.trim_start_matches("r#");
    let inner = folder.join(name);
    let file = folder.join(format!("{name}.rs"));
    if file.exists() { (file, inner) } else { (inner.join("mod.rs"), inner) }
}

fn imported(tree: &UseTree, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => imported(&path.tree, names),
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Rename(rename) if rename.rename == "_" => {}
        UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        UseTree::Glob(_) => names.push("*".to_owned()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imported(tree, names)),
    }
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn is_hidden(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident("doc") && quoted(attr).contains("hidden"))
}

fn quoted(attr: &Attribute) -> String {
    match &attr.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}
