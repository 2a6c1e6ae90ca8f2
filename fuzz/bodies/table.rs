//! Table files. The bytes are a list of edits of a sound table, twelve bytes each; when the first byte is 255 they are the
//! file itself. Then every verb runs on it.
//!
//! Two things must hold besides that nothing panics and everything ends: if the checker found nothing wrong no verb may say
//! that the table is damaged, and checking again afterwards finds nothing then either.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tenure::check::{self, Report};
use tenure::{ClaimOptions, Completion, CreateOptions, Need, NodeId, NodeSpec, OnFailure, Outcome, Table};

use super::{scratch, verbs, within};

const PAGE: usize = 4_096;
/// Where things stand in the file.
const LAYOUT: &str = include_str!("../../docs/layout.md");

/// A sound table: the pages of its file that are not empty, and where its words are.
struct Sample {
    name: String,
    len: u64,
    pages: Vec<(u64, Vec<u8>)>,
    regions: Vec<Region>,
}

/// Words that an edit may be about.
struct Region {
    at: u64,
    words: u64,
}

pub fn run(bytes: &[u8]) {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    let sample = SAMPLE.get_or_init(sample);
    let dir = scratch();
    let path = dir.path().join(&sample.name);
    match bytes.split_first() {
        Some((255, content)) => std::fs::write(&path, content).expect("written"),
        _ => spoiled(sample, bytes, &path),
    }
    let before = within("checking", || check::table(dir.path()));
    let damaged = match within("opening", || Table::open(dir.path())) {
        Ok(table) => verbs::all(&table),
        Err(_) => return,
    };
    let after = within("checking", || check::table(dir.path())).expect("it was opened");
    if before.as_ref().is_ok_and(is_sound) {
        assert!(damaged.is_empty(), "nothing was wrong, and then: {damaged:?}");
        assert!(is_sound(&after), "nothing was wrong, and then: {after:#?}");
    }
}

fn is_sound(report: &Report) -> bool {
    report.sound
}

fn sample() -> Sample {
    let dir = scratch();
    fill(dir.path());
    let entry = std::fs::read_dir(dir.path())
        .expect("the directory")
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("table-"));
    let path: PathBuf = entry.expect("the table").path();
    let bytes = std::fs::read(&path).expect("its bytes");
    let pages = bytes.chunks(PAGE).enumerate().filter(|(_, page)| page.iter().any(|&byte| byte != 0));
    let pages = pages.map(|(i, page)| ((i * PAGE) as u64, page.to_vec())).collect();
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let current = u64::from(
        bytes[field("Header", "root").0 as usize + 1] >> 2 | bytes[field("Header", "root").0 as usize + 2] << 6,
    );
    Sample { name, len: bytes.len() as u64, pages, regions: regions(current) }
}

/// Something of everything.
fn fill(dir: &Path) {
    let (table, _) = Table::open_or_create(dir, &CreateOptions::default()).expect("a table");
    table.set_group("g", 2).expect("a group");
    let need = |node: &str, mode| Need { node: NodeId::of_name(node), on_failure: Some(mode) };
    let spec = |name: &str, needs: Vec<Need>| NodeSpec { name: Some(name.into()), needs, ..NodeSpec::default() };
    let nodes = [
        NodeSpec { summary: Some("text ".repeat(60)), ..spec("a", vec![]) },
        NodeSpec { group: Some("g".into()), ..spec("b", vec![need("a", OnFailure::Block)]) },
        NodeSpec {
            role: Some("r".into()),
            parent: Some(Some(NodeId::of_name("b"))),
            ..spec("c", vec![need("b", OnFailure::Skip)])
        },
        NodeSpec { group: Some("g".into()), max_attempts: Some(2), retry_delay_ms: Some(5), ..spec("d", vec![]) },
        spec("e", vec![need("d", OnFailure::Continue)]),
        spec("f", vec![]),
    ];
    table.import(&nodes).expect("room");
    let claim = table
        .worker("w1")
        .expect("a name")
        .claim_with(NodeId::of_name("a"), &ClaimOptions::default())
        .map(|claim| claim.generation());
    claim.expect("it is ready");
    let _ = table.worker("w2").expect("a name").claim(NodeId::of_name("d")).expect("it is ready");
    let how = Completion { outcome: Outcome::Failed, generation: None, holder: None, summary: Some("why ".repeat(50)) };
    table.complete(NodeId::of_name("f"), &how).expect("nobody holds it");
    table.snapshot(std::time::Duration::from_secs(10), || {}).expect("written");
}

/// Offset and length of a field, as the documentation of the file has them.
fn field(of: &str, name: &str) -> (u64, u64) {
    let section =
        LAYOUT.split(&format!("### {of}\n")).nth(1).expect("a section").split("\n### ").next().unwrap_or_default();
    let row = section.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).expect("a row");
    let mut numbers = row.split('|').filter_map(|cell| cell.trim().parse().ok());
    (numbers.next().expect("an offset"), numbers.next().expect("a length"))
}

/// The words that verbs read: all of the header and of the version in force, the first of each array.
fn regions(current: u64) -> Vec<Region> {
    let fixed = |name: &str, bytes: u64| Region { at: field("Fixed", name).0, words: bytes / 8 };
    let mut regions = vec![
        fixed("nodes", 8 * 64),
        fixed("holders", 4 * 64),
        fixed("groups", 3 * 64),
        fixed("blocks", 40 * 128),
        Region { at: field("Header", "lease_ms").0, words: 2 },
        Region { at: field("Header", "root").0, words: 2 },
        Region { at: field("Header", "next_scan_ms").0, words: 1 },
        Region { at: field("Header", "bell").0, words: 2 },
        Region { at: field("Header", "text_cursor").0, words: 2 },
    ];
    let (blocks, bytes) = field("Fixed", "blocks");
    let (last, rest) = field("Version", "watch");
    let version = blocks + bytes + current * (last + rest);
    let rows = LAYOUT.split("### Version\n").nth(1).expect("a section").lines().filter(|line| line.starts_with("| `"));
    for name in rows.filter_map(|row| row.split('`').nth(1)) {
        let (at, bytes) = field("Version", name);
        regions.push(Region { at: version + at, words: (bytes / 8).min(8) });
    }
    regions
}

/// Writes the sample with edits: region, word, kind, and eight bytes of value each.
fn spoiled(sample: &Sample, bytes: &[u8], path: &Path) {
    let file = File::create_new(path).expect("a new file");
    file.set_len(sample.len).expect("room");
    for (at, page) in &sample.pages {
        file.write_all_at(page, *at).expect("written");
    }
    let file = File::options().read(true).write(true).open(path).expect("it is there");
    let word = |at: u64| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, at).map(|()| u64::from_le_bytes(word)).unwrap_or(0)
    };
    for edit in bytes.chunks_exact(12) {
        let region = &sample.regions[usize::from(edit[0]) % sample.regions.len()];
        let at = region.at + 8 * (u64::from(u16::from_le_bytes([edit[1], edit[2]])) % region.words);
        let value = u64::from_le_bytes(edit[4..12].try_into().expect("eight"));
        let new = match edit[3] % 8 {
            0 => value,
            1 => word(at) ^ (1 << (value % 64)),
            2 => 0,
            3 => u64::MAX,
            4 => word(at).wrapping_add(1),
            5 => word(at).wrapping_sub(1),
            6 => word(region.at + 8 * (value % region.words)),
            _ => word(at) ^ value,
        };
        file.write_all_at(&new.to_le_bytes(), at).expect("written");
    }
}
