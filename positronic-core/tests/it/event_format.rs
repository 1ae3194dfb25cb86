//! `docs/event-format.md`: the generated part is made from the types of `record`, so the page is true.
//!
//! `POSITRONIC_UPDATE_DOCS=1 cargo test -p positronic-core --test it -- event_format` writes it anew. A change of the page is a
//! change of the format: see the rules there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Begins the generated part of the page.
const MARK: &str = "<!-- generated from the types by positronic-core/tests/it/event_format.rs -->\n";

/// A type as it stands in the source.
#[derive(Debug, Default, Clone)]
struct Item {
    docs: String,
    serde: String,
    is_enum: bool,
    fields: Vec<Field>,
}

/// A field of a struct, or a variant of an enum.
#[derive(Debug, Default, Clone)]
struct Field {
    name: String,
    kind: String,
    docs: String,
    serde: String,
    fields: Vec<Field>,
}

/// Reads the structs and enums of a file as rustfmt writes them.
fn read(source: &str, items: &mut BTreeMap<String, Item>) {
    let (mut docs, mut serde) = (String::new(), String::new());
    let (mut item, mut variant): (Option<(String, Item)>, Option<Field>) = (None, None);
    let mut attribute: Option<String> = None;
    for line in source.lines() {
        let text = line.trim();
        if let Some(open) = &mut attribute {
            open.push_str(text);
            if text.ends_with(")]") {
                serde.push_str(&attribute.take().unwrap());
            }
        } else if let Some(sentence) = text.strip_prefix("///") {
            let gap = if docs.is_empty() { "" } else { " " };
            _ = write!(docs, "{gap}{}", sentence.trim());
        } else if text.starts_with("#[serde(") {
            if text.ends_with(")]") { serde.push_str(text) } else { attribute = Some(text.to_owned()) }
        } else if text.starts_with("#[") {
        } else if let (None, Some(head)) = (&item, line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum ")))
        {
            let name = head.split(|letter: char| !letter.is_alphanumeric()).next().unwrap().to_owned();
            let mut next = Item { docs: take(&mut docs), serde: take(&mut serde), ..Item::default() };
            next.is_enum = line.starts_with("pub enum");
            if let Some((_, inner)) = head.split_once('(') {
                let kind = inner.trim_end_matches(");").trim_start_matches("pub ").to_owned();
                next.fields.push(Field { kind, ..Field::default() });
                items.insert(name, next);
            } else if head.ends_with('{') {
                item = Some((name, next));
            }
        } else if line == "}" {
            items.extend(item.take());
        } else if let Some((_, open)) = &mut item {
            let mut field = Field { docs: take(&mut docs), serde: take(&mut serde), ..Field::default() };
            if text == "}," || text == "}" {
                open.fields.extend(variant.take());
            } else if let Some((name, kind)) = text.trim_start_matches("pub ").split_once(": ") {
                (field.name, field.kind) = (name.to_owned(), kind.trim_end_matches(',').to_owned());
                variant.as_mut().map_or(&mut open.fields, |variant| &mut variant.fields).push(field);
            } else if let Some(name) = text.strip_suffix(" {") {
                field.name = name.to_owned();
                variant = Some(field);
            } else if let Some((name, kind)) = text.trim_end_matches("),").split_once('(') {
                (field.name, field.kind) = (name.to_owned(), kind.trim_start_matches("#[from] ").to_owned());
                open.fields.push(field);
            } else {
                field.name = text.trim_end_matches(',').trim_end_matches(" {}").to_owned();
                open.fields.push(field);
            }
        } else {
            (docs, serde) = (String::new(), String::new());
        }
    }
}

fn take(text: &mut String) -> String {
    std::mem::take(text)
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

/// Takes a generic type's head and its argument apart.
fn inner<'a>(kind: &'a str, head: &str) -> Option<&'a str> {
    kind.strip_prefix(head)?.strip_prefix('<')?.strip_suffix('>')
}

/// Writes a Rust type in the words of JSON, and notes the types that it names.
fn words(kind: &str, named: &mut BTreeSet<String>) -> String {
    let kind = kind.trim().trim_start_matches("pub ");
    let kind = kind.rsplit_once("::").filter(|(head, _)| !head.contains(['<', '('])).map_or(kind, |(_, name)| name);
    for head in ["Option", "Box", "Arc", "std::sync::Arc"] {
        if let Some(kind) = inner(kind, head) {
            return words(kind, named);
        }
    }
    if let Some(kind) = inner(kind, "Vec").or_else(|| kind.strip_prefix('[')?.strip_suffix(']')) {
        return format!("list of {}", words(kind, named));
    }
    if let Some(kind) = inner(kind, "IndexMap").or_else(|| inner(kind, "BTreeMap")) {
        let (_, kind) = kind.split_once(", ").unwrap();
        return format!("object whose values are {}", words(kind, named));
    }
    if let Some(kind) = inner(kind, "Content") {
        named.insert("Content".to_owned());
        return format!("[`Content`](#content) with a body that is {}", words(kind, named));
    }
    if let Some(pair) = kind.strip_prefix('(').and_then(|kind| kind.strip_suffix(')')) {
        let kinds: Vec<_> = pair.split(", ").map(|kind| words(kind, named)).collect();
        return format!("list of {}", kinds.join(" and "));
    }
    let word = match kind {
        "String" | "str" => "text",
        "bool" => "boolean",
        "u16" | "u32" | "u64" | "usize" => "integer",
        "f64" => "number",
        "Value" | "T" | "OrderedJson" => "any JSON",
        "Named" => "object",
        "Path" => "path",
        "Seq" | "Epoch" => "integer",
        "Timestamp" => "time",
        "RunId" | "SignalId" | "PublicId" | "TriggerId" | "ToolId" => "id",
        "ContentHash" => "hash",
        "Money" => "money",
        "Patch" => "RFC 6902 patch",
        _ => {
            named.insert(kind.to_owned());
            return format!("[`{kind}`](#{})", kind.to_lowercase());
        }
    };
    word.to_owned()
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

/// Writes the table of an object's fields.
fn table(fields: &[Field], page: &mut String, named: &mut BTreeSet<String>) {
    if fields.is_empty() {
        page.push_str("No fields.\n");
        return;
    }
    page.push_str("| field | type | always there | meaning |\n|---|---|---|---|\n");
    for field in fields {
        let kind = words(&field.kind, named);
        let meaning = plain(&field.docs);
        if field.serde.contains("flatten") {
            _ = writeln!(page, "| the fields of {kind} | | yes | {meaning} |");
        } else {
            let always = if is_optional(field) { "no" } else { "yes" };
            _ = writeln!(page, "| `{}` | {kind} | {always} | {meaning} |", field.name);
        }
    }
}

/// Writes a field in a line, as in a variant of an enum.
fn in_line(fields: &[Field], named: &mut BTreeSet<String>) -> String {
    let one = |field: &Field, named: &mut BTreeSet<String>| {
        let mark = if is_optional(field) { "?" } else { "" };
        format!("`{}`{mark}: {}", field.name, words(&field.kind, named))
    };
    fields.iter().map(|field| one(field, named)).collect::<Vec<_>>().join("; ")
}

/// Writes what an enum can be.
fn choices(item: &Item, page: &mut String, named: &mut BTreeSet<String>) {
    let tagged = item.serde.contains("tag = \"type\"");
    page.push_str("| JSON | fields | meaning |\n|---|---|---|\n");
    for variant in &item.fields {
        let name = cased(&variant.name, &item.serde);
        let fields = match (&*variant.kind, &*variant.fields) {
            ("", []) => String::new(),
            ("", fields) => in_line(fields, named),
            (kind, _) => words(kind, named),
        };
        let json = match (tagged, fields.is_empty(), variant.kind.is_empty()) {
            (true, true, _) => format!("`{{\"type\": \"{name}\"}}`"),
            (true, false, _) => format!("`{{\"type\": \"{name}\", …}}`"),
            (false, true, _) => format!("`\"{name}\"`"),
            (false, false, _) => format!("`{{\"{name}\": …}}`"),
        };
        _ = writeln!(page, "| {json} | {fields} | {} |", plain(&variant.docs));
    }
}

/// Makes the generated part of the page.
fn generated() -> String {
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/record");
    let mut items = BTreeMap::new();
    for file in std::fs::read_dir(&record).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            read(&std::fs::read_to_string(path).unwrap(), &mut items);
        }
    }
    let source = std::fs::read_to_string(record.join("event_kind.rs")).unwrap();
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
        let fields = match inner(&event.kind, "Box").unwrap_or(&event.kind) {
            "" => &event.fields,
            kind => &items[kind].fields,
        };
        _ = write!(page, "\n### `{name}`\n\n{}. Path: {}.\n\n", plain(&event.docs), row(&name)[2]);
        table(fields, &mut page, &mut named);
    }

    page.push_str("\n## Types\n");
    let mut written = BTreeSet::new();
    while let Some(name) = named.iter().find(|name| !written.contains(*name)).cloned() {
        // A type stands where its name is in the alphabet, so its text is kept until all are known.
        let item = items.get(&name).unwrap_or_else(|| panic!("no type `{name}` in record/; say its word in `words`"));
        for field in item.fields.iter().flat_map(|field| std::iter::once(field).chain(&field.fields)) {
            if !field.kind.is_empty() {
                words(&field.kind, &mut named);
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
                let kind = words(&only.kind, &mut named);
                _ = writeln!(page, "JSON: {kind}.");
            }
            (fields, false) => table(fields, &mut page, &mut named),
        }
    }
    page
}

#[test]
fn the_page_of_the_event_format_says_what_the_types_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/event-format.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (prose, stored) = page.split_once(MARK).expect("the page has the mark");

    let now = generated();

    if std::env::var_os("POSITRONIC_UPDATE_DOCS").is_some() {
        std::fs::write(&path, [prose, MARK, &now].concat()).unwrap();
    } else {
        assert!(
            stored == now,
            "{} is old: POSITRONIC_UPDATE_DOCS=1 writes it; it is a change of the format",
            path.display()
        );
    }
}

#[test]
fn the_page_says_which_version_is_written() {
    let page = include_str!("../../../docs/event-format.md");
    let version = positronic_core::record::FORMAT_VERSION;
    assert!(page.contains(&format!("This page describes format {version}.")));
}
