//! The samples of "AgentLoop Architecture".
//!
//! Those up to `state_evolution` are parts of one agent, and so are their translations: [`core_principle`] has its state,
//! [`structured_action_schema`] the actions, [`plan_execute_separation`] what they do, [`agent`] the brain. The record of the
//! loop, which the model reads before each decision, is the history. The example `agentloop` is the complete agent, with real
//! actions.

mod action_registry;
mod agent;
mod core_principle;
mod decision_engine;
mod hierarchical_planning;
mod memory_system;
mod parallel_execution;
mod plan_execute_separation;
mod retry_logic;
mod state_compression;
mod state_evolution;
mod structured_action_schema;
