//! Schedules: their times, what is decided at them, and the runs that they start.

mod crashes;
mod decisions;
mod runs;
mod servers;
mod steps;
mod times;
mod workshop;
