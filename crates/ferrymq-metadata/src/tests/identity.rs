use std::fs;

use super::config;
use crate::error::OpenError;
use crate::identity::{Identity, IdentityProblem};

#[test]
fn inv_r4_a_directory_belongs_to_one_node_of_one_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let own = config(directory.path());
    let first = Identity::open(&own, true).unwrap();
    let again = Identity::open(&own, false).unwrap();
    assert_eq!(again.instance, first.instance);

    let mut other = own.clone();
    other.node = 2;
    let refused = Identity::open(&other, false).unwrap_err();
    assert!(matches!(
        refused,
        OpenError::ForeignDirectory {
            found_node: 1,
            node: 2,
            ..
        }
    ));
    assert!(refused.to_string().contains("empty directory"), "{refused}");

    let mut other = own;
    other.cluster = "another".to_owned();
    let refused = Identity::open(&other, true).unwrap_err();
    assert!(matches!(refused, OpenError::ForeignDirectory { .. }));
}

#[test]
fn inv_r4_a_log_without_its_identity_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = Identity::open(&config(directory.path()), false).unwrap_err();
    assert!(matches!(refused, OpenError::IdentityMissing { .. }));
}

#[test]
fn inv_s3_a_flipped_bit_in_the_identity_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let own = config(directory.path());
    let file = Identity::open(&own, true).unwrap().file().to_owned();
    let good = fs::read(&file).unwrap();
    for byte in 0..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 1 << (byte % 8);
        fs::write(&file, bad).unwrap();
        let refused = Identity::open(&own, false).unwrap_err();
        assert!(matches!(refused, OpenError::Io { .. }), "{byte}: {refused}");
    }
    fs::write(&file, good).unwrap();
    assert!(Identity::open(&own, false).is_ok());
}

#[test]
fn inv_r4_a_node_with_another_directory_than_before_is_not_spoken_with() {
    let directory = tempfile::tempdir().unwrap();
    let own = config(directory.path());
    let identity = Identity::open(&own, true).unwrap();
    assert_eq!(identity.known(2), None);
    identity.recognise(2, [2; 16]).unwrap();
    identity.recognise(2, [2; 16]).unwrap();
    let replaced = Err(IdentityProblem::Replaced { node: 2 });
    assert_eq!(identity.recognise(2, [3; 16]), replaced);

    let reopened = Identity::open(&own, false).unwrap();
    assert_eq!(reopened.known(2), Some([2; 16]));
    assert_eq!(reopened.recognise(2, [3; 16]), replaced);
    reopened.recognise(3, [3; 16]).unwrap();
}
