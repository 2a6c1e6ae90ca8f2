//! The model as a judge: which states can a call with this answer lead to?

use std::collections::BTreeSet;

use tenure::{ClaimOptions, NodeId};

use crate::history::{Answer, Call, NODES, Names, completion, spec};
use crate::model::{Model, No, Rules};

const RESUME: fn(Option<u64>, bool) -> ClaimOptions =
    |generation, resume| ClaimOptions { generation, resume, ..ClaimOptions::default() };

/// A state of the model, with what is not known of generations.
///
/// A claim that was begun and called off moves an open node two generations on, and nobody is told. So the generation of
/// an open node, and of one that was claimed by somebody who was killed before it was told, is known only from below, and
/// its parity; the next answer that names it fixes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    model: Model,
    loose: BTreeSet<NodeId>,
}

impl State {
    /// The state that `history::begin` makes.
    pub fn new(names: &Names) -> State {
        let mut model = Model::new(Rules { lease_ms: 1 << 40, ..Rules::default() });
        let specs: Vec<_> = (0..NODES).map(|node| spec(names, node, 0)).collect();
        model.import(&specs).expect("an empty model takes them");
        State { model, loose: BTreeSet::new() }.settled()
    }

    /// Without what no answer shows, so that equal states are equal. What is open is loose.
    fn settled(mut self) -> State {
        self.model.ticks = 0;
        for (id, node) in &mut self.model.nodes {
            (node.created, node.finished) = (0, 0);
            if node.end.is_none() && node.lease.is_none() {
                self.loose.insert(*id);
            }
        }
        self
    }

    /// The states that the call can lead to with this answer; none: it cannot have been answered so here. `contended`
    /// says that another claim was on its way at the same time.
    pub fn after(&self, call: &Call, answer: Option<&Answer>, names: &Names, contended: bool) -> Vec<State> {
        let mut states: Vec<State> = Vec::new();
        for start in self.with_generations_of(call, answer, names) {
            for (mut state, given) in start.outcomes(call, answer, names, contended) {
                if answer.is_some_and(|answer| *answer != given) {
                    continue;
                }
                state.know(call, answer, names);
                states.push(state.settled());
            }
        }
        states.dedup();
        states
    }

    /// This state, and those in which a loose generation is what the call or its answer says.
    fn with_generations_of(&self, call: &Call, answer: Option<&Answer>, names: &Names) -> Vec<State> {
        let mut starts = vec![self.clone()];
        let about =
            answer.and_then(Answer::node).map(NodeId::of_name).or_else(|| node_of(call).map(|node| names.id(node)));
        let Some(id) = about.filter(|id| self.loose.contains(id)) else { return starts };
        let Some(node) = self.model.nodes.get(&id) else { return starts };
        let mentioned = answer.and_then(Answer::generation).into_iter().chain(fence_of(call));
        for wanted in mentioned.flat_map(|generation| [generation, generation.saturating_sub(1)]) {
            let ahead = wanted.saturating_sub(node.generation);
            if ahead > 0 && ahead % 2 == 0 {
                let mut start = self.clone();
                if let Some(node) = start.model.nodes.get_mut(&id) {
                    node.generation = wanted;
                }
                starts.push(start);
            }
        }
        starts
    }

    /// A generation that was named is known from now on; one that a killed claimer may have been given is not.
    fn know(&mut self, call: &Call, answer: Option<&Answer>, names: &Names) {
        let Some(answer) = answer else { return };
        if answer.generation().is_none() && fence_of(call).is_none() {
            return;
        }
        let about = answer.node().map(NodeId::of_name).or_else(|| node_of(call).map(|node| names.id(node)));
        if let Some(id) = about {
            self.loose.remove(&id);
        }
    }

    fn outcomes(&self, call: &Call, answer: Option<&Answer>, names: &Names, contended: bool) -> Vec<(State, Answer)> {
        let one = |act: &dyn Fn(&mut Model) -> Result<Answer, No>| {
            let mut state = self.clone();
            let given = act(&mut state.model).unwrap_or_else(|no| Answer::refused(&no));
            vec![(state, given)]
        };
        let id = |node: &u8| names.id(*node);
        match call {
            Call::Next { holder } => self.next(&names.holder(*holder), answer, contended),
            Call::Claim { node, holder, generation, resume } => {
                one(&|m| m.claim(id(node), &names.holder(*holder), &RESUME(*generation, *resume), 0).map(Answer::got))
            }
            Call::Renew { node, holder, generation } => one(&|m| {
                let got = m.renew(id(node), &names.holder(*holder), *generation, None, 0)?;
                Ok(Answer::At(got.generation))
            }),
            Call::Release { node, holder, generation } => {
                one(&|m| m.release(id(node), &names.holder(*holder), *generation).map(Answer::At))
            }
            Call::Force { node } => one(&|m| {
                let taken = m.release_forced(id(node), None)?;
                Ok(Answer::Taken { holder: taken.holder, generation: taken.generation })
            }),
            Call::Complete { node, outcome, holder, generation, summary } => one(&|m| {
                let now = m.complete(id(node), &completion(names, *outcome, *holder, *generation, *summary))?;
                Ok(Answer::Did(if now { "now" } else { "already" }.into()))
            }),
            Call::Reopen { node } => one(&|m| m.reopen(id(node)).map(Answer::At)),
            Call::Archive { node, to: true } => one(&|m| m.archive(id(node)).map(Answer::At)),
            Call::Archive { node, to: false } => one(&|m| m.unarchive(id(node)).map(Answer::At)),
            Call::Link { parent, child } => {
                one(&|m| m.link(id(parent), id(child)).map(|did| Answer::Did(did.to_string())))
            }
            Call::Unlink { parent, child } => {
                one(&|m| m.unlink(id(parent), id(child)).map(|did| Answer::Did(did.to_string())))
            }
            Call::Upsert { node, summary } => one(&|m| {
                let (_, change) = m.upsert(&spec(names, *node, *summary), true)?;
                Ok(Answer::Did(format!("{change:?}")))
            }),
            Call::Get { node } => one(&|m| {
                let row = m.get(id(node))?;
                let mut needs: Vec<String> = row.depends_on.into_iter().collect();
                needs.sort();
                let status = row.status.name().to_owned();
                let (generation, holder, summary, archived) = (row.generation, row.holder, row.summary, row.archived);
                Ok(Answer::Row { status, generation, holder, summary, archived, needs })
            }),
        }
    }

    /// Any ready node, or none while a claim is on its way.
    fn next(&self, holder: &str, answer: Option<&Answer>, contended: bool) -> Vec<(State, Answer)> {
        let mut outcomes = Vec::new();
        let options = ClaimOptions::default();
        if self.model.held_by(holder).is_none() {
            for row in self.model.ready() {
                let mut state = self.clone();
                if let Ok(got) = state.model.claim(row.id, holder, &options, 0) {
                    outcomes.push((state, Answer::got(got)));
                }
            }
            let nothing = Answer::refused(&No::new("nothing_ready"));
            if outcomes.is_empty() || (contended && answer == Some(&nothing)) {
                outcomes.push((self.clone(), nothing));
            }
            return outcomes;
        }
        let mut state = self.clone();
        let refused = state.model.claim_next(holder, &[], &options, 0);
        let refused = refused.map_or_else(|no| Answer::refused(&no), Answer::got);
        vec![(state, refused)]
    }
}

/// The node that a call names.
fn node_of(call: &Call) -> Option<u8> {
    match call {
        Call::Next { .. } => None,
        Call::Link { child, .. } | Call::Unlink { child, .. } => Some(*child),
        Call::Claim { node, .. }
        | Call::Renew { node, .. }
        | Call::Release { node, .. }
        | Call::Force { node }
        | Call::Complete { node, .. }
        | Call::Reopen { node }
        | Call::Archive { node, .. }
        | Call::Upsert { node, .. }
        | Call::Get { node } => Some(*node),
    }
}

/// The generation that a call presents.
fn fence_of(call: &Call) -> Option<u64> {
    match call {
        Call::Claim { generation, .. }
        | Call::Renew { generation, .. }
        | Call::Release { generation, .. }
        | Call::Complete { generation, .. } => *generation,
        _ => None,
    }
}
