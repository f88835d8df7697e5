-- Buyers who log in with a code on their phone: who they are, what was sent, what they hold, and what it may cost.

alter table tenants
    add column phone_prefixes text[] not null default '{34,351,55}',
    add constraint tenants_phone_prefixes_form check (
        cardinality(phone_prefixes) <= 250 and array_position(phone_prefixes, null) is null
        and array_to_string(phone_prefixes, ',') ~ '^([1-9][0-9]{0,2}(,[1-9][0-9]{0,2})*)?$');
comment on column tenants.phone_prefixes is 'Country calling codes whose phones get codes. Short, because messages to some countries cost much and are asked for by nobody but thieves.';

create table buyers (
    id uuid not null,
    tenant_id uuid not null,
    phone text not null,
    created_at timestamptz not null default now(),
    constraint buyers_pkey primary key (id),
    constraint buyers_tenant_unique unique (tenant_id, id),
    constraint buyers_phone_unique unique (tenant_id, phone),
    constraint buyers_tenant_exists foreign key (tenant_id) references tenants (id),
    constraint buyers_phone_form check (phone ~ '^\+[1-9][0-9]{7,14}$')
);
comment on table buyers is 'Who has logged in at a store. Orders name a buyer without a foreign key: it would lock this row once per order.';
comment on column buyers.phone is 'E.164. The same phone at two stores is two buyers who know nothing of each other.';

create table login_codes (
    id uuid not null,
    tenant_id uuid not null,
    phone text not null,
    language text not null,
    key_id text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    tries smallint not null default 0,
    asked smallint not null default 1,
    sent smallint not null default 0,
    look_at timestamptz not null,
    claimed_until timestamptz,
    used_at timestamptz,
    constraint login_codes_pkey primary key (id),
    constraint login_codes_tenant_unique unique (tenant_id, id),
    constraint login_codes_tenant_exists foreign key (tenant_id) references tenants (id),
    constraint login_codes_phone_form check (phone ~ '^\+[1-9][0-9]{7,14}$'),
    constraint login_codes_language_known check (language in ('es', 'pt-BR', 'en')),
    constraint login_codes_counts_valid check (tries >= 0 and asked >= 1 and sent between 0 and asked)
) with (fillfactor = 70);
comment on table login_codes is 'Asking sessions: one code each, which is derived from the id with the key key_id and stands nowhere. Its own outbox: what is not sent in time is owed again.';
comment on column login_codes.tries is 'Codes that were tried, right or wrong. Sending again changes it as little as the code.';
comment on column login_codes.asked is 'Messages that were asked for; sent says how many have left.';
comment on column login_codes.look_at is 'When the reconciler owes a message again that has not left.';
comment on column login_codes.claimed_until is 'Somebody is sending a message until then; null = nobody.';
create index login_codes_unsent on login_codes (look_at) where sent < asked;
create index login_codes_age on login_codes (expires_at);

create table sessions (
    id uuid not null,
    tenant_id uuid not null,
    buyer_id uuid not null,
    device_id uuid not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    rotated_at timestamptz not null default now(),
    generation integer not null default 1,
    ended_at timestamptz,
    ended_by text,
    constraint sessions_pkey primary key (id),
    constraint sessions_buyer_exists foreign key (tenant_id, buyer_id) references buyers (tenant_id, id),
    constraint sessions_ending_complete check ((ended_at is null) = (ended_by is null)),
    constraint sessions_ending_known check (ended_by in ('buyer', 'reuse'))
) with (fillfactor = 80);
comment on table sessions is 'Families of refresh tokens. A token is derived from id and generation and stands nowhere; only the present generation is good.';
comment on column sessions.device_id is 'The device that logged in: only it gets the same successor twice.';
comment on column sessions.ended_by is 'Logged out by the buyer, or ended because an old token was used again.';
create index sessions_of_buyer on sessions (tenant_id, buyer_id);
create index sessions_age on sessions (expires_at);

create table login_limits (
    subject uuid not null,
    full_until timestamptz not null,
    constraint login_limits_pkey primary key (subject)
) with (fillfactor = 70);
comment on table login_limits is 'How full each pot of messages is (GCRA): a message moves full_until on by the pot''s interval, time passes it by.';
comment on column login_limits.subject is 'A keyed hash of what is limited: a phone, an address, a country, a store, everything. Nothing personal.';

-- One statement for known and unknown phones alike. The pots are looked at without a lock first, so that a storm that
-- is refused writes nothing; those who pass count in the order of the list, which is the same for everybody. The list
-- ends with the pots that everybody shares, whose rows are so locked for the shortest time.
create function ask_login_code(
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
    until timestamptz;
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

    for place in 1 .. cardinality(subjects) loop
        select l.full_until into until from login_limits l where l.subject = subjects[place];
        wait_seconds := extract(epoch from greatest(until, now()) - now())::float8 + intervals[place] - tolerances[place];
        if wait_seconds > 0 then
            verdict := 'limited';
            pot := place;
            return;
        end if;
    end loop;
    begin
        for place in 1 .. cardinality(subjects) loop
            insert into login_limits as l (subject, full_until)
            values (subjects[place], now() + make_interval(secs => intervals[place]))
            on conflict on constraint login_limits_pkey do update
                set full_until = greatest(l.full_until, now()) + make_interval(secs => intervals[place])
            returning l.full_until into until;
            wait_seconds := extract(epoch from until - now())::float8 - tolerances[place];
            if wait_seconds > 0 then
                pot := place;
                raise exception 'somebody was first' using errcode = 'TRLIM';
            end if;
        end loop;
    exception when sqlstate 'TRLIM' then
        verdict := 'limited';
        return;
    end;
    wait_seconds := null;

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
comment on function ask_login_code is 'Records that a code is to be sent, if the store serves the country and no pot is empty; an asking session that is still good is sent again. message is the number of the message within the asking session; pot is the place in the list of the pot that is empty.';
