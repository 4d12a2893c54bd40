//! Tests of the engine, by rule.
