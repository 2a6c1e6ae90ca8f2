//! `docs/layout.md` says where every word of the file is; this compares it with the structs.

use std::mem::{offset_of, size_of};
use std::path::Path;

use super::*;

/// The rows of one struct's table: field, offset, and bytes up to the next field or the end.
fn rows(size: usize, mut fields: Vec<(&str, usize)>) -> String {
    fields.sort_by_key(|&(_, offset)| offset);
    let ends: Vec<usize> = fields.iter().skip(1).map(|&(_, offset)| offset).chain([size]).collect();
    let row = |((name, offset), end): (&(&str, usize), &usize)| format!("| `{name}` | {offset} | {} |\n", end - offset);
    fields.iter().zip(&ends).map(row).collect()
}

macro_rules! rows_of {
    ($of:ty: $($field:ident)*) => {
        rows(size_of::<$of>(), vec![$((stringify!($field), offset_of!($of, $field))),*])
    };
}

#[test]
fn the_byte_diagram_is_that_of_this_build() {
    let tables = [
        ("Fixed", rows_of!(Fixed: header nodes holders groups blocks)),
        (
            "Header",
            rows_of!(Header: magic layout_version fingerprint byte_order capacity boot_hi boot_lo namespaces created_ms
                lease_ms options ready root versions next_scan_ms bell watcher text_cursor text_stamp),
        ),
        ("NodeSlot", rows_of!(NodeSlot: word lease length end process not_before)),
        ("HolderSlot", rows_of!(HolderSlot: word)),
        ("GroupSlot", rows_of!(GroupSlot: word)),
        ("Block", rows_of!(Block: owner text chain payload)),
        (
            "NodeFacts",
            rows_of!(NodeFacts: text id_hi id_lo role policy deps_at children_at rank parent_and_cost waiting_below base born
                created_ms updated_ms),
        ),
        (
            "Version",
            rows_of!(Version: owner stamp verdict high edges steps next_born holder_high filled floor nodes deps children order index
                holders holder_hash groups group_hash group_limit changes targets befores hints aged watch),
        ),
    ];
    let tables: String = tables
        .iter()
        .map(|(name, rows)| format!("### {name}\n\n| field | offset | bytes |\n|---|---|---|\n{rows}\n"))
        .collect();
    let numbers = format!(
        "Layout version **{LAYOUT_VERSION}**. A new file has {VERSIONS_INITIAL} version buffers and is {} bytes long; with \
         {VERSIONS_MAX}, the most it can have, {}.\n\n",
        file_bytes(VERSIONS_INITIAL),
        file_bytes(VERSIONS_MAX)
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/layout.md");
    let doc = std::fs::read_to_string(&path).expect("docs/layout.md is part of the repository");
    let (begin, end) = ("<!-- the tables: written by the test -->\n\n", "<!-- end of the tables -->\n");
    let from = doc.find(begin).expect("the mark before the tables") + begin.len();
    let to = doc.find(end).expect("the mark behind the tables");
    let wanted = numbers + &tables;
    if std::env::var_os("TENURE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{wanted}{}", &doc[..from], &doc[to..]))
            .expect("docs/layout.md can be written");
        return;
    }
    assert!(doc[from..to] == wanted, "docs/layout.md is out of date; TENURE_UPDATE_DOCS=1 cargo test --lib writes it");
}
