//! What `stats` counts, in the text format that Prometheus and OpenMetrics collectors read.
//!
//! Everything is a gauge: all of it is read off the table, nothing is counted over time. Times are in seconds, as the
//! format's conventions want. A time that there is none of (nothing ready, nothing claimed) is left out.

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::node::{Seen, Stats};

#[derive(Debug, EncodeLabelSet)]
struct ByStatus {
    status: &'static str,
}

/// Writes all of `stats` to `out`.
///
/// # Errors
/// Whatever writing to `out` refuses.
pub fn write(stats: &Stats, out: &mut dyn fmt::Write) -> fmt::Result {
    let mut registry = Registry::with_prefix("tenure");
    registry.register("nodes", "Nodes by status", Nodes::of(stats));
    times(&mut registry, stats);
    let counts = [
        ("node_slots", "Node slots in the table", u64::from(stats.capacity)),
        ("nodes_archived", "Nodes that are archived, counted by status too", stats.archived.into()),
        ("leases_ending_soon", "Claims with less than a third of their lease left", stats.leases_ending_soon.into()),
        (
            "leases_run_out",
            "Claims run out, or whose process is gone, that nobody has taken back",
            stats.leases_run_out.into(),
        ),
        ("edges", "Dependency edges", stats.edges.into()),
        ("edges_max", "The most dependency edges that fit", stats.edges_max.into()),
        ("holders", "Holder names known", stats.holders.into()),
        ("holders_busy", "Holders that hold a node", stats.holders_busy.into()),
        ("holders_max", "The most holder names known at once", stats.holders_max.into()),
        ("text_blocks", "Text blocks in use", stats.text_blocks.into()),
        ("text_blocks_reserved", "Text blocks reserved and not published", stats.text_blocks_reserved.into()),
        ("text_blocks_max", "Text blocks in the table", stats.text_blocks_max.into()),
        ("versions", "Buffers for versions of the graph", stats.versions.into()),
        ("versions_reserved", "Version buffers reserved and not published", stats.versions_reserved.into()),
        ("version", "Number of the version of the graph in force", stats.version),
    ];
    for (name, help, value) in counts {
        registry.register(name, help, ConstGauge::new(value));
    }
    encode(&mut Plain(out), &registry)
}

/// Nodes by what a reader sees of them, always in the same order; the parts add up to all.
#[derive(Debug)]
struct Nodes([(Seen, u32); 7]);

impl Nodes {
    fn of(stats: &Stats) -> Nodes {
        Nodes([
            (Seen::Ready, stats.ready),
            (Seen::Todo, stats.todo),
            (Seen::Blocked, stats.blocked),
            (Seen::Claimed, stats.claimed),
            (Seen::Done, stats.done),
            (Seen::Failed, stats.failed),
            (Seen::Cancelled, stats.cancelled),
        ])
    }
}

impl EncodeMetric for Nodes {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (seen, count) in self.0 {
            let labels = ByStatus { status: seen.name() };
            ConstGauge::new(u64::from(count)).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

fn times(registry: &mut Registry, stats: &Stats) {
    let times = [
        (
            "oldest_ready_seconds",
            "How long the longest-waiting ready node could have been claimed",
            stats.oldest_ready_ms.map(|ms| ms as f64),
        ),
        (
            "shortest_lease_seconds",
            "Time until the first lease runs out, negative when it has",
            stats.shortest_lease_ms.map(|ms| ms as f64),
        ),
    ];
    for (name, help, ms) in times {
        let Some(ms) = ms else { continue };
        registry.register(name, help, ConstGauge::new(ms / 1000.0));
    }
}

/// What the encoder writes to must have a size that is known.
struct Plain<'a>(&'a mut dyn fmt::Write);

impl fmt::Write for Plain<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(text)
    }
}
