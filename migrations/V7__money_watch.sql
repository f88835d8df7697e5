-- Watching money: one store's unreadable events do not go before others', and the audit goes through orders as well.

drop index inbox_unprocessed;
create index inbox_unprocessed on inbox (looks, look_at) where processed_at is null;

alter table audit_cursor add column order_id uuid not null default '00000000-0000-0000-0000-000000000000';
comment on column audit_cursor.order_id is 'The last order whose money was compared.';

alter table audit_findings add column resolved_because text;
comment on column audit_findings.resolved_because is 'What an operator wrote who closed it by hand.';

alter table payment_attempts add column looked_at timestamptz;
comment on column payment_attempts.looked_at is 'When the gateway was last asked how the payment is and answered: events that came before tell nothing new.';
