//! The tables. What they must hold is said to the database itself, so that no path in the code can break it.
//!
//! No admission refers to a machine or a work by a foreign key: those may be deleted, and an admission may not (A58, A59).

/// The schema that this version writes.
pub(in crate::admission) const SCHEMA: u64 = 1;

/// Marks an SQLite file as a ledger (`application_id`): "TNRL".
#[cfg(feature = "sqlite")]
pub(in crate::admission) const APPLICATION_ID: i64 = 0x544e_524c;

/// Statements that make the tables; `BYTES` is the type of bytes.
const TABLES: &[&str] = &[
    "create table tenure_ledger (
        only_row bigint not null primary key check (only_row = 1),
        schema_version bigint not null)",
    "create table tenure_surface (
        surface text not null primary key,
        created_ms bigint not null,
        generation bigint not null default 0 check (generation >= 0),
        legacy_who text,
        legacy_since_ms bigint,
        check ((legacy_who is null) = (legacy_since_ms is null)))",
    "create table tenure_share (
        surface text not null,
        with_surface text not null,
        primary key (surface, with_surface),
        check (surface < with_surface))",
    "create table tenure_placement (
        surface text not null,
        machine text not null,
        place text not null,
        generation bigint not null check (generation >= 1),
        storage text,
        work text,
        live bigint not null check (live in (0, 1)),
        changed_ms bigint not null,
        primary key (surface, machine),
        unique (surface, generation))",
    "create table tenure_machine (
        machine text not null primary key,
        label text unique,
        seen_ms bigint)",
    "create table tenure_admission (
        admission text not null primary key,
        request text not null,
        attempt bigint not null check (attempt >= 1),
        digest text not null check (length(digest) = 64),
        surface text not null,
        machine text not null,
        place text not null,
        generation bigint not null check (generation >= 1),
        work text,
        phase text not null check (phase in ('queued', 'admitted', 'started', 'closed')),
        entrance text not null check (entrance in ('local', 'queue')),
        subject text not null,
        after_request text,
        after_attempt bigint,
        command text not null,
        created_ms bigint not null,
        admitted_ms bigint,
        started_ms bigint,
        closed_ms bigint,
        attach_number bigint not null default 0 check (attach_number >= 0),
        started_attach bigint,
        deadline_ms bigint,
        policy_epoch text,
        stop_ms bigint,
        stop_reason text,
        closing text check (closing in ('succeeded', 'failed', 'failed_before_start', 'interrupted', 'released',
            'canceled', 'expired', 'superseded')),
        closed_by text,
        reason text,
        exit_code bigint,
        successor text,
        supersedes text,
        unique (request, attempt),
        check ((phase = 'closed') = (closing is not null)),
        check ((phase = 'closed') = (closed_ms is not null)),
        check (phase not in ('admitted', 'started') or admitted_ms is not null),
        check (phase <> 'started' or started_ms is not null),
        check ((after_request is null) = (after_attempt is null)),
        check ((closing is not null and closing = 'superseded') = (successor is not null)))",
    "create unique index tenure_one_unfinished on tenure_admission (surface) where phase in ('admitted', 'started')",
    "create unique index tenure_one_waiting on tenure_admission (surface, machine, generation) where phase = 'queued'",
    "create index tenure_of_machine on tenure_admission (machine, phase) where phase <> 'closed'",
    "create index tenure_of_surface on tenure_admission (surface, created_ms)",
    "create table tenure_input (
        admission text not null,
        number bigint not null check (number >= 0),
        request text not null,
        attempt bigint not null check (attempt >= 1),
        digest text not null check (length(digest) = 64),
        subject text not null,
        at_ms bigint not null,
        content BYTES not null,
        primary key (admission, number),
        unique (request, attempt))",
    "create table tenure_refusal (
        request text not null,
        attempt bigint not null,
        surface text not null,
        code text not null,
        reason text not null,
        subject text not null,
        first_ms bigint not null,
        at_ms bigint not null,
        times bigint not null check (times >= 1),
        primary key (request, attempt, code))",
    "insert into tenure_ledger (only_row, schema_version) values (1, 1)",
];

/// For SQLite: strict tables, so that a number is a number, and no row without its key.
#[cfg(feature = "sqlite")]
pub(in crate::admission) fn for_sqlite() -> Vec<String> {
    let statements = TABLES.iter().map(|sql| {
        let sql = sql.replace("bigint", "integer").replace("BYTES", "blob");
        if sql.starts_with("create table") { format!("{sql} strict") } else { sql }
    });
    statements.collect()
}

/// For PostgreSQL. Names compare by their bytes there too, whatever the language of the database.
#[cfg(feature = "postgres")]
pub(in crate::admission) fn for_postgres() -> Vec<String> {
    let bytewise = |sql: &&str| sql.replace(" text not null", " text collate \"C\" not null").replace("BYTES", "bytea");
    TABLES.iter().map(bytewise).collect()
}
