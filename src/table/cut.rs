//! A cut through the nodes' words that could have existed, while claims and their ends go on: for snapshots.
//!
//! The words are read dependents first, between two equal looks at a settled root, so what is read belongs to one version
//! and only claims and their ends happen meanwhile. A node that was read claimed or ended had its dependencies done by then,
//! or had lost them to a `link` or `reopen` before the cut began; either way the dependency's word, read later, says no less.
//! What reading one after the other can show and no moment can is a holder with two claims: see [`undo_second_claims`].

use crate::error::Damaged;
use crate::layout::HOLDERS;
use crate::sync::Ordering;
use crate::table::Core;
use crate::word::{NodeWord, Phase, RootWord, State, TextRef};

/// The words of a cut by slot, and the texts that ended nodes of it ended with.
pub(crate) struct CutWords {
    pub(crate) words: Vec<NodeWord>,
    pub(crate) end_texts: Vec<(u16, TextRef)>,
}

impl Core<'_> {
    /// Reads `count` words, those of `order` in that order, which has every node before what it waits for. `None`: the root
    /// is not `root` any more, which must be settled.
    pub(crate) fn cut_words(&self, root: RootWord, order: &[u16], count: usize) -> Result<Option<CutWords>, Damaged> {
        let mut words = vec![NodeWord::NEVER; count];
        let mut end_texts = Vec::new();
        for &slot in order {
            // Acquire: what a claim or an end was decided from is visible to the reads that follow.
            let word = self.node(slot)?.word.load(Ordering::Acquire);
            if let Some(place) = words.get_mut(usize::from(slot)) {
                *place = word;
            }
            if let Phase::Ended { text: Some(head), .. } = word.state().phase {
                let block = self.fixed.blocks.get(usize::from(head));
                end_texts.push((slot, block.map_or(TextRef::NONE, |block| block.text.load(Ordering::Acquire))));
            }
        }
        if self.fixed.header.root.load(Ordering::Acquire) != root {
            return Ok(None);
        }
        undo_second_claims(&mut words, order);
        Ok(Some(CutWords { words, end_texts }))
    }
}

/// Of the claims of one holder the one that was read first stands; the others are taken back.
///
/// The holder had the first one when it was read, so it made every other one after that, and before that one was read:
/// there was a moment during the cut at which that node was open, one generation earlier. Nothing that waits for it can
/// have been claimed or done since, so the cut with the node as it was then is one that could have existed too.
fn undo_second_claims(words: &mut [NodeWord], order: &[u16]) {
    let mut has_one = vec![false; HOLDERS];
    for &slot in order {
        let Some(word) = words.get_mut(usize::from(slot)) else { continue };
        let Some(seen) = word.holder().and_then(|h| has_one.get_mut(usize::from(h))) else { continue };
        if *seen {
            *word = NodeWord::new(State { generation: word.generation().saturating_sub(1), phase: Phase::Open });
        }
        *seen = true;
    }
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_claim_that_was_read_first_stands_and_the_next_is_as_it_was_before() {
        let open = |generation| NodeWord::new(State { generation, phase: Phase::Open });
        let mut words = vec![open(6).claimed_by(1), open(4).claimed_by(2), open(0), open(8).claimed_by(1)];
        undo_second_claims(&mut words, &[3, 2, 1, 0]);
        assert_eq!(words, [open(6), open(4).claimed_by(2), open(0), open(8).claimed_by(1)]);
    }
}
