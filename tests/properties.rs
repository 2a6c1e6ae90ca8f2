//! Random sequences of verbs on a real table and on the model, answer by answer and row by row.
//!
//! Properties: every verb answers as the rules say (N1-N5, C1-C7, R1, R3); after each verb `list`, `ready`, `get`,
//! `stats` and `current` show what the rules say; a generation never goes back, whatever becomes of the node; a second
//! mapping of the file sees the same. Few names and few holders, so that they meet; a failure shrinks to few verbs.
//!
//! A lease cannot be faked on a real table, so leases are either far longer than the test or one millisecond with a
//! sleep after it, and the model's clock moves by the same leaps.

mod model;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tenure::{ClaimOptions, Completion, CreateOptions, Filter, NodeId, NodeSpec, Outcome, Refusal, Table};

use model::answers::Taken;
use model::{Counts, Got, Model, No, Row, Rules};

const HOLDERS: [&str; 3] = ["ann", "bob", "cy"];
const ROLES: [&str; 2] = ["build", "verify"];
const EVERYTHING: Filter = Filter { terminal: true, archived: true };

/// A node by its place in a short list: the first are named, the last two have only an id.
#[derive(Clone, Copy, Debug)]
struct Pick(usize);

/// Which generation to present.
#[derive(Clone, Copy, Debug)]
enum Fence {
    None,
    Right,
    Behind,
    Ahead,
}

#[derive(Clone, Debug)]
struct Spec {
    node: Pick,
    kind: Option<&'static str>,
    role: Option<&'static str>,
    parent: Option<Option<Pick>>,
    cost: Option<u32>,
    summary: Option<&'static str>,
    needs: Vec<Pick>,
}

#[derive(Clone, Debug)]
enum Step {
    Upsert(Spec, bool),
    Import(Vec<Spec>),
    Link(Pick, Pick),
    Unlink(Pick, Pick),
    Claim { node: Pick, holder: usize, fence: Fence, resume: bool, short: bool },
    ClaimNext { holder: usize, roles: usize, resume: bool, short: bool },
    Renew { node: Pick, holder: usize, fence: Fence, long: bool },
    Release { node: Pick, holder: usize, fence: Fence },
    ReleaseForced { node: Pick, fence: Fence },
    Complete { node: Pick, outcome: Outcome, fence: Fence, holder: Option<usize>, summary: Option<&'static str> },
    Reclaim { all: bool },
    Reopen(Pick),
    Archive(Pick),
    Unarchive(Pick),
    Reattach,
}

fn pick(nodes: usize) -> impl Strategy<Value = Pick> {
    (0..nodes).prop_map(Pick)
}

fn fence() -> impl Strategy<Value = Fence> {
    prop_oneof![4 => Just(Fence::None), 4 => Just(Fence::Right), 1 => Just(Fence::Behind), 1 => Just(Fence::Ahead)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![4 => Just(Outcome::Done), 1 => Just(Outcome::Failed), 1 => Just(Outcome::Cancelled)]
}

fn text() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![3 => Just(None), 1 => Just(Some("")), 1 => Just(Some("x")), 1 => Just(Some("zwölf\n\u{202e}"))]
}

fn role() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![4 => Just(None), 1 => Just(Some("")), 1 => Just(Some(ROLES[0])), 1 => Just(Some(ROLES[1]))]
}

fn spec(n: usize) -> impl Strategy<Value = Spec> {
    let parent = prop_oneof![4 => Just(None), 1 => Just(Some(None)), 2 => pick(n).prop_map(|p| Some(Some(p)))];
    let needs = prop_oneof![3 => Just(vec![]), 2 => proptest::collection::vec(pick(n), 1..3)];
    let cost = prop_oneof![3 => Just(None), 2 => (1u32..5).prop_map(Some)];
    (pick(n), text(), role(), parent, cost, text(), needs).prop_map(
        |(node, kind, role, parent, cost, summary, needs)| Spec { node, kind, role, parent, cost, summary, needs },
    )
}

fn step(n: usize) -> impl Strategy<Value = Step> {
    let holder = || 0..HOLDERS.len();
    let short = || prop::bool::weighted(0.15);
    let resume = || prop::bool::weighted(0.3);
    let claim = (pick(n), holder(), fence(), resume(), short());
    let claim_next = (holder(), 0usize..4, resume(), short());
    let complete = (pick(n), outcome(), fence(), proptest::option::of(holder()), text());
    prop_oneof![
        8 => (spec(n), prop::bool::weighted(0.1)).prop_map(|(s, existing)| Step::Upsert(s, existing)),
        2 => proptest::collection::vec(spec(n), 1..4).prop_map(Step::Import),
        6 => (pick(n), pick(n)).prop_map(|(p, c)| Step::Link(p, c)),
        2 => (pick(n), pick(n)).prop_map(|(p, c)| Step::Unlink(p, c)),
        6 => claim.prop_map(|(node, holder, fence, resume, short)| Step::Claim { node, holder, fence, resume, short }),
        4 => claim_next.prop_map(|(holder, roles, resume, short)| Step::ClaimNext { holder, roles, resume, short }),
        3 => (pick(n), holder(), fence(), any::<bool>())
            .prop_map(|(node, holder, fence, long)| Step::Renew { node, holder, fence, long }),
        3 => (pick(n), holder(), fence()).prop_map(|(node, holder, fence)| Step::Release { node, holder, fence }),
        1 => (pick(n), fence()).prop_map(|(node, fence)| Step::ReleaseForced { node, fence }),
        8 => complete.prop_map(|(node, outcome, fence, holder, summary)| {
            Step::Complete { node, outcome, fence, holder, summary }
        }),
        1 => any::<bool>().prop_map(|all| Step::Reclaim { all }),
        3 => pick(n).prop_map(Step::Reopen),
        3 => pick(n).prop_map(Step::Archive),
        1 => pick(n).prop_map(Step::Unarchive),
        1 => Just(Step::Reattach),
    ]
}

/// A real table beside its model.
struct World {
    dir: tempfile::TempDir,
    table: Table,
    model: Model,
    now_ms: u64,
    nodes: Vec<(NodeId, Option<String>)>,
    /// The highest generation ever seen of an id.
    highest: BTreeMap<NodeId, u64>,
}

type Checked = Result<(), TestCaseError>;

impl World {
    fn new(rules: Rules, names: usize) -> World {
        let dir = scratch();
        let options = CreateOptions { lease_ms: Some(rules.lease_ms), require_fence: rules.require_fence };
        let (table, made) = Table::open_or_create(dir.path(), &options).expect("a fresh directory");
        assert!(made, "the directory is new");
        let named = (0..names).map(|i| format!("n{i}")).map(|n| (NodeId::of_name(&n), Some(n)));
        let nodes = named.chain([(NodeId(1), None), (NodeId(2), None)]).collect();
        World { dir, table, model: Model::new(rules), now_ms: 0, nodes, highest: BTreeMap::new() }
    }

    fn id(&self, pick: Pick) -> NodeId {
        self.nodes[pick.0].0
    }

    fn spec(&self, s: &Spec) -> NodeSpec {
        let (id, name) = self.nodes[s.node.0].clone();
        NodeSpec {
            id: name.is_none().then_some(id),
            name,
            kind: s.kind.map(str::to_owned),
            role: s.role.map(str::to_owned),
            parent: s.parent.map(|p| p.map(|p| self.id(p))),
            cost: s.cost,
            summary: s.summary.map(str::to_owned),
            run: None,
            needs: s.needs.iter().map(|&p| self.id(p).into()).collect(),
            ..NodeSpec::default()
        }
    }

    fn fence(&self, pick: Pick, fence: Fence) -> Option<u64> {
        let now = self.model.nodes.get(&self.id(pick)).map_or(0, |n| n.generation);
        match fence {
            Fence::None => None,
            Fence::Right => Some(now),
            Fence::Behind => Some(now.saturating_sub(1)),
            Fence::Ahead => Some(now + 1),
        }
    }

    fn claim_options(&self, generation: Option<u64>, resume: bool, short: bool) -> ClaimOptions {
        ClaimOptions { generation, lease_ms: short.then_some(1), resume, pid: None }
    }

    /// Which generation a new node starts at is the table's business; that it is not below an earlier one is checked.
    fn adopt_generations(&mut self, ids: impl IntoIterator<Item = NodeId>) -> Checked {
        for id in ids {
            let found = self.table.get(id).map_err(|e| TestCaseError::fail(format!("made, yet: {e}")))?.generation;
            if let Some(node) = self.model.nodes.get_mut(&id) {
                node.generation = found;
            }
        }
        Ok(())
    }

    /// Lets one-millisecond leases run out, on both clocks.
    fn settle(&mut self) {
        let now_ms = self.now_ms;
        let mut leases = self.model.nodes.values().filter_map(|n| n.lease.as_ref());
        if leases.any(|l| l.lease_ms == 1 && !l.has_run_out(now_ms)) {
            std::thread::sleep(Duration::from_millis(3));
            self.now_ms += 10;
        }
    }

    fn run(&mut self, step: &Step) -> Checked {
        match step {
            Step::Upsert(..) | Step::Import(_) | Step::Link(..) | Step::Unlink(..) => self.change_graph(step)?,
            Step::Claim { .. } | Step::ClaimNext { .. } => self.claim(step)?,
            _ => self.use_claim(step)?,
        }
        self.settle();
        Ok(())
    }

    fn change_graph(&mut self, step: &Step) -> Checked {
        match step {
            Step::Upsert(s, existing) => {
                let spec = self.spec(s);
                let known = self.model.nodes.keys().copied().collect::<Vec<_>>();
                let wanted = self.model.upsert(&spec, *existing);
                same(self.table.upsert(&spec, *existing), wanted.clone())?;
                self.adopt_generations(wanted.into_iter().map(|(id, _)| id).filter(|id| !known.contains(id)))
            }
            Step::Import(specs) => {
                let specs: Vec<NodeSpec> = specs.iter().map(|s| self.spec(s)).collect();
                let known = self.model.nodes.keys().copied().collect::<Vec<_>>();
                let wanted = self.model.import(&specs);
                same(self.table.import(&specs), wanted.clone())?;
                self.adopt_generations(wanted.into_iter().flatten().map(|(id, _)| id).filter(|id| !known.contains(id)))
            }
            Step::Link(p, c) => {
                let (p, c) = (self.id(*p), self.id(*c));
                same(self.table.link(p, c), self.model.link(p, c))
            }
            Step::Unlink(p, c) => {
                let (p, c) = (self.id(*p), self.id(*c));
                same(self.table.unlink(p, c), self.model.unlink(p, c))
            }
            other => Err(TestCaseError::fail(format!("not a change of the graph: {other:?}"))),
        }
    }

    fn claim(&mut self, step: &Step) -> Checked {
        let (holder, answer, wanted) = match *step {
            Step::Claim { node, holder, fence, resume, short } => {
                let options = self.claim_options(self.fence(node, fence), resume, short);
                let id = self.id(node);
                let worker = self.table.worker(HOLDERS[holder]);
                let answer = worker.and_then(|w| w.claim_with(id, &options)?.granted());
                (holder, answer, self.model.claim(id, HOLDERS[holder], &options, self.now_ms))
            }
            Step::ClaimNext { holder, roles, resume, short } => {
                let options = self.claim_options(None, resume, short);
                let roles: Vec<&str> =
                    ROLES.iter().enumerate().filter(|(i, _)| roles & (1 << i) != 0).map(|(_, r)| *r).collect();
                let worker = self.table.worker(HOLDERS[holder]).and_then(|w| w.with_roles(&roles));
                let answer = worker.and_then(|w| w.claim_next_with(&options)?.granted());
                (holder, answer, self.model.claim_next(HOLDERS[holder], &roles, &options, self.now_ms))
            }
            ref other => return Err(TestCaseError::fail(format!("not a claim: {other:?}"))),
        };
        let (answer, wanted) = (answer.map(Got::from), wanted);
        prop_assert!(
            answer.is_err() || self.table.worker(HOLDERS[holder]).is_ok_and(|w| w.holder() == HOLDERS[holder])
        );
        same(answer, wanted)
    }

    fn use_claim(&mut self, step: &Step) -> Checked {
        match *step {
            Step::Renew { node, holder, fence, long } => {
                let (id, generation, lease_ms) = (self.id(node), self.fence(node, fence), long.then_some(400_000));
                let answer = self.table.renew(id, HOLDERS[holder], generation, lease_ms).map(Got::from);
                same(answer, self.model.renew(id, HOLDERS[holder], generation, lease_ms, self.now_ms))
            }
            Step::Release { node, holder, fence } => {
                let (id, generation) = (self.id(node), self.fence(node, fence));
                let answer = self.table.release(id, HOLDERS[holder], generation);
                same(answer, self.model.release(id, HOLDERS[holder], generation))
            }
            Step::ReleaseForced { node, fence } => {
                let (id, generation) = (self.id(node), self.fence(node, fence));
                let answer = self.table.release_forced(id, generation).map(Taken::from);
                same(answer, self.model.release_forced(id, generation))
            }
            Step::Complete { node, outcome, fence, holder, summary } => {
                let completion = Completion {
                    outcome,
                    generation: self.fence(node, fence),
                    holder: holder.map(|h| HOLDERS[h].to_owned()),
                    summary: summary.map(str::to_owned),
                };
                let id = self.id(node);
                same(self.table.complete(id, &completion), self.model.complete(id, &completion))
            }
            Step::Reclaim { all } => {
                let quiet_ms = all.then_some(0);
                let taken = self.table.reclaim(quiet_ms).map_err(|e| TestCaseError::fail(format!("reclaim: {e}")))?;
                prop_assert!(
                    taken.is_sorted_by_key(|r| std::cmp::Reverse(r.quiet_ms)),
                    "longest quiet first: {taken:?}"
                );
                let mut taken: Vec<Taken> = taken.into_iter().map(Taken::from).collect();
                let mut wanted = self.model.reclaim(quiet_ms, self.now_ms);
                taken.sort();
                wanted.sort();
                prop_assert_eq!(taken, wanted);
                Ok(())
            }
            Step::Reopen(p) => same(self.table.reopen(self.id(p)), self.model.reopen(self.id(p))),
            Step::Archive(p) => same(self.table.archive(self.id(p)), self.model.archive(self.id(p))),
            Step::Unarchive(p) => same(self.table.unarchive(self.id(p)), self.model.unarchive(self.id(p))),
            Step::Reattach => {
                let again = Table::open(self.dir.path());
                self.table = again.map_err(|e| TestCaseError::fail(format!("open again: {e}")))?;
                Ok(())
            }
            ref other => Err(TestCaseError::fail(format!("not about a claim: {other:?}"))),
        }
    }

    /// What readers see, node by node and in total.
    fn compare(&mut self, lists: bool) -> Checked {
        let stats = self.table.stats().map_err(|e| TestCaseError::fail(format!("stats: {e}")))?;
        prop_assert_eq!(Counts::from(&stats), self.model.counts());
        prop_assert_eq!((stats.text_blocks_reserved, stats.versions_reserved), (0, 0), "nobody else is at work");
        let rows: BTreeMap<NodeId, Row> = self.model.list(EVERYTHING).into_iter().map(|row| (row.id, row)).collect();
        for (id, _) in self.nodes.clone() {
            let real = self.table.get(id);
            if let Ok(view) = &real {
                let highest = self.highest.entry(id).or_default();
                prop_assert!(view.generation >= *highest, "{} went back from {highest}", view.label());
                *highest = view.generation;
            }
            let wanted = rows.get(&id).cloned().ok_or(No::new("no_such_node").node(id.to_string()));
            same(real.map(|v| Row::from(&v)), wanted)?;
        }
        if !lists {
            return Ok(());
        }
        for filter in [EVERYTHING, Filter::default(), Filter { terminal: true, archived: false }] {
            let real = self.table.list(filter).map_err(|e| TestCaseError::fail(format!("list: {e}")))?;
            self.check_leases(&real)?;
            prop_assert_eq!(real.iter().map(Row::from).collect::<Vec<_>>(), self.model.list(filter));
        }
        let real = self.table.ready().map_err(|e| TestCaseError::fail(format!("ready: {e}")))?;
        prop_assert_eq!(real.iter().map(Row::from).collect::<Vec<_>>(), self.model.ready());
        for holder in HOLDERS {
            let worker = self.table.worker(holder).map_err(|e| TestCaseError::fail(format!("worker: {e}")))?;
            let real = worker.current().map_err(|e| TestCaseError::fail(format!("current: {e}")))?;
            let wanted = self.model.held_by(holder).map(|id| (id, self.model.nodes[&id].generation));
            prop_assert_eq!(real.map(|c| (c.id(), c.generation())), wanted);
        }
        Ok(())
    }

    fn check_leases(&self, rows: &[tenure::NodeView]) -> Checked {
        for row in rows {
            let lease = self.model.nodes.get(&row.id).and_then(|n| n.lease.as_ref());
            if let (Some(left), Some(lease)) = (row.lease_left_ms, lease) {
                let lasts = left > 0 && left <= lease.lease_ms as i64;
                prop_assert_eq!(
                    lasts,
                    !lease.has_run_out(self.now_ms),
                    "{}: {} ms left of {:?}",
                    row.label(),
                    left,
                    lease
                );
            }
        }
        Ok(())
    }
}

fn same<T: std::fmt::Debug + PartialEq>(real: Result<T, Refusal>, wanted: Result<T, No>) -> Checked {
    match (real, wanted) {
        (Ok(real), wanted) => prop_assert_eq!(Ok(real), wanted),
        (Err(refusal), wanted) => prop_assert_eq!(Err(No::from(&refusal)), wanted, "{}", refusal),
    }
    Ok(())
}

/// A directory in memory where there is one.
fn scratch() -> tempfile::TempDir {
    let shm = PathBuf::from("/dev/shm");
    let builder = tempfile::Builder::new();
    if shm.is_dir() { builder.tempdir_in(shm) } else { builder.tempdir() }.expect("a scratch directory")
}

fn rules() -> impl Strategy<Value = Rules> {
    prop::bool::weighted(0.2).prop_map(|require_fence| Rules { require_fence, ..Rules::default() })
}

/// A failure is shown with the verbs it shrank to; what it teaches becomes a test in `regressions`, not a file of seeds.
fn config(cases: u32, max_shrink_iters: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(256, 20_000))]

    #[test]
    fn a_table_answers_as_the_rules_say(rules in rules(), steps in proptest::collection::vec(step(8), 1..60)) {
        let mut world = World::new(rules, 6);
        for step in &steps {
            world.run(step)?;
            world.compare(true)?;
        }
    }
}

proptest! {
    #![proptest_config(config(10, 200))]

    /// N5: twenty names fight over six slots; the rest of the table is filled with live nodes.
    #[test]
    fn room_is_made_as_the_rules_say(steps in proptest::collection::vec(step(22), 40..120)) {
        let mut world = World::new(Rules::default(), 20);
        let filler: Vec<NodeSpec> =
            (0..4_090).map(|i| NodeSpec { id: Some(NodeId(1_000 + i)), ..NodeSpec::default() }).collect();
        let wanted = world.model.import(&filler);
        same(world.table.import(&filler), wanted)?;
        world.adopt_generations(filler.iter().filter_map(|f| f.id))?;
        for step in steps.iter().filter(|s| !matches!(s, Step::ClaimNext { .. })) {
            world.run(step)?;
            world.compare(false)?;
        }
        world.compare(true)?;
    }
}
