//! waypost: a drop-in replacement for the Apache RocketMQ NameServer.
//!
//! ```text
//!                    ┌───────────┐   new connections, round robin
//!       listen ────▶ │ acceptor  │──────────────┐
//!                    └───────────┘              ▼
//!                           ┌────────────────────────────────────┐
//! brokers, clients ◀──────▶ │ worker 0..N   one mio::Poll each    │
//!       TCP                 │  socket ⇄ Connection ⇄ processor    │
//!                           │  reads: answered here from snapshot │──▶ helper (large registrations, long lists)
//!                           └───────┬──────────────────▲──────────┘◀──
//!                    Command        │                  │ Reply / Close
//!                    (mailbox+waker)▼                  │ (mailbox+waker)
//!                           ┌────────────────────────────────────┐
//!                           │ writer       owns Registry          │──▶ notifier  (one-way requests to brokers)
//!                           │  drain → apply → publish → reply    │──▶ persister (kvConfig.json, namesrv.properties)
//!                           └───────────────┬────────────────────┘
//!                                           │ publish
//!                                  RouteSnapshot (arc-swap)  ◀── loaded by every worker, once a readable event
//! ```
//!
//! Modules in reading order: [`protocol`] (bytes ⇄ typed messages), [`registry`] (the routing state machine and its
//! snapshots), [`processor`] (request + snapshot → answer or command), [`connection`] (a peer's byte streams without the
//! socket), [`worker`] (the turn of a thread that owns connections, on whatever sockets), [`sync`] (hand-over between threads; the
//! only place for atomics), [`config`] (every setting), [`server`] (the only module with sockets, files, clock and threads).

pub mod cli;
pub mod config;
pub mod connection;
pub mod ids;
pub mod limits;
pub mod logging;
pub mod processor;
pub mod protocol;
pub mod registry;
pub mod server;
pub mod sync;
pub mod time;
pub mod worker;
