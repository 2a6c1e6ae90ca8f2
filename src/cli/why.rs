//! `why`: what stands between a node and its start, in sentences.

use tenure::{NodeId, OnFailure, Reason, Seen, Upstream, Why};

use super::context::Context;
use super::escape;
use super::exit::{CliError, Exit};
use super::render;

/// Says what stands between a node and its start, and what to do about it
///
/// For a node that waits: what it waits for, and who is at work on that. For a blocked one: what failed, and how the node
/// depends on it. For a claimed one: the holder and what is left of the lease.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure why ship
  tenure list --blocked
  tenure why ship --json | jq -r '.reasons[] | select(.reason==\"failed\") | .node.name'")]
pub struct WhyArgs {
    /// Name or id
    node: String,
}

/// How many nodes are named one by one; `--json` names all.
const NAMED: usize = 8;
/// How many steps of a chain are told one by one.
const STEPS_TOLD: usize = 6;

/// Runs the verb.
pub fn run(context: &Context, args: WhyArgs) -> Result<Exit, CliError> {
    let node = context.node(&args.node)?;
    let why = context.open()?.why(node)?;
    if context.json {
        context.out.json(&why)?;
    } else {
        context.out.block(&text(&why))?;
    }
    Ok(Exit::Done)
}

/// What the reasons come to, sorted by where in the text they go.
#[derive(Default)]
struct Sorted<'a> {
    failed: Vec<(&'a Upstream, &'a [String])>,
    /// Each row with what goes behind it.
    waits_for: Vec<(&'a Upstream, &'static str)>,
    behind: Vec<(&'a Upstream, &'static str)>,
    group: Option<(&'a str, u32, &'a [Upstream])>,
    role: Option<&'a str>,
    ready_before: u32,
}

impl<'a> Sorted<'a> {
    fn of(why: &'a Why) -> Sorted<'a> {
        let mut sorted = Sorted::default();
        for reason in &why.reasons {
            match reason {
                Reason::Failed { node, chain } | Reason::Skipped { node, chain } => sorted.failed.push((node, chain)),
                Reason::WaitsFor { node, on_failure } => sorted.waits_for.push((node, if_it_fails(*on_failure))),
                Reason::Behind { node } => sorted.behind.push((node, "")),
                Reason::GroupFull { group, limit, claimed } => sorted.group = Some((group, *limit, claimed)),
                Reason::WantsRole { role } => sorted.role = Some(role),
                Reason::GoesAfter { ready } => sorted.ready_before = *ready,
                // Told from the fields of the node itself.
                _ => {}
            }
        }
        // What leads to a failure has been named with it.
        if !sorted.failed.is_empty() {
            sorted.waits_for.retain(|(node, _)| node.status != Seen::Blocked);
        }
        sorted
    }
}

/// Everything that stands in the way, in sentences and rows.
fn text(why: &Why) -> String {
    let sorted = Sorted::of(why);
    let mut out = match why.node.status {
        Seen::Ready => ready(why, &sorted),
        Seen::Todo => todo(why, &sorted),
        Seen::Blocked => blocked(why, &sorted),
        Seen::Claimed => claimed(why, &sorted),
        Seen::Cancelled if why.node.skipped_by.is_some() => skipped(why, &sorted),
        Seen::Done | Seen::Failed | Seen::Cancelled => ended(why),
    };
    if let (Some(role), false) = (sorted.role, why.node.status == Seen::Ready) {
        out += &format!("It then goes only to a worker that offers the role {}.\n", escape::cell(role));
    }
    if why.holds_up > 0 {
        let wait = if why.holds_up == 1 { "1 node waits".to_owned() } else { format!("{} nodes wait", why.holds_up) };
        let in_vain = if why.node.status.is_terminal() { " in vain" } else { "" };
        out += &format!("{wait} for it{in_vain}.\n");
    }
    out
}

/// Behind a row: what becomes of the node if that one fails, when it is not blocked by it.
fn if_it_fails(on_failure: OnFailure) -> &'static str {
    match on_failure {
        OnFailure::Block => "",
        OnFailure::Skip => "; skipped if that fails",
        OnFailure::Continue => "; goes on if that fails",
    }
}

fn ready(why: &Why, sorted: &Sorted<'_>) -> String {
    let (me, handle) = (label(why), handle(why.node.name.as_deref(), why.node.id));
    let take = format!("`tenure claim {handle} --holder NAME` takes it");
    let mut out = match (sorted.group, sorted.role) {
        (Some((group, limit, claimed)), _) => {
            let of_limit = format!("{} of {limit}", claimed.len());
            let rows = rows(&claimed.iter().map(|node| (node, "")).collect::<Vec<_>>());
            format!("{me} is ready, but its group {} is full, {of_limit} claimed:\n{rows}", escape::cell(group))
        }
        (None, None) => format!("{me} is ready: nothing stands in its way.\n{take}.\n"),
        (None, Some(_)) => format!("{me} is ready.\n{take}.\n"),
    };
    if let Some(role) = sorted.role {
        out += &format!("`claim-next` gives it only to a worker that offers the role {}.\n", escape::cell(role));
    }
    match sorted.ready_before {
        0 => {}
        1 => out += "`claim-next` gives out 1 other ready node before it.\n",
        n => out += &format!("`claim-next` gives out {n} other ready nodes before it.\n"),
    }
    out + &attempts(why)
}

fn todo(why: &Why, sorted: &Sorted<'_>) -> String {
    let me = label(why);
    if let Some(left_ms) = why.node.retry_in_ms {
        let left = render::duration(i64::try_from(left_ms).unwrap_or(i64::MAX));
        let out = format!("{me} is todo: an attempt was lost or failed, and it is left alone for another {left}.\n");
        return out + &attempts(why);
    }
    let mut out = format!("{me} is todo: it waits for\n");
    out += &rows(&sorted.waits_for);
    if !sorted.behind.is_empty() {
        out += "and through them for\n";
        out += &rows(&sorted.behind);
    }
    out + &attempts(why)
}

/// How many attempts a node that is open has had, if it has had any.
fn attempts(why: &Why) -> String {
    match (why.node.attempts, why.node.max_attempts) {
        (0, _) => String::new(),
        (1, 0) => "It was claimed once before.\n".to_owned(),
        (n, 0) => format!("It was claimed {n} times before.\n"),
        (n, most) => format!("It has had {n} of {most} attempts.\n"),
    }
}

fn skipped(why: &Why, sorted: &Sorted<'_>) -> String {
    let me = label(why);
    let mut out = String::new();
    for (root, chain) in sorted.failed.iter().take(NAMED) {
        out += &format!("{me} is skipped: {}\n", failure(root, chain));
    }
    out += &more(sorted.failed.len());
    out + &way_out(&me, &sorted.failed)
}

fn blocked(why: &Why, sorted: &Sorted<'_>) -> String {
    let me = label(why);
    let mut out = match sorted.failed.as_slice() {
        [(root, chain)] => format!("{me} is blocked: {}\n", failure(root, chain)),
        many => {
            let mut out = format!("{me} is blocked by {} nodes that failed or were cancelled:\n", many.len());
            for (root, chain) in many.iter().take(NAMED) {
                out += &format!("  {}\n", failure(root, chain));
            }
            out + &more(many.len())
        }
    };
    out += &way_out(&me, &sorted.failed);
    if !sorted.waits_for.is_empty() {
        out += "Besides, it waits for\n";
        out += &rows(&sorted.waits_for);
    }
    out
}

/// What failed, and how the node depends on it.
fn failure(root: &Upstream, chain: &[String]) -> String {
    let name = escape::cell(&root.label());
    let how = if root.status == Seen::Cancelled { "was cancelled" } else { "failed" };
    let summary = match root.summary.as_deref() {
        Some(summary) => format!(" (\"{}\")", render::shortened(summary)),
        None => String::new(),
    };
    match chain {
        [] => format!("{name} {how}{summary}, further away"),
        [_, _] => format!("it waits for {name}, which {how}{summary}."),
        _ => format!("{name} {how}{summary}; {}.", steps(chain)),
    }
}

/// `a waits for b, b waits for c`: all of it, or both ends.
fn steps(chain: &[String]) -> String {
    let told: Vec<String> = chain
        .iter()
        .zip(chain.iter().skip(1))
        .map(|(waits, other)| format!("{} waits for {}", escape::cell(waits), escape::cell(other)))
        .collect();
    let hidden = told.len().saturating_sub(STEPS_TOLD);
    if hidden == 0 {
        return told.join(", ");
    }
    let head = told.iter().take(STEPS_TOLD / 2).cloned().collect::<Vec<_>>().join(", ");
    let tail = told.iter().skip(STEPS_TOLD / 2 + hidden).cloned().collect::<Vec<_>>().join(", ");
    format!("{head}, and so on through {hidden} more, until {tail}")
}

/// What can be done about what failed.
fn way_out(me: &str, failed: &[(&Upstream, &[String])]) -> String {
    match failed {
        [] => String::new(),
        [(root, _)] => format!("`tenure reopen {}` tries again.\n", handle(root.name.as_deref(), root.id)),
        _ => format!("`tenure reopen NODE` for each of them tries again; {me} cannot start before all are done.\n"),
    }
}

fn claimed(why: &Why, sorted: &Sorted<'_>) -> String {
    let (me, node) = (label(why), &why.node);
    let holder = escape::cell(node.holder.as_deref().unwrap_or_default());
    let left = node.lease_left_ms.unwrap_or(0);
    let gone = why.reasons.iter().any(|reason| matches!(reason, Reason::Held { process_gone: true, .. }));
    let attempt = match node.max_attempts {
        0 => String::new(),
        most => format!(", attempt {} of {most}", node.attempts),
    };
    let generation = node.generation;
    let mut out = format!("{me} is claimed by {holder} at generation {generation}{attempt}, {}.\n", lease(left, gone));
    if left <= 0 || gone {
        out += "Whoever looks for work next takes it back; `tenure reclaim` does so now.\n";
    }
    for (root, chain) in sorted.failed.iter().take(NAMED) {
        out += &format!("It cannot be done: {}\n", failure(root, chain));
    }
    out += &way_out(&me, &sorted.failed);
    if !sorted.waits_for.is_empty() {
        out += "It cannot be done before\n";
        out += &rows(&sorted.waits_for);
    }
    out
}

fn ended(why: &Why) -> String {
    let (me, node) = (label(why), &why.node);
    let handle = handle(node.name.as_deref(), node.id);
    let summary = match node.summary.as_deref() {
        Some(summary) => format!(" (\"{}\")", render::shortened(summary)),
        None => String::new(),
    };
    let at = node.finished_at_ms.map(|ms| format!(" at {}", render::time(ms))).unwrap_or_default();
    let after = match (node.attempts, node.max_attempts) {
        (_, 0) => String::new(),
        (n, most) => format!(" after {n} of {most} attempts"),
    };
    let mut out = match node.status {
        Seen::Failed => format!("{me} failed{at}{after}{summary}.\n`tenure reopen {handle}` tries again.\n"),
        Seen::Cancelled => format!("{me} was cancelled{at}{summary}.\n`tenure reopen {handle}` takes it up again.\n"),
        _ => format!("{me} is done{at}{summary}.\n`tenure reopen {handle}` has it done once more.\n"),
    };
    if node.archived {
        out += &format!("It is archived; `tenure unarchive {handle}` shows it in lists again.\n");
    }
    out
}

/// A row for each node, with what goes behind it, and how many more there are.
fn rows(nodes: &[(&Upstream, &str)]) -> String {
    let named: Vec<(String, String)> =
        nodes.iter().take(NAMED).map(|(node, behind)| (escape::cell(&node.label()), upstream(node) + behind)).collect();
    let width = named.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let mut out: String = named.iter().map(|(label, upstream)| format!("  {label:<width$}  {upstream}\n")).collect();
    out += &more(nodes.len());
    out
}

fn more(count: usize) -> String {
    match count.saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("  and {more} more; --json names them all\n"),
    }
}

/// How a node that is waited for stands.
fn upstream(node: &Upstream) -> String {
    match (node.status, &node.holder, &node.role) {
        (Seen::Claimed, Some(holder), _) => {
            format!(
                "claimed by {}, {}",
                escape::cell(holder),
                lease(node.lease_left_ms.unwrap_or(0), node.process_gone)
            )
        }
        (Seen::Ready, _, Some(role)) => {
            format!("ready, for a worker that offers the role {}", escape::cell(role))
        }
        (Seen::Ready, ..) => "ready, not claimed yet".to_owned(),
        (Seen::Todo, ..) if node.retry_in_ms.is_some() => {
            let left = render::duration(node.retry_in_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(i64::MAX));
            format!("todo, left alone for another {left} after an attempt")
        }
        (status @ (Seen::Todo | Seen::Blocked), ..) => {
            format!("{}, waits for {} itself", status.name(), node.waits_for)
        }
        (status, ..) => status.name().to_owned(),
    }
}

/// What is left of a lease, in words.
fn lease(left_ms: i64, process_gone: bool) -> String {
    let span = render::duration(left_ms.saturating_abs());
    match (left_ms > 0, process_gone) {
        (true, true) => format!("{span} left, but its process is gone"),
        (true, false) => format!("{span} left"),
        (false, _) => format!("lease ran out {span} ago"),
    }
}

fn label(why: &Why) -> String {
    escape::cell(&why.node.label())
}

/// The node as it can be typed into a shell: its name if a shell takes it for one plain word, else its id.
fn handle(name: Option<&str>, id: NodeId) -> String {
    let is_word = |name: &&str| {
        !name.starts_with('-') && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':'))
    };
    name.filter(is_word).map_or_else(|| id.to_string(), str::to_owned)
}
