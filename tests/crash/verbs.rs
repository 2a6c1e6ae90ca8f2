//! Verbs in words, and their answers in words without times.

use tenure::{ClaimOptions, Completion, Need, NodeId, NodeSpec, OnFailure, Outcome, Refusal, SnapshotError, probe};

use crate::world::{World, all};

/// Why a verb was not done, in words.
type Refused = String;

fn id(name: &str) -> NodeId {
    NodeId::resolve(name).unwrap()
}

fn outcome(name: &str) -> Outcome {
    match name {
        "done" => Outcome::Done,
        "failed" => Outcome::Failed,
        "cancelled" => Outcome::Cancelled,
        other => panic!("no outcome {other}"),
    }
}

/// `a`, or `a~skip`.
fn need(text: &str) -> Need {
    let (node, mode) = text.split_once('~').unwrap_or((text, ""));
    let on_failure = match mode {
        "" => None,
        "block" => Some(OnFailure::Block),
        "skip" => Some(OnFailure::Skip),
        "continue" => Some(OnFailure::Continue),
        other => panic!("no mode {other}"),
    };
    Need { node: id(node), on_failure }
}

/// The words of a verb, and its options: `name=value`.
struct Line<'a>(&'a str);

impl<'a> Line<'a> {
    fn words(&self) -> Vec<&'a str> {
        self.0.split(' ').filter(|w| !w.contains('=')).collect()
    }

    fn named(&self, name: &str) -> Option<String> {
        self.0.split(' ').find_map(|w| w.strip_prefix(name)?.strip_prefix('=').map(String::from))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.named(name).map(|n| n.parse().unwrap())
    }

    fn claim_options(&self) -> ClaimOptions {
        ClaimOptions {
            generation: self.number("gen"),
            lease_ms: self.number("lease"),
            resume: self.named("resume").is_some(),
            pid: self.number("pid").map(|pid| pid as u32),
        }
    }

    fn spec(&self, name: &str) -> NodeSpec {
        NodeSpec {
            name: Some(name.into()),
            summary: self.named("summary"),
            needs: self.named("needs").iter().flat_map(|needs| needs.split(',')).map(need).collect(),
            parent: self.named("parent").map(|p| (p != "none").then(|| id(&p))),
            cost: self.number("cost").map(|c| c as u32),
            max_attempts: self.number("attempts").map(|n| n as u16),
            retry_delay_ms: self.number("delay").map(|n| n as u32),
            group: self.named("group"),
            ..NodeSpec::default()
        }
    }
}

fn plain(name: &str) -> NodeSpec {
    NodeSpec { name: Some(name.into()), ..NodeSpec::default() }
}

impl World {
    /// One verb; its answer.
    pub(crate) fn run(&self, verb: &str) -> String {
        let line = Line(verb);
        let answer = self.work(&line).or_else(|| self.edit(&line)).or_else(|| self.look(&line));
        match answer {
            Some(Ok(answer) | Err(answer)) => answer,
            None => panic!("no verb {verb}"),
        }
    }

    /// Verbs about claims.
    fn work(&self, line: &Line<'_>) -> Option<Result<String, Refused>> {
        Some(self.try_work(line).transpose()?.map_err(|refusal| refusal.to_string()))
    }

    fn try_work(&self, line: &Line<'_>) -> Result<Option<String>, Refusal> {
        let t = &self.table;
        let options = line.claim_options();
        let won = |claim: &tenure::Claim<'_>| {
            format!("{} gen={} resumed={}", self.label(claim.id()), claim.generation(), claim.resumed())
        };
        Ok(Some(match line.words()[..] {
            ["tick", ms] => {
                probe::set_now_ms(probe::now_ms() + ms.parse::<u64>().unwrap());
                "ticked".into()
            }
            ["worker", w] => self.kept(w).map(|_| "registered".into())?,
            ["register", w] => t.worker(w).map(|_| "registered".into())?,
            // As a program that is started for one verb, and with a handle that was kept.
            ["claim", w, node] => won(&t.worker(w)?.claim_with(id(node), &options)?),
            ["kclaim", w, node] => won(&self.kept(w)?.claim_with(id(node), &options)?),
            ["next", w] => won(&t.worker(w)?.claim_next_with(&options)?),
            ["knext", w] => won(&self.kept(w)?.claim_next_with(&options)?),
            ["wait", w, ms] => {
                let from = probe::now_ms();
                let claim = self.kept(w)?.wait_claim_next(&options, Some(ms.parse().unwrap()));
                let waited = probe::now_ms() - from;
                let claim = claim.map(|claim| won(&claim)).unwrap_or_else(|e| e.to_string());
                format!("{claim} after {waited} ms")
            }
            ["current", w] => match self.kept(w)?.current()? {
                Some(claim) => format!("{} gen={}", self.label(claim.id()), claim.generation()),
                None => "nothing".into(),
            },
            ["renew", w, node] => {
                format!("renewed gen={}", t.renew(id(node), w, options.generation, options.lease_ms)?.generation)
            }
            ["release", w, node] => format!("gen={}", t.release(id(node), w, options.generation)?),
            ["force", node] => {
                let r = t.release_forced(id(node), options.generation)?;
                format!("from {} gen={}", r.holder, r.generation)
            }
            ["complete", node, how] => {
                let (holder, summary) = (line.named("by"), line.named("summary"));
                let completion = Completion { outcome: outcome(how), generation: options.generation, holder, summary };
                format!("ended {:?}", t.complete(id(node), &completion)?)
            }
            ["reclaim"] => {
                let taken = t.reclaim(line.number("quiet"))?.into_iter();
                let told = |r: tenure::Reclaimed| {
                    format!("{} of {} gen={}", r.name.unwrap_or_default(), r.holder, r.generation)
                };
                let mut taken: Vec<String> = taken.map(told).collect();
                taken.sort();
                taken.join(", ")
            }
            _ => return Ok(None),
        }))
    }

    /// Verbs about the graph.
    fn edit(&self, line: &Line<'_>) -> Option<Result<String, Refused>> {
        if let ["snapshot" | "restore", ..] = line.words()[..] {
            return Some(self.keep(line).map_err(|refusal| refusal.code().to_owned()));
        }
        Some(self.try_edit(line).transpose()?.map_err(|refusal| refusal.to_string()))
    }

    fn keep(&self, line: &Line<'_>) -> Result<String, SnapshotError> {
        Ok(match line.words()[..] {
            ["snapshot"] => format!("{} nodes", self.table.snapshot(std::time::Duration::ZERO, || {})?.nodes),
            _ => format!("{} nodes back", self.table.restore(None, line.named("force").is_some())?.nodes),
        })
    }

    fn try_edit(&self, line: &Line<'_>) -> Result<Option<String>, Refusal> {
        let t = &self.table;
        let import = |specs: Vec<NodeSpec>| {
            let changes: Vec<_> = t.import(&specs)?.into_iter().map(|(_, change)| change).collect();
            Ok::<_, Refusal>(format!("{changes:?}"))
        };
        Ok(Some(match line.words()[..] {
            ["upsert", node] => format!("{:?}", t.upsert(&line.spec(node), line.named("existing").is_some())?.1),
            ["import-and-touch", old, ref new @ ..] => {
                let old = NodeSpec { summary: Some("z".into()), ..plain(old) };
                import(new.iter().map(|name| plain(name)).chain([old]).collect())?
            }
            ["import", ref names @ ..] => import(names.iter().map(|name| plain(name)).collect())?,
            ["link", a, b] => format!("{}", t.link_with(need(a), id(b))?),
            ["unlink", a, b] => format!("{}", t.unlink(id(a), id(b))?),
            ["group", name, limit] => format!("{}", t.set_group(name, limit.parse().unwrap())?),
            ["reopen", node] => format!("gen={}", t.reopen(id(node))?),
            ["archive", node] => format!("gen={}", t.archive(id(node))?),
            ["unarchive", node] => format!("gen={}", t.unarchive(id(node))?),
            _ => return Ok(None),
        }))
    }

    /// Verbs that only look.
    fn look(&self, line: &Line<'_>) -> Option<Result<String, Refused>> {
        Some(self.try_look(line).transpose()?.map_err(|refusal| refusal.to_string()))
    }

    fn try_look(&self, line: &Line<'_>) -> Result<Option<String>, Refusal> {
        let t = &self.table;
        Ok(Some(match line.words()[..] {
            ["get", node] => {
                let n = t.get(id(node))?;
                format!("{:?} gen={} {:?} {:?}", n.status, n.generation, n.holder, n.summary)
            }
            ["now"] => probe::now_ms().to_string(),
            ["finished", node] => format!("{:?}", t.get(id(node))?.finished_at_ms),
            ["attempts", node] => {
                let n = t.get(id(node))?;
                format!("{} again in {:?}", n.attempts, n.retry_in_ms)
            }
            ["list"] => self.dump().join("; "),
            ["groups"] => format!("{:?}", t.groups()?),
            ["ready"] => t.ready()?.iter().map(tenure::NodeView::label).collect::<Vec<_>>().join(","),
            ["holders"] => {
                let mut held: Vec<String> = t.list(all())?.into_iter().filter_map(|n| n.holder).collect();
                held.sort();
                let len = held.len();
                held.dedup();
                if held.len() < len { "a holder has two".into() } else { "each has one".into() }
            }
            _ => return Ok(None),
        }))
    }

    fn label(&self, node: NodeId) -> String {
        self.table.get(node).map_or_else(|_| format!("no node {node}"), |n| n.label())
    }
}
