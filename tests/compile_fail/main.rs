//! What a wrong program is told: each case is named after its rule, and its sentence stands beside it.
//!
//! After a change of a sentence: `TRYBUILD=overwrite cargo test -p positronic-tests --test compile_fail`, then read what
//! changed.

#[test]
fn compile_errors_are_readable() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("compile_fail/cases/*.rs");
    cases.compile_fail("../positronic-macros/tests/ui/*.rs");
}
