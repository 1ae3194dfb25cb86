//! Calls that a model wrote almost right: the name of a tool, and arguments that are not plain JSON.
//!
//! Values of another type than the schema has, such as `"3"` for 3, are repaired in `definition/argument_repair.rs`.
//! A repair is made only where the call would fail without it, and what the model wrote has one possible meaning.

use serde_json::{Deserializer, Value};

use crate::record::{ArgumentMistake, ToolDecl, ToolSet};

/// Prefixes of tool names, which models copy from the declarations of their prompt templates.
const PREFIXES: [&str; 5] = ["functions", "function", "tools", "tool", "default_api"];

/// The maximum number of layers around arguments.
const MAX_LAYERS: usize = 3;

/// Finds the only tool that an unknown name can mean.
pub(crate) fn near_name<'t>(tools: &'t ToolSet, name: &str) -> Option<&'t ToolDecl> {
    let readings = readings(name);
    let folded: Vec<_> = readings.iter().map(|name| fold(name)).collect();
    let similar: Vec<_> = tools.tools().iter().filter(|tool| folded.contains(&fold(tool.id.as_str()))).collect();
    let first = fold(similar.first()?.id.as_str());
    match similar.as_slice() {
        [only] => Some(only),
        // They differ in case or separators alone, so one of them may have exactly this name.
        several if several.iter().all(|tool| fold(tool.id.as_str()) == first) => {
            let mut exact = several.iter().copied().filter(|tool| readings.iter().any(|name| has_name(tool, name)));
            exact.next().filter(|_| exact.next().is_none())
        }
        _ => None,
    }
}

fn has_name(tool: &ToolDecl, name: &str) -> bool {
    tool.id.as_str() == name || tool.id.wire_name() == name
}

/// Lists what a name can mean: without blanks around it, without what templates put before it or behind it.
fn readings(name: &str) -> Vec<&str> {
    let name = name.trim();
    // `look<|channel|>commentary`, of a template whose marks were not removed.
    let name = name.split_once("<|").map_or(name, |(name, _)| name).trim();
    // `functions.look:0`, the id of the call instead of its name.
    let without_index = name.rsplit_once(':').filter(|(_, index)| index.parse::<u32>().is_ok()).map(|(name, _)| name);
    let mut all = vec![name];
    all.extend(without_index);
    let short: Vec<_> = all.iter().filter_map(|name| without_prefix(name)).collect();
    all.extend(short);
    all.retain(|name| !name.is_empty());
    all
}

fn without_prefix(name: &str) -> Option<&str> {
    let (prefix, rest) = name.split_once(['.', ':', '/'])?;
    PREFIXES.contains(&prefix).then(|| rest.trim_start_matches([':', '.', '/']))
}

/// Writes a name without what tells similar names apart: its case, and which separators it has.
fn fold(name: &str) -> String {
    let fold = |letter: char| if matches!(letter, '-' | '.' | ' ') { '_' } else { letter.to_ascii_lowercase() };
    name.chars().map(fold).collect()
}

/// Parses arguments.
///
/// # Errors
///
/// The error of the unrepaired text, if it is neither JSON nor a near miss.
pub(crate) fn parse_arguments(text: &str) -> Result<(Value, Vec<ArgumentMistake>), serde_json::Error> {
    let error = match serde_json::from_str(text) {
        Ok(json) => return Ok((json, Vec::new())),
        Err(error) => error,
    };
    let (mut text, mut mistakes) = (text.trim(), Vec::new());
    while mistakes.len() < MAX_LAYERS {
        let (inner, mistake) = match unfenced(text) {
            Some(inner) => (inner, ArgumentMistake::InCodeFence),
            None => match without_extra_bracket(text) {
                Some(json) => (json, ArgumentMistake::ExtraBracket),
                None => break,
            },
        };
        mistakes.push(mistake);
        text = inner;
        if let Ok(json) = serde_json::from_str(text) {
            return Ok((json, mistakes));
        }
    }
    Err(error)
}

/// Returns what is in a code fence, if there is nothing around it.
fn unfenced(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let language = inner.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(inner.len());
    let inner = inner.get(language..)?.trim();
    (!inner.contains("```")).then_some(inner)
}

/// Returns an object without the one bracket behind it.
fn without_extra_bracket(text: &str) -> Option<&str> {
    let mut values = Deserializer::from_str(text).into_iter::<serde_json::Map<String, Value>>();
    values.next()?.ok()?;
    let (json, rest) = text.split_at_checked(values.byte_offset())?;
    matches!(rest.trim(), "}" | "]").then_some(json)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{CallFlags, ToolId};

    fn tools(names: &[&str]) -> ToolSet {
        let tool = |id: &&str| ToolDecl {
            id: ToolId::new(id).unwrap(),
            title: None,
            description: String::new(),
            parameters: json!({"type": "object"}).into(),
            flags: CallFlags::default(),
        };
        ToolSet::new(names.iter().map(tool).collect())
    }

    fn meant(names: &[&str], name: &str) -> Option<String> {
        near_name(&tools(names), name).map(|tool| tool.id.to_string())
    }

    #[test]
    fn near_miss_of_a_name_finds_the_only_tool_that_fits() {
        for name in [
            " get_weather",
            "get_weather\n",
            "functions.get_weather",
            "functions::get_weather",
            "default_api:get_weather",
            "tools/get_weather",
            "functions.get_weather:0",
            "get_weather:12",
            "Get_Weather",
            "GET-WEATHER",
            "get weather",
            "get_weather<|channel|>commentary",
        ] {
            assert_eq!(meant(&["send", "get_weather", "weather"], name).as_deref(), Some("get_weather"), "{name}");
        }
        assert_eq!(meant(&["mail.send", "send"], "functions.mail_send").as_deref(), Some("mail.send"));
        assert_eq!(meant(&["mail.send", "send"], "Mail.Send").as_deref(), Some("mail.send"));
        assert_eq!(meant(&["look", "Look"], " look").as_deref(), Some("look"), "one has this name exactly");
    }

    #[test]
    fn name_with_several_meanings_or_another_one_is_not_repaired() {
        assert_eq!(meant(&["look", "Look"], "LOOK"), None);
        assert_eq!(meant(&["a-b", "a_b"], "A.B"), None);
        assert_eq!(meant(&["functions_look", "look"], "functions.look"), None);
        for name in
            ["", "functions.", "weather", "get_weathers", "my.get_weather", "functions.delete", "get_weather(1)"]
        {
            assert_eq!(meant(&["get_weather"], name), None, "{name}");
        }
    }

    #[test]
    fn arguments_in_a_fence_or_with_one_bracket_too_many_are_read() {
        use ArgumentMistake::{ExtraBracket, InCodeFence};
        let read = |text: &str| parse_arguments(text).ok();
        let json = json!({"a": "}"});

        assert_eq!(read(r#"{"a": "}"}"#), Some((json.clone(), vec![])));
        assert_eq!(read(r#"{"a": "}"}}"#), Some((json.clone(), vec![ExtraBracket])));
        assert_eq!(read("{\"a\": \"}\"} ]\n"), Some((json.clone(), vec![ExtraBracket])));
        assert_eq!(read("```json\n{\"a\": \"}\"}\n```"), Some((json.clone(), vec![InCodeFence])));
        assert_eq!(read("```{\"a\": \"}\"}}```\n"), Some((json, vec![InCodeFence, ExtraBracket])));
        for text in [
            r#"{"a": 1"#,
            r#"{"a": 1}}}"#,
            r#"{"a": 1} {"a": 2}"#,
            r#"{"a": 1}, "#,
            "```json\n{}\n``` and",
            "a {}",
            "}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(
            parse_arguments("```json\n{\"a\": \n```").unwrap_err().to_string(),
            serde_json::from_str::<Value>("```").unwrap_err().to_string(),
            "the error is that of the text"
        );
    }
}
