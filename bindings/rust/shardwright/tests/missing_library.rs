// SPDX-License-Identifier: Apache-2.0
//! Programs that open the library at run time and do not find it.
#![cfg(feature = "load-dynamic")]

#[test]
fn the_error_of_a_missing_library_can_be_printed() {
    let error = shardwright::Context::shared().err().expect("this test runs where no library is found");
    assert!(error.to_string().starts_with("NOT_FOUND: libshardwright could not be loaded; tried "), "{error}");
    assert!(format!("{error:?}").contains("kind: NotFound, status: 5"), "{error:?}");
    let opened = shardwright::Checkpoint::open("p").expect_err("as above");
    assert_eq!(opened.kind(), shardwright::ErrorKind::NotFound);
}
