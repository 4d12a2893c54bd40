//! Real processes, real TLS, kill -9.

#[path = "cluster/crash_points.rs"]
mod crash_points;
#[path = "cluster/kills.rs"]
mod kills;
#[path = "cluster/three.rs"]
mod three;
