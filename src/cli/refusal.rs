//! What the program adds to a refusal: the keys of its JSON object, a hint, and the names as the user typed them.

use serde_json::{Map, Value, json};
use tenure::{NameError, OpenError, Refusal, Seen};

/// Applies `change` to every node label that the refusal carries.
pub fn rename(refusal: &mut Refusal, change: impl Fn(&mut String)) {
    match refusal {
        Refusal::NoSuchNode { node }
        | Refusal::Duplicate { node }
        | Refusal::SelfLink { node }
        | Refusal::Ended { node, .. }
        | Refusal::NotEnded { node, .. }
        | Refusal::Held { node, .. }
        | Refusal::Busy { node, .. }
        | Refusal::GenerationMismatch { node, .. }
        | Refusal::NotHolder { node, .. }
        | Refusal::NotHeld { node, .. }
        | Refusal::NotBefore { node, .. }
        | Refusal::GroupFull { node, .. }
        | Refusal::FenceRequired { node }
        | Refusal::Exhausted { node, .. } => change(node),
        Refusal::Skipped { node, by } => {
            change(node);
            change(by);
        }
        Refusal::NotReady { node, waits_for, .. } => {
            change(node);
            waits_for.iter_mut().for_each(change);
        }
        Refusal::Cycle { path } => path.iter_mut().for_each(change),
        _ => {}
    }
}

/// The fields of the refusal under their own names; `generation` and `holder` always say what is so now.
pub fn fields(refusal: &Refusal) -> Map<String, Value> {
    let value = match refusal {
        Refusal::NoSuchNode { node }
        | Refusal::Duplicate { node }
        | Refusal::SelfLink { node }
        | Refusal::FenceRequired { node } => json!({ "node": node }),
        Refusal::NoSuchGroup { group } => json!({ "group": group }),
        Refusal::Skipped { node, by } => json!({ "node": node, "by": by }),
        Refusal::NotBefore { node, left_ms } => json!({ "node": node, "left_ms": left_ms }),
        Refusal::GroupFull { node, group, limit } => json!({ "node": node, "group": group, "limit": limit }),
        Refusal::Name(name) => name_fields(name),
        Refusal::NameMismatch { id, name } => json!({ "id": id, "name": name }),
        Refusal::Cycle { path } => json!({ "path": path }),
        Refusal::Ended { node, status, generation } | Refusal::NotHeld { node, status, generation } => {
            json!({ "node": node, "status": status, "generation": generation })
        }
        Refusal::NotEnded { node, status } => json!({ "node": node, "status": status }),
        Refusal::NotReady { node, status, waits_for } => {
            json!({ "node": node, "status": status, "waits_for": waits_for })
        }
        Refusal::Held { node, holder, generation } | Refusal::Busy { node, holder, generation } => {
            json!({ "node": node, "holder": holder, "generation": generation })
        }
        Refusal::GenerationMismatch { node, expected, found, held_by } => {
            json!({ "node": node, "expected": expected, "found": found, "held_by": held_by, "generation": found })
        }
        Refusal::NotHolder { node, holder, held_by, status, generation } => json!({
            "node": node, "holder": holder, "held_by": held_by, "status": status, "generation": generation
        }),
        Refusal::Full { live, capacity } => json!({ "live": live, "capacity": capacity }),
        Refusal::NoRoom { what, limit } => json!({ "what": what, "limit": limit }),
        Refusal::Exhausted { node, what } => json!({ "node": node, "what": what }),
        Refusal::Contended { tries } => json!({ "tries": tries }),
        _ => Value::Null,
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn name_fields(error: &NameError) -> Value {
    match error {
        NameError::Empty { field } | NameError::Nul { field } | NameError::LooksLikeAnId { field } => {
            json!({ "field": field })
        }
        NameError::TooLong { field, bytes, limit } => json!({ "field": field, "bytes": bytes, "limit": limit }),
        NameError::Lease { lease_ms, limit_ms } => json!({ "lease_ms": lease_ms, "limit_ms": limit_ms }),
        _ => Value::Null,
    }
}

/// What to do next, where the message of the refusal does not say it already.
pub fn hint(refusal: &Refusal) -> Option<String> {
    let text = match refusal {
        Refusal::NoSuchNode { .. } => "`tenure list --all` shows every node; `tenure upsert NAME` makes one".to_owned(),
        Refusal::NotEnded { node, status } if status.is_terminal() => {
            format!("it is skipped because of a node that it waits for: `tenure why {node}` names that one")
        }
        Refusal::NotEnded { status: Seen::Claimed, .. } => "complete or release it first".to_owned(),
        Refusal::NotReady { node, status: Seen::Blocked, .. } => {
            format!(
                "it cannot become ready by itself: `tenure why {node}` names what failed; `reopen` or `unlink` that"
            )
        }
        Refusal::NotReady { node, .. } => format!("`tenure why {node}` says who is at work on that"),
        Refusal::Held { node, .. } => {
            format!(
                "its holder ends or releases it (--holder); for others it comes free when its lease runs out, and `tenure why {node}` shows when"
            )
        }
        Refusal::GenerationMismatch { node, .. } => {
            format!(
                "the claim is not the caller's any more: keep its result back; `tenure get {node}` shows what is so now"
            )
        }
        Refusal::NotHolder { held_by: Some(_), .. } => {
            "name the holder with --holder; `release --force` takes a claim away from a holder that is known to be gone"
                .to_owned()
        }
        Refusal::NotHolder { held_by: None, status, .. } if !status.is_terminal() => {
            "without --holder (and TENURE_HOLDER) a node that nobody holds can be completed all the same".to_owned()
        }
        Refusal::NothingReady => {
            "`tenure stats` shows what the rest is: waiting (todo), held (claimed) or blocked".to_owned()
        }
        Refusal::Full { .. } => {
            "nodes that have ended make room by themselves; complete or cancel what is not needed any more".to_owned()
        }
        Refusal::Damaged(_) => {
            "keep a copy of the file if you want to report this; another directory (--dir) starts afresh".to_owned()
        }
        _ => return None,
    };
    Some(text)
}

/// The path that a table could not be opened at.
pub fn open_fields(error: &OpenError) -> Map<String, Value> {
    let (key, path) = match error {
        OpenError::Absent { dir }
        | OpenError::Stale { dir }
        | OpenError::NetworkFileSystem { dir, .. }
        | OpenError::NoSpace { dir, .. } => ("dir", dir),
        OpenError::NotOurs { path, .. }
        | OpenError::NotAFile { path, .. }
        | OpenError::NotATable { path, .. }
        | OpenError::OtherVersion { path, .. }
        | OpenError::Damaged { path, .. }
        | OpenError::Io { path, .. } => ("path", path),
        _ => return Map::new(),
    };
    Map::from_iter([(key.to_owned(), path.display().to_string().into())])
}

/// What to do next about a table that cannot be used, where the message does not say it already.
pub fn open_hint(error: &OpenError) -> Option<String> {
    let text = match error {
        OpenError::NotOurs { .. }
        | OpenError::NotAFile { .. }
        | OpenError::NotATable { .. }
        | OpenError::Damaged { .. }
        | OpenError::Io { .. } => "it is left as it is; --dir or TENURE_DIR names another directory",
        OpenError::NoSpace { .. } => "make room there, or name another directory with --dir or TENURE_DIR",
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_of_a_refusal_is_renamed() {
        let mut refusal =
            Refusal::NotReady { node: "a".into(), status: Seen::Todo, waits_for: vec!["a".into(), "b".into()] };
        rename(&mut refusal, |label| {
            if label == "a" {
                "typed".clone_into(label);
            }
        });
        let fields = fields(&refusal);
        assert_eq!(fields.get("node"), Some(&json!("typed")));
        assert_eq!(fields.get("waits_for"), Some(&json!(["typed", "b"])));
    }

    #[test]
    fn the_generation_that_is_so_now_always_has_the_same_key() {
        let mismatch =
            Refusal::GenerationMismatch { node: "a".into(), expected: 1, found: 7, held_by: Some("w".into()) };
        let held = Refusal::Held { node: "a".into(), holder: "w".into(), generation: 7 };
        assert_eq!(fields(&mismatch).get("generation"), fields(&held).get("generation"));
    }
}
