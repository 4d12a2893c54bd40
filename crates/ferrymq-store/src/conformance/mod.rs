//! The suite that every pair of a record log and a row store passes.
//!
//! Implement [`Factory`] and call [`conformance_suite!`](crate::conformance_suite) in a test module: it makes a test of each
//! function here.

mod model;
mod random;
mod rules;

pub use model::{Harness, Model, message, row_of};
pub use random::random_runs_equal_the_model;
pub use rules::*;

use crate::{RecordLog, Recovered, RowStore, StoreError};

/// Makes stores on a disk of its own, and loses its power.
pub trait Factory {
    /// The log.
    type Log: RecordLog;
    /// The row store.
    type Rows: RowStore;

    /// Opens the log.
    ///
    /// # Errors
    /// As the log says.
    fn open_log(&mut self) -> Result<Self::Log, StoreError>;

    /// Opens the row store.
    ///
    /// # Errors
    /// As the row store says.
    fn open_rows(&mut self, recovered: &Recovered) -> Result<Self::Rows, StoreError>;

    /// The power fails while log and rows are open: what is opened from now on has what was durable, and of the rest what `seed`
    /// chooses.
    fn crash(&mut self, seed: u64);
}

/// Makes a test of each function of the suite. `$make` is an expression of type `fn() -> impl Factory`.
#[macro_export]
macro_rules! conformance_suite {
    ($make:expr) => {
        $crate::conformance_suite! { @ $make =>
            what_was_synced_survives_and_the_rest_vanishes_as_a_suffix
            u1_a_checkpoint_makes_its_position_durable_first
            u1_a_crash_at_any_moment_of_a_checkpoint_loses_nothing
            u2_a_message_put_and_deleted_between_checkpoints_never_reaches_the_rows
            u2_deletions_and_changes_of_old_rows_reach_the_rows
            u8_a_body_that_is_shared_or_moved_survives
            u9_a_body_is_found_wherever_a_checkpoint_moves_it
            u10_every_run_has_an_epoch_of_its_own
            u13_rows_are_absolute_values
            u13_a_deleted_channel_leaves_no_row_in_any_layer
            u20_a_write_set_larger_than_half_the_log_is_refused
            u20_a_write_set_larger_than_a_record_goes_in_parts
            large_bodies_come_back_in_one_piece
            write_sets_follow_each_other_without_a_gap
            inv_s1_a_dump_is_of_one_moment_and_changes_nothing
            random_runs_equal_the_model
        }
    };
    (@ $make:expr => $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $crate::conformance::$name($make);
            }
        )*
    };
}
