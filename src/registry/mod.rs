//! The routing state machine: one owner, `now` an argument.

pub mod command;
pub mod effect;

pub use effect::Effect;
