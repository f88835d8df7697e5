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
