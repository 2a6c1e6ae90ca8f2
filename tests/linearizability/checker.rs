//! The search for an order (Wing and Gong, with Lowe's memory of what was tried).

use std::collections::HashSet;

use crate::history::{Event, Names};
use crate::spec::State;
use crate::steps::History;

/// The longest history that can be checked: a bit for each step.
const STEPS_MAX: usize = 64;

struct Search<'a> {
    history: History<'a>,
    /// What led nowhere: the steps that stood in the order, and the state after them.
    tried: HashSet<(u64, State)>,
    /// Where the search had come furthest.
    furthest: u64,
}

/// The error is a text that shows the history and how far an order of it could be found.
pub fn check(events: &[Event], names: &Names) -> Result<(), String> {
    let history = History::new(events, names);
    assert!(history.steps.len() <= STEPS_MAX, "{} steps are too many", history.steps.len());
    let mut search = Search { history, tried: HashSet::new(), furthest: 0 };
    if search.go(0, &State::new(names)) { Ok(()) } else { Err(search.show()) }
}

impl Search<'_> {
    /// Whether the steps that are not in `done` can follow in some order on this state.
    fn go(&mut self, done: u64, state: &State) -> bool {
        let left: Vec<usize> = (0..self.history.steps.len()).filter(move |i| done & (1 << i) == 0).collect();
        let end = |&i: &usize| self.history.end(i);
        // A killed call need not stand in the order.
        if left.iter().all(|i| end(i) == u64::MAX) {
            return true;
        }
        if done.count_ones() > self.furthest.count_ones() {
            self.furthest = done;
        }
        if !self.tried.insert((done, state.clone())) {
            return false;
        }
        // Nothing can come next that began after another one that is left had ended.
        let first_end = left.iter().map(end).min().unwrap_or(u64::MAX);
        for i in left {
            let step = &self.history.steps[i];
            if self.history.began(i) > first_end || step.after & !done != 0 {
                continue;
            }
            for (after, is_over) in state.after(&self.history, step) {
                if self.go(if is_over { done | 1 << i } else { done }, &after) {
                    return true;
                }
            }
        }
        false
    }

    fn show(&self) -> String {
        let events = self.history.events;
        let zero = events.iter().map(|event| event.began).min().unwrap_or(0);
        let first_ms = events.iter().map(|event| event.now_ms).min().unwrap_or(0);
        let mut lines = vec![
            "no order gives these answers (times in microseconds and on the lease clock; * is what an order was found for)"
                .to_owned(),
        ];
        let mut order: Vec<usize> = (0..events.len()).collect();
        order.sort_by_key(|&i| events[i].began);
        for i in order {
            let Event { call, now_ms, began, ended } = &events[i];
            let steps = self.history.steps.iter().enumerate().filter(|(_, step)| step.event == i);
            let star = if steps.clone().all(|(step, _)| self.furthest & (1 << step) != 0) { '*' } else { ' ' };
            let (began, now_ms) = ((began - zero) as f64 / 1_000.0, now_ms - first_ms);
            match ended {
                Some((ended, answer)) => {
                    let ended = (ended - zero) as f64 / 1_000.0;
                    lines.push(format!(
                        "{star} {began:10.1} {ended:10.1} {now_ms:5} ms  {call:?}\n                                    -> {answer:?}"
                    ));
                }
                None => lines.push(format!("{star} {began:10.1}     killed {now_ms:5} ms  {call:?}")),
            }
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Answer, Call};

    const NAMES: Names = Names { history: 0 };

    fn event(call: Call, began: u64, ended: u64, answer: Answer) -> Event {
        Event { call, now_ms: 0, began, ended: Some((ended, answer)) }
    }

    fn claim(node: u8, holder: u8) -> Call {
        Call::Claim { node, holder, generation: None, resume: false, length: 0 }
    }

    fn got(node: u8, generation: u64) -> Answer {
        Answer::Got { node: NAMES.node(node), generation, resumed: false }
    }

    fn held(node: u8, holder: u8, generation: u64) -> Answer {
        let (node, holder) = (Some(NAMES.node(node)), Some(NAMES.holder(holder)));
        Answer::No { code: "held".into(), node, holder, generation: Some(generation), status: None }
    }

    fn complete(node: u8, holder: u8) -> Call {
        Call::Complete { node, outcome: 0, holder: Some(holder), generation: None, summary: None }
    }

    fn now() -> Answer {
        Answer::Did("now".into())
    }

    fn fine(events: &[Event]) {
        if let Err(why) = check(events, &NAMES) {
            panic!("{why}");
        }
    }

    fn wrong(events: &[Event]) {
        assert!(check(events, &NAMES).is_err(), "taken for right: {events:#?}");
    }

    #[test]
    fn one_after_the_other_and_at_once() {
        fine(&[]);
        fine(&[event(claim(0, 0), 1, 2, got(0, 1)), event(claim(0, 1), 3, 4, held(0, 0, 1))]);
        // The second began first and ended last: both orders are open to it.
        fine(&[event(claim(0, 0), 2, 3, got(0, 1)), event(claim(0, 1), 1, 4, held(0, 0, 1))]);
    }

    #[test]
    fn two_winners_are_wrong() {
        wrong(&[event(claim(0, 0), 1, 4, got(0, 1)), event(claim(0, 1), 2, 3, got(0, 1))]);
        wrong(&[event(claim(0, 0), 1, 4, got(0, 1)), event(claim(0, 1), 2, 3, got(0, 3))]);
    }

    #[test]
    fn two_claims_of_one_holder_are_wrong() {
        wrong(&[event(claim(0, 0), 1, 2, got(0, 1)), event(claim(1, 0), 3, 4, got(1, 1))]);
    }

    #[test]
    fn a_refusal_before_its_reason_is_wrong() {
        wrong(&[event(claim(0, 1), 1, 2, held(0, 0, 1)), event(claim(0, 0), 3, 4, got(0, 1))]);
        // And one whose reason is over.
        let released = event(Call::Release { node: 0, holder: 0, generation: None }, 3, 4, Answer::At(2));
        wrong(&[event(claim(0, 0), 1, 2, got(0, 1)), released.clone(), event(claim(0, 1), 5, 6, held(0, 0, 1))]);
        fine(&[event(claim(0, 0), 1, 2, got(0, 1)), released, event(claim(0, 1), 2, 6, held(0, 0, 1))]);
    }

    #[test]
    fn a_generation_that_was_skipped_or_given_twice_is_wrong() {
        let release = |at| event(Call::Release { node: 0, holder: 0, generation: None }, 3, 4, Answer::At(at));
        let first = event(claim(0, 0), 1, 2, got(0, 1));
        fine(&[first.clone(), release(2), event(claim(0, 1), 5, 6, got(0, 3))]);
        wrong(&[first.clone(), release(2), event(claim(0, 1), 5, 6, got(0, 5))]);
        wrong(&[first.clone(), release(4)]);
        wrong(&[first, release(2), event(claim(0, 1), 5, 6, got(0, 1))]);
    }

    #[test]
    fn a_killed_call_may_have_been_made_or_not() {
        let killed = Event { call: claim(0, 0), now_ms: 0, began: 1, ended: None };
        fine(&[killed.clone(), event(claim(0, 1), 2, 3, got(0, 1))]);
        fine(&[killed.clone(), event(claim(0, 1), 2, 3, held(0, 0, 1))]);
        wrong(&[killed.clone(), event(claim(0, 1), 2, 3, held(0, 0, 5))]);
        // Late as well, but not before it began, and not both.
        fine(&[killed.clone(), event(claim(0, 1), 2, 3, got(0, 1)), event(complete(0, 1), 4, 5, now())]);
        wrong(&[Event { began: 9, ..killed.clone() }, event(claim(0, 1), 2, 3, held(0, 0, 1))]);
        wrong(&[killed, event(claim(0, 1), 2, 3, held(0, 0, 1)), event(claim(0, 2), 4, 5, held(0, 0, 3))]);
    }

    #[test]
    fn a_lost_update_is_wrong() {
        let upsert = |summary| Call::Upsert { node: 0, summary };
        let row = |summary: &str| Answer::Row {
            status: "ready".into(),
            generation: 0,
            holder: None,
            summary: Some(summary.into()),
            archived: false,
            attempts: 0,
            needs: Vec::new(),
        };
        let updated = || Answer::Did("Updated".into());
        let get = Call::Get { node: 0 };
        fine(&[
            event(upsert(1), 1, 4, updated()),
            event(upsert(2), 2, 3, updated()),
            event(get.clone(), 5, 6, row("s1")),
        ]);
        wrong(&[event(upsert(1), 1, 2, updated()), event(upsert(2), 3, 4, updated()), event(get, 5, 6, row("s1"))]);
    }

    #[test]
    fn next_may_give_any_ready_node_and_none_only_beside_a_claim() {
        let next = |holder| Call::Next { holder, length: 0 };
        let nothing =
            || Answer::No { code: "nothing_ready".into(), node: None, holder: None, generation: None, status: None };
        fine(&[event(next(0), 1, 2, got(2, 1)), event(next(1), 3, 4, got(0, 1))]);
        wrong(&[event(next(0), 1, 2, got(2, 1)), event(next(1), 3, 4, got(2, 1))]);
        wrong(&[event(next(0), 1, 2, nothing())]);
        fine(&[event(next(0), 1, 3, nothing()), event(claim(1, 1), 2, 4, got(1, 1))]);
    }
}
