//! Several machines on one store, with leases that lapse: what a machine does that is cut off, and a simulation of many
//! machines with partitions, lost messages and skewed clocks.
#![allow(missing_docs, unreachable_pub, reason = "a test binary")]

mod leases;
mod network;
mod shop;
mod simulation;
