//! The one integration binary.

mod faults;
mod world;
