//! A JSON value that borrows its texts from the document, for answers that are read once.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::json::Json;

/// A JSON value whose texts are those of the document unless they have escapes. It holds every value that a [`Value`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum BorrowedValue<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(Cow<'a, str>),
    /// A list.
    Array(Vec<Self>),
    /// An object: its fields in their order. Of fields with the same name, the last one counts.
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl Json for BorrowedValue<'_> {
    fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn fields(&self) -> impl Iterator<Item = (&str, &Self)> {
        let fields = if let Self::Object(fields) = self { fields.as_slice() } else { &[] };
        fields.iter().map(|(name, value)| (&**name, value))
    }

    fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    fn as_number(&self) -> Option<&Number> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(is) => Value::Bool(*is),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::String(text.clone().into_owned()),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone().into_owned(), value.to_value())).collect()
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for BorrowedValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = BorrowedValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Null)
    }

    fn visit_bool<E>(self, is: bool) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Bool(is))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(number).map_or(BorrowedValue::Null, BorrowedValue::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(BorrowedValue::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(BorrowedValue::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(BorrowedValue::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((Name(name), value)) = entries.next_entry()? {
            fields.push((name, value));
        }
        Ok(BorrowedValue::Object(fields))
    }
}

/// The name of a field.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a\"\\\\\n/ü😀]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a\"\\\\ü]{0,3}", inner, 0..4).prop_map(|fields| json!(fields)),
            ]
        })
    }

    proptest! {
        #[test]
        fn value_is_that_of_serde_json(value in value(), is_pretty in any::<bool>()) {
            let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<BorrowedValue<'_>>(&text).unwrap().to_value(), read);
        }

        #[test]
        fn errors_are_those_of_serde_json(text in r#"[{}\[\]",:0-9eE.\-atrue\\ufd\n ]{0,24}"#) {
            let read = serde_json::from_str::<Value>(&text).map_err(|error| error.to_string());
            let borrowed = serde_json::from_str::<BorrowedValue<'_>>(&text).map_err(|error| error.to_string());
            prop_assert_eq!(borrowed.map(|value| value.to_value()), read);
        }
    }

    #[test]
    fn texts_without_escapes_are_borrowed_and_the_last_of_equal_names_counts() {
        let value: BorrowedValue<'_> = serde_json::from_str(r#"{"a":"1","a":"2","b":"\n"}"#).unwrap();

        assert_eq!(value.get("a"), Some(&BorrowedValue::String(Cow::Borrowed("2"))));
        assert_eq!(value.to_value(), json!({"a": "2", "b": "\n"}));
        let BorrowedValue::Object(fields) = &value else { panic!("{value:?}") };
        assert!(matches!(fields.as_slice(), [_, (_, BorrowedValue::String(Cow::Borrowed("2"))), _]));
    }
}
