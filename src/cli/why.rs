//! `why`: what stands between a node and its start, in sentences.

use tenure::{NodeId, Reason, Seen, Standing, Why};

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
    failed: Vec<(&'a Standing, &'a [String])>,
    waits_for: Vec<&'a Standing>,
    behind: Vec<&'a Standing>,
    role: Option<&'a str>,
    ready_before: u32,
}

impl<'a> Sorted<'a> {
    fn of(why: &'a Why) -> Sorted<'a> {
        let mut sorted = Sorted::default();
        for reason in &why.reasons {
            match reason {
                Reason::Failed { node, chain } => sorted.failed.push((node, chain)),
                Reason::WaitsFor { node } => sorted.waits_for.push(node),
                Reason::Behind { node } => sorted.behind.push(node),
                Reason::WantsRole { role } => sorted.role = Some(role),
                Reason::GoesAfter { ready } => sorted.ready_before = *ready,
                // Told from the fields of the node itself.
                _ => {}
            }
        }
        // What leads to a failure has been named with it.
        if !sorted.failed.is_empty() {
            sorted.waits_for.retain(|node| node.status != Seen::Blocked);
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

fn ready(why: &Why, sorted: &Sorted<'_>) -> String {
    let (me, handle) = (label(why), handle(why.node.name.as_deref(), why.node.id));
    let mut out = match sorted.role {
        None => format!("{me} is ready: nothing stands in its way.\n`tenure claim {handle} --holder NAME` takes it.\n"),
        Some(role) => format!(
            "{me} is ready, for a worker that offers the role {}.\n`tenure claim {handle} --holder NAME` takes it.\n",
            escape::cell(role)
        ),
    };
    match sorted.ready_before {
        0 => {}
        1 => out += "`claim-next` gives out 1 other ready node before it.\n",
        n => out += &format!("`claim-next` gives out {n} other ready nodes before it.\n"),
    }
    out
}

fn todo(why: &Why, sorted: &Sorted<'_>) -> String {
    let mut out = format!("{} is todo: it waits for\n", label(why));
    out += &rows(&sorted.waits_for);
    if !sorted.behind.is_empty() {
        out += "and through them for\n";
        out += &rows(&sorted.behind);
    }
    out
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
fn failure(root: &Standing, chain: &[String]) -> String {
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
fn way_out(me: &str, failed: &[(&Standing, &[String])]) -> String {
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
    let mut out = format!("{me} is claimed by {holder} at generation {}, {}.\n", node.generation, lease(left));
    if left <= 0 {
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
    let mut out = match node.status {
        Seen::Failed => format!("{me} failed{at}{summary}.\n`tenure reopen {handle}` tries again.\n"),
        Seen::Cancelled => format!("{me} was cancelled{at}{summary}.\n`tenure reopen {handle}` takes it up again.\n"),
        _ => format!("{me} is done{at}{summary}.\n`tenure reopen {handle}` has it done once more.\n"),
    };
    if node.archived {
        out += &format!("It is archived; `tenure unarchive {handle}` shows it in lists again.\n");
    }
    out
}

/// A row for each node that is waited for, and how many more there are.
fn rows(nodes: &[&Standing]) -> String {
    let named: Vec<(String, String)> =
        nodes.iter().take(NAMED).map(|node| (escape::cell(&node.label()), standing(node))).collect();
    let width = named.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let mut out: String = named.iter().map(|(label, standing)| format!("  {label:<width$}  {standing}\n")).collect();
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
fn standing(node: &Standing) -> String {
    match (node.status, &node.holder, &node.role) {
        (Seen::Claimed, Some(holder), _) => {
            format!("claimed by {}, {}", escape::cell(holder), lease(node.lease_left_ms.unwrap_or(0)))
        }
        (Seen::Ready, _, Some(role)) => {
            format!("ready, for a worker that offers the role {}", escape::cell(role))
        }
        (Seen::Ready, ..) => "ready, not claimed yet".to_owned(),
        (status @ (Seen::Todo | Seen::Blocked), ..) => {
            format!("{}, waits for {} itself", status.name(), node.waits_for)
        }
        (status, ..) => status.name().to_owned(),
    }
}

fn lease(left_ms: i64) -> String {
    if left_ms > 0 {
        format!("{} left", render::duration(left_ms))
    } else {
        format!("lease ran out {} ago", render::duration(left_ms.saturating_neg()))
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
