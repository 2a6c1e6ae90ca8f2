//! The model as a judge: which states can a call with this answer lead to?

use tenure::ClaimOptions;

use crate::history::{Answer, Call, NODES, Names, completion, spec};
use crate::model::{Model, No, Rules};

const RESUME: fn(Option<u64>, bool) -> ClaimOptions =
    |generation, resume| ClaimOptions { generation, resume, ..ClaimOptions::default() };

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    model: Model,
}

impl State {
    /// The state that `history::begin` makes.
    pub fn new(names: &Names) -> State {
        let mut model = Model::new(Rules { lease_ms: 1 << 40, ..Rules::default() });
        let specs: Vec<_> = (0..NODES).map(|node| spec(names, node, 0)).collect();
        model.import(&specs).expect("an empty model takes them");
        State { model }.settled()
    }

    /// Without what no answer shows, so that equal states are equal.
    fn settled(mut self) -> State {
        self.model.ticks = 0;
        for node in self.model.nodes.values_mut() {
            (node.created, node.finished) = (0, 0);
        }
        self
    }

    /// The states that the call can lead to with this answer; none: it cannot have been answered so here. `contended`
    /// says that another claim was on its way at the same time.
    pub fn after(&self, call: &Call, answer: Option<&Answer>, names: &Names, contended: bool) -> Vec<State> {
        let outcomes = self.outcomes(call, answer, names, contended).into_iter();
        let fits = |given: &Answer| answer.is_none_or(|answer| answer == given);
        let mut states: Vec<State> =
            outcomes.filter(|(_, given)| fits(given)).map(|(state, _)| state.settled()).collect();
        states.dedup();
        states
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
