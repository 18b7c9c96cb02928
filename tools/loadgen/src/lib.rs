//! Load for a RocketMQ name server: closed loops for throughput, open loops for latency, and the null server to compare with.
//!

pub mod connection;
pub mod error;
pub mod frame;
pub mod null;
pub mod options;
pub mod population;
pub mod process;
pub mod record;
pub mod registration;
pub mod reply;
pub mod run;
pub mod schedule;
pub mod setup;
pub mod source;
pub mod stream;
pub mod window;
pub mod worker;
