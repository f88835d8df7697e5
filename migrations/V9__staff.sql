-- Staff: who works for a store, the links that let them in, their sessions, and what they did.

create table staff (
    id uuid not null,
    tenant_id uuid not null,
    email text not null,
    role text not null,
    created_at timestamptz not null default now(),
    joined_at timestamptz,
    removed_at timestamptz,
    totp bytea,
    totp_step bigint not null default 0,
    constraint staff_pkey primary key (id),
    constraint staff_tenant_unique unique (tenant_id, id),
    constraint staff_tenant_exists foreign key (tenant_id) references tenants (id),
    constraint staff_email_form check (
        email = lower(email) and octet_length(email) between 3 and 254 and email ~ '^[^@[:space:]]+@[^@[:space:]]+$'),
    constraint staff_role_known check (role in ('owner', 'operator', 'finance', 'support', 'viewer')),
    constraint staff_totp_bounded check (octet_length(totp) between 29 and 256),
    constraint staff_joined_with_totp check (joined_at is null or totp is not null)
);
comment on table staff is 'Who works for a store, and as what. Somebody who works for two stores is two of them.';
comment on column staff.joined_at is 'When the invitation was accepted; null = not yet.';
comment on column staff.removed_at is 'From then on nothing of theirs is good. The row stays for the audit log.';
comment on column staff.totp is 'The secret of their one-time passwords, encrypted with the platform''s key; store and person are authenticated with it.';
comment on column staff.totp_step is 'The latest step whose password was used: only later ones are good.';
create unique index staff_email_unique on staff (tenant_id, email) where removed_at is null;

create table staff_links (
    id uuid not null,
    tenant_id uuid not null,
    staff_id uuid not null,
    purpose text not null,
    hash bytea not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    tries smallint not null default 0,
    used_at timestamptz,
    totp bytea,
    constraint staff_links_pkey primary key (id),
    constraint staff_links_hash_unique unique (hash),
    constraint staff_links_staff_exists foreign key (tenant_id, staff_id) references staff (tenant_id, id),
    constraint staff_links_purpose_known check (purpose in ('sign-in', 'invitation', 'recovery')),
    constraint staff_links_hash_length check (octet_length(hash) = 32),
    constraint staff_links_totp_bounded check (octet_length(totp) between 29 and 256),
    constraint staff_links_totp_is_new check (totp is null or purpose <> 'sign-in')
);
comment on table staff_links is 'One-time links. What was mailed stands nowhere, only its hash.';
comment on column staff_links.tries is 'One-time passwords that were tried with it, right or wrong.';
comment on column staff_links.totp is 'The secret that is being set up with it, sealed as staff.totp.';
create index staff_links_of_staff on staff_links (tenant_id, staff_id);
create index staff_links_age on staff_links (expires_at);

create table staff_sessions (
    id uuid not null,
    tenant_id uuid not null,
    staff_id uuid not null,
    device_id uuid not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    rotated_at timestamptz not null default now(),
    fresh_until timestamptz not null,
    generation integer not null default 1,
    tries smallint not null default 0,
    ended_at timestamptz,
    ended_by text,
    constraint staff_sessions_pkey primary key (id),
    constraint staff_sessions_staff_exists foreign key (tenant_id, staff_id) references staff (tenant_id, id),
    constraint staff_sessions_ending_complete check ((ended_at is null) = (ended_by is null)),
    constraint staff_sessions_ending_known check (ended_by in ('staff', 'reuse', 'removal', 'recovery'))
) with (fillfactor = 80);
comment on table staff_sessions is 'Families of refresh tokens of staff, as sessions are of buyers''.';
comment on column staff_sessions.fresh_until is 'Until then a one-time password has proved a moment ago who it is.';
comment on column staff_sessions.tries is 'One-time passwords that were tried since the last right one.';
create index staff_sessions_of_staff on staff_sessions (tenant_id, staff_id);
create index staff_sessions_age on staff_sessions (expires_at);

create table audit_log (
    id uuid not null,
    tenant_id uuid not null,
    at timestamptz not null default now(),
    staff_id uuid,
    action text not null,
    subject text not null,
    subject_id uuid not null,
    detail text,
    reason text,
    constraint audit_log_pkey primary key (id),
    constraint audit_log_tenant_exists foreign key (tenant_id) references tenants (id),
    constraint audit_log_staff_exists foreign key (tenant_id, staff_id) references staff (tenant_id, id),
    constraint audit_log_subject_known check (subject in ('store', 'product', 'order', 'staff', 'session'))
);
comment on table audit_log is 'What staff did, written in the transaction of its effect. Append-only.';
comment on column audit_log.staff_id is 'Who did it; null = the platform''s operator.';
comment on column audit_log.action is 'The id of the API''s operation.';
comment on column audit_log.detail is 'What of it, as JSON; nothing personal.';
create index audit_log_of_tenant on audit_log (tenant_id, id);

create function refuse_audit_log_change() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log is append-only' using errcode = 'restrict_violation';
end
$$;
comment on function refuse_audit_log_change is 'Nobody rewrites what was done, owners of the database included.';
create trigger audit_log_append_only before update or delete or truncate on audit_log
    for each statement execute function refuse_audit_log_change();

-- The pots of ask_login_code, for whoever else sends messages: looked at without a lock first, then counted in the
-- order of the list.
create function take_from_pots(
    subjects uuid[],
    intervals double precision[],
    tolerances double precision[],
    out pot integer,
    out wait_seconds double precision
) language plpgsql as $$
declare
    until timestamptz;
begin
    for place in 1 .. cardinality(subjects) loop
        select l.full_until into until from login_limits l where l.subject = subjects[place];
        wait_seconds := extract(epoch from greatest(until, now()) - now())::float8 + intervals[place] - tolerances[place];
        if wait_seconds > 0 then
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
        return;
    end;
    pot := null;
    wait_seconds := null;
end
$$;
comment on function take_from_pots is 'Takes a message from each pot, or from none when one is empty: pot is its place in the list.';
