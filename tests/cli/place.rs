//! Where the table lives, with which modes, and what is refused there.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Ran, Sandbox, bare, finish, table_file};

const NOBODY: u32 = 65_534;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).mode() & 0o7777
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `init` with these variables and nothing else that names a place.
fn init_with(env: &[(&str, &Path)]) -> Ran {
    finish(bare().env_remove("HOME").envs(env.iter().copied()).arg("init"))
}

#[test]
fn the_first_of_the_places_is_taken() {
    let sandbox = Sandbox::empty();
    let at = |name: &str| {
        let path = sandbox.root().join(name);
        fs::create_dir_all(&path).expect("a directory");
        path
    };
    let (dir, runtime, state, home) = (at("dir"), at("runtime"), at("state"), at("home"));
    let all = [
        ("TENURE_DIR", dir.as_path(), dir.clone()),
        ("XDG_RUNTIME_DIR", &runtime, runtime.join("tenure")),
        ("XDG_STATE_HOME", &state, state.join("tenure")),
        ("HOME", &home, home.join(".local/state/tenure")),
    ];
    for first in 0..all.len() {
        let env: Vec<(&str, &Path)> = all[first..].iter().map(|(key, path, _)| (*key, *path)).collect();
        let ran = init_with(&env);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let expected = &all[first].2;
        assert!(ran.out.contains(expected.to_str().expect("UTF-8")), "{ran:?}");
        table_file(expected);
    }
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let sandbox = Sandbox::empty();
    let empty = Path::new("");
    let ran = init_with(&[("TENURE_DIR", empty), ("XDG_RUNTIME_DIR", empty), ("XDG_STATE_HOME", sandbox.root())]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    table_file(&sandbox.root().join("tenure"));
}

#[test]
fn modes_do_not_depend_on_the_umask() {
    for umask in ["000", "077", "022"] {
        let sandbox = Sandbox::empty();
        let script = format!("umask {umask}; exec \"$0\" upsert n");
        let mut shell = Command::new("bash");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_tenure")]);
        shell.env_remove("TENURE_DIR").env("XDG_RUNTIME_DIR", sandbox.root());
        let ran = finish(&mut shell);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let dir = sandbox.root().join("tenure");
        assert_eq!(mode(&dir), 0o700, "umask {umask}");
        for entry in fs::read_dir(&dir).expect("the directory") {
            let path = entry.expect("an entry").path();
            assert_eq!(mode(&path), 0o600, "umask {umask}: {}", path.display());
        }
    }
}

#[test]
fn the_working_directory_stays_clean() {
    let sandbox = Sandbox::new();
    let cwd = sandbox.root().join("cwd");
    fs::create_dir(&cwd).expect("a directory");
    let ran = finish(sandbox.command().args(["upsert", "n"]).current_dir(&cwd));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_dir(&cwd).expect("it is there").count(), 0);
}

#[test]
fn a_default_place_behind_a_symlink_is_refused() {
    let sandbox = Sandbox::empty();
    let target = sandbox.root().join("target");
    fs::create_dir(&target).expect("a directory");
    symlink(&target, sandbox.root().join("tenure")).expect("a link");
    let ran = init_with(&[("XDG_RUNTIME_DIR", sandbox.root())]);
    ran.refused(5, "symbolic link");
    assert_eq!(fs::read_dir(&target).expect("it is there").count(), 0, "nothing was made behind the link");
}

#[test]
fn a_link_planted_at_the_table_is_not_followed() {
    let sandbox = Sandbox::new();
    let victim = sandbox.root().join("victim");
    fs::write(&victim, "precious").expect("a file");
    let file = sandbox.file();
    fs::remove_file(&file).expect("it was there");
    symlink(&victim, &file).expect("a link");
    for args in [&["list"][..], &["init"], &["upsert", "n"]] {
        sandbox.run(args).refused(5, "symbolic link");
    }
    assert_eq!(fs::read_to_string(&victim).expect("it is there"), "precious");
    assert!(fs::symlink_metadata(&file).expect("it is there").is_symlink(), "the link is left alone");
}

#[test]
fn a_directory_in_place_of_the_table_is_refused() {
    let sandbox = Sandbox::new();
    let file = sandbox.file();
    fs::remove_file(&file).expect("it was there");
    fs::create_dir(&file).expect("a directory");
    for args in [&["list"][..], &["init"]] {
        let ran = sandbox.run(args);
        ran.refused(5, "directory");
        assert!(ran.err.contains("--dir"), "it does not say what to do next: {ran:?}");
    }
}

#[test]
fn a_file_in_place_of_the_directory_is_refused() {
    let sandbox = Sandbox::empty();
    fs::write(sandbox.dir(), "x").expect("a file");
    for args in [&["list"][..], &["init"]] {
        assert_eq!(sandbox.run(args).code, Some(5));
    }
    assert_eq!(fs::read(sandbox.dir()).expect("it is there"), b"x");
}

/// Changes the table's file, and checks that every verb refuses it with words of its own and leaves it alone.
#[track_caller]
fn spoilt(change: impl Fn(&mut Vec<u8>)) -> Ran {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let file = sandbox.file();
    let mut bytes = fs::read(&file).expect("a table");
    change(&mut bytes);
    fs::write(&file, &bytes).expect("a writable table");
    for args in [&["list"][..], &["upsert", "m"], &["claim-next", "--holder", "w"], &["init"]] {
        let ran = sandbox.run(args);
        assert_eq!(ran.code, Some(5), "{args:?}: {ran:?}");
        ran.refused(5, file.to_str().expect("UTF-8"));
    }
    assert!(fs::read(&file).expect("it is there") == bytes, "the file was changed");
    sandbox.run(["list"])
}

#[test]
fn what_is_no_table_is_refused_and_left_alone() {
    spoilt(|bytes| bytes.fill(0x5a));
    spoilt(|bytes| *bytes = b"#!/bin/sh\necho hello\n".to_vec());
    spoilt(|bytes| bytes[0] ^= 1);
}

#[test]
fn a_table_cut_short_is_refused_and_left_alone() {
    spoilt(|bytes| bytes.truncate(bytes.len() / 2));
    spoilt(|bytes| bytes.truncate(bytes.len() - 1));
    spoilt(|bytes| bytes.truncate(8));
    spoilt(Vec::clear);
}

#[test]
fn a_table_of_another_layout_is_refused_whatever_differs() {
    // The words of the header that say what the rest is: magic, version, fingerprint, byte order, capacity.
    const HEADER_BYTES_CHECKED: u64 = 40;
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    let file = fs::File::options().read(true).write(true).open(sandbox.file()).expect("a table");
    for offset in 0..HEADER_BYTES_CHECKED {
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).expect("a header");
        file.write_all_at(&[byte[0] ^ 0x80], offset).expect("a writable table");
        for args in [&["list"][..], &["upsert", "m"], &["init"]] {
            let ran = sandbox.run(args);
            assert_eq!(ran.code, Some(5), "byte {offset}, {args:?}: {ran:?}");
            ran.refused(5, sandbox.file().to_str().expect("UTF-8"));
        }
        file.write_all_at(&byte, offset).expect("a writable table");
    }
    assert_eq!(sandbox.status("n"), "ready", "put back, it is the table that it was");
}

#[test]
fn another_version_is_called_that() {
    let sandbox = Sandbox::new();
    let file = fs::File::options().write(true).open(sandbox.file()).expect("a table");
    file.write_all_at(&99_u64.to_le_bytes(), 8).expect("a writable table");
    let object = sandbox.run(["list", "--json"]).refused_json(5, "other_version");
    assert!(object["message"].as_str().is_some_and(|message| message.contains("version")), "{object}");
}

#[test]
fn a_table_from_before_a_reboot_is_not_read_and_its_successor_is_announced() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    fs::rename(sandbox.file(), sandbox.dir().join("table-00000000-1111-4222-8333-444444444444")).expect("a table");
    sandbox.run(["list"]).refused(5, "before the last reboot");
    sandbox.run(["get", "n", "--json"]).refused_json(5, "stale");
    let ran = sandbox.run(["init"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("made a table") && ran.err.contains("before the last reboot"), "{ran:?}");
    assert!(sandbox.json(["list", "--all"]).is_empty());
}

#[test]
fn a_directory_of_somebody_else_is_refused_as_default_place() {
    if !is_root() {
        // Not by a macro, whose output the test runner keeps to itself.
        let _ = writeln!(std::io::stderr(), "LEFT OUT: a directory of somebody else; only root can give one away");
        return;
    }
    let sandbox = Sandbox::empty();
    let dir = sandbox.root().join("tenure");
    fs::create_dir(&dir).expect("a directory");
    chown(&dir, Some(NOBODY), Some(NOBODY)).expect("root may");
    init_with(&[("XDG_RUNTIME_DIR", sandbox.root())]).refused(5, "belongs to user 65534");
    assert_eq!(fs::read_dir(&dir).expect("it is there").count(), 0);
}

/// Runs the program as somebody whom modes bind: as nobody when root runs the tests.
fn as_ordinary_user(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let mut command = sandbox.command();
    if is_root() {
        // A copy that nobody can reach, wherever the build directory is. Another process writes it: were it this one,
        // a test that forks meanwhile would hold it open for writing, and it could not be started.
        let program = sandbox.root().join("tenure-copy");
        let mut copy = Command::new("cp");
        let copied = finish(copy.args(["-p", env!("CARGO_BIN_EXE_tenure")]).arg(&program));
        assert_eq!(copied.code, Some(0), "{copied:?}");
        command = Command::new(program);
        command.env("TENURE_DIR", sandbox.dir()).uid(NOBODY).gid(NOBODY);
    }
    finish(command.args(args).env_remove("TENURE_HOLDER"))
}

#[test]
fn a_directory_that_cannot_be_written_is_told() {
    let sandbox = Sandbox::empty();
    fs::set_permissions(sandbox.root(), fs::Permissions::from_mode(0o755)).expect("our own");
    fs::create_dir(sandbox.dir()).expect("a directory");
    if is_root() {
        chown(sandbox.dir(), Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    fs::set_permissions(sandbox.dir(), fs::Permissions::from_mode(0o555)).expect("our own");
    for args in [&["init"][..], &["upsert", "n"]] {
        as_ordinary_user(&sandbox, args).refused(5, sandbox.dir().to_str().expect("UTF-8"));
    }
    as_ordinary_user(&sandbox, &["list"]).refused(5, "tenure init");
    assert_eq!(fs::read_dir(sandbox.dir()).expect("it is there").count(), 0);
}

#[test]
fn a_directory_that_cannot_be_read_is_told() {
    let sandbox = Sandbox::empty();
    fs::set_permissions(sandbox.root(), fs::Permissions::from_mode(0o755)).expect("our own");
    fs::create_dir(sandbox.dir()).expect("a directory");
    fs::set_permissions(sandbox.dir(), fs::Permissions::from_mode(0o000)).expect("our own");
    let ran = as_ordinary_user(&sandbox, &["list"]);
    fs::set_permissions(sandbox.dir(), fs::Permissions::from_mode(0o700)).expect("our own");
    ran.refused(5, sandbox.dir().to_str().expect("UTF-8"));
}

#[test]
fn readers_do_not_write() {
    let sandbox = Sandbox::new();
    sandbox.ok(["upsert", "n"]);
    sandbox.ok(["claim", "n", "--holder", "w", "--lease", "0.01"]);
    let file = sandbox.file();
    let before = fs::read(&file).expect("a table");
    for args in [&["list"][..], &["get", "n"], &["ready"], &["stats"], &["list", "--json", "--all"]] {
        sandbox.ok(args);
        assert!(fs::read(&file).expect("a table") == before, "{args:?} wrote");
    }
}
