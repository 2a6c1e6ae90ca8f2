//! A table of an earlier boot: the next one that makes a table here restores it, and says so (T3).

use std::path::Path;

use tenure::{CreateOptions, NodeSpec, Outcome, Seen, Table};

use super::crew::fresh_table;
use super::help::{id, names, node, reboot, take, tenure};

/// A table with a chain of two, the first of them held, whose boot is over.
fn old_table(options: &CreateOptions) -> tempfile::TempDir {
    let dir = super::crew::scratch();
    let (table, _) = Table::open_or_create(dir.path(), options).expect("a directory");
    table.import(&[node("a"), NodeSpec { needs: vec![id("a").into()], ..node("b") }]).expect("room");
    let _ = table.worker("ann").expect("a name").claim_next().expect("a");
    take(&table);
    drop(table);
    reboot(dir.path());
    dir
}

fn open(dir: &Path) -> Table {
    Table::open_or_create(dir, &CreateOptions::default()).expect("a table").0
}

#[test]
fn the_next_opener_restores_and_says_so() {
    let dir = old_table(&CreateOptions::default());
    let (exit, out, err) = tenure(dir.path(), &["list"]);
    assert_eq!((exit, out.as_str()), (Some(5), ""), "reading makes nothing");
    assert!(err.contains("before the last reboot"), "{err}");
    let (exit, out, err) = tenure(dir.path(), &["upsert", "c"]);
    assert_eq!((exit, out.trim_end()), (Some(0), "c"), "{err}");
    assert!(
        err.contains("before the last reboot") && err.contains("2 nodes") && err.contains("1 of them claimed"),
        "{err}"
    );
    let (exit, out, err) = tenure(dir.path(), &["list"]);
    assert_eq!((exit, err.as_str()), (Some(0), ""), "it is said once");
    assert_eq!(out.lines().count(), 4, "{out}");
    assert_eq!(names(dir.path()), ["snapshot", "snapshot.lock"]);
}

/// The table's file, with the boot id in its header changed: what a copy or a kept file system leaves.
fn rewrite_boot(dir: &Path) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(super::help::table_file(dir)).expect("a table");
    file.write_all_at(&[7; 16], 40).expect("room");
}

#[test]
fn a_table_whose_header_is_of_another_boot_is_replaced_like_one_whose_name_is() {
    let (dir, table) = fresh_table();
    table.import(&[node("a"), node("b")]).expect("room");
    take(&table);
    drop(table);
    rewrite_boot(dir.path());
    let (exit, _, err) = tenure(dir.path(), &["list"]);
    assert_eq!(exit, Some(5));
    assert!(err.contains("before the last reboot"), "{err}");
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let dir = dir.path().to_owned();
            std::thread::spawn(move || open(&dir).upsert(&node("c"), false).expect("room"))
        })
        .collect();
    for opener in openers {
        opener.join().expect("no panic");
    }
    let names: Vec<_> =
        open(dir.path()).list(tenure::Filter::default()).expect("whole").into_iter().map(|n| n.label()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(super::help::names(dir.path()), ["snapshot", "snapshot.lock"], "and nothing else but the table");
}

#[test]
fn a_holder_of_before_is_refused_also_one_that_claimed_after_the_snapshot() {
    let (dir, table) = fresh_table();
    table.upsert(&node("a"), false).expect("room");
    take(&table);
    let after = table.worker("ann").expect("a name").claim_next().expect("a").generation();
    drop(table);
    reboot(dir.path());
    let table = open(dir.path());
    let restored = table.restored().expect("a snapshot was there");
    assert_eq!((restored.nodes, restored.handed_back, table.replaced_stale()), (1, 0, true));
    let again = table.worker("bob").expect("a name");
    let claim = again.claim_next().expect("a");
    assert!(claim.generation() > after, "{} was given out before", claim.generation());
    let generation = after.to_string();
    let (exit, _, err) = tenure(dir.path(), &["complete", "a", "--gen", &generation]);
    assert_eq!(exit, Some(1), "{err}");
    claim.complete(Outcome::Done).expect("held");
}

#[test]
fn a_node_that_came_after_the_snapshot_and_comes_again_after_the_reboot_has_no_old_fence() {
    let (dir, table) = fresh_table();
    take(&table);
    table.upsert(&node("late"), false).expect("room");
    let before = table.worker("ann").expect("a name").claim_next().expect("late").generation();
    drop(table);
    reboot(dir.path());
    let table = open(dir.path());
    table.upsert(&node("late"), false).expect("room");
    let after = table.worker("bob").expect("a name").claim_next().expect("late").generation();
    assert!(after > before, "{after} was given out before");
}

#[test]
fn the_settings_of_the_table_come_back_with_it() {
    let options = CreateOptions { lease_ms: Some(60_000), require_fence: true };
    let table = open(old_table(&options).path());
    assert_eq!((table.default_lease_ms(), table.requires_fence()), (60_000, true));
    let other = CreateOptions { lease_ms: Some(5_000), require_fence: false };
    let dir = old_table(&options);
    let (table, made) = Table::open_or_create(dir.path(), &other).expect("a table");
    assert!(made);
    assert_eq!(
        (table.default_lease_ms(), table.requires_fence()),
        (5_000, true),
        "what is asked for, and no fence less"
    );
}

#[test]
fn without_a_snapshot_it_is_empty_and_says_so() {
    let dir = old_table(&CreateOptions::default());
    std::fs::remove_file(dir.path().join("snapshot")).expect("it was there");
    let (exit, _, err) = tenure(dir.path(), &["init"]);
    assert_eq!(exit, Some(0));
    assert!(err.contains("an empty one takes its place"), "{err}");
    assert_eq!(open(dir.path()).stats().expect("counts").nodes, 0);
}

#[test]
fn a_table_that_somebody_removed_does_not_come_back_by_itself() {
    let (dir, table) = fresh_table();
    table.upsert(&node("a"), false).expect("room");
    take(&table);
    drop(table);
    std::fs::remove_file(super::help::table_file(dir.path())).expect("it was there");
    let (exit, _, err) = tenure(dir.path(), &["init"]);
    assert_eq!(exit, Some(0));
    assert!(err.contains("`tenure restore`"), "{err}");
    assert_eq!(open(dir.path()).stats().expect("counts").nodes, 0);
    assert_eq!(tenure(dir.path(), &["restore"]).0, Some(0));
    assert_eq!(open(dir.path()).stats().expect("counts").nodes, 1);
}

#[test]
fn restore_makes_the_table_that_it_fills() {
    let dir = old_table(&CreateOptions::default());
    let (exit, out, err) = tenure(dir.path(), &["restore"]);
    assert_eq!(exit, Some(0), "{err}");
    assert!(out.starts_with("2 nodes"), "{out}");
    let (exit, _, err) = tenure(dir.path(), &["restore"]);
    assert_eq!(exit, Some(1), "{err}");
    assert!(err.contains("--force"), "{err}");
    assert_eq!(tenure(dir.path(), &["restore", "--force"]).0, Some(0));
    let elsewhere = super::crew::scratch();
    let file = dir.path().join("snapshot");
    let (exit, out, err) = tenure(elsewhere.path(), &["restore", "--json", file.to_str().expect("a plain name")]);
    assert_eq!(exit, Some(0), "{err}");
    assert!(out.contains("\"nodes\":2") && out.contains("\"handed_back\":1"), "{out}");
    assert_eq!(open(elsewhere.path()).get(id("a")).expect("there").status, Seen::Ready);
}

#[test]
fn of_many_that_open_at_once_all_find_the_restored_table_whole() {
    for _ in 0..20 {
        let dir = old_table(&CreateOptions::default());
        let found: Vec<(u32, bool)> = std::thread::scope(|scope| {
            let openers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let table = open(dir.path());
                        (table.stats().expect("counts").nodes, table.restored().is_some())
                    })
                })
                .collect();
            openers.into_iter().map(|opener| opener.join().expect("no panic")).collect()
        });
        assert!(found.iter().all(|&(nodes, _)| nodes == 2), "{found:?}");
        assert_eq!(found.iter().filter(|&&(_, restored)| restored).count(), 1, "one of them restored it: {found:?}");
    }
}

#[test]
fn a_worker_that_goes_on_after_a_reboot_finds_its_work_again() {
    let dir = old_table(&CreateOptions::default());
    let (exit, out, err) = tenure(dir.path(), &["claim-next", "--holder", "ann"]);
    assert_eq!(exit, Some(0), "{err}");
    assert!(out.starts_with("a gen=") && err.contains("2 nodes"), "{out} {err}");
    // Without a snapshot there is nothing to find, and it is not for a worker to begin anew.
    let dir = old_table(&CreateOptions::default());
    std::fs::remove_file(dir.path().join("snapshot")).expect("it was there");
    let (exit, _, err) = tenure(dir.path(), &["claim-next", "--holder", "ann"]);
    assert_eq!(exit, Some(5), "{err}");
}
