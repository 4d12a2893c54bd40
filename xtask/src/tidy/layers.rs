//! Who may depend on whom. ARCHITECTURE.md has the reasons; a new arrow belongs there and here.

use std::collections::{BTreeMap, VecDeque};

use super::Finding;
use super::metadata::{Graph, Kind};

/// The five layers, from the words up, and what stands beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    /// Names and values.
    Words,
    /// What decides; no I/O, no clock, no async.
    Core,
    /// What does: disk, wire, consensus.
    Edges,
    /// What runs machines and effects.
    Runtime,
    /// The one binary.
    Binary,
    /// Tests and tools: may use everything.
    Free,
}

impl Layer {
    /// Layers 0 and 1 know no I/O.
    pub(super) fn is_core(self) -> bool {
        self <= Self::Core
    }
}

/// Which of our own crates a crate may depend on.
#[derive(Debug, Clone, Copy)]
enum May {
    Use(&'static [&'static str]),
    UseEveryLayerBelow,
    UseAll,
}

/// Every crate of the workspace.
const CRATES: &[(&str, Layer, May)] = &[
    ("ferrymq-types", Layer::Words, May::Use(&[])),
    ("ferrymq-objects", Layer::Core, May::Use(&["ferrymq-types"])),
    (
        "ferrymq-mqsc",
        Layer::Core,
        May::Use(&["ferrymq-types", "ferrymq-objects"]),
    ),
    (
        "ferrymq-authority",
        Layer::Core,
        May::Use(&["ferrymq-types", "ferrymq-objects"]),
    ),
    (
        "ferrymq-selector",
        Layer::Core,
        May::Use(&["ferrymq-types"]),
    ),
    (
        "ferrymq-engine",
        Layer::Core,
        May::Use(&["ferrymq-types", "ferrymq-objects", "ferrymq-selector"]),
    ),
    (
        "ferrymq-channel",
        Layer::Core,
        May::Use(&["ferrymq-types", "ferrymq-objects", "ferrymq-engine"]),
    ),
    ("ferrymq-proto", Layer::Edges, May::Use(&["ferrymq-types"])),
    (
        "ferrymq-store",
        Layer::Edges,
        May::Use(&["ferrymq-types", "ferrymq-proto"]),
    ),
    (
        "ferrymq-journal",
        Layer::Edges,
        May::Use(&["ferrymq-types", "ferrymq-store"]),
    ),
    (
        "ferrymq-store-rocksdb",
        Layer::Edges,
        May::Use(&["ferrymq-types", "ferrymq-store", "ferrymq-proto"]),
    ),
    (
        "ferrymq-tls",
        Layer::Edges,
        May::Use(&["ferrymq-types", "ferrymq-authority"]),
    ),
    (
        "ferrymq-transport",
        Layer::Edges,
        May::Use(&[
            "ferrymq-types",
            "ferrymq-authority",
            "ferrymq-tls",
            "ferrymq-proto",
        ]),
    ),
    (
        "ferrymq-metadata",
        Layer::Edges,
        May::Use(&[
            "ferrymq-types",
            "ferrymq-objects",
            "ferrymq-store",
            "ferrymq-journal",
            "ferrymq-transport",
            "ferrymq-proto",
        ]),
    ),
    ("ferrymq-qmgr", Layer::Runtime, May::UseEveryLayerBelow),
    (
        "ferrymq-client",
        Layer::Runtime,
        May::Use(&[
            "ferrymq-types",
            "ferrymq-objects",
            "ferrymq-proto",
            "ferrymq-tls",
            "ferrymq-transport",
        ]),
    ),
    ("ferrymq", Layer::Binary, May::UseEveryLayerBelow),
    ("ferrymq-tests", Layer::Free, May::UseAll),
    ("xtask", Layer::Free, May::Use(&[])),
];

/// What layers 0 and 1 must not reach, however far away.
const NOT_IN_CORE: &[&str] = &[
    "tokio",
    "tonic",
    "prost",
    "rocksdb",
    "openraft",
    "rustls",
    "hyper",
    "mio",
    "rand",
    "getrandom",
];

/// Libraries that one crate keeps from all others.
const KEPT: &[(&str, &str)] = &[
    ("rocksdb", "ferrymq-store-rocksdb"),
    ("openraft", "ferrymq-metadata"),
];

/// The layer of one of our crates.
pub(super) fn layer(name: &str) -> Option<Layer> {
    CRATES
        .iter()
        .find(|(known, ..)| *known == name)
        .map(|(_, layer, _)| *layer)
}

pub(super) fn check(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, package) in graph.members() {
        let name = package.name.as_str();
        let Some((_, layer, may)) = CRATES.iter().find(|(known, ..)| *known == name) else {
            findings.push(Finding::new(
                name,
                "layers",
                "is in no layer: add it to xtask/src/tidy/layers.rs and to ARCHITECTURE.md with what it does not know",
            ));
            continue;
        };
        for (kind, dependency) in &package.dependencies {
            let Some(dependency) = graph.packages.get(dependency) else {
                continue;
            };
            let dependency = dependency.name.as_str();
            findings.extend(arrow(name, *layer, *may, *kind, dependency));
        }
        if layer.is_core() {
            findings.extend(reaches(graph, id));
        }
    }
    findings
}

/// What is wrong with `name` depending on `dependency` directly.
fn arrow(name: &str, layer: Layer, may: May, kind: Kind, dependency: &str) -> Option<Finding> {
    if layer == Layer::Free && matches!(may, May::UseAll) {
        return None;
    }
    if let Some((_, keeper)) = KEPT.iter().find(|(kept, _)| *kept == dependency) {
        return (*keeper != name).then(|| {
            Finding::new(
                name,
                "one keeper",
                format!("depends on {dependency}: only {keeper} may; use what {keeper} offers"),
            )
        });
    }
    // Tests may look upwards.
    if kind == Kind::Dev {
        return None;
    }
    let below = self::layer(dependency)?;
    let allowed = match may {
        May::Use(list) => list.contains(&dependency),
        May::UseEveryLayerBelow => below < layer,
        May::UseAll => true,
    };
    (!allowed).then(|| {
        Finding::new(
            name,
            "layers",
            format!(
                "depends on {dependency}: remove it, or give the reason in ARCHITECTURE.md and allow it in xtask/src/tidy/layers.rs"
            ),
        )
    })
}

/// Every library of [`NOT_IN_CORE`] that is reached from `start` through normal dependencies, with the way to it.
fn reaches(graph: &Graph, start: &str) -> Vec<Finding> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    let mut findings = Vec::new();
    while let Some(id) = waiting.pop_front() {
        let Some(package) = graph.packages.get(id) else {
            continue;
        };
        if NOT_IN_CORE.contains(&package.name.as_str()) {
            let mut way = vec![package.name.as_str()];
            let mut at = id;
            while let Some(previous) = came_from.get(at) {
                way.extend(graph.packages.get(*previous).map(|p| p.name.as_str()));
                at = previous;
            }
            way.reverse();
            let first = way.first().copied().unwrap_or(start);
            findings.push(Finding::new(
                first,
                "core knows no I/O",
                format!(
                    "reaches {} ({}): remove the dependency, core crates decide and do nothing else",
                    package.name,
                    way.join(" -> ")
                ),
            ));
            continue;
        }
        for (kind, next) in &package.dependencies {
            if *kind == Kind::Normal && next != start && !came_from.contains_key(next.as_str()) {
                came_from.insert(next, id);
                waiting.push_back(next);
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Metadata as cargo prints it, from "who depends on whom, and how".
    fn graph(members: &[&str], arrows: &[(&str, &str, Value)]) -> Graph {
        let mut names: Vec<&str> = members.to_vec();
        names.extend(arrows.iter().flat_map(|(from, to, _)| [*from, *to]));
        names.sort_unstable();
        names.dedup();
        let packages: Vec<Value> = names
            .iter()
            .map(|name| json!({"id": name, "name": name, "manifest_path": format!("/w/{name}/Cargo.toml")}))
            .collect();
        let nodes: Vec<Value> = names
            .iter()
            .map(|name| {
                let deps: Vec<Value> = arrows
                    .iter()
                    .filter(|(from, ..)| from == name)
                    .map(|(_, to, kind)| json!({"pkg": to, "dep_kinds": [{"kind": kind}]}))
                    .collect();
                json!({"id": name, "deps": deps})
            })
            .collect();
        let metadata = json!({"packages": packages, "resolve": {"nodes": nodes}, "workspace_members": members});
        Graph::parse(&metadata).unwrap()
    }

    fn report(members: &[&str], arrows: &[(&str, &str, Value)]) -> Vec<String> {
        let findings = check(&graph(members, arrows));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_core_crate_with_tokio_is_reported() {
        let found = report(
            &["ferrymq-engine"],
            &[("ferrymq-engine", "tokio", Value::Null)],
        );
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("ferrymq-engine: core knows no I/O: reaches tokio"));
    }

    #[test]
    fn tokio_behind_another_library_is_reported_with_the_way_to_it() {
        let found = report(
            &["ferrymq-types"],
            &[
                ("ferrymq-types", "handy", Value::Null),
                ("handy", "tokio", Value::Null),
                ("tokio", "mio", Value::Null),
            ],
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("(ferrymq-types -> handy -> tokio)"));
    }

    #[test]
    fn what_only_tests_and_build_scripts_use_is_not_reached() {
        let found = report(
            &["ferrymq-types"],
            &[
                ("ferrymq-types", "rand", json!("dev")),
                ("ferrymq-types", "getrandom", json!("build")),
            ],
        );
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn an_arrow_upwards_is_reported() {
        let found = report(
            &["ferrymq-types", "ferrymq-engine", "ferrymq-client"],
            &[
                ("ferrymq-engine", "ferrymq-types", Value::Null),
                ("ferrymq-types", "ferrymq-engine", Value::Null),
                ("ferrymq-client", "ferrymq-engine", Value::Null),
            ],
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("ferrymq-types: layers: depends on ferrymq-engine"));
        assert!(found[1].starts_with("ferrymq-client: layers: depends on ferrymq-engine"));
    }

    #[test]
    fn rocksdb_and_openraft_have_one_keeper_each() {
        let found = report(
            &["ferrymq-store-rocksdb", "ferrymq-qmgr", "ferrymq-metadata"],
            &[
                ("ferrymq-store-rocksdb", "rocksdb", Value::Null),
                ("ferrymq-metadata", "openraft", Value::Null),
                ("ferrymq-qmgr", "rocksdb", Value::Null),
                ("ferrymq-qmgr", "openraft", json!("dev")),
            ],
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found
                .iter()
                .all(|f| f.starts_with("ferrymq-qmgr: one keeper"))
        );
    }

    #[test]
    fn tests_may_use_everything_and_a_new_crate_needs_a_layer() {
        let found = report(
            &["ferrymq-tests", "ferrymq-surprise"],
            &[
                ("ferrymq-tests", "rocksdb", Value::Null),
                ("ferrymq-tests", "ferrymq-qmgr", Value::Null),
            ],
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("ferrymq-surprise: layers: is in no layer"));
    }

    #[test]
    fn allowed_lists_name_only_crates_of_the_same_layer_or_below() {
        for (name, layer, may) in CRATES {
            if let May::Use(list) = may {
                for dependency in *list {
                    let below = self::layer(dependency);
                    assert!(below.is_some_and(|b| b <= *layer), "{name} -> {dependency}");
                }
            }
        }
    }
}
