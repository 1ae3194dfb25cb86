//! The trait of JSON values that can be read leniently.

use serde_json::{Number, Value};

/// A JSON value that can be read leniently: a [`Value`], or a [`BorrowedValue`](super::lenient::BorrowedValue), which costs less where little of it is kept.
pub trait Json: Sized {
    /// Returns a field of an object.
    fn get(&self, name: &str) -> Option<&Self>;

    /// Returns the fields of an object, none of another value.
    fn fields(&self) -> impl Iterator<Item = (&str, &Self)>;

    /// Returns a text.
    fn as_str(&self) -> Option<&str>;

    /// Returns the elements of a list.
    fn as_array(&self) -> Option<&[Self]>;

    /// Returns a number.
    fn as_number(&self) -> Option<&Number>;

    /// Returns whether it is an object.
    fn is_object(&self) -> bool;

    /// Returns whether it is `null`.
    fn is_null(&self) -> bool;

    /// Copies it.
    fn to_value(&self) -> Value;
}

impl Json for Value {
    fn get(&self, name: &str) -> Option<&Self> {
        self.get(name)
    }

    fn fields(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
    }

    fn as_str(&self) -> Option<&str> {
        self.as_str()
    }

    fn as_array(&self) -> Option<&[Self]> {
        self.as_array().map(Vec::as_slice)
    }

    fn as_number(&self) -> Option<&Number> {
        self.as_number()
    }

    fn is_object(&self) -> bool {
        self.is_object()
    }

    fn is_null(&self) -> bool {
        self.is_null()
    }

    fn to_value(&self) -> Value {
        self.clone()
    }
}
