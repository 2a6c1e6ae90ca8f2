//! One spelling for each name, or a refusal.

use super::*;

fn surface(text: &str) -> Result<String, Fault> {
    text.parse::<SurfaceKey>().map(|key| key.to_string()).map_err(|bad| bad.fault)
}

/// F27: what is spelled differently and means the same is one key; what could mean something else is refused.
#[test]
fn a_surface_has_one_key() {
    for text in ["team/docs", "Team/Docs", "team/docs/", "team//docs", "team/./docs", "TEAM/DOCS//"] {
        assert_eq!(surface(text).as_deref(), Ok("team/docs"), "{text:?}");
    }
    for text in ["/srv/Repo", "/srv/Repo/", "//srv//Repo", "/srv/./Repo/."] {
        assert_eq!(surface(text).as_deref(), Ok("/srv/Repo"), "{text:?}");
    }
    assert_eq!(surface("/").as_deref(), Ok("/"));
    for text in ["./x", "../x", ".", "..", "~/x", "~"] {
        assert_eq!(surface(text), Err(Fault::Relative), "{text:?}");
    }
    for text in ["/srv/../x", "x/../y"] {
        assert_eq!(surface(text), Err(Fault::Dots { part: ".." }), "{text:?}");
    }
}

#[test]
fn what_no_surface_can_be_called_is_refused_with_the_reason() {
    assert_eq!(surface(""), Err(Fault::Empty));
    assert_eq!(surface(&"a".repeat(1025)), Err(Fault::TooLong { bytes: 1025, limit: 1024 }));
    for text in ["a b", "a\nb", "a\0b", "ſ", "docs\u{202e}", "/srv/a\u{200b}b", "/srv/a\x1bb"] {
        assert!(matches!(surface(text), Err(Fault::Character { .. })), "{text:?}");
    }
    for text in ["-x", "_x", "@x"] {
        assert!(matches!(surface(text), Err(Fault::Beginning { .. })), "{text:?}");
    }
    for text in ["#", "#a", "a#", "a#b#c", "a#b/c", "/srv/c#/x"] {
        assert_eq!(surface(text), Err(Fault::Part), "{text:?}");
    }
}

/// A7, A8.
#[test]
fn keys_say_how_they_stand_to_each_other() {
    let kin = |a: &str, b: &str| a.parse::<SurfaceKey>().unwrap().kinship(&b.parse().unwrap());
    assert_eq!(kin("s", "S/"), Kinship::Same);
    assert_eq!(kin("s#a", "s#b"), Kinship::DeclaredSplit);
    assert_eq!(kin("/srv/r", "/srv/r#B"), Kinship::DeclaredSplit);
    assert_eq!(kin("/srv", "/srv/r"), Kinship::Within);
    assert_eq!(kin("/", "/srv"), Kinship::Within);
    assert_eq!(kin("team/docs#x", "team"), Kinship::Within);
    assert_eq!(kin("/srv/Repo", "/srv/repo"), Kinship::LetterCase);
    assert_eq!(kin("/srv/r", "/srv/rest"), Kinship::None);
    assert_eq!(kin("a", "b"), Kinship::None);
}

/// F27: the link and what it leads to are one key and one place.
#[test]
fn a_link_and_what_it_leads_to_are_one() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    std::fs::create_dir(top.join("real")).unwrap();
    std::os::unix::fs::symlink("real", top.join("link")).unwrap();
    let key = |name: &str| SurfaceKey::on_this_machine(&format!("{}/{name}", top.display())).unwrap();
    assert_eq!(key("link"), key("real"));
    assert_eq!(key("link/"), key("real"));
    assert_eq!(key("link#a"), key("real#a"));
    assert_ne!(key("not-there"), key("real"));
    let place = |name: &str| Place::on_this_machine(&top.join(name)).unwrap();
    assert_eq!(place("link"), place("./real/."));
    assert!(place("").contains(&place("link")));
    assert!(!place("real").contains(&place("")));
}

#[test]
fn a_place_is_an_absolute_path() {
    assert_eq!("/srv//r/".parse::<Place>().unwrap().as_str(), "/srv/r");
    assert_eq!("x".parse::<Place>().unwrap_err().fault, Fault::Relative);
    assert_eq!("/a/../b".parse::<Place>().unwrap_err().fault, Fault::Dots { part: ".." });
    assert_eq!("/日本語/x".parse::<Place>().unwrap().as_str(), "/日本語/x");
    assert!(format!("/{}", "x".repeat(5000)).parse::<Place>().is_err());
}

#[test]
fn admission_ids_read_as_they_are_shown_and_sort_by_age() {
    let (first, second) = (AdmId::fresh(), AdmId::fresh());
    assert_eq!(first.to_string().len(), 30);
    assert_eq!(first.to_string().parse(), Ok(first));
    assert_eq!(first.to_string().to_uppercase().parse(), Ok(first));
    assert_eq!(AdmId::from_bytes(first.to_bytes()), first);
    assert_eq!(first < second, first.to_string() < second.to_string());
    for text in ["", "adm-", "adm-x", &first.to_string()[4..], &format!("{first}0"), "adm-é", "ädm-00"] {
        assert!(text.parse::<AdmId>().is_err(), "{text:?}");
    }
}

/// Ids become names of files: nothing that leads out of a directory may be one.
#[test]
fn request_ids_cannot_lead_anywhere() {
    for text in ["r", "R-1", "deploy:41", "a.b_c@d+e", "0196f0c2-7b1a-7000-8000-000000000000"] {
        assert_eq!(text.parse::<RequestId>().unwrap().as_str(), text);
    }
    let long = "a".repeat(65_536);
    for text in ["", "a/b", "..", ".", "../x", "a\0", ".hidden", "-x", "a b", "a\n", "é", "r/1", &long] {
        assert!(text.parse::<RequestId>().is_err(), "{text:?}");
    }
    assert_ne!("r".parse::<RequestId>(), "R".parse());
}

/// A24, A25: an attempt has a number from 1, and the one before it.
#[test]
fn attempts_count_from_one() {
    assert_eq!("1".parse(), Ok(Attempt::FIRST));
    assert_eq!(Attempt::FIRST.previous(), None);
    assert_eq!(Attempt::FIRST.next().and_then(Attempt::previous), Some(Attempt::FIRST));
    assert_eq!("2147483647".parse::<Attempt>().unwrap().next(), None);
    for text in ["", "0", "01", "+1", "-1", "1.0", "2147483648", "99999999999999999999"] {
        assert!(text.parse::<Attempt>().is_err(), "{text:?}");
    }
    assert!(serde_json::from_str::<Attempt>("0").is_err());
    assert_eq!(serde_json::to_string(&Attempt::FIRST).unwrap(), "1");
}

#[test]
fn generations_only_grow() {
    assert_eq!(Generation::FIRST.next().map(Generation::get), Some(2));
    assert_eq!("9223372036854775807".parse::<Generation>().unwrap().next(), None);
    assert!("9223372036854775808".parse::<Generation>().is_err());
    assert!("0".parse::<Generation>().is_err());
}

/// A9: the machine is its key, whatever it is called.
#[test]
fn a_machine_is_the_fingerprint_of_its_key() {
    let id = MachineId::of_public_key(b"key");
    assert_eq!(id, MachineId::of_public_key(b"key"));
    assert_ne!(id, MachineId::of_public_key(b"kez"));
    assert_eq!(id.to_string().len(), 34);
    assert_eq!(id.to_string().parse(), Ok(id));
    assert_eq!("Build-1.Example".parse::<MachineLabel>().unwrap().as_str(), "build-1.example");
    assert!(id.to_string().parse::<MachineLabel>().is_err(), "an id is not a label");
    assert!("a b".parse::<MachineLabel>().is_err());
    assert!("x".repeat(65).parse::<MachineLabel>().is_err());
}

#[test]
fn every_name_goes_through_json_and_back() {
    fn round<T: Serialize + for<'de> Deserialize<'de> + PartialEq + fmt::Debug>(value: T, text: &str) {
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        assert_eq!(serde_json::from_str::<T>(text).unwrap(), value);
    }
    round("s#a".parse::<SurfaceKey>().unwrap(), "\"s#a\"");
    round("r".parse::<RequestId>().unwrap(), "\"r\"");
    round(Generation::FIRST, "1");
    round(Digest::from_bytes([0xab; 32]), &format!("\"{}\"", "ab".repeat(32)));
    round(AdmId::from_bytes([0; 16]), "\"adm-00000000000000000000000000\"");
    // A newline written as an escape is refused like any other.
    assert!(serde_json::from_str::<SurfaceKey>("\"a\\nb\"").is_err());
    assert!(serde_json::from_str::<SurfaceKey>("\"\\u0053\"").is_ok(), "a borrowed text is not required");
}

#[test]
fn faults_say_what_to_do() {
    let message = |text: &str| text.parse::<SurfaceKey>().unwrap_err().to_string();
    assert!(message("./x").contains("write the whole path"));
    assert!(message("").contains("the surface key is empty"));
    assert_eq!("".parse::<RequestId>().unwrap_err().code(), "bad_name");
    assert_eq!("a".repeat(999).parse::<RequestId>().unwrap_err().code(), "too_long");
    assert!(!message("a\u{1b}[2Jb").contains('\u{1b}'), "no control character in a message");
}
