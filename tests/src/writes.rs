//! Who wrote what in which transaction: commits counted exactly, and "nothing was written" proved.

use tokio_postgres::Client;

use crate::TestDatabase;

/// Watches every table of a database from now on.
pub struct Writes<'a> {
    client: &'a Client,
}

impl<'a> Writes<'a> {
    /// Starts watching.
    pub async fn watch(database: &'a TestDatabase) -> Self {
        let client = database.owner();
        let sql = "create table watched (
                position bigint generated always as identity, xid xid8 not null default pg_current_xact_id(), what text not null);
            create function watch() returns trigger language plpgsql security definer set search_path = public as $$
            begin
                insert into watched (what) values (lower(tg_op) || ' ' || tg_table_name);
                return null;
            end $$;
            do $$ declare name text; begin
                for name in select tablename from pg_tables where schemaname = 'public' and tablename <> 'watched' loop
                    execute format('create trigger watched after insert or update or delete on %I
                        for each row execute function watch()', name);
                end loop;
            end $$;";
        client.batch_execute(sql).await.unwrap();
        Self { client }
    }

    /// The writing transactions that committed since the last look, each with the rows it changed, in order.
    pub async fn take(&self) -> Vec<Vec<String>> {
        let sql = "with seen as (delete from watched returning position, xid, what)
            select array_agg(what order by position) from seen group by xid order by min(position)";
        self.client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}
