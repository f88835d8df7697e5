-- Money: attempts to pay, refunds, disputes, and what gateways tell us.

alter table products
    add column gateways text[] not null default '{}',
    add column capture text not null default 'automatic',
    add column late_money text not null default 'retake',
    add column keeps_disputed boolean not null default false,
    add constraint products_gateways_known check (gateways <@ '{stripe,mercado-pago,sandbox,manual}'::text[]),
    add constraint products_capture_known check (capture in ('automatic', 'manual')),
    add constraint products_late_money_known check (late_money in ('retake', 'substitute', 'refund'));
comment on column products.gateways is 'With whom its orders may be paid; the first that serves the buyer''s method is taken.';
comment on column products.late_money is 'What to do with money that arrives when the numbers have gone back to stock.';
comment on column products.keeps_disputed is 'Whether a buyer keeps the numbers whose money a lost dispute took away.';

create table gateway_accounts (
    tenant_id uuid not null,
    gateway text not null,
    sealed bytea not null,
    version integer not null default 1,
    changed_at timestamptz not null default now(),
    constraint gateway_accounts_pkey primary key (tenant_id, gateway),
    constraint gateway_accounts_tenant_exists foreign key (tenant_id) references tenants (id),
    constraint gateway_accounts_gateway_known check (gateway in ('stripe', 'mercado-pago', 'sandbox')),
    constraint gateway_accounts_sealed_bounded check (octet_length(sealed) between 29 and 16384)
);
comment on table gateway_accounts is 'A store''s credentials at a gateway. Written, never shown.';
comment on column gateway_accounts.sealed is 'JSON, encrypted with the platform''s key; store and gateway are authenticated with it.';

create table payment_attempts (
    id uuid not null,
    tenant_id uuid not null,
    order_id uuid not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    amount_minor bigint not null,
    number smallint not null,
    gateway text not null,
    method text not null,
    capture text not null,
    currency text not null,
    requested_under text not null,
    fingerprint bytea not null,
    return_url text,
    state text not null default 'created',
    version integer not null default 1,
    used text,
    captured_minor bigint not null default 0,
    refunded_minor bigint not null default 0,
    look_at timestamptz,
    looks smallint not null default 0,
    look_owed boolean not null default false,
    given_up_at timestamptz,
    payment_id text,
    instructions text,
    decline_code text,
    constraint payment_attempts_pkey primary key (id),
    constraint payment_attempts_tenant_unique unique (tenant_id, id),
    constraint payment_attempts_number_unique unique (order_id, number),
    constraint payment_attempts_request_unique unique (order_id, requested_under),
    constraint payment_attempts_order_exists foreign key (order_id) references orders (id),
    constraint payment_attempts_gateway_known check (gateway in ('stripe', 'mercado-pago', 'sandbox', 'manual')),
    constraint payment_attempts_method_known check (method in ('card', 'checkout', 'pix', 'manual')),
    constraint payment_attempts_capture_known check (capture in ('automatic', 'manual')),
    constraint payment_attempts_state_known check (state in
        ('created', 'open', 'processing', 'authorised', 'declined', 'cancelled', 'abandoned', 'captured')),
    constraint payment_attempts_used_known check (used in ('payment', 'return')),
    constraint payment_attempts_used_is_captured check (used is null or state = 'captured'),
    constraint payment_attempts_amounts_valid check (
        amount_minor > 0 and captured_minor >= 0 and refunded_minor between 0 and captured_minor),
    constraint payment_attempts_state_has_payment check (
        payment_id is not null or state in ('created', 'declined', 'abandoned'))
) with (fillfactor = 70);
comment on table payment_attempts is 'One try to pay an order. Recorded before the gateway is asked; its id is the reference that the gateway keeps.';
comment on column payment_attempts.used is 'Captured money either pays for the order or goes back in full; null while that is not decided.';
comment on column payment_attempts.look_at is 'When the reconciler owes it another look at the gateway; null = never.';
comment on column payment_attempts.look_owed is 'Its turn has come and nobody has looked since.';
comment on column payment_attempts.requested_under is 'The buyer''s idempotency key.';
create unique index payment_attempts_one_open on payment_attempts (order_id)
    where state in ('created', 'open', 'processing', 'authorised');
create unique index payment_attempts_one_payment on payment_attempts (order_id) where used = 'payment';
create unique index payment_attempts_payment on payment_attempts (tenant_id, gateway, payment_id);
create index payment_attempts_look on payment_attempts (look_at)
    where look_at is not null and state in ('created', 'open', 'processing', 'authorised');
create index payment_attempts_look_ended on payment_attempts (look_at)
    where look_at is not null and state in ('declined', 'cancelled', 'abandoned', 'captured');

create table refunds (
    id uuid not null,
    tenant_id uuid not null,
    order_id uuid not null,
    attempt_id uuid not null,
    created_at timestamptz not null default now(),
    amount_minor bigint not null,
    numbers integer[] not null,
    cause text not null,
    note text,
    state text not null default 'created',
    version integer not null default 1,
    tries smallint not null default 0,
    key_number smallint not null default 1,
    key_of uuid not null,
    asked smallint not null default 0,
    look_at timestamptz,
    gateway_refund_id text,
    failure text,
    retried_as uuid,
    constraint refunds_pkey primary key (id),
    constraint refunds_order_exists foreign key (order_id) references orders (id),
    constraint refunds_attempt_exists foreign key (tenant_id, attempt_id) references payment_attempts (tenant_id, id),
    constraint refunds_cause_known check (cause in
        ('staff', 'cancelled', 'late', 'duplicate', 'wrong-amount', 'elsewhere')),
    constraint refunds_state_known check (state in ('created', 'pending', 'succeeded', 'failed')),
    constraint refunds_amount_positive check (amount_minor > 0)
) with (fillfactor = 70);
comment on column refunds.key_of is 'Under whose id the gateway is asked: its own, unless two refunds have changed places because the gateway''s answer to one was taken for the other''s.';
comment on column refunds.asked is 'Requests sent under the present key.';
comment on column refunds.retried_as is 'The refund that was made in place of this failed one; without it the buyer is still owed.';
comment on table refunds is 'Money on its way back. The numbers that it gives up return to stock once, when the gateway accepts it.';
create index refunds_of_order on refunds (order_id);
create unique index refunds_at_gateway on refunds (attempt_id, gateway_refund_id);
create index refunds_failed on refunds (order_id) where state = 'failed' and retried_as is null;
create index refunds_look on refunds (look_at) where look_at is not null;

create table disputes (
    id uuid not null,
    tenant_id uuid not null,
    order_id uuid not null,
    attempt_id uuid not null,
    gateway_dispute_id text not null,
    created_at timestamptz not null default now(),
    amount_minor bigint not null,
    state text not null,
    numbers integer[] not null default '{}',
    constraint disputes_pkey primary key (id),
    constraint disputes_attempt_exists foreign key (tenant_id, attempt_id) references payment_attempts (tenant_id, id),
    constraint disputes_state_known check (state in ('open', 'won', 'lost')),
    constraint disputes_at_gateway unique (attempt_id, gateway_dispute_id)
);
comment on column disputes.numbers is 'Numbers that it gave up when it was lost.';
comment on table disputes is 'A buyer''s bank wants money back. A lost one counts as refunded.';
create index disputes_of_order on disputes (order_id);

create table inbox (
    tenant_id uuid not null,
    gateway text not null,
    event_id text not null,
    received_at timestamptz not null default now(),
    look_at timestamptz not null default now(),
    processed_at timestamptz,
    looks smallint not null default 0,
    kind text not null,
    payment_id text,
    constraint inbox_pkey primary key (tenant_id, gateway, event_id),
    constraint inbox_tenant_exists foreign key (tenant_id) references tenants (id)
);
comment on table inbox is 'What gateways told us, once each. Its own outbox: what is not processed in time is owed again.';
create index inbox_unprocessed on inbox (look_at) where processed_at is null;
create index inbox_processed on inbox (processed_at) where processed_at is not null;
