-- What buyers are told about their orders: owed in the transaction that causes it, sent once.

alter table tenants
    add column notices text[] not null default '{reserved,paid,rejected,expired,refunded}',
    add constraint tenants_notices_known check (
        notices <@ '{reserved,paid,rejected,expired,refunded}'::text[] and array_position(notices, null) is null);
comment on column tenants.notices is 'The kinds of notices that the store''s buyers get.';

alter table buyers
    add column language text,
    add column email text,
    add constraint buyers_language_known check (language in ('es', 'pt-BR', 'en')),
    add constraint buyers_email_form check (
        email = lower(email) and octet_length(email) between 3 and 254 and email ~ '^[^@[:space:]]+@[^@[:space:]]+$');
comment on column buyers.language is 'That of the last login code; null = none since there are notices, so that the phone''s country says.';
comment on column buyers.email is 'Where notices go beside the phone; null = nowhere.';

create table notices (
    order_id uuid not null,
    kind text not null,
    tenant_id uuid not null,
    created_at timestamptz not null default now(),
    look_at timestamptz not null default now(),
    attempts smallint not null default 0,
    claimed_until timestamptz,
    not_before timestamptz,
    phone_sent_at timestamptz,
    email_sent_at timestamptz,
    failure text,
    outcome text,
    constraint notices_pkey primary key (order_id, kind),
    constraint notices_kind_known check (kind in ('reserved', 'paid', 'rejected', 'expired', 'refunded')),
    constraint notices_failure_bounded check (char_length(failure) <= 200),
    constraint notices_outcome_known check (outcome in ('sent', 'needless', 'limited', 'late', 'failed'))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
comment on table notices is 'What a buyer is told about an order, once per kind. Its own outbox: what is not sent is owed again. No foreign key: it would cost a trigger per order, and both ids are copied from the order''s row.';
comment on column notices.kind is 'The state that the order came into; refunded = a gateway has accepted to give money back.';
comment on column notices.look_at is 'When the reconciler owes its message, again if need be.';
comment on column notices.claimed_until is 'Somebody is sending it until then; null = nobody.';
comment on column notices.not_before is 'A provider has refused it: no try before then, however often its message comes; null = none has.';
comment on column notices.failure is 'What the provider said last, if it did not take it.';
comment on column notices.outcome is 'How it ended: sent, no longer true or wanted, too many for a pot, too old, or refused too often; null = it is owed.';
create index notices_owed on notices (look_at) where outcome is null;
create index notices_age on notices (created_at);
