-- Store the operation, if the version is still the one that was read (C2).
-- $1 ns  $2 id  $3 version  $4 owner  $5 nonce  $6 doc
with here as materialized (
  select set_config('lock_timeout', '2s', true) as lock_timeout
),
put as (
  update {schema}.operation o
  set version = o.version + 1, owner = $4::bigint, nonce = $5::text, doc = $6::json, abandoned = null
  from here where o.ns = $1::text and o.id = $2::text and o.version = $3::bigint and here.lock_timeout is not null
  returning o.version
)
select clock_timestamp(), pg_is_in_recovery(), put.version from here left join put on true
