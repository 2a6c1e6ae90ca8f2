//! The model as a judge: which states can a step with this answer lead to?

use tenure::{ClaimOptions, Ended, NodeId};

use crate::history::{Answer, Call, NODES, Names, completion, group, lease, spec, told};
use crate::model::{Model, No, Rules};
use crate::steps::{Act, Grant, History, Step, Took};
use crate::threads::LEASE_MS;

const OPTIONS: fn(Option<u64>, bool) -> ClaimOptions =
    |generation, resume| ClaimOptions { generation, resume, ..ClaimOptions::default() };

/// A state of the model, and by node who gave the lease that runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    model: Model,
    grants: [Option<Grant>; NODES as usize],
    /// Claims that were made for a call which goes on as if they had not been: call, node, generation.
    unasked: Vec<(usize, String, u64)>,
}

impl State {
    /// The state that `history::begin` makes.
    pub fn new(names: &Names) -> State {
        let mut model = Model::new(Rules { lease_ms: LEASE_MS, ..Rules::default() });
        if let Some(limit) = names.limit() {
            model.set_group(&group(names), limit);
        }
        let specs: Vec<_> = (0..NODES).map(|node| spec(names, node, 0)).collect();
        model.import(&specs).expect("an empty model takes them");
        State { model, grants: Default::default(), unasked: Vec::new() }.settled()
    }

    /// Without what no answer shows, so that equal states are equal.
    fn settled(mut self) -> State {
        self.model.ticks = 0;
        for node in self.model.nodes.values_mut() {
            (node.created, node.finished) = (0, 0);
        }
        self
    }

    /// The states that the step can lead to with this answer, and whether it is over then; none: it cannot have been made
    /// here with that answer.
    pub fn after(&self, history: &History<'_>, step: &Step) -> Vec<(State, bool)> {
        let mut states = match &step.act {
            Act::Look { node, told, late_ms } => {
                let (took, left) = self.look(history, step.event, *node, *late_ms);
                let fits = |said: &Took| told.as_ref().is_none_or(|told| told == said);
                // A look that closed the lease and did not open the node: another call did that, which may not tell.
                let hidden = history.is_looked_beside(step.event);
                let took = took.filter(|(_, said)| fits(said) || (hidden && told == &Some(None)));
                took.into_iter()
                    .map(|(state, _)| state)
                    .chain(left.filter(|_| fits(&None)))
                    .map(|s| (s, true))
                    .collect()
            }
            Act::Verb => self.verb(history, step),
        };
        states.dedup();
        states
    }

    /// A look at a node by a call: the state if it takes the node back, with what it can tell, and if it leaves it.
    fn look(
        &self,
        history: &History<'_>,
        event: usize,
        node: u8,
        late_ms: u64,
    ) -> (Option<(State, Took)>, Option<State>) {
        let id = history.names.id(node);
        let Some((deadline_ms, grant)) = self.deadline(node, id) else { return (None, Some(self.clone())) };
        let took = history.may_take(event, deadline_ms, grant).then(|| {
            let mut state = self.clone();
            let taken = state.model.lose(id).map(|taken| (taken.holder, taken.generation));
            state.grants[usize::from(node)] = None;
            (state.settled(), taken)
        });
        let left = !history.must_take(event, deadline_ms, grant, late_ms);
        (took, left.then(|| self.clone()))
    }

    /// When the lease of a held node runs out, and who gave it.
    fn deadline(&self, node: u8, id: NodeId) -> Option<(u64, Grant)> {
        let lease = self.model.nodes.get(&id)?.lease.as_ref()?;
        Some((lease.renewed_at_ms + lease.lease_ms, self.grants[usize::from(node)]?))
    }

    fn verb(&self, history: &History<'_>, step: &Step) -> Vec<(State, bool)> {
        let (call, answer) = (&history.events[step.event].call, history.answer(step));
        let names = history.names;
        let held = |holder: &u8| {
            let held = self.model.held_by(&names.holder(*holder));
            (0..NODES).find(|&node| Some(names.id(node)) == held)
        };
        // What the call can find to have run out on its way.
        let found: Vec<u8> = match call {
            Call::Claim { node, holder, .. } => held(holder).into_iter().chain([*node]).collect(),
            Call::Next { .. } => (0..NODES).collect(),
            // Whoever finds the lease closed finishes the reclaim.
            Call::Renew { node, .. } if history.is_looked_beside(step.event) => vec![*node],
            _ => Vec::new(),
        };
        let taken = |node: u8| self.look(history, step.event, node, 0).0.map(|(state, _)| (state, false));
        let mut states: Vec<(State, bool)> = found.into_iter().filter_map(taken).collect();
        if let Call::Claim { holder, .. } | Call::Next { holder } = call
            && held(holder).is_some_and(|node| self.look(history, step.event, node, 0).1.is_none())
        {
            // Its own claim has run out: first it is taken back.
            return states;
        }
        let fits =
            |given: &Answer| answer.is_none_or(|answer| answer == given) && !self.is_of_unasked(step.event, given);
        let outcomes = self.outcomes(history, step);
        if history.has_helper(step.event) && self.unasked.iter().all(|one| one.0 != step.event) {
            states.extend(outcomes.iter().filter_map(|(state, given)| self.unasked(state, given, history, step)));
        }
        let made = outcomes.into_iter().filter(|(_, given)| fits(given));
        states.extend(made.map(|(state, given)| (self.granted(state, &given, history, step).settled(), true)));
        states
    }

    /// The claim was made for the call by another, and is over before the call notices.
    fn unasked(&self, made: &State, given: &Answer, history: &History<'_>, step: &Step) -> Option<(State, bool)> {
        let Answer::Got { node, generation, resumed: false } = given else { return None };
        let mut state = self.granted(made.clone(), given, history, step);
        state.unasked.push((step.event, node.clone(), *generation));
        Some((state.settled(), false))
    }

    /// Whether a call is answered with the claim that was made for it as if it were an earlier one.
    fn is_of_unasked(&self, event: usize, given: &Answer) -> bool {
        let (node, generation) = match given {
            Answer::Got { node, generation, .. } => (node, *generation),
            Answer::No { code, node: Some(node), generation: Some(generation), .. } if code == "busy" => {
                (node, *generation)
            }
            _ => return false,
        };
        self.unasked.iter().any(|one| one.0 == event && one.1 == *node && one.2 == generation)
    }

    /// Notes who gave the leases of the next state.
    fn granted(&self, mut next: State, given: &Answer, history: &History<'_>, step: &Step) -> State {
        let renewed = match (given, &history.events[step.event].call) {
            (Answer::At(_), Call::Renew { node, .. }) => Some(history.names.node(*node)),
            (Answer::Got { node, resumed: true, .. }, _) => Some(node.clone()),
            _ => None,
        };
        for node in (0..NODES).filter(|_| history.has_times()) {
            let (id, grant) = (history.names.id(node), &mut next.grants[usize::from(node)]);
            let (before, now) = (&self.model.nodes[&id], &next.model.nodes[&id]);
            let is_claim = now.generation != before.generation;
            if now.lease.is_none() {
                *grant = None;
            } else if is_claim {
                *grant = Some(Grant { event: step.event, claim: step.event });
            } else if renewed.as_ref() == Some(&history.names.node(node)) {
                *grant = grant.map(|grant| Grant { event: step.event, ..grant });
            }
        }
        next
    }

    fn outcomes(&self, history: &History<'_>, step: &Step) -> Vec<(State, Answer)> {
        let (names, event) = (history.names, &history.events[step.event]);
        let one = |act: &dyn Fn(&mut Model) -> Result<Answer, No>| {
            let mut state = self.clone();
            let given = act(&mut state.model).unwrap_or_else(|no| Answer::refused(&no));
            vec![(state, given)]
        };
        let id = |node: &u8| names.id(*node);
        let now = event.now_ms;
        match &event.call {
            Call::Next { holder } => self.next(&names.holder(*holder), history, step),
            Call::Claim { node, holder, generation, resume } => one(&|m| {
                let options = OPTIONS(*generation, *resume);
                m.claim_as_it_is(id(node), &names.holder(*holder), &options, now).map(Answer::got)
            }),
            Call::Renew { node, holder, generation, long } => one(&|m| {
                let got = m.renew(id(node), &names.holder(*holder), *generation, lease(*long), now)?;
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
                let ended: Ended =
                    m.complete(id(node), &completion(names, *outcome, *holder, *generation, *summary))?;
                Ok(told(ended))
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
            Call::Limit { limit } => {
                one(&|m| Ok(Answer::Did(m.set_group(&group(names), u32::from(*limit)).to_string())))
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
                let attempts = row.attempts;
                Ok(Answer::Row { status, generation, holder, summary, archived, attempts, needs })
            }),
            // No verbs of their own: looks, and the clock.
            Call::Reclaim | Call::Advance => Vec::new(),
        }
    }

    /// Any ready node whose group has a seat, or none while a claim is on its way.
    fn next(&self, holder: &str, history: &History<'_>, step: &Step) -> Vec<(State, Answer)> {
        let (answer, now_ms) = (history.answer(step), history.events[step.event].now_ms);
        let mut outcomes = Vec::new();
        let options = ClaimOptions::default();
        if self.model.held_by(holder).is_none() {
            for row in self.model.ready() {
                let mut state = self.clone();
                if let Ok(got) = state.model.claim_as_it_is(row.id, holder, &options, now_ms) {
                    outcomes.push((state, Answer::got(got)));
                }
            }
            let nothing = Answer::refused(&No::new("nothing_ready"));
            if outcomes.is_empty() || (history.is_contended(step.event) && answer == Some(&nothing)) {
                outcomes.push((self.clone(), nothing));
            }
            return outcomes;
        }
        let mut state = self.clone();
        let refused = self
            .model
            .nodes
            .keys()
            .next()
            .copied()
            .map(|any| state.model.claim_as_it_is(any, holder, &options, now_ms));
        let busy = refused.map(|refused| refused.map_or_else(|no| Answer::refused(&no), Answer::got));
        busy.into_iter().map(|busy| (state.clone(), busy)).collect()
    }
}
