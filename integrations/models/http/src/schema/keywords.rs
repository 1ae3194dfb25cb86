//! The keywords of JSON Schema, by their treatment in a strict schema.

/// The constraints of numbers.
pub(super) const NUMERIC: &[&str] = &["multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// Keywords without constraints on values.
pub(super) const SILENT: [&str; 12] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "discriminator",
    "propertyOrdering",
    "description",
];

/// Structural keywords of objects, arrays and unions.
pub(super) const STRUCTURE: [&str; 10] =
    ["type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "$ref"];

/// Returns whether a constraint applies only to values of another type.
pub(super) fn binds_another_type(keyword: &str, kind: &str) -> bool {
    const BOUND: [(&str, &[&str]); 4] = [
        ("string", &["minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType"]),
        ("number", NUMERIC),
        ("array", &["minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems"]),
        ("object", &["minProperties", "maxProperties", "propertyNames", "dependentRequired", "dependentSchemas"]),
    ];
    let own = if kind == "integer" { "number" } else { kind };
    BOUND.iter().any(|(bound, keywords)| *bound != own && keywords.contains(&keyword))
}
