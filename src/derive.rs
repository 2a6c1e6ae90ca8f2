//! What follows from a graph alone: an order in which it can be worked, and how much work waits below each node.
//!
//! Pure: a [`View`] in, a [`Plan`] out, in one pass over nodes and edges. The pass is Kahn's (CACM 5, 1962) for the
//! order, then the same order backwards for the chains. Which node goes first is Hu's rule (Operations Research 9, 1961;
//! see also Graham, SIAM J. Appl. Math. 17, 1969): the one with the longest chain of unfinished work below it. That
//! number is the *bottom level* without the node's own cost. Nothing here recurses, so a chain of any length is fine.

/// A graph as arrays. Slots are numbers below `high`; every edge joins two present slots.
pub(crate) struct View<'a> {
    /// Whether there is a node in the slot.
    pub(crate) present: &'a [bool],
    /// Estimated milliseconds of work, by slot.
    pub(crate) cost: &'a [u32],
    /// Creation number, by slot: ties go to the oldest.
    pub(crate) born: &'a [u64],
    /// The node that the slot's node belongs under.
    pub(crate) parent: &'a [Option<u16>],
    /// Whether the node has ended, by slot.
    pub(crate) ended: &'a [bool],
    /// Where each slot's dependencies would begin, if they were listed by slot, and after the last the end.
    pub(crate) dep_start: &'a [u32],
    /// Where each slot's children begin in `children`, and after the last the end.
    pub(crate) child_start: &'a [u32],
    /// The nodes that wait for the slot's node.
    pub(crate) children: &'a [u16],
}

/// What follows from a [`View`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Every present slot, dependencies and parents before those that wait for or belong under them.
    pub(crate) topological: Vec<u16>,
    /// By slot: cost of the longest chain of unfinished nodes below it, its own cost not included.
    pub(crate) waiting_below: Vec<u64>,
}

/// The slots that lie on or behind a loop, when there is no order to work them in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    pub(crate) stuck: Vec<bool>,
}

impl View<'_> {
    fn children(&self, slot: usize) -> &[u16] {
        let range = match (self.child_start.get(slot), self.child_start.get(slot + 1)) {
            (Some(&from), Some(&to)) => from as usize..to as usize,
            _ => 0..0,
        };
        self.children.get(range).unwrap_or(&[])
    }

    /// Order and chains in one go.
    ///
    /// # Errors
    /// [`Loop`] when there is one.
    #[cfg(test)]
    fn plan(&self) -> Result<Plan, Loop> {
        let topological = self.topological()?;
        let waiting_below = self.chains(&topological);
        Ok(Plan { topological, waiting_below })
    }

    /// The slots in an order in which they can be worked. Dependency edges and parent edges are checked as one graph: a
    /// loop over both kinds is a loop.
    ///
    /// # Errors
    /// [`Loop`] when there is none.
    pub(crate) fn topological(&self) -> Result<Vec<u16>, Loop> {
        if self.parent.iter().all(Option::is_none) {
            return self.worked_off(|_| &[]);
        }
        let (start, family) = self.families();
        self.worked_off(|slot| family.get(start[slot] as usize..start[slot + 1] as usize).unwrap_or(&[]))
    }

    /// Takes away what waits for nothing until nothing is left. `family_of` tells what belongs under a slot.
    #[inline]
    fn worked_off<'f>(&self, family_of: impl Fn(usize) -> &'f [u16]) -> Result<Vec<u16>, Loop> {
        let high = self.present.len();
        let mut before: Vec<u32> = self.dep_start.windows(2).map(|ends| ends[1] - ends[0]).collect();
        before.resize(high, 0);
        for (left, parent) in before.iter_mut().zip(self.parent) {
            *left += u32::from(parent.is_some());
        }
        let mut count = 0;
        let mut free: Vec<u16> = Vec::with_capacity(high);
        for (slot, (&present, &left)) in self.present.iter().zip(&before).enumerate().rev() {
            count += usize::from(present);
            if present && left == 0 {
                free.push(slot as u16);
            }
        }
        let mut order: Vec<u16> = Vec::with_capacity(count);
        let mut next = free.pop();
        while let Some(slot) = next {
            order.push(slot);
            let slot = usize::from(slot);
            // The last one that comes free is taken next, without the way over `free`: a chain is followed in registers.
            next = None;
            for &child in self.children(slot).iter().chain(family_of(slot)) {
                let left = &mut before[usize::from(child)];
                *left = left.wrapping_sub(1);
                if *left == 0
                    && let Some(other) = next.replace(child)
                {
                    free.push(other);
                }
            }
            next = next.or_else(|| free.pop());
        }
        if order.len() == count {
            return Ok(order);
        }
        Err(Loop { stuck: before.iter().map(|&left| left > 0).collect() })
    }

    /// The forest turned round: for each slot, the slots whose parent it is.
    fn families(&self) -> (Vec<u32>, Vec<u16>) {
        let high = self.present.len();
        let mut start = vec![0u32; high + 1];
        for parent in self.parent.iter().flatten() {
            start[usize::from(*parent) + 1] += 1;
        }
        for slot in 0..high {
            start[slot + 1] += start[slot];
        }
        let mut fill = start.clone();
        let mut family = vec![0u16; start[high] as usize];
        for (slot, parent) in self.parent.iter().enumerate() {
            if let Some(parent) = parent {
                let place = &mut fill[usize::from(*parent)];
                family[*place as usize] = slot as u16;
                *place += 1;
            }
        }
        (start, family)
    }

    /// By slot, the cost of the longest chain of unfinished nodes below it.
    pub(crate) fn chains(&self, topological: &[u16]) -> Vec<u64> {
        let mut waiting_below = vec![0u64; self.present.len()];
        // What a slot adds to those before it: its own cost and the chain below it, or nothing once it has ended.
        let mut adds = vec![0u64; self.present.len()];
        for &slot in topological.iter().rev() {
            let slot = usize::from(slot);
            let longest = self.children(slot).iter().map(|&child| adds[usize::from(child)]).max().unwrap_or(0);
            waiting_below[slot] = longest;
            adds[slot] = if self.ended[slot] { 0 } else { u64::from(self.cost[slot]) + longest };
        }
        waiting_below
    }

    /// The order in which ready nodes are given out: the most work waiting below first, then the oldest.
    pub(crate) fn order(&self, plan: &Plan) -> Vec<u16> {
        let mut order: Vec<u16> = (0..self.present.len()).filter(|&s| self.present[s]).map(|s| s as u16).collect();
        order.sort_unstable_by_key(|&slot| {
            let slot = usize::from(slot);
            (std::cmp::Reverse(plan.waiting_below[slot]), self.born[slot])
        });
        order
    }
}

#[cfg(all(test, not(tenure_loom)))]
mod tests {
    use super::*;

    struct Owned {
        present: Vec<bool>,
        cost: Vec<u32>,
        born: Vec<u64>,
        parent: Vec<Option<u16>>,
        ended: Vec<bool>,
        dep_start: Vec<u32>,
        child_start: Vec<u32>,
        children: Vec<u16>,
    }

    fn graph(high: usize, edges: &[(u16, u16)]) -> Owned {
        let mut edges = edges.to_vec();
        edges.sort_unstable();
        let starts = |ends: &mut dyn Iterator<Item = u16>| {
            let mut start = vec![0u32; high + 1];
            ends.for_each(|end| start[usize::from(end) + 1] += 1);
            (0..high).for_each(|i| start[i + 1] += start[i]);
            start
        };
        let child_start = starts(&mut edges.iter().map(|e| e.0));
        let dep_start = starts(&mut edges.iter().map(|e| e.1));
        Owned {
            present: vec![true; high],
            cost: vec![1; high],
            born: (0..high as u64).collect(),
            parent: vec![None; high],
            ended: vec![false; high],
            dep_start,
            child_start,
            children: edges.iter().map(|e| e.1).collect(),
        }
    }

    impl Owned {
        fn view(&self) -> View<'_> {
            View {
                present: &self.present,
                cost: &self.cost,
                born: &self.born,
                parent: &self.parent,
                ended: &self.ended,
                dep_start: &self.dep_start,
                child_start: &self.child_start,
                children: &self.children,
            }
        }
    }

    #[test]
    fn a_chain_of_4096_is_ranked_from_its_head_without_recursion() {
        let edges: Vec<(u16, u16)> = (0..4095).map(|i| (i, i + 1)).collect();
        let g = graph(4096, &edges);
        let plan = g.view().plan().unwrap();
        assert_eq!(plan.waiting_below[0], 4095);
        assert_eq!(g.view().order(&plan)[0], 0);
    }

    #[test]
    fn ended_nodes_end_a_chain_and_ties_go_to_the_oldest() {
        let mut g = graph(5, &[(0, 1), (1, 2), (3, 4)]);
        g.ended[1] = true;
        let plan = g.view().plan().unwrap();
        assert_eq!(plan.waiting_below, vec![0, 1, 0, 1, 0]);
        g.born = vec![9, 5, 4, 3, 2];
        assert_eq!(g.view().order(&plan), vec![3, 1, 4, 2, 0]);
    }

    #[test]
    fn costs_weigh_and_do_not_overflow() {
        let mut g = graph(4, &[(0, 1), (1, 2), (2, 3)]);
        g.cost = vec![u32::MAX; 4];
        assert_eq!(g.view().plan().unwrap().waiting_below[0], 3 * u64::from(u32::MAX));
    }

    #[test]
    fn loops_are_found_in_one_kind_and_across_both() {
        assert!(graph(3, &[(0, 1), (1, 2), (2, 0)]).view().plan().is_err());
        let mut g = graph(3, &[(0, 1), (1, 2)]);
        g.parent[0] = Some(2);
        assert_eq!(g.view().plan().unwrap_err().stuck, vec![true; 3]);
        g.parent[0] = None;
        g.parent[2] = Some(0);
        assert!(g.view().plan().is_ok());
    }
}
