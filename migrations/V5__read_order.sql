-- Reading one order, as buyers do again and again while they wait. A function for the reason of V4: planning this on
-- every call took longer than reading.

create function read_order(
    of_tenant uuid,
    of_buyer uuid,
    wanted uuid,
    place_known_after_seconds double precision,
    place_count_max bigint
) returns table (
    id uuid,
    tenant_id uuid,
    product_id uuid,
    product_key integer,
    padding smallint,
    buyer_id uuid,
    state text,
    requested_numbers integer[],
    requested_quantity integer,
    fallback text,
    unit_price_minor bigint,
    currency text,
    total_minor bigint,
    created_at timestamptz,
    queue_deadline timestamptz,
    only_held_stock boolean,
    numbers integer[],
    lost_numbers integer[],
    substitutes integer[],
    suggestions integer[],
    given_up integer[],
    reason text,
    expires_at timestamptz,
    cancel_requested_at timestamptz,
    version integer,
    read_at timestamptz,
    older bigint,
    wait_seconds double precision
) language plpgsql stable rows 1 as $$
#variable_conflict use_column
begin
    return query
        select o.id, o.tenant_id, o.product_id, o.product_key, p.padding, o.buyer_id, o.state, o.requested_numbers,
            o.requested_quantity, o.fallback, o.unit_price_minor, o.currency, o.total_minor, o.created_at,
            o.queue_deadline, o.only_held_stock, o.numbers, o.lost_numbers, o.substitutes, o.suggestions, o.given_up, o.reason,
            o.expires_at, o.cancel_requested_at, o.version, now(), place.older, place.wait_seconds
        from orders o
        join products p on p.id = o.product_id
        left join lateral (
            select (select count(*) from (
                    select from order_queue q
                    where q.product_key = o.product_key and (q.created_at, q.order_id) < (o.created_at, o.id)
                    limit place_count_max) as before) as older,
                (select extract(epoch from o.created_at - h.oldest_queued_at)::float8 / h.advance_per_second
                from queue_health h
                where h.product_key = o.product_key and h.advance_per_second > 0.001) as wait_seconds
        ) as place on o.state = 'queued' and now() >= o.created_at + make_interval(secs => place_known_after_seconds)
        where o.id = wanted and o.tenant_id = of_tenant and o.buyer_id = of_buyer;
end
$$;
comment on function read_order is 'A buyer''s order, and while it is queued for longer than place_known_after_seconds how many older orders wait before it, counted up to place_count_max, and how long they may take at the pace of late.';
