//! Conditions for serde's `skip_serializing_if`, and the defaults that go with them.

/// Returns whether a field has its default value, which an absent field is read as.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns whether a flag is set, for fields that are `true` when absent.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
pub(crate) const fn is_true(value: &bool) -> bool {
    *value
}

/// The default of a flag that is `true` when absent.
pub(crate) const fn yes() -> bool {
    true
}

/// Returns whether a field has this value, which an absent field is read as.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
pub(crate) const fn is<const N: u32>(value: &u32) -> bool {
    *value == N
}
