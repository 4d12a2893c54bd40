//! Write sets and rows as protobuf.
