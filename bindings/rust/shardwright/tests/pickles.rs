// SPDX-License-Identifier: Apache-2.0
//! What pickles would import, and files without it.

use std::fs;

use shardwright::{ErrorKind, Location, clean_pickles, scan_pickles};

const COMMAND: &[u8] = b"\x80\x02}U\x02lrK\x01sU\x04whencposix\nsystem\nU\x02id\x85Rs.";

#[test]
fn pickles_are_scanned_and_cleaned() {
    let folder = std::env::temp_dir().join(format!("shw-pickles-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("v.pkl"), COMMAND).unwrap();
    let found = scan_pickles(&Location::path(folder.join("v.pkl"))).unwrap();
    assert!(found.contains("\"unknown\":1") && found.contains("\"module\":\"posix\""), "{found}");
    let clean = folder.join("clean.pkl");
    let written = clean_pickles(&Location::path(folder.join("v.pkl")), &Location::path(&clean)).unwrap();
    assert!(written.contains("\"replaced\":1"), "{written}");
    assert!(scan_pickles(&Location::path(&clean)).unwrap().contains("\"unknown\":0"));
    let missing = scan_pickles(&Location::path(folder.join("nothing"))).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    fs::remove_dir_all(folder).unwrap();
}
