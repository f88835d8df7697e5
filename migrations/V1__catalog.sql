-- Tenants and what they sell.

create table platform (
    id boolean primary key default true,
    intake text not null default 'open',
    intake_reason text,
    changed_at timestamptz not null default now(),
    constraint platform_one_row check (id),
    constraint platform_intake_known check (intake in ('open', 'paused'))
);
comment on table platform is 'One row: the switch that stops new orders everywhere.';
insert into platform default values;

create table tenants (
    id uuid primary key,
    slug text not null,
    name text not null,
    intake text not null default 'open',
    intake_reason text,
    created_at timestamptz not null default now(),
    constraint tenants_slug_unique unique (slug),
    constraint tenants_slug_form check (slug ~ '^[a-z0-9-]{1,40}$'),
    constraint tenants_intake_known check (intake in ('open', 'paused'))
);
comment on table tenants is 'A white-label client; the public API calls it a store.';

create table products (
    id uuid primary key,
    key integer generated always as identity,
    tenant_id uuid not null,
    campaign text not null,
    name text not null,
    first_number integer not null,
    number_count integer not null,
    padding smallint not null,
    price_minor bigint not null,
    currency text not null,
    opens_at timestamptz not null,
    closes_at timestamptz not null,
    zone text not null,
    hold_seconds integer not null,
    numbers_per_order_max integer not null,
    numbers_per_buyer_max integer not null,
    intake text not null default 'open',
    intake_reason text,
    reserving text not null default 'on',
    reserving_reason text,
    reserving_resumed_at timestamptz not null default '-infinity',
    version bigint not null default 1,
    created_at timestamptz not null default now(),
    constraint products_key_unique unique (key),
    constraint products_tenant_unique unique (tenant_id, id),
    constraint products_tenant_exists foreign key (tenant_id) references tenants (id),
    constraint products_range_valid check (
        number_count between 1 and 10000000 and first_number >= 0 and first_number + number_count <= 1000000000
    ),
    constraint products_padding_valid check (padding between 0 and 9),
    constraint products_price_valid check (price_minor between 0 and 1000000000000 and currency ~ '^[A-Z]{3}$'),
    constraint products_window_valid check (opens_at < closes_at),
    constraint products_hold_valid check (hold_seconds between 5 and 604800),
    constraint products_limits_valid check (
        numbers_per_order_max between 1 and 100 and numbers_per_buyer_max between 1 and 100000
    ),
    constraint products_intake_known check (intake in ('open', 'paused')),
    constraint products_reserving_known check (reserving in ('on', 'halted'))
);
comment on table products is 'A range of numbers, a price, a window in time, limits and two switches.';
comment on column products.key is 'Small key for the wide tables; never leaves the database.';
comment on column products.intake is 'Paused: no new orders; accepted ones finish.';
comment on column products.reserving is 'Halted: nothing changes the product''s numbers until an operator resumes.';

comment on column products.reserving_resumed_at is 'The queue deadline of orders that waited through a halt starts over here.';

create table number_chunks (
    product_key integer not null,
    chunk integer not null,
    bits bytea not null,
    size integer not null,
    available integer not null,
    reserved integer not null default 0,
    paid integer not null default 0,
    blocked integer not null default 0,
    version bigint not null default 1,
    constraint number_chunks_pkey primary key (product_key, chunk),
    constraint number_chunks_product_exists foreign key (product_key) references products (key),
    constraint number_chunks_bits_length check (octet_length(bits) = 1024),
    constraint number_chunks_not_negative check (available >= 0 and reserved >= 0 and paid >= 0 and blocked >= 0),
    constraint number_chunks_add_up check (available + reserved + paid + blocked = size)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
alter table number_chunks alter column bits set storage plain;
comment on table number_chunks is 'Derived state: 8,192 numbers per row, bit 1 = not available. Changed only under the row''s lock; taken_numbers decides.';
comment on column number_chunks.bits is 'Bit i % 8 of byte i / 8 is the chunk''s i-th number; bits beyond size are 1.';
comment on column number_chunks.version is 'Grows with every change; the sum over a product is the version of its availability.';

create table taken_numbers (
    product_key integer not null,
    number integer not null,
    order_id uuid,
    constraint taken_numbers_pkey primary key (product_key, number)
);
comment on table taken_numbers is 'The arbiter: one row per number that is not available. Its primary key decides who gets a number.';
comment on column taken_numbers.order_id is 'Its owner, whose state says whether it is reserved or paid; null = blocked.';

create function refuse_frozen_product_change() returns trigger language plpgsql as $$
begin
    if (new.first_number, new.number_count, new.padding, new.currency, new.key, new.tenant_id)
        is distinct from (old.first_number, old.number_count, old.padding, old.currency, old.key, old.tenant_id)
        and exists (select from orders where product_key = old.key)
    then
        raise exception 'range, padding and currency are frozen after the first accepted order'
            using errcode = 'check_violation', constraint = 'products_frozen';
    end if;
    if new.opens_at is distinct from old.opens_at and old.opens_at <= now() then
        raise exception 'the opening has passed' using errcode = 'check_violation', constraint = 'products_opening_passed';
    end if;
    return new;
end
$$;
comment on function refuse_frozen_product_change is 'What a sold number means can no longer change.';
create trigger products_frozen before update on products
    for each row execute function refuse_frozen_product_change();
