//! Real processes, real TLS, kill -9.

#[path = "cluster/kills.rs"]
mod kills;
#[path = "cluster/three.rs"]
mod three;
