-- Append to one gate's log, if it is still at the revision that was read (G5). All rows, or none.
-- The first row is the fence: whoever comes second meets it, and writes nothing.
-- $1 ns  $2 stream  $3 gate  $4 revision  $5 nonce  $6 rows: [[event, beside, chain], …]  $7 before, or null
-- $8 accepts less durability
with here as materialized (
  select set_config('lock_timeout', '2s', true) as lock_timeout,
         $8::boolean or (current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off') as durable
),
new as materialized (
  select r.n, r.value ->> 0 as event, r.value ->> 1 as beside, r.value ->> 2 as chain
  from json_array_elements($6::json) with ordinality as r (value, n)
),
fence as (
  insert into {schema}.gate_event (ns, stream, gate, revision, nonce, recorded, event, beside, chain)
  select $1::text, $2::text, $3::text, $4::bigint + 1, $5::text, clock_timestamp(), new.event, new.beside, new.chain
  from new, here
  where new.n = 1 and here.durable and here.lock_timeout is not null
    and ($7::timestamptz is null or clock_timestamp() < $7::timestamptz)
    and ($4::bigint = 0 or exists (
      select from {schema}.gate_event e
      where e.ns = $1::text and e.stream = $2::text and e.gate = $3::text and e.revision = $4::bigint))
  on conflict (ns, stream, gate, revision) do nothing
  returning revision
),
rest as (
  insert into {schema}.gate_event (ns, stream, gate, revision, nonce, recorded, event, beside, chain)
  select $1::text, $2::text, $3::text, $4::bigint + new.n, $5::text, clock_timestamp(), new.event, new.beside, new.chain
  from new, fence where new.n > 1 order by new.n
)
select clock_timestamp(), pg_is_in_recovery(), here.durable, fence.revision from here left join fence on true
