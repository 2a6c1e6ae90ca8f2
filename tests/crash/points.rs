//! Stopping a verb at every point.

use std::cell::RefCell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use tenure::probe;

use crate::world::World;

/// Pid and start time of two processes that do not exist.
const GONE: (u32, u64) = (4_194_303, 1);
const GONE_BEFORE: (u32, u64) = (4_194_302, 1);

/// How much of a verb is one step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// All of it.
    Whole,
    /// What it does to each node. A reclaim takes back one claim after the other, and so do `claim` and `claim-next` before
    /// they look for a node: if they took back all in one step, a holder whose lease is renewed meanwhile would have to
    /// stop all others from being taken back. A table that is full is pruned in a step before the addition: that which
    /// was pruned had ended and was in nobody's way, and the two in one step would refuse every addition that is late.
    EachNode,
    /// It is many verbs.
    Nothing,
}

/// What is promised of a verb.
pub(crate) fn promise(verb: &str) -> Promise {
    match verb.split(' ').next().unwrap_or_default() {
        "reclaim" | "claim" | "next" | "kclaim" | "knext" | "wait" | "upsert" | "import" | "import-and-touch" => {
            Promise::EachNode
        }
        _ => Promise::Whole,
    }
}

/// Whether a dump after a death is what the promise allows, between the dumps before and after the whole verb.
pub(crate) fn is_kept(promise: Promise, dump: &[String], fine: &[Vec<String>], between: &[String]) -> bool {
    let name = |line: &String| line.split(' ').next().map(str::to_owned);
    match promise {
        Promise::Nothing => true,
        _ if fine.iter().any(|one| one == dump) => true,
        Promise::Whole => false,
        Promise::EachNode => {
            let known = |line: &String| fine.iter().flatten().chain(between).any(|one| one == line);
            let stays = |line: &&String| fine.iter().all(|one| one.iter().any(|other| name(other) == name(line)));
            let there = |line: &String| dump.iter().any(|one| name(one) == name(line));
            dump.iter().all(known) && fine.iter().flatten().filter(stays).all(there)
        }
    }
}

/// Says how many points a scenario had, to whoever runs this and to the file that the environment names.
pub(crate) fn tried(scenario: &str, points: u64) {
    eprintln!("{points} points: {scenario}");
    if let Some(path) = std::env::var_os("CRASH_POINTS") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(format!("{points}\n").as_bytes()).unwrap();
    }
}

pub(crate) fn script(text: &str) -> Vec<&str> {
    text.split(';').map(str::trim).filter(|v| !v.is_empty()).collect()
}

/// A prepared table: `stopped` is the process under test, `others` everybody else.
pub(crate) fn prepare(setup: &str, owner: Option<(u32, u64)>) -> (Rc<World>, Rc<World>) {
    let others = World::new();
    let stopped = others.opened_as(owner);
    let died = others.opened_as(Some(GONE_BEFORE));
    for verb in script(setup) {
        // `!` before a verb: by the process under test. `@K`: by one that dies before its K-th write.
        let answer = if let Some(own) = verb.strip_prefix('!') {
            stopped.run(own)
        } else if let Some((at, verb)) = verb.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            probe::arm(at.parse().unwrap(), true, probe::die);
            let answer = catch_unwind(AssertUnwindSafe(|| died.run(verb)));
            assert!(probe::disarm() && answer.is_err(), "{verb} makes fewer than {at} writes");
            "died".into()
        } else {
            others.run(verb)
        };
        if std::env::var_os("SHOW").is_some() {
            eprintln!("    {verb}: {answer}");
        }
    }
    (Rc::new(stopped), Rc::new(others))
}

pub(crate) fn crash(setup: &str, verb: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fine = Vec::new();
    let (_, others) = prepare(setup, Some(GONE));
    fine.push(others.dump());
    others.run("reclaim");
    let between = others.dump();
    let (stopped, others) = prepare(setup, Some(GONE));
    stopped.run(verb);
    fine.push(others.dump());
    if setup.contains('@') {
        // Whoever writes first finishes what an earlier dead one began; it may die behind that. This changes nothing else.
        let (_, others) = prepare(setup, Some(GONE));
        others.run("group g 1");
        fine.push(others.dump());
    }
    drop((stopped, others));
    let promise = promise(verb);
    for k in 0.. {
        let (stopped, others) = prepare(setup, Some(GONE));
        probe::arm(k, true, probe::die);
        let answer = catch_unwind(AssertUnwindSafe(|| stopped.run(verb)));
        let ran = probe::disarm();
        let mut bad = |what: String| found.push(format!("[{setup}] {verb} killed at write {k}: {what}"));
        let after = others.dump();
        if !is_kept(promise, &after, &fine, &between) {
            bad(format!("half done: {after:#?} is none of {fine:#?}"));
        }
        aftermath(&others).into_iter().for_each(&mut bad);
        if !ran {
            assert!(answer.is_ok());
            tried(&format!("crash [{setup}] {verb}"), k);
            return found;
        }
    }
    found
}

/// How many writes a verb makes.
pub(crate) fn writes(setup: &str, verb: &str) -> u64 {
    for k in 0.. {
        let (stopped, _others) = prepare(setup, Some(GONE));
        probe::arm(k, true, probe::die);
        let _ = catch_unwind(AssertUnwindSafe(|| stopped.run(verb)));
        if !probe::disarm() {
            return k;
        }
    }
    0
}

/// What others find wrong after a death: with the table as it is, after every verb, and after all is done.
pub(crate) fn aftermath(others: &World) -> Vec<String> {
    let mut found = Vec::new();
    let steps: [(&str, fn(&World) -> Result<(), String>); 6] = [
        ("at once", World::check),
        ("every verb", World::every_verb),
        ("after every verb", World::check),
        ("drain", World::drain),
        ("after the drain", World::check),
        ("leaks", World::no_leak),
    ];
    for (when, step) in steps {
        match catch_unwind(AssertUnwindSafe(|| step(others))) {
            Ok(Ok(())) => {}
            Ok(Err(what)) => found.push(format!("{when}: {what}")),
            Err(_) => found.push(format!("{when}: panic")),
        }
    }
    found
}

/// What a `next` does instead of giving out the first node. While another claimer is stopped between choosing a node and
/// claiming it, `claim-next` gives out the next one, or finds nothing: that is promised for half a second, and no order of
/// whole verbs shows it.
#[derive(Clone)]
enum Instead {
    /// This one is claimed.
    Claim(String),
    Nothing,
}

/// Outcome of `verb` among `others`, in one order; `instead` says what the verb with that number does, the stopped one
/// being the first.
fn in_order(
    setup: &str,
    verb: &str,
    others: &[&str],
    after: &[&str],
    at: usize,
    owner: Option<(u32, u64)>,
    instead: Option<&(usize, Instead)>,
) -> String {
    let (own, world) = prepare(setup, owner);
    let run = |world: &World, number: usize, verb: &str| match instead.filter(|(which, _)| *which == number) {
        Some((_, Instead::Claim(node))) => {
            let words: Vec<&str> = verb.split(' ').collect();
            world.run(&format!("claim {} {node}", words.get(1).copied().unwrap_or_default()))
        }
        Some((_, Instead::Nothing)) => "nothing is ready".into(),
        None => world.run(verb),
    };
    let mut answers = vec![String::new(); others.len() + 1];
    for (i, other) in others.iter().enumerate() {
        if i == at {
            answers[0] = run(&own, 0, verb);
        }
        answers[i + 1] = run(&world, i + 1, other);
    }
    if at == others.len() {
        answers[0] = run(&own, 0, verb);
    }
    answers.extend(after.iter().map(|verb| world.run(verb)));
    let all: Vec<&str> = others.iter().chain(after).copied().collect();
    show(verb, &all, &answers, &world)
}

/// The outcomes of every order in which one `next` gives out another node, or none.
fn with_another_next(
    setup: &str,
    verb: &str,
    others: &[&str],
    after: &[&str],
    owner: Option<(u32, u64)>,
) -> Vec<String> {
    let mut outcomes = Vec::new();
    let names: Vec<String> = {
        let (_, world) = prepare(setup, owner);
        world.dump().iter().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
    };
    let verbs = std::iter::once(verb).chain(others.iter().copied());
    for number in verbs.enumerate().filter(|(_, verb)| verb.starts_with("next ")).map(|(number, _)| number) {
        for what in names.iter().cloned().map(Instead::Claim).chain([Instead::Nothing]) {
            let instead = (number, what);
            outcomes
                .extend((0..=others.len()).map(|at| in_order(setup, verb, others, after, at, owner, Some(&instead))));
        }
    }
    outcomes
}

fn show(verb: &str, others: &[&str], answers: &[String], world: &World) -> String {
    let mut text = format!("    {verb}: {}\n", answers[0]);
    for (other, answer) in others.iter().zip(&answers[1..]) {
        text.push_str(&format!("    | {other}: {answer}\n"));
    }
    for line in world.dump() {
        text.push_str(&format!("    = {line}\n"));
    }
    text
}

pub(crate) fn pause(setup: &str, verb: &str, others: &str) -> Vec<String> {
    let parent = std::os::unix::process::parent_id();
    let start: u64 = {
        let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
    };
    let mut found = Vec::new();
    // `//`: what is done after the stopped one has gone on and answered.
    let (others, after) = others.split_once("//").unwrap_or((others, ""));
    let list = script(others);
    let after = script(after);
    // As a thread of the same process, and as another one that lives.
    for owner in [None, Some((parent, start))] {
        let mut orders: Vec<String> =
            (0..=list.len()).map(|at| in_order(setup, verb, &list, &after, at, owner, None)).collect();
        let mut others_were_added = false;
        let mut seen = Vec::new();
        for k in 0.. {
            let (own, world) = prepare(setup, owner);
            let others_answers = Rc::new(RefCell::new(Vec::new()));
            let (w, a) = (Rc::clone(&world), Rc::clone(&others_answers));
            let verbs: Vec<String> = list.iter().map(|v| (*v).to_owned()).collect();
            let action = move || {
                for verb in &verbs {
                    a.borrow_mut().push(w.run(verb));
                }
            };
            probe::arm(k, false, action);
            let answer = catch_unwind(AssertUnwindSafe(|| own.run(verb)));
            let ran = probe::disarm();
            if !ran {
                tried(&format!("pause [{setup}] {verb} | {others}"), k);
                break;
            }
            let mut answers = vec![answer.unwrap_or_else(|_| "panic".into())];
            answers.extend(others_answers.borrow().iter().cloned());
            answers.extend(after.iter().map(|verb| world.run(verb)));
            let all: Vec<&str> = list.iter().chain(&after).copied().collect();
            let outcome = show(verb, &all, &answers, &world);
            if !orders.contains(&outcome) && !others_were_added {
                others_were_added = true;
                orders.extend(with_another_next(setup, verb, &list, &after, owner));
            }
            if !orders.contains(&outcome) && !seen.contains(&outcome) {
                found.push(format!("[{setup}] {verb} stopped at access {k}, none of the orders gives this\n{outcome}"));
                seen.push(outcome);
            }
            for check in [World::check, World::drain] {
                if let Err(what) = check(&world) {
                    let what = format!("[{setup}] {verb} | {others}: {what}");
                    if !found.iter().any(|f| f.contains(&what)) {
                        found.push(format!("stopped at access {k}: {what}"));
                    }
                }
            }
        }
        if std::env::var_os("LIVE").is_some() {
            found.iter().for_each(|f| eprintln!("FOUND {f}"));
        }
        if !seen.is_empty() && std::env::var_os("SHOW").is_some() {
            found.push(format!("  the orders give\n{}", orders.join("    --\n")));
        }
    }
    found
}

pub(crate) fn report(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// A scenario from the environment: `SETUP=.. VERB=.. [OTHERS=..]`.
pub(crate) fn from_environment() -> Vec<String> {
    let (Ok(setup), Ok(verb)) = (std::env::var("SETUP"), std::env::var("VERB")) else { return Vec::new() };
    match std::env::var("OTHERS") {
        Ok(others) => pause(&setup, &verb, &others),
        Err(_) => crash(&setup, &verb),
    }
}
