//! "Time passes": every moment in the database moves back, so that what is due in an hour is due now.

use std::time::Duration;

use tokio_postgres::Client;

/// How often the locks are tried for. Each try waits briefly, so as not to hold the system up.
const TRIES: usize = 100;

/// Moves every moment of every table back by this time. Triggers do not see it.
pub async fn pass(owner: &mut Client, time: Duration) {
    let sql = "select table_name::text, string_agg(
            format('%1$I = %1$I - make_interval(secs => %2$s)', column_name, $1::float8), ', ' order by column_name)
        from information_schema.columns join information_schema.tables using (table_schema, table_name)
        where table_schema = 'public' and data_type = 'timestamp with time zone' and table_type = 'BASE TABLE'
            and table_name not like 'refinery%'
        group by table_name order by table_name <> 'orders', table_name";
    let rows = owner.query(sql, &[&time.as_secs_f64()]).await.expect("the columns");
    let tables: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    for _ in 0..TRIES {
        if try_pass(owner, &tables).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the tables are never free to let time pass");
}

async fn try_pass(owner: &mut Client, tables: &[(String, String)]) -> Result<(), tokio_postgres::Error> {
    let tx = owner.transaction().await?;
    tx.batch_execute("set local lock_timeout = '500ms'; set local session_replication_role = replica").await?;
    let names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
    // Writers wait for the tables instead of meeting half-moved rows.
    tx.batch_execute(&format!("lock table {} in exclusive mode", names.join(", "))).await?;
    for (name, moved) in tables {
        tx.batch_execute(&format!("update {name} set {moved}")).await?;
    }
    tx.commit().await
}
