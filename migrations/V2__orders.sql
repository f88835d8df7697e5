-- Orders, their history, and the messages that leave with them.

create table orders (
    -- What does not change comes first: an update then logs only what follows it.
    id uuid not null,
    tenant_id uuid not null,
    product_id uuid not null,
    buyer_id uuid not null,
    created_at timestamptz not null default now(),
    queue_deadline timestamptz not null,
    unit_price_minor bigint not null,
    product_key integer not null,
    hold_seconds integer not null,
    requested_quantity integer not null,
    requested_numbers integer[] not null,
    fallback text not null,
    idempotency_key text not null,
    fingerprint bytea not null,
    currency text not null,
    only_held_stock boolean not null,
    total_minor bigint,
    expires_at timestamptz,
    sweep_at timestamptz,
    cancel_requested_at timestamptz,
    version integer not null default 1,
    sweep_attempts smallint not null default 0,
    state text not null,
    reason text,
    numbers integer[] not null default '{}',
    lost_numbers integer[],
    substitutes integer[],
    suggestions integer[],
    given_up integer[],
    constraint orders_pkey primary key (id),
    constraint orders_idempotency_key_unique unique (tenant_id, buyer_id, idempotency_key),
    constraint orders_state_known check (
        state in ('queued', 'reserved', 'paying', 'paid', 'rejected', 'cancelled', 'expired', 'refunding', 'refunded')
    ),
    constraint orders_fallback_known check (fallback in ('reject', 'drop', 'replace')),
    constraint orders_request_valid check (
        requested_quantity >= 0 and cardinality(requested_numbers) + requested_quantity between 1 and 100
    ),
    constraint orders_fingerprint_length check (octet_length(fingerprint) = 32),
    constraint orders_hold_complete check (
        state not in ('reserved', 'paying')
        or (expires_at is not null and sweep_at is not null and total_minor is not null and cardinality(numbers) > 0)
    ),
    constraint orders_rejection_has_reason check (state <> 'rejected' or reason is not null)
) with (fillfactor = 45);
comment on table orders is 'One buyer''s order of numbers of one product. Only domain knows which state may follow which. No index has a column that changes, so that every transition is a heap-only update; half a page is left for the versions.';
comment on column orders.product_id is 'No foreign key: it would lock the product''s row once per order. place_order copies both ids from that row, and no role may delete a product.';
comment on column orders.product_key is 'Copied from the product, for narrow indexes.';
comment on column orders.only_held_stock is 'At acceptance no number was free, some were only held: it gets numbers if holds run out in time.';
comment on column orders.numbers is 'Numbers the order got. Kept after release, and when given up: taken_numbers says who owns them now.';
comment on column orders.given_up is 'Those of its numbers that went back to stock after they were paid; null = none. While its state owns numbers, it owns the others.';
comment on column orders.lost_numbers is 'Exact numbers that others had; null = none, as in the next two.';
comment on column orders.queue_deadline is 'After it a queued order is rejected instead of served.';
comment on column orders.expires_at is 'End of the hold. It alone says whether the order may still be paid.';
comment on column orders.sweep_at is 'When the expiry sweep looks at the hold: expires_at, later after a failed try.';

create index orders_of_buyer on orders (buyer_id, id);

create table order_queue (
    product_key integer not null,
    created_at timestamptz not null,
    order_id uuid not null,
    constraint order_queue_pkey primary key (product_key, created_at, order_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
comment on table order_queue is 'One row per order in state queued, oldest first. Comes and goes in the transaction of the state.';

create table holds (
    product_key integer not null,
    sweep_at timestamptz not null,
    id bigint generated always as identity,
    order_ids uuid[] not null,
    constraint holds_pkey primary key (product_key, sweep_at, id)
) with (autovacuum_vacuum_scale_factor = 0.02);
alter table holds alter column order_ids set storage plain;
comment on table holds is 'When the expiry sweep looks at which orders: those that were reserved together end together. Every order in state reserved or paying is listed at its sweep_at; one that has left these states may be listed until then.';

create table order_events (
    order_id uuid not null,
    version integer not null,
    from_state text,
    to_state text not null,
    cause text not null,
    at timestamptz not null default now(),
    constraint order_events_pkey primary key (order_id, version)
);
comment on table order_events is 'Append-only history: one row per transition, version = the order''s version after it.';

create table buyer_holdings (
    product_key integer not null,
    buyer_id uuid not null,
    held integer not null default 0,
    constraint buyer_holdings_pkey primary key (product_key, buyer_id),
    constraint buyer_holdings_not_negative check (held >= 0)
) with (fillfactor = 80);
comment on table buyer_holdings is 'Numbers of a product in one buyer''s hands, reserved and paid together.';

create table outbox (
    id uuid not null,
    queue text not null,
    tenant_id uuid not null,
    product_id uuid not null,
    order_id uuid not null,
    attempts integer not null default 0,
    created_at timestamptz not null default now(),
    next_attempt_at timestamptz not null,
    constraint outbox_pkey primary key (id),
    constraint outbox_queue_known check (queue in ('reserve-numbers', 'release-numbers', 'settle-payment'))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
comment on table outbox is 'Messages that a commit owes to a queue. A row leaves when its message was sent, or is no longer needed.';
create index outbox_due on outbox (next_attempt_at);

create table idempotency_keys (
    tenant_id uuid not null,
    subject_id uuid not null,
    route text not null,
    key text not null,
    fingerprint bytea not null,
    status smallint not null,
    created_at timestamptz not null default now(),
    constraint idempotency_keys_pkey primary key (tenant_id, subject_id, route, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);
comment on table idempotency_keys is 'Answered POSTs other than placing orders, kept for a day. Written in the transaction of their effect.';
