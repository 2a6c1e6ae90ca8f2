//! A table as a whole: the header, the root, the version in force, and what processes have marked as theirs.

use std::collections::BTreeMap;
use std::path::Path;

use super::raw::Raw;
use super::{Code, Found, Kind, Report, texts, version, words};
use crate::clock;
use crate::layout::{STEPS, VERSIONS_INITIAL, VERSIONS_MAX};
use crate::process;
use crate::region::Region;
use crate::sync::{Bits, Ordering};
use crate::table::Core;
use crate::table::lease::SCAN_MS_MAX;
use crate::word::{LEASE_MS_MAX, OwnerWord, RootWord};

/// How often something is looked at again because others change it meanwhile.
const TRIES: u32 = 100;

/// Whether the pids and times of the lease clock in a table mean something to this process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clocks {
    Shared,
    Foreign,
}

/// Checks a mapped table.
pub(super) fn check_table(region: &Region, path: &Path) -> Report {
    let core = Core { fixed: region.fixed(), region };
    let mut found = Found::new(path, Kind::Table);
    let clocks = header(&core, path, &mut found);
    if root(&core, &mut found) {
        match Raw::in_force(&core) {
            Some(raw) => {
                found.report.counts.nodes = raw.nodes().count() as u32;
                found.report.counts.edges = raw.edge_count as u32;
                version::check(&raw, &mut found);
                texts::check(&core, &raw, &mut found);
                words::check(&core, &raw, clocks, &mut found);
            }
            None => found.report.counts.unjudged += 1,
        }
    }
    marks(&core, clocks, &mut found);
    if found.report.counts.unjudged > 0 {
        let count = found.report.counts.unjudged;
        found.note(format!("{count} things changed too fast to be judged; check again when less is going on"));
    }
    found.report
}

fn header(core: &Core<'_>, path: &Path, found: &mut Found) -> Clocks {
    let header = &core.fixed.header;
    let word = |w: &crate::sync::Shared<u64>| w.load(Ordering::Acquire);
    if word(&header.ready) != 1 {
        found.add(
            Code::Unfinished,
            "header",
            "the table was never finished: its maker died, or the word was overwritten",
        );
    }
    let lease = word(&header.lease_ms);
    if !(1..=LEASE_MS_MAX).contains(&lease) {
        found.add(
            Code::DefaultLease,
            "header",
            format!("the default lease is {lease} ms; it must be 1 to {LEASE_MS_MAX}"),
        );
    }
    let options = word(&header.options);
    if options > 1 {
        found.add(
            Code::UnknownOption,
            "header",
            format!("the options are {options:#x}, of which only the lowest bit exists"),
        );
    }
    let versions = word(&header.versions);
    let backed = u8::try_from(versions.wrapping_sub(1)).ok().filter(|&last| core.version(last).is_ok());
    if backed.is_none() || versions < VERSIONS_INITIAL as u64 {
        let message = format!(
            "it counts {versions} version buffers; there are {VERSIONS_INITIAL} to {VERSIONS_MAX}, and they lie within the file"
        );
        found.add(Code::VersionCount, "header", message);
    }
    let boot = (word(&header.boot_hi), word(&header.boot_lo));
    let named = path.file_name().and_then(|name| name.to_str()?.strip_prefix("table-"));
    let named = named.and_then(|id| uuid::Uuid::parse_str(id).ok()).map(|id| id.as_u64_pair());
    if named.is_some_and(|named| named != boot) {
        found.add(Code::BootMismatch, "header", "the file's name is of one boot and its content of another");
    }
    let here = process::boot_id() == Some(boot);
    let inside = word(&header.namespaces) == process::namespaces();
    if !here {
        found.note(
            "it is from another boot: nothing is held there any more, and its times are not compared with the clock",
        );
    } else if !inside {
        found.note("it was made in another pid or time namespace: its times and processes are not looked at");
    }
    if !(here && inside) {
        return Clocks::Foreign;
    }
    // The word first: others only ever put it at most this far ahead of the clock.
    let next_scan = word(&header.next_scan_ms);
    let now = clock::lease_now_ms();
    if next_scan > now.saturating_add(SCAN_MS_MAX) {
        let message = format!("nobody would look for leases that have run out for another {} ms", next_scan - now);
        found.add(Code::ScanTooLate, "header", message);
    }
    Clocks::Shared
}

/// Whether there is a version in force to go on with.
fn root(core: &Core<'_>, found: &mut Found) -> bool {
    let word = &core.fixed.header.root;
    for _ in 0..TRIES {
        let root = word.load(Ordering::Acquire);
        let canonical = match root.next() {
            None => RootWord::settled(root.number(), root.current()),
            Some(next) => RootWord::pending(root.number(), root.current(), next),
        };
        let count = core.version_count().unwrap_or(VERSIONS_MAX) as u64;
        let exists = |i: u8| u64::from(i) < count && core.version(i).is_ok();
        let next_fits = root.next().is_none_or(|next| exists(next) && next != root.current());
        if canonical != root || root.number() == 0 || !exists(root.current()) || !next_fits {
            found.add(Code::Root, "root", format!("it is {:#x}, which names no version that can be", root.bits()));
            return exists(root.current()) && core.in_force().is_ok();
        }
        let mut wrong = Vec::new();
        let Ok(current) = core.version(root.current()) else { return false };
        let number = current.stamp.load(Ordering::Acquire);
        // A change that was called off leaves the number of the root ahead.
        if number == 0 || number > root.number() {
            wrong.push((
                Code::VersionNumber,
                format!("the version in force has the number {number}, the root {}", root.number()),
            ));
        }
        if let Some(Ok(next)) = root.next().map(|next| core.version(next)) {
            coming(next, root, &mut wrong);
        }
        if word.load(Ordering::Acquire) == root {
            let can_go_on = number != 0;
            wrong.into_iter().for_each(|(code, message)| found.add(code, "root", message));
            if root.is_pending() {
                found.note("a change of the graph is under way; whoever writes next finishes it");
            }
            return can_go_on;
        }
    }
    found.report.counts.unjudged += 1;
    true
}

/// The version that a change under way brings in.
fn coming(next: &crate::layout::Version, root: RootWord, wrong: &mut Vec<(Code, String)>) {
    let number = next.stamp.load(Ordering::Acquire);
    let verdict = next.verdict.load(Ordering::Acquire);
    if number != root.number() || verdict >> 2 != number || verdict & 3 > 2 {
        wrong.push((
            Code::VersionNumber,
            format!("the change under way is number {}, and its version {number}", root.number()),
        ));
    }
    let steps = next.steps.load(Ordering::Acquire);
    let known = |i: usize| next.changes.get(i).is_some_and(|change| change.load(Ordering::Acquire).step().is_some());
    let all = usize::try_from(steps).is_ok_and(|steps| steps <= STEPS && (0..steps).all(known));
    if !all {
        wrong.push((Code::Step, "the change under way has a step that does not exist".to_owned()));
    }
}

/// Counts what processes have marked, by whether they still run.
fn marks(core: &Core<'_>, clocks: Clocks, found: &mut Found) {
    let versions = (0..core.version_count().unwrap_or(0)).filter_map(|i| core.version(i as u8).ok());
    let owners = core.fixed.blocks.iter().map(|block| &block.owner).chain(versions.map(|version| &version.owner));
    let mut runs: BTreeMap<u64, bool> = BTreeMap::new();
    for owner in owners.map(|owner| owner.load(Ordering::Acquire)).filter(|&owner| owner != OwnerWord::NOBODY) {
        let lives = clocks == Clocks::Shared && *runs.entry(owner.bits()).or_insert_with(|| !process::is_gone(owner));
        *if lives { &mut found.report.counts.reserved } else { &mut found.report.counts.left_over } += 1;
    }
}
