//! The samples of the "Loop Step Design".
//!
//! Where Rust differs:
//!
//! - A sample's `parameters: z.object({ … })` is a type that derives `Deserialize` and `JsonSchema`. Doc comments on its fields
//!   are what `.describe(…)` is in the design.
//! - The state is a struct instead of an object that each step extends. A step owns it and returns the next one; a tool changes
//!   it with a function, since the tools of one answer run concurrently: with `{ ...state, count: state.count + 1 }` two calls
//!   would count once.
//! - The brain's options are an argument of the run, so what a sample reads from an undeclared state is an option here.
//! - Brains, webhooks and resources of a project are fields of its services. In small samples a function returns a brain or a webhook.

mod brain_injection;
mod config_function;
mod events_emitted;
mod option_1_minimal_config;
mod option_2_builders;
mod option_3_skills;
mod option_4_modes;
mod option_5_defaults;
mod recommended_approach;
mod type_inference;
mod webhook_pattern;
