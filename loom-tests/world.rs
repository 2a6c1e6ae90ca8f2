//! A boxed table to run a model on, and what must hold in it at the end of every execution.

use std::sync::Arc;

use loom::thread;

use crate::graph::{Edge, Graph, Group, Holder, Node};
use crate::id::NodeId;
use crate::layout::{Fixed, INDEX, NODES, VERSIONS_INITIAL, Version};
use crate::node::{OnFailure, Outcome};
use crate::sync::Ordering;
use crate::table::Core;
use crate::table::change::{PublishError, Published};
use crate::table::claim::{Attempt, Holding, Who};
use crate::table::finish::{By, End};
use crate::table::group::Seat;
use crate::table::lease::Lease;
use crate::table::version::InForce;
use crate::word::{HolderWord, NodeWord, OwnerWord, Phase, PolicyWord, RootWord, State, Step, TextOf, TextRef};

pub struct World {
    fixed: Box<Fixed>,
    versions: Vec<Version>,
}

impl World {
    /// `nodes` open nodes with these dependencies (`(parent, child)`), and holders 1 to 3.
    pub fn new(nodes: u16, edges: &[(u16, u16)]) -> Arc<World> {
        World::in_group(nodes, edges, 0)
    }

    /// The same, with all nodes in a group of which one may be claimed at once; group 0 is none.
    pub fn in_group(nodes: u16, edges: &[(u16, u16)], group: u8) -> Arc<World> {
        World::in_group_of(nodes, edges, group, 1)
    }

    /// The same with another limit.
    pub fn in_group_of(nodes: u16, edges: &[(u16, u16)], group: u8, limit: u32) -> Arc<World> {
        World::with_policy(nodes, edges, PolicyWord::new(0, 0, group), limit)
    }

    /// One node that is left alone for so long after a lost attempt.
    pub fn with_delay(retry_delay_ms: u32) -> Arc<World> {
        World::with_policy(1, &[], PolicyWord::new(0, retry_delay_ms, 0), 1)
    }

    fn with_policy(nodes: u16, edges: &[(u16, u16)], policy: PolicyWord, limit: u32) -> Arc<World> {
        let group = policy.group();
        let versions = (0..VERSIONS_INITIAL).map(|i| Version::fresh(u64::from(i == 0))).collect();
        let world = World { fixed: Box::new(Fixed::fresh()), versions };
        let core = world.core();
        let mut graph = Graph {
            nodes: Vec::new(),
            edges: Vec::new(),
            holders: vec![None],
            groups: Vec::new(),
            floor: 0,
            next_born: 1,
            index: vec![0; INDEX],
        };
        for slot in 0..nodes {
            graph.insert(slot, Node { policy, ..fresh(slot, u128::from(slot) + 1, 0) });
        }
        let edges: Vec<Edge> = edges.iter().map(|&(parent, child)| edge(parent, child)).collect();
        graph.link(&edges);
        if group != 0 {
            let name = TextRef::new(TextOf::Group(group.into()), 2, 0);
            graph.set_group(group, Group { name, hash: 1, limit });
        }
        for slot in 1..4 {
            graph.set_holder(slot, Holder { name: who(slot).name, hash: u64::from(slot) });
        }
        // The texts that nodes and holders name are nowhere; those that a model writes are others.
        core.fixed.header.text_stamp.store(100, Ordering::Relaxed);
        let root = core.settled_root().unwrap();
        assert!(matches!(core.publish(root, &graph, &[], &[]), Ok(Published::InForce)));
        Arc::new(world)
    }

    pub fn core(&self) -> Core<'_> {
        Core { fixed: &self.fixed, versions: &self.versions, me: OwnerWord::new(std::process::id(), 1) }
    }

    /// Adds an edge the way `link` does, starting over until it is in force or the child has ended.
    pub fn link(&self, parent: u16, child: u16) -> Result<(), &'static str> {
        let core = self.core();
        loop {
            core.settled_root().unwrap();
            let (root, mut graph) = core.load().unwrap();
            if root.is_pending() {
                continue;
            }
            if self.word(child).is_ended() {
                return Err("ended");
            }
            graph.link(&[edge(parent, child)]);
            match core.publish(root, &graph, &[Step::Touch(child)], &[]) {
                Ok(Published::InForce) => return Ok(()),
                Ok(Published::Stale) => {}
                Err(PublishError::Loop(_)) => return Err("loop"),
                Err(PublishError::Stop(stop)) => panic!("{stop:?}"),
            }
        }
    }

    /// Publishes the same graph once more, with a step that moves the guard of `slot`, as a change of its summary does.
    pub fn touch(&self, slot: u16) {
        let core = self.core();
        loop {
            core.settled_root().unwrap();
            let (root, graph) = core.load().unwrap();
            let published = core.publish(root, &graph, &[Step::Touch(slot)], &[]);
            if !root.is_pending() && matches!(published, Ok(Published::InForce)) {
                return;
            }
        }
    }

    /// Opens these ended nodes with one change, planning anew until it is in force.
    pub fn reopen(&self, slots: &[u16]) -> bool {
        let core = self.core();
        loop {
            core.settled_root().unwrap();
            let (root, graph) = core.load().unwrap();
            if root.is_pending() {
                continue;
            }
            let targets: Option<Vec<_>> = slots.iter().map(|&s| Some((s, self.word(s).opened()?))).collect();
            let targets = targets.unwrap();
            if targets.iter().any(|&(slot, _)| !self.word(slot).is_ended()) {
                return false;
            }
            let steps: Vec<Step> = slots.iter().map(|&slot| Step::Become(slot)).collect();
            if matches!(core.publish(root, &graph, &steps, &targets), Ok(Published::InForce)) {
                return true;
            }
        }
    }

    /// What a process leaves that dies between its two swaps.
    pub fn leave_reserved(&self, holder: u16, node: u16) -> HolderWord {
        let word = &self.fixed.holders[usize::from(holder)].word;
        let idle = word.load(Ordering::Acquire);
        let reserved = idle.reserving(node, self.word(node).generation() + 1);
        word.compare_exchange(idle, reserved, Ordering::AcqRel, Ordering::Acquire).unwrap();
        reserved
    }

    /// The same once the group's word names its claim.
    pub fn leave_seated(&self, holder: u16, node: u16) -> HolderWord {
        let reserved = self.leave_reserved(holder, node);
        let seat = self.core().take_seat(holder, reserved, lease(1), &self.settled()).unwrap();
        assert_eq!(seat, Seat::Taken);
        reserved
    }

    /// Ends an open node, whoever asks.
    pub fn end(&self, slot: u16, outcome: Outcome) {
        loop {
            match self.core().try_end(slot, outcome, By::Anyone, None, None, &self.settled()).unwrap() {
                End::Moved => {}
                end => return assert!(matches!(end, End::Ended { .. }), "{end:?}"),
            }
        }
    }

    /// Opens an ended node whose child then waits for it again.
    pub fn reopen_unready(&self, slot: u16, child: u16) -> bool {
        let core = self.core();
        let (root, graph) = core.load().unwrap();
        let targets = [(slot, self.word(slot).opened().unwrap())];
        let published = core.publish(root, &graph, &[Step::Unready(child), Step::Become(slot)], &targets);
        matches!(published, Ok(Published::InForce))
    }

    /// A change that would open `slot`, and is called off since it would touch `ended` as well.
    pub fn reopen_in_vain(&self, slot: u16, ended: u16) {
        let core = self.core();
        let (root, graph) = core.load().unwrap();
        let targets = [(slot, self.word(slot).opened().unwrap())];
        let published = core.publish(root, &graph, &[Step::Touch(ended), Step::Become(slot)], &targets);
        assert!(matches!(published, Ok(Published::Stale)));
    }

    /// Ends an open node and opens it once more.
    pub fn reopen_again(&self, slot: u16) -> bool {
        self.end(slot, Outcome::Done);
        self.reopen(&[slot])
    }

    /// Puts a node into another group, of one seat.
    pub fn go_to_group(&self, slot: u16, group: u8) {
        let core = self.core();
        let (root, mut graph) = core.load().unwrap();
        let name = TextRef::new(TextOf::Group(group.into()), 2, 0);
        graph.set_group(group, Group { name, hash: 1, limit: 1 });
        graph.node_mut(slot).unwrap().policy = PolicyWord::new(0, 0, group);
        assert!(matches!(core.publish(root, &graph, &[Step::Touch(slot)], &[]), Ok(Published::InForce)));
    }

    /// Publishes the graph with these dependencies besides.
    pub fn link_all(&self, edges: &[Edge]) {
        self.publish_anew(|graph| graph.link(edges));
    }

    /// Takes a dependency away.
    pub fn unlink(&self, parent: u16, child: u16) {
        self.publish_anew(|graph| {
            graph.unlink(parent, child);
        });
    }

    pub fn set_cost(&self, slot: u16, cost: u32) {
        self.publish_anew(|graph| graph.node_mut(slot).unwrap().cost = cost);
    }

    /// Publishes a graph that needs no steps, starting over until it is in force.
    fn publish_anew(&self, change: impl Fn(&mut Graph)) {
        let core = self.core();
        loop {
            core.settled_root().unwrap();
            let (root, mut graph) = core.load().unwrap();
            change(&mut graph);
            if !root.is_pending() && matches!(core.publish(root, &graph, &[], &[]), Ok(Published::InForce)) {
                return;
            }
        }
    }

    /// Prunes the ended node of a slot and puts another into it, as upsert does in a full table; its first generation.
    pub fn replace(&self, slot: u16) -> u64 {
        self.publish_anew(|graph| graph.remove(&[slot]));
        let core = self.core();
        loop {
            core.settled_root().unwrap();
            let (root, mut graph) = core.load().unwrap();
            let word = self.word(slot);
            let generation = core.clear_generation(slot, word.generation() + 1).unwrap();
            graph.insert(slot, fresh(slot, 100, generation));
            let targets = [(slot, NodeWord::new(State { generation, phase: Phase::Open }))];
            let published = core.publish(root, &graph, &[Step::Become(slot)], &targets);
            if !root.is_pending() && matches!(published, Ok(Published::InForce)) {
                return generation;
            }
        }
    }

    /// Makes a node in the lowest free slot.
    pub fn create(&self, id: u128) -> u16 {
        let core = self.core();
        loop {
            core.settled_root().unwrap();
            let (root, mut graph) = core.load().unwrap();
            let slot = (0..NODES as u16).find(|&slot| graph.node(slot).is_none()).unwrap();
            graph.insert(slot, fresh(slot, id, 0));
            if !root.is_pending() && matches!(core.publish(root, &graph, &[], &[]), Ok(Published::InForce)) {
                return slot;
            }
        }
    }

    /// Takes the name of a holder out of the table. False: it has a claim.
    pub fn evict(&self, holder: u16) -> bool {
        let core = self.core();
        loop {
            core.settled_root().unwrap();
            let (root, mut graph) = core.load().unwrap();
            if matches!(core.holding(holder).unwrap(), Holding::Holds { .. }) {
                return false;
            }
            graph.holders[usize::from(holder)] = None;
            let published = core.publish(root, &graph, &[Step::Evict(holder)], &[]);
            if !root.is_pending() && matches!(published, Ok(Published::InForce)) {
                return true;
            }
        }
    }

    /// A claim whose lease nobody has started.
    pub fn make_claimed(&self, holder: u16, node: u16) {
        let open = self.word(node);
        self.leave_reserved(holder, node);
        crate::table::claim::swap_to_claimed(&self.fixed.nodes[usize::from(node)].word, open, holder).unwrap();
    }

    pub fn end_held(&self, holder: u16, slot: u16, generation: u64) {
        let by = By::Holder(who(holder));
        let end = self.core().try_end(slot, Outcome::Done, by, Some(generation), None, &self.settled()).unwrap();
        assert!(matches!(end, End::Ended { .. }));
    }

    /// The version that this root named, as a slow reader has it that took its stamp then.
    pub fn as_if_in_force(&self, root: RootWord) -> InForce<'_> {
        InForce::of_root(root, &self.versions[usize::from(root.current())], root.number())
    }

    /// As if the file had room for this many version buffers so far.
    pub fn count_buffers(&self, count: u64) {
        self.fixed.header.versions.store(count, Ordering::Relaxed);
    }

    /// The next text is looked for room from this block on.
    pub fn begin_with_block(&self, block: u64) {
        self.fixed.header.text_cursor.store(block, Ordering::Relaxed);
    }

    /// Stores what the words of one order hold once more, in that order: see `hints`.
    pub fn in_one_order(&self) {
        let order = Ordering::SeqCst;
        let header = &self.fixed.header;
        header.bell.store(header.bell.load(order), order);
        header.root.store(header.root.load(order), order);
        header.watcher.store(header.watcher.load(order), order);
        self.fixed.nodes.iter().for_each(|node| node.word.store(node.word.load(order), order));
        for version in &self.versions {
            version.hints.iter().chain(&version.watch).for_each(|word| word.store(word.load(order), order));
        }
    }

    fn place(&self, slot: u16) -> (usize, u64) {
        let seen = self.settled();
        let rank = seen.version.nodes[usize::from(slot)].rank.load(Ordering::Relaxed);
        (rank as usize / 64, 1 << (rank % 64))
    }

    pub fn set_hint(&self, slot: u16) {
        let (word, bit) = self.place(slot);
        self.settled().version.hints[word].fetch_or(bit, Ordering::SeqCst);
    }

    pub fn is_hinted(&self, slot: u16) -> bool {
        let (word, bit) = self.place(slot);
        self.settled().version.hints[word].load(Ordering::SeqCst) & bit != 0
    }

    /// As if `watched` had been seen undone for `child`, if anybody watches it at all.
    pub fn watch(&self, child: u16, watched: u16) {
        assert!(!self.word(watched).is_ended());
        self.core().watch(&self.settled(), child, watched);
    }

    /// What a waiter does that wants node 1 and finds nothing. Answers with the bell that it would sleep on; `None`: it has found a node.
    pub fn look_and_sleep(&self) -> Option<u32> {
        let bell = self.core().prepare_to_sleep();
        // What `claim_next` does when no node is hinted.
        self.core().refresh_hints_at(0).unwrap();
        self.core().settled().unwrap().hinted().all(|(slot, _)| slot != 1).then_some(bell)
    }

    /// There is what a sleeper waits for. The kernel lets nobody sleep on a bell that has moved, and a ring after that wakes a
    /// lone sleeper.
    pub fn check_awake(&self, slept_on: Option<u32>) {
        let bell = self.fixed.header.bell.load(Ordering::SeqCst);
        assert!(slept_on.is_none_or(|seen| seen != bell), "it sleeps on {bell}, and should not");
    }

    pub fn count_claimed(&self) -> usize {
        (0..NODES as u16).filter(|&node| self.word(node).holder().is_some()).count()
    }

    /// What a process leaves that dies once its reopen of `slot` is pending.
    pub fn leave_pending_reopen(&self, slot: u16) -> RootWord {
        let core = self.core();
        let (root, graph) = core.load().unwrap();
        let targets = [(slot, self.word(slot).opened().unwrap())];
        match core.begin(root, &graph, &[Step::Become(slot)], &targets) {
            Ok(Some((pending, _))) => pending,
            _ => panic!("nobody else is here"),
        }
    }

    /// The words of the first two nodes as a reader sees them. `None`: the version changed meanwhile.
    pub fn look(&self) -> Option<[NodeWord; 2]> {
        let core = self.core();
        let root = core.in_force().unwrap().root;
        let words = [core.seen_word(root, 0).unwrap(), core.seen_word(root, 1).unwrap()];
        (core.in_force().unwrap().root == root).then_some(words)
    }

    pub fn word(&self, slot: u16) -> NodeWord {
        self.fixed.nodes[usize::from(slot)].word.load(Ordering::Acquire)
    }

    pub fn settled(&self) -> InForce<'_> {
        self.core().settled().unwrap()
    }

    pub fn graph(&self) -> (RootWord, Graph) {
        self.core().load().unwrap()
    }

    /// What holds whatever happened: no holder has two nodes, and each holder's word names what it holds.
    pub fn check(&self) {
        for holder in 1..4 {
            let held: Vec<u16> = (0..NODES as u16).filter(|&n| self.word(n).holder() == Some(holder)).collect();
            assert!(held.len() <= 1, "holder {holder} holds {held:?}");
            if let Some(&node) = held.first() {
                let word = self.fixed.holders[usize::from(holder)].word.load(Ordering::Acquire);
                assert_eq!((word.node(), word.generation()), (node, self.word(node).generation()));
            }
        }
    }
}

fn fresh(slot: u16, id: u128, base: u64) -> Node {
    let text = TextRef::new(TextOf::Node(slot), 0, u64::from(slot));
    let (born, role, policy) = (u64::from(slot), 0, PolicyWord::new(0, 0, 0));
    let (created_ms, updated_ms) = (0, 0);
    Node { id: NodeId(id), text, cost: 1, parent: None, role, born, created_ms, updated_ms, base, policy }
}

pub fn edge(parent: u16, child: u16) -> Edge {
    Edge { parent, child, on_failure: OnFailure::Block }
}

pub fn who(slot: u16) -> Who {
    Who { slot, name: TextRef::new(TextOf::Holder(slot), 1, u64::from(slot)) }
}

pub fn lease(now_ms: u64) -> Lease {
    Lease { lease_ms: 1_000, now_ms }
}

/// Claims `slot` for `holder`, looking again while the graph changes.
pub fn claim(world: &World, holder: u16, slot: u16) -> Attempt {
    loop {
        let seen = world.settled();
        match world.core().try_claim(who(holder), slot, None, lease(1), &seen).unwrap() {
            Attempt::Moved => {}
            other => return other,
        }
    }
}

/// Runs `body` under loom, with the bound that `scripts/loom` sets.
pub fn explore(body: impl Fn() + Sync + Send + 'static) {
    loom::model::Builder::new().check(body);
}

/// Runs two bodies at once on one world and waits for both.
pub fn race<A: 'static, B: 'static>(
    world: &Arc<World>,
    a: impl FnOnce(&World) -> A + 'static,
    b: impl FnOnce(&World) -> B + 'static,
) -> (A, B) {
    let other = Arc::clone(world);
    let handle = thread::spawn(move || a(&other));
    let b = b(world);
    (handle.join().unwrap(), b)
}
