//! One line a target, for people or for machines.

use serde::Serialize;

/// What a figure is judged against.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// At most this much, in the unit of the line.
    AtMost(f64),
    /// At least this much, in the unit of the line.
    AtLeast(f64),
    /// At most this many times the floor or peer measured beside it.
    Times(f64),
    /// Told, and not judged.
    Told,
}

/// One measured thing.
#[derive(Serialize)]
pub struct Line {
    pub what: String,
    pub unit: &'static str,
    pub ours: f64,
    /// What it was measured beside, in this run.
    pub beside: String,
    pub floor: Option<f64>,
    pub target: Goal,
    pub stretch: Goal,
}

impl Line {
    pub fn told(what: impl Into<String>, unit: &'static str, ours: f64) -> Line {
        Line {
            what: what.into(),
            unit,
            ours,
            beside: String::new(),
            floor: None,
            target: Goal::Told,
            stretch: Goal::Told,
        }
    }

    pub fn beside(mut self, beside: impl Into<String>, floor: f64) -> Line {
        (self.beside, self.floor) = (beside.into(), Some(floor));
        self
    }

    pub fn target(mut self, target: Goal, stretch: Goal) -> Line {
        (self.target, self.stretch) = (target, stretch);
        self
    }

    pub fn ratio(&self) -> Option<f64> {
        self.floor.filter(|floor| *floor > 0.0).map(|floor| self.ours / floor)
    }

    fn meets(&self, goal: Goal) -> Option<bool> {
        match goal {
            Goal::AtMost(most) => Some(self.ours <= most),
            Goal::AtLeast(least) => Some(self.ours >= least),
            Goal::Times(most) => self.ratio().map(|ratio| ratio <= most),
            Goal::Told => None,
        }
    }

    pub fn verdict(&self) -> &'static str {
        match (self.meets(self.target), self.meets(self.stretch)) {
            (Some(true), Some(true)) => "met, stretch met",
            (Some(true), _) => "met",
            (Some(false), _) => "short",
            (None, _) => "",
        }
    }

    pub fn print(&self, json: bool) {
        if json {
            let mut object = serde_json::to_value(self).unwrap_or_default();
            if let Some(fields) = object.as_object_mut() {
                fields.insert("ratio".into(), self.ratio().into());
                fields.insert("verdict".into(), self.verdict().into());
            }
            println!("{object}");
            return;
        }
        let floor = self.floor.map_or_else(String::new, |floor| format!("{} {}", figure(floor), self.beside));
        let ratio = self.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}x"));
        let ours = format!("{} {}", figure(self.ours), self.unit);
        println!(
            "{:<58} {:>12}  {:<34} {:>7}  {:>8} {:>8}  {}",
            self.what,
            ours,
            floor,
            ratio,
            goal(self.target),
            goal(self.stretch),
            self.verdict()
        );
    }
}

pub fn heading(json: bool) {
    if !json {
        println!(
            "{:<58} {:>12}  {:<34} {:>7}  {:>8} {:>8}",
            "what", "ours", "beside it, in this run", "ratio", "target", "stretch"
        );
    }
}

fn goal(goal: Goal) -> String {
    match goal {
        Goal::AtMost(most) => format!("<={}", figure(most)),
        Goal::AtLeast(least) => format!(">={}", figure(least)),
        Goal::Times(most) => format!("<={most}x"),
        Goal::Told => String::new(),
    }
}

/// Three digits that count.
fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 99.5 => format!("{value:.0}"),
        v if v >= 9.95 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The middle of some figures.
pub fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value that this share of the figures lies below.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = ((values.len() as f64 - 1.0) * share).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}
