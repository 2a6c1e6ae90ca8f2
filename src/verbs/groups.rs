//! Groups: how many of the nodes that name one may be claimed at once.

use serde::Serialize;

use crate::error::{NameError, Refusal};
use crate::graph::{Graph, Group};
use crate::id::check_name;
use crate::record::name_hash;
use crate::table::Core;
use crate::table::TRIES;
use crate::verbs::Table;
use crate::verbs::edit::{Edit, Planned};
use crate::word::{Step, TextOf};

/// A group as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupView {
    /// Its name.
    pub name: String,
    /// How many of its nodes may be claimed at once.
    pub limit: u32,
    /// How many are.
    pub claimed: u32,
    /// How many nodes name it.
    pub nodes: u32,
}

impl Table {
    /// Sets how many nodes of a group may be claimed at once, 1 to 4,096; makes the group if it is new. False: it was so.
    /// Claims that stand when the limit is lowered stand on; new ones wait.
    ///
    /// # Errors
    /// [`Refusal::Name`]; [`Refusal::NoRoom`] past 255 groups.
    pub fn set_group(&self, name: &str, limit: u32) -> Result<bool, Refusal> {
        check_group(name)?;
        if limit == 0 || limit > crate::layout::NODES as u32 {
            return Err(NameError::Limit { limit, most: crate::layout::NODES as u32 }.into());
        }
        self.change(|edit| {
            let Some(known) = known_group(&edit.core, &edit.graph, name)? else {
                self.look_again(edit.root)?;
                return Ok(Planned::Again);
            };
            if let Some((number, group)) = known {
                if group.limit == limit {
                    return Ok(Planned::Nothing(false));
                }
                // A claim that was decided by the old limit fails.
                let members = edit.graph.iter().filter(|(_, node)| node.policy.group() == number);
                let open = members.filter(|&(slot, _)| edit.word(slot).is_ok_and(|word| word.is_open()));
                let steps: Vec<Step> = open.map(|(slot, _)| Step::Unready(slot)).collect();
                edit.steps.extend(steps);
                edit.graph.set_group(number, Group { limit, ..group });
                return Ok(Planned::Publish(true));
            }
            let Some(number) = edit.graph.free_group() else {
                return Err(Refusal::NoRoom { what: "groups", limit: crate::layout::GROUPS as u64 - 1 });
            };
            let text = edit.write_text(TextOf::Group(number.into()), name.as_bytes())?;
            edit.graph.set_group(number, Group { name: text, hash: name_hash(name), limit });
            Ok(Planned::Publish(true))
        })
    }

    /// The groups, with how many of their nodes are claimed.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn groups(&self) -> Result<Vec<GroupView>, Refusal> {
        let core = self.core();
        'anew: for _ in 0..TRIES {
            let cut = self.cut()?;
            let mut views = Vec::new();
            for (number, group) in cut.graph.groups.iter().enumerate().filter_map(|(i, g)| g.map(|g| (i, g))) {
                let Some(name) = core.read_text(group.name)? else {
                    self.look_again(cut.root)?;
                    continue 'anew;
                };
                let members = cut.graph.iter().filter(|(_, node)| usize::from(node.policy.group()) == number);
                let (mut claimed, mut nodes) = (0, 0);
                for (slot, _) in members {
                    nodes += 1;
                    let word = cut.words.get(usize::from(slot));
                    claimed += u32::from(word.is_some_and(|word| word.holder().is_some()));
                }
                let name = String::from_utf8_lossy(&name).into_owned();
                views.push(GroupView { name, limit: group.limit, claimed, nodes });
            }
            return Ok(views);
        }
        Err(Refusal::Contended { tries: TRIES })
    }

    /// The name of a group, for lists; `None` for none, or when its text was used again since.
    pub(crate) fn group_name(&self, graph: &Graph, number: u8) -> Result<Option<String>, Refusal> {
        let Some(Some(group)) = graph.groups.get(usize::from(number)) else { return Ok(None) };
        let name = self.core().read_text(group.name)?;
        Ok(name.map(|name| String::from_utf8_lossy(&name).into_owned()))
    }
}

impl Edit<'_> {
    /// The number of a group that a node is to belong to. `None`: the copy is out of date.
    pub(crate) fn group_number(&self, name: &str) -> Result<Option<u8>, Refusal> {
        check_group(name)?;
        match known_group(&self.core, &self.graph, name)? {
            None => Ok(None),
            Some(None) => Err(Refusal::NoSuchGroup { group: name.to_owned() }),
            Some(Some((number, _))) => Ok(Some(number)),
        }
    }
}

/// A group is a name that may also look like an id.
fn check_group(name: &str) -> Result<(), NameError> {
    match check_name("group", name) {
        Err(NameError::LooksLikeAnId { .. }) => Ok(()),
        other => other,
    }
}

/// The group of this name; the outer `None` when a text was used again since, so look again.
#[expect(clippy::option_option, reason = "absent and unknown are different answers")]
fn known_group(core: &Core<'_>, graph: &Graph, name: &str) -> Result<Option<Option<(u8, Group)>>, Refusal> {
    for (number, group) in graph.groups_with_hash(name_hash(name)) {
        match core.read_text(group.name)? {
            None => return Ok(None),
            Some(bytes) if bytes == name.as_bytes() => return Ok(Some(Some((number, group)))),
            Some(_) => {}
        }
    }
    Ok(Some(None))
}
