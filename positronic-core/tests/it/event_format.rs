//! `docs/event-format.md`: the generated part is made from the types of `record`, so the page is true.
//!
//! `POSITRONIC_UPDATE_DOCS=1 cargo test -p positronic-core --test it -- event_format` writes it anew. A change of a field
//! on the page is a change of the format: see the rules there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use syn::{Expr, ExprLit, Lit, Meta, Type};

/// Begins the generated part of the page.
const MARK: &str = "<!-- generated from the types by positronic-core/tests/it/event_format.rs -->\n";

/// A struct or an enum.
#[derive(Clone)]
struct Item {
    docs: String,
    serde: String,
    is_enum: bool,
    fields: Vec<Field>,
}

/// A field of a struct, or a variant of an enum: one with a value has its type, one with fields has these.
#[derive(Clone)]
struct Field {
    name: String,
    kind: Option<Type>,
    docs: String,
    serde: String,
    fields: Vec<Self>,
}

/// Reads the structs and enums of a file.
fn read(source: &str, items: &mut BTreeMap<String, Item>) {
    for item in syn::parse_file(source).unwrap().items {
        let (attrs, ident, is_enum, fields) = match item {
            syn::Item::Struct(item) => (item.attrs, item.ident, false, fields(&item.fields)),
            syn::Item::Enum(item) => {
                let variant = |variant: &syn::Variant| {
                    let mut read = fields(&variant.fields);
                    // A variant with an unnamed field is represented by that field.
                    let kind = read.first().filter(|only| only.name.is_empty()).and_then(|only| only.kind.clone());
                    read.retain(|field| !field.name.is_empty());
                    let (docs, serde) = notes(&variant.attrs);
                    Field { name: variant.ident.to_string(), kind, docs, serde, fields: read }
                };
                (item.attrs, item.ident, true, item.variants.iter().map(variant).collect())
            }
            _ => continue,
        };
        let (docs, serde) = notes(&attrs);
        items.insert(ident.to_string(), Item { docs, serde, is_enum, fields });
    }
}

fn fields(fields: &syn::Fields) -> Vec<Field> {
    let field = |field: &syn::Field| {
        let (docs, serde) = notes(&field.attrs);
        let name = field.ident.as_ref().map_or_else(String::new, ToString::to_string);
        Field { name, kind: Some(field.ty.clone()), docs, serde, fields: Vec::new() }
    };
    fields.iter().map(field).collect()
}

/// Returns the doc comment as one line, and the serde attributes.
fn notes(attrs: &[syn::Attribute]) -> (String, String) {
    let (mut docs, mut serde) = (Vec::new(), String::new());
    for attr in attrs {
        match &attr.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => {
                if let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &pair.value {
                    docs.push(line.value().trim().to_owned());
                }
            }
            Meta::List(list) if list.path.is_ident("serde") => serde.push_str(&list.tokens.to_string()),
            _ => {}
        }
    }
    (docs.join(" ").trim().to_owned(), serde)
}

/// Writes a Rust name as JSON has it.
fn cased(name: &str, serde: &str) -> String {
    let snake = name.chars().enumerate().fold(String::new(), |mut all, (at, letter)| {
        if at > 0 && letter.is_uppercase() {
            all.push('_');
        }
        all.extend(letter.to_lowercase());
        all
    });
    if serde.contains("SCREAMING_SNAKE_CASE") {
        snake.to_uppercase()
    } else if serde.contains("snake_case") {
        snake
    } else {
        name.to_owned()
    }
}

/// Writes a Rust type in the words of JSON, and notes the types that it names.
fn words(kind: &Type, named: &mut BTreeSet<String>) -> String {
    let path = match kind {
        Type::Path(path) => path.path.segments.last().unwrap(),
        Type::Slice(list) => return format!("list of {}", words(&list.elem, named)),
        Type::Tuple(pair) => {
            let kinds: Vec<_> = pair.elems.iter().map(|kind| words(kind, named)).collect();
            return format!("list of {}", kinds.join(" and "));
        }
        _ => panic!("a type of another form"),
    };
    let name = path.ident.to_string();
    let inner = inner(path);
    match (&*name, inner.last()) {
        ("Option" | "Box" | "Arc", Some(kind)) => return words(kind, named),
        ("Attachment", _) => {
            named.insert("FileRef".to_owned());
            return "[`FileRef`](#fileref)".to_owned();
        }
        ("Vec", Some(kind)) => return format!("list of {}", words(kind, named)),
        ("IndexMap" | "BTreeMap", Some(kind)) => return format!("object whose values are {}", words(kind, named)),
        ("Content", Some(kind)) => {
            named.insert(name);
            return format!("[`Content`](#content) with a body that is {}", words(kind, named));
        }
        _ => {}
    }
    let word = match &*name {
        "String" | "str" => "text",
        "bool" => "boolean",
        "u16" | "u32" | "u64" | "usize" => "integer",
        "f64" => "number",
        "Value" | "T" | "OrderedJson" => "any JSON",
        "Named" => "object",
        "Path" => "path",
        "Seq" | "Epoch" => "integer",
        "Timestamp" => "time",
        "Duration" => "integer",
        "RunId" | "SignalId" | "PublicId" | "TriggerId" | "ToolId" => "id",
        "ContentHash" => "hash",
        "Money" => "money",
        "Patch" => "RFC 6902 patch",
        _ => {
            let link = format!("[`{name}`](#{})", name.to_lowercase());
            named.insert(name);
            return link;
        }
    };
    word.to_owned()
}

/// Returns what a generic type is of.
fn inner(path: &syn::PathSegment) -> Vec<&Type> {
    let syn::PathArguments::AngleBracketed(list) = &path.arguments else { return Vec::new() };
    let kinds = list.args.iter().filter_map(|argument| match argument {
        syn::GenericArgument::Type(kind) => Some(kind),
        _ => None,
    });
    kinds.collect()
}

/// Returns the first sentence of a doc comment.
fn sentence(docs: &str) -> String {
    plain(docs.split_once(". ").map_or(docs, |(first, _)| first))
}

/// Returns a doc comment without the links of rustdoc, and so that it fits into a cell of a table.
fn plain(docs: &str) -> String {
    let plain = docs.replace("[`", "`").replace("`]", "`").replace('|', "\\|");
    // A link's target in parentheses: `](crate::…)`.
    let mut text = String::new();
    let mut rest = plain.as_str();
    while let Some((before, after)) = rest.split_once("`(") {
        _ = write!(text, "{before}`");
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    text.trim_end_matches('.').to_owned()
}

fn is_optional(field: &Field) -> bool {
    field.serde.contains("skip_serializing_if")
}

/// Returns a field's name in JSON.
fn json_name(field: &Field) -> &str {
    let renamed = field.serde.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
    renamed.unwrap_or(&field.name)
}

/// Writes the table of an object's fields.
fn table(fields: &[Field], page: &mut String, named: &mut BTreeSet<String>) {
    if fields.is_empty() {
        page.push_str("No fields.\n");
        return;
    }
    page.push_str("| field | type | always there | meaning |\n|---|---|---|---|\n");
    for field in fields {
        let kind = words(field.kind.as_ref().unwrap(), named);
        let meaning = plain(&field.docs);
        if field.serde.contains("flatten") {
            _ = writeln!(page, "| the fields of {kind} | | yes | {meaning} |");
        } else {
            let always = if is_optional(field) { "no" } else { "yes" };
            _ = writeln!(page, "| `{}` | {kind} | {always} | {meaning} |", json_name(field));
        }
    }
}

/// Writes a field in a line, as in a variant of an enum.
fn in_line(fields: &[Field], named: &mut BTreeSet<String>) -> String {
    let one = |field: &Field, named: &mut BTreeSet<String>| {
        let mark = if is_optional(field) { "?" } else { "" };
        format!("`{}`{mark}: {}", json_name(field), words(field.kind.as_ref().unwrap(), named))
    };
    fields.iter().map(|field| one(field, named)).collect::<Vec<_>>().join("; ")
}

/// Writes what an enum can be.
fn choices(item: &Item, page: &mut String, named: &mut BTreeSet<String>) {
    let tagged = item.serde.contains("tag = \"type\"");
    page.push_str("| JSON | fields | meaning |\n|---|---|---|\n");
    for variant in &item.fields {
        let name = cased(&variant.name, &item.serde);
        let fields = match &variant.kind {
            Some(kind) => words(kind, named),
            None => in_line(&variant.fields, named),
        };
        let json = match (tagged, fields.is_empty()) {
            (true, true) => format!("`{{\"type\": \"{name}\"}}`"),
            (true, false) => format!("`{{\"type\": \"{name}\", …}}`"),
            (false, true) => format!("`\"{name}\"`"),
            (false, false) => format!("`{{\"{name}\": …}}`"),
        };
        _ = writeln!(page, "| {json} | {fields} | {} |", plain(&variant.docs));
    }
}

/// Lists the Rust files of the record and of its folders. What is deeper has no types of events.
fn rust_files(record: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(record).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| entries(&folder).collect::<Vec<_>>()).chain(entries(record));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Makes the generated part of the page.
fn generated() -> String {
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/record");
    let mut items = BTreeMap::new();
    for file in rust_files(&record) {
        read(&std::fs::read_to_string(file).unwrap(), &mut items);
    }
    let source = std::fs::read_to_string(record.join("event/event_kind.rs")).unwrap();
    let rows: Vec<Vec<&str>> =
        source.lines().filter(|line| line.starts_with("/// | `")).map(|row| row.split(" | ").collect()).collect();
    let row = |event: &str| {
        rows.iter()
            .find(|row| row[1].contains(&format!("`{event}`")))
            .unwrap_or_else(|| panic!("the table in the docs has no `{event}`"))
    };

    let mut page = String::from("\n## Events\n");
    let mut named = BTreeSet::new();
    let kinds = &items["EventKind"];
    for event in &kinds.fields {
        let name = cased(&event.name, &kinds.serde);
        // A variant with a box has the fields of the struct in it.
        let fields = match &event.kind {
            None => &event.fields,
            Some(kind) => {
                let mut inside = BTreeSet::new();
                words(kind, &mut inside);
                &items[inside.first().unwrap()].fields
            }
        };
        _ = write!(page, "\n### `{name}`\n\n{}. Path: {}.\n\n", plain(&event.docs), row(&name)[2]);
        table(fields, &mut page, &mut named);
    }

    page.push_str("\n## Types\n");
    let mut written = BTreeSet::new();
    while let Some(name) = named.iter().find(|name| !written.contains(*name)).cloned() {
        // Types are sorted by name, so their texts are collected first.
        let item = items.get(&name).unwrap_or_else(|| panic!("no type `{name}` in record/; say its word in `words`"));
        for field in item.fields.iter().flat_map(|field| std::iter::once(field).chain(&field.fields)) {
            if let Some(kind) = &field.kind {
                words(kind, &mut named);
            }
        }
        written.insert(name);
    }
    for name in &written {
        let item = &items[name];
        _ = write!(page, "\n### `{name}`\n\n{}.\n\n", sentence(&item.docs));
        match (&*item.fields, item.is_enum) {
            (_, true) => choices(item, &mut page, &mut named),
            ([only], false) if only.name.is_empty() => {
                let kind = words(only.kind.as_ref().unwrap(), &mut named);
                _ = writeln!(page, "JSON: {kind}.");
            }
            (fields, false) => table(fields, &mut page, &mut named),
        }
    }
    page
}

#[test]
fn event_format_page_matches_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/event-format.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (prose, stored) = page.split_once(MARK).expect("the page has the mark");

    let now = generated();

    if std::env::var_os("POSITRONIC_UPDATE_DOCS").is_some() {
        std::fs::write(&path, [prose, MARK, &now].concat()).unwrap();
    } else {
        assert!(
            stored == now,
            "{} is out of date: POSITRONIC_UPDATE_DOCS=1 writes it; read its rules for changes first",
            path.display()
        );
    }
}

#[test]
fn event_format_page_names_the_version_that_is_written() {
    let page = include_str!("../../../docs/event-format.md");
    let version = positronic_core::record::FORMAT_VERSION;
    assert!(page.contains(&format!("This page describes format {version}.")));
}
