-- What the repairing jobs remember.

create table queue_health (
    product_key integer not null,
    oldest_queued_at timestamptz,
    advance_per_second double precision,
    measured_at timestamptz not null,
    constraint queue_health_pkey primary key (product_key)
) with (fillfactor = 50);
comment on table queue_health is 'How a product''s queue is doing, refreshed by workers and relay. It informs intake and buyers; it decides nothing else.';
comment on column queue_health.advance_per_second is 'How many seconds of arrivals one second of work serves, smoothed; null while nothing moves.';

create table outbox_health (
    id boolean primary key default true,
    oldest_unpublished_at timestamptz,
    measured_at timestamptz not null default now(),
    constraint outbox_health_one_row check (id)
);
comment on table outbox_health is 'One row: the oldest message that no queue has.';
insert into outbox_health default values;

create table audit_cursor (
    id boolean primary key default true,
    product_key integer not null default 0,
    chunk integer not null default -1,
    constraint audit_cursor_one_row check (id)
);
comment on table audit_cursor is 'Where the continuous audit goes on: the last chunk it compared.';
insert into audit_cursor default values;

create table audit_findings (
    id uuid not null,
    product_key integer not null,
    chunk integer,
    invariant text not null,
    detail text not null,
    found_at timestamptz not null default now(),
    resolved_at timestamptz,
    constraint audit_findings_pkey primary key (id)
);
create index audit_findings_open on audit_findings (product_key) where resolved_at is null;
comment on table audit_findings is 'Confirmed disagreements between rows and what is derived from them.';
