//! The serializer of documents, which checks the limits of each value before it goes on.

use std::fmt;

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde_json::value::Serializer as Plain;
use serde_json::{Map, Value};

use super::{DocumentError, FLOAT, SizeBudget, deeper, digits, size_of_number};

/// Encodes one value.
pub(super) struct Encoder<'a> {
    pub(super) budget: &'a mut SizeBudget,
    /// The number of levels that may still be opened.
    pub(super) levels: usize,
}

impl<'a> Encoder<'a> {
    fn list(self, len: Option<usize>, variant: Option<&'static str>) -> Result<EncodedList<'a>, DocumentError> {
        let levels = deeper(self.levels)?;
        let levels = if variant.is_some() { deeper(levels)? } else { levels };
        self.budget.spend(2 + variant.map_or(0, |name| name.len() + 6))?;
        // The length is only a hint of the value, so the reserved capacity is limited.
        let items = Vec::with_capacity(len.unwrap_or_default().min(4096));
        Ok(EncodedList { items, variant, budget: self.budget, levels })
    }

    fn object(self, variant: Option<&'static str>) -> Result<Object<'a>, DocumentError> {
        let levels = deeper(self.levels)?;
        let levels = if variant.is_some() { deeper(levels)? } else { levels };
        self.budget.spend(2 + variant.map_or(0, |name| name.len() + 6))?;
        Ok(Object { fields: Map::new(), key: None, variant, budget: self.budget, levels })
    }

    fn float(self, finite: bool, value: Value, shown: impl fmt::Display) -> Result<Value, DocumentError> {
        if !finite {
            return Err(DocumentError::not_json(format!("JSON has no number for {shown}")));
        }
        self.budget.spend(FLOAT)?;
        Ok(value)
    }
}

fn too_wide(number: impl fmt::Display) -> DocumentError {
    DocumentError::not_json(format!("{number} does not fit into 64 bits"))
}

fn tagged(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
        None => value,
    }
}

impl<'a> serde::Serializer for Encoder<'a> {
    type Ok = Value;
    type Error = DocumentError;
    type SerializeSeq = EncodedList<'a>;
    type SerializeTuple = EncodedList<'a>;
    type SerializeTupleStruct = EncodedList<'a>;
    type SerializeTupleVariant = EncodedList<'a>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Object<'a>;

    fn serialize_bool(self, value: bool) -> Result<Value, DocumentError> {
        self.budget.spend(4)?;
        Ok(Value::Bool(value))
    }
    fn serialize_i8(self, value: i8) -> Result<Value, DocumentError> {
        self.serialize_i64(value.into())
    }
    fn serialize_i16(self, value: i16) -> Result<Value, DocumentError> {
        self.serialize_i64(value.into())
    }
    fn serialize_i32(self, value: i32) -> Result<Value, DocumentError> {
        self.serialize_i64(value.into())
    }
    fn serialize_i64(self, value: i64) -> Result<Value, DocumentError> {
        self.budget.spend(digits(value.unsigned_abs()) + usize::from(value < 0))?;
        Ok(Value::Number(value.into()))
    }
    fn serialize_i128(self, value: i128) -> Result<Value, DocumentError> {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => self.serialize_u64(value),
            (Err(_), Ok(value)) => self.serialize_i64(value),
            (Err(_), Err(_)) => Err(too_wide(value)),
        }
    }
    fn serialize_u8(self, value: u8) -> Result<Value, DocumentError> {
        self.serialize_u64(value.into())
    }
    fn serialize_u16(self, value: u16) -> Result<Value, DocumentError> {
        self.serialize_u64(value.into())
    }
    fn serialize_u32(self, value: u32) -> Result<Value, DocumentError> {
        self.serialize_u64(value.into())
    }
    fn serialize_u64(self, value: u64) -> Result<Value, DocumentError> {
        self.budget.spend(digits(value))?;
        Ok(Value::Number(value.into()))
    }
    fn serialize_u128(self, value: u128) -> Result<Value, DocumentError> {
        u64::try_from(value).map_err(|_| too_wide(value)).and_then(|value| self.serialize_u64(value))
    }
    fn serialize_f32(self, value: f32) -> Result<Value, DocumentError> {
        self.float(value.is_finite(), Value::from(value), value)
    }
    fn serialize_f64(self, value: f64) -> Result<Value, DocumentError> {
        self.float(value.is_finite(), Value::from(value), value)
    }
    fn serialize_char(self, value: char) -> Result<Value, DocumentError> {
        self.budget.spend(value.len_utf8() + 2)?;
        Ok(Value::String(value.into()))
    }
    fn serialize_str(self, value: &str) -> Result<Value, DocumentError> {
        self.budget.spend(value.len() + 2)?;
        Ok(Value::String(value.to_owned()))
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<Value, DocumentError> {
        let mut list = self.list(Some(value.len()), None)?;
        value.iter().try_for_each(|byte| SerializeSeq::serialize_element(&mut list, byte))?;
        SerializeSeq::end(list)
    }
    fn serialize_none(self) -> Result<Value, DocumentError> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, DocumentError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, DocumentError> {
        self.budget.spend(4)?;
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, DocumentError> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, DocumentError> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, DocumentError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, DocumentError> {
        let mut object = self.object(None)?;
        object.field(variant, value)?;
        SerializeMap::end(object)
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<EncodedList<'a>, DocumentError> {
        self.list(len, None)
    }
    fn serialize_tuple(self, len: usize) -> Result<EncodedList<'a>, DocumentError> {
        self.list(Some(len), None)
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<EncodedList<'a>, DocumentError> {
        self.list(Some(len), None)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<EncodedList<'a>, DocumentError> {
        self.list(Some(len), Some(variant))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Object<'a>, DocumentError> {
        self.object(None)
    }
    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Fields<'a>, DocumentError> {
        // `RawValue`, and `Number` with the feature `arbitrary_precision`, only work with serde_json's own serializer.
        if name.starts_with("$serde_json::private::") {
            let special = serde::Serializer::serialize_struct(Plain, name, len).map_err(DocumentError::custom)?;
            return Ok(Fields::Special { special, encoder: self });
        }
        self.object(None).map(Fields::Plain)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Object<'a>, DocumentError> {
        self.object(Some(variant))
    }
}

/// A partially encoded list.
pub(in crate::record) struct EncodedList<'a> {
    items: Vec<Value>,
    variant: Option<&'static str>,
    budget: &'a mut SizeBudget,
    levels: usize,
}

impl EncodedList<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), DocumentError> {
        self.budget.spend(1)?;
        let encoder = Encoder { budget: self.budget, levels: self.levels };
        let item = value.serialize(encoder).map_err(|error| error.within(self.items.len()))?;
        self.items.push(item);
        Ok(())
    }

    fn finish(self) -> Value {
        tagged(self.variant, Value::Array(self.items))
    }
}

macro_rules! list {
    ($($trait:ident::$method:ident),*) => {
        $(impl $trait for EncodedList<'_> {
            type Ok = Value;
            type Error = DocumentError;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), DocumentError> {
                self.push(value)
            }
            fn end(self) -> Result<Value, DocumentError> {
                Ok(self.finish())
            }
        })*
    };
}

list!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

/// A partially encoded object.
pub(in crate::record) struct Object<'a> {
    fields: Map<String, Value>,
    key: Option<String>,
    variant: Option<&'static str>,
    budget: &'a mut SizeBudget,
    levels: usize,
}

impl Object<'_> {
    fn insert<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), DocumentError> {
        self.budget.spend(key.len() + 4)?;
        let encoder = Encoder { budget: self.budget, levels: self.levels };
        let value = match value.serialize(encoder) {
            Ok(value) => value,
            Err(error) => return Err(error.within(key)),
        };
        match self.fields.entry(key) {
            serde_json::map::Entry::Vacant(free) => {
                free.insert(value);
                Ok(())
            }
            serde_json::map::Entry::Occupied(taken) => {
                Err(DocumentError::not_json(format!("duplicate key `{}`", taken.key())))
            }
        }
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), DocumentError> {
        self.insert(key.to_owned(), value)
    }

    fn finish(mut self) -> Value {
        self.fields.sort_keys();
        tagged(self.variant, Value::Object(self.fields))
    }
}

impl SerializeMap for Object<'_> {
    type Ok = Value;
    type Error = DocumentError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), DocumentError> {
        self.key = Some(key_of(key, self.budget)?);
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), DocumentError> {
        let key = self.key.take().ok_or_else(|| DocumentError::not_json("a map has a value without a key"))?;
        self.insert(key, value)
    }
    fn end(self) -> Result<Value, DocumentError> {
        Ok(self.finish())
    }
}

/// Encodes the key of a map: a string, or a number or `bool` that can be parsed back.
fn key_of<T: Serialize + ?Sized>(key: &T, budget: &mut SizeBudget) -> Result<String, DocumentError> {
    let left = budget.left;
    let key = key.serialize(Encoder { budget, levels: 0 });
    budget.left = left;
    match key {
        Ok(Value::String(text)) => Ok(text),
        Ok(Value::Number(number)) => Ok(number.to_string()),
        Ok(Value::Bool(value)) => Ok(value.to_string()),
        Err(error @ (DocumentError::NotJson { .. } | DocumentError::TooLarge { .. })) => Err(error),
        Ok(Value::Null | Value::Array(_) | Value::Object(_)) | Err(DocumentError::TooDeep) => {
            Err(DocumentError::not_json("a map has a key that is not a string"))
        }
    }
}

impl SerializeStructVariant for Object<'_> {
    type Ok = Value;
    type Error = DocumentError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), DocumentError> {
        self.field(key, value)
    }
    fn end(self) -> Result<Value, DocumentError> {
        Ok(self.finish())
    }
}

/// The fields of a struct.
pub(in crate::record) enum Fields<'a> {
    Plain(Object<'a>),
    /// One of serde_json's own types, which it encodes itself; the limits apply to the result.
    Special {
        special: <Plain as serde::Serializer>::SerializeStruct,
        encoder: Encoder<'a>,
    },
}

impl SerializeStruct for Fields<'_> {
    type Ok = Value;
    type Error = DocumentError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), DocumentError> {
        match self {
            Self::Plain(object) => object.field(key, value),
            Self::Special { special, .. } => {
                SerializeStruct::serialize_field(special, key, value).map_err(DocumentError::custom)
            }
        }
    }
    fn end(self) -> Result<Value, DocumentError> {
        match self {
            Self::Plain(object) => Ok(object.finish()),
            Self::Special { special, encoder } => {
                let value = SerializeStruct::end(special).map_err(DocumentError::custom)?;
                match value {
                    Value::Number(number) => {
                        encoder.budget.spend(size_of_number(&number))?;
                        Ok(Value::Number(number))
                    }
                    value => value.serialize(encoder),
                }
            }
        }
    }
}
