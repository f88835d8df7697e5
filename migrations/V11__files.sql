-- Exports: files that staff take away. What was done, what is left to do, and who is doing it.

create table exports (
    id uuid not null,
    tenant_id uuid not null,
    product_id uuid not null,
    staff_id uuid not null,
    kind text not null,
    format text not null,
    language text not null,
    created_at timestamptz not null default now(),
    state text not null default 'queued',
    look_at timestamptz not null default now(),
    claim uuid,
    claimed_until timestamptz,
    tries smallint not null default 0,
    upload_id text,
    parts text[] not null default '{}',
    cursor text,
    rows_done bigint not null default 0,
    bytes_done bigint not null default 0,
    percent smallint not null default 0,
    written_at timestamptz,
    finished_at timestamptz,
    expires_at timestamptz,
    failure text,
    constraint exports_pkey primary key (id),
    constraint exports_tenant_unique unique (tenant_id, id),
    constraint exports_product_exists foreign key (tenant_id, product_id) references products (tenant_id, id),
    constraint exports_staff_exists foreign key (tenant_id, staff_id) references staff (tenant_id, id),
    constraint exports_kind_known check (kind in ('orders', 'numbers')),
    constraint exports_format_known check (format in ('csv', 'xlsx')),
    constraint exports_language_known check (language in ('es', 'pt-BR', 'en')),
    constraint exports_state_known check (state in ('queued', 'writing', 'ready', 'failed')),
    constraint exports_claim_complete check ((claim is null) = (claimed_until is null)),
    constraint exports_counts_valid check (
        rows_done >= 0 and bytes_done >= 0 and percent between 0 and 100 and cardinality(parts) <= 10000),
    constraint exports_parts_belong_to_an_upload check (upload_id is not null or cardinality(parts) = 0),
    constraint exports_ready_complete check ((state = 'ready') = (expires_at is not null)),
    constraint exports_failed_complete check ((state = 'failed') = (failure is not null)),
    constraint exports_end_complete check ((state in ('ready', 'failed')) = (finished_at is not null))
) with (fillfactor = 70);
comment on table exports is 'Files that staff take away. A row is its own outbox: what is not finished is owed to the queue again when look_at comes.';
comment on column exports.claim is 'Who writes it until claimed_until; only they may change the row. Whoever claims it later makes another.';
comment on column exports.tries is 'Claims since the last part that was written.';
comment on column exports.parts is 'ETags of the parts of the upload, in their order: what is written for good.';
comment on column exports.cursor is 'Where the rows of the last part ended; null = at the beginning.';
comment on column exports.written_at is 'When the last part was written: nothing is left but to complete the upload.';
create index exports_of_store on exports (tenant_id, created_at, id);
create index exports_due on exports (look_at) where state in ('queued', 'writing');
create index exports_age on exports (finished_at) where finished_at is not null;

alter table audit_log
    drop constraint audit_log_subject_known,
    add constraint audit_log_subject_known check (
        subject in ('store', 'product', 'order', 'staff', 'session', 'export', 'upload'));

-- Uploads: images that staff send straight to a bucket, where nobody sees them before somebody has looked at them.

create table uploads (
    id uuid not null,
    tenant_id uuid not null,
    staff_id uuid not null,
    media_type text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    state text not null default 'waiting',
    look_at timestamptz not null,
    bytes bigint,
    refusal text,
    finished_at timestamptz,
    constraint uploads_pkey primary key (id),
    constraint uploads_tenant_unique unique (tenant_id, id),
    constraint uploads_staff_exists foreign key (tenant_id, staff_id) references staff (tenant_id, id),
    constraint uploads_media_type_known check (media_type in ('image/png', 'image/jpeg', 'image/webp', 'image/avif')),
    constraint uploads_state_known check (state in ('waiting', 'accepted', 'rejected', 'expired')),
    constraint uploads_accepted_complete check ((state = 'accepted') = (bytes is not null)),
    constraint uploads_rejected_complete check ((state = 'rejected') = (refusal is not null)),
    constraint uploads_end_complete check ((state = 'waiting') = (finished_at is null))
);
comment on table uploads is 'Images that staff upload. What is accepted stays accepted: whoever sends other bytes with the same form is not heard.';
comment on column uploads.expires_at is 'Until then the bucket takes bytes.';
comment on column uploads.look_at is 'When somebody looks although the bucket told us nothing.';
create index uploads_due on uploads (look_at) where state = 'waiting';
create index uploads_age on uploads (finished_at) where state in ('rejected', 'expired');
