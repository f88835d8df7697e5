-- Stores do not mix: a row that names another row of a store names one of its own store.
--
-- Nothing here locks orders. The tables of money are locked in the order of their writers, before anything else, and
-- for as long as their rows are compared: payments wait that long. To add the keys as not valid and to compare later
-- would spare them nothing within one transaction.
lock table payment_attempts, refunds, disputes in access exclusive mode;

-- Of an order, not only of a store: the order of a refund or a dispute is that of the money.
alter table refunds drop constraint refunds_attempt_exists;
alter table disputes drop constraint disputes_attempt_exists;
alter table payment_attempts
    drop constraint payment_attempts_tenant_unique,
    add constraint payment_attempts_order_unique unique (tenant_id, order_id, id);
alter table disputes
    add constraint disputes_attempt_of_order foreign key (tenant_id, order_id, attempt_id)
        references payment_attempts (tenant_id, order_id, id);
alter table refunds
    add constraint refunds_attempt_of_order foreign key (tenant_id, order_id, attempt_id)
        references payment_attempts (tenant_id, order_id, id),
    -- The order first, so that it takes the place of refunds_of_order.
    add constraint refunds_order_unique unique (order_id, tenant_id, id);
alter table refunds
    add constraint refunds_retried_of_order foreign key (tenant_id, order_id, retried_as)
        references refunds (tenant_id, order_id, id);
drop index refunds_of_order;

-- Orders have no unique (tenant_id, id): each would pay for that index when it is placed. An attempt's order is looked
-- up by its key instead, once per attempt.
do $$ begin
    if exists (select from payment_attempts a join orders o on o.id = a.order_id where o.tenant_id <> a.tenant_id) then
        raise exception 'an attempt is not of its order''s tenant' using errcode = 'foreign_key_violation';
    end if;
end $$;
create function refuse_order_of_another_tenant() returns trigger language plpgsql as $$
begin
    if not exists (select from orders o where o.id = new.order_id and o.tenant_id = new.tenant_id) then
        raise exception 'order % is not one of tenant %', new.order_id, new.tenant_id
            using errcode = 'foreign_key_violation', constraint = 'payment_attempts_order_of_tenant';
    end if;
    return null;
end
$$;
comment on function refuse_order_of_another_tenant is 'In place of a foreign key that would want an index of orders. The functions'' role changes no tenant_id, so that what was compared stays so.';
create constraint trigger payment_attempts_order_of_tenant
    after insert or update of tenant_id, order_id on payment_attempts
    for each row execute function refuse_order_of_another_tenant();
comment on trigger payment_attempts_order_of_tenant on payment_attempts is 'An attempt is of its order''s tenant.';

-- The same answers as before from the same rows; the pots are taken from in one place now.
create or replace function ask_login_code(
    of_store text,
    new_id uuid,
    again uuid,
    to_phone text,
    to_prefix text,
    in_language text,
    under_key text,
    lives_seconds double precision,
    grace_seconds double precision,
    tries_max integer,
    subjects uuid[],
    intervals double precision[],
    tolerances double precision[],
    out verdict text,
    out asking uuid,
    out of_tenant uuid,
    out message smallint,
    out seconds_left double precision,
    out pot integer,
    out wait_seconds double precision
) language plpgsql as $$
declare
    store record;
    code record;
begin
    select t.id, to_prefix = any(t.phone_prefixes) as serves into store from tenants t where t.slug = of_store;
    if not found then
        verdict := 'no-store';
        return;
    end if;
    of_tenant := store.id;
    if not store.serves then
        verdict := 'not-served';
        return;
    end if;

    select c.id, c.tries into code from login_codes c
    where c.id = again and c.tenant_id = store.id and c.phone = to_phone and c.used_at is null and c.expires_at > now();
    if found and code.tries >= tries_max then
        verdict := 'burned';
        return;
    end if;

    select taken.pot, taken.wait_seconds into pot, wait_seconds
    from take_from_pots(subjects, intervals, tolerances) taken;
    if pot is not null then
        verdict := 'limited';
        return;
    end if;

    if code.id is not null then
        update login_codes c set asked = c.asked + 1, look_at = now() + make_interval(secs => grace_seconds)
        where c.id = code.id
        returning c.asked, extract(epoch from c.expires_at - now())::float8 into message, seconds_left;
        asking := code.id;
    else
        insert into login_codes (id, tenant_id, phone, language, key_id, expires_at, look_at)
        values (new_id, store.id, to_phone, in_language, under_key, now() + make_interval(secs => lives_seconds),
            now() + make_interval(secs => grace_seconds));
        asking := new_id;
        message := 1;
        seconds_left := lives_seconds;
    end if;
    verdict := 'asked';
end
$$;
comment on function take_from_pots is 'Takes a message from each pot, or from none when one is empty: pot is its place in the list. What is refused only reads. Those who pass count in the order of the list, the same for everybody, which ends with the pots that everybody shares: their rows are so locked for the shortest time.';
