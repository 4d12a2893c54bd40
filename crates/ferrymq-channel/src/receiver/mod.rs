//! The end that receives.

mod io;

pub use io::{ReceiverEffect, ReceiverInput, ReceiverTimer};
