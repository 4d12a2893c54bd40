//! Descriptors and messages between the wire and `ferrymq-types`.
