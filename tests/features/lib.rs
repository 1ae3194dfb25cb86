//! One set of features of dependencies for all commands of this workspace; it has no code.
//!
//! Cargo builds a dependency once for each set of its features, with all that depends on it, and takes the features that the
//! selected packages want: `cargo run -p positronic-examples` and `cargo test` would build most of the workspace twice, the
//! lanes a third time. The examples, which are in each selection, depend on this package, whose features are all that any of
//! them wants. A published crate never depends on it, and `.ci/slow` checks each feature alone.
