//! Load for a RocketMQ name server: closed loops for throughput, open loops for latency, and the null server to compare with.
//!
//! [`run::run`] sets up brokers and clients and runs the phases; a [`worker::Worker`] is one thread's event loop. Everything that
//! decides what is sent, when, and how it is counted is pure and tested without sockets.

pub mod connection;
pub mod descriptors;
pub mod error;
pub mod frame;
pub mod moments;
pub mod null;
pub mod options;
pub mod outage;
pub mod output;
pub mod plot;
pub mod population;
pub mod process;
pub mod progress;
pub mod record;
pub mod registration;
pub mod reply;
pub mod report;
pub mod run;
pub mod schedule;
pub mod setup;
pub mod source;
pub mod stream;
pub mod window;
pub mod worker;
