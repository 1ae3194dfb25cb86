//! Constraints in words, for the descriptions of schemas whose endpoint does not support their keywords.

use positronic_core::record::{OrderedJson, OrderedObject};

/// Sentences for the description of a schema.
#[derive(Debug, Default)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Adds a constraint.
    pub(super) fn add(&mut self, keyword: &str, value: &OrderedJson) {
        let plain = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let sentence = match (keyword, value) {
            ("minLength", _) => format!("At least {value} characters."),
            ("maxLength", _) => format!("At most {value} characters."),
            ("minItems", _) => format!("At least {value} elements."),
            ("maxItems", _) => format!("At most {value} elements."),
            ("minimum", _) => format!("At least {value}."),
            ("maximum", _) => format!("At most {value}."),
            ("exclusiveMinimum", _) => format!("More than {value}."),
            ("exclusiveMaximum", _) => format!("Less than {value}."),
            ("multipleOf", _) => format!("A multiple of {value}."),
            ("minProperties", _) => format!("At least {value} fields."),
            ("maxProperties", _) => format!("At most {value} fields."),
            ("uniqueItems", OrderedJson::Leaf(unique)) => match unique.as_bool() {
                Some(true) => "No element twice.".to_owned(),
                _ => return,
            },
            ("default", OrderedJson::Leaf(default)) if default.is_null() => return,
            ("default", _) => format!("Default: {value}."),
            ("format", _) => format!("Format: {}.", plain()),
            ("pattern", _) => format!("Pattern: {}.", plain()),
            ("title", _) => plain(),
            ("examples", OrderedJson::List(examples)) => {
                let examples: Vec<_> = examples.iter().map(ToString::to_string).collect();
                format!("Examples: {}.", examples.join(", "))
            }
            ("prefixItems", OrderedJson::List(items)) => {
                let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                format!("The elements, in this order: {}.", items.join(", "))
            }
            _ => format!("It has to fit this JSON schema, too: {{\"{keyword}\":{value}}}."),
        };
        self.say(sentence);
    }

    /// Adds a sentence.
    pub(super) fn say(&mut self, sentence: String) {
        self.0.push(sentence);
    }

    /// Appends the sentences to the description of a schema.
    pub(super) fn describe(self, schema: &mut OrderedObject) {
        if self.0.is_empty() {
            return;
        }
        let description = schema.get("description").and_then(OrderedJson::as_str);
        let mut text = description.unwrap_or_default().trim_end().to_owned();
        for sentence in self.0 {
            if !text.is_empty() {
                text.push_str(if text.ends_with(['.', '!', '?', ':']) { " " } else { ". " });
            }
            text.push_str(&sentence);
        }
        schema.insert("description".to_owned(), text.into());
    }
}
