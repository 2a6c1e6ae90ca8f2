//! What the tables hold by themselves: written around the code, each of these is refused.

use crate::bench::*;

impl Bench {
    /// Runs SQL on the database itself. `Err` holds what it said.
    fn raw(&self, sql: &str) -> Result<u64, String> {
        match &self.home {
            Base::Directory(dir) => {
                let file = rusqlite::Connection::open(dir.path().join(tenure::admission::LEDGER_FILE)).unwrap();
                file.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
                file.execute(sql, []).map(|n| n as u64).map_err(|e| e.to_string())
            }
            Base::Schema(schema) => {
                let full = |e: ::postgres::Error| e.as_db_error().map(|db| db.message().to_owned()).unwrap_or_default();
                schema.client().execute(sql, &[]).map_err(full)
            }
        }
    }

    /// Refused, for a reason that names one of these.
    fn refused(&self, sql: &str, because: &[&str]) {
        let said = self.raw(sql).expect_err(sql);
        let said = said.to_lowercase();
        assert!(because.iter().any(|word| said.contains(word)), "{sql}: {said}");
    }
}

/// An insert of an admission with these columns changed from what would be accepted.
fn insert(changed: &[(&str, &str)]) -> String {
    let digest = format!("'{}'", "0".repeat(64));
    let mut columns = vec![
        ("admission", "'adm-x'"),
        ("request", "'r'"),
        ("attempt", "1"),
        ("digest", digest.as_str()),
        ("surface", "'s'"),
        ("machine", "'m'"),
        ("place", "'/p'"),
        ("generation", "1"),
        ("phase", "'admitted'"),
        ("entrance", "'local'"),
        ("subject", "'ann'"),
        ("command", "'[]'"),
        ("created_ms", "1"),
        ("admitted_ms", "1"),
        ("attach_number", "1"),
    ];
    for (name, value) in changed {
        match columns.iter_mut().find(|(column, _)| column == name) {
            Some(column) => column.1 = value,
            None => columns.push((name, value)),
        }
    }
    let (names, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    format!("insert into tenure_admission ({}) values ({})", names.join(", "), values.join(", "))
}

const UNIQUE: &[&str] = &["unique"];
const CHECK: &[&str] = &["check constraint"];
const NOT_NULL: &[&str] = &["not null", "not-null"];

on_both! {
    fn one_row_per_request_and_attempt(bench) {
        bench.raw(&insert(&[])).unwrap();
        bench.refused(&insert(&[("admission", "'adm-y'"), ("surface", "'other'")]), UNIQUE);
        bench.refused(&insert(&[("request", "'q'"), ("surface", "'other'")]), UNIQUE);
    }

    fn one_unfinished_per_surface(bench) {
        bench.raw(&insert(&[])).unwrap();
        let second = [("admission", "'adm-y'"), ("request", "'q'")];
        bench.refused(&insert(&second), UNIQUE);
        let started = [("phase", "'started'"), ("started_ms", "2")];
        bench.refused(&insert(&[second.as_slice(), &started].concat()), UNIQUE);
        // Nor by way of an update.
        bench.raw(&insert(&[second.as_slice(), &[("phase", "'queued'")]].concat())).unwrap();
        bench.refused("update tenure_admission set phase = 'admitted' where request = 'q'", UNIQUE);
    }

    fn one_waiting_per_surface_and_destination(bench) {
        let queued = [("phase", "'queued'"), ("admitted_ms", "null")];
        bench.raw(&insert(&queued)).unwrap();
        let second = [queued.as_slice(), &[("admission", "'adm-y'"), ("request", "'q'")]].concat();
        bench.refused(&insert(&second), UNIQUE);
        bench.raw(&insert(&[second.as_slice(), &[("generation", "2")]].concat())).unwrap();
    }

    fn a04_machine_place_and_generation_are_never_null(bench) {
        for column in ["machine", "place", "generation", "digest", "surface", "request", "attempt", "phase", "subject"] {
            bench.refused(&insert(&[(column, "null")]), NOT_NULL);
        }
        bench.raw(&insert(&[])).unwrap();
        for column in ["machine", "place", "generation"] {
            bench.refused(&format!("update tenure_admission set {column} = null"), NOT_NULL);
        }
    }

    fn closed_if_and_only_if_there_is_a_kind(bench) {
        bench.raw(&insert(&[])).unwrap();
        for change in [
            "phase = 'closed'",
            "phase = 'closed', closed_ms = 5",
            "phase = 'closed', closing = 'succeeded'",
            "closing = 'succeeded'",
            "closing = 'succeeded', closed_ms = 5",
            "closed_ms = 5",
            "phase = 'closed', closing = 'unknown', closed_ms = 5",
            "phase = 'closed', closing = 'superseded', closed_ms = 5",
            "phase = 'gone'",
            "entrance = 'append'",
            "phase = 'started'",
            "admitted_ms = null",
            "attempt = 0",
            "generation = 0",
            "digest = 'short'",
            "attach_number = -1",
        ] {
            bench.refused(&format!("update tenure_admission set {change}"), CHECK);
        }
        bench.raw("update tenure_admission set phase = 'closed', closing = 'succeeded', closed_ms = 5").unwrap();
        bench.refused("update tenure_admission set phase = 'admitted'", CHECK);
    }

    fn a58_no_admission_hangs_off_a_machine_or_a_work(bench) {
        bench.running(&local("r", 1, "d"));
        bench.ledger.pickup(&m1()).unwrap();
        assert_eq!(bench.raw("delete from tenure_machine").unwrap(), 1);
        assert_eq!(bench.raw("delete from tenure_placement").unwrap(), 1);
        assert_eq!(bench.raw("delete from tenure_surface").unwrap(), 1);
        assert_eq!(bench.rows().len(), 1, "whatever else is deleted, it stays");
    }

    fn what_was_broken_all_the_same_is_found(bench) {
        bench.sound();
        bench.raw("drop index tenure_one_unfinished").unwrap();
        bench.running(&local("r", 1, "d"));
        bench.raw(&insert(&[("surface", "'s'"), ("request", "'q'"), ("admission", "'adm-00000000000000000000000000'")])
            .replace("'m'", &format!("'{}'", m1()))).unwrap();
        let rules: Vec<&str> = bench.ledger.fsck().unwrap().iter().map(|fault| fault.rule).collect();
        assert!(rules.contains(&"one_unfinished"), "{rules:?}");
        // A verb that meets it says so and changes nothing.
        assert_eq!(code(bench.ledger.submit(&local("r2", 1, "d"))), "damaged");
    }

    fn an_index_that_is_missing_is_found(bench) {
        let Base::Schema(_) = bench.home else { return };
        for (table, key) in [
            ("tenure_admission", "tenure_admission_request_attempt_key"),
            ("tenure_input", "tenure_input_request_attempt_key"),
            ("tenure_placement", "tenure_placement_surface_generation_key"),
        ] {
            bench.raw(&format!("alter table {table} drop constraint {key}")).unwrap();
            let faults = bench.ledger.fsck().unwrap();
            assert!(faults.iter().any(|fault| fault.what.contains(key)), "{key}: {faults:?}");
        }
    }

    fn a_surface_owned_by_both_paths_is_found(bench) {
        bench.running(&local("r", 1, "d"));
        bench.raw("update tenure_surface set legacy_who = 'old', legacy_since_ms = 1").unwrap();
        let faults = bench.ledger.fsck().unwrap();
        assert_eq!(faults.iter().map(|fault| fault.rule).collect::<Vec<_>>(), ["one_path"]);
        bench.refused("update tenure_surface set legacy_who = null", CHECK);
    }
}
