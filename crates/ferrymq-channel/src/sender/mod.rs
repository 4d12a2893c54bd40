//! The end that sends.

mod io;

pub use io::{SenderEffect, SenderInput, SenderTimer};
