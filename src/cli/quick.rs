//! The command line of the verbs that a worker calls again and again, read without building clap's whole command.
//!
//! It reads what scripts write: long options with plain values. Whatever else it meets (an option it does not know, one
//! given twice, a value that is missing, empty or begins with `-`) makes it give up, and clap reads the line from the
//! beginning. So every complaint, hint and help text is clap's, and what is read here is what clap would have read.

use std::ffi::OsString;

use super::args::{self, GlobalArgs};
use super::{Cli, Verb};
use super::{claim, complete, get, release, renew};

/// The words of a command line, for a verb to take its own from.
pub struct Words {
    node: Option<String>,
    options: Vec<(&'static str, String)>,
    flags: Vec<&'static str>,
}

/// Options with one value each.
const OPTIONS: [&str; 7] = ["dir", "holder", "gen", "lease", "role", "status", "summary"];
const FLAGS: [&str; 3] = ["json", "resume", "force"];

/// Reads a command line without the program's name. `None`: clap has to.
pub fn parse(line: impl Iterator<Item = OsString>) -> Option<Cli> {
    let mut words = Words { node: None, options: Vec::new(), flags: Vec::new() };
    let mut verb: Option<String> = None;
    let mut line = line.map(|word| word.into_string().ok());
    while let Some(word) = line.next() {
        let word = word?;
        let Some(option) = word.strip_prefix("--") else {
            if word.is_empty() || word.starts_with('-') {
                return None;
            }
            let place = if verb.is_none() { &mut verb } else { &mut words.node };
            if place.replace(word).is_some() {
                return None;
            }
            continue;
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        let is_global = matches!(name, "dir" | "json");
        if verb.is_none() && !is_global {
            return None;
        }
        if let Some(flag) = FLAGS.into_iter().find(|&flag| flag == name) {
            if value.is_some() || words.flags.contains(&flag) {
                return None;
            }
            words.flags.push(flag);
            continue;
        }
        let name = OPTIONS.into_iter().find(|&known| known == name)?;
        let value = match value {
            Some(value) => value,
            None => line.next()??,
        };
        let again = name != "role" && words.options.iter().any(|(known, _)| *known == name);
        if again || value.is_empty() || value.starts_with('-') {
            return None;
        }
        words.options.push((name, value));
    }
    let global = GlobalArgs { dir: words.option("dir").map(Into::into), json: words.flag("json") };
    let verb = match verb?.as_str() {
        "claim" => Verb::Claim(claim::ClaimArgs::from_words(&mut words)?),
        "claim-next" => Verb::ClaimNext(claim::ClaimNextArgs::from_words(&mut words)?),
        "renew" => Verb::Renew(renew::RenewArgs::from_words(&mut words)?),
        "release" => Verb::Release(release::ReleaseArgs::from_words(&mut words)?),
        "complete" => Verb::Complete(complete::CompleteArgs::from_words(&mut words)?),
        "get" => Verb::Get(get::GetArgs::from_words(&mut words)?),
        _ => return None,
    };
    // What no one has taken does not belong to this verb.
    let all_taken = words.node.is_none() && words.options.is_empty() && words.flags.is_empty();
    all_taken.then_some(Cli { global, verb })
}

impl Words {
    pub fn node(&mut self) -> Option<String> {
        self.node.take()
    }

    pub fn option(&mut self, name: &str) -> Option<String> {
        let at = self.options.iter().position(|(known, _)| *known == name)?;
        Some(self.options.remove(at).1)
    }

    pub fn flag(&mut self, name: &str) -> bool {
        let at = self.flags.iter().position(|&known| known == name);
        at.map(|at| self.flags.swap_remove(at)).is_some()
    }

    /// The holder as named, or as the environment names it.
    pub fn holder(&mut self) -> Option<String> {
        self.option("holder").or_else(|| std::env::var("TENURE_HOLDER").ok().filter(|holder| !holder.is_empty()))
    }

    /// Whether the environment holds a name that clap has to complain of.
    pub fn is_holder_odd(&self) -> bool {
        let named = self.options.iter().any(|(known, _)| *known == "holder");
        !named && std::env::var_os("TENURE_HOLDER").is_some_and(|name| name.is_empty() || name.to_str().is_none())
    }

    /// A generation in plain digits; the outer `None` when it is anything else.
    #[expect(clippy::option_option, reason = "not given and not readable are different answers")]
    pub fn generation(&mut self) -> Option<Option<u64>> {
        let Some(text) = self.option("gen") else { return Some(None) };
        let is_plain = text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|_| is_plain).map(Some)
    }

    /// A lease in milliseconds; the outer `None` when it is no lease.
    #[expect(clippy::option_option, reason = "not given and not readable are different answers")]
    pub fn lease_ms(&mut self) -> Option<Option<u64>> {
        let Some(text) = self.option("lease") else { return Some(None) };
        args::lease_ms(&text).ok().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn quick(line: &str) -> Option<Cli> {
        parse(line.split_whitespace().map(OsString::from))
    }

    const READ: [&str; 16] = [
        "claim build --holder w1",
        "claim build --holder=w1 --gen 7 --lease 1.5 --resume --json",
        "--dir /tmp/x claim build --holder w1",
        "claim --dir /tmp/x --holder w1 build",
        "--json claim-next --holder w1",
        "claim-next --holder w1 --role a --role b --lease 60",
        "claim-next --resume --holder w1 --role=a=b",
        "renew build --holder w1 --gen 3",
        "renew build --holder w1 --gen=0003 --lease 90",
        "release build --holder w1 --gen 3",
        "release build --force",
        "complete build --holder w1 --gen 3",
        "complete build --status failed --summary x=y --json",
        "complete build --status=cancelled",
        "complete build",
        "get build --json --dir d",
    ];

    const LEFT: [&str; 22] = [
        "",
        "list",
        "--help",
        "get",
        "get a b",
        "get -- a",
        "get --json --json a",
        "get --json=true a",
        "get a --holder w1",
        "--holder w1 claim build",
        "claim build --holder w1 --gen -1",
        "claim build --holder w1 --gen +1",
        "claim build --holder w1 --gen 99999999999999999999",
        "claim build --holder w1 --lease 0",
        "claim build --holder w1 --pid 1",
        "claim-next --holder w1 --wait 3",
        "claim-next node --holder w1",
        "renew build --holder",
        "renew build --hold w1",
        "complete build --status Done",
        "complete build --summary -",
        "complete build -h",
    ];

    #[test]
    fn what_is_read_here_is_what_clap_reads() {
        for line in READ {
            let ours = quick(line).unwrap_or_else(|| panic!("left to clap: {line}"));
            let words = std::iter::once("tenure").chain(line.split_whitespace());
            assert_eq!(format!("{ours:?}"), format!("{:?}", Cli::try_parse_from(words).unwrap()), "{line}");
        }
    }

    #[test]
    fn what_is_out_of_the_ordinary_is_left_to_clap() {
        for line in LEFT {
            assert!(quick(line).is_none(), "{line}");
        }
    }

    #[test]
    fn every_line_of_a_few_words_is_read_as_clap_reads_it_or_left() {
        let words =
            ["claim", "get", "complete", "build", "--holder", "w1", "--json", "--gen", "2", "--resume", "--dir=d"];
        let mut read = 0;
        let count = words.len();
        for mut number in 0..count.pow(4) {
            let mut line = Vec::new();
            for _ in 0..4 {
                line.push(words[number % count]);
                number /= count;
            }
            for length in 1..=4 {
                let line = &line[..length];
                let Some(ours) = parse(line.iter().map(OsString::from)) else { continue };
                read += 1;
                let theirs = Cli::try_parse_from(std::iter::once(&"tenure").chain(line));
                assert_eq!(format!("{ours:?}"), theirs.map_or_else(|e| e.to_string(), |cli| format!("{cli:?}")));
            }
        }
        assert!(read > 500, "{read}");
    }
}
