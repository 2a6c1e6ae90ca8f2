//! The model as a judge: which states can a step with this answer lead to?

use tenure::{ClaimOptions, NodeId};

use crate::history::{Answer, Call, NODES, Names, completion, group, lease, options, spec, told};
use crate::model::{Model, No, Rules};
use crate::steps::{Act, Grant, History, Step, Took};
use crate::threads::LEASE_MS;

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
            let delay_ms = state.model.nodes[&id].delay_ms();
            let taken = state.model.lose(id).map(|taken| (taken.holder, taken.generation));
            state.leave_alone(history, event, id, delay_ms);
            state.grants[usize::from(node)] = None;
            (state.settled(), taken)
        });
        let left = !history.must_take(event, deadline_ms, grant, late_ms);
        (took, left.then(|| self.clone()))
    }

    /// A node was handed back after an attempt, by this call or by another one that met it on the way.
    fn leave_alone(&mut self, history: &History<'_>, event: usize, id: NodeId, delay_ms: u64) {
        let (first_ms, last_ms) = history.times(event);
        let Some(node) = self.model.nodes.get_mut(&id).filter(|node| node.end.is_none() && delay_ms > 0) else {
            return;
        };
        node.left_alone_ms = (first_ms + delay_ms, last_ms + delay_ms);
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
        if let Call::Claim { holder, .. } | Call::Next { holder, .. } = call
            && held(holder).is_some_and(|node| self.look(history, step.event, node, 0).1.is_none())
        {
            // Its own claim has run out: first it is taken back.
            return states;
        }
        let fits =
            |given: &Answer| answer.is_none_or(|answer| answer == given) && !self.is_of_unasked(step.event, given);
        let outcomes = self.outcomes(history, step).into_iter();
        let outcomes: Vec<_> = outcomes.flat_map(|outcome| self.as_seen(outcome, history, step)).collect();
        if history.has_helper(step.event) && self.unasked.iter().all(|one| one.0 != step.event) {
            states.extend(outcomes.iter().filter_map(|(state, given)| self.unasked(state, given, history, step)));
        }
        states.extend(outcomes.iter().filter_map(|(state, given)| self.shortened(state, given, history, step)));
        let made = outcomes.into_iter().filter(|(_, given)| fits(given));
        for (state, given) in made {
            let state = self.granted(state, &given, history, step).settled();
            states.extend(self.with_noted_lengths(&state, history, step).map(|state| (state, true)));
            states.push((state, true));
        }
        states
    }

    /// A node that is left alone is not seen as ready.
    fn as_seen(&self, (state, given): (State, Answer), history: &History<'_>, step: &Step) -> Vec<(State, Answer)> {
        let event = &history.events[step.event];
        let alone_ms = event.call.node().map(|node| self.model.nodes[&history.names.id(node)].left_alone_ms);
        match (alone_ms, given.of_left_alone()) {
            (Some((first_ms, _)), Some(todo)) if event.now_ms < first_ms => vec![(state, todo)],
            (Some((_, last_ms)), Some(todo)) if event.now_ms < last_ms => vec![(state.clone(), todo), (state, given)],
            _ => vec![(state, given)],
        }
    }

    /// The same with the lengths of lease that helpers may have noted for the claim just made: a later renewal that names no
    /// length goes by the one that is noted.
    fn with_noted_lengths(&self, made: &State, history: &History<'_>, step: &Step) -> impl Iterator<Item = State> {
        let grant = Some(Grant { event: step.event, claim: step.event });
        let mine = (0..NODES).find(|&node| made.grants[usize::from(node)] == grant);
        let mine = mine.filter(|_| history.has_helper(step.event)).map(|node| history.names.id(node));
        let noted = mine.map(|id| (id, history.lengths_of_helpers(step.event)));
        let noted = noted.into_iter().flat_map(|(id, lengths)| lengths.into_iter().map(move |length| (id, length)));
        let made = made.clone();
        noted.filter_map(move |(id, length)| {
            let mut other = made.clone();
            let lease = other.model.nodes.get_mut(&id)?.lease.as_mut()?;
            (lease.lease_ms != length).then(|| lease.lease_ms = length)?;
            Some(other)
        })
    }

    /// The claim was made for the call by another, and is over before the call notices.
    fn unasked(&self, made: &State, given: &Answer, history: &History<'_>, step: &Step) -> Option<(State, bool)> {
        let Answer::Got { node, generation, resumed: false } = given else { return None };
        let mut state = self.granted(made.clone(), given, history, step);
        state.unasked.push((step.event, node.clone(), *generation));
        Some((state.settled(), false))
    }

    /// The claim was resumed with a lease that runs out sooner, and that one has been taken back before the call notices: it goes
    /// on as if there had been none.
    fn shortened(&self, made: &State, given: &Answer, history: &History<'_>, step: &Step) -> Option<(State, bool)> {
        let Answer::Got { node, resumed: true, .. } = given else { return None };
        let node = (0..NODES).find(|&one| history.names.node(one) == *node)?;
        let state = self.granted(made.clone(), given, history, step);
        let until_ms = |state: &State| state.deadline(node, history.names.id(node)).map(|(deadline_ms, _)| deadline_ms);
        let is_sooner = until_ms(&state) < until_ms(self) && history.is_looked_beside(step.event);
        is_sooner.then(|| (state.settled(), false))
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
            Call::Next { holder, length } => {
                self.next(&names.holder(*holder), &options(None, false, *length), history, step)
            }
            Call::Claim { node, holder, generation, resume, length } => {
                let options = options(*generation, *resume, *length);
                let claim =
                    |m: &mut Model| m.claim_as_it_is(id(node), &names.holder(*holder), &options, now).map(Answer::got);
                let mut outcomes = one(&claim);
                if now < self.model.nodes[&id(node)].left_alone_ms.1 {
                    // It may still be left alone.
                    let mut later = self.model.clone();
                    later.nodes.entry(id(node)).and_modify(|node| node.left_alone_ms.0 = node.left_alone_ms.1);
                    outcomes.extend(claim(&mut later).err().map(|no| (self.clone(), Answer::refused(&no))));
                }
                outcomes
            }
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
            Call::Complete { node, outcome, holder, generation, summary } => {
                let completion = completion(names, *outcome, *holder, *generation, *summary);
                let delay_ms = self.model.nodes[&id(node)].delay_ms();
                let mut outcomes = one(&|m| m.complete(id(node), &completion).map(told));
                for (state, _) in outcomes.iter_mut().filter(|(_, given)| matches!(given, Answer::ToRetry { .. })) {
                    state.leave_alone(history, step.event, id(node), delay_ms);
                }
                outcomes
            }
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
    fn next(&self, holder: &str, options: &ClaimOptions, history: &History<'_>, step: &Step) -> Vec<(State, Answer)> {
        let (answer, now_ms) = (history.answer(step), history.events[step.event].now_ms);
        let mut outcomes = Vec::new();
        if self.model.held_by(holder).is_none() {
            let mut is_sure = false;
            for row in self.model.ready() {
                let mut state = self.clone();
                let alone_ms = self.model.nodes[&row.id].left_alone_ms.1;
                if let Ok(got) = state.model.claim_as_it_is(row.id, holder, options, now_ms) {
                    outcomes.push((state, Answer::got(got)));
                    is_sure |= now_ms >= alone_ms;
                }
            }
            let nothing = Answer::refused(&No::new("nothing_ready"));
            if !is_sure || (history.is_contended(step.event) && answer == Some(&nothing)) {
                outcomes.push((self.clone(), nothing));
            }
            return outcomes;
        }
        let mut state = self.clone();
        let refused =
            self.model.nodes.keys().next().copied().map(|any| state.model.claim_as_it_is(any, holder, options, now_ms));
        let busy = refused.map(|refused| refused.map_or_else(|no| Answer::refused(&no), Answer::got));
        busy.into_iter().map(|busy| (state.clone(), busy)).collect()
    }
}
