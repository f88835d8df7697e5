-- Walls where orders, their messages and their notices name a store, a product and a buyer without a foreign key, which
-- would lock the same few rows at every order. The functions' role inserts orders through place_order only (the grants
-- are in store::migrations), and what it owes for an order is compared with the order.

create or replace function place_order(
    published uuid[],
    new_id uuid,
    of_product uuid,
    of_tenant uuid,
    of_buyer uuid,
    wanted_numbers integer[],
    wanted_quantity integer,
    wanted_fallback text,
    under_key text,
    of_request bytea,
    deadline_seconds double precision,
    smallest integer,
    largest integer,
    asked integer,
    open_orders_max bigint,
    orders_counted_max bigint,
    to_queue text,
    grace_seconds double precision,
    out accepted_at timestamptz,
    out held_stock_only boolean
) language plpgsql security definer set search_path = public, pg_temp as $$
declare
    product record;
    sent uuid;
begin
    -- One by one: the plan of a list would be made anew for every length.
    foreach sent in array published loop
        delete from outbox where ctid = (select ctid from outbox where id = sent for no key update skip locked);
    end loop;

    -- Stock that is only held counts: holds run out.
    select p.key, p.price_minor, p.currency, p.hold_seconds,
        exists (select from buyers b where b.id = of_buyer and b.tenant_id <> of_tenant) as stranger,
        not exists (select from number_chunks c where c.product_key = p.key and c.available > 0) as only_held
    into product from products p
    where p.id = of_product and p.tenant_id = of_tenant
        and p.opens_at <= now() and now() < p.closes_at and p.intake = 'open'
        and (select intake from tenants where id = of_tenant) = 'open' and (select intake from platform) = 'open'
        and smallest >= p.first_number and largest < p.first_number + p.number_count
        and asked <= p.numbers_per_order_max and asked <= p.numbers_per_buyer_max
        and exists (select from number_chunks c where c.product_key = p.key and c.available + c.reserved > 0)
        and open_orders_max > (select count(*) from (
            -- A range of one buyer, because of an equality the planner drops the order by buyer, and other indexes fit.
            select o.product_key, o.state from orders o where o.buyer_id >= of_buyer and o.buyer_id <= of_buyer
            order by o.buyer_id desc, o.id desc limit orders_counted_max) as latest
            where latest.product_key = p.key and latest.state in ('queued', 'reserved', 'paying', 'refunding'))
        and not exists (select from orders o
            where o.tenant_id = of_tenant and o.buyer_id = of_buyer and o.idempotency_key = under_key);
    if not found then
        return;
    end if;
    if product.stranger then
        raise exception 'buyer % is not one of tenant %', of_buyer, of_tenant
            using errcode = 'foreign_key_violation', constraint = 'orders_buyer_of_tenant';
    end if;

    insert into orders (id, tenant_id, product_id, product_key, buyer_id, state, requested_numbers,
        requested_quantity, fallback, idempotency_key, fingerprint, unit_price_minor, currency, hold_seconds,
        queue_deadline, only_held_stock)
    values (new_id, of_tenant, of_product, product.key, of_buyer, 'queued', wanted_numbers,
        wanted_quantity, wanted_fallback, under_key, of_request, product.price_minor, product.currency,
        product.hold_seconds, now() + make_interval(secs => deadline_seconds), product.only_held);
    insert into order_queue (product_key, created_at, order_id) values (product.key, now(), new_id);
    -- No client's key has a blank: one that has is of staff, who sell to the buyer.
    insert into order_events (order_id, version, to_state, cause)
    values (new_id, 1, 'queued', case when under_key like '% %' then 'staff' else 'buyer' end);
    insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
    values (new_id, to_queue, of_tenant, of_product, new_id, now() + make_interval(secs => grace_seconds));
    accepted_at := now();
    held_stock_only := product.only_held;
end
$$;
comment on function place_order is 'The only way of the functions'' role to an order: its store, product and buyer belong together. Runs as the owner.';

create function refuse_message_of_another_order() returns trigger language plpgsql as $$
begin
    if not exists (select from orders o
        where o.id = new.order_id and o.tenant_id = new.tenant_id and o.product_id = new.product_id)
    then
        raise exception 'order % is not one of tenant % for product %', new.order_id, new.tenant_id, new.product_id
            using errcode = 'foreign_key_violation', constraint = 'outbox_of_order';
    end if;
    return null;
end
$$;
create trigger outbox_of_order after insert on outbox
    for each row when (current_user = 'tirada_app') execute function refuse_message_of_another_order();
comment on trigger outbox_of_order on outbox is 'A message names its order''s store and product. What place_order owes is its own order''s, and is not looked at.';

create function refuse_notices_of_another_order() returns trigger language plpgsql as $$
begin
    if exists (select from owed n
        where not exists (select from orders o where o.id = n.order_id and o.tenant_id = n.tenant_id))
    then
        raise exception 'a notice is not of its order''s tenant'
            using errcode = 'foreign_key_violation', constraint = 'notices_of_order';
    end if;
    return null;
end
$$;
create trigger notices_of_order after insert on notices
    referencing new table as owed for each statement execute function refuse_notices_of_another_order();
comment on trigger notices_of_order on notices is 'A notice is of its order''s tenant. Once per statement, which reserves many orders.';

-- The audit of money looks twice before it says that something is wrong.
create table audit_suspects (
    order_id uuid not null,
    product_key integer not null,
    seen_at timestamptz not null default now(),
    constraint audit_suspects_pkey primary key (order_id)
);
comment on table audit_suspects is 'Orders whose money the continuous audit found wrong. Most are on their way and leave when it comes round again; who stays becomes a finding.';

comment on table login_limits is 'How full each pot is (GCRA): what is taken moves full_until on by the pot''s interval, time passes it by.';
comment on column login_limits.subject is 'A hash of what is limited: keyed for phones, addresses and all that can be guessed; of random ids for buyers, staff and their stores. Nothing personal.';
comment on column audit_log.staff_id is 'Who did it; null = the platform''s operator, or whoever gave wrong one-time passwords.';
comment on column audit_log.action is 'The id of the API''s operation, an act of the operator, or wrong_passwords.';
