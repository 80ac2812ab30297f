-- Insert the operation with its first attempt reserved, or return what is there (L1, C2).
-- $1 ns  $2 id  $3 type  $4 fp  $5 intent  $6 own key  $7 nonce  $8 doc  $9 reserves  $10 accepts less durability
with here as materialized (
  select set_config('lock_timeout', '2s', true),
         not pg_try_advisory_xact_lock_shared($6::bigint) as own_lock,
         $10::boolean or (current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off') as durable
),
seen as materialized (
  select o.version, o.owner, o.nonce, o.started, o.abandoned, o.type, o.fp, o.intent, o.doc
  from {schema}.operation o where o.ns = $1::text and o.id = $2::text
),
-- An insert that meets a row returns it: `do nothing` would return none to the loser of a race.
put as (
  insert into {schema}.operation as o (ns, id, type, fp, intent, version, owner, nonce, started, doc)
  select $1::text, $2::text, $3::text, $4::text, $5::text, 1,
         case when $9::boolean then $6::bigint end, $7::text, case when $9::boolean then clock_timestamp() end, $8::json
  from here where own_lock and durable and not exists (select from seen)
  on conflict (ns, id) do update set version = o.version
  returning o.version, o.owner, o.nonce, o.started, o.abandoned, o.type, o.fp, o.intent, o.doc
)
select clock_timestamp(), pg_is_in_recovery(), here.own_lock, here.durable,
       case when r.owner <> $6::bigint then not pg_try_advisory_xact_lock_shared(r.owner) end,
       r.version, r.owner, r.nonce, r.started, r.abandoned, r.type, r.fp,
       case when r.nonce <> $7::text then r.intent end, case when r.nonce <> $7::text then r.doc end,
       case when r.nonce <> $7::text and r.doc ->> 'episodes' is not null then (
         select json_agg(d.doc order by d.seq) from {schema}.decision d where d.ns = $1::text and d.id = $2::text
       ) end
from here left join (select * from put union all select * from seen) r on true
