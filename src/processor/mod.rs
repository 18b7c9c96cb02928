//! processor
