//! Texts: names, records of nodes. Written once into blocks that the writer has marked as its own, then referred to by
//! a version or by the word of an ended node, and never changed again while they are.
//!
//! A block is *free* when no living process has its mark on it and nothing refers to the text it carries. Nobody frees
//! one: whether it is free is read off, so a writer that dies leaves nothing to repair. A taker puts its mark on first
//! and then looks whether the text is referred to; whoever publishes a text takes the mark off only afterwards. So a
//! taker that finds neither mark nor reference has the block for itself.

use crate::error::Damaged;
use crate::layout::{BLOCK_BYTES, BLOCKS, Block};
use crate::record::RECORD_BYTES_MAX;
use crate::sync::{Ordering, fence};
use crate::table::{Core, Stop, TRIES};
use crate::word::{OwnerWord, Phase, RootWord, TextOf, TextRef};

/// The most blocks that one text can take.
const CHAIN_MAX: usize = RECORD_BYTES_MAX.div_ceil(BLOCK_BYTES);

/// Blocks with this process's mark on them: to be published, or given back when dropped.
pub(crate) struct Draft<'m> {
    core: Core<'m>,
    blocks: Vec<u16>,
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        for &block in &self.blocks {
            if let Some(block) = self.core.fixed.blocks.get(usize::from(block)) {
                // Release: whoever takes the block after this sees the text, and the root or node that refers to it.
                // Pairs with the Acquire of the mark in `take_block`.
                block.owner.store(OwnerWord::NOBODY, Ordering::Release);
            }
        }
    }
}

impl<'m> Core<'m> {
    /// An empty draft, to write texts with.
    pub(crate) fn draft(&self) -> Draft<'m> {
        Draft { core: *self, blocks: Vec::new() }
    }

    fn block(&self, i: u16) -> Result<&'m Block, Damaged> {
        self.fixed.blocks.get(usize::from(i)).ok_or(Damaged { what: "a text block number past the last" })
    }

    /// Whether the text that a block carries is referred to by the version in force or by a node's word.
    pub(crate) fn is_referred_to(&self, text: TextRef) -> Result<bool, Stop> {
        if text.is_none() {
            return Ok(false);
        }
        for _ in 0..TRIES {
            let seen = self.in_force()?;
            let here = match text.of() {
                TextOf::Node(slot) => seen.text(slot) == text || self.is_end_text(seen.root, slot, text)?,
                TextOf::Holder(slot) => seen.holder_name(slot) == text,
                TextOf::Group(slot) => seen.group_name(slot) == text,
            };
            // A change under way refers to the texts of both versions.
            let coming = match seen.root.next() {
                Some(next) => {
                    let next = self.version(next)?;
                    let word = match text.of() {
                        TextOf::Node(slot) => next.nodes.get(usize::from(slot)).map(|facts| &facts.text),
                        TextOf::Holder(slot) => next.holders.get(usize::from(slot)),
                        TextOf::Group(slot) => next.groups.get(usize::from(slot)),
                    };
                    word.map(|word| word.load(Ordering::Relaxed))
                }
                None => None,
            };
            if here || coming == Some(text) {
                return Ok(true);
            }
            if seen.is_whole() && self.fixed.header.root.load(Ordering::Acquire) == seen.root {
                return Ok(false);
            }
        }
        Err(Stop::Contended)
    }

    /// Whether the word of an ended node refers to this text, as readers see it.
    fn is_end_text(&self, root: RootWord, slot: u16, text: TextRef) -> Result<bool, Damaged> {
        let Ok(word) = self.seen_word(root, slot) else { return Ok(false) };
        match word.state().phase {
            Phase::Ended { text: Some(head), .. } => {
                Ok(head == text.head() && self.block(head)?.text.load(Ordering::Acquire) == text)
            }
            _ => Ok(false),
        }
    }

    /// Puts this process's mark on block `i` if it is free. `running` is an owner known to be alive: asking the kernel
    /// about each of its blocks anew would cost more than everything else here.
    fn take_block(&self, i: u16, me: OwnerWord, running: &mut OwnerWord) -> Result<bool, Stop> {
        let block = self.block(i)?;
        let owner = block.owner.load(Ordering::Acquire);
        let marked = owner != OwnerWord::NOBODY;
        if marked && (owner == *running || owner == me || !crate::process::is_gone(owner)) {
            *running = owner;
            return Ok(false);
        }
        // Most blocks in use carry no mark: look before swapping.
        if !marked && self.is_referred_to(block.text.load(Ordering::Acquire))? {
            return Ok(false);
        }
        // Acquire: pairs with the Release in `Draft::drop`; what the last owner published is visible to the look below.
        if block.owner.compare_exchange(owner, me, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Ok(false);
        }
        if self.is_referred_to(block.text.load(Ordering::Acquire))? {
            block.owner.store(OwnerWord::NOBODY, Ordering::Release);
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads a text that a version refers to. `None`: its blocks were taken for another text since, so the version is
    /// no longer in force.
    ///
    /// # Errors
    /// [`Damaged`] when the chain of blocks cannot be one.
    pub(crate) fn read_text(&self, text: TextRef) -> Result<Option<Vec<u8>>, Damaged> {
        let mut bytes = Vec::with_capacity(BLOCK_BYTES);
        let mut at = text.head();
        for _ in 0..CHAIN_MAX {
            let block = self.block(at)?;
            // Acquire: pairs with the Release in `Draft::write`.
            if block.text.load(Ordering::Acquire) != text {
                return Ok(None);
            }
            let chain = block.chain.load(Ordering::Relaxed);
            let mut payload = [0; BLOCK_BYTES];
            for (to, from) in payload.chunks_exact_mut(8).zip(&block.payload) {
                to.copy_from_slice(&from.load(Ordering::Relaxed).to_le_bytes());
            }
            // Keeps the reads above before the second look; pairs with the fence in `Draft::write`.
            fence(Ordering::Acquire);
            if block.text.load(Ordering::Relaxed) != text {
                return Ok(None);
            }
            let Some(own) = payload.get(..chain as u32 as usize) else {
                return Err(Damaged { what: "a text block holds more than fits" });
            };
            bytes.extend_from_slice(own);
            match (chain >> 32).checked_sub(1) {
                None => return Ok(Some(bytes)),
                Some(next) => at = u16::try_from(next).map_err(|_| Damaged { what: "a text leads to no block" })?,
            }
        }
        Err(Damaged { what: "a text has no end" })
    }

    /// The text of an ended node's word. The caller must find the node's word unchanged afterwards.
    pub(crate) fn read_end_text(&self, head: u16) -> Result<Option<Vec<u8>>, Damaged> {
        let text = self.block(head)?.text.load(Ordering::Acquire);
        if text.is_none() || text.head() != head { Ok(None) } else { self.read_text(text) }
    }

    /// Blocks that are referred to, and blocks that a living process has marked.
    pub(crate) fn count_blocks(&self) -> Result<(u32, u32), Stop> {
        let (mut used, mut marked) = (0, 0);
        for block in &self.fixed.blocks {
            let owner = block.owner.load(Ordering::Acquire);
            if self.is_referred_to(block.text.load(Ordering::Acquire))? {
                used += 1;
            } else if owner != OwnerWord::NOBODY && !crate::process::is_gone(owner) {
                marked += 1;
            }
        }
        Ok((used, marked))
    }
}

impl<'m> Draft<'m> {
    /// Writes a text into free blocks. It can be referred to from now on, and is given back if it is not.
    ///
    /// # Errors
    /// [`Stop::NoRoom`] when there are not enough free blocks.
    pub(crate) fn write(&mut self, of: TextOf, bytes: &[u8]) -> Result<TextRef, Stop> {
        let pieces: Vec<&[u8]> = if bytes.is_empty() { vec![bytes] } else { bytes.chunks(BLOCK_BYTES).collect() };
        let first = self.blocks.len();
        self.take(pieces.len())?;
        let taken = self.blocks.get(first..).unwrap_or(&[]);
        let Some(&head) = taken.first() else { return Err(no_room()) };
        let stamp = self.core.fixed.header.text_stamp.fetch_add(1, Ordering::Relaxed);
        let text = TextRef::new(of, head, stamp);
        for (i, piece) in pieces.iter().enumerate() {
            let Some(&at) = taken.get(i) else { return Err(no_room()) };
            let block = self.core.block(at)?;
            block.text.store(TextRef::NONE, Ordering::Relaxed);
            fence(Ordering::Release); // keeps "none" before the new bytes; pairs with the fence in `read_text`
            let next = taken.get(i + 1).map_or(0, |&next| u64::from(next) + 1);
            block.chain.store(next << 32 | piece.len() as u64, Ordering::Relaxed);
            for (word, eight) in block.payload.iter().zip(piece.chunks(8)) {
                let mut padded = [0; 8];
                padded.iter_mut().zip(eight).for_each(|(to, from)| *to = *from);
                word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
            }
            block.text.store(text, Ordering::Release); // pairs with the Acquire in `read_text`
        }
        Ok(text)
    }

    /// Marks `count` more free blocks, looking once through all of them.
    fn take(&mut self, count: usize) -> Result<(), Stop> {
        let cursor = &self.core.fixed.header.text_cursor;
        let from = cursor.load(Ordering::Relaxed) as usize % BLOCKS;
        let mut left = count;
        let me = self.core.me()?;
        let mut running = me;
        for step in 0..BLOCKS {
            if left == 0 {
                cursor.store(((from + step) % BLOCKS) as u64, Ordering::Relaxed);
                return Ok(());
            }
            let at = ((from + step) % BLOCKS) as u16;
            if self.core.take_block(at, me, &mut running)? {
                self.blocks.push(at);
                left -= 1;
            }
        }
        if left == 0 { Ok(()) } else { Err(no_room()) }
    }
}

fn no_room() -> Stop {
    Stop::NoRoom { what: "text blocks", limit: BLOCKS as u64 }
}
