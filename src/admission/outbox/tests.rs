//! What the outbox keeps through crashes, refusals, edits and names that lead elsewhere.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::admission::facts::Entrance;
use crate::admission::names::{AdmId, Attempt};

struct World {
    _dir: tempfile::TempDir,
    outbox: Outbox,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let outbox = Outbox::new(dir.path().join("outbox"));
    World { _dir: dir, outbox }
}

fn header(request: &str, digest: u8) -> Header {
    Header {
        request: request.parse().unwrap(),
        attempt: Attempt::FIRST,
        surface: "docs".parse().unwrap(),
        digest: Digest::from_bytes([digest; 32]),
        entrance: Entrance::Local,
        admission: None,
        command: vec!["make".to_owned()],
        work: None,
        machine: None,
        generation: None,
        replace: false,
        after: None,
        created_ms: 1,
        input_bytes: 0,
        last: None,
    }
}

fn answer(code: &str) -> LastAnswer {
    LastAnswer { at_ms: 2, code: code.to_owned(), message: "in words".to_owned(), admission: None }
}

fn states(outbox: &Outbox) -> Vec<(State, String)> {
    let listing = outbox.list(&State::ALL).unwrap();
    assert!(listing.strange.is_empty(), "{listing:?}");
    listing.entries.into_iter().map(|entry| (entry.state, entry.name)).collect()
}

/// A54: it is on disk before anything is sent; A56: a refusal leaves it as it is, with the reason.
#[test]
fn an_input_goes_from_new_to_where_the_answer_puts_it() {
    let world = world();
    let outbox = &world.outbox;
    assert!(outbox.list(&State::ALL).unwrap().entries.is_empty(), "an outbox that nobody has used");
    let entry = outbox.put(header("r", 1), b"in\nput\0").unwrap();
    assert_eq!(states(outbox), [(State::New, "r.1".to_owned())]);
    let entry = outbox.answered(entry, State::New, answer("unknown")).unwrap();
    assert_eq!(states(outbox), [(State::New, "r.1".to_owned())]);
    let entry = outbox.answered(entry, State::Refused, answer("denied")).unwrap();
    assert_eq!(states(outbox), [(State::Refused, "r.1".to_owned())]);
    assert_eq!(outbox.input(&entry).unwrap(), b"in\nput\0");
    let listed = outbox.list(&State::ALL).unwrap().entries.remove(0);
    assert_eq!(listed.header.last, Some(answer("denied")));
    // A person sends it once more, and now it is taken.
    let entry = outbox.adopt(listed).unwrap();
    let admission = Some(AdmId::from_bytes([1; 16]));
    let last = LastAnswer { admission, ..answer("accepted") };
    let entry = outbox.answered(entry, State::Sent, last).unwrap();
    assert_eq!(states(outbox), [(State::Sent, "r.1".to_owned())]);
    assert_eq!(outbox.input(&entry).unwrap(), b"in\nput\0");
    assert_eq!(entry.header.last.as_ref().unwrap().admission, admission);
    outbox.drop_entry(&entry).unwrap();
    assert!(matches!(outbox.input(&entry), Err(OutboxError::Gone { .. })));
}

/// The same send once more is the same entry, wherever it is by now.
#[test]
fn the_same_content_is_kept_once_and_another_one_beside_it() {
    let world = world();
    let outbox = &world.outbox;
    let first = outbox.put(header("r", 1), b"a").unwrap();
    assert_eq!(outbox.put(header("r", 1), b"a").unwrap(), first);
    let sent = outbox.answered(first, State::Sent, answer("accepted")).unwrap();
    assert_eq!(outbox.put(header("r", 1), b"a").unwrap(), sent);
    // What the digest does not cover is what was said last.
    let again = outbox.put(Header { replace: true, created_ms: 9, ..header("r", 1) }, b"a").unwrap();
    assert_eq!((again.state, again.header.replace, again.header.created_ms), (State::Sent, true, 1));
    assert_eq!(outbox.list(&State::ALL).unwrap().entries, [again]);
    // Other contents under the same name: the ledger says no to them, and none of them is lost.
    for (digest, input) in [(2, b"b"), (3, b"c"), (4, b"d")] {
        let other = outbox.put(header("r", digest), input).unwrap();
        outbox.answered(other, State::Refused, answer("conflict")).unwrap();
    }
    let key = header("r", 1).key();
    let found = outbox.find(&key, None).unwrap();
    let mut inputs: Vec<Vec<u8>> = found.iter().map(|entry| outbox.input(entry).unwrap()).collect();
    inputs.sort();
    assert_eq!(inputs, [b"a", b"b", b"c", b"d"]);
    assert_eq!(found[0].state, State::Sent, "what is settled comes first");
    assert_eq!(outbox.find(&key, Some(&Digest::from_bytes([3; 32]))).unwrap().len(), 1);
}

#[test]
fn another_content_is_another_request() {
    let world = world();
    let outbox = &world.outbox;
    let entry = outbox.put(header("r", 1), b"a").unwrap();
    let entry = outbox.answered(entry, State::Refused, answer("denied")).unwrap();
    let digest = Digest::from_bytes([2; 32]);
    let same = outbox.edited(&entry, "r".parse().unwrap(), digest, 5, b"b");
    assert!(matches!(same, Err(OutboxError::SameRequest { .. })));
    let edited = outbox.edited(&entry, "r2".parse().unwrap(), digest, 5, b"b").unwrap();
    assert_eq!((edited.state, edited.header.last.clone()), (State::New, None));
    assert_eq!(states(outbox).len(), 2, "what was refused is still there");
}

/// Ids become file names; a header that was written by somebody else cannot make one that leads out.
#[test]
fn no_name_leads_out_of_the_outbox() {
    let world = world();
    let outbox = &world.outbox;
    outbox.put(header("r", 1), b"a").unwrap();
    let path = outbox.dir().join("new/r.1");
    let text = std::fs::read_to_string(&path).unwrap();
    let long = "x".repeat(65_536);
    for id in ["../../evil", "a/b", "..", "nul\\u0000", "", &long] {
        let planted = text.replace("\"request\":\"r\"", &format!("\"request\":\"{id}\""));
        assert_ne!(planted, text);
        std::fs::write(&path, &planted).unwrap();
        let listing = outbox.list(&State::ALL).unwrap();
        assert_eq!((listing.entries.len(), listing.strange.len()), (0, 1), "{id:.20}");
    }
    // A good header under a name of another.
    std::fs::write(&path, &text).unwrap();
    std::fs::rename(&path, outbox.dir().join("new/other.1")).unwrap();
    let strange = outbox.list(&State::ALL).unwrap().strange;
    assert!(matches!(&strange[0].1, OutboxError::Misnamed { expected, .. } if expected == "r.1"));
    // Nor one that only begins like its own.
    let digest = header("r", 1).digest.to_string();
    for name in [format!("r.1{}", &digest[..4]), format!("r.1.{}", &digest[..4]), format!("r.1..{}", &digest[..12])] {
        let named = outbox.dir().join("new").join(&name);
        private::write_new(&named, text.as_bytes()).unwrap();
        let strange = outbox.list(&[State::New]).unwrap().strange;
        let is_misnamed =
            |(path, error): &(PathBuf, OutboxError)| *path == named && matches!(error, OutboxError::Misnamed { .. });
        assert!(strange.iter().any(is_misnamed), "{name}: {strange:?}");
        std::fs::remove_file(&named).unwrap();
    }
    let evil = outbox.dir().parent().unwrap().join("evil.1");
    assert!(!evil.exists());
}

#[test]
fn what_is_no_entry_is_shown_and_left_alone() {
    let world = world();
    let outbox = &world.outbox;
    let entry = outbox.put(header("r", 1), b"some input").unwrap();
    let path = outbox.path_of(&entry);
    let whole = std::fs::read(&path).unwrap();
    for end in 0..whole.len() {
        std::fs::write(&path, &whole[..end]).unwrap();
        let listing = outbox.list(&State::ALL).unwrap();
        assert_eq!((listing.entries.len(), listing.strange.len()), (0, 1), "cut at {end}");
        assert!(outbox.input(&entry).is_err());
    }
    std::fs::write(&path, &whole).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(outbox.list(&State::ALL).unwrap().strange[0].1.code(), "not_private");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert_eq!(outbox.list(&State::ALL).unwrap().strange[0].1.code(), "not_a_file");
}

/// Two send the same entry, and the answers differ: whichever is noted first, the entry is in one place, and when it was
/// taken by one of them, with what was taken.
#[test]
fn two_senders_leave_one_entry() {
    let world = world();
    let outbox = &world.outbox;
    let all = [State::Sent, State::Refused, State::New];
    for (first, second) in all.iter().flat_map(|first| all.iter().map(move |second| (*first, *second))) {
        let entry = outbox.put(header("r", 1), b"a").unwrap();
        outbox.answered(entry.clone(), first, answer("one")).unwrap();
        let now = outbox.answered(entry, second, answer("other")).unwrap();
        let expected = match (first, second) {
            (State::Sent, _) | (_, State::Sent) => State::Sent,
            (State::New, State::New) => State::New,
            _ => State::Refused,
        };
        assert_eq!(states(outbox), [(expected, "r.1".to_owned())], "{first:?}, then {second:?}");
        assert_eq!(now.state, expected);
        outbox.drop_entry(&now).unwrap();
    }
    // At once, from two processes as far as the locks can tell.
    for round in 0..200 {
        let entry = outbox.put(header("r", 1), b"a").unwrap();
        std::thread::scope(|scope| {
            for (state, code) in [(State::Sent, "accepted"), (State::Refused, "busy")] {
                let (mine, entry) = (Outbox::new(outbox.dir()), entry.clone());
                scope.spawn(move || mine.answered(entry, state, answer(code)).unwrap());
            }
        });
        assert_eq!(states(outbox), [(State::Sent, "r.1".to_owned())], "round {round}");
        let sent = outbox.find(&header("r", 1).key(), None).unwrap().remove(0);
        assert_eq!(sent.header.last.as_ref().map(|last| last.code.as_str()), Some("accepted"));
        outbox.drop_entry(&sent).unwrap();
    }
}

/// A writer that died at any step has left the input whole, or nothing: what is in `tmp` and whole can be sent.
#[test]
fn what_a_dead_writer_left_is_found() {
    let world = world();
    let outbox = &world.outbox;
    let entry = outbox.put(header("r", 1), b"a").unwrap();
    let tmp = outbox.dir().join("tmp/0196");
    std::fs::rename(outbox.path_of(&entry), &tmp).unwrap();
    assert_eq!(states(outbox), [(State::Tmp, "0196".to_owned())]);
    let again = outbox.put(header("r", 1), b"a").unwrap();
    assert_eq!(states(outbox), [(State::New, "r.1".to_owned())]);
    assert_eq!(outbox.input(&again).unwrap(), b"a");
    // One that is being written now is not touched.
    let busy = private::write_new_locked(&outbox.dir().join("tmp/0197"), b"half").unwrap();
    assert_eq!(states(outbox).len(), 1);
    drop(busy);
    let listing = outbox.list(&State::ALL).unwrap();
    assert_eq!(listing.strange.len(), 1, "half a file is shown, with its path");
}

#[test]
fn files_and_directories_are_for_us_alone() {
    let world = world();
    let entry = world.outbox.put(header("r", 1), b"a").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&world.outbox.path_of(&entry)), 0o600);
    for state in State::ALL {
        assert_eq!(mode(&world.outbox.dir().join(state.name())), 0o700);
    }
}

#[test]
fn an_input_has_a_limit_and_is_not_cut() {
    let world = world();
    let most = vec![7; INPUT_BYTES_MAX as usize];
    let entry = world.outbox.put(header("r", 1), &most).unwrap();
    assert_eq!(world.outbox.input(&entry).unwrap(), most);
    let more = vec![7; INPUT_BYTES_MAX as usize + 1];
    assert_eq!(world.outbox.put(header("r2", 1), &more).unwrap_err().code(), "too_long");
    let long = Header { command: vec!["x".repeat(2 << 20)], ..header("r3", 1) };
    assert_eq!(world.outbox.put(long, b"").unwrap_err().code(), "too_long");
    assert_eq!(states(&world.outbox).len(), 1, "nothing is left of the others");
}

/// Eight processes' worth of threads send the same thing at once: one entry, and it ends as sent.
#[test]
fn the_same_send_from_many_sides_ends_as_one() {
    let world = world();
    let outbox = &world.outbox;
    for _ in 0..20 {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let entry = outbox.put(header("r", 1), b"a").unwrap();
                    match outbox.answered(entry, State::Sent, answer("accepted")) {
                        // Somebody else has moved it on meanwhile.
                        Ok(_) | Err(OutboxError::Gone { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                });
            }
        });
        let found = outbox.find(&header("r", 1).key(), None).unwrap();
        assert_eq!(found[0].state, State::Sent);
        for entry in found {
            assert_eq!(outbox.input(&entry).unwrap(), b"a");
            outbox.drop_entry(&entry).unwrap();
        }
    }
}
