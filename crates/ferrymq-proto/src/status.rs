//! The one place where a reason code becomes a gRPC status.
