//! What was asked for, as one number: two sends with the same digest are one request, two with different digests are not.
//!
//! The digest covers what the person decided: surface, work, command, input and, only if it was pinned, the destination.
//! It leaves out what may change between a send and its resend without changing what was meant: the attempt, times, the
//! credential, and the destination that the ledger resolves by itself, which would turn a resend after a move into a
//! conflict.
//!
//! Every field goes in behind its length, so that no two requests have the same bytes: `a b` `c` is not `a` `b c`.

use sha2::{Digest as _, Sha256};

use super::names::{Digest, MachineRef, SurfaceKey};

/// What comes first; another form of what follows would have another number.
const FORM: &str = "tenure admission digest 1";

/// What a person asks for.
#[derive(Clone, Debug)]
pub struct Content<'a> {
    /// Where it is to run.
    pub surface: &'a SurfaceKey,
    /// The work it belongs to, if any.
    pub work: Option<&'a str>,
    /// The command and its arguments; none when the destination knows what to do with the input.
    pub command: &'a [String],
    /// What the command is given.
    pub input: &'a [u8],
    /// The machine, if the person named one: as they named it, so that a label that moves on changes nothing.
    pub pinned: Option<&'a MachineRef>,
}

impl Content<'_> {
    /// The digest.
    pub fn digest(&self) -> Digest {
        let mut form = Form(Sha256::new());
        form.field(FORM.as_bytes());
        form.field(self.surface.as_str().as_bytes());
        form.optional(self.work);
        form.count(self.command.len());
        for argument in self.command {
            form.field(argument.as_bytes());
        }
        form.field(self.input);
        form.optional(self.pinned.map(MachineRef::to_string).as_deref());
        Digest::from_bytes(form.0.finalize().into())
    }
}

/// The bytes that are hashed.
struct Form(Sha256);

impl Form {
    fn count(&mut self, n: usize) {
        self.0.update((n as u64).to_be_bytes());
    }

    fn field(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    /// Nothing and an empty text are two things.
    fn optional(&mut self, text: Option<&str>) {
        self.count(text.iter().len());
        if let Some(text) = text {
            self.field(text.as_bytes());
        }
    }
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use super::*;

    fn digest(surface: &str, work: Option<&str>, command: &[&str], input: &[u8], pinned: Option<&str>) -> Digest {
        let command: Vec<String> = command.iter().map(|part| (*part).to_owned()).collect();
        let pinned = pinned.map(|text| text.parse().unwrap());
        let surface = surface.parse().unwrap();
        Content { surface: &surface, work, command: &command, input, pinned: pinned.as_ref() }.digest()
    }

    /// The digests are stored for ever: a resend years later must meet the same ones (A61).
    #[test]
    fn the_digest_is_the_one_it_always_was() {
        let all = digest("docs", Some("w"), &["make", "all"], b"in", Some("build-1"));
        assert_eq!(all.to_string(), "c121d5204361ddafe8a768baf8b7298945d937fbe51b2a8287eaf14e1be4717c");
        assert_eq!(
            digest("docs", None, &[], b"", None).to_string(),
            "a105d0c64959407779a574585ed6f9b9e6510a9ca45038771642e1bbc9f68673"
        );
    }

    /// A10, A11: the same request has the same digest, however it is spelled; one byte more is another one.
    #[test]
    fn every_part_counts_and_no_two_requests_run_together() {
        let one = || digest("docs", Some("w"), &["a", "b"], b"in", Some("m1"));
        assert_eq!(one(), digest("Docs/", Some("w"), &["a", "b"], b"in", Some("M1")));
        let others = [
            digest("doc", Some("w"), &["a", "b"], b"in", Some("m1")),
            digest("docs", Some("x"), &["a", "b"], b"in", Some("m1")),
            digest("docs", None, &["a", "b"], b"in", Some("m1")),
            digest("docs", Some(""), &["a", "b"], b"in", Some("m1")),
            digest("docs", Some("w"), &["ab"], b"in", Some("m1")),
            digest("docs", Some("w"), &["a b"], b"in", Some("m1")),
            digest("docs", Some("w"), &["a", "b", ""], b"in", Some("m1")),
            digest("docs", Some("w"), &["a"], b"bin", Some("m1")),
            digest("docs", Some("w"), &["a", "b"], b"in\0", Some("m1")),
            digest("docs", Some("w"), &["a", "b"], b"in", Some("m2")),
            digest("docs", Some("w"), &["a", "b"], b"in", None),
        ];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(*other, one(), "{i}");
            assert!(!others[i + 1..].contains(other), "{i}");
        }
    }

    #[test]
    fn the_bytes_are_length_prefixed_sha_256() {
        let mut bytes = Vec::new();
        let mut put = |field: &[u8]| {
            bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
            bytes.extend_from_slice(field);
        };
        put(b"tenure admission digest 1");
        put(b"s");
        put(b""); // no work: a count of 0
        bytes.extend_from_slice(&1_u64.to_be_bytes());
        let mut put = |field: &[u8]| {
            bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
            bytes.extend_from_slice(field);
        };
        put(b"cmd");
        put(b"input");
        put(b""); // nothing pinned
        let by_hand: [u8; 32] = Sha256::digest(&bytes).into();
        assert_eq!(digest("s", None, &["cmd"], b"input", None), Digest::from_bytes(by_hand));
    }
}
