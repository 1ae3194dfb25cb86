//! The modules of a crate, and which files use which, read from the tokens of its sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

type ModulePath = Vec<String>;

/// The modules of a crate without its tests.
pub(crate) struct Modules(BTreeMap<ModulePath, Module>);

struct Module {
    /// The file, relative to the crate's sources.
    file: String,
    code: Vec<TokenTree>,
    uses: Vec<Use>,
}

/// A path to another module, or to an item of one.
struct Use {
    /// From the crate's root.
    path: ModulePath,
    /// The name that a `use` gives it, also for other modules.
    name: Option<String>,
    is_public: bool,
}

impl Modules {
    pub(crate) fn of(src: &Path) -> Self {
        let mut files = Vec::new();
        sources(src, &mut files);
        let mut modules = Self(BTreeMap::new());
        for file in files {
            let file = file.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
            let mut path: ModulePath = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            let is_test = |part: &String| part == "tests" || part.ends_with("_tests") || part == "stories";
            if path.iter().any(is_test) || file == "main.rs" {
                continue;
            }
            path.pop_if(|last| *last == "mod" || *last == "lib");
            let tokens: TokenStream = fs::read_to_string(src.join(&file)).unwrap().parse().unwrap();
            modules.0.insert(path, Module { file, code: without_tests(tokens), uses: Vec::new() });
        }
        for path in modules.0.keys().cloned().collect::<Vec<_>>() {
            let mut uses = Vec::new();
            modules.read(&path, &modules.0[&path].code, &mut uses);
            modules.0.get_mut(&path).unwrap().uses = uses;
        }
        modules
    }

    /// Lists the files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|module| &*module.file)
    }

    /// Lists the files whose code names a crate.
    pub(crate) fn naming(&self, name: &str) -> Vec<&str> {
        fn names(code: &[TokenTree], name: &str) -> bool {
            code.iter().enumerate().any(|(at, token)| match token {
                TokenTree::Ident(ident) => *ident == name && is_colons(code, at + 1),
                TokenTree::Group(group) => names(&group.stream().into_iter().collect::<Vec<_>>(), name),
                _ => false,
            })
        }
        self.0.values().filter(|module| names(&module.code, name)).map(|module| &*module.file).collect()
    }

    /// Lists the files that define a type, by its name. Types within functions, macros and inline modules do not count.
    pub(crate) fn types(&self) -> BTreeMap<String, Vec<&str>> {
        const KEYWORDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];
        let mut types: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for module in self.0.values() {
            for pair in module.code.windows(2) {
                if let [TokenTree::Ident(keyword), TokenTree::Ident(name)] = pair
                    && KEYWORDS.iter().any(|known| keyword == known)
                {
                    types.entry(name.to_string()).or_default().push(&*module.file);
                }
            }
        }
        types
    }

    /// Lists the files with an inherent `impl` of each type that the crate defines.
    pub(crate) fn inherent_impls(&self) -> BTreeMap<String, BTreeSet<&str>> {
        let types = self.types();
        let mut impls: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for module in self.0.values() {
            for (at, token) in module.code.iter().enumerate() {
                let is_item = at == 0 || !is_punct(&module.code[at - 1], '>');
                if matches!(token, TokenTree::Ident(keyword) if is_item && *keyword == "impl")
                    && let Some(name) = inherent_impl(&module.code[at + 1..]).filter(|name| types.contains_key(name))
                {
                    impls.entry(name).or_default().insert(&*module.file);
                }
            }
        }
        impls
    }

    /// Lists which files use which. Re-exports count as uses, except where `with_exports` is false: then the file that
    /// defines an item is used, and not the `mod.rs` that exports it.
    pub(crate) fn uses(&self, with_exports: bool) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for module in self.0.values() {
            let is_counted = |used: &&Use| with_exports || !(used.is_public && used.name.is_some());
            let used = module.uses.iter().filter(is_counted).map(|used| self.file_of(&used.path, 0));
            files.insert(&module.file, used.filter(|file| *file != module.file).collect());
        }
        files
    }

    /// Returns the file that defines what a path names, through re-exports.
    fn file_of(&self, path: &[String], depth: usize) -> &str {
        let mut at: ModulePath = Vec::new();
        for (index, part) in path.iter().enumerate() {
            at.push(part.clone());
            if self.0.contains_key(&at) {
                continue;
            }
            at.pop();
            let rest = path.get(index + 1..).unwrap_or_default();
            let export = self.0[&at].uses.iter().find(|used| used.name.as_ref() == Some(part));
            if let Some(export) = export.filter(|export| depth < 8 && export.path != path[..=index]) {
                return self.file_of(&[&export.path, rest].concat(), depth + 1);
            }
            break;
        }
        &self.0[&at].file
    }

    /// Reads the paths in the code of a module: `use` trees with their groups, and paths in other code.
    fn read(&self, module: &ModulePath, code: &[TokenTree], into: &mut Vec<Use>) {
        let (mut at, mut is_public) = (0, false);
        while let Some(token) = code.get(at) {
            at += 1;
            match token {
                TokenTree::Ident(ident) if *ident == "pub" => is_public = true,
                TokenTree::Ident(ident) if *ident == "use" => {
                    let end =
                        code[at..].iter().position(|token| is_punct(token, ';')).map_or(code.len(), |end| at + end);
                    let mut found = Vec::new();
                    imports(&code[at..end], &Vec::new(), &mut found);
                    for (path, name) in found {
                        into.extend(self.absolute(module, &path).map(|path| Use { path, name: Some(name), is_public }));
                    }
                    (at, is_public) = (end, false);
                }
                TokenTree::Ident(_) if is_colons(code, at) && !(at > 2 && is_colons(code, at - 3)) => {
                    let path = path_at(code, at - 1);
                    if path.first().is_some_and(|first| matches!(first.as_str(), "crate" | "super" | "self")) {
                        let path = self.absolute(module, &path);
                        into.extend(path.map(|path| Use { path, name: None, is_public: false }));
                    }
                }
                TokenTree::Group(group) => {
                    let is_restriction = group.delimiter() == Delimiter::Parenthesis && is_public;
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    if let Some(inline) = inline_module(&code[..at - 1]) {
                        let mut uses = Vec::new();
                        self.read(&[module.as_slice(), &[inline]].concat(), &inner, &mut uses);
                        // What it imports has a name in it alone.
                        into.extend(uses.into_iter().map(|used| Use { name: None, is_public: false, ..used }));
                        is_public = false;
                    } else if !is_restriction {
                        self.read(module, &inner, into);
                        is_public = false;
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => is_public = false,
                _ => {}
            }
        }
    }

    /// Returns a path from the crate's root; nothing for one into another crate.
    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                let around = module.get(..module.len().checked_sub(up)?)?;
                Some([around, &path[up..]].concat())
            }
            _ => {
                let child = [module.as_slice(), std::slice::from_ref(first)].concat();
                self.0.contains_key(&child).then(|| [module, path].concat())
            }
        }
    }
}

/// Returns the name of the type whose inherent `impl` begins before the code; nothing for an implementation of a trait.
fn inherent_impl(code: &[TokenTree]) -> Option<String> {
    let is_body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let (mut depth, mut name) = (0, None);
    for (at, token) in code.iter().take_while(|token| !is_body(token)).enumerate() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            // The `>` of an arrow closes nothing.
            TokenTree::Punct(punct) if punct.as_char() == '>' && !is_punct(&code[at - 1], '-') => depth -= 1,
            TokenTree::Ident(ident) if depth == 0 && *ident == "for" => return None,
            TokenTree::Ident(ident) if depth == 0 && *ident == "where" => break,
            TokenTree::Ident(ident) if depth == 0 => name = Some(ident.to_string()),
            _ => {}
        }
    }
    name
}

/// Finds the largest set of files that use each other in a circle, for each file that is in one.
pub(crate) fn circles<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<BTreeSet<&'a str>> {
    let reach = |from: &'a str| {
        let (mut found, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            open.extend(uses.get(file).into_iter().flatten().filter(|used| found.insert(**used)));
        }
        found
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|file| (*file, reach(file))).collect();
    let mut circles = BTreeSet::new();
    for (file, used) in &reached {
        let circle: BTreeSet<_> = used.iter().filter(|other| reached[*other].contains(file)).copied().collect();
        circles.extend((circle.len() > 1).then_some(circle));
    }
    circles.into_iter().collect()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Drops the items behind `#[cfg(test)]`.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        let is_cfg_test =
            matches!(&token, TokenTree::Group(group) if group.stream().to_string().replace(' ', "") == "cfg(test)");
        if is_cfg_test && kept.last().is_some_and(|last| is_punct(last, '#')) {
            kept.pop();
            let is_end = |token: &TokenTree| {
                is_punct(token, ';')
                    || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
            };
            tokens.by_ref().find(is_end);
        } else {
            kept.push(token);
        }
    }
    kept
}

/// Reads a `use` tree into paths with the names that they get.
fn imports(tree: &[TokenTree], prefix: &ModulePath, into: &mut Vec<(ModulePath, String)>) {
    for part in tree.split(|token| is_punct(token, ',')).filter(|part| !part.is_empty()) {
        let mut path = prefix.clone();
        let mut name = None;
        for (at, token) in part.iter().enumerate() {
            match token {
                TokenTree::Group(group) => {
                    imports(&group.stream().into_iter().collect::<Vec<_>>(), &path, into);
                    name = None;
                }
                TokenTree::Ident(ident) if *ident == "as" => {
                    name = part.get(at + 1).map(ToString::to_string);
                    break;
                }
                // `a::{self}` names `a`.
                TokenTree::Ident(ident) if *ident == "self" && !path.is_empty() => name = path.last().cloned(),
                TokenTree::Ident(ident) => {
                    path.push(ident.to_string().trim_start_matches("r#").to_owned());
                    name = path.last().cloned();
                }
                _ => {}
            }
        }
        into.extend(name.map(|name| (path, name)));
    }
}

/// Returns the name of the module whose braces follow the code.
fn inline_module(before: &[TokenTree]) -> Option<String> {
    match before {
        [.., TokenTree::Ident(keyword), TokenTree::Ident(name)] if *keyword == "mod" => Some(name.to_string()),
        _ => None,
    }
}

fn path_at(code: &[TokenTree], mut at: usize) -> ModulePath {
    let mut path = Vec::new();
    while let Some(TokenTree::Ident(ident)) = code.get(at) {
        path.push(ident.to_string().trim_start_matches("r#").to_owned());
        if !is_colons(code, at + 1) {
            break;
        }
        at += 3;
    }
    path
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_colons(code: &[TokenTree], at: usize) -> bool {
    code.get(at..at + 2).is_some_and(|two| two.iter().all(|token| is_punct(token, ':')))
}
