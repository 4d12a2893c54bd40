//! The wire and the disk in protobuf: generated code, and conversions to and from `ferrymq-types`.
//!
//! **Invariant:** only this crate maps reason codes to gRPC status, and only in [`status`].

pub mod convert;
mod message_row;
mod properties;
pub mod status;
pub mod storage;

/// Generated code.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::missing_errors_doc,
    clippy::large_futures,
    clippy::let_underscore_must_use,
    clippy::allow_attributes_without_reason,
    clippy::disallowed_types,
    reason = "generated"
)]
mod generated {
    pub mod v1 {
        tonic::include_proto!("ferrymq.v1");
    }
    pub mod admin {
        pub mod v1 {
            tonic::include_proto!("ferrymq.admin.v1");
        }
    }
    pub mod channel {
        pub mod v1 {
            tonic::include_proto!("ferrymq.channel.v1");
        }
    }
    pub mod raft {
        pub mod v1 {
            tonic::include_proto!("ferrymq.raft.v1");
        }
    }
    pub mod storage {
        pub mod v1 {
            tonic::include_proto!("ferrymq.storage.v1");
        }
    }
}

pub use properties::{
    properties_frame_bytes, properties_from_stored, properties_from_wire, properties_to_stored,
    properties_to_wire,
};

pub use generated::admin::v1 as admin_v1;
pub use generated::channel::v1 as channel_v1;
pub use generated::raft::v1 as raft_v1;
pub use generated::storage::v1 as storage_v1;
pub use generated::v1;

/// The descriptor set of all files, for reflection.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor_set.bin"));
