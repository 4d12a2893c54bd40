//! The suite that every pair of log and row store passes.
