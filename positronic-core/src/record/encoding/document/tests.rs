use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn encode<T: Serialize>(value: &T) -> Result<Value, DocumentError> {
    encode_document(value, MAX_DOCUMENT_BYTES)
}

/// Lists within one another.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]))
}

fn reason<T: Serialize>(value: &T) -> String {
    encode(value).unwrap_err().to_string()
}

#[derive(Serialize)]
enum Shape {
    Unit,
    Newtype(u8),
    Tuple(u8, u8),
    Struct { b: u8, a: u8 },
}

#[test]
fn encodes_as_serde_json_does_with_sorted_keys() {
    #[derive(Serialize)]
    struct Everything<'a> {
        z: (i8, u64, f32, f64, char),
        a: Vec<Shape>,
        some: Option<&'a str>,
        none: Option<u8>,
        unit: (),
        numbers: BTreeMap<i32, bool>,
        flags: BTreeMap<bool, u8>,
        wide: i128,
        #[serde(flatten)]
        more: BTreeMap<String, Value>,
    }
    let value = Everything {
        z: (-3, u64::MAX, 0.5, -1e300, 'ü'),
        a: vec![Shape::Unit, Shape::Newtype(1), Shape::Tuple(1, 2), Shape::Struct { b: 1, a: 2 }],
        some: Some("x"),
        none: None,
        unit: (),
        numbers: BTreeMap::from([(-1, true)]),
        flags: BTreeMap::from([(true, 1)]),
        wide: -5,
        more: BTreeMap::from([("free".to_owned(), json!({"z": 1, "a": [null, {"d": 1, "c": 2}]}))]),
    };
    let mut expected = serde_json::to_value(&value).unwrap();
    expected.sort_all_objects();

    let document = encode(&value).unwrap();

    assert_eq!(document.to_string(), expected.to_string());
}

#[test]
fn raw_json_is_read_and_held_to_the_limits() {
    let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();

    assert_eq!(encode(&raw(r#"{"b":1,"a":[2]}"#)).unwrap().to_string(), r#"{"a":[2],"b":1}"#);
    assert_eq!(encode(&[raw(&nested(64).to_string())]), Err(DocumentError::TooDeep));
}

#[test]
fn what_json_cannot_express_is_refused_with_its_place() {
    #[derive(Serialize)]
    struct Reading {
        values: Vec<f64>,
    }
    let reading = |value| BTreeMap::from([("a/b", Reading { values: vec![0.0, value] })]);

    assert_eq!(reason(&reading(f64::NAN)), "at `/a~1b/values/1`: JSON has no number for NaN");
    assert_eq!(reason(&reading(f64::NEG_INFINITY)), "at `/a~1b/values/1`: JSON has no number for -inf");
    assert_eq!(reason(&f32::INFINITY), "JSON has no number for inf");
    assert_eq!(reason(&[u128::MAX]), format!("at `/0`: {} does not fit into 64 bits", u128::MAX));
    assert_eq!(reason(&BTreeMap::from([((1, 2), 3)])), "a map has a key that is not a string");
    assert_eq!(reason(&BTreeMap::from([(None::<u8>, 3)])), "a map has a key that is not a string");
}

#[test]
fn two_values_for_one_key_are_refused() {
    #[derive(Serialize)]
    struct Twice {
        key: u8,
        #[serde(flatten)]
        more: BTreeMap<&'static str, u8>,
    }

    assert_eq!(reason(&Twice { key: 1, more: BTreeMap::from([("key", 2)]) }), "duplicate key `key`");
}

#[test]
fn the_deepest_document_is_64_levels_and_one_more_is_refused() {
    assert_eq!(encode(&nested(64)).unwrap(), nested(64));
    assert_eq!(encode(&nested(65)), Err(DocumentError::TooDeep));
    assert_eq!(check_document(&nested(64), usize::MAX), Ok(()));
    assert_eq!(check_document(&nested(65), usize::MAX), Err(DocumentError::TooDeep));
}

#[test]
fn a_document_is_too_large_where_it_crosses_the_limit() {
    // 2 for the list, 1 and 2 around the text.
    let list = |len: usize| ["x".repeat(len)];

    assert!(encode_document(&list(95), 100).is_ok());
    let too_large = Err(DocumentError::TooLarge { max_bytes: 100 });
    assert_eq!(encode_document(&list(96), 100), too_large);
    assert_eq!(check_document(&json!(list(95)), 100), Ok(()));
    assert_eq!(check_document(&json!(list(96)), 100), too_large.map(drop));
}

#[test]
fn the_encoder_stops_early_at_a_value_without_an_end() {
    struct Endless;
    impl Serialize for Endless {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let items = (0..=MAX_DOCUMENT_BYTES).map(|item| {
                assert!(item < MAX_DOCUMENT_BYTES, "the encoder does not stop");
                0
            });
            serializer.collect_seq(items)
        }
    }
    struct Bottomless;
    impl Serialize for Bottomless {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq([Self])
        }
    }

    assert_eq!(encode(&Endless), Err(DocumentError::TooLarge { max_bytes: MAX_DOCUMENT_BYTES }));
    assert_eq!(encode(&Bottomless), Err(DocumentError::TooDeep));
}

#[test]
fn a_value_of_2000_levels_is_refused_on_the_stack_of_a_worker_thread() {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let deep = nested(2000);
        (encode(&deep), check_document(&deep, usize::MAX))
    });

    let (encoded, checked) = thread.unwrap().join().unwrap();

    assert_eq!((encoded, checked), (Err(DocumentError::TooDeep), Err(DocumentError::TooDeep)));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
        "[a-z~/\"]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_document_that_was_encoded_reads_back_as_itself(value in json_value()) {
        let document = encode(&value).unwrap();

        prop_assert_eq!(&document, &value);
        prop_assert_eq!(serde_json::from_str::<Value>(&document.to_string()).unwrap(), value);
    }

    #[test]
    fn both_checks_measure_the_same(value in json_value(), limit in 0_usize..400) {
        let encoded = encode_document(&value, limit).map(drop);

        prop_assert_eq!(encoded, check_document(&value, limit));
    }
}
