//! Compiles `proto/` with protox: no protoc is needed.

use std::path::PathBuf;

use prost::Message as _;

const FILES: &[&str] = &[
    "ferrymq/v1/messaging.proto",
    "ferrymq/admin/v1/admin.proto",
    "ferrymq/channel/v1/channel_service.proto",
    "ferrymq/raft/v1/raft_service.proto",
    "ferrymq/storage/v1/write_set.proto",
    "ferrymq/storage/v1/definitions.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = "../../proto";
    println!("cargo:rerun-if-changed={root}");
    let set = protox::compile(FILES, [root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Served by reflection and compared by the test of the schema's rules.
    std::fs::write(out.join("descriptor_set.bin"), set.encode_to_vec())?;
    // Byte fields become `Bytes`: no copy out of the receive buffer.
    tonic_prost_build::configure().bytes(".").compile_fds(set)?;
    Ok(())
}
