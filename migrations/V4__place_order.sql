-- The statement of the hot path as a function: its plan stays with the connection, whoever borrows that from the pool.

create function place_order(
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
    grace_seconds double precision
) returns table (accepted_at timestamptz, held_stock_only boolean) language plpgsql as $$
begin
    return query with acknowledged as (
        delete from outbox where id in (select id from outbox where id = any(published) for no key update skip locked)
    ), placed as (
        insert into orders (id, tenant_id, product_id, product_key, buyer_id, state, requested_numbers,
            requested_quantity, fallback, idempotency_key, fingerprint, unit_price_minor, currency, hold_seconds,
            queue_deadline, only_held_stock)
        select new_id, p.tenant_id, p.id, p.key, of_buyer, 'queued', wanted_numbers, wanted_quantity, wanted_fallback,
            under_key, of_request, p.price_minor, p.currency, p.hold_seconds,
            now() + make_interval(secs => deadline_seconds),
            not exists (select from number_chunks c where c.product_key = p.key and c.available > 0)
        from products p join tenants t on t.id = p.tenant_id cross join platform
        where p.id = of_product and p.tenant_id = of_tenant
            and p.opens_at <= now() and now() < p.closes_at
            and p.intake = 'open' and t.intake = 'open' and platform.intake = 'open'
            and smallest >= p.first_number and largest < p.first_number + p.number_count
            and asked <= p.numbers_per_order_max and asked <= p.numbers_per_buyer_max
            and open_orders_max > (select count(*) from (
                select o.product_key, o.state from orders o where o.buyer_id = of_buyer
                order by o.id desc limit orders_counted_max) as latest
                where latest.product_key = p.key and latest.state in ('queued', 'reserved', 'paying', 'refunding'))
            and exists (select from number_chunks c where c.product_key = p.key and c.available + c.reserved > 0)
            and not exists (select from orders o
                where o.tenant_id = of_tenant and o.buyer_id = of_buyer and o.idempotency_key = under_key)
        returning id, tenant_id, product_id, product_key, created_at, only_held_stock
    ), queued as (
        insert into order_queue (product_key, created_at, order_id) select product_key, created_at, id from placed
    ), recorded as (
        insert into order_events (order_id, version, to_state, cause) select id, 1, 'queued', 'buyer' from placed
    ), owed as (
        insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
        select id, to_queue, tenant_id, product_id, id, now() + make_interval(secs => grace_seconds) from placed
    )
    select created_at, only_held_stock from placed;
end
$$;
comment on function place_order is 'Records an order with its place in the queue, its first event and its outbox row, if the sale allows it and its key is new; no row otherwise. Deletes outbox rows whose messages were sent. A twin under the same key that commits meanwhile is a unique violation.';
