//! Compile errors of invalid programs: each case is named after its rule, with its message in a file next to it.
//!
//! After a change of a message: `TRYBUILD=overwrite cargo test -p positronic-compile-fail`, then review
//! the changes.

#[test]
fn compile_errors_are_readable() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("cases/*.rs");
    cases.compile_fail("macros/*.rs");
}
