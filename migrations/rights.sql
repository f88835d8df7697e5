-- Makes the role that the functions use, or brings it up to date: timeouts, and the least rights that work. Every run
-- of the migrations ends with this, in one transaction with the role's password. It is no migration, which refinery
-- sees by its name, and it may be edited at any time.

do $$ begin
    if not exists (select from pg_roles where rolname = 'tirada_app') then create role tirada_app login; end if;
end $$;

-- In milliseconds; a test compares them with the limits of domain. They belong to the role because start-up options do
-- not pass through RDS Proxy and SET pins a session.
alter role tirada_app set lock_timeout = 2000;
alter role tirada_app set statement_timeout = 5000;
alter role tirada_app set idle_in_transaction_session_timeout = 10000;
-- Storage is solid-state and what is hot is cached: an index look-up costs little more than the next page.
alter role tirada_app set random_page_cost = 1.1;
-- A plan made while a table was small is kept by a function and must be right at the peak a minute later.
alter role tirada_app set enable_seqscan = off;
-- Statements are short; compiling one costs more than running it.
alter role tirada_app set jit = off;

grant usage on schema public to tirada_app;
revoke all on all tables in schema public from tirada_app;
grant select, insert, update, delete on all tables in schema public to tirada_app;
-- Orders come from place_order, which runs as the owner. Granted first, so that nobody is without it.
grant execute on all functions in schema public to tirada_app;
revoke execute on all functions in schema public from public;
revoke create on schema public from public;
revoke insert on orders from tirada_app;
-- No row moves to another tenant, product, buyer or order: every column may be changed but these. How far the audit
-- has come is no row of theirs.
do $$ declare
    owned record;
    whose text[] := '{tenant_id,product_id,product_key,buyer_id,order_id}';
begin
    for owned in
        select c.oid::regclass as relation,
            string_agg(quote_ident(a.attname), ', ') filter (where a.attname <> all(whose)) as others
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and c.relname <> 'audit_cursor'
        group by c.oid having bool_or(a.attname = any(whose))
    loop
        execute format('revoke update on %s from tirada_app', owned.relation);
        execute format('grant update (%s) on %s to tirada_app', owned.others, owned.relation);
    end loop;
end $$;
revoke update, delete, truncate on order_events, audit_log from tirada_app;
revoke insert, update, delete on refinery_schema_history from tirada_app;
revoke delete on tenants, products, number_chunks, orders, staff from tirada_app;
