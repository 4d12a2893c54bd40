//! Seeds that once failed.
