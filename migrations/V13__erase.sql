-- People: the name that staff enter for a buyer, and the record of whom an operator has erased.

alter table buyers
    add column name text,
    add constraint buyers_name_bounded check (char_length(name) between 1 and 80);
comment on column buyers.name is 'As staff entered it who sold to them over the counter; null = nobody has.';
comment on table buyers is 'Who has logged in at a store, or was sold to over the counter. Everything that says who somebody is stands here, and goes with the row when they are erased. Orders name a buyer without a foreign key: it would lock this row once per order.';

alter table audit_log
    drop constraint audit_log_subject_known,
    add constraint audit_log_subject_known check (
        subject in ('store', 'product', 'order', 'staff', 'session', 'export', 'upload', 'buyer'));
comment on column audit_log.action is 'The id of the API''s operation, or the word of what only the platform''s operator does.';

alter table sessions
    drop constraint sessions_ending_known,
    add constraint sessions_ending_known check (ended_by in ('buyer', 'reuse', 'operator'));
comment on column sessions.ended_by is 'Logged out by the buyer, or by the platform''s operator for them, or ended because an old token was used again.';

-- As in V4, but the history says who placed the order.
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
) language plpgsql as $$
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
