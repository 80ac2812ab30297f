-- Reserve another attempt, if the version is still the one that was read (C3), and the approval still stands (R5).
-- The row is locked first, so that the clock is read after any wait (D5).
-- $1 ns  $2 id  $3 version  $4 own key  $5 nonce  $6 doc  $7 accepts less durability  $8 approved until, or null
with here as materialized (
  select set_config('lock_timeout', '2s', true),
         not pg_try_advisory_xact_lock_shared($4::bigint) as own_lock,
         $7::boolean or (current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off') as durable
),
locked as materialized (
  select o.ns, o.id from here, {schema}.operation o
  where here.own_lock and here.durable and o.ns = $1::text and o.id = $2::text and o.version = $3::bigint
  for update of o
),
timed as materialized (
  select locked.ns, locked.id, clock_timestamp() as now from locked
),
put as (
  update {schema}.operation o
  set version = o.version + 1, owner = $4::bigint, nonce = $5::text, doc = $6::json, abandoned = null,
      started = timed.now
  from timed where o.ns = timed.ns and o.id = timed.id and o.version = $3::bigint
    and ($8::timestamptz is null or timed.now < $8::timestamptz)
  returning o.started
)
select clock_timestamp(), pg_is_in_recovery(), here.own_lock, here.durable, put.started
from here left join put on true
