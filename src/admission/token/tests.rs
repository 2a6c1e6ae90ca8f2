//! Keys and tokens: who can make one, who can read one, and what happens to one that was touched.

use std::os::unix::fs::PermissionsExt;

use pasetors::keys::{AsymmetricKeyPair, Generate};

use super::*;
use crate::admission::home::Home;
use crate::admission::keys::{Identity, KeyError};
use crate::admission::names::{AdmId, Generation, MachineId};

fn grant() -> Grant {
    Grant {
        admission: AdmId::from_bytes([7; 16]),
        machine: MachineId::of_public_key(b"m1"),
        generation: Generation::FIRST,
        attach_number: 3,
        policy_epoch: u64::MAX,
        issued_ms: 1_000,
        deadline_ms: 301_000,
    }
}

struct Keys {
    _dir: tempfile::TempDir,
    home: Home,
}

fn keys() -> Keys {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new(dir.path().join("state"));
    Keys { _dir: dir, home }
}

/// A33: the deadline is in the token, and comes out as it went in.
#[test]
fn what_is_sealed_opens_again_and_only_with_the_same_key() {
    let (one, other) = (keys(), keys());
    for make in [SealKeys::local, SealKeys::make_shared] {
        let mine = make(&one.home).unwrap();
        let credential = mine.seal(&grant()).unwrap();
        assert_eq!((credential.attach_number, credential.deadline_ms), (3, 301_000));
        assert_eq!(mine.open(&credential.token), Ok(grant()));
        assert_eq!(make(&one.home).unwrap().open(&credential.token), Ok(grant()), "the key is kept");
        assert_eq!(make(&other.home).unwrap().open(&credential.token), Err(NOT_OURS));
        assert!(!format!("{credential:?} {mine:?}").contains(&credential.token), "never printed");
    }
}

#[test]
fn the_two_purposes_are_not_taken_for_each_other() {
    let keys = keys();
    let (local, shared) = (SealKeys::local(&keys.home).unwrap(), SealKeys::make_shared(&keys.home).unwrap());
    let tokens = (local.seal(&grant()).unwrap().token, shared.seal(&grant()).unwrap().token);
    assert!(tokens.0.starts_with("v4.local.") && tokens.1.starts_with("v4.public."));
    assert_eq!(local.open(&tokens.1), Err(NOT_OURS));
    assert_eq!(shared.open(&tokens.0), Err(NOT_OURS));
}

#[test]
fn a_token_with_one_character_changed_is_no_token() {
    let keys = keys();
    for seal in [SealKeys::local(&keys.home).unwrap(), SealKeys::make_shared(&keys.home).unwrap()] {
        let token = seal.seal(&grant()).unwrap().token;
        for i in 0..token.len() {
            let mut touched = token.clone().into_bytes();
            touched[i] = if touched[i] == b'A' { b'B' } else { b'A' };
            let touched = String::from_utf8(touched).unwrap();
            assert_eq!(seal.open(&touched), Err(NOT_OURS), "character {i}");
            assert_eq!(seal.open(&token[..i]), Err(NOT_OURS), "cut at {i}");
        }
        for text in ["", "v4.local.", "v4.public.", "v3.local.AAAA", "\0", &"v4.local.A".repeat(10_000)] {
            assert_eq!(seal.open(text), Err(NOT_OURS));
        }
    }
}

/// A token of the same key that was made for something else is none of ours.
#[test]
fn a_token_of_another_program_is_not_taken() {
    let pair = AsymmetricKeyPair::<V4>::generate().unwrap();
    let message = serde_json::to_vec(&grant()).unwrap();
    let elsewhere = PublicToken::sign(&pair.secret, &message, None, None).unwrap();
    let not_a_grant = PublicToken::sign(&pair.secret, b"{\"admission\":1}", None, BOUND_TO).unwrap();
    let seal = SealKeys::Issuer(pair.secret, pair.public);
    assert_eq!(seal.open(&elsewhere), Err(NOT_OURS));
    assert_eq!(seal.open(&not_a_grant), Err(NOT_OURS));
}

/// Several hosts: a machine that holds only the public key reads credentials and makes none.
#[test]
fn machines_read_what_only_the_issuer_makes() {
    let (issuer, machine) = (keys(), keys());
    assert!(matches!(SealKeys::shared(&machine.home), Err(KeyError::Absent { .. })));
    let seal = SealKeys::make_shared(&issuer.home).unwrap();
    std::fs::create_dir(machine.home.dir()).unwrap();
    let copied = machine.home.dir().join("issuer.pub");
    std::fs::copy(issuer.home.dir().join("issuer.pub"), &copied).unwrap();
    let reader = SealKeys::make_shared(&machine.home).unwrap();
    assert!(matches!(reader, SealKeys::Reader(_)), "no key pair of its own is made beside the issuer's");
    assert_eq!(reader.open(&seal.seal(&grant()).unwrap().token), Ok(grant()));
    assert!(reader.seal(&grant()).unwrap_err().to_string().contains("only the issuer's public key"));
}

/// A9, A32: a machine is its key. It stays the same from run to run, and another key is another machine.
#[test]
fn an_identity_lasts_as_long_as_its_key() {
    let keys = keys();
    let own = Identity::own(&keys.home).unwrap();
    assert_eq!(Identity::own(&keys.home).unwrap(), own);
    let label = "m2".parse().unwrap();
    assert_eq!(Identity::named(&keys.home, &label).unwrap(), None, "a slip of the pen makes no machine");
    let second = Identity::add(&keys.home, &label).unwrap();
    assert_ne!(second.machine, own.machine);
    assert_eq!(Identity::add(&keys.home, &label).unwrap(), second);
    assert_eq!(Identity::named(&keys.home, &label).unwrap(), Some(second));
}

#[test]
fn keys_are_for_us_alone() {
    let keys = keys();
    Identity::own(&keys.home).unwrap();
    SealKeys::local(&keys.home).unwrap();
    SealKeys::make_shared(&keys.home).unwrap();
    for name in ["machine.key", "credential.key", "issuer.key", "issuer.pub"] {
        let path = keys.home.dir().join(name);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600, "{name}");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    }
    assert_eq!(Identity::own(&keys.home).unwrap_err().code(), "not_private");
    assert_eq!(SealKeys::local(&keys.home).unwrap_err().code(), "not_private");
    assert_eq!(SealKeys::shared(&keys.home).unwrap_err().code(), "not_private");
}

#[test]
fn a_key_that_is_none_is_named() {
    let keys = keys();
    std::fs::create_dir(keys.home.dir()).unwrap();
    for text in [&b""[..], b"k4.local.AAAA", b"k4.public.AAAA\n", b"\xff\xfe", &[b'k'; 500]] {
        for name in ["machine.key", "credential.key", "issuer.key"] {
            let path = keys.home.dir().join(name);
            let _ = std::fs::remove_file(&path);
            crate::admission::private::write_new(&path, text).unwrap();
        }
        for code in [
            Identity::own(&keys.home).unwrap_err().code(),
            SealKeys::local(&keys.home).unwrap_err().code(),
            SealKeys::make_shared(&keys.home).unwrap_err().code(),
        ] {
            assert_eq!(code, "not_a_key", "{text:?}");
        }
    }
}
