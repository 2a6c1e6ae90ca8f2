//! A policy as a TOML file: rules from the top, the first that matches decides, and when none does the answer is no.
//!
//! ```toml
//! [[rule]]
//! effect = "deny"
//! surface = "/srv/live*"
//! occasion = ["first", "start"]
//! reason = "the live tree is frozen until Monday"
//!
//! [[rule]]
//! effect = "allow"
//! subject = ["uid:1000", "uid:1001"]
//! ```
//!
//! A rule matches when all of its conditions do, and a condition when one of its values does; `*` stands for any
//! characters. A key that is not known is refused: a misspelt condition would otherwise match everything. Put a new file in
//! place by renaming it there: a half-written one could be a shorter policy.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use crate::admission::facts::{Decision, Entrance, Facts, Occasion, Policy};

use super::{Hook, allowed, denied};

/// Longest policy file, in bytes.
pub const POLICY_BYTES_MAX: u64 = 1 << 20;

/// Why a policy file cannot be used. Nobody may start anything until it can.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PolicyFileError {
    /// It could not be read.
    #[error("the policy file {path} cannot be read: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is longer than [`POLICY_BYTES_MAX`].
    #[error("the policy file {path} is longer than {POLICY_BYTES_MAX} bytes")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It does not say what a policy says.
    #[error("the policy file {path} cannot be used: {why}")]
    Bad {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong.
        why: String,
    },
}

/// A value or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "neither a value that this condition knows nor a list of such values")]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    fn any(&self, matches: impl Fn(&T) -> bool) -> bool {
        match self {
            OneOrMore::One(value) => matches(value),
            OneOrMore::More(values) => values.iter().any(matches),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Effect {
    Allow,
    Deny,
}

/// One rule; a condition that is left out holds always.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    effect: Effect,
    reason: Option<String>,
    subject: Option<OneOrMore<String>>,
    surface: Option<OneOrMore<String>>,
    machine: Option<OneOrMore<String>>,
    place: Option<OneOrMore<String>>,
    work: Option<OneOrMore<String>>,
    entrance: Option<OneOrMore<Entrance>>,
    occasion: Option<OneOrMore<Occasion>>,
}

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// A program that decides what no rule does.
    command: Option<Vec<String>>,
    #[serde(default)]
    rule: Vec<Rule>,
}

/// A policy that was read from a file.
#[derive(Debug)]
pub struct FilePolicy {
    rules: Vec<Rule>,
    hook: Option<Hook>,
    text_hash: u64,
}

impl FilePolicy {
    /// Reads the file; `None` when there is none.
    ///
    /// # Errors
    /// [`PolicyFileError`] when there is one and it cannot be used.
    pub fn read(path: &Path) -> Result<Option<FilePolicy>, PolicyFileError> {
        let io = |source| PolicyFileError::Io { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io(source)),
        };
        let mut bytes = Vec::new();
        file.take(POLICY_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > POLICY_BYTES_MAX {
            return Err(PolicyFileError::TooLong { path: path.to_owned() });
        }
        let bad = |why| PolicyFileError::Bad { path: path.to_owned(), why };
        let text = String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8 text".to_owned()))?;
        FilePolicy::parse(&text).map(Some).map_err(bad)
    }

    /// Reads the text of such a file; says what is wrong with it, and where.
    ///
    /// # Errors
    /// A text for people.
    pub fn parse(text: &str) -> Result<FilePolicy, String> {
        let document: Document = toml::from_str(text).map_err(|e| in_one_line(text, &e))?;
        let hook = match document.command {
            Some(command) => Some(Hook::new(&command).ok_or("`command` is empty; name a program, or leave it out")?),
            None => None,
        };
        for (i, rule) in document.rule.iter().enumerate() {
            if rule.effect == Effect::Allow && rule.reason.is_some() {
                return Err(format!("rule {}: a `reason` is for a rule that denies", i + 1));
            }
            if let Some(empty) = rule.empty_condition() {
                return Err(format!("rule {}: `{empty}` lists nothing, so the rule could never match", i + 1));
            }
        }
        Ok(FilePolicy { rules: document.rule, hook, text_hash: xxh3_64(text.as_bytes()) })
    }
}

impl Policy for FilePolicy {
    /// A hash of the file's text, and of what can be seen of the program that it names.
    fn epoch(&self) -> u64 {
        match &self.hook {
            Some(hook) => xxh3_64(&[self.text_hash.to_be_bytes(), hook.epoch().to_be_bytes()].concat()),
            None => self.text_hash,
        }
    }

    fn evaluate(&self, facts: &Facts) -> Decision {
        // Taken before the question: a policy that changes meanwhile has another one when the answer is used.
        let epoch = self.epoch();
        let decided = self.rules.iter().enumerate().find(|(_, rule)| rule.matches(facts));
        match (decided, &self.hook) {
            (Some((_, Rule { effect: Effect::Allow, .. })), _) => allowed(epoch),
            (Some((_, Rule { reason: Some(reason), .. })), _) => denied(epoch, reason),
            (Some((i, _)), _) => denied(epoch, format!("rule {} of the policy file denies it", i + 1)),
            (None, Some(hook)) => Decision { epoch, ..hook.evaluate(facts) },
            (None, None) => denied(epoch, "no rule of the policy file allows it"),
        }
    }
}

impl Rule {
    fn matches(&self, facts: &Facts) -> bool {
        let text = |condition: &Option<OneOrMore<String>>, values: &[&str]| match condition {
            None => true,
            Some(patterns) => patterns.any(|pattern| values.iter().any(|value| fits(pattern, value))),
        };
        text(&self.subject, &[facts.subject.as_str()])
            && text(&self.surface, &[facts.surface.as_str()])
            && text(&self.machine, &[facts.machine.to_string().as_str()])
            && text(&self.place, &[facts.place.as_str()])
            && text(&self.work, facts.work.as_ref().map(|work| work.as_str()).as_slice())
            && self.entrance.as_ref().is_none_or(|any| any.any(|entrance| *entrance == facts.entrance))
            && self.occasion.as_ref().is_none_or(|any| any.any(|occasion| *occasion == facts.occasion))
    }

    /// The name of a condition with no value to match.
    fn empty_condition(&self) -> Option<&'static str> {
        fn none<T>(condition: &Option<OneOrMore<T>>) -> bool {
            matches!(condition, Some(OneOrMore::More(values)) if values.is_empty())
        }
        let all = [
            ("subject", none(&self.subject)),
            ("surface", none(&self.surface)),
            ("machine", none(&self.machine)),
            ("place", none(&self.place)),
            ("work", none(&self.work)),
            ("entrance", none(&self.entrance)),
            ("occasion", none(&self.occasion)),
        ];
        all.into_iter().find(|(_, empty)| *empty).map(|(name, _)| name)
    }
}

/// Where it is wrong, and what, in a line that can stand in a reason.
fn in_one_line(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let number = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    format!("line {number} ({line}): {}", error.message().replace('\n', " "))
}

/// Whether the value fits a pattern in which `*` stands for any characters. Each piece between two stars is looked for
/// from where the last one ended, so the time is that of a search and nothing is tried twice.
fn fits(pattern: &str, value: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = value.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None if piece.is_empty() => {}
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_characters() {
        let yes = [("a", "a"), ("*", ""), ("*", "x/y"), ("a*", "a"), ("*b", "ab"), ("a*b*c", "axxbyyc"), ("**", "a")];
        for (pattern, value) in yes {
            assert!(fits(pattern, value), "{pattern} {value}");
        }
        let no = [("", "a"), ("a", ""), ("a*", "ba"), ("a*a", "a"), ("a*b*c", "acb"), ("*ab", "abx"), ("A", "a")];
        for (pattern, value) in no {
            assert!(!fits(pattern, value), "{pattern} {value}");
        }
    }
}
